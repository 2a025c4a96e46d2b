"""Faults injected into the memory load (`inject`), to prove that they are found and told apart.

Never set in a real run.

- `bit`: bit 21 of one word is inverted once, between its write and its verification;
- `stuck`: bit 5 of one word is 1 again after every pass, whatever was written;
- `address`: a write to one word goes to the place whose address differs in one bit, and the word
  itself stays as it was;
- `slow`: every pass is queued late, by the time that a copy of as many bytes takes;
- `hang`: the GPU does not finish a pass.
"""

from __future__ import annotations

from typing import Protocol

from acceptance.loads.vram.contract import Fault
from acceptance.loads.vram.passes import Pass, Spin, Sweep
from acceptance.loads.vram.worker import PassResult, TestedMemory

FLIPPED, STUCK = 21, 5
# The fill after which `bit` flips and which `hang` replaces by a spin: that of the second pattern.
_AT_FILL = 2


class OpenMemory(TestedMemory, Protocol):
    """A memory whose words can be read and written one by one."""

    def get(self, place: int) -> int:
        """The word at a place."""

    def put(self, place: int, word: int) -> None:
        """Write one word."""


def partner(place: int, words: int) -> int:
    """The place that `address` writes to, which differs in one of the highest address bits."""
    bit = words.bit_length() - 2
    return place ^ 1 << bit


class FaultyMemory:
    """A memory with one of the faults."""

    def __init__(self, memory: OpenMemory, kind: Fault) -> None:
        self._memory, self._kind = memory, kind
        self._place = memory.words // 3
        self._fills = 0
        self._copy_s = 0.0  # copy time of a byte

    @property
    def words(self) -> int:
        """Number of tested words."""
        return self._memory.words

    @property
    def whole_bytes(self) -> int:
        """Total memory of the GPU."""
        return self._memory.whole_bytes

    def work(self, one: Pass, late_s: float = 0.0) -> PassResult:
        """Run a pass with the fault."""
        filling = any(isinstance(work, Sweep) and work.reads is None for work in one.works)
        self._fills += filling
        if self._kind == "hang" and self._fills == _AT_FILL:
            one = Pass((Spin(),))
        if self._kind == "slow":
            return self._slowly(one, late_s)
        before = self._memory.get(self._place) if self._kind == "address" else 0
        done = self._memory.work(one, late_s)
        after = self._memory.get(self._place)
        if self._kind == "bit" and filling and self._fills == _AT_FILL:
            self._memory.put(self._place, after ^ 1 << FLIPPED)
        elif self._kind == "stuck":
            self._memory.put(self._place, after | 1 << STUCK)
        elif self._kind == "address" and after != before:
            self._memory.put(partner(self._place, self.words), after)
            self._memory.put(self._place, before)
        return done

    def _slowly(self, one: Pass, late_s: float) -> PassResult:
        """Run copies at full speed, and our kernels late."""
        if any(isinstance(work, Sweep) for work in one.works):
            return self._memory.work(one, late_s + one.moved * self._copy_s)
        done = self._memory.work(one, late_s)
        self._copy_s = done.seconds / one.moved
        return done
