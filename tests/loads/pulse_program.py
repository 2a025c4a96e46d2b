"""The power load on GPUs of clockwork: a product takes a millisecond, a wave its time.

    python pulse_program.py gpus=2 steps=STEPS [NAME=VALUE ...]

FAKE_PULSE in the environment: `wrong` gives one wrong product, `die` ends a GPU's process at its
first product of a step, `slow` makes products too long for any edge, `busy` has the last GPU work
for others for 0.75 s, `brief` says of its products that they take nearly half a second.
FAKE_REST has the seconds before each step.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from acceptance.core.dtype import DtypeName
from acceptance.loads import __main__ as program
from acceptance.loads import power_step
from acceptance.loads.program import exit_load
from acceptance.loads.pulse import edges, load
from acceptance.loads.pulse.device import Alignment, Compared

COLD_S = 0.3  # of an idle GPU, in the place of seconds
FAULT = os.environ.get("FAKE_PULSE", "")


class Clockwork:
    """A device that works by the host's clock."""

    dtype: DtypeName = "bf16"

    def __init__(self) -> None:
        own = os.environ["CUDA_VISIBLE_DEVICES"]
        self.about: dict[str, Any] = {"gpu": "clockwork", "uuid": f"GPU-{own}"}
        self.last = own == "1"
        self.products = 0
        self.free_s = 0.0
        self.aligned = 0

    def start(self, count: int) -> Any:
        """Implements `Device`."""
        if FAULT == "die" and self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        one_s = {"slow": 5.0, "brief": 0.45}.get(FAULT, 1e-3)
        self.free_s = max(self.free_s, time.monotonic()) + 1e-3 * count
        self.products += count
        if FAULT == "busy" and self.last and self.products - count < 20 <= self.products:
            self.free_s += 0.75
        bad = FAULT == "wrong" and self.last and self.products - count < 20 <= self.products
        return self.free_s, Compared(count - bad, (7,) * bad, one_s * count)

    def waves(self, begin_s: float, half_s: float, count: int) -> Any:
        """Implements `Device`."""
        return begin_s + 2 * half_s * count, Compared(100, (), 2 * half_s * count, count)

    def align(self) -> Alignment:
        """Implements `Device`: the clock of the last GPU moves by 5 us each time."""
        self.aligned += 1
        return Alignment(5000 * self.aligned * self.last, 500)

    def compared(self, ticket: Any) -> Compared:
        """Implements `Device`."""
        until_s, found = ticket
        time.sleep(max(0.0, until_s - time.monotonic()))
        done: Compared = found
        return done


def main(words: Sequence[str]) -> None:
    load.cuda = Clockwork
    vars(load).update(REST_S=float(os.environ.get("FAKE_REST", "1.0")))
    for module in (power_step, edges):
        vars(module).update(COLD_S=COLD_S)
    exit_load(program.main(["pulse", *words]))


if __name__ == "__main__":
    main(sys.argv[1:])
