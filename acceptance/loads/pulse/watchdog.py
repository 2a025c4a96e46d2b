"""The watchdog of the power load: a file that the watch over the GPUs keeps fresh, or writes into.

A load with a watchdog ends by itself where the file is old: a watch that hangs with a lost GPU
stops the load too. Fail closed, without a channel from one to the other. In asks and journals the
file is the load's `leash`.

The file's time is that of the monotonic clock, which all processes of the machine share: the wall
clock may be set at any moment.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from acceptance.loads.pulse.safety import SILENT_S

STOPPED = "the watch over the GPUs has stopped the load"
# Without persistence mode the driver first initialises every GPU, which takes some seconds each.
TAKEN_S = 30.0
UNWATCHED = f"nothing has watched the GPUs for {SILENT_S:g} s"


class Holder:
    """The end that the watch holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self) -> None:
        """Begin: the watchdog is fresh."""
        self._path.write_bytes(b"")
        self._stamp()

    def keep(self) -> bool:
        """All is well at this moment; whether the load still wears it."""
        try:
            self._stamp()
        except FileNotFoundError:
            return False
        return True

    def _stamp(self) -> None:
        now_ns = time.monotonic_ns()
        os.utime(self._path, ns=(now_ns, now_ns))

    def pull(self) -> None:
        """End the load, now and for good."""
        self._path.write_text("stop\n", encoding="utf-8")


class Watchdog:
    """The end that the load wears; `path` is None for a load that is not watched."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def reason(self) -> str | None:
        """Why the load must end now; None where it may go on."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return UNWATCHED
        if found.st_size:
            return STOPPED
        return UNWATCHED if not abs(time.monotonic() - found.st_mtime) <= SILENT_S else None

    def wait(self, within_s: float = TAKEN_S) -> None:
        """Return once the watch has taken it, or after so long: then the first step ends soon."""
        end_s = time.monotonic() + within_s
        while self.reason() == UNWATCHED and time.monotonic() < end_s:
            time.sleep(0.05)

    def drop(self) -> None:
        """The load has made its last step: nobody need watch any more."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
