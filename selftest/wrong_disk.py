"""A disk that does wrong: the library that is preloaded into rigproof and the programs that it
starts.

It stands between a program and the files that rigproof makes on a disk, where the kernel has no
block layer of faults to offer (dm-flakey, dm-error and null_blk need modules that not every kernel
has): wrong bits, lost writes, errors, and a pace. Nothing else on the machine is changed.
"""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

from selftest.fault import WrongDisk

SOURCE = Path(__file__).with_suffix(".c")
LIBRARY = "wrong_disk.so"
VARIABLE = "RIGPROOF_WRONG_DISK"
_FLAGS = ("-shared", "-fPIC", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror")


def build(folder: Path) -> Path:
    """Compile the library into a folder without blanks in its path, if it is not there; its path.

    Raises OSError where the compiler refuses.
    """
    made = folder / LIBRARY
    if made.exists():
        return made
    part = folder / f"{uuid.uuid4()}.part"  # of faults that are played side by side
    done = subprocess.run(
        ["cc", *_FLAGS, "-o", str(part), str(SOURCE), "-ldl", "-lpthread"],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise OSError(f"cc refuses {SOURCE.name}: {done.stderr.strip()}")
    return part.replace(made)


def environment(library: Path, wrong: WrongDisk, home: Path) -> dict[str, str]:
    """What to add to a program's environment.

    `home` is where the library remembers that the disk is gone, for all programs.
    """
    return {
        "LD_PRELOAD": str(library),
        VARIABLE: f"{wrong.kind} {wrong.number} {home / 'disk-is-gone'}",
    }
