"""A run's journal as one night: what is a measure for others, what each value belongs to, and
what it was measured with.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import journals
import machine_facts
import msgspec
import pytest
from cases import each
from nights import values
from runs import RECORDED, judged, recorded
from thoroughness import ALL

from acceptance.baseline import facts as baseline_facts
from acceptance.core import repeat
from acceptance.core.evidence import Observed
from acceptance.core.finding import Plausible, Waiver
from acceptance.core.limit import Limit
from acceptance.core.machine_facts import KnownChange
from acceptance.core.message import Message
from acceptance.core.parts import CPU, GPUS, ITSELF, Component, Gpu, Pair, Part
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import REPEAT_SESSION, Plan, Reduction
from acceptance.core.record import (
    Body,
    Entry,
    ForeignProcess,
    Postponed,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.history import night
from acceptance.history.night import Era, Night, ReportedChanges, SeriesKey
from acceptance.journal.run import UnreadableRun
from acceptance.journal.seal import Seal
from acceptance.machine.observation import NOTHING, decode

PAIR = journals.check(
    "link.p2p", journals.due("p2p_write", Pair(Gpu(0), Gpu(1))), journals.due("all", GPUS)
)
GPU = {"is_display": True, "address": "0000:01:00.0"}
INVENTORY: dict[str, Any] = {
    "board": {"nvidia_driver": "580.1"},
    "pci": [GPU, {**GPU, "address": "0000:02:00.0"}],
    "nvml": {
        "devices": [
            {"pci_address": "0000:01:00.0", "uuid": "GPU-a"},
            {"pci_address": "0000:02:00.0", "uuid": "GPU-b"},
        ]
    },
}
SEEN = decode(INVENTORY)


def entries(plan: Plan | None = None, *more: Body, values: Any = None, **told: str) -> list[Entry]:
    """A passing run with an inventory, and more records before its end."""
    first, *rest, last = journals.bodies(plan or journals.plan(), values)
    assert isinstance(first, RunStarted)
    start = RunStarted(first.run_id, first.plan, {"station": "host", **told}, first.machine_id)
    return journals.entries([start, Observed(INVENTORY), *rest, *more, last])


def night_of(records: Iterable[Entry]) -> Night:
    return night.night_of(judged(records))


def test_a_run_is_a_night() -> None:
    made = night_of(entries())
    assert (made.run_id, made.machine_id, made.verdict, made.scope, made.profile) == (
        "run-1",
        "machine-1",
        "PASS",
        "full",
        "smoke",
    )
    assert (made.apart, made.postponed, made.virtual) == (None, False, False)
    assert made.utc == "2026-01-01T00:00:00.000Z"
    assert made.day == 20454.0
    assert values(made) == {
        SeriesKey("link.copy", "copy", Gpu(0), "GB/s", "GPU-a"): night.NightMeasurement(110.0)
    }


A1, B1, C1 = (Part("dimm", name) for name in ("A1", "B1", "C1"))
SAME = {Gpu(0): "same", Gpu(1): "same", Gpu(2): "GPU-c"}


@each(
    "part, told, gpus, identity",
    [
        (Pair(Gpu(0), Gpu(7)), {Gpu(0): "GPU-a"}, (), None),
        (GPUS, {}, (), None),
        (CPU, {Gpu(0): "GPU-a"}, (Gpu(0),), None),
        (C1, {A1: "00000000", B1: "00000000", C1: "7A31"}, (), "7A31"),
        (A1, {A1: "00000000", B1: "00000000", C1: "7A31"}, (), None),
        (Pair(Gpu(0), Gpu(1)), SAME, (), None),
        (GPUS, SAME, (Gpu(0), Gpu(1)), None),
        # Its neighbour may tell the same on the next night.
        (A1, {A1: "00000000"}, (), None),
    ],
)
def test_what_no_part_or_several_tell_is_nobodys_identity(
    part: Component, told: dict[Component, str], gpus: tuple[Gpu, ...], identity: str | None
) -> None:
    assert night.part_identity(part, told, gpus) == identity


def test_the_line_is_known_before_anything_is_measured() -> None:
    """A path is of both its ends, and all GPUs are each."""
    plan = msgspec.structs.replace(journals.plan(PAIR), gpus=(Gpu(1), Gpu(0)))
    made = night_of(entries(plan))
    assert [one.serial for one in made.series] == ["GPU-a->GPU-b", "GPU-a+GPU-b"]
    assert list(made.series) == [
        night.series_key(check.id, due, {Gpu(0): "GPU-a", Gpu(1): "GPU-b"}, plan.gpus)
        for check in plan.checks
        for due in check.due
    ]


WAIVED = Waiver("known", measurement="copy", component="gpu0", worst=40.0)


@each(
    "plan, value, verdict, failed",
    [
        (None, 50.0, "FAIL", True),
        (journals.plan(waivers=[WAIVED]), 50.0, "PASS", False),
        (None, 105.0, "PASS", False),
    ],
    told=["without a waiver", "waived", "a warning"],
)
def test_what_broke_its_limit_without_a_waiver_failed(
    plan: Plan | None, value: float, verdict: str, failed: bool
) -> None:
    made = night_of(entries(plan, values={("copy", Gpu(0)): value}))
    (figure,) = made.figures
    assert (made.verdict, figure.value, figure.failed) == (verdict, value, failed)


def test_what_was_not_measured_is_there_without_a_value() -> None:
    plan = journals.plan(
        journals.check("link.copy", journals.due(), journals.due("other", limit=None))
    )
    told = [entry for entry in entries(plan) if getattr(entry.body, "measurement", None) != "other"]
    made = night_of(told)
    assert [
        (series.measurement, one.value, one.failed) for series, one in values(made).items()
    ] == [
        ("copy", 110.0, False),
        ("other", None, False),
    ]


def shortened(**changes: Any) -> list[Entry]:
    return entries(msgspec.structs.replace(journals.plan(), **changes))


@each(
    "records, apart",
    [
        (entries()[:-1], "interrupted"),
        ([*entries()[:-1], *journals.entries([RunEnded(False, "stopped")])], "interrupted"),
        (
            [*entries(), *journals.entries([RunClosed(None, True, {}, "restarted")])],
            "interrupted",
        ),
        (shortened(scope="partial"), "partial"),
        (shortened(shortened=(Reduction("burn", 1.0, 45.0, "s"),)), "partial"),
        (
            [*entries(), *journals.entries([ForeignProcess(Gpu(0), 1.0, 42, "train", None)])],
            "in-use",
        ),
        (entries(image_id="sha256:1", image="my:own (named by --image)"), "own-image"),
        (entries(image_id="sha256:1", image_inputs="abc"), None),
    ],
    told=[
        *("without an end", "stopped", "closed later", "partial", "shortened", "shared"),
        *("an image of its own", "our image"),
    ],
)
def test_a_night_apart(records: list[Entry], apart: str | None) -> None:
    """One whose evidence is not whole is that, whatever else it is."""
    run, missing = judged(records), (Message("evidence_missing", {"file": "telemetry.jsonl"}),)
    damaged = replace(run, seal=Seal(troubles=missing), troubles=missing)
    older = replace(run, seal=Seal(old=True), troubles=())
    found = [night.night_of(one).apart for one in (run, damaged, older)]
    assert found == [apart, "not-whole", apart]


def test_a_journal_without_a_beginning_or_a_time_is_no_night() -> None:
    with pytest.raises(UnreadableRun):
        night_of(entries()[1:])
    told = entries()
    told[0] = msgspec.structs.replace(told[0], utc="yesterday")
    with pytest.raises(UnreadableRun, match="is of no moment"):
        night_of(told)


# The hours around both changes of clocks in Europe and in New York, by their days.
CHANGES = {"03-08": 20520, "03-29": 20541, "10-25": 20751, "11-01": 20758}


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York", "Europe/Berlin", "UTC"])
def test_the_time_zone_has_no_say(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that moves, or whose clock is put forward in the night, has its
    nights where they were.
    """
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for month, day in CHANGES.items():
            for hour in range(10):
                moment = f"2026-{month}T{hour:02}:30:00.000Z"
                assert night.day_of(moment) == day + (hour + 0.5) / 24
        assert night.day_of("2026-01-01T00:00:00") == 20454.0
    finally:
        monkeypatch.undo()
        time.tzset()


@each("name", [name for name in RECORDED if "h200" in name and (ALL or "accept" in name)])
def test_recorded_runs_are_nights(name: str) -> None:
    run = recorded(name)
    made = night.night_of(run)
    assert len(values(made)) == len(made.figures) > 0
    assert {one.serial for one in made.series if one.component == Gpu(0)} == {
        baseline_facts.identities(run.inventory)[Gpu(0)]
    }
    facts, seconds = dict(made.era.facts), {"accept": "45 s", "nightly": "15 s", "smoke": "8 s"}
    assert facts["driver"] == "580.159.04"
    assert facts["load stress_ng"] == seconds[made.profile]
    assert made.virtual


@each(
    "first, again, told",
    [
        (149.0, (), "--"),
        (140.0, (), "o-"),
        (140.0, (139.0,), "o-"),
        (140.0, (150.0,), "-u"),
        (140.0, (99.0,), "of"),
    ],
)
def test_what_the_past_said_of_a_value_is_kept(
    first: float, again: tuple[float, ...], told: str
) -> None:
    """The limit is 100; on the nights before it was 150, and is within from 145 on."""
    past = Past(
        decides=True,
        off_fails=3,
        off_of=7,
        level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
    )
    check = journals.check("a.one", journals.due().against(past))
    *own, last = journals.bodies(journals.plan(check), {("copy", Gpu(0)): first})
    made = journals.entries(own)
    for value in again:
        begun = SessionStarted(REPEAT_SESSION, journals.DIGEST, ("a.one",))
        taken = [begun, *journals.check_bodies(check, {("copy", Gpu(0)): value})]
        made += [
            msgspec.structs.replace(one, segment=repeat.SEGMENT)
            for one in journals.entries(taken, start_s=500.0)
        ]
        made += journals.entries(
            [SessionEnded(REPEAT_SESSION, True, "exited 0", 2.0)], start_s=600.0
        )
    (one,) = night_of([*made, *journals.entries([last], start_s=900.0)]).figures
    assert (one.value, one.again) == (first, again[0] if again else None)
    assert (one.outside, one.unsteady, one.failed) == ("o" in told, "u" in told, "f" in told)


@each("impossible, held", [(1e6, None), (149.0, 149.0)])
def test_a_value_that_cannot_be_is_no_past_of_later_nights(
    impossible: float, held: float | None
) -> None:
    most = Plausible(Limit("GB/s", "b", high=1000.0))
    due = msgspec.structs.replace(journals.due(), criteria=(most, *journals.due().criteria))
    told = journals.bodies(
        journals.plan(journals.check("a.one", due)), {("copy", Gpu(0)): impossible}
    )
    (one,) = night_of(journals.entries(told)).figures
    assert (one.value, one.failed) == (held, False)


# --- eras ---


def test_an_era_is_another_when_a_fact_is() -> None:
    plan, host, docker = journals.plan(), {"station": "host"}, {"station": "docker"}
    own = journals.plan(journals.check("c", journals.due(limit=Limit("GB/s", "own", low=1.0))))
    first = night.era_of_run(plan, {**host, "host": "a"}, SEEN)
    assert first == night.era_of_run(own, {**host, "host": "b", "commit": "x"}, SEEN)
    newer = decode({**INVENTORY, "board": {"nvidia_driver": "590.2"}})
    others = [
        night.era_of_run(plan, host, newer),
        night.era_of_run(plan, {**docker, "image_id": "1"}, SEEN),
        night.era_of_run(plan, {**docker, "image_id": "2", "image_inputs": "x"}, SEEN),
        night.era_of_run(msgspec.structs.replace(plan, profile="nightly"), host, SEEN),
        night.era_of_run(msgspec.structs.replace(plan, loads_s={"burn": 20.0}), host, SEEN),
        night.era_of_run(plan, host, NOTHING),
    ]
    assert len({one.key for one in [first, *others]}) == len(others) + 1
    rebuilt = {**docker, "image_id": "3", "image_inputs": "x"}
    assert night.era_of_run(plan, rebuilt, SEEN) == others[2]


@each(
    "changed, key, ground",
    [
        ({"profile": "nightly", "load burn": "9 s"}, False, True),
        ({"driver": "590.2"}, False, False),
        ({}, True, True),
    ],
)
def test_a_baseline_counts_on_the_same_image_station_and_driver_whatever_the_profile(
    changed: dict[str, str], key: bool, ground: bool
) -> None:
    facts = {"driver": "580.1", "load burn": "20 s", "profile": "accept", "station": "host"}
    one, other = (Era(tuple(sorted(found.items()))) for found in (facts, facts | changed))
    assert ((one.key == other.key), (one.ground == other.ground)) == (key, ground)
    assert one.ground == (("driver", "580.1"), ("station", "host"))


def test_what_changed_between_two_eras_is_told() -> None:
    before = Era((("driver", "580.1"), ("load burn", "20 s"), ("station", "host")))
    after = Era((("driver", "590.2"), ("image_versions", "x 1"), ("station", "docker")))
    told = [(one.code, one.values) for one in night.describe_changes(before, after)]
    assert [(code, known.get("before"), known.get("after")) for code, known in told] == [
        ("fact_is_other", "580.1", "590.2"),
        ("fact_is_new", None, "x 1"),
        ("fact_is_gone", "20 s", None),
        ("fact_is_other", "host", "docker"),
    ]
    assert told[2][1]["fact"] == Message("time_of_load", {"load": "burn"})
    assert night.describe_changes(before, before) == ()


def test_a_night_knows_what_it_told_of_changes() -> None:
    birth = machine_facts.ruled(machine_facts.born(machine_facts.machine()))
    plan = msgspec.structs.replace(journals.plan(), baseline=birth)
    first, *rest = journals.bodies(plan)
    after = machine_facts.machine()
    after["board"]["kernel"] = "6.13"
    made = night_of(journals.entries([first, Observed(after), *rest]))
    assert made.reported == ReportedChanges(
        birth.run_id, (KnownChange(ITSELF, "kernel", "6.13", machine_facts.DAY),)
    )
    put_off = [first, Observed(after), Postponed(("in use",), 1, 3), RunEnded(False, "in use")]
    in_use = night_of(journals.entries(put_off))
    assert (in_use.postponed, in_use.apart, in_use.verdict, in_use.figures) == (
        True,
        None,
        "UNJUDGED",
        (),
    )
    # Nothing could be held against the baseline.
    for records in (entries(), journals.entries([first, *rest]), journals.entries(put_off)):
        assert night_of(records).reported is None
