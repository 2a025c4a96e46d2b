"""What must be true of a run that was cut off, once a later start has met it.

Every function gives sentences of what is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from run_left import Run

from acceptance.core.evidence import Sample, Sealed
from acceptance.core.parts import Component
from acceptance.core.record import RunClosed, RunEnded
from acceptance.journal import reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.journal.segment import SegmentHead
from acceptance.run import unfinished
from acceptance.wording import words

EXIT = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}
Bytes = Mapping[str, bytes]


def segments(folder: Path | None) -> dict[str, bytes]:
    """The journal as it is on the disk, by file."""
    return (
        {}
        if folder is None
        else {file.name: file.read_bytes() for file in sorted(folder.glob("*.jsonl"))}
    )


def is_whole(folder: Path) -> bool:
    """Whether everything had been measured, and the run had said so and sealed it.

    One that is cut off between the two is closed by a later start. Raises JournalError.
    """
    own = [
        entry.body for entry in reader.read(folder).entries if entry.segment == reader.SUPERVISOR
    ]
    return any(isinstance(body, Sealed) for body in own) and any(
        isinstance(body, RunEnded) and body.complete for body in own
    )


def trouble_in(text: str) -> Iterator[str]:
    """A traceback, or what the command line says in its place."""
    for word in ("Traceback", "an error of rigproof's own"):
        if word in text:
            yield f"it said: {text[text.index(word) :][:300]!r}"


def agrees(run: Run) -> Iterator[str]:
    """What is true of every run that has ended, and is not of this one."""
    try:
        run.assert_agrees()
    except AssertionError as error:
        yield f"its files do not agree: {str(error)[:300]}"


@dataclass(frozen=True, slots=True)
class Cut:
    """A run that was cut off: its folder, and its journal as it was at that moment."""

    folder: Path
    kept: Bytes

    @property
    def begun(self) -> bool:
        """Whether there was a journal; before that there is nothing to close."""
        return reader.SUPERVISOR in self.kept

    def before_the_next_start(self) -> Iterator[str]:
        """It reads back, and is no pass unless everything had been measured."""
        if not self.begun:
            return
        try:
            whole = is_whole(self.folder)
            reader.read(self.folder, telemetry=True)
            judged = journal_run.read(self.folder).verdict.verdict
        except journal_run.UnreadableRun:  # cut off before its plan
            judged, whole = "UNJUDGED", False
        except segment.JournalError as error:
            yield f"the journal does not read back: {error}"
            return
        if self.closed and (said := self._verdict()["verdict"]) != judged:
            yield f"verdict.json says {said}, and its journal {judged}"
        if not whole and judged == "PASS":
            yield "it passes, and had not come to its end"

    def _verdict(self) -> dict[str, object]:
        found = json.loads((self.folder / run_folder.VERDICT).read_bytes())
        assert isinstance(found, dict)
        return found

    @property
    def closed(self) -> bool:
        """Whether there is nothing left for a later start to do."""
        return not self.begun or (self.folder / run_folder.VERDICT).is_file()

    def after_the_next_start(
        self, told: str, *, ended: bool = False, rebooted: bool | None = None
    ) -> Iterator[str]:
        """A later start has closed it, and has said in `told` what happened; `ended` says that it
        had closed itself.

        `rebooted` is what the closing record must say; where it is not given, whether the boot is
        another one decides.
        """
        for name, data in self.kept.items():
            if (self.folder / name).read_bytes() != data:
                yield f"{name} was changed after the run was cut off"
        if not self.begun:
            return
        if not self.closed:
            yield "no later start has closed it"
            return
        verdict, found = self._verdict(), reader.read(self.folder, telemetry=True)
        whole = is_whole(self.folder)
        unplanned = "before its plan was written" in json.dumps(verdict["unjudged"])
        due = journal_run.read(self.folder).verdict.verdict if whole else "UNJUDGED"
        if verdict["verdict"] != due:
            yield f"verdict.json says {verdict['verdict']}, and {due} is due"
        if not unplanned and not all(
            (self.folder / name).is_file() for name in (run_folder.PAGE, run_folder.JUNIT)
        ):
            yield f"{run_folder.PAGE} or {run_folder.JUNIT} is missing"
        torn = [line for line in map(words.message, found.torn) if not line.startswith("telemetry")]
        if not ended and not unplanned and any(line not in verdict["notes"] for line in torn):  # type: ignore[operator]
            yield f"verdict.json does not say what was torn: {torn}"
        if ended:
            return
        line = self.sentence(told)
        if not line:
            yield f"no later start names it: {told[-300:]!r}"
        elif whole:
            if "had ended without its reports" not in line:
                yield f"it was whole but for its reports, and is told as {line!r}"
        elif not unplanned:
            yield from self._closing(found, line, rebooted)

    def sentence(self, told: str) -> str:
        """The line of a later start that tells of this run."""
        lines = [
            line
            for line in told.splitlines()
            if self.folder.name in line and "an earlier run" in line
        ]
        return lines[-1].strip() if lines else ""

    def _closing(self, found: reader.Journal, line: str, rebooted: bool | None) -> Iterator[str]:
        entries = [entry for entry in found.entries if isinstance(entry.body, RunClosed)]
        if len(entries) != 1:
            yield f"{len(entries)} records close it"
            return
        (entry,) = entries
        closed = entry.body
        assert isinstance(closed, RunClosed)
        running = unfinished.running_checks(
            tuple(one for one in found.entries if not isinstance(one.body, RunClosed))
        )
        said = "no check was running"
        if running:
            said = f"{', '.join(running)} {'was' if len(running) == 1 else 'were'} running"
        if closed.running != running or said not in line:
            yield f"{said}, and it is told as {line!r}"
        other = self._boot(entry.segment) != self._boot(reader.SUPERVISOR)
        if closed.rebooted != (other if rebooted is None else rebooted) or other != closed.rebooted:
            yield (
                f"the record that closes it says rebooted={closed.rebooted}, the boot ids say "
                f"{other}"
            )
        if ("the machine was restarted" in line) != closed.rebooted:
            yield (
                f"whether the machine was restarted ({closed.rebooted}) is not what is told: "
                f"{line!r}"
            )
        yield from self._telemetry(found, closed, line)

    def _boot(self, name: str) -> str:
        return msgspec.json.decode(
            (self.folder / name).read_bytes().splitlines()[0], type=SegmentHead
        ).boot_id

    @staticmethod
    def _telemetry(found: reader.Journal, closed: RunClosed, line: str) -> Iterator[str]:
        last: dict[Component | None, dict[str, float]] = {}
        for entry in found.entries:
            if isinstance(entry.body, Sample):
                last[entry.body.component] = entry.body.values
        for gpu, values in last.items():
            wanted = {(f"{gpu} {name}" if gpu else name): value for name, value in values.items()}
            kept = {
                name: closed.last_telemetry[name]
                for name in wanted
                if name in closed.last_telemetry
            }
            if not kept or any(wanted[name] != value for name, value in kept.items()):
                yield (
                    f"the last sample of {gpu or 'the machine'} is not in the record that closes it"
                )
            if gpu and f"{gpu} was last seen at" not in line:
                yield f"how {gpu} was last seen is not told: {line!r}"

    def judged_again(self, code: int, said: str) -> Iterator[str]:
        """`rigproof judge` says what verdict.json says."""
        yield from trouble_in(said)
        if self.closed and code != EXIT[str(self._verdict()["verdict"])]:
            yield (
                f"`rigproof judge` ends with exit code {code}, and verdict.json says "
                f"{self._verdict()['verdict']}"
            )
