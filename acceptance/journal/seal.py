"""The seal of a run: its last record, which names every file of the evidence with its SHA-256.

Evidence are the segments, the telemetry, the kept outputs of the programs, and the run's copy of
the site's own checks. The views of a run are not sealed: they can be made again. Nor is what
somebody lays beside, unless it is named like evidence. A seal is no signature: who may write into
the folder can seal it anew.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.evidence import Sealed, SealedFile
from acceptance.core.message import Listed, Message, english
from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import segment_of, side_by_side
from acceptance.core.record import (
    Entry,
    Measured,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    records,
)
from acceptance.journal import reader, segment
from acceptance.journal.reader import Journal

_SEGMENT = re.compile(r"(?:journal|telemetry)[^/]*\.jsonl")
_OUTPUT = re.compile(r"[^/]+\.log(?:\.err)?")
_PIECE = 1 << 20
LOGS = "logs"
SITE_CHECKS = "site-checks"
_NAMED = 10  # files that differ are named, and the others counted
# Hundred bits of the digest are read out at hand-over: nobody finds a second file with them.
_SPOKEN = 20  # letters of base32, 5 bits each


@dataclass(frozen=True, slots=True)
class Seal:
    """What the evidence of a run is worth.

    `digest` is that of the seal, None without one. `old`: the run is of a version without seals.
    `troubles` name what is missing, changed, foreign or does not belong together.
    """

    digest: str | None = None
    old: bool = False
    troubles: tuple[Message, ...] = ()

    @property
    def spoken(self) -> str | None:
        """The first hundred bits of the digest in groups of four letters, to be read out."""
        if self.digest is None:
            return None
        letters = base64.b32encode(bytes.fromhex(self.digest)).decode("ascii")[:_SPOKEN]
        return "-".join(letters[at : at + 4] for at in range(0, _SPOKEN, 4))


def evidence(run_dir: Path) -> dict[str, Path]:
    """All files of the evidence, and all that is named like it, by their names in the seal.

    A byte of a name that is not UTF-8 stands there by its number. Raises JournalError where the
    folder cannot be read.
    """
    try:
        found = [path for path in run_dir.iterdir() if _SEGMENT.fullmatch(path.name)]
        if (logs := run_dir / LOGS).is_dir():
            found += [path for path in logs.iterdir() if _OUTPUT.fullmatch(path.name)]
        if (site := run_dir / SITE_CHECKS).is_dir():
            found += site.iterdir()
    except OSError as error:
        raise _unread(Path(error.filename or run_dir), error) from error
    return {_name(path.relative_to(run_dir)): path for path in sorted(found)}


def _unread(path: Path, error: OSError) -> segment.JournalError:
    return segment.JournalError(
        english("evidence_unread", "{path} cannot be read ({why})"),
        path=str(path),
        why=error.strerror,
    )


def _name(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def write(writer: segment.Writer) -> None:
    """Seal a run by the last record of this segment, when every other file is whole.

    Every file is on the disk before its seal is: after a power cut nothing sealed may be missing. A
    file that cannot be read is left out, and is foreign to the run from then on. Raises
    JournalError where the record cannot be written.
    """
    run_dir = writer.path.parent
    writer.sync()
    files: list[SealedFile] = []
    for name, path in evidence(run_dir).items():
        with contextlib.suppress(segment.JournalError):
            files.append(_sealed(path, name, to_disk=True))
    writer.write(Sealed(digest_of(writer.head.run_id, writer.head.machine_id, files), tuple(files)))


def digest_of(run_id: str | None, machine_id: str | None, files: Sequence[SealedFile]) -> str:
    """The SHA-256 over run, machine, and the names, lines and digests of all files."""
    named = [(one.name, one.lines, one.sha256) for one in files]
    return hashlib.sha256(segment.encoded((run_id, machine_id, named))).hexdigest()


def look(journal: Journal) -> Seal:
    """Hold a run's evidence against its seal, and its segments against each other.

    Raises JournalError where the folder cannot be read.
    """
    start = next((one.body for one in journal.entries if isinstance(one.body, RunStarted)), None)
    own = journal.heads.get(reader.SUPERVISOR)
    seals = _seals(journal)
    if is_old(journal) and not seals:
        newer = _newer(journal)
        foreign = (
            (
                Message(
                    english(
                        "segments_newer",
                        "segments of a newer rigproof lie in a run of an older one: {files}",
                    ),
                    {"files": Listed(newer)},
                ),
            )
            if newer
            else ()
        )
        return Seal(old=not foreign, troubles=foreign)
    if start is None or own is None:
        return Seal(
            troubles=(
                Message(
                    english(
                        "not_sealed",
                        "the run has no seal: its evidence may have been changed since; run the "
                        "test again",
                    )
                ),
            )
        )
    strangers = (*journal.unread, *_strangers(journal, start, own))
    if len(seals) != 1:
        ended = any(isinstance(one.body, RunEnded | RunClosed) for one in journal.entries)
        code = (
            "not_sealed"
            if ended
            else english(
                "not_closed",
                "the run is not closed: it goes on, or it was cut off; then the next start closes "
                "it, or `rigproof report RUN`",
            )
        )
        missing = (
            Message(
                english(
                    "sealed_again",
                    "the run has {times} seals, not one: its evidence was changed; run the test "
                    "again",
                ),
                {"times": len(seals)},
            )
            if seals
            else Message(code)
        )
        return Seal(troubles=(missing, *strangers))
    (entry,) = seals
    assert isinstance(entry.body, Sealed)
    troubles = list(_differences(journal, start, entry, entry.body))
    if (more := len(troubles) - _NAMED) > 0:
        troubles[_NAMED:] = [
            Message(
                english("evidence_more", "{count} more files differ from the seal"), {"count": more}
            )
        ]
    # reckoned, not read: what a record holds may be any text
    digest = digest_of(start.run_id, start.machine_id, entry.body.files)
    return Seal(digest, troubles=(*troubles, *strangers))


def is_old(journal: Journal) -> bool:
    """Whether the run is of a version without seals, by the head of its first segment."""
    own = journal.heads.get(reader.SUPERVISOR)
    return own is not None and own.rigproof_journal < segment.SEALED_SINCE


def own_entries(journal: Journal) -> tuple[Entry, ...]:
    """The records of the segments that the seal names; all of them where there is no one seal.

    What it does not name is not of this run, and must not change what the run says.
    """
    seals = _seals(journal)
    if len(seals) != 1:
        return journal.entries
    (entry,) = seals
    assert isinstance(entry.body, Sealed)
    named = {entry.segment, *(one.name for one in entry.body.files)}
    return tuple(one for one in journal.entries if one.segment in named)


def _seals(journal: Journal) -> list[Entry]:
    """The seals in the segments that may hold one: the supervisor's, and that of a later start."""
    return [
        one
        for one in journal.entries
        if isinstance(one.body, Sealed)
        and (one.segment == reader.SUPERVISOR or one.segment.startswith(reader.CLOSING))
    ]


def _newer(journal: Journal) -> tuple[str, ...]:
    """The segments of a version with seals; a later start may have closed an old run."""
    heads = dict(journal.heads)
    with contextlib.suppress(segment.JournalError):  # nobody looked at the telemetry of old runs
        for name, head, _ in reader.telemetry_ends(journal.run_dir):
            heads[name] = head
    return tuple(
        name
        for name, head in heads.items()
        if (head.run_id is not None or head.rigproof_journal >= segment.SEALED_SINCE)
        and not name.startswith(reader.CLOSING)
    )


def _sealed(path: Path, name: str, most: int | None = None, *, to_disk: bool = False) -> SealedFile:
    """A file as it is now; only its first `most` bytes where that is given."""
    lines, found = 0, hashlib.sha256()
    try:
        if path.is_symlink():
            raise segment.JournalError("evidence_is_link", path=str(path))
        with regular_file.open_read(path, regular_file.TELEMETRY_BYTES) as file:
            left = most
            while piece := file.read(_PIECE if left is None else min(_PIECE, left)):
                found.update(piece)
                lines += piece.count(b"\n")
                left = None if left is None else left - len(piece)
            if to_disk:
                os.fsync(file)
    except OSError as error:
        raise _unread(path, error) from error
    return SealedFile(name, lines, found.hexdigest())


def _differences(
    journal: Journal, start: RunStarted, entry: Entry, seal: Sealed
) -> Iterator[Message]:
    """What differs from the seal, file by file."""
    named = {one.name: one for one in seal.files}
    if len(named) != len(seal.files) or seal.digest != digest_of(
        start.run_id, start.machine_id, seal.files
    ):
        yield Message(
            english(
                "seal_differs",
                "the seal does not fit the files that it names, or belongs to another run or "
                "machine",
            )
        )
    if entry.segment not in named:
        yield Message(
            english("seal_elsewhere", "the seal stands in {file}, which it does not name"),
            {"file": entry.segment},
        )
    for folder in (LOGS, SITE_CHECKS):
        if (journal.run_dir / folder).is_symlink():
            yield Message(
                english("evidence_is_link", "{path} is a link, not a file of this run"),
                {"path": folder},
            )
    present = evidence(journal.run_dir)
    for name, due in named.items():
        if name not in present:
            yield Message(
                english(
                    "evidence_missing",
                    "{file} is missing: the seal names it; put it back from a copy, or run the "
                    "test again",
                ),
                {"file": name},
            )
            continue
        try:
            most = None
            if name == entry.segment:
                most, last = _before(present[name], entry.seq)
                if not last:
                    yield Message(
                        english("written_after_seal", "{file} was written to after the seal"),
                        {"file": name},
                    )
            found = _sealed(present[name], name, most)
        except segment.JournalError as error:
            yield error.message
            continue
        if found != due:
            yield Message(
                english(
                    "evidence_changed",
                    "{file} was changed after the seal; put it back from a copy, or run the test "
                    "again",
                ),
                {"file": name},
            )
    for name in sorted(present.keys() - named.keys()):
        yield Message(
            english(
                "evidence_foreign",
                "{file} is not of this run: the seal does not name it; take it out of the folder",
            ),
            {"file": name},
        )


def _before(path: Path, seq: int) -> tuple[int, bool]:
    """The bytes before the record of this number, and whether nothing follows it."""
    data = regular_file.read(path, segment.most_bytes(path))
    at = 0
    for _ in range(seq + 1):  # the head, and the records before
        at = data.index(b"\n", at) + 1
    end = data.find(b"\n", at)
    return at, end == len(data) - 1


def _strangers(journal: Journal, start: RunStarted, own: segment.SegmentHead) -> Iterator[Message]:
    """What does not belong to this run: segments, and records in them."""
    entries: dict[str, list[Entry]] = {}
    for entry in journal.entries:
        entries.setdefault(entry.segment, []).append(entry)
    for found in entries.values():
        found.sort(key=lambda entry: entry.seq)
    heads = dict(journal.heads)
    try:
        for name, head, ends in reader.telemetry_ends(journal.run_dir):
            heads[name], entries[name] = head, list(ends)
    except segment.JournalError as error:
        yield error.message
    for name, head in heads.items():
        due = (own.rigproof_journal, name, start.run_id, start.machine_id)
        if (head.rigproof_journal, head.segment, head.run_id, head.machine_id) != due:
            yield Message(
                english(
                    "segment_of_another_run",
                    "{file} is of another run, machine or version of rigproof",
                ),
                {"file": name},
            )
        elif name.startswith(reader.CLOSING):
            if not all(isinstance(one.body, RunClosed | Sealed) for one in entries.get(name, ())):
                yield Message("segment_of_another_run", {"file": name})
        elif head.boot_id != own.boot_id:
            yield Message(
                english("segment_of_another_boot", "{file} is of another boot of the machine"),
                {"file": name},
            )
    for name, found in entries.items():
        if any(second.boot_s < first.boot_s for first, second in pairwise(found)):
            yield Message(
                english("clock_ran_back", "the times in {file} run backwards"), {"file": name}
            )
    yield from _beyond(entries)
    yield from _outside(entries)


def _beyond(entries: dict[str, list[Entry]]) -> Iterator[Message]:
    """Segments with records before the run's first one, or after its end."""
    own = entries.get(reader.SUPERVISOR, [])
    ended = [one.boot_s for one in own if isinstance(one.body, Sealed)]
    for name, found in entries.items():
        if own and found and not name.startswith(reader.CLOSING):
            late = ended and found[-1].boot_s > ended[0]
            if found[0].boot_s < own[0].boot_s or (late and name != reader.SUPERVISOR):
                yield Message(
                    english(
                        "segment_outside",
                        "the records of {file} do not lie within the time of the run",
                    ),
                    {"file": name},
                )


def _outside(entries: dict[str, list[Entry]]) -> Iterator[Message]:
    """Sessions whose records do not lie in the time that the supervisor gave them.

    A session lies between the supervisor's record before its end and that end; of two side by
    side, before the first end. Only the clock since boot counts: it is one clock for all writers of
    a boot, and nobody sets it. The wall clock of a new machine may be set at any moment, and often.
    """
    own = entries.get(reader.SUPERVISOR, [])
    before = own[0] if own else None
    for previous, end in pairwise(own):
        if not isinstance(end.body, SessionEnded):
            continue
        ended = previous.body
        beside = isinstance(ended, SessionEnded) and side_by_side(ended.session, end.body.session)
        before = before if beside and before is not None else previous
        name = segment_of(end.body.session)
        found = entries.get(name, [])
        begun = [one for one in found if isinstance(one.body, SessionStarted)]
        if begun and not before.boot_s <= found[0].boot_s <= found[-1].boot_s <= end.boot_s:
            yield Message(
                english("session_outside", "the records of {file} do not lie within its session"),
                {"file": name},
            )


def other_parts(entries: Sequence[Entry], identities: dict[Component, str]) -> Iterator[Message]:
    """Values of parts that this machine does not have, by the serials in the records."""
    told = set()
    for entry, body in records(entries, Measured):
        # tools tell the serials of other parts in forms of their own
        if body.serial is None or not isinstance(body.component, Gpu):
            continue
        due = identities.get(body.component)
        if due is not None and body.serial != due and (entry.segment, body.component) not in told:
            told.add((entry.segment, body.component))
            values = {"file": entry.segment, "component": str(body.component)}
            yield Message(
                english(
                    "part_of_another_machine",
                    "{file} tells of another {component}: {serial}, and the machine has {due}",
                ),
                {**values, "serial": body.serial, "due": due},
            )
