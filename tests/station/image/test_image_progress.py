from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from raising import raising

from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import base


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Step 3/49 : FROM ${TOOLS_BASE} AS tools", "[3/49] FROM ${TOOLS_BASE} AS tools"),
        ("Step 4/49 : ARG DEBIAN_MIRROR", None),
        ("Step 4/49 : ARGUS", "[4/49] ARGUS"),
        ("#12 [tools 3/7] RUN a  &&   b\r", "[tools 3/7] RUN a && b"),
        ("#1 [internal] load build definition from Dockerfile", None),
        ("#1 [auth] sharing credentials", None),
        (
            "#12 41.25 rigproof: nvbandwidth 0.9 is gone from sid: taking 0.10",
            "nvbandwidth 0.9 is gone from sid: taking 0.10",
        ),
        (
            "\x1b[91mrigproof: gpu-burn is not in the package archive\x1b[0m",
            "gpu-burn is not in the package archive",
        ),
        (" ---> Using cache", None),
        ("Get:1 something", None),
        ("", None),
    ],
)
def test_steps_and_our_own_words_are_shown(line: str, shown: str | None) -> None:
    assert base.worth_showing(line) == shown


def test_a_long_step_is_cut() -> None:
    shown = base.worth_showing("Step 1/2 : RUN " + "x" * 500)
    assert shown is not None
    assert len(shown) == 100


def test_the_tail_leaves_out_what_tells_nothing() -> None:
    texts = (
        "one\n\n\x1b[31mtwo\x1b[0m\n ---> 0123456789\nthree\n",
        "DEPRECATED: The legacy builder\nfour\n",
    )
    assert base.tail(texts, 3) == "two\nthree\nfour"


@dataclass
class Watch:
    now: float = 100.0
    said: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now


def test_each_step_is_said_once_with_its_seconds_and_a_quiet_one_gives_a_sign_of_life() -> None:
    watch = Watch()
    shown = base.Progress(watch.said.append, watch.clock)
    watch.now += 2.0
    step = "#5 [tools 1/2] RUN x"
    shown.take([step, step, "Unpacking something", " ---> 0123"])
    shown.tick()
    watch.now += 29.0
    shown.tick()
    watch.now += 1.0
    shown.tick()
    shown.tick()
    assert watch.said == ["    2 s  [tools 1/2] RUN x", "   32 s  ... Unpacking something"]


def start(script: str, log: Path, seconds: float = 30.0) -> command.RunningProgram:
    return command.start([sys.executable, "-c", script], deadline=Deadline.after(seconds), log=log)


def test_a_program_is_followed_on_both_its_outputs(tmp_path: Path) -> None:
    said: list[str] = []
    script = "import sys; print('Step 1/2 : RUN a'); print('#3 [b 1/1] RUN b', file=sys.stderr)"
    done = base.follow(
        start(script, tmp_path / "log"),
        base.Progress(said.append, lambda: 0.0),
    )
    assert done.returncode == 0
    assert sorted(said) == ["    0 s  [1/2] RUN a", "    0 s  [b 1/1] RUN b"]


def test_a_program_that_never_says_a_word_is_ended(tmp_path: Path) -> None:
    watch = base.Progress(lambda _line: None)
    done = base.follow(
        start("import time; time.sleep(60)", tmp_path / "log"),
        watch,
        first_sign_s=0.1,
    )
    assert done.returncode != 0
    assert not watch.heard


def test_a_program_that_goes_past_its_deadline_is_ended(tmp_path: Path) -> None:
    done = base.follow(
        start("import time; time.sleep(60)", tmp_path / "log", 0.2),
        base.Progress(lambda _line: None),
    )
    assert done.timed_out


def test_ctrl_c_ends_the_program(tmp_path: Path) -> None:
    running = start(
        "import time; print('Step 1/1 : RUN a', flush=True); time.sleep(60)", tmp_path / "log"
    )
    with pytest.raises(KeyboardInterrupt):
        base.follow(running, base.Progress(raising(KeyboardInterrupt)))
    assert running.poll()
