"""Runs on disk, for tests: a root that the clocks are read from, and segments
written by the real writer.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from acceptance.core.evidence import AnyBody, Sealed
from acceptance.core.language import ENGLISH, Language
from acceptance.core.record import Entry, RunStarted
from acceptance.journal import provenance, reader, seal, segment
from acceptance.journal import run as journal_run
from acceptance.journal.reader import Journal
from acceptance.journal.run import Run
from acceptance.run import outputs

commit, digest = functools.cache(provenance.commit), functools.cache(provenance.package_digest)


def known_provenance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for commit and digest once: they stay as they are while the tests run, and cost two
    programs and every file of the package.
    """
    monkeypatch.setattr(provenance, "commit", commit)
    monkeypatch.setattr(provenance, "package_digest", digest)


RECORDED = {
    path.name: path
    for path in sorted(
        (Path(__file__).resolve().parent.parent / "fixtures/recordings").glob("*/runs/*")
    )
    if path.is_dir()
}
BOOT, MACHINE = "boot-1", "machine-1"


def machine_root(folder: Path, *, boot: str = BOOT, machine: str = MACHINE) -> Path:
    """A root directory with nothing in it but what tells a boot and a machine from others."""
    kernel = folder / "proc/sys/kernel"
    (kernel / "random").mkdir(parents=True, exist_ok=True)
    (kernel / "random/boot_id").write_text(f"{boot}\n")
    (kernel / "hostname").write_text("box\n")
    (folder / "etc").mkdir(exist_ok=True)
    (folder / "etc/machine-id").write_text(f"{machine}\n")
    return folder


def write_segment(
    path: Path, records: Iterable[AnyBody], root: Path, *, seals: bool = False
) -> Path:
    """Write one segment, its folder included; its head names the run that it lies in.

    The last one of a whole run `seals` it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held = list(records)
    start = next((one for one in held if isinstance(one, RunStarted)), None) or _start(path.parent)
    run_id, machine_id = (start.run_id, start.machine_id) if start else (None, None)
    with segment.Writer(path, root, run_id, machine_id) as writer:
        for record in held:
            writer.write(record)
        if seals:
            seal.write(writer)
    return path


def _start(folder: Path) -> RunStarted | None:
    with contextlib.suppress(segment.JournalError):
        _, first = reader.read_first_record(folder)
        if first is not None and isinstance(first.body, RunStarted):
            return first.body
    return None


def sealed(folder: Path) -> Path:
    """Seal a run that was written by hand, as the start that closes it does."""
    head, _ = reader.read_first_record(folder)
    start = _start(folder)
    if head.rigproof_journal < segment.SEALED_SINCE or start is None:
        return folder
    root = machine_root(folder.parent / f".{folder.name}-root", boot=head.boot_id)
    path = folder / f"{reader.CLOSING}-9.jsonl"
    with segment.Writer(path, root, start.run_id, start.machine_id) as writer:
        seal.write(writer)
    return folder


def write_views(folder: Path, language: Language = ENGLISH) -> Run:
    """Read a run and write its files, as its end does."""
    if not any(isinstance(entry.body, Sealed) for entry in reader.read(folder).entries):
        sealed(folder)
    run = journal_run.read(folder)
    outputs.write(run, language)
    return run


def judged(entries: Iterable[Entry], torn: Iterable[str] = ()) -> Run:
    """A run of these entries, as if they had been read from a folder."""
    folder = Path("/runs/run-1")
    return journal_run.of_live(Journal(folder, tuple(entries), tuple(torn), ("boot",), 1))


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for something that another process does.

    The bound is for a machine that is busy with other things.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.01)


def unpacked(recorded: Path, folder: Path) -> Path:
    """A copy of a recorded run, its packed files as the harness wrote them."""
    shutil.copytree(recorded, folder)
    for packed in folder.rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    return folder


def recorded(name: str) -> Run:
    """The recorded run of this name. Its samples are not read: its folder is gone."""
    with tempfile.TemporaryDirectory() as folder:
        return journal_run.read(unpacked(RECORDED[name], Path(folder) / "run"))
