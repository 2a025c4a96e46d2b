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
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyte
from forks import Forks


class Seat:
    """A terminal of so many columns and lines at which a program of `forks` runs."""

    def __init__(
        self,
        forks: Forks,
        call: str,
        arguments: tuple[Any, ...],
        columns: int,
        lines: int,
        environ: Mapping[str, str],
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.sent = b""
        self._stream = pyte.ByteStream(self.screen)
        self._forks = forks
        self._ours, theirs = pty.openpty()
        self._size(theirs, columns, lines)
        self._pid = forks.start(call, (theirs, theirs, theirs), environ, *arguments, terminal=True)
        os.close(theirs)

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
        code = self._forks.wait(self._pid)
        os.close(self._ours)
        return self.shown(), code

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
