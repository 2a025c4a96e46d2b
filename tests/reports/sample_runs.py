"""Whole runs on disk to look at, in every report: one recorded, and made ones of machines that
pass, fail, break off and cannot be judged.

The made ones have the real plan of a shipped machine file, an inventory with slots, serial numbers
and network cards, figures about what was measured or published, telemetry at the watch's own rate,
commands and tables. Nothing of them was measured, and they say so.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faults
import msgspec
import reseal
import runs
import sample_machines
import sample_telemetry
import sample_training
import synthetic_machines
from msgspec import structs

from acceptance.core import dtype, parts
from acceptance.core.evidence import Observed, Sample, Table, ToolRan
from acceptance.core.finding import Waiver
from acceptance.core.message import Message
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import SESSIONS, SITE, Due, Plan, PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Event,
    Measured,
    Note,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)
from acceptance.journal import reader, segment
from acceptance.journal.segment import SegmentHead, SegmentLine
from acceptance.machine import topology
from acceptance.machine.inventory import Inventory
from acceptance.reports.progress import eta_s
from acceptance.wording import words
from acceptance.wording.words import limit_text, quantity
from selftest import drawn_runs

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs/1xh200-host-accept"
BEGAN = datetime.datetime(2026, 11, 20, 18, 30, tzinfo=datetime.UTC)
RUN_ID = f"{BEGAN:%Y-%m-%dT%H-%M-%SZ}-made"
BOOT_S = 120.0  # of the first record, in seconds since boot
HEATS = ("compute", "burn", "together", "vram")


@dataclass(frozen=True)
class Made:
    """A run to make: the machine file's name, what is wrong, and how it goes.

    `seconds` stretches its burn until it takes that long.

    `training` adds the checks of training, where its plan has none, and their tables.

    `breaks_in` is the check in which the machine restarts. `troubles` are the checks that end as
    errors, with the session's word; `skips` measurements that could not be taken, with the reason.
    """

    machine: str
    title: str
    change: faults.Change | None = None
    breaks_in: str | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)
    events: tuple[tuple[str, Event], ...] = ()
    hot: Mapping[Component, float] = field(default_factory=dict)
    dead_links: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    seconds: float | None = None
    training: bool = False


def _both(*changes: faults.Change) -> faults.Change:
    def change(check: str, due: Due, value: float) -> float | None:
        found: float | None = value
        for one in changes:
            found = None if found is None else one(check, due, found)
        return found

    return change


def _dead_link(check: str, due: Due, value: float) -> float:
    if due.measurement == "nvlink_active" and due.component == Gpu(5):
        return 17.0
    slower = (
        due.measurement in ("p2p_write", "copy_own_p2p", "copy_d2d_read", "copy_d2d_write")
        and Gpu(5) in due.component.ends
    )
    return value * 17 / 18 if slower else value


XID = Event(
    "xid",
    "warning",
    "NVRM: Xid (PCI:0000:02:00): 94, pid=4711, name=python3, Contained: ECC error",
    "An uncorrectable memory error was contained to one program.",
    "Watch for more of them; the page is retired at the next reset of the GPU.",
    code=94,
    component=Gpu(1),
)
MADE = {
    "2x4090-slow-card": Made(
        "2x4090",
        "two RTX 4090, the second slow, hot, and at x8",
        _both(faults.slow(Gpu(1), 0.78), faults.few_lanes(Gpu(1), 8, 16)),
        hot={Gpu(1): 86.0},
    ),
    "2x3090ti": Made(
        "2x3090ti-bridge",
        "two RTX 3090 Ti with a bridge, sound, with what it trains",
        training=True,
        waivers=(
            Waiver(
                reason="a spare rule that is not needed",
                measurement="latency_host_device",
                component="gpu0",
                worst=9000.0,
            ),
        ),
    ),
    "8xh200-dead-link": Made(
        "8xh200", "eight H200, one NVLink of gpu5 is dead", _dead_link, dead_links={"gpu5": (7,)}
    ),
    "8xh200": Made("8xh200", "eight H200, sound"),
    "reboot": Made(
        "2x4090",
        "the machine restarts in the burn",
        breaks_in="together.burn",
        events=(("burn.gpu_burn[tensor]", XID),),
    ),
    "unjudged": Made(
        "4090-7950x",
        "a load was ended by a signal, and what only root may read was not read",
        troubles={"cpu.stress_ng": "stress-ng was ended by signal 9: Killed"},
        skips={"gpu_power": "NVML refuses the power reading: update the driver"},
    ),
}
NAMES = ("h200", *MADE)


def write(name: str, folder: Path) -> Path:
    """Put the run of that name into a folder that is not there yet, as the harness would have
    left it, without its reports.
    """
    if name == "h200":
        return runs.unpacked(RECORDED, folder)
    return put(MADE[name], folder)


def put(made: Made, folder: Path) -> Path:
    """The same for a run that is described."""
    folder.mkdir(parents=True)
    machine = drawn_runs.named(made.machine)
    seen = sample_machines.inventory(machine, made.dead_links)
    plan = _plan(machine.plan, made)
    drawn = drawn_runs.draw(machine, random.Random(7), made.change)
    # GeForce cards have few units for float64: what nobody judges is drawn about 50.
    slow = 1.0 if machine.board else 0.022
    values = {
        key: value
        and value * (slow if key[1] in ("gemm_f64_short", "gemm_f64", "burn_f64") else 1.0)
        for key, value in drawn.items()
    }
    if made.training:
        values = {**sample_training.values(plan), **values}
    story = list(_story(made, machine, plan, seen, values))
    _segment(folder / reader.SUPERVISOR, story, "boot-1")
    heated = list(_heated(story))
    ended = story[-1][0]
    if made.breaks_in:
        detail = (
            "the machine was restarted before it came to its end; together.burn was running; "
            "gpu0: 83 degC, 447 W"
        )
        closed = RunClosed(
            made.breaks_in, True, {"gpu0 temperature_c": 83.0, "gpu0 power_w": 447.0}, detail
        )
        _segment(
            folder / f"{reader.CLOSING}-1.jsonl",
            [(30.0 - BOOT_S, closed)],
            "boot-2",
            begun_after_s=900.0,
        )
        ended += 95.0  # the watch went on until the power went
    cards = tuple(_card(machine, made, gpu) for gpu in plan.gpus)
    _segment(
        folder / reader.GPU_TELEMETRY, sample_telemetry.together(cards, heated, ended), "boot-1"
    )
    reseal.last(folder / (f"{reader.CLOSING}-1.jsonl" if made.breaks_in else reader.SUPERVISOR))
    return folder


def _card(machine: drawn_runs.Machine, made: Made, gpu: Component) -> sample_telemetry.Card:
    board = machine.board
    limit_w, clock = (700.0, 1980.0) if board else (450.0, 2520.0)
    hot = made.hot.get(gpu, 64.0 if board else 71.0)
    return sample_telemetry.Card(
        gpu, limit_w, clock, hot, 82.0 if gpu in made.hot else 200.0, 78.0 if board else 22.0
    )


# --- the plan ---


def _plan(plan: Plan, made: Made) -> Plan:
    """The plan, with what this run does not test."""
    left_out = (
        "cpuburn: no program of that name is on PATH",
        "mprime is not offered: its licence forbids handing it on",
    )
    checks = plan.checks
    if made.seconds:
        longer = made.seconds - eta_s(plan)
        checks = tuple(
            structs.replace(one, seconds=one.seconds + longer) if one.id == "together.burn" else one
            for one in checks
        )
    if made.training:
        checks = sample_training.with_checks(checks, plan.gpus)
    return structs.replace(
        plan, checks=checks, not_tested=left_out, waivers=(*plan.waivers, *made.waivers)
    )


# --- what happens ---


def _story(
    made: Made,
    machine: drawn_runs.Machine,
    plan: Plan,
    seen: Inventory,
    values: Mapping[Any, float | None],
) -> Iterator[tuple[float, Body]]:
    """Every record of the supervisor and the sessions, with its time in seconds after the start."""
    provenance = {
        "rigproof": "0.1.0",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "package_digest": plan.digest,
        "python": "3.12.3",
        "numpy": "2.3.1",
        "pytest": "9.0.1",
        "kernel": "6.8.0-48-generic",
        "host": f"made-{made.machine}",
        "machine_file": f"fixtures/machines/{machine.box.file}",
        "driver": "570.86.15",
        "station": "docker",
        "image": "rigproof:cuda12.8-torch2.10",
        "image_id": "sha256:0d1f9a7d",
        "synthetic": "made for looking at reports: nothing in it was measured",
    }
    now = 0.0
    score = {"caught": 61, "faults": 61, "alarms": 0, "clean": 400}
    told = {"utc": "2026-11-19T04:00:00Z", "kind": "short", **score}
    selftest = Message("selftest_score", told)
    yield now, RunStarted(RUN_ID, plan, provenance, "machine-1", selftest)
    topo = topology.build(seen, seen.places)
    yield now + 0.1, Observed(msgspec.to_builtins(seen), topo.rows())
    yield now + 0.2, Note("the fans of the case are not read: no driver offers them")
    now += 1.0
    for session in SESSIONS:
        share = plan.share(session)
        if not share and session == SITE:
            continue
        yield now, SessionStarted(session, plan.digest, tuple(one.id for one in share))
        began = now
        for check in share:
            if check.id == made.breaks_in:
                yield now, CheckStarted(check.id)
                return
            yield from _check(made, machine, check, values, now)
            now += check.seconds
        now += 1.0
        yield now, SessionEnded(session, True, "exited 0", now - began)
    yield now, RunEnded(True, "every session of the plan was run")


def _check(
    made: Made,
    machine: drawn_runs.Machine,
    check: PlannedCheck,
    values: Mapping[Any, float | None],
    now: float,
) -> Iterator[tuple[float, Body]]:
    yield now, CheckStarted(check.id)
    end = now + check.seconds * 0.98
    for name, event in made.events:
        if name == check.id:
            yield now + 3.0, structs.replace(event, boot_s=BOOT_S + now + 3.0)
    if check.session == "load":
        safe = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in check.id)
        argv = (
            "/opt/rigproof/venv/bin/python",
            "-m",
            f"acceptance.loads.{check.id.split('.')[0]}",
            "--seconds",
            "20",
        )
        returncode = -9 if check.id in made.troubles else 0
        yield end, ToolRan(check.id, argv, returncode, check.seconds * 0.9, f"logs/{safe}-1.log")
    outcome: Any = "pass"
    if check.id not in made.troubles:
        for due in check.due:
            value = values[check.id, due.measurement, due.component]
            reason = made.skips.get(due.measurement)
            if reason is not None:
                outcome = "skip"
                yield end, Skipped(check.id, reason, due.measurement, due.component)
            elif value is not None:
                yield (
                    end,
                    Measured(
                        check.id,
                        due.measurement,
                        due.component,
                        due.unit,
                        value,
                        _serial(due.component),
                    ),
                )
                outcome = "fail" if due.limit and due.limit.grade(value) == "fail" else outcome
        if check.id == "compute.gemm_together":
            yield from ((end, table) for table in _tables(check))
        if made.training:
            gpus = tuple(Gpu(number) for number in range(machine.gpus))
            yield from ((end, table) for table in sample_training.tables(check.id, gpus))
    else:
        outcome = "error"
    message = made.troubles.get(check.id, "")
    if outcome == "fail":
        message = "\n".join(_faults(check, values))
    codes = {"fail": ("outside_limit",), "skip": ("skipped",)}.get(outcome)
    yield end, CheckEnded(check.id, outcome, message, check.seconds * 0.98, codes)


def _serial(component: Component) -> str | None:
    number = str(component).removeprefix("gpu")
    return (
        synthetic_machines.gpu_machine.uuid(int(number))
        if str(component) != number and number.isdigit()
        else None
    )


def _faults(check: PlannedCheck, values: Mapping[Any, float | None]) -> Iterator[str]:
    for due in check.due:
        value = values[check.id, due.measurement, due.component]
        if value is not None and due.limit and due.limit.grade(value) == "fail":
            basis = words.text(due.limit.basis)
            told = (
                f"measured {quantity(value, due.unit)}, limit {limit_text(due.limit)}; "
                f"basis: {basis}"
            )
            yield f"{due.measurement} on {due.component}: {told}"


def _tables(check: PlannedCheck) -> Iterator[Table]:
    """What builders publish: the rate of products by their size, about the limits of the plan."""
    floors = {(due.measurement, due.component): due.limit.low for due in check.due if due.limit}
    for one in dtype.DTYPES:
        name = dtype.gemm_names(one)[0]
        for where in dict.fromkeys(where for _, where in floors if isinstance(where, Gpu)):
            top = (floors.get((name, where)) or 50.0) * 1.08
            shares = [(2.0**power, min(1.0, (2**power / 4096) ** 1.3)) for power in range(7, 16)]
            rows = tuple((size, top * share, 0.8 * share) for size, share in shares)
            yield Table(check.id, where, f"gemm_{one}_by_size", ("n", "TFLOP/s", "MFU"), rows)


def _heated(story: Iterable[tuple[float, Body]]) -> Iterator[tuple[float, float]]:
    """From when to when the GPUs work."""
    began: dict[str, float] = {}
    for now, body in story:
        if isinstance(body, CheckStarted) and body.check.startswith(HEATS):
            began[body.check] = now + 1.0
        elif isinstance(body, CheckEnded) and body.check in began:
            yield began.pop(body.check), now - 1.0
    yield from ((now, now + 3600.0) for now in began.values())


# --- segments ---


def _segment(
    path: Path,
    records: Iterable[tuple[float, Body | Sample]],
    boot_id: str,
    begun_after_s: float = 0.0,
) -> None:
    """A segment as its writer leaves it, with times of its own."""
    encode: Callable[[object], bytes] = msgspec.json.Encoder(enc_hook=parts.encode).encode
    with path.open("wb") as file:
        file.write(
            encode(SegmentHead(segment.VERSION, path.name, boot_id, 4711, "machine-1", RUN_ID))
            + b"\n"
        )
        for seq, (after_s, body) in enumerate(records):
            moment = BEGAN + datetime.timedelta(seconds=after_s + begun_after_s)
            utc = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
            file.write(encode(SegmentLine(seq, round(BOOT_S + after_s, 3), utc, body)) + b"\n")
