"""Starts one program and ends all its descendants with it.

`command.start` runs every program under this one: `python -I -S reaper.py PARENT_PID GRACE --
ARGV`. The kernel can signal a process when its parent dies, but only a direct child: the `sleep` of
a shell script or the workers of a load would go on heating the machine after the harness was
killed. The reaper is a child subreaper, so all descendants of its program stay its descendants. It
ends them all when the program ends, on SIGTERM, or when the harness dies.

In a container the reaper is the first process and has no parent to watch. It is called `reaper.py
stdin:SECONDS GRACE -- ARGV`, and ends the descendants when its standard input closes or after that
many seconds.

It imports nothing of this package and as little as possible of the standard library (`pathlib`
alone would be a third of its start time), so it starts in about 15 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
ENDED = 128 + signal.SIGTERM  # exit code of a program that was ended with its family
NOT_STARTED = 127  # a shell's exit code for a program that cannot be executed
# A process that outlives SIGKILL for this long hangs in the kernel (a lost GPU, a dead disk): more
# waiting does not end it.
KILL_S = 3.0
_signalled = False


def prctl(option: int, value: int) -> None:
    """Call prctl(2); raises OSError when the kernel refuses it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children_by_parent() -> dict[int, list[int]]:
    """Process ids of all visible processes, by the process id of their parent."""
    tree: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - see above
        if name.isdigit():
            # The process may end during the reading.
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                # The name in parentheses may contain anything, so fields are counted from the last
                # parenthesis.
                fields = file.read().rpartition(b")")[2].split()
                tree.setdefault(int(fields[1]), []).append(int(name))
    return tree


def descendants(root: int) -> list[int]:
    """Process ids of all descendants of `root`."""
    tree = children_by_parent()
    found: list[int] = []
    queue = list(tree.get(root, []))
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(tree.get(pid, []))
    return found


def reap() -> dict[int, int]:
    """Collect every child that has ended; returns wait status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def end_family(grace_s: float) -> None:
    """Send SIGTERM to all descendants, and SIGKILL to the rest after the grace period.

    Gives up on a process that outlives SIGKILL for KILL_S seconds.
    """
    grace_end = time.monotonic() + grace_s
    number = signal.SIGTERM
    while (family := descendants(os.getpid())) and time.monotonic() < grace_end + KILL_S:
        for pid in family:
            # it has ended or changed its user
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if number == signal.SIGTERM:
            while time.monotonic() < grace_end and descendants(os.getpid()):
                reap()
                time.sleep(0.02)
            number = signal.SIGKILL
        reap()
        time.sleep(0.01)


def _note_signal(_number: int, _frame: FrameType | None) -> None:
    global _signalled  # noqa: PLW0603 - a signal handler has nowhere else to put it
    _signalled = True


def exit_like(status: int) -> None:
    """End with the program's exit code or signal, so that the harness sees it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(
        os.waitstatus_to_exitcode(status)
        if not os.WIFSIGNALED(status)
        else 128 + os.WTERMSIG(status)
    )


def defaults() -> None:
    """Reset every signal to its default.

    Signals that Python, `nohup` or a careless parent ignores would be inherited.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def execute(argv: list[str], parent: int) -> None:
    """Become the program, in its own process group; it dies with the reaper. Never returns."""
    os.setpgid(0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_STARTED)
    defaults()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode(errors="replace"))
    os._exit(NOT_STARTED)


def hung_up(stream: int) -> bool:
    """Whether the other end of a stream is closed; discards the data that arrived."""
    readable, _, _ = select.select([stream], [], [], 0.0)
    return bool(readable) and os.read(stream, 65536) == b""


def main(arguments: list[str]) -> None:
    """Start the program and wait for its end, a stop signal, or the death of the harness."""
    holder, grace_s, argv = arguments[0], float(arguments[1]), arguments[3:]
    line = os.dup(0) if holder.startswith("stdin:") else None  # the program gets /dev/null instead
    end = (
        time.monotonic() + float(holder.removeprefix("stdin:"))
        if line is not None
        else float("inf")
    )
    defaults()  # an ignored SIGCHLD would lose the exit code, a blocked SIGTERM the stop signal
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _note_signal)
    signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGCHLD])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if line is None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(holder):  # the parent died before the line above took effect
            os._exit(NOT_STARTED)
    null = os.open(os.devnull, os.O_RDWR)
    if line is not None:
        os.dup2(null, 0)
    own = os.getpid()
    child = os.fork()
    if child == 0:
        execute(argv, own)
    # The reaper's copies would keep the output pipes open after the program has closed them.
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    status: int | None = None
    while (
        status is None
        and not _signalled
        and time.monotonic() < end
        and (line is None or not hung_up(line))
    ):
        status = reap().get(child)
        if status is None:
            signal.sigtimedwait([signal.SIGCHLD], 0.2)
    if status is None:
        end_family(grace_s)
        os._exit(ENDED)
    end_family(0.0)
    exit_like(status)


if __name__ == "__main__":
    main(sys.argv[1:])
