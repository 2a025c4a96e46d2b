"""Verdicts of many machines, as they lie in folders: FOLDER/<machine>[/<run>]/verdict.json[.gz].

Of each verdict only what the fleet needs is kept: 10,000 whole ones would fill the memory. Nothing
ends the reading: what cannot be read is a trouble of its machine, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import UNSET

from acceptance.core import parts, plain_text, regular_file
from acceptance.core.message import Message, english
from acceptance.core.parts import Component, Gpu
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import acceptances, due, ending
from acceptance.fleet.acceptances import Acceptance
from acceptance.fleet.ending import Failure, Proof
from acceptance.fleet.identity import MachineRun
from acceptance.journal import run_folder
from acceptance.process.command import CommandError
from acceptance.reports import verdict_json
from acceptance.reports.text import one_line
from acceptance.reports.verdict_json import File, UnreadableVerdict
from acceptance.run import signature
from acceptance.wording.errors import WordedError, said

PACKED = f"{run_folder.VERDICT}.gz"
# Clocks that NTP keeps differ by far less; a file is never written before its run began.
CLOCK = timedelta(minutes=10)
# Copying a folder writes its files in any order, within minutes.
COPYING = timedelta(hours=1)
_RUN_ID = re.compile(r"(20\d\d-\d\d-\d\dT\d\d-\d\d-\d\dZ)-[0-9a-f]+", re.ASCII)
_LATEST = 4e9  # seconds of 2096: a file's time may be anything, and Python's dates end
_GZIP = 16 + zlib.MAX_WBITS  # zlib's name for the format of gzip
# How each format of a verdict begins that is known so far, for one whose rest is not.
_FAILED = re.compile(
    rb'\s*\{\s*"schema":\s*\d+,\s*"verdict":\s*"FAIL",\s*"exit_code":\s*\d+,\s*'
    rb'"run_id":\s*"([0-9TZa-f-]+)"'
)
_WORD = re.compile(rb'\s*\{\s*"schema":\s*\d+,\s*"verdict":\s*"([A-Z]+)"')
_BEGINNING = 4096  # bytes, which hold that
_STEP = 64  # bytes that are unpacked at once
# What makes machines comparable, or tells them apart: keys of a verdict's provenance.
GROUP_KEYS = (
    *("gpu_model", "gpus", "gpu_vbios", "nvidia_driver", "bios_version", "kernel", "virtual"),
    *("machine_file", "station", "image", "image_inputs", "image_id", "rigproof", "machine_id"),
    *("board_serial", "limits", "limits_digest"),
)


NotPassed = Literal["fail", "error"]  # outcomes of checks that keep a run from PASS


class Series(NamedTuple):
    """One measurement of one component in one check: a column of the fleet's table."""

    check: str
    measurement: str
    component: Component
    unit: str


@dataclass(frozen=True, slots=True)
class MachineVerdict:
    """One verdict of one machine.

    `began` is when the run began, by the machine's clock in its run id; None where that is of
    another form. `written` is when the file was written, by the clock of the file system.
    `reason` is the headline of a run that did not pass, with its likeliest cause and what to do;
    `check` and `component` are what it is about. `signer` names the signer or the key, None of an
    unsigned verdict. `checks` is how many were planned; `not_passed` are those that failed (fail)
    or left something unjudged (error), `run` among them for what concerns the whole run. `parts`
    are serial numbers and UUIDs of GPUs. `places` are the columns of `values` in the collection's
    series; only measured values are there. `seconds` are those of its checks, but for those beside
    others: the run took longer. `failed` is what failed, of a FAIL. `baseline` is the run that the
    machine was compared with. `caveats` are what the verdict does not cover.
    """

    machine: str
    path: Path
    run_id: str
    began: datetime | None
    written: datetime
    verdict: VerdictWord
    partial: bool
    profile: str | None
    reason: str | None
    signer: str | None
    sha256: str
    groups: Mapping[str, str] = field(hash=False)
    checks: int
    not_passed: tuple[tuple[str, NotPassed], ...]
    parts: frozenset[str]
    places: Sequence[int] = field(hash=False)
    values: Sequence[float] = field(hash=False)
    check: str | None = None
    component: str | None = None
    seconds: float = 0.0
    failed: Failure | None = None
    baseline: str | None = None
    caveats: tuple[str, ...] = ()

    def identity(self, began: datetime, *, passed: bool = False) -> MachineRun:
        """What it says of which machine it is of; `began` is its own, `passed` whether it counts as
        a PASS.
        """
        return MachineRun(
            self.machine,
            self.run_id,
            began,
            began + timedelta(seconds=self.seconds),
            self.groups.get("machine_id"),
            self.groups.get("board_serial"),
            self.parts,
            not self.partial,
            passed,
        )

    def proves(self, *, signed: bool) -> VerdictWord:
        """Its word; UNJUDGED of a PASS of a part, or of an unsigned one if it is to be `signed`."""
        no_proof = self.partial or (signed and self.signer is None)
        return "UNJUDGED" if self.verdict == "PASS" and no_proof else self.verdict

    def is_fresh(self, now: datetime, fresh: timedelta) -> bool:
        """Whether its run began no longer ago than `fresh`."""
        return self.began is not None and now - self.began <= fresh

    def is_ahead(self, now: datetime) -> bool:
        """Whether its run began later than its file's time or `now`: by a clock that is ahead."""
        return self.began is not None and self.began > min(now, self.written) + CLOCK


@dataclass(frozen=True, slots=True)
class Trouble:
    """What could not be read; `machine` is None where that belongs to none.

    `folder` is the fleet's folder that it lies in.
    """

    folder: str
    machine: str | None
    message: Message


@dataclass(frozen=True, slots=True)
class Collection:
    """The verdicts of the machines in some folders, and what could not be read in these.

    `proofs` are what the PASSes show that may end a FAIL, by the SHA-256 of their files.
    `acceptances` are those of each machine, by the name of the file, the oldest first.
    """

    folders: tuple[str, ...]
    verdicts: Mapping[str, Sequence[MachineVerdict]]
    troubles: tuple[Trouble, ...]
    series: tuple[Series, ...]
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    acceptances: Mapping[str, Mapping[str, Acceptance]] = field(default_factory=dict)


def collect(
    folders: Iterable[Path], now: datetime, since: datetime, signers: Path | None = None
) -> Collection:
    """Read the verdicts in these folders, those that lie there now.

    Of a machine with a folder for each run, runs that began before `since` by their folder's name
    are left out, but for the newest, for those back to a FAIL or a PASS where no later run was
    either, and for each older FAIL and the PASSes after it. What cannot be read is no trouble in a
    run that is older than a FAIL or a PASS. `signers` is as in `signature.verify`.
    """
    reader = _Reader(now, since, signers)
    for folder in folders:
        reader.list_folder(folder)
    return reader.collection()


def collect_machine(folder: Path, now: datetime, signers: Path | None = None) -> Collection:
    """Read the verdicts of one machine, whose folder this is, whatever lies beside it."""
    reader = _Reader(now, now, signers)
    reader.folders.append(str(folder.parent))
    reader.list_machine(folder.name, folder)
    return reader.collection()


def began(run_id: str) -> datetime | None:
    """When a run began, by its id; None where the id is of another form."""
    found = _RUN_ID.fullmatch(run_id)
    try:
        return found and datetime.strptime(found[1], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC)
    except ValueError:  # the 31st of February
        return None


class _File(NamedTuple):
    """A file of a machine, and the fleet's folder that it lies in.

    `began` is when its run began, by the name of the run's folder; None where that has no date.
    """

    began: datetime | None
    path: Path
    folder: str

    @property
    def written(self) -> datetime | None:
        """When it was written; None where that cannot be known."""
        try:
            return _written(self.path.stat())
        except OSError:
            return None


class _Doubt(NamedTuple):
    """What could not be read of a run, unless a newer verdict decides; times as of a verdict."""

    began: datetime
    written: datetime
    trouble: Trouble


@dataclass
class _Reader:
    now: datetime
    since: datetime
    signers: Path | None
    files: dict[str, list[_File]] = field(default_factory=dict)
    verdicts: dict[str, list[MachineVerdict]] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    doubts: list[_Doubt] = field(default_factory=list)  # of one machine
    series: dict[Series, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    begun: dict[str, tuple[datetime, str, Path, str]] = field(default_factory=dict)
    acceptances: dict[str, dict[str, Acceptance]] = field(default_factory=dict)

    def collection(self) -> Collection:
        """Everything that counts in what was listed."""
        self.read()
        self.cut_off()
        return Collection(
            tuple(self.folders),
            self.verdicts,
            tuple(self.troubles),
            tuple(self.series),
            self.proofs(),
            self.acceptances,
        )

    def list_folder(self, folder: Path) -> None:
        """Find the files in one folder, which holds a folder for each machine."""
        self.folders.append(str(folder.absolute()))
        machines, before = 0, len(self.troubles)
        for path in self._entries(folder, None):
            name = path.name
            if name in (run_folder.VERDICT, PACKED):
                self._trouble(
                    None,
                    Message(
                        english(
                            "fleet_no_machine_folder",
                            "{path} belongs to no machine: give the folder that holds a folder "
                            "for each machine",
                        ),
                        {"path": quoted(path)},
                    ),
                )
            elif self._is_folder(path, name):
                if due.is_name(name):
                    machines += 1
                    self.list_machine(name, path)
                else:
                    self._trouble(
                        None,
                        Message(
                            english(
                                "fleet_no_name",
                                "{path} is no name of a machine, so nothing in it was read: "
                                "rename the folder",
                            ),
                            {"path": quoted(path)},
                        ),
                    )
        if not machines and before == len(self.troubles):
            self._trouble(
                None,
                Message(
                    english("fleet_no_machines", "{path} holds no folder of a machine"),
                    {"path": quoted(folder)},
                ),
            )

    def cut_off(self) -> None:
        """Name the machines whose newest run has no verdict: they died in it, or it goes on."""
        for name, (at, run, path, folder) in self.begun.items():
            dated = (one for one in self.verdicts[name] if one.began is not None)
            if all((one.began, one.run_id) < (at, run) for one in dated):
                message = Message(
                    english(
                        "fleet_cut_off",
                        "{path} is the newest run and has no verdict: it was cut off, or has not "
                        "ended: look at the machine, then test it again",
                    ),
                    {"path": quoted(path)},
                )
                self.troubles.append(Trouble(folder, name, message))

    def read(self) -> None:
        """Read the files of all machines, those of several folders of the fleet together."""
        for name, files in self.files.items():
            known: set[tuple[int, int]] = set()
            runs = sorted((one.began, one) for one in files if one.began is not None)
            older = [(began, one) for began, one in runs[:-1] if began < self.since]
            newer = [one for _, one in runs[len(older) :]]
            for one in (*(one for one in files if one.began is None), *newer):
                self._file(name, one, known)
            while older and not self._newer(name, older[-1][0]):
                self._file(name, older.pop()[1], known)
            self._old_failures(name, [one for _, one in older], known)
            self.troubles.extend(
                doubt.trouble
                for doubt in self.doubts
                if not any(
                    doubt.written <= one.written + COPYING  # else the clock was set back
                    for one in self._newer(name, doubt.began)
                )
            )
            self.doubts.clear()

    def _old_failures(self, name: str, files: Sequence[_File], known: set[tuple[int, int]]) -> None:
        """Read the FAILs among the runs of long ago, the oldest first, and the PASSes after them.

        A PASS need not have ended them. Of the other runs only the first lines are read.
        """
        failed = False
        for one in files:
            found = _WORD.match(_beginning(one.path))
            word = found[1] if found else b""
            failed = failed or word == b"FAIL"
            if word == b"FAIL" or (failed and word == b"PASS"):
                self._file(name, one, known)

    def proofs(self) -> dict[str, Proof]:
        """What those PASSes show that may end a FAIL: of its machine, under whatever name.

        Their files are read again: most PASSes of a fleet end nothing.
        """
        failed = {
            name
            for name, held in self.verdicts.items()
            if any(one.verdict == "FAIL" for one in held)
        }
        gpus = {part for name in failed for one in self.verdicts[name] for part in one.parts}
        found = {}
        for name, held in self.verdicts.items():
            for one in held:
                may_end = name in failed or bool(gpus & one.parts)
                if may_end and one.verdict == "PASS" and not one.partial:
                    with contextlib.suppress(OSError):
                        content = _content(one.path)
                        if hashlib.sha256(content).hexdigest() == one.sha256:
                            found[one.sha256] = ending.proof(verdict_json.read(content))
        return found

    def _acceptance(self, name: str, path: Path) -> None:
        try:
            found = acceptances.read(path, self.signers)
        except (WordedError, OSError) as error:
            why = {"path": quoted(path), "why": said(error)}
            self._trouble(
                name,
                Message(
                    english("fleet_acceptance_unread", "{path}: does not accept a FAIL: {why}"), why
                ),
            )
        else:
            self.acceptances.setdefault(name, {})[path.name] = found

    def _newer(self, name: str, then: datetime) -> list[MachineVerdict]:
        """The FAILs and the PASSes of whole runs of a machine that are newer than a run of then."""
        return [
            one
            for one in self.verdicts[name]
            if one.began is not None
            and one.began > then
            and not one.is_ahead(self.now)
            and one.proves(signed=self.signers is not None) != "UNJUDGED"
        ]

    def _file(self, name: str, file: _File, files: set[tuple[int, int]]) -> None:
        """Read one verdict of a machine, unless it is one of these files or known already."""
        found, path = self.verdicts[name], file.path
        try:
            status = path.stat()
            if (status.st_dev, status.st_ino) in files:  # `latest` beside the run itself
                return
            files.add((status.st_dev, status.st_ino))
            content = _content(path)
        except OSError as error:
            self._wrong(
                name,
                file,
                Message(
                    english("fleet_unread", "{path} cannot be read ({why})"),
                    {"path": quoted(path), "why": _why(error)},
                ),
            )
            self._failed(name, file)
            return
        digest = hashlib.sha256(content).hexdigest()
        same = next((one for one in found if one.sha256 == digest), None)
        if same is not None:  # packed and not, or in two of the folders
            self._of_its_folder(name, file, same.run_id)
            return
        try:
            verdict = verdict_json.read(content)
            if not self._of_its_folder(name, file, verdict.run_id) and verdict.verdict != "FAIL":
                return
            signer = self._signer(path, content, verdict)
            written = _written(status)
            found.append(self._verdict(name, path, verdict, digest, signer, written))
        except UnreadableVerdict as error:
            self._wrong(
                name,
                file,
                Message(
                    english("fleet_no_verdict", "{path} {what}"),
                    {"path": quoted(path), "what": error.message},
                ),
            )
            self._failed(name, file)
        except signature.SignatureError as error:
            # Somebody changed it: no newer verdict makes that less of a trouble.
            altered = Message(
                english("fleet_altered", "{path}: its signature does not hold: {what:lower}"),
                {"path": quoted(path), "what": error.message},
            )
            self.troubles.append(Trouble(file.folder, name, altered))
        except (CommandError, OSError) as error:
            self._wrong(
                name,
                file,
                Message(
                    english("fleet_unverified", "{path}: its signature cannot be checked: {what}"),
                    {"path": quoted(path), "what": said(error)},
                ),
            )

    def _of_its_folder(self, name: str, file: _File, run_id: str) -> bool:
        """Whether a verdict is of the run that its folder is named for; any other is a trouble.

        The run of the folder has no verdict then, and may be newer than that of the file.
        """
        if file.began is None or run_id == file.path.parent.name:
            return True
        values = {"path": quoted(file.path), "run": plain_text.quote(run_id)}
        self._wrong(
            name,
            file,
            Message(
                english(
                    "fleet_of_another_run",
                    "{path} is the verdict of another run ({run}), so the run of that folder has "
                    "none: look at who copied it, then copy the verdict of that run",
                ),
                values,
            ),
        )
        return False

    def _wrong(self, name: str, file: _File, message: Message) -> None:
        """Keep why a file cannot be read, for good where its run has no date."""
        trouble = Trouble(file.folder, name, message)
        if file.began is None:
            self.troubles.append(trouble)
            return
        self.doubts.append(_Doubt(file.began, file.written or file.began, trouble))

    def _failed(self, name: str, file: _File) -> None:
        """Keep a verdict that cannot be read as FAIL where it begins as the FAIL of its run."""
        found = _FAILED.match(_beginning(file.path))
        run = found[1].decode() if found else ""
        at, written = began(run), file.written
        if found is None or at is None or written is None:
            return
        if file.began is not None and run != file.path.parent.name:
            return
        self.verdicts[name].append(
            MachineVerdict(
                machine=name,
                path=file.path,
                run_id=run,
                began=at,
                written=written,
                verdict="FAIL",
                partial=False,
                profile=None,
                reason=None,
                signer=None,
                sha256=hashlib.sha256(found[0]).hexdigest(),
                groups={},
                checks=0,
                not_passed=(),
                parts=frozenset(),
                places=array("i"),
                values=array("d"),
                failed=Failure(),
            )
        )

    def list_machine(self, name: str, folder: Path) -> None:
        """Find the files of a machine: its own and those of its runs."""
        self.verdicts.setdefault(name, [])
        files = self.files.setdefault(name, [])
        before = len(files), len(self.troubles)
        for path in self._entries(folder, name):
            if path.name in (run_folder.VERDICT, PACKED):
                files.append(_File(None, path, self.folders[-1]))
            elif acceptances.FILE.fullmatch(path.name):
                self._acceptance(name, path)
            elif self._is_folder(path, name):
                held = [path / one for one in (run_folder.VERDICT, PACKED)]
                try:
                    first = next((one for one in held if one.exists()), None)
                except OSError:  # a folder that others may not enter: reading it says why
                    first = held[0]
                dated = began(path.name)
                if first is not None:
                    files.append(_File(dated, first, self.folders[-1]))
                elif dated is not None:
                    begun = dated, path.name, path, self.folders[-1]
                    self.begun[name] = max(begun, self.begun.get(name, begun))
        if (len(files), len(self.troubles)) == before and name not in self.begun:
            self._trouble(
                name,
                Message(
                    english("fleet_no_run", "{path} holds no run with a verdict"),
                    {"path": quoted(folder)},
                ),
            )

    def _signer(self, path: Path, content: bytes, file: File) -> str | None:
        if not signature.is_signed(path.parent):
            return None
        found = signature.verify_verdict(path.parent, self.signers, content)
        machine_id = file.provenance.get("machine_id", found.machine_id)
        if (found.run_id, found.machine_id) != (file.run_id, machine_id):
            raise signature.SignatureError(
                english(
                    "evidence_of_another_run",
                    "the evidence here is that of another run ({run}) than the signed one",
                ),
                run=file.run_id,
            )
        return found.signer or found.key

    def _verdict(
        self,
        name: str,
        path: Path,
        file: File,
        digest: str,
        signer: str | None,
        written: datetime,
    ) -> MachineVerdict:
        figures = [
            (check.id, _component(one.component), one)
            for check in file.checks
            for one in check.measurements
        ]
        measured = {
            Series(check, one.measurement, part, one.unit): one.value
            for check, part, one in figures
            if one.value is not UNSET
        }
        places = [self.series.setdefault(key, len(self.series)) for key in measured]
        gpus = (
            one.serial
            for _, part, one in figures
            if isinstance(part, Gpu) and one.serial is not UNSET
        )
        first = verdict_json.head(file)
        groups = {key: file.provenance[key] for key in GROUP_KEYS if file.provenance.get(key)}
        return MachineVerdict(
            name,
            path,
            file.run_id,
            began(file.run_id),
            written,
            file.verdict,
            file.scope != "full",
            None if file.profile is UNSET else file.profile,
            None if first is None else one_line(first.to_do),
            signer,
            digest,
            groups,
            len(file.checks),
            _not_passed(file),
            frozenset(gpus),
            array("i", places),
            array("d", measured.values()),
            None if first is None else first.check,
            None if first is None or first.component is UNSET else first.component,
            _seconds(file),
            ending.failure(file, ending.proof(file)) if file.verdict == "FAIL" else None,
            None if file.baseline is UNSET else file.baseline,
            ("of a version that does not say what the verdict does not cover",)
            if file.caveats is UNSET
            else tuple(one.text for one in file.caveats),
        )

    def _entries(self, folder: Path, machine: str | None) -> Iterator[Path]:
        """What lies in a folder, by name; names with a dot before them are drafts of copiers."""
        try:
            found = sorted(folder.iterdir())
        except OSError as error:
            self._trouble(
                machine, Message("fleet_unread", {"path": quoted(folder), "why": _why(error)})
            )
            return
        yield from (path for path in found if not path.name.startswith("."))

    def _is_folder(self, path: Path, machine: str) -> bool:
        try:
            return stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            if error.errno != errno.ENOENT:  # a link to nothing, or it has gone meanwhile
                owner = machine if due.is_name(machine) else None
                self._trouble(
                    owner, Message("fleet_unread", {"path": quoted(path), "why": _why(error)})
                )
            return False

    def _trouble(self, machine: str | None, message: Message) -> None:
        self.troubles.append(Trouble(self.folders[-1], machine, message))


def quoted(path: Path) -> str:
    """A path for a message: its folders may be anybody's."""
    return plain_text.quote(str(path), 400)


def _component(name: str) -> Component:
    """A component of a verdict. Raises UnreadableVerdict for a name that none has."""
    try:
        return parts.parse(name)
    except ValueError as error:
        raise UnreadableVerdict(
            english("no_verdict", "is no verdict of rigproof ({why})"),
            why=plain_text.quote(str(error)),
        ) from error


def _not_passed(file: File) -> tuple[tuple[str, NotPassed], ...]:
    """The checks of a verdict that are a reason against PASS, by id; fail is worse than error."""
    found: dict[str, NotPassed] = {row.check: "error" for row in file.unjudged}
    found.update({row.check: "fail" for row in file.failures})
    return tuple(sorted(found.items()))


def _seconds(file: File) -> float:
    """How long a run took at least: its checks, without those that ran beside loads of GPUs.

    At most a day: a verdict may say anything.
    """
    return min(sum(one.seconds for one in file.checks if one.session != "host-load"), 86400.0)


def _content(path: Path) -> bytes:
    """The content of a verdict's file, unpacked.

    Raises OSError, NotRegular for what is too large.
    """
    most = regular_file.SMALL_RECORD
    content = regular_file.read(path, most)
    if path.name != PACKED:
        return content
    unpacking = zlib.decompressobj(_GZIP)
    try:
        found = unpacking.decompress(content, most + 1)
    except zlib.error as error:
        raise OSError(errno.EIO, f"it is no whole gzip file: {error}", str(path)) from error
    if len(found) > most:
        held = f"it unpacks to more than {regular_file.size(most)}"
        raise OSError(errno.EFBIG, held, str(path))
    if not unpacking.eof or unpacking.unused_data:
        raise OSError(errno.EIO, "it is no whole gzip file", str(path))
    return found


def _beginning(path: Path) -> bytes:
    """The beginning of a verdict's file, unpacked as far as it can be; empty where it cannot."""
    try:
        regular_file.require(path)
        with path.open("rb") as file:
            content = file.read(_BEGINNING)
    except OSError:
        return b""
    if path.name != PACKED:
        return content
    unpacking, found = zlib.decompressobj(_GZIP), b""
    with contextlib.suppress(zlib.error):  # what stands before the damage is found
        for place in range(0, len(content), _STEP):
            found += unpacking.decompress(content[place : place + _STEP])
    return found


def _written(status: os.stat_result) -> datetime:
    """When a file was written, as far as Python's dates go."""
    return datetime.fromtimestamp(min(max(status.st_mtime, 0.0), _LATEST), UTC)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def night_of(moment: datetime) -> str:
    """The night of a moment, as the date of its evening where the collector is: noon to noon."""
    return f"{moment.astimezone() - timedelta(hours=12):%Y-%m-%d}"
