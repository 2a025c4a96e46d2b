"""The rules about drift: what each measurement is judged by, and what is refused of their file."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from cases import each
from drift_nights import BOOK, rule
from known import known
from real_checks import collected
from refusal import refusal

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.core.message import SetupError
from acceptance.expect.limit_book import at_least, exactly, must_be_zero
from acceptance.history import noise

SHIPPED = resources.locate("drift.toml")
TEXT = SHIPPED.read_text(encoding="utf-8")


def test_every_measurement_has_a_rule_or_a_reason() -> None:
    for one in (one for check in collected() for one in check.measures):
        for virtual in (False, True):
            found = BOOK.rule(one.name, one.unit, None, virtual=virtual)
            assert (found is None) == (BOOK.exempt(one.name) is not None)
            assert found is None or found.deviation(100.0) >= 0.0


def test_what_depends_on_how_long_it_ran_or_is_counted_in_the_run_is_exempt() -> None:
    assert "how much was done" in str(BOOK.exempt("burn_copied"))
    assert "during the run" in str(BOOK.exempt("gpu_pcie_replays"))
    assert BOOK.exempt("gemm_bf16") is None


@each(
    "measurement, unit, limit, worse",
    [
        ("gemm_bf16", "TFLOP/s", None, "lower"),
        ("gpu_temperature", "degC", None, "higher"),
        ("gpu_link_width", "count", None, "lower"),
        ("gpu_power", "W", None, None),
        ("gpu_temperature_margin", "degC", at_least(1.0, "degC", "b"), "lower"),
        ("disk_faults", "count", must_be_zero("b"), "higher"),
        ("gpu_count", "count", exactly(2.0, "count", "b"), None),
        # A limit with two bounds does not tell, and a rule goes before a limit.
        ("memory_total", "GiB", exactly(64.0, "GiB", "b"), "lower"),
        ("nvlink_active", "count", exactly(18.0, "count", "b"), "lower"),
    ],
)
def test_which_side_is_worse(
    measurement: str, unit: str, limit: Limit | None, worse: str | None
) -> None:
    assert rule(measurement, unit, limit).worse == worse


def test_one_deviation_is_a_quarter_of_the_general_spread() -> None:
    rate, heat = rule("gemm_bf16", "TFLOP/s"), rule("gpu_temperature", "degC")
    assert rate.deviation(600.0) == pytest.approx(0.25 * 0.03 * 600.0)
    assert rate.deviation(0.5) == pytest.approx(0.25 * 0.03 * 0.5)
    assert (heat.deviation(60.0), heat.slow, rate.slow) == (2.0, 7.0, None)
    copies = [rule("memory_copy", "GB/s", virtual=virtual).deviation(100.0) for virtual in (0, 1)]
    assert copies[0] < copies[1]
    counter = known(rule("gpu_retired_pages", "count").rate)
    assert (counter.per_day, counter.repeats) == (0.0, True)


@each(
    "text, told",
    [
        (TEXT.replace("[step]", "[steps]"), "missing required field `step`|unknown field `steps`"),
        (TEXT.replace("of_noise = 0.25", "of_noise = 1.5"), "<= 1.0"),
        (TEXT.replace("prior = 12", "prior = 0"), ">= 1"),
        (TEXT.replace("change = 2.0", "change = 0.0"), "> 0.0"),
        (TEXT.replace("ratio = 3.0", "ratio = 1.0"), "> 1.0"),
        (TEXT.replace("fails = 4", "fails = 1"), ">= 2"),
        (TEXT.replace("least = 4\n", "least = 2\n"), ">= 3"),
        (
            TEXT.replace("known = 200", "known = 119"),
            "nights.known is fewer nights than slope, growth or off look back",
        ),
        (TEXT.replace("before = 42", "before = 173"), "nights.known is fewer nights"),
        (TEXT.replace("of = 14", "of = 201"), "nights.known is fewer nights"),
        *(
            (TEXT.replace(*change), None)
            for change in (
                ("prior = 12", "prior = 1"),
                ("change = 2.0", "change = 0.5"),
                ("known = 200", "known = 120"),
            )
        ),
        ("[[", "Invalid"),
        ("\ud800", "codec|utf-8|Invalid"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(text: str, told: str | None, tmp_path: Path) -> None:
    read = partial(noise.read_rules, noise=BOOK.noise)
    if told is None:
        (tmp_path / "drift.toml").write_text(text, encoding="utf-8")
        read(tmp_path / "drift.toml")
        return
    said = refusal(read, tmp_path / "drift.toml", text, SetupError)
    assert re.match(rf"drift\.toml: .*({told})", said)
