"""The textfile, read back by Prometheus' own client library."""

from __future__ import annotations

import hostile
import journals
import machine_facts
import msgspec
import pytest
import samples
from hypothesis import given, settings
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from runs import judged
from thoroughness import examples

from acceptance.core.evidence import Observed
from acceptance.core.machine_facts import MachineFacts
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


MIXED = read(samples.mixed())


@pytest.mark.parametrize(
    ("run", "word"),
    [(samples.passing(), "PASS"), (samples.mixed(), "FAIL")],
    ids=["passing", "mixed"],
)
def test_the_verdict_is_one_of_three(run: Run, word: str) -> None:
    told = values(read(run)["rigproof_run_verdict"], "verdict")
    assert told == {(one,): float(one == word) for one in ("PASS", "FAIL", "UNJUDGED")}


def test_a_run_that_never_came_about_is_unjudged_and_says_nothing_else() -> None:
    found = parsed(textfile.no_run_metrics())
    assert list(found) == ["rigproof_run_verdict"]
    assert values(found["rigproof_run_verdict"], "verdict")["UNJUDGED",] == 1.0


def test_every_measurement_has_its_outcome_and_what_was_measured_its_value() -> None:
    labels = ("check", "measurement", "component", "unit", "serial")
    measured = values(MIXED["rigproof_measurement_value"], *labels)
    assert measured["memory.bandwidth", "bandwidth", "memory", "GB/s", "SN1"] == 11.0
    assert measured["gpu.present", "gpu_count", "machine", "count", None] == 0.0
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
    assert not any(key[1] in ("disk_faults", "failures", "late") for key in measured), (
        "not measured is absent, not 0"
    )


def test_limits_are_told_where_there_are_some() -> None:
    low = values(MIXED["rigproof_measurement_limit_low"], "measurement")
    high = values(MIXED["rigproof_measurement_limit_high"], "measurement")
    assert (low["bandwidth",], low["gpu_count",], high["gpu_count",], high["disk_faults",]) == (
        10.0,
        1.0,
        1.0,
        0.0,
    )
    assert ("gemm",) not in {**low, **high}
    assert ("bandwidth",) not in high


def test_a_passing_measurement_passes() -> None:
    assert set(values(read(samples.passing())["rigproof_measurement_outcome"], "outcome")) == {
        ("pass",)
    }


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


def test_times() -> None:
    found = samples.passing()
    told = read(found)
    assert (
        told["rigproof_run_started_timestamp_seconds"].samples[0].value == 1767225600.0
    )  # 2026-01-01 00:00 UTC
    assert told["rigproof_run_ended_timestamp_seconds"].samples[0].value == 1767225600.0
    # One second of the boot-time clock from record to record, though the time of day stood still.
    assert told["rigproof_run_duration_seconds"].samples[0].value == len(found.entries) - 1


def test_what_is_not_known_of_a_time_is_absent() -> None:
    bodies = journals.bodies(journals.plan())
    cut = samples.run([body for body in bodies if not isinstance(body, RunEnded)])
    told = read(cut)
    assert "rigproof_run_started_timestamp_seconds" in told
    assert not {"rigproof_run_ended_timestamp_seconds", "rigproof_run_duration_seconds"} & set(told)
    entries = [
        msgspec.structs.replace(entry, utc="yesterday") for entry in journals.entries(bodies)
    ]
    assert "rigproof_run_started_timestamp_seconds" not in read(judged(entries))


def test_a_run_over_a_restart_has_no_length() -> None:
    *before, last = journals.entries(journals.bodies(journals.plan()))
    odd = judged([*before, msgspec.structs.replace(last, boot=1, boot_s=3.0)])
    assert "rigproof_run_duration_seconds" not in read(odd)


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
    made = msgspec.structs.replace(
        journals.plan(), baseline=machine_facts.ruled(machine_facts.born(machine_facts.machine()))
    )
    start, *rest = journals.bodies(made)
    found = samples.run([start, Observed(after), *rest])
    told = read(found)
    assert values(told["rigproof_machine_changes"], "what", "component", "outcome") == {
        ("missing", "gpu1", "fail"): 1.0,
        ("software", None, "warn"): 2.0,
        ("firmware", None, "warn"): 1.0,
        ("firmware", "gpu0", "warn"): 1.0,
    }
    assert "rigproof_machine_changes" not in MIXED


def test_of_what_nothing_is_remembered_nothing_is_told() -> None:
    assert not {
        name
        for name in MIXED
        if name.endswith(("_outside", "_unsteady", "_drift", "_usual", "_baseline"))
    }
    assert "rigproof_baseline_timestamp_seconds" not in MIXED


def test_when_the_machine_was_accepted() -> None:
    birth = MachineFacts("run-0", "2025-12-01T00:00:00.000Z", (), {}, (), ())
    made = msgspec.structs.replace(journals.plan(), baseline=birth)
    found = samples.run(journals.bodies(made))
    (sample,) = read(found)["rigproof_baseline_timestamp_seconds"].samples
    assert sample.value == 1764547200.0


# --- the nights ---


def night(*bodies: Body) -> dict[str, float]:
    made = journals.plan()
    found = samples.run([RunStarted("run-1", made, {}, "machine-1"), *bodies])
    return {
        name: metric.samples[0].value
        for name, metric in parsed(textfile.night_metrics(found)).items()
    }


def test_a_night_that_was_skipped() -> None:
    assert night(
        Postponed(("gpu0 is in use",), 2, 7), RunEnded(False, "the machine is in use")
    ) == {
        "rigproof_night_started_timestamp_seconds": 1767225600.0,
        "rigproof_nights_skipped": 2.0,
        "rigproof_nights_skipped_most": 7.0,
    }


def test_a_night_that_was_not() -> None:
    assert night(*journals.bodies(journals.plan())[1:]) == {
        "rigproof_night_started_timestamp_seconds": 1767225600.0,
        "rigproof_nights_skipped": 0.0,
    }


def test_names_follow_the_rules() -> None:
    for name, metric in MIXED.items():
        assert name.startswith("rigproof_")
        assert not name.endswith("_total"), "nothing here only grows"
        assert metric.type == "gauge"
        assert metric.documentation.endswith(".")


@pytest.mark.parametrize(
    "name",
    [
        'back\\slash "quote"',
        "two\nlines",
        "a\x1b[31mred",
        "\u202eturned",
        "\ud800",
        "中文",
        "\\n",
        "x" * 5000,
    ],
)
def test_names_from_outside_are_labels_and_nothing_else(name: str) -> None:
    told = read(samples.hostile(name))
    plain = read(samples.hostile("plain"))
    assert {key: len(metric.samples) for key, metric in told.items()} == {
        key: len(metric.samples) for key, metric in plain.items()
    }
    for metric in told.values():
        for sample in metric.samples:
            assert not any(
                hostile.HARMFUL.search(value) or len(value) > 300
                for value in sample.labels.values()
            )


@settings(max_examples=examples(20))
@given(text=hostile.texts)
def test_whatever_a_journal_holds_the_collector_reads(text: str) -> None:
    found = samples.run(hostile.attack(text))
    told = read(found)
    for metric in told.values():
        seen = [tuple(sorted(sample.labels.items())) for sample in metric.samples]
        assert len(set(seen)) == len(seen), (
            "two samples with the same labels are refused with the whole file"
        )


def test_letters_of_any_language_and_marks_come_back_as_they_are() -> None:
    told = read(
        samples.passing(journals.check("link.copy", journals.due("copy", 'a "b" \\ \\n 中')))
    )
    (sample,) = told["rigproof_measurement_value"].samples
    assert sample.labels["component"] == 'a "b" \\ \\n 中'
