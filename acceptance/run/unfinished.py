"""Unfinished runs: found by the next start, reported, and closed.

A crash is evidence.

The step of a power load at which a journal stops: what the machine did not survive.

Each step is on the disk before it begins (`session.load_events`), and so are the parts of the stage
that load the machine beside it (`part-began`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from acceptance.core.evidence import PartBegan, Sample, Scratch, Sealed, ToolRan
from acceptance.core.message import Listed, Message, Value, Values, english, known
from acceptance.core.notes import steps_by_check
from acceptance.core.parts import CPU, MEMORY, Component
from acceptance.core.plan import segment_of
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
)
from acceptance.journal import clock, reader, run_folder, seal, segment
from acceptance.journal import run as journal_run
from acceptance.process import orphans
from acceptance.run import outputs, scratch


@dataclass(frozen=True, slots=True)
class OpenStep:
    """The step that had begun and not ended, and what else was under load.

    `survived` is the last step of the same check that had ended.
    """

    step: Value
    beside: frozenset[Component]
    survived: Value | None


def read(entries: Sequence[Entry]) -> OpenStep | None:
    """The step that was open when the journal stops; None where none was."""
    steps = list(steps_by_check(entries))
    if not steps or steps[-1][-1].ended_s < inf:
        return None
    *before, last = steps[-1]
    loaded: dict[str, Component] = {}
    for body in (entry.body for entry in entries if entry.segment == last.segment):
        if isinstance(body, CheckStarted):
            loaded = {}
        elif isinstance(body, PartBegan):
            loaded[body.log] = body.component
        elif isinstance(body, ToolRan):
            loaded.pop(body.log or "", None)
    survived = next((span.step for span in reversed(before) if span.ended), None)
    return OpenStep(last.step, frozenset(loaded.values()), survived)


def step_messages(step: OpenStep | None, *, rebooted: bool) -> Iterator[Message]:
    """At which step the machine went down, or the harness was killed, and which one it survived."""
    if step is None:
        return
    about = known(step=step.step, beside=_beside(step.beside))
    yield Message(
        english("power_step_went_down", "the machine went down at {step}[ with {beside} loaded]")
        if rebooted
        else english("power_step_was_open", "the power step was {step}[ with {beside} loaded]"),
        about,
    )
    if step.survived is not None:
        yield Message(
            english("power_step_survived", "the last step that it survived: {step}"),
            {"step": step.survived},
        )


def _beside(loaded: frozenset[Component]) -> Message | None:
    both = loaded & {CPU, MEMORY}
    if len(both) > 1:
        return Message(english("power_beside_both", "the processors and the RAM"))
    if both:
        return Message(
            english("power_beside_processors", "the processors")
            if CPU in both
            else english("power_beside_ram", "the RAM")
        )
    return None


def causes() -> Message:
    """Why a machine goes down at a step, the most likely cause first, each with what to try."""
    found = (
        Message(
            english(
                "power_cause_supply",
                "the power supply cannot bear the change: lower the power limit of every GPU "
                "(sudo nvidia-smi -pl WATTS), and if the machine then stays up, the supply is too "
                "weak",
            )
        ),
        Message(
            english(
                "power_cause_cables",
                "a power cable is loose or worn: press every plug in until it locks, and try "
                "other cables",
            )
        ),
        Message(
            english(
                "power_cause_shared_cable",
                "one cable feeds two plugs: give each plug a cable of its own from the supply",
            )
        ),
        Message(
            english(
                "power_cause_connector",
                "a connector is not all the way in, or burnt: pull each off, look at its pins, "
                "and press it in again",
            )
        ),
        Message(
            english(
                "power_cause_riser",
                "a riser gives the slot too little power: put the GPU into the slot itself",
            )
        ),
        Message(
            english(
                "power_cause_socket",
                "the wall socket, its circuit or a power strip gives way: try another circuit "
                "with nothing else on it",
            )
        ),
    )
    listed = tuple(
        Message(english("power_cause", "({place}) {cause}"), {"place": place, "cause": cause})
        for place, cause in enumerate(found, start=1)
    )
    return Message(
        english("power_causes", "likely causes, the most likely first, and what to try: {causes}"),
        {"causes": listed},
    )


# The readings of a GPU's last sample to report, with their units.
GPU_READINGS = {"temperature_c": "degC", "power_w": "W", "sm_clock_mhz": "MHz"}


def candidates(out: Path, last_run: Path | None) -> Iterator[Path]:
    """Folders of runs without a verdict.

    Those in the output folder, and the one in the lock file if it belongs to this user. Every user
    may write to the lock file, so its content must not lead root to write, and to kill, anywhere.
    """
    places = sorted(
        path.parent for path in out.glob(f"*/{reader.SUPERVISOR}") if not path.parent.is_symlink()
    )
    with contextlib.suppress(OSError, ValueError):
        if last_run is not None and last_run.stat().st_uid == os.geteuid():
            known = {place.resolve() for place in places}
            places += [last_run] if last_run.resolve() not in known else []
    yield from filter(_open, places)


def _open(place: Path) -> bool:
    with contextlib.suppress(OSError):
        return (place / reader.SUPERVISOR).exists() and not (place / run_folder.VERDICT).is_file()
    return False  # not readable: another user's


def running_checks(entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """The checks that had begun and not ended when the journal stops, one of each open session."""
    running: dict[str, str] = {}  # by the segment of its session
    for entry in entries:
        body = entry.body
        if isinstance(body, CheckStarted):
            running[entry.segment] = body.check
        elif isinstance(body, CheckEnded) and body.check == running.get(entry.segment):
            del running[entry.segment]
        elif isinstance(body, SessionEnded):
            for name in (entry.segment, segment_of(body.session)):
                running.pop(name, None)
    return tuple(running.values())


def is_closed(found: reader.Journal) -> bool:
    """Whether a run ended or was closed, and is sealed if its version does that."""
    ended = any(isinstance(entry.body, RunEnded | RunClosed) for entry in found.entries)
    sealed = any(isinstance(entry.body, Sealed) for entry in found.entries)
    return ended and (sealed or seal.is_old(found))


def close(run_dir: Path, root: Path = Path("/")) -> Message | None:
    """Close one unfinished run and write its reports.

    Returns what reports it, or None for another machine's run. Raises JournalError
    when its journal cannot be read or judged, or the closing record cannot be written.
    """
    found = reader.read(run_dir)
    if found.machine_id not in (None, clock.machine_id(root)):
        # a shared folder: the run belongs to another machine, and may be alive
        return None
    start = next(
        (entry.body for entry in found.entries if isinstance(entry.body, RunStarted)), None
    )
    if start is None:
        outputs.write_unreadable(
            run_dir,
            Message(
                english(
                    "plan_unwritten",
                    "the run was ended before its plan was written: nothing was measured",
                )
            ),
        )
        return Message(
            english(
                "earlier_plan_unwritten",
                "an earlier run ({run}) was ended before its plan was written: nothing was "
                "measured in it",
            ),
            {"run": run_dir.name},
        )
    # its programs died with it; an orphan would spoil the next run
    orphans.sweep(start.run_id, root)
    swept = scratch.sweep(
        [entry.body for entry in found.entries if isinstance(entry.body, Scratch)], root
    )
    closed = next(
        (entry.body for entry in found.entries if isinstance(entry.body, RunClosed)), None
    )
    if closed is None and is_closed(found):
        told = Message(
            english(
                "earlier_reports_written",
                "an earlier run ({run}) had ended without its reports: they were written now",
            ),
            {"run": run_dir.name},
        )
    else:
        if closed is None or not is_closed(found):
            seal.evidence(run_dir)  # raises, before a segment is begun that could not be sealed
            closing = _segment(run_dir)
            with segment.Writer(closing, root, start.run_id, start.machine_id) as writer:
                if closed is None:
                    closed = _closing(found, root)
                    writer.write(closed)
                if not seal.is_old(found):
                    seal.write(writer)
        told = Message(
            english("earlier_unfinished", "an earlier run ({run}) was never finished: {why}"),
            {"run": run_dir.name, "why": closed.detail},
        )
    outputs.write(journal_run.read(run_dir))
    return Message("clauses", {"why": (told, *swept)}) if swept else told


def _closing(journal: reader.Journal, root: Path) -> RunClosed:
    running = running_checks(journal.entries)
    last = _last_samples(journal.run_dir)
    # The first boot is the supervisor's; a record of an earlier attempt to close the run may be
    # from a later boot.
    rebooted = clock.boot_id(root) != journal.boot_ids[0]
    what = Message(english("none_running", "no check was running"))
    if running:
        code = (
            english("was_running", "{check} was running")
            if len(running) == 1
            else english("were_running", "{check} were running side by side")
        )
        what = Message(code, {"check": Listed(running)})
    why = Message(
        english("restarted", "the machine was restarted before it came to its end")
        if rebooted
        else english("harness_killed", "the harness was killed, or could not write any more")
    )
    step = read(journal.entries)
    values = {
        f"{gpu} {name}" if gpu else name: value
        for gpu, readings in last.items()
        for name, value in readings.items()
    }
    told = [why, what, *step_messages(step, rebooted=rebooted), *_last_readings(last)]
    if step is not None and rebooted:
        told.append(causes())
    detail = Message("run_closed", {"text": tuple(told)})
    return RunClosed(running, rebooted, values, detail)


def _last_samples(run_dir: Path) -> dict[Component | None, dict[str, float]]:
    """The last readings of the machine's own sensors (None) and of each GPU.

    Of a GPU only GPU_READINGS.
    """
    last: dict[Component | None, dict[str, float]] = {}
    for name in (reader.TELEMETRY, reader.GPU_TELEMETRY):
        with contextlib.suppress(segment.JournalError):  # the seal names what cannot be read
            for entry in reader.read_last_entries(run_dir / name):
                if isinstance(entry.body, Sample):
                    last[entry.body.component] = entry.body.values
    return {
        gpu: readings
        if gpu is None
        else {name: readings[name] for name in GPU_READINGS if name in readings}
        for gpu, readings in last.items()
    }


def _last_readings(last: dict[Component | None, dict[str, float]]) -> Iterator[Message]:
    """The last readings of each GPU, for the message that reports the run.

    They show whether it was hot, short of power, or working normally.
    """
    for gpu in sorted(one for one in last if one is not None):
        parts = [
            f"{last[gpu][name]:.0f} {unit}"
            for name, unit in GPU_READINGS.items()
            if name in last[gpu]
        ]
        if parts:
            yield Message(
                english("last_seen_at", "{gpu} was last seen at {readings}"),
                {"gpu": str(gpu), "readings": Listed(tuple(parts))},
            )


def _segment(run_dir: Path) -> Path:
    number = 1
    while (run_dir / f"{reader.CLOSING}-{number}.jsonl").exists():
        number += 1
    return run_dir / f"{reader.CLOSING}-{number}.jsonl"


def close_all(out: Path, last_run: Path | None, root: Path = Path("/")) -> list[Message]:
    """Close every unfinished run of this machine; returns what to report.

    A run that cannot be closed is reported and left as it is.
    """
    notes: list[Message] = []
    for run_dir in candidates(out, last_run):
        if not os.access(run_dir, os.W_OK):
            notes.append(
                Message(
                    english(
                        "earlier_unwritable",
                        "an earlier run ({run}) was never finished, and its folder cannot be "
                        "written: it stays as it is",
                    ),
                    {"run": str(run_dir)},
                )
            )
            continue
        try:
            told = close(run_dir, root)
        except segment.JournalError as error:
            about: Values = {"run": run_dir.name, "why": error.message}
            told = Message(
                english("earlier_unclosable", "an earlier run ({run}) cannot be closed: {why}"),
                about,
            )
        if told:
            notes.append(told)
    return notes
