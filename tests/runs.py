"""Runs on disk, for tests: a root that the clocks are read from, and segments
written by the real writer.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from acceptance.core.record import Body
from acceptance.journal import provenance, segment

commit, digest = functools.cache(provenance.commit), functools.cache(provenance.package_digest)


def known_provenance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for commit and digest once: they stay as they are while the tests run, and cost two
    programs and every file of the package.
    """
    monkeypatch.setattr(provenance, "commit", commit)
    monkeypatch.setattr(provenance, "package_digest", digest)


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


def write_segment(path: Path, records: Iterable[Body], root: Path) -> Path:
    """Write one segment, its folder included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with segment.Writer(path, root) as writer:
        for record in records:
            writer.write(record)
    return path


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for something that another process does.

    The bound is for a machine that is busy with other things.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.01)
