"""The memory load of one GPU: pattern tests over nearly all of its memory, each word verified.

    python -m acceptance.loads vram seconds=60

It uses CUDA device 0 of those it sees. (CUDA_VISIBLE_DEVICES names one by its UUID; to test a
machine, run one process for each GPU side by side.) The memory is one plain allocation of the free
memory, less 128 MiB (256, then 512, where the driver does not give that much in one piece), which
the driver may need while kernels run. `vram_tested` is its share of the total memory that CUDA
reports. The memory of the process's own context, the driver and a display is not tested.

The patterns (`patterns`) are of 64-bit words. Each is a sequence of passes that fill the memory,
verify it, or verify it and write the next words: `own_address`, `walking_bits`, `moving_inversions`
over seven backgrounds, `random_inverse`, `march_c` (March C-), `block_move` (copies inside the
memory), `neighbours` (every other stripe read and overwritten 16 times, then all verified),
`retention` (two pauses of a twentieth of `seconds`, 1 to 5 s each). Every pattern runs once,
whatever the time. Besides the pauses that takes about 70 times as long as reading and writing the
memory once (5 s on an H200). The rest of `seconds` is filled with further rounds with other
seeds, without `retention`; a pattern that would not end in time is left out, and a shorter one
runs. The pauses are no part of `seconds`.

- `vram_rate`: bytes that the passes read and wrote a second, over the rate of a copy inside the
  same memory in the same run. Times are the GPU's own (CUDA events), of all passes together,
  without pauses and the processor's work between passes.
- `vram_copy`: GB/s of that copy, lower half to upper half by CUDA's own copy, read and write both
  counted; the median of three before all passes and three after.
- `vram_miscompares`: words found wrong, each pass by itself: a word that stays wrong counts in each
  pass that finds it.

Each of the first 64 passes that find wrong words is reported at once: the number of wrong words,
which bits and how often, the first few words with their address (bytes from the beginning of the
tested memory, not the GPU's physical address), and, where a word lies in another's place, the
address bits between the two. The table `vram_map` has the wrong words of all passes by region (256
of equal size).

Not seen are errors that ECC corrected (the driver counts those), memory outside the allocation,
caches and registers, and data that was still in the L2 cache when it was read back. The latter
happens only where a pass turns round, and in the last tens of MiB. It is not known which words are
neighbours in the chips; stripes of six sizes, one a round, stand in for it.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when the GPU or torch
cannot be used or fails, or a pass does not end within 60 s, with one sentence on standard error and
no end line; 2 for arguments that cannot be used.

Faults injected into the memory load (`inject`), to prove that they are found and told apart.

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

from acceptance.loads.card import gpu_identity
from acceptance.loads.protocol import Output
from acceptance.loads.vram.contract import Ask, Fault
from acceptance.loads.vram.passes import Pass, Spin, Sweep
from acceptance.loads.vram.worker import PassResult, TestedMemory, VramWorker

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


def run(ask: Ask, output: Output) -> None:
    """Run the whole load, from the GPU's name to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    output.hello(ask.load, {**ask.parameters(), **gpu_identity()})
    from acceptance.loads.vram.device import CudaMemory

    own = CudaMemory()
    gib = [size / 2**30 for size in (own.words * 8, own.free_bytes, own.whole_bytes)]
    output.note(
        f"{gib[0]:.2f} GiB are tested, of {gib[1]:.2f} GiB that were free and {gib[2]:.2f} "
        "GiB in all"
    )
    memory: TestedMemory = own if ask.inject is None else FaultyMemory(own, ask.inject)
    VramWorker(ask.seconds, memory, output).run()
    output.end()
