"""The folder that the storage checks of a fault are to write in, or what lies in its place."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from acceptance.journal import clock
from acceptance.loads import asks
from acceptance.loads.storage.contract import Canary
from acceptance.machine import scratch_place
from selftest.fault import Scratch

_OTHER = 1  # the user `daemon` of every Linux


def lay(path: Path, wanted: Scratch) -> str:
    """Make it; the mounts over it, as lines of shell. Raises OSError."""
    quoted = shlex.quote(str(path))
    if wanted.kind == "missing":
        return ""
    if wanted.kind == "pipe":
        os.mkfifo(path)
        return ""
    if wanted.kind == "file":
        path.write_text("a user's file\n", encoding="ascii")
        return ""
    if wanted.kind == "link":
        path.with_name("elsewhere").mkdir()
        path.symlink_to(path.with_name("elsewhere"))
        return ""
    path.mkdir()
    (path / "thesis.tex").write_text("a user's file\n", encoding="ascii")
    home = Path(scratch_place.home(str(path)))
    if wanted.kind == "other":
        home.mkdir(mode=0o700)
        os.chown(home, _OTHER, _OTHER)
    if wanted.kind == "occupied":
        home.mkdir(mode=0o700)
        (home / "notes").write_text("a user's file\n", encoding="ascii")
    if wanted.sealed_mib:
        _seal(path, home, wanted)
    if wanted.kind == "tmpfs":
        return f"mount -t tmpfs -o size=64m scratch {quoted}\n"
    if wanted.kind == "read-only":
        return f"mount --bind -o ro {quoted} {quoted}\n"
    return ""


def _seal(path: Path, home: Path, wanted: Scratch) -> None:
    """Keep a file as an accepting run does, by the same load; and let it rot."""
    kept = Path(scratch_place.kept_folder(str(path)))
    home.mkdir(mode=0o700)
    kept.mkdir(mode=0o700)
    machine = clock.machine_id()
    (home / "owner").write_text(f"rigproof\n{machine}\n{os.geteuid()}\n", encoding="ascii")
    size = wanted.sealed_mib << 20
    ask = Canary(
        way="write", folder=str(kept), component="disk:sealed", bytes=size, machine=machine
    )
    argv = asks.argv(sys.executable, ask)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60.0)
    if done.returncode != 0:
        raise OSError(f"no file could be sealed: {done.stdout[-300:]}{done.stderr[-300:]}")
    if wanted.rot is not None:
        with Path(scratch_place.sealed_file(str(path))).open("r+b") as file:
            file.seek(wanted.rot)
            (before,) = file.read(1)
            file.seek(wanted.rot)
            file.write(bytes([before ^ 1]))
            file.flush()
            os.fsync(file.fileno())


def listing(path: Path) -> list[str]:
    """What lies there and below it, each with what it holds, in one order; nothing is followed."""
    if not os.path.lexists(path):
        return []
    found = [f"{path.name} {_told(path)}"]
    if path.is_symlink():
        path = path.resolve()
    found += [f"{one.relative_to(path)} {_told(one)}" for one in sorted(path.rglob("*"))]
    return found


def _told(path: Path) -> str:
    about = path.lstat()
    return f"{about.st_mode:o} {about.st_uid} {about.st_size if path.is_file() else ''}".rstrip()
