"""A described machine played through a whole profile, with every load replayed and sound.

The profile's loads keep their names and get a second or two each; what the burn takes is its own,
or that of --burn. Both lie over the files of this checkout in the run's mount namespace, and so
does the interpreter that starts our loads: another program comes in the place of each.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import fakes
from run_left import Run

from acceptance import resources
from acceptance.loads import power_step
from acceptance.loads.pulse import selection
from acceptance.suites.fixtures import burn
from selftest.fault import Fault
from selftest.stage import Stage

BURN_S = 6  # of every profile as it is played; with --burn SHORT_S the run is shortened
SHORT_S = 4
LOAD_S = 1
# gpu-burn makes too few compares in less, in double on cards with slow float64.
SECONDS = {"burn": BURN_S, **dict.fromkeys(("gpu_burn_float", "gpu_burn_tensor"), 2)}
SECONDS["gpu_burn_double"] = SHORT_S
# $1: the folder with what lies over the files that follow, up to "--"; each is the real path.
MOUNTS = """
set -e
home=$1; shift
python=$(readlink -f "$1")
: >"$home/python.real"
mount --bind "$python" "$home/python.real"
while [ "$1" != -- ]; do
    mount --bind "$home/over/${1##*/}" "$(readlink -f "$1")"
    shift
done
shift
exec "$@"
"""
WRAPPER = """\
#!/bin/bash
if [ "$1 $2" = "-m acceptance.loads" ]; then
    exec -a "$0" "HOME/python.real" "HOME/fakes/replay/load.py" "$3"
fi
exec -a "$0" "HOME/python.real" "$@"
"""


def shortened_profiles() -> str:
    """The shipped profiles with a second for each load, and BURN_S for the burn."""
    text = resources.locate("profiles.toml").read_text(encoding="utf-8")
    found = []
    of_seconds = False
    for line in text.splitlines():
        if line.startswith("["):
            of_seconds = line.endswith(".seconds]")
        if of_seconds and (told := re.match(r"(\w+) = [\d.]+$", line)):
            seconds = SECONDS.get(told[1], LOAD_S)
            line = f"{told[1]} = {seconds}"  # noqa: PLW2901 - as it is played
        found.append(line)
    return "\n".join(found) + "\n"


def shortened_code() -> dict[str, str]:
    """The files whose constants say how long something takes that no profile names, by name."""
    found = {}
    for module, constants in (
        (
            selection,
            {
                "SHORT_COLD_S, SHORT_WAVE_S": "1.0, 1.0",
                "WHOLE_S": "2.0",
                "WHOLE_HZ": "(0.5, 5.0, 1000.0)",
            },
        ),
        (power_step, {"COLD_S": "0.5"}),
        (burn, {"PROVING_S": "1.0"}),
    ):
        path = Path(str(module.__file__))
        text = path.read_text(encoding="utf-8")
        for name, value in constants.items():
            text, count = re.subn(f"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
            assert count == 1, f"{path} has no {name}"
        found[str(path)] = text
    return found


@contextmanager
def machine(home: Path, library: Path, name: str, file: str) -> Iterator[Stage]:
    """A corner with this described machine and its shipped machine file."""
    declared = (resources.locate("machines") / file).read_text(encoding="utf-8")
    rigproof = str(Path(sys.executable).with_name("rigproof"))
    laid = {
        sys.executable: WRAPPER.replace("HOME", str(home)),
        str(resources.locate("profiles.toml")): shortened_profiles(),
        **shortened_code(),
    }
    inner = ["sh", "-c", MOUNTS, "sh", str(home), *laid, "--", rigproof]
    whole = Fault("nothing", (), 0, machine=name, station="host", declared=declared)
    stage = Stage(home, whole, library, inner, None)
    with ExitStack() as kept:
        kept.callback(stage.clear)
        over = home / "over"
        over.mkdir(parents=True)
        for path, text in laid.items():
            file = over / Path(path).name
            file.write_text(text, encoding="utf-8")
            file.chmod(0o755)
        for tool in ("stress-ng", "stressapptest"):
            script = f'exec {home}/python.real {stage.rig.fakes}/replay/host.py {tool} "$@"'
            fakes.program(stage.rig.fakes, tool, script)
        # On RAM, where nothing of the storage tests is due: they are played with real disks.
        stage.rig.out = Path(kept.enter_context(TemporaryDirectory(dir="/dev/shm")))
        stage.rig.variables["REPLAY_RUNS"] = str(stage.rig.out)
        yield stage


def play(stage: Stage, profile: str, *, short: bool) -> Run:
    """One run of a profile, with all of its checks."""
    rig = stage.rig
    argv = rig.argv("--profile", profile, only=None, burn=SHORT_S if short else None)
    before, began = rig.runs(), time.monotonic()
    started = rig.start(argv, program=stage.inside, wait=False)
    return rig.finish(started, before, began, 400.0)
