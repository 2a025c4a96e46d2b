"""Runs the terminal of a run in a pseudo terminal, and gives what somebody who sits there sees:
the screen, as an emulator draws it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = (
    TESTS.parent,
    TESTS,
    TESTS / "core",
    TESTS / "machine",
    TESTS / "observe",
    TESTS / "nvml",
    TESTS / "reports",
)


class Seat:
    """A terminal of so many columns and lines at which a Python program runs.

    `environ` is all that the program's environment has besides where its modules are.
    """

    def __init__(self, program: str, columns: int, lines: int, environ: Mapping[str, str]) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.sent = b""
        self._stream = pyte.ByteStream(self.screen)
        self._environ = {
            **environ,
            "PYTHONPATH": os.pathsep.join(map(str, FOLDERS)),
            "PATH": os.environ["PATH"],
        }
        self._pid, self._ours = pty.fork()
        if self._pid == 0:  # pragma: no cover - the child
            try:
                self._size(0, columns, lines)
                os.execve(sys.executable, [sys.executable, "-c", program], self._environ)
            finally:
                os._exit(127)

    @staticmethod
    def _size(file: int, columns: int, lines: int) -> None:
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        """Somebody draws the window larger or smaller."""
        self._size(self._ours, columns, lines)
        self.screen.resize(lines, columns)
        os.kill(self._pid, signal.SIGWINCH)

    def type(self, text: bytes) -> None:
        """Somebody types."""
        os.write(self._ours, text)

    def go_on(self) -> None:
        """What was played stands long enough: let its end come."""
        os.kill(self._pid, signal.SIGUSR1)

    def until(
        self, condition: Callable[[list[str]], object], what: str, seconds: float = 60.0
    ) -> list[str]:
        """Look until the screen is so; its lines.

        The bound is for a machine that is busy with other things.
        """
        end = time.monotonic() + seconds
        while not condition(self.shown()):
            assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s:\n{self.picture()}"
            if not self._take():
                assert condition(self.shown()), (
                    f"{what}: the program ended before:\n{self.picture()}"
                )
        return self.shown()

    def ended(self) -> tuple[list[str], int]:
        """Wait for the program's end: the screen that it leaves, and how it ended."""
        while self._take():
            pass
        _, status = os.waitpid(self._pid, 0)
        os.close(self._ours)
        return self.shown(), os.waitstatus_to_exitcode(status)

    def _take(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 1.0)
        if ready:
            data = b""
            with contextlib.suppress(OSError):  # the program has closed its side
                data = os.read(self._ours, 1 << 16)
            self.sent += data
            self._stream.feed(data)
            return bool(data)
        return True

    def shown(self) -> list[str]:
        """The lines of the screen, without the blanks at their ends."""
        return [line.rstrip() for line in self.screen.display]

    def picture(self) -> str:
        """The screen in a frame, for people."""
        edge = "+" + "-" * self.screen.columns + "+"
        return "\n".join([edge, *(f"|{line}|" for line in self.screen.display), edge])
