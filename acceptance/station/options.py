"""The options of a run from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run from the command line.

    `niceness` lowers the priority of its loads against other programs. `run_dir_file` is a file
    that receives the path of the run's folder. With `fail_fast` the run stops at the first check
    that fails. `sheets` is the folder of the site's sheets, `none` for rigproof's own alone, None
    for the machine's own folder. `checks` is the folder of the site's own checks. With
    `as_declared` the plan is for the machine that the machine file declares.
    """

    machine_file: Path | None = None
    profile: str = "accept"
    station: str = "auto"
    image: str | None = None
    out: Path = Path("reports")
    only: tuple[str, ...] = ()
    burn_s: float | None = None
    gpus: tuple[str, ...] = ()
    root: Path = Path("/")
    niceness: int = 0
    run_dir_file: Path | None = None
    fail_fast: bool = False
    sheets: Path | None = None
    checks: Path | None = None
    as_declared: bool = False
