"""The textfile, read back by Prometheus' own client library."""

from __future__ import annotations

import hostile
import journals
import machine_facts
import msgspec
import pytest
import samples
from cases import each
from hypothesis import example, given, settings
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from runs import judged
from thoroughness import examples

from acceptance.core.evidence import Observed
from acceptance.core.parts import Gpu
from acceptance.core.past import Bounds, FirstNights, Level, NoiseGrowth, Past
from acceptance.core.record import Body, Postponed, RunEnded, RunStarted
from acceptance.journal.run import Run
from acceptance.notify import textfile


def parsed(content: bytes) -> dict[str, Metric]:
    found = list(text_string_to_metric_families(content.decode("utf-8")))
    assert len({one.name for one in found}) == len(found), "a metric that comes twice is refused"
    return {one.name: one for one in found}


def read(run: Run) -> dict[str, Metric]:
    return parsed(textfile.run_metrics(run))


def values(metric: Metric, *labels: str) -> dict[tuple[str | None, ...], float]:
    return {
        tuple(sample.labels.get(label) for label in labels): sample.value
        for sample in metric.samples
    }


PASSING, MIXED = read(samples.passing()), read(samples.mixed())


@each(
    "found, word",
    [
        (PASSING, "PASS"),
        (MIXED, "FAIL"),
        (parsed(textfile.no_run_metrics()), "UNJUDGED"),
    ],
)
def test_the_verdict_is_one_of_three(found: dict[str, Metric], word: str) -> None:
    told = values(found["rigproof_run_verdict"], "verdict")
    assert told == {(one,): float(one == word) for one in ("PASS", "FAIL", "UNJUDGED")}
    assert len(found) > 1 or word == "UNJUDGED", "no run says nothing else"
    for name, metric in found.items():
        assert name.startswith("rigproof_")
        assert not name.endswith("_total"), "nothing here only grows"
        assert (metric.type, metric.documentation[-1]) == ("gauge", ".")


def test_every_measurement_has_its_outcome_and_what_was_measured_its_value() -> None:
    labels = ("check", "measurement", "component", "unit", "serial")
    measured = values(MIXED["rigproof_measurement_value"], *labels)
    assert measured["memory.bandwidth", "bandwidth", "memory", "GB/s", "SN1"] == 11.0
    assert measured["gpu.present", "gpu_count", "machine", "count", None] == 0.0
    assert not {key[1] for key in measured} & {"disk_faults", "failures", "late"}, "absent, not 0"
    outcomes = values(MIXED["rigproof_measurement_outcome"], "measurement", "component", "outcome")
    assert set(outcomes) == {
        ("gpu_count", "machine", "fail"),
        ("disk_faults", "disk:vda", "waived"),
        ("bandwidth", "memory", "warn"),
        ("gemm", "core:0", "recorded"),
        ("gemm", "core:1", "recorded"),
        ("gemm", "core:2", "recorded"),
        ("failures", "cpu", "error"),
        ("late", "cpu", "error"),
        ("kernel_faults", "system", "error"),
    }
    assert set(values(PASSING["rigproof_measurement_outcome"], "outcome")) == {("pass",)}
    low, high = (
        {one: value for (one,), value in values(MIXED[name], "measurement").items()}
        for name in ("rigproof_measurement_limit_low", "rigproof_measurement_limit_high")
    )
    assert low == {"bandwidth": 10.0, "gpu_count": 1.0}
    assert high.items() >= {"gpu_count": 1.0, "disk_faults": 0.0}.items()
    assert not {"gemm", "bandwidth"} & set(high)
    absent = ("_outside", "_unsteady", "_drift", "_usual", "_baseline", "_changes")
    assert not [name for name in MIXED if name.endswith(absent)], "nothing is remembered"
    name = 'a "b" \\ \\n \u4e2d'
    told = read(samples.passing(journals.check("link.copy", journals.due("copy", name))))
    (sample,) = told["rigproof_measurement_value"].samples
    assert sample.labels["component"] == name


def test_counts_and_checks() -> None:
    verdict = samples.mixed().verdict
    for kind, kinds in {
        "violations": ["fail"],
        "unjudged": ["error", "skip"],
        "warnings": ["warn"],
    }.items():
        (sample,) = MIXED[f"rigproof_run_{kind}"].samples
        assert sample.value == len(verdict.of_kind(*kinds)) > 0
    assert set(values(MIXED["rigproof_check_outcome"], "check", "outcome")) == {
        (check.id, check.outcome) for check in verdict.checks
    }
    (about,) = MIXED["rigproof_run_info"].samples
    assert about.labels == {
        "run_id": "run-1",
        "profile": "smoke",
        "scope": "full",
        "version": "0.1.0",
    }


BODIES = journals.bodies(journals.plan())
RECORDS = journals.entries(BODIES)
AT_NEW_YEAR = 1767225600.0  # 2026-01-01 00:00 UTC
STARTED, ENDED, DURATION = (
    f"rigproof_run_{name}"
    for name in ("started_timestamp_seconds", "ended_timestamp_seconds", "duration_seconds")
)
OVER = msgspec.structs.replace(RECORDS[-1], boot=1, boot_s=3.0)
ODD = [msgspec.structs.replace(entry, utc="yesterday") for entry in RECORDS]


@each(
    "run, times",
    [
        # A second of the boot-time clock a record, though the time of day stood still.
        (
            samples.passing(),
            {STARTED: AT_NEW_YEAR, ENDED: AT_NEW_YEAR, DURATION: len(RECORDS) - 1},
        ),
        (
            samples.run([body for body in BODIES if not isinstance(body, RunEnded)]),
            {STARTED: AT_NEW_YEAR},
        ),
        (judged(ODD), {DURATION: len(RECORDS) - 1}),
        (judged([*RECORDS[:-1], OVER]), {STARTED: AT_NEW_YEAR, ENDED: AT_NEW_YEAR}),
    ],
    told=["times", "without an end", "of no moment", "over a restart"],
)
def test_what_is_not_known_of_a_time_is_absent(run: Run, times: dict[str, float]) -> None:
    told = read(run)
    assert {
        name: told[name].samples[0].value for name in (STARTED, ENDED, DURATION) if name in told
    } == times


# --- what was before ---

PAST = Past(
    decides=True,
    off_fails=3,
    off_of=10,
    level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
    first=FirstNights(152.0, 10, 20000.0, Bounds(low=140.0), baseline=True),
)


def remembered(value: float, past: Past = PAST) -> dict[str, Metric]:
    """A run in which one of two measurements has a past."""
    made = journals.plan(
        journals.check(
            "link.copy",
            journals.due().against(past),
            journals.due("copy", "gpu1"),
        )
    )
    found = samples.run(journals.bodies(made, {("copy", Gpu(0)): value}))
    return read(found)


@pytest.mark.parametrize(("value", "outside"), [(150.0, 0.0), (130.0, 1.0)])
def test_what_a_measurement_was_before(value: float, outside: float) -> None:
    told = remembered(value)
    assert values(told["rigproof_measurement_outside"], "measurement", "component") == {
        ("copy", "gpu0"): outside
    }
    assert values(told["rigproof_measurement_unsteady"], "component") == {("gpu0",): 0.0}
    assert values(told["rigproof_measurement_usual"], "component", "unit") == {
        ("gpu0", "GB/s"): 150.0
    }
    assert values(told["rigproof_measurement_baseline"], "component") == {("gpu0",): 152.0}
    assert values(told["rigproof_measurement_outcome"], "component", "outcome") == {
        ("gpu0", "warn" if outside else "pass"): 1.0,
        ("gpu1", "pass"): 1.0,
    }


@pytest.mark.parametrize(
    ("past", "value", "what"),
    [
        (PAST, 150.0, set()),
        (PAST, 130.0, {("copy", "gpu0", "step")}),
        (msgspec.structs.replace(PAST, decides=False), 130.0, {("copy", "gpu0", "changed")}),
        (
            msgspec.structs.replace(PAST, grown=NoiseGrowth(1.0, 4.0, 28)),
            130.0,
            {("copy", "gpu0", "step"), ("copy", "gpu0", "noise")},
        ),
    ],
    ids=["as ever", "worse", "another", "two ways"],
)
def test_in_which_way_a_measurement_strayed(
    past: Past, value: float, what: set[tuple[str, str, str]]
) -> None:
    told = remembered(value, past)
    if not what:
        assert "rigproof_measurement_drift" not in told
        return
    assert values(
        told["rigproof_measurement_drift"], "measurement", "component", "what"
    ) == dict.fromkeys(what, 1.0)


def test_what_changed_of_the_machine_is_counted_by_component() -> None:
    after = machine_facts.machine(1)  # a GPU is gone; kernel, driver, BIOS and VBIOS are others
    after["board"] |= {
        "kernel": "6.13",
        "nvidia_driver": "590.1",
        "bios_version": "2",
        "os": "Debian 14",
    }
    after["nvml"]["devices"][0]["vbios"] = "97.00"
    birth = machine_facts.ruled(machine_facts.born(machine_facts.machine()))
    start, *rest = journals.bodies(msgspec.structs.replace(journals.plan(), baseline=birth))
    told = read(samples.run([start, Observed(after), *rest]))
    assert values(told["rigproof_machine_changes"], "what", "component", "outcome") == {
        ("missing", "gpu1", "fail"): 1.0,
        ("software", None, "warn"): 2.0,
        ("firmware", None, "warn"): 1.0,
        ("firmware", "gpu0", "warn"): 1.0,
    }
    (sample,) = told["rigproof_baseline_timestamp_seconds"].samples
    assert sample.value == AT_NEW_YEAR


# --- the nights ---


@each(
    "bodies, skipped",
    [
        (
            [Postponed(("gpu0 is in use",), 2, 7), RunEnded(False, "the machine is in use")],
            {"rigproof_nights_skipped": 2.0, "rigproof_nights_skipped_most": 7.0},
        ),
        (BODIES[1:], {"rigproof_nights_skipped": 0.0}),
    ],
    told=["skipped", "not skipped"],
)
def test_a_night(bodies: list[Body], skipped: dict[str, float]) -> None:
    run = samples.run([RunStarted("run-1", journals.plan(), {}, "machine-1"), *bodies])
    found = parsed(textfile.night_metrics(run))
    assert {name: metric.samples[0].value for name, metric in found.items()} == {
        "rigproof_night_started_timestamp_seconds": AT_NEW_YEAR,
        **skipped,
    }


@settings(max_examples=examples(20))
@example("x" * 5000)
@given(text=hostile.texts)
def test_whatever_a_journal_holds_the_collector_reads_as_labels_and_nothing_else(
    text: str,
) -> None:
    told = read(samples.run(hostile.attack(text)))
    for metric in told.values():
        labels = [tuple(sorted(sample.labels.items())) for sample in metric.samples]
        assert len(set(labels)) == len(labels), "two alike are refused with the whole file"
        told_of = [value for sample in metric.samples for value in sample.labels.values()]
        assert not [one for one in told_of if hostile.HARMFUL.search(one) or len(one) > 300]
