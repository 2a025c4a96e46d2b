"""One fault is one finding, whoever sees it; each check keeps its own outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import journals
import pytest
from cases import each
from msgspec.structs import replace

from acceptance.core.event_finding import OwnedEvent, event_findings
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Quantity
from acceptance.core.parts import GPUS, MEMORY, SYSTEM, Component, Function, Gpu, Named, Pair, Part
from acceptance.core.plan import Due
from acceptance.core.record import Body, CheckStarted, Event, Measured
from acceptance.core.verdict import Verdict
from acceptance.journal.duplicates import mark
from acceptance.reports.explanation import note_lines
from acceptance.wording import words

BEFORE, BURN, AFTER, LOG = "gpu.health", "together.burn", "watch.health", "kernel_log.during_run"
GPU, FUNCTION = Function("0000:01:00.0"), Function("0000:61:00.0")
SHARE = Limit("ratio", "a basis", low=1.0)
NET = Part("net", "ens7")
DISK = Part("disk", "nvme7n1")
DIMM_A, DIMM_B = Part("dimm", "A1"), Part("dimm", "B1")


def count(measurement: str, component: Component = Gpu(0)) -> Due:
    return journals.due(measurement, component, "count", journals.NONE_ALLOWED)


PLAN = journals.plan(
    journals.check(BEFORE, count("gpu_repair_pending"), session="host-before"),
    journals.check(
        BURN,
        count("layer_miscompares"),
        count("layer_miscompares", Gpu(1)),
        count("collective_miscompares"),
        count("collective_miscompares_p2p_off"),
        count("collective_send_receive_miscompares", Pair(Gpu(0), Gpu(1))),
        count("parallel_miscompares", GPUS),
        count("parallel_disagreements", GPUS),
        count("power_step_miscompares"),
        count("digest_repeats_differ"),
        count("step_miscompares"),
        count("gpu_repair_pending"),
        count("storage_failed", DISK),
    ),
    journals.check(
        AFTER,
        count("gpu_repair_pending"),
        count("gpu_hw_slowdown"),
        count("gpu_hw_thermal_slowdown"),
        count("gpu_power_brake"),
        count("network_port_lost", NET),
        journals.due("network_rate_share", NET, "ratio", SHARE),
        session="host-after",
    ),
    journals.check(LOG, count("kernel_faults_during", SYSTEM), session="host-after"),
    journals.check(
        "watch.counters",
        count("gpu_ecc_uncorrected_new", Gpu(3)),
        count("gpu_remapped_new", Gpu(3)),
        session="host-after",
    ),
    journals.check(
        "inventory.memory",
        journals.due("dimm_count", MEMORY, "count", Limit("count", "a basis", low=4.0, high=4.0)),
        session="host-before",
    ),
    journals.check(
        "inventory.dimms",
        *(
            journals.due("dimm_present", dimm, "count", Limit("count", "a basis", low=1.0))
            for dimm in (DIMM_A, DIMM_B)
        ),
        session="host-before",
    ),
    journals.check(
        "memory.errors", count("memory_errors_uncorrected", MEMORY), session="host-after"
    ),
    journals.check(
        "storage.mounts",
        count("filesystems_read_only", SYSTEM),
        count("raid_faults", SYSTEM),
        session="host-after",
    ),
)


def run(values: Mapping[tuple[str, Component], float], during: Sequence[Event] = ()) -> Verdict:
    """A run with these values, and these events in the burn."""
    found: list[Body] = []
    for body in journals.bodies(PLAN, values):
        found += [body, *during] if body == CheckStarted(BURN) else [body]
    return judged(found)


def judged(records: Sequence[Body]) -> Verdict:
    events = [one for one in records if isinstance(one, Event)]
    return mark(fold(journals.entries(records)), events, {FUNCTION: Gpu(3)})


def failures(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(one.check, one.measurement) for one in verdict.of_kind("fail")]


def red(verdict: Verdict) -> list[str]:
    return [check.id for check in verdict.checks if check.outcome == "fail"]


def wrong(component: Component, *counts: str, code: str = "x") -> Event:
    meaning = Message("wrong_result", {"component": str(component), "where": "check all"})
    return Event(
        "miscompare", "fatal", "{}", meaning, "a", code, component, source="load", counts=counts
    )


def xid(code: int = 79, text: str = "NVRM: Xid", **more: object) -> Event:
    return replace(Event("xid", "fatal", text, "It fell off", "a", code, GPU), **more)


@each(
    "measurement, component, event",
    [
        ("layer_miscompares", Gpu(0), wrong(Gpu(0), "layer_miscompares", code="bf16")),
        ("step_miscompares", Gpu(0), wrong(Gpu(0), "step_miscompares")),
        ("digest_repeats_differ", Gpu(0), wrong(Gpu(0), "digest_repeats_differ")),
        ("power_step_miscompares", Gpu(0), wrong(Gpu(0), "a", "power_step_miscompares")),
        ("collective_miscompares", Gpu(0), wrong(Gpu(0), "collective_miscompares")),
        (
            "collective_send_receive_miscompares",
            Pair(Gpu(0), Gpu(1)),
            wrong(Pair(Gpu(0), Gpu(1)), "collective_send_receive_miscompares"),
        ),
        ("parallel_miscompares", GPUS, wrong(Gpu(1), "parallel_miscompares")),
        ("parallel_miscompares", GPUS, wrong(GPUS, "parallel_miscompares")),
    ],
)
def test_a_wrong_result_and_its_count_are_one_failure_with_the_first_place_and_time(
    measurement: str, component: Component, event: Event
) -> None:
    late = replace(event, meaning="a later one")
    verdict = run({(measurement, component): 3.0}, [event, late])
    assert failures(verdict) == [(BURN, measurement)]
    assert red(verdict) == [BURN]
    (finding,) = verdict.of_kind("fail")
    first = finding.values["first"]
    assert isinstance(first, Message)
    assert first.values == {"after": Quantity(1.0, "s"), "meaning": event.meaning}
    *_, told = note_lines(finding)
    assert "1 s after" in told
    assert told.endswith(words.text(event.meaning))
    own = next(check for check in verdict.checks if check.id == BURN)
    assert own.events == (event, late)


@each(
    "values, event",
    [
        ({}, wrong(Gpu(0), "layer_miscompares")),  # the load counted none
        ({("layer_miscompares", Gpu(1)): 1.0}, wrong(Gpu(0), "layer_miscompares")),
        (
            {("collective_miscompares_p2p_off", Gpu(0)): 1.0},
            wrong(Gpu(0), "collective_miscompares"),
        ),
        ({("layer_miscompares", Gpu(0)): 1.0}, wrong(Gpu(0), code="result")),
        (
            {("layer_miscompares", Gpu(0)): 1.0},
            replace(wrong(Gpu(0), "layer_miscompares"), source="kernel-log"),
        ),
    ],
)
def test_a_wrong_result_that_no_failed_count_has_is_a_failure_of_its_own(
    values: Mapping[tuple[str, Component], float], event: Event
) -> None:
    verdict = run(values, [event])
    assert failures(verdict) == [*((BURN, name) for name, _ in values), (BURN, None)]
    assert "first" not in verdict.of_kind("fail")[0].values


def test_an_xid_of_the_watch_is_not_counted_again_by_the_check_of_the_log() -> None:
    verdict = run({("kernel_faults_during", SYSTEM): 1.0}, [xid()])
    assert failures(verdict) == [(BURN, None)]
    assert red(verdict) == [BURN, LOG]
    (first,) = verdict.of_kind("fail")
    (again,) = next(check.findings for check in verdict.checks if check.id == LOG)
    assert (first.also_in, first.duplicate_of) == ((LOG,), None)
    assert (again.also_in, again.duplicate_of) == ((), BURN)
    assert LOG in words.of(first)
    assert BURN in words.of(again)
    assert verdict.duplicates() == (again,)
    assert words.values(again)["counted_in"] == BURN


@each(
    "counted, events",
    [
        (2.0, [xid()]),  # the watch missed one
        (1.0, []),
        (1.0, [xid(severity="warning")]),
        (1.0, [xid(hardware=False)]),
        (1.0, [xid(source="nvml")]),
    ],
)
def test_what_the_watch_did_not_see_as_a_fault_is_one_of_the_log(
    counted: float, events: Sequence[Event]
) -> None:
    verdict = run({("kernel_faults_during", SYSTEM): counted}, events)
    assert (LOG, "kernel_faults_during") in failures(verdict)
    assert LOG in red(verdict)


def test_an_event_of_two_checks_side_by_side_is_counted_at_the_first() -> None:
    sound = run({})
    first, second, *others = sound.checks
    event = Event("oom", "fatal", "text", "it broke", "a", 7)
    beside = (first.id, second.id)
    both = [
        replace(
            one,
            outcome="fail",
            findings=tuple(event_findings([OwnedEvent(event, beside)], one.id)),
        )
        for one in (first, second)
    ]
    verdict = mark(replace(sound, checks=(*both, *others)), [event], {})
    (finding,) = verdict.of_kind("fail")
    assert (finding.check, finding.also_in) == (first.id, (second.id,))
    assert red(verdict) == [first.id, second.id]
    assert words.of(finding).count(second.id) == 1
    (again,) = verdict.checks[1].findings
    assert again.duplicate_of == first.id


def test_lines_that_come_again_are_one_finding_with_their_number() -> None:
    lines = [xid(63, f"NVRM: Xid 63 row {row}") for row in range(3)]
    verdict = run({("kernel_faults_during", SYSTEM): 4.0}, [*lines, xid()])
    assert failures(verdict) == [(BURN, None), (BURN, None)]
    first, other = verdict.of_kind("fail")
    assert (first.values["times"], first.quote) == (3, "NVRM: Xid 63 row 0")
    assert "times" not in other.values
    assert "3 times" in words.of(first)


def test_messages_that_nobody_knows_are_one_only_where_they_say_the_same() -> None:
    said = ["a fault", "another", "a fault"]
    events = [OwnedEvent(Event("unknown", "warning", text, "m", "", None, GPU)) for text in said]
    found = event_findings(events, BURN)
    assert [(one.quote, one.values.get("times")) for one in found] == [
        ("a fault", 2),
        ("another", None),
    ]


def test_a_value_that_is_still_out_of_its_limit_after_the_load_is_one_failure() -> None:
    verdict = run({("gpu_repair_pending", Gpu(0)): 1.0})
    assert failures(verdict) == [(BEFORE, "gpu_repair_pending"), (BURN, "gpu_repair_pending")]
    assert red(verdict) == [BEFORE, BURN, AFTER]
    (first, _) = verdict.of_kind("fail")
    assert first.also_in == (AFTER,)


@each("other", [{"value": 2.0}, {"note": "another row"}])
def test_a_value_that_is_another_after_the_load_is_a_failure_of_its_own(
    other: dict[str, Any],
) -> None:
    records = [
        replace(one, **other)
        if isinstance(one, Measured) and (one.check, one.value) == (AFTER, 1.0)
        else one
        for one in journals.bodies(PLAN, {("gpu_repair_pending", Gpu(0)): 1.0})
    ]
    assert failures(judged(records))[-1] == (AFTER, "gpu_repair_pending")


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({("network_port_lost", NET): 1.0, ("network_rate_share", NET): 0.0}, "network_port_lost"),
        ({("network_rate_share", NET): 0.5}, "network_rate_share"),
        (
            {("gpu_hw_slowdown", Gpu(0)): 3.0, ("gpu_hw_thermal_slowdown", Gpu(0)): 3.0},
            "gpu_hw_thermal_slowdown",
        ),
        (
            {
                ("gpu_hw_slowdown", Gpu(0)): 5.0,
                ("gpu_hw_thermal_slowdown", Gpu(0)): 3.0,
                ("gpu_power_brake", Gpu(0)): 2.0,
            },
            "gpu_hw_thermal_slowdown gpu_power_brake",
        ),
        (
            {("gpu_hw_slowdown", Gpu(0)): 4.0, ("gpu_hw_thermal_slowdown", Gpu(0)): 3.0},
            "gpu_hw_slowdown gpu_hw_thermal_slowdown",
        ),
        ({("gpu_hw_slowdown", Gpu(0)): 4.0}, "gpu_hw_slowdown"),
    ],
)
def test_what_follows_from_another_failure_of_the_same_part_is_not_counted(
    values: Mapping[tuple[str, Component], float], left: str
) -> None:
    verdict = run(values)
    assert [name for _, name in failures(verdict)] == left.split()
    assert red(verdict) == [AFTER]
    found = next(check.findings for check in verdict.checks if check.id == AFTER)
    assert len(found) == len(values)
    assert all(one.also_in == () for one in found)  # of the same check, which is named already
    for again in verdict.duplicates():
        assert again.duplicate_of == AFTER
        assert AFTER not in words.of(again), "nobody looks for it in this very check"
    (counted, *_) = verdict.of_kind("fail")
    too = counted.values.get("too", ())
    assert len(too) == len(values) - len(left.split())
    assert all(one.code == "measured_too" for one in too if isinstance(one, Message))


def kernel(kind: str, code: str | None, part: str) -> Event:
    return Event(kind, "fatal", f"{part}: {kind} {code}", "m", "a", code, Named(part))


@each(
    "measurement, component, by, event, same",
    [
        ("memory_errors_uncorrected", MEMORY, "memory.errors", kernel("edac", None, "mc0"), True),
        ("memory_errors_uncorrected", MEMORY, "memory.errors", kernel("mce", None, "cpu3"), False),
        ("raid_faults", SYSTEM, "storage.mounts", kernel("disk", "raid", "md0"), True),
        ("raid_faults", SYSTEM, "storage.mounts", kernel("disk", "io", "sda"), False),
        (
            "filesystems_read_only",
            SYSTEM,
            "storage.mounts",
            kernel("disk", "read-only", "sda1"),
            True,
        ),
        ("storage_failed", DISK, BURN, kernel("disk", "io", "nvme7n1"), True),
        ("storage_failed", DISK, BURN, kernel("disk", "controller", "nvme7"), True),
        ("storage_failed", DISK, BURN, kernel("disk", "io", "nvme8n1"), False),
        ("storage_failed", DISK, BURN, kernel("pcie", "inaccessible", "nvme7"), False),
        ("storage_failed", DISK, BURN, replace(xid(), component=None), False),
    ],
)
def test_what_the_kernel_says_and_a_check_measures_is_one_fault_with_both(
    measurement: str, component: Component, by: str, event: Event, same: bool
) -> None:
    verdict = run({(measurement, component): 1.0}, [event])
    assert len(failures(verdict)) == (1 if same else 2)
    assert by in red(verdict)
    if same:
        (finding,) = verdict.of_kind("fail")
        assert finding.quote == event.text
        assert measurement in words.of(finding)
        assert finding.also_in == (() if by == BURN else (by,))


@each(
    "measurement, code, function, counted, same",
    [
        ("gpu_ecc_uncorrected_new", 48, FUNCTION, 1.0, True),
        ("gpu_ecc_uncorrected_new", 94, FUNCTION, 1.0, True),
        ("gpu_ecc_uncorrected_new", 48, GPU, 1.0, False),  # of another GPU
        ("gpu_ecc_uncorrected_new", 48, None, 1.0, False),
        ("gpu_ecc_uncorrected_new", 48, FUNCTION, 2.0, False),
        ("gpu_ecc_uncorrected_new", 79, FUNCTION, 1.0, False),
        ("gpu_remapped_new", 64, FUNCTION, 1.0, True),
    ],
)
def test_an_error_of_gpu_memory_is_one_fault_by_its_xid_and_its_counter(
    measurement: str, code: int, function: Function | None, counted: float, same: bool
) -> None:
    event = replace(xid(code), component=function)
    verdict = run({(measurement, Gpu(3)): counted}, [event])
    assert len(failures(verdict)) == (1 if same else 2)
    assert red(verdict) == [BURN, "watch.counters"]


def test_more_errors_than_the_kernel_told_of_are_a_fault_of_their_own() -> None:
    events = [kernel("edac", None, "mc0")]
    verdict = run({("memory_errors_uncorrected", MEMORY): 2.0}, events)
    assert len(failures(verdict)) == 2


@each(
    "count, missing, left",
    [
        (3.0, [DIMM_A], ["dimm_present"]),
        (2.0, [DIMM_A, DIMM_B], ["dimm_present", "dimm_present"]),
        (2.0, [DIMM_A], ["dimm_count", "dimm_present"]),  # one more, of which nobody says where
        (3.0, [], ["dimm_count"]),
        (5.0, [DIMM_A], ["dimm_count", "dimm_present"]),  # more than are declared
    ],
)
def test_a_number_of_parts_says_no_more_than_the_missing_ones(
    count: float, missing: Sequence[Part], left: Sequence[str]
) -> None:
    verdict = run(
        {("dimm_count", MEMORY): count, **{("dimm_present", one): 0.0 for one in missing}}
    )
    assert [name for _, name in failures(verdict)] == left
    assert "inventory.memory" in red(verdict)
