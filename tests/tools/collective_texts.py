"""What the load of collectives prints on two GPUs and more: figures and logs made up, by the forms
of its contract and of NCCL's log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import load_texts
import nccl_texts

from acceptance.core import parts
from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads.collective.contract import COLLECTIVES, COLUMNS, Ask
from acceptance.loads.contract import ReadingKey
from acceptance.loads.miscompare import CollectiveArm, of_arm

GROUP = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
Via = Callable[[int, int], str]
Line = dict[str, Any]


def logs(arm: CollectiveArm, addresses: Sequence[str], via: Via) -> dict[ReadingKey, str]:
    """NCCL's log of each rank, whose GPU has this PCI address."""
    own = {
        "default": [],
        "p2p_off": ["NCCL_P2P_DISABLE set by environment to 1"],
        "multicast": [
            "AllReduce: 1073741824 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}"
        ],
    }
    multicast = int(arm == "multicast")
    texts = nccl_texts.processes(
        len(addresses),
        (lambda _first, _second: nccl_texts.SHM) if arm == "p2p_off" else via,
        exchange=True,
        extra=[f"NCCL_NVLS_ENABLE set by environment to {multicast}", *own[arm]],
    )
    found = {}
    for rank, text in enumerate(texts):
        told = text
        for number, address in enumerate(addresses):
            digits = address.replace(":", "").replace(".", "").lstrip("0")
            told = told.replace(f"busId {nccl_texts.bus(number)} ", f"busId {digits} ")
        found[of_arm("nccl", arm), Gpu(rank)] = told
    return found


def lines(
    ask: Ask,
    uuids: Sequence[str],
    addresses: Sequence[str],
    *,
    rate: Callable[[str, int, int], float] = lambda _arm, _first, _second: 20.0,
    via: Via = lambda _first, _second: nccl_texts.SHM,
    counts: Mapping[tuple[str, str], float] = {},
) -> list[Line]:
    """All lines. `rate` gives GB/s of a path in an arm; `counts` what was wrong, by name and
    component.
    """
    ranks = range(len(uuids))
    at = {(name, parts.parse(component)): value for (name, component), value in counts.items()}
    kept: dict[ReadingKey, str] = {}

    def row(arm: str, name: str, dtype: str, component: str, value: float) -> list[Any]:
        """One of 2400 elements a share, in one turn that counts, after one that does not."""
        share, itemsize, count = 2400, 2 if dtype in ("bf16", "f16") else 4, len(uuids)
        shares = count if name in ("all_gather", "reduce_scatter", "all_to_all") else 1
        # elements in all destinations, in shares
        ends = {"all_gather": count**2, "all_to_all": count**2, "send_receive": 1}
        size, compared = share * shares * itemsize, 2 * share * ends.get(name, count)
        return [arm, name, component, dtype, size, 1, compared, 1e6, round(value, 3)]

    rows: list[list[Any]] = []
    for arm in ask.arms:
        slowest = min(rate(arm, a, b) for a in ranks for b in ranks if a != b)
        for name in ("all_reduce", "reduce_scatter"):
            rows += [row(arm, name, dtype, "gpus", 1.0) for dtype in ("bf16", "f16", "i32")]
        for name in GROUP:
            at.setdefault((of_arm(f"collective_{name}", arm), GPUS), slowest)
            rows.append(row(arm, name, "f32", "gpus", slowest))
        at.setdefault((of_arm("collective_latency", arm), GPUS), 20.0)
        for a in ranks:
            for b in set(ranks) - {a} if arm != "multicast" else ():
                path, value = Pair(Gpu(a), Gpu(b)), rate(arm, a, b)
                at.setdefault((of_arm("collective_send_receive", arm), path), value)
                rows.append(row(arm, "send_receive", "f32", str(path), value))
        kept |= logs(arm, addresses, via)
    text = load_texts.printed(
        ask, {"uuids": list(uuids)}, values=at, logs=kept, tables={COLLECTIVES: (COLUMNS, rows)}
    )
    return [json.loads(line) for line in text.splitlines()]


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
