"""The baseline's file: read it, and make a run the baseline.

It is `baseline.json` beside the history; replaced ones are kept in `baselines/`. There is a whole
file at every moment.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance import __version__
from acceptance.core import duration, regular_file
from acceptance.history import baseline, durable_file, era, location
from acceptance.history.baseline import Certificate, FormerBaseline
from acceptance.history.errors import BaselineRefused, BaselineUnsound, HistoryError
from acceptance.history.lock import history_lock
from acceptance.history.noise import NoiseBook
from acceptance.journal import clock, reader
from acceptance.journal import run as journal_run

NAME, FORMER = "baseline.json", "baselines"
_NONE = "accept a run that passed with `rigproof baseline accept RUN`"
_SOUND = (
    "put a copy of it back, or accept a run that passed with `rigproof baseline accept RUN "
    f"--replace` ({FORMER}/ has earlier ones)"
)
_UNREAD = "mend its permissions, or run as the user who made it"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class Baseline:
    """A certificate with its seal and its file."""

    certificate: Certificate
    sha256: str
    path: Path


@dataclass(frozen=True, slots=True)
class AcceptResult:
    """The result of making a run the baseline.

    `former` is the file that keeps the previous baseline; `already` says that the run was the
    baseline before.
    """

    baseline: Baseline
    former: Path | None = None
    already: bool = False


def path(out: Path, machine_id: str) -> Path:
    """The path of a machine's baseline, whether or not it exists."""
    return location.folder(out, machine_id) / NAME


def read(out: Path, machine_id: str) -> Baseline | None:
    """The baseline of a machine; None if none was ever recorded.

    Raises BaselineUnsound if it cannot be read or its seal is broken: a run that should be compared
    with it is unjudged.
    """
    return _read(path(out, machine_id), machine_id)


def _read(file: Path, machine_id: str) -> Baseline | None:
    try:
        content = regular_file.read(file, regular_file.SMALL_RECORD)
    except FileNotFoundError:
        if one := next(_former_files(file.parent), None):
            raise BaselineUnsound(
                f"{file}: is gone, and {one} shows that there was one: {_SOUND}"
            ) from None
        return None
    except OSError as error:
        cure = _SOUND if isinstance(error, regular_file.NotRegular) else _UNREAD
        raise BaselineUnsound(f"{file}: cannot be read ({error.strerror}): {cure}") from error
    found = _opened(file, content)
    if found.certificate.machine_id != machine_id:
        raise BaselineUnsound(
            f"{file}: is the baseline of another machine ({found.certificate.machine_id}): {_SOUND}"
        )
    return found


def require(out: Path, machine_id: str) -> Baseline:
    """The baseline of a machine. Raises BaselineRefused if there is none, and BaselineUnsound."""
    found = read(out, machine_id)
    if found is None:
        raise BaselineRefused(
            f"{path(out, machine_id)}: there is no baseline of this machine: {_NONE}"
        )
    return found


def _opened(file: Path, content: bytes) -> Baseline:
    try:
        found, sha256 = baseline.decode_certificate(content)
    except baseline.BrokenSeal as error:
        raise BaselineUnsound(f"{file}: {error}: {_SOUND}") from error
    except baseline.NewerFormat as error:
        raise BaselineUnsound(f"{file}: {error}: install a newer rigproof") from error
    return Baseline(found, sha256, file)


def _former_files(folder: Path) -> Iterator[Path]:
    """The files of earlier baselines."""
    with contextlib.suppress(OSError):
        yield from sorted((folder / FORMER).glob("*.json"))


def former_baselines(out: Path, machine_id: str) -> tuple[Baseline, ...]:
    """The earlier baselines that can be read and whose seals are intact, oldest first."""
    found = []
    for file in _former_files(path(out, machine_id).parent):
        with contextlib.suppress(BaselineUnsound, OSError):
            found.append(_opened(file, regular_file.read(file, regular_file.SMALL_RECORD)))
    return tuple(sorted(found, key=lambda one: one.certificate.accepted_utc))


def accept(
    run_dir: Path, out: Path, book: NoiseBook, *, replace: bool = False, root: Path = Path("/")
) -> AcceptResult:
    """Make a recorded run the baseline of this machine.

    With `replace` it may replace another baseline, with which it is then not compared.

    Raises BaselineRefused if the run cannot be a baseline, or, without `replace`, if there is one
    already. Raises BaselineUnsound if the file cannot be written, or, without `replace`, if the
    present one cannot be trusted. On an error the present baseline stays. Raises JournalError and
    UnreadableRun too.
    """
    made = _certificate_of(run_dir, book, root, anew=replace)
    file = path(out, made.machine_id)
    try:
        with history_lock(file.parent):
            return _store(file, made, replace=replace)
    except HistoryError as error:
        raise BaselineUnsound(str(error)) from error
    except OSError as error:
        text = f"{error.filename or file}: cannot be written ({error.strerror})"
        raise BaselineUnsound(
            f"{text}: make room there, or mend its permissions, then accept the run again"
        ) from error


def _certificate_of(run_dir: Path, book: NoiseBook, root: Path, *, anew: bool) -> Certificate:
    """The certificate of a run of this machine, without a predecessor.

    `anew` is as in `baseline.make`. Raises BaselineRefused, JournalError or UnreadableRun.
    """
    journal = reader.read(run_dir)
    if journal.torn:
        raise BaselineRefused(f"{run_dir}: {journal.torn[0]}: {baseline.RUN_AGAIN}")
    if duration.first_record(journal.entries) is None:
        raise BaselineRefused(
            f"{run_dir}: was ended before its plan was written, so it proves nothing: "
            f"{baseline.RUN_AGAIN}"
        )
    run = journal_run.judge(journal)
    start = run.start
    if start.machine_id != clock.machine_id(root):
        raise BaselineRefused(
            f"{run_dir}: is a run of another machine ({start.machine_id}): accept it on that "
            "machine"
        )
    try:
        return baseline.make(
            run,
            book,
            folder=run_dir.resolve().name,
            accepted_utc=clock.utc(),
            rigproof=__version__,
            era=era.era_of_run(run.plan, start.provenance, run.inventory).facts,
            anew=anew,
        )
    except baseline.RunRejected as error:
        raise BaselineRefused(f"{run_dir}: {error}") from error


def _store(file: Path, certificate: Certificate, *, replace: bool) -> AcceptResult:
    """Write the certificate; the caller holds the lock.

    Raises BaselineRefused, BaselineUnsound, and OSError if the disk refuses it.
    """
    try:
        before = _read(file, certificate.machine_id)
    except BaselineUnsound:
        if not replace:
            raise
        before = None
    if before is not None:
        known = before.certificate
        if known.birth.run_id == certificate.birth.run_id:
            return AcceptResult(before, already=True)
        if not replace:
            text = (
                f"{file}: run {known.birth.run_id} is the baseline since {known.accepted_utc[:10]}"
            )
            raise BaselineRefused(
                f"{text}: add --replace to put this run in its place (the old one is kept)"
            )
    former = _keep(file, before)
    if before is not None:
        known = before.certificate
        replaces = FormerBaseline(known.birth.run_id, known.accepted_utc, before.sha256)
        certificate = msgspec.structs.replace(certificate, replaces=replaces)
    content = baseline.encode_certificate(certificate)
    durable_file.write(file.parent, [(file.name, content)])
    return AcceptResult(_opened(file, content), former)


def _keep(file: Path, before: Baseline | None) -> Path | None:
    """Keep the present file under another name, sound or not; None if there is no regular file."""
    try:
        content = regular_file.read(file, regular_file.SMALL_RECORD)
    except (FileNotFoundError, regular_file.NotRegular):
        return None
    run_id = before.certificate.birth.run_id if before else ""
    name = run_id if _PLAIN.fullmatch(run_id) else f"unsound-{clock.utc().replace(':', '-')}"
    kept = file.parent / FORMER / f"{name}.json"
    if kept.exists() and not _holds(kept, content):
        kept = kept.with_name(f"{name}-{clock.utc().replace(':', '-')}.json")
    kept.parent.mkdir(exist_ok=True)
    durable_file.write(kept.parent, [(kept.name, content)])
    return kept


def _holds(file: Path, content: bytes) -> bool:
    """Whether a file exists with exactly this content."""
    with contextlib.suppress(OSError):
        return regular_file.read(file, regular_file.SMALL_RECORD) == content
    return False
