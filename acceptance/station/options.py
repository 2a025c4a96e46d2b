"""What the command line asks of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks of a run; `niceness` is by how much its loads give way to other
    programs.

    `run_dir_file` is where the run's folder is to be written down.
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
