"""A Python process that has loaded its modules, and forks for each program that a test asks for:
starting Python anew takes ten times as
long. What Python and the dynamic loader read of the environment as they start is the same for all
of them.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import termios
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

Files = tuple[int, int, int]  # standard input, output and error
_MOST = 1 << 17  # bytes of one message: an environment may be large


class Ended(NamedTuple):
    """What a program did; the code is negative for a signal."""

    returncode: int
    out: str
    err: str


class Forks:
    """The process.

    Each program is a function, `module:name`, called with texts and numbers, in an environment of
    its own.
    """

    def __init__(self, modules: Sequence[str], environ: Mapping[str, str]) -> None:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, __file__, str(theirs.fileno()), *modules]
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            argv, env={**environ, "PYTHONPATH": path}, pass_fds=[theirs.fileno()]
        )
        theirs.close()

    def start(
        self,
        call: str,
        files: Files,
        environ: Mapping[str, str],
        *arguments: Any,
        terminal: bool = False,
    ) -> int:
        """A program's process id.

        With `terminal`, standard input is the terminal that it sits at.
        """
        asked = {
            "call": call,
            "environ": dict(environ),
            "arguments": arguments,
            "terminal": terminal,
        }
        socket.send_fds(self._link, [json.dumps(asked).encode()], list(files))
        return self._told()

    def wait(self, pid: int) -> int:
        """How a program ended, once it has."""
        self._link.send(json.dumps({"wait": pid}).encode())
        return self._told()

    def run(self, call: str, environ: Mapping[str, str], *arguments: Any, given: str = "") -> Ended:
        """A program to its end, with what it is given at standard input."""
        with ExitStack() as stack:
            files = [
                stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
                for _ in range(3)
            ]
            files[0].write(given)
            files[0].seek(0)
            numbers = (files[0].fileno(), files[1].fileno(), files[2].fileno())
            code = self.wait(self.start(call, numbers, environ, *arguments))
            texts = [(file.seek(0), file.read())[1] for file in files[1:]]
            return Ended(code, *texts)

    def end(self) -> None:
        """Let the process go; it must have been well until now."""
        self._link.close()
        assert self._process.wait(60) == 0

    def _told(self) -> int:
        try:
            told = self._link.recv(_MOST)
        except BaseException:  # a late answer would be taken for that of the next question
            self._process.kill()
            raise
        assert told, "the process that forks has died"
        return int(told)


def _serve(link: socket.socket) -> None:
    while True:
        data, files, _, _ = socket.recv_fds(link, _MOST, 3)
        if not data:
            return
        asked = json.loads(data)
        if "wait" in asked:
            link.send(str(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])).encode())
            continue
        pid = os.fork()
        if pid == 0:
            link.close()
            _become(asked, files)
        for file in files:
            os.close(file)
        link.send(str(pid).encode())


def _become(asked: dict[str, Any], files: Sequence[int]) -> None:
    """Be the program, and end."""
    code = 1
    try:
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        if asked["terminal"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(
                number,
                "w" if number else "r",
                encoding=as_started.encoding,
                errors=as_started.errors,
            )
            for number, as_started in enumerate((sys.stdin, sys.stdout, sys.stderr))
        )
        os.environ.clear()
        os.environ.update(asked["environ"])
        module, _, name = asked["call"].partition(":")
        try:
            code = getattr(importlib.import_module(module), name)(*asked["arguments"]) or 0
        except SystemExit as left:
            code = int(left.code or 0)
        except BaseException:  # noqa: BLE001 - it is told where the program's own would be, and is its end
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def main() -> None:
    """Load what is named, then fork until nobody asks any more."""
    number, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    _serve(socket.socket(fileno=int(number)))


if __name__ == "__main__":
    main()
