"""Turns of the copy loads of several GPUs, which start at once and share ways.

A turn is a lock (flock(2)) on a file of a folder that these loads share: `machine`, and one file
for each group of GPUs that share their way to the host. The kernel releases the locks of a process
when it ends, however it ends: a load that dies never blocks the others.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of one load.

    `link` names the group of its GPU. Without a `folder` it shares nothing, and never waits. Its
    output says when it begins to wait, when it has its turn, and how long both took.

    Each method is a context that begins when the turn does. It raises LoadError.
    """

    folder: Path | None
    link: str | None
    output: Output

    def beside(self) -> contextlib.AbstractContextManager[None]:
        """The time in which no load copies to a peer."""
        return self._turn("machine", fcntl.LOCK_SH)

    def on_link(self) -> contextlib.AbstractContextManager[None]:
        """The turn on the way to the host: one load of the group has it. It lies within `beside`.

        All take `machine` before the link, so no two loads wait for each other.
        """
        return self._turn(f"link-{self.link}", fcntl.LOCK_EX)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """The turn of the only load that does anything on the machine."""
        return self._turn("machine", fcntl.LOCK_EX)

    @contextlib.contextmanager
    def _turn(self, name: str, lock: int) -> Iterator[None]:
        if self.folder is None:
            yield
            return
        kind = "shared" if lock == fcntl.LOCK_SH else "exclusive"
        self.output.waits(f"{kind} turn on {name}")
        began = time.monotonic()
        try:
            # For reading and writing: NFS demands the one for a shared lock, the other for one
            # that is exclusive.
            file = (self.folder / name).open("a+b")
        except OSError as error:
            raise self._refused(error) from error
        with file:
            try:
                fcntl.flock(file, lock)
            except OSError as error:
                raise self._refused(error) from error
            locked = time.monotonic()
            # At once: from here on it waits for nobody, and others may wait for it.
            self.output.note(f"{kind} turn on {name}: waited {locked - began:.1f} s")
            yield
            took = time.monotonic() - locked
        self.output.note(f"{kind} turn on {name}: took {took:.1f} s")

    def _refused(self, error: OSError) -> LoadError:
        return LoadError(
            f"no turn by the files in {self.folder}: {error.strerror}: let the run lie on a "
            "filesystem with file locks (--out)"
        )
