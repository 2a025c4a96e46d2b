"""What the container costs, on this machine, in one run.

    python benchmarks/container.py [--cold]

- from the end of the session before to the first check of the load session, in a container and in
  place (the ratio is the container's cost), and to the load session's end;
- asking for an image that is here, and, with `--cold`, building it from nothing, without the
  engine's cache (minutes).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from acceptance import resources
from acceptance.core.plan import LOAD_SESSIONS, segment_of
from acceptance.core.record import CheckEnded, CheckStarted
from acceptance.journal import reader

LOADS = {segment_of(session) for session in LOAD_SESSIONS}


def first_check_s(station: str) -> float:
    """Seconds between the last check on the host and the first one at the station."""
    machine = resources.locate("machines") / "cpu-only.toml"
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as folder:
        argv = [
            sys.executable,
            "-m",
            "acceptance",
            "accept",
            "--machine",
            str(machine),
            "--profile",
            "smoke",
        ]
        argv += ["--only", "kernel_log,gpu,memory.bandwidth", "--station", station, "--out", folder]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        entries = reader.read(Path(folder) / "latest").entries
    ends = [
        one.boot_s
        for one in entries
        if isinstance(one.body, CheckEnded) and one.segment == "journal-host-before.jsonl"
    ]
    starts = [
        one.boot_s for one in entries if isinstance(one.body, CheckStarted) and one.segment in LOADS
    ]
    return min(starts) - max(ends)


def timed(argv: list[str]) -> float:
    """Wall seconds of a command."""
    began = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> int:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description="What the container costs.")
    parser.add_argument("--cold", action="store_true", help="build the image from nothing, too")
    options = parser.parse_args()
    from acceptance.station import preflight

    found = preflight.engine()
    if found.engine is None:
        print(f"container: not measured, because {found.why}")
        return 0
    image = [sys.executable, "-m", "acceptance", "image", "build"]
    had = timed(image)
    print(
        f"image                 {timed(image):.2f} s when it is here (this call's first: "
        f"{had:.0f} s)"
    )
    if options.cold:
        with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as folder:
            subprocess.run([*image, "--context", folder], check=True)
            recipe = ["docker", "build", "--no-cache", "-f", f"{folder}/containers/Dockerfile"]
            bases = [f"--build-arg={name}=rigproof-base:trixie" for name in ("BASE", "TOOLS_BASE")]
            print(
                f"image, cold           {timed([*recipe, *bases, folder]):.0f} s on the "
                "bootstrapped base"
            )
    inside, outside = first_check_s("docker"), first_check_s("host")
    print(
        f"start to first check  {inside:.2f} s in a container, {outside:.2f} s in place, "
        f"ratio {inside / outside:.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
