from __future__ import annotations

from pathlib import Path

import pytest
from runs import machine_root, write_segment

from acceptance.core import clock_reasons
from acceptance.core.evidence import Sample
from acceptance.core.parts import Gpu
from acceptance.journal import samples
from acceptance.journal.samples import GpuReadings
from acceptance.journal.segment import JournalError

SAMPLES = (
    Sample({"power_w": 100.0, "energy_j": 5.0, "reason_sw_power_cap": 1.0}, component=Gpu(0)),
    Sample({"temperature_c": 40.0}, 10.0, {"temperature_c": 39.0}, {"temperature_c": 44.0}, Gpu(1)),
    Sample({"load_1m": 1.0}),
)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "telemetry-gpu.jsonl", SAMPLES, machine_root(tmp_path / "root"))


def test_a_segment_is_read_sample_by_sample_with_what_a_picture_needs(segment: Path) -> None:
    first, second, third = samples.read_samples(segment)
    assert first.body.values == GpuReadings(power_w=100.0, reason_sw_power_cap=1.0)
    assert (first.body.component, first.body.span_s) == (Gpu(0), 0.0)
    assert second.body.high == GpuReadings(temperature_c=44.0)
    assert third.body.component is None
    assert 0.0 < first.boot_s <= second.boot_s


@pytest.mark.parametrize("reason", [*clock_reasons.HEAT_OR_HARDWARE, clock_reasons.POWER_CAP])
def test_what_holds_clocks_back_is_read(reason: str, tmp_path: Path) -> None:
    segment = write_segment(
        tmp_path / "telemetry-gpu.jsonl", [Sample({reason: 1.0})], machine_root(tmp_path / "root")
    )
    assert [getattr(look.body.values, reason) for look in samples.read_samples(segment)] == [1.0]


def test_half_a_line_at_the_end_is_left_out_and_no_segment_has_no_samples(
    segment: Path, tmp_path: Path
) -> None:
    with segment.open("ab") as file:
        file.write(b'{"seq":3,"boot')
    assert len(list(samples.read_samples(segment))) == 3
    assert list(samples.read_samples(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"seq":3,"boot_s":1.0,"body":{"record":"note","text":"x"}}\n', "line 5: is no sample"),
        (b"no JSON\n", "line 5: is no sample"),
        (
            b'{"seq":3,"boot_s":1.0,"body":{"record":"sample","values":{"power_w":"much"}}}\n',
            "line 5: is no sample",
        ),
        (
            b'{"seq":7,"boot_s":1.0,"body":{"record":"sample","values":{}}}\n',
            "record 7 stands where 3 is due",
        ),
    ],
)
def test_damage_is_said_with_its_line(segment: Path, line: bytes, told: str) -> None:
    with segment.open("ab") as file:
        file.write(line)
    with pytest.raises(JournalError, match=told):
        list(samples.read_samples(segment))


def test_a_segment_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be read"):
        list(samples.read_samples(tmp_path))
