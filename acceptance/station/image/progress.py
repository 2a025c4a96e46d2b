"""A build's progress on the screen: steps, elapsed time, and lines of our own scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from acceptance.core import plain_text
from acceptance.process import command

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLASSIC = re.compile(r"Step (\d+/\d+) : (.*)")
_BUILDKIT = re.compile(r"#\d+ \[(?!internal\b|auth\b)([^\]]+)\] (.*)")
# steps that take no time
_SILENT = re.compile(r"(ARG|ENV|USER|WORKDIR|CMD|LABEL)\b")
_NOISE = re.compile(
    r"--->|Removing intermediate container|DEPRECATED:|BuildKit is currently "
    r"disabled|environment-variable\."
)
_OURS = re.compile(r"(?:#\d+ [\d.]+ )?rigproof: (.*)")
QUIET_S = 30.0
POLL_S = 0.1  # between two polls of a running program
_WIDTH = 100


def plain(line: str) -> str:
    """A line without colours, and with only the last text of a progress bar."""
    return _ANSI.sub("", line).rstrip().rpartition("\r")[2].strip()


def worth_showing(line: str) -> str | None:
    """The user's text for a line of the build's output; None where there is nothing to show.

    A line is shown where a step begins, or where our own scripts print something.
    """
    text = plain(line)
    if ours := _OURS.fullmatch(text):
        return ours[1]
    if step := _CLASSIC.fullmatch(text) or _BUILDKIT.fullmatch(text):
        return (
            None if _SILENT.match(step[2]) else f"[{step[1]}] {' '.join(step[2].split())}"[:_WIDTH]
        )
    return None


def tail(texts: Sequence[str], count: int = 8) -> str:
    """The last lines with content."""
    lines = [
        plain_text.shortened(plain(line), 200)
        for text in texts
        for line in text.splitlines()
        if _telling(line)
    ]
    return "\n".join(lines[-count:])


def _telling(line: str) -> bool:
    return bool(plain(line)) and not _NOISE.match(plain(line))


@dataclass(slots=True)
class Progress:
    """Shows the progress with the elapsed seconds, and a sign of life after a quiet time."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    shown: float = field(init=False)
    latest: str = ""
    # BuildKit prints a step's name again after another step's output
    told: set[str] = field(default_factory=set)
    heard: bool = False

    def __post_init__(self) -> None:
        self.began = self.shown = self.clock()

    def take(self, lines: Iterable[str]) -> None:
        """Process lines of output."""
        for line in lines:
            self.heard = True
            self.latest = plain(line) if _telling(line) else self.latest
            if (text := worth_showing(line)) and text not in self.told:
                self.told.add(text)
                self._show(text)

    def tick(self) -> None:
        """Show a sign of life where nothing was shown for QUIET_S seconds."""
        if self.clock() - self.shown >= QUIET_S:
            self._show(f"... {self.latest}"[:_WIDTH])

    def _show(self, text: str) -> None:
        self.shown = self.clock()
        self.say(f"{self.shown - self.began:5.0f} s  {text}")


def follow(
    running: command.RunningProgram,
    progress: Progress,
    *,
    first_sign_s: float | None = None,
) -> command.ProgramResult:
    """Wait for a program, and show its progress.

    With `first_sign_s`, a program that has printed nothing in that many seconds is ended: the
    server that it waits for does not answer.
    """
    try:
        while not running.poll() and not running.deadline.passed():
            progress.take(running.new_lines())
            progress.tick()
            if (
                first_sign_s is not None
                and not progress.heard
                and progress.clock() - progress.began > first_sign_s
            ):
                running.stop()
            time.sleep(POLL_S)
    except BaseException:  # Ctrl-C: leave nothing running
        running.stop()
        raise
    done = running.wait()
    progress.take(running.new_lines())
    return done
