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

from acceptance.core import regular_file
from acceptance.core.message import Message, english
from acceptance.core.spans import first_record
from acceptance.history import baseline, night
from acceptance.history import folder as history_folder
from acceptance.history.baseline import Certificate, FormerBaseline
from acceptance.history.errors import HistoryError
from acceptance.history.noise import NoiseBook
from acceptance.journal import clock, provenance, reader, run_folder
from acceptance.journal import run as journal_run
from acceptance.wording.errors import WordedUserError

NAME, FORMER = "baseline.json", "baselines"
WAIT_S = 20.0  # any other writer takes about a second
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
    return history_folder.folder(out, machine_id) / NAME


def read(out: Path, machine_id: str) -> Baseline | None:
    """The baseline of a machine; None if none was ever recorded.

    Raises HistoryError if it cannot be read or its seal is broken: a run that should be compared
    with it is unjudged.
    """
    return _read(path(out, machine_id), machine_id)


def _read(file: Path, machine_id: str) -> Baseline | None:
    try:
        content = regular_file.read(file, regular_file.SMALL_RECORD)
    except FileNotFoundError:
        if one := next(_former_files(file.parent), None):
            raise _unsound(
                file,
                Message(
                    english("baseline_gone", "is gone, and {former} shows that there was one"),
                    {"former": str(one)},
                ),
            ) from None
        return None
    except OSError as error:
        if isinstance(error, regular_file.NotRegular):
            why = Message(
                english("cannot_be_read", "cannot be read ({why})"), {"why": str(error.strerror)}
            )
            raise _unsound(file, why) from error
        raise HistoryError(
            english(
                "baseline_unread",
                "{path}: cannot be read ({why}): fix its permissions, or run as the user who made "
                "it",
            ),
            path=str(file),
            why=error.strerror,
        ) from error
    found = _opened(file, content)
    if found.certificate.machine_id != machine_id:
        machine = found.certificate.machine_id
        raise _unsound(
            file,
            Message(
                english(
                    "baseline_of_other_machine", "is the baseline of another machine ({machine})"
                ),
                {"machine": machine},
            ),
        )
    return found


def _unsound(file: Path, why: Message) -> HistoryError:
    """The error for a file that another one must replace."""
    return HistoryError(
        english(
            "baseline_unsound",
            "{path}: {why}: put a copy of it back, or accept a run that passed with `rigproof "
            "baseline accept RUN --replace` ({former} has earlier ones)",
        ),
        path=str(file),
        why=why,
        former=f"{FORMER}/",
    )


def require(out: Path, machine_id: str) -> Baseline:
    """The baseline of a machine. Raises WordedUserError if there is none, and HistoryError."""
    found = read(out, machine_id)
    if found is None:
        raise WordedUserError(
            english(
                "no_baseline",
                "{path}: there is no baseline of this machine: accept a run that passed with "
                "`rigproof baseline accept RUN`",
            ),
            path=str(path(out, machine_id)),
        )
    return found


def _opened(file: Path, content: bytes) -> Baseline:
    try:
        found, sha256 = baseline.decode_certificate(content)
    except HistoryError as error:
        if error.message.code == "certificate_newer":
            raise HistoryError(
                english("baseline_newer", "{path}: {why}: install a newer rigproof"),
                path=str(file),
                why=error.message,
            ) from error
        raise _unsound(file, error.message) from error
    return Baseline(found, sha256, file)


def _former_files(folder: Path) -> Iterator[Path]:
    """The files of earlier baselines."""
    with contextlib.suppress(OSError):
        yield from sorted((folder / FORMER).glob("*.json"))


def former_baselines(out: Path, machine_id: str) -> tuple[Baseline, ...]:
    """The earlier baselines that can be read and whose seals are intact, oldest first."""
    found = []
    for file in _former_files(path(out, machine_id).parent):
        with contextlib.suppress(HistoryError, OSError):
            found.append(_opened(file, regular_file.read(file, regular_file.SMALL_RECORD)))
    return tuple(sorted(found, key=lambda one: one.certificate.accepted_utc))


def accept(
    run_dir: Path, out: Path, book: NoiseBook, *, replace: bool = False, root: Path = Path("/")
) -> AcceptResult:
    """Make a recorded run the baseline of this machine.

    With `replace` it may replace another baseline, with which it is then not compared.

    Raises WordedUserError if the run cannot be a baseline, or, without `replace`, if there is one
    already. Raises HistoryError if the file cannot be written, or, without `replace`, if the
    present one cannot be trusted. On an error the present baseline stays. Raises JournalError
    too.
    """
    made = _certificate_of(run_dir, book, root, anew=replace)
    file = path(out, made.machine_id)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with history_folder.hold(file.parent / ".lock", WAIT_S):
            return _store(file, made, replace=replace)
    except history_folder.Locked as error:
        raise HistoryError(
            english(
                "baseline_locked",
                "{path}: another process is writing it ({holder}): wait until it has ended",
            ),
            path=str(file),
            holder=str(error),
        ) from error
    except OSError as error:
        where = str(error.filename or file)
        why = run_folder.reason(error, Path(where))
        raise HistoryError(
            english(
                "baseline_unwritten",
                "{path}: cannot be written ({why}): make room there, or fix its permissions, then "
                "accept the run again",
            ),
            path=where,
            why=why,
        ) from error


def _certificate_of(run_dir: Path, book: NoiseBook, root: Path, *, anew: bool) -> Certificate:
    """The certificate of a run of this machine, without a predecessor.

    `anew` is as in `baseline.make`. Raises WordedUserError or JournalError.
    """
    journal = reader.read(run_dir)
    if journal.torn:
        raise WordedUserError(
            english("torn_run", "{run}: {torn}: run `rigproof accept` again"),
            run=str(run_dir),
            torn=journal.torn[0],
        )
    if first_record(journal.entries) is None:
        raise WordedUserError(
            english(
                "run_without_plan",
                "{run}: was ended before its plan was written, so it proves nothing: run "
                "`rigproof accept` again",
            ),
            run=str(run_dir),
        )
    run = journal_run.of_journal(journal)
    start = run.start
    if start.machine_id != clock.machine_id(root):
        raise WordedUserError(
            english(
                "run_of_other_machine",
                "{run}: is a run of another machine ({machine}): accept it on that machine",
            ),
            run=str(run_dir),
            machine=start.machine_id,
        )
    try:
        made = baseline.make(
            run,
            book.with_site(run.plan.site),
            folder=run_dir.resolve().name,
            accepted_utc=clock.utc(),
            rigproof=provenance.version(),
            era=night.era_of_run(run.plan, start.provenance, run.inventory).facts,
            anew=anew,
        )
    except WordedUserError as error:
        raise WordedUserError(
            english("run_rejected", "{run}: {why}"), run=str(run_dir), why=error.message
        ) from error
    if run.seal.old:
        raise WordedUserError(
            english(
                "run_not_sealed",
                "{run}: is of a rigproof that did not seal its evidence, so nobody can tell "
                "whether it was changed: run the test again, and accept that run",
            ),
            run=str(run_dir),
        )
    return made


def _store(file: Path, certificate: Certificate, *, replace: bool) -> AcceptResult:
    """Write the certificate; the caller holds the lock.

    Raises WordedUserError, HistoryError, and OSError if the disk refuses it.
    """
    try:
        before = _read(file, certificate.machine_id)
    except HistoryError:
        if not replace:
            raise
        before = None
    if before is not None:
        known = before.certificate
        if known.machine.run_id == certificate.machine.run_id:
            return AcceptResult(before, already=True)
        if not replace:
            raise WordedUserError(
                english(
                    "baseline_there",
                    "{path}: run {run} is the baseline since {date}: add --replace to put this "
                    "run in its place (the old one is kept)",
                ),
                path=str(file),
                run=known.machine.run_id,
                date=known.accepted_utc[:10],
            )
    former = _keep(file, before)
    if before is not None:
        known = before.certificate
        replaces = FormerBaseline(known.machine.run_id, known.accepted_utc, before.sha256)
        certificate = msgspec.structs.replace(certificate, replaces=replaces)
    content = baseline.encode_certificate(certificate)
    history_folder.write(file.parent, [(file.name, content)])
    return AcceptResult(_opened(file, content), former)


def _keep(file: Path, before: Baseline | None) -> Path | None:
    """Keep the present file under another name, sound or not; None if there is no regular file."""
    try:
        content = regular_file.read(file, regular_file.SMALL_RECORD)
    except (FileNotFoundError, regular_file.NotRegular):
        return None
    run_id = before.certificate.machine.run_id if before else ""
    name = run_id if _PLAIN.fullmatch(run_id) else f"unsound-{clock.utc().replace(':', '-')}"
    kept = file.parent / FORMER / f"{name}.json"
    if kept.exists() and not _holds(kept, content):
        kept = kept.with_name(f"{name}-{clock.utc().replace(':', '-')}.json")
    kept.parent.mkdir(exist_ok=True)
    history_folder.write(kept.parent, [(kept.name, content)])
    return kept


def _holds(file: Path, content: bytes) -> bool:
    """Whether a file exists with exactly this content."""
    with contextlib.suppress(OSError):
        return regular_file.read(file, regular_file.SMALL_RECORD) == content
    return False
