"""A build's progress on the screen: which step, how long already, and what our
own scripts have to say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acceptance.process import command

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLASSIC = re.compile(r"Step (\d+/\d+) : (.*)")
_BUILDKIT = re.compile(r"#\d+ \[(?!internal\b|auth\b)([^\]]+)\] (.*)")
_SILENT = re.compile(
    r"(ARG|ENV|USER|WORKDIR|CMD|LABEL)\b"
)  # steps that do nothing one could wait for
_NOISE = re.compile(
    r"--->|Removing intermediate container|DEPRECATED:|BuildKit is currently "
    r"disabled|environment-variable\."
)
_OURS = re.compile(r"(?:#\d+ [\d.]+ )?rigproof: (.*)")
QUIET_S = 30.0
POLL_S = 0.1  # between two looks at a program that is running
_WIDTH = 100


def plain(line: str) -> str:
    """A line as it would look on paper: no colours, and of what a progress bar
    overwrote only the last.
    """
    return _ANSI.sub("", line).rstrip().rpartition("\r")[2].strip()


def worth_showing(line: str) -> str | None:
    """What a line of the build's output says to its user: a step that begins, or a word of our
    own scripts; None for the rest.
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
    """The last lines that tell something."""
    lines = [plain(line)[:200] for text in texts for line in text.splitlines() if _telling(line)]
    return "\n".join(lines[-count:])


def _telling(line: str) -> bool:
    return bool(plain(line)) and not _NOISE.match(plain(line))


@dataclass(slots=True)
class _Tail:
    """The new lines of a file that grows."""

    path: Path
    offset: int = 0
    rest: bytes = b""

    def lines(self) -> Iterator[str]:
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                new = file.read()
        except FileNotFoundError:
            return
        self.offset += len(new)
        *whole, self.rest = (self.rest + new).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", errors="replace")


@dataclass(slots=True)
class Progress:
    """Says what is worth saying, with the seconds since the beginning, and a sign of life when
    there has been nothing for a while.
    """

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    shown: float = field(init=False)
    latest: str = ""
    told: set[str] = field(
        default_factory=set
    )  # BuildKit names a step again whenever another's output came between
    heard: bool = False

    def __post_init__(self) -> None:
        self.began = self.shown = self.clock()

    def line(self, line: str) -> None:
        """Take a line of output."""
        self.heard = True
        self.latest = plain(line) if _telling(line) else self.latest
        if (text := worth_showing(line)) and text not in self.told:
            self.told.add(text)
            self._show(text)

    def tick(self) -> None:
        """Time has passed."""
        if self.clock() - self.shown >= QUIET_S:
            self._show(f"... {self.latest}"[:_WIDTH])

    def _show(self, text: str) -> None:
        self.shown = self.clock()
        self.say(f"{self.shown - self.began:5.0f} s  {text}")


def follow(
    running: command.RunningProgram,
    log: Path,
    progress: Progress,
    *,
    first_sign_s: float | None = None,
) -> command.ProgramResult:
    """Wait for a program whose output goes to `log`, showing its progress.

    With `first_sign_s` a program that has printed nothing in that many seconds is ended: what it
    waits for does not answer.
    """
    tails = [_Tail(log), _Tail(log.with_name(log.name + ".err"))]
    try:
        while not running.poll() and not running.deadline.passed():
            _take(tails, progress)
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
    _take(tails, progress)
    return done


def _take(tails: Sequence[_Tail], progress: Progress) -> None:
    for file in tails:
        for line in file.lines():
            progress.line(line)
