"""The programs that the self-test needs on this machine, and what is missing of them."""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.run import missing_programs
from acceptance.station.image import engine

# With their packages: those of the self-test, and those that rigproof starts.
NEEDED: dict[str, str] = {
    "unshare": "util-linux",
    "mount": "mount",
    "cc": "gcc libc6-dev",
    **{
        program: package
        for program, package, _ in (*missing_programs.ON_HOST, *missing_programs.OF_LOADS)
        if package is not None
    },
}


def missing(*, engine_needed: bool) -> Iterator[str]:
    """Each thing that is missing, with its cure: the programs in one sentence."""
    lacking = [program for program in NEEDED if not _is_here(program)]
    if lacking:
        packages = " ".join(NEEDED[program] for program in lacking)
        yield f"{', '.join(lacking)} not installed: install with `sudo apt install {packages}`"
    if engine_needed:
        try:
            engine.find()
        except SetupError as error:
            yield str(error)


def _is_here(program: str) -> bool:
    try:
        command.find(program)
    except command.ProgramMissing:
        return False
    return True
