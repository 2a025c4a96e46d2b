"""Copies over the GPU's links beside the products: host to GPU, GPU to host, and to each peer and back, every byte compared. Needs torch.

Pieces of 64 MiB, all paths at the same time, each on a stream of its own: the copy engines carry them while the products go on. What comes
to the GPU is compared there by the burn's own kernel, what comes to the host by the processor. Two patterns take turns, so that what did
not arrive shows as the other one. `burn_copied` counts what was copied and compared; it is a sign of life and no rate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from acceptance.loads.bits import same
from acceptance.loads.burn_card import wait
from acceptance.loads.burn_compare import Comparator
from acceptance.loads.burn_role import Beside
from acceptance.loads.copy_pattern import first_number
from acceptance.loads.device_pattern import Tensor, words
from acceptance.loads.protocol import Output

PIECE = 64 << 20
LISTED = 16
COMPONENT = "gpu0"
_WORDS = PIECE // 8
_SEED = 40  # of the patterns: beyond those of the other copies


class Patterns:
    """The two patterns, on the GPU and in pinned memory of the host."""

    def __init__(self) -> None:
        import torch

        self.own: list[Tensor] = [words(first_number(_SEED + turn), _WORDS, "cuda:0") for turn in range(2)]
        self.host = [torch.empty(_WORDS, dtype=torch.int64, pin_memory=True).copy_(one) for one in self.own]


class Path:
    """One path, which is begun again as soon as what it carried was compared. `peer` is the other GPU's index."""

    def __init__(self, check: str, patterns: Patterns, comparator: Comparator, peer: int | None = None) -> None:
        import torch

        self.check = check
        self.component = COMPONENT if peer is None else f"{COMPONENT}->gpu{peer}"
        self.pieces = self.wrong = 0
        self._patterns, self._comparator = patterns, comparator
        self._stream = torch.cuda.Stream()
        home = {"pin_memory": True} if check == "copy_d2h" else {"device": "cuda:0"}
        self._arrived = torch.empty(_WORDS, dtype=torch.int64, **home)
        self._there = torch.empty(_WORDS, dtype=torch.int64, device=f"cuda:{peer}") if peer is not None else None
        self._event: Any = None
        self._ticket: Any = None

    @property
    def busy(self) -> bool:
        """Whether something is on its way or being compared."""
        return self._event is not None or self._ticket is not None

    def begin(self) -> None:
        """Give the copy engines one piece to carry."""
        import torch

        turn = self.pieces % 2
        own, host = self._patterns.own[turn], self._patterns.host[turn]
        with torch.cuda.stream(self._stream):
            if self._there is not None:
                self._there.copy_(own, non_blocking=True)
                self._arrived.copy_(self._there, non_blocking=True)
            else:
                self._arrived.copy_(host if self.check == "copy_h2d" else own, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record(self._stream)

    def look(self) -> dict[str, Any] | None:
        """Go on with what has arrived; how a piece differs, where one does."""
        turn = self.pieces % 2
        if self._ticket is not None:
            wrong = self._comparator.counts(self._ticket)[0][0]
            self._ticket = None
            self.pieces += 1
            return differences(self._patterns.own[turn].cpu(), self._arrived.cpu()) if wrong else None
        if self._event is None or not self._event.query():
            return None
        self._event = None
        if self.check != "copy_d2h":
            self._ticket = self._comparator.start(self._patterns.own[turn], [self._arrived], 0)
            return None
        self.pieces += 1
        due = self._patterns.host[turn]
        return None if same(due.numpy(), self._arrived.numpy()) else differences(due, self._arrived)


class Copies(Beside):
    """All copies of one GPU, looked after between groups of products."""

    def __init__(
        self, output: Output, comparator: Comparator, peers: Sequence[int], boot_s: Callable[[], float]
    ) -> None:
        import torch

        self._output, self._boot_s = output, boot_s
        patterns = Patterns()
        self._host = [Path(check, patterns, comparator) for check in ("copy_h2d", "copy_d2h")]
        self._peers = [Path("copy_p2p", patterns, comparator, peer) for peer in peers]
        torch.cuda.synchronize()  # the patterns are there before another stream reads them

    def step(self) -> None:
        """Look at every path, and begin again those that are done; never waits for a copy."""
        for path in (*self._host, *self._peers):
            self._look(path)
            if not path.busy:
                path.begin()

    def _look(self, path: Path) -> None:
        found = path.look()
        if found is not None:
            path.wrong += 1
            if path.wrong <= LISTED:
                told = {"component": path.component, "check": path.check, "found_s": self._boot_s(), **found}
                self._output.miscompare(told)

    def _over(self, path: Path) -> bool:
        """Whether nothing of a path is on its way any more, having looked at it."""
        self._look(path)
        return not path.busy

    def finish(self) -> None:
        """Wait for what is on its way, and say what was copied and what came wrong. Raises CardError where the GPU hangs."""
        for path in (*self._host, *self._peers):
            wait(functools.partial(self._over, path))
        # The least of the ways: a link that carried nothing one way is not covered by the other.
        least = len(self._host) * min(path.pieces for path in self._host)
        self._output.reading("burn_copied", "GiB", COMPONENT, least * PIECE / 2**30)
        self._output.reading("burn_copy_miscompares", "count", COMPONENT, sum(path.wrong for path in self._host))
        for path in self._peers:
            self._output.reading("burn_peer_copied", "GiB", path.component, path.pieces * PIECE / 2**30)
            self._output.reading("burn_peer_miscompares", "count", path.component, path.wrong)


def differences(expected: Tensor, got: Tensor) -> dict[str, Any]:
    """How a piece differs from its pattern, both on the host."""
    places = (expected != got).nonzero().flatten()
    mask = (1 << 64) - 1
    listed = [
        {"word": place, "expected": f"{int(expected[place]) & mask:016x}", "got": f"{int(got[place]) & mask:016x}"}
        for place in places[:4].tolist()
    ]
    return {"words": int(places.numel()), "first": listed}
