"""The copies beside the burn on real GPUs: what arrives is compared, and what arrives wrong, or
never, is found.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from written import ran

from acceptance.core.parts import Gpu
from acceptance.loads.burn import copies as burn_copies
from acceptance.loads.burn.copies import (
    PIECE,
    PLACES,
    Copies,
    KernelPattern,
)
from acceptance.loads.card import Kernels
from acceptance.loads.copy import device_pattern
from acceptance.loads.copy import pattern as copy_pattern
from acceptance.loads.copy.pattern import SPOILED, first_of
from acceptance.loads.protocol import LoadOutput, Output

pytestmark = pytest.mark.gpu
WORDS = PIECE // 8
TURNS = 6


def seen() -> int:
    import torch

    return int(torch.cuda.device_count())


@pytest.fixture
def peers() -> Sequence[int]:
    """All GPUs but the first, each of which the first can reach."""
    import torch

    found = [index for index in range(1, seen()) if torch.cuda.can_device_access_peer(0, index)]
    if not found:
        pytest.skip(
            f"a copy to a peer needs two GPUs with peer access, and {seen()} are seen "
            "without: not tried"
        )
    return found


def copied(
    peers: Sequence[int] = (),
    change: Callable[[Copies], None] = lambda copies: None,
    turns: int = TURNS,
) -> LoadOutput:
    """What the copies tell after so many turns of every path."""

    def work(output: Output) -> None:
        copies = Copies(output, KernelPattern, peers, time.monotonic)
        change(copies)
        end = time.monotonic() + 60
        while min(path.pieces for path in (*copies._host, *copies._peers)) < turns:
            assert time.monotonic() < end
            copies.step()
            time.sleep(0.001)
        copies.finish()

    return ran("burn", work)


def readings(output: LoadOutput) -> dict[str, float]:
    """The readings of the host by name, those of peers by name and pair."""
    return {
        one.name if one.component == Gpu(0) else f"{one.name} {one.component}": one.value
        for one in output.readings
    }


def test_clean_copies() -> None:
    found = readings(output := copied())
    assert found["burn_copy_miscompares"] == 0
    assert found["burn_copied"] >= 2 * TURNS * 64 / 1024
    assert output.miscompares == ()


def test_what_arrives_wrong_is_found_both_ways() -> None:
    # What comes from the host is then not what the GPU makes, and what comes from the GPU not what
    # the host has.
    places = (1 << 20, WORDS - 1)

    def change(copies: Copies) -> None:
        for place in places:
            copies._host[0]._host._words[place] ^= 1 << 7  # type: ignore[attr-defined]

    found = readings(output := copied(change=change))
    assert found["burn_copy_miscompares"] >= 2 * TURNS - 1  # the first from the host had arrived
    assert {one.check for one in output.miscompares} == {"copy_h2d", "copy_d2h"}
    for one in output.miscompares:
        assert (one.words, one.unwritten) == (2, 0)
        assert {first.word % 512 for first in one.first} == {place % 512 for place in places}
        assert {first.xor for first in one.first} == {f"{1 << 7:016x}"}


def test_the_products_stream_holds_no_copy_up() -> None:
    import torch

    began_s: list[float] = []

    def change(copies: Copies) -> None:
        Kernels("fault").launch("pause_ns", 1, 1, [ctypes.c_ulonglong(5 * 10**9)])
        began_s.append(time.monotonic())

    assert copied(change=change, turns=4).miscompares == ()
    assert time.monotonic() - began_s[0] < 3.0, (
        "the copies went on while the stream of the products stood still"
    )
    torch.cuda.synchronize()


def test_clean_copies_to_every_peer(peers: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burn_copies, "PAUSE_S", 0.0)
    began = time.monotonic()
    found = readings(output := copied(peers, turns=40))
    spent_s = time.monotonic() - began
    assert output.miscompares == ()
    for peer in peers:
        assert found[f"burn_peer_miscompares gpu0->gpu{peer}"] == 0
        gib = found[f"burn_peer_copied gpu0->gpu{peer}"]
        assert gib >= 40 * 64 / 1024
        print(f"gpu0->gpu{peer}: {gib:.2f} GiB in {spent_s:.2f} s")  # for who runs it with -s
        assert gib * 2**30 / spent_s >= 0.2e9, "the slowest link carries that many times over"


def test_one_bit_that_is_wrong_at_a_peer_is_found(peers: Sequence[int]) -> None:
    def change(copies: Copies) -> None:
        for path in copies._peers:
            path._carry = flipped(path, path._carry)  # type: ignore[method-assign]

    def flipped(path: Any, carry: Callable[[], None]) -> Callable[[], None]:
        def carried() -> None:
            carry()
            path._arrived[WORDS - 1 : WORDS].bitwise_xor_(1 << 13)  # by the peer, on its stream

        return carried

    output = copied(peers, change)
    assert {str(one.component) for one in output.miscompares} == {
        f"gpu0->gpu{peer}" for peer in peers
    }
    for one in output.miscompares:
        assert (one.words, one.unwritten, one.first[0].word) == (1, 0, WORDS - 1)
        assert one.first[0].xor == f"{1 << 13:016x}"


@pytest.mark.parametrize("count", [1, 31, 1_000_003, WORDS])
def test_the_kernels_of_every_gpu_make_and_count_the_words(count: int) -> None:
    import torch

    first, due = first_of("GPU-a", "GPU-b", 5), np.empty(count, np.uint64)
    copy_pattern.write(due, first)
    for index in range(seen()):
        pattern = KernelPattern(index)
        buffer = torch.empty(count, dtype=torch.int64, device=f"cuda:{index}")
        tally = torch.empty(PLACES, dtype=torch.int64, device=f"cuda:{index}")
        with torch.cuda.stream(torch.cuda.Stream(device=index)):
            pattern.spoil(buffer, tally)
            assert bool((buffer == SPOILED).all())
            pattern.verify(buffer, first, tally)
            assert tally.tolist() == [count, count, pattern.steps(count)]
            pattern.spoil(buffer, tally)
            pattern.write(buffer, first)
            pattern.verify(buffer, first, tally)
            assert tally.tolist() == [0, 0, pattern.steps(count)]
            assert (buffer.cpu().numpy().view(np.uint64) == due).all()
            assert device_pattern.fault(buffer, first) is None
            buffer[count // 2] = SPOILED
            buffer[0] ^= 1 << 62
            pattern.spoil(torch.empty_like(buffer), tally)
            pattern.verify(buffer, first, tally)
            wrong = device_pattern.fault(buffer, first)
            assert wrong is not None
            assert tally.tolist() == [wrong["words"], wrong["unwritten"], pattern.steps(count)]
