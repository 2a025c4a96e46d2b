"""What the load of collectives prints on two GPUs and more: figures and logs made up, by the forms
of `acceptance.loads.names` and of NCCL's log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import nccl_texts

GROUP = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
ARMS = {"default": "", "p2p_off": "_p2p_off"}
MULTICAST = {**ARMS, "multicast": "_multicast"}
Via = Callable[[int, int], str]
Line = dict[str, Any]


def logs(arm: str, addresses: Sequence[str], via: Via) -> list[Line]:
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
    found = []
    for rank, text in enumerate(texts):
        told = text
        for number, address in enumerate(addresses):
            digits = address.replace(":", "").replace(".", "").lstrip("0")
            told = told.replace(f"busId {nccl_texts.bus(number)} ", f"busId {digits} ")
        found.append({"log": f"nccl{MULTICAST[arm]}", "component": f"gpu{rank}", "text": told})
    return found


def lines(
    uuids: Sequence[str],
    addresses: Sequence[str],
    *,
    seconds: float,
    rate: Callable[[str, int, int], float] = lambda _arm, _first, _second: 20.0,
    via: Via = lambda _first, _second: nccl_texts.SHM,
    counts: Mapping[tuple[str, str], float] | None = None,
    arms: Mapping[str, str] = ARMS,
) -> list[Line]:
    """All lines. `rate` gives GB/s of a path in an arm; `counts` what was wrong, by name and
    component.
    """
    ranks, wrong = range(len(uuids)), dict(counts or {})
    found: list[Line] = []

    def reading(name: str, unit: str, component: str, value: float) -> None:
        value = wrong.get((name, component), value)
        found.append({"reading": name, "unit": unit, "component": component, "value": value})

    def row(arm: str, name: str, dtype: str, component: str, value: float) -> list[Any]:
        """One of 2400 elements a share, in one turn that counts, after one that does not."""
        share, itemsize, count = 2400, 2 if dtype in ("bf16", "f16") else 4, len(uuids)
        shares = count if name in ("all_gather", "reduce_scatter", "all_to_all") else 1
        # elements in all destinations, in shares
        ends = {"all_gather": count**2, "all_to_all": count**2, "send_receive": 1}
        size, compared = share * shares * itemsize, 2 * share * ends.get(name, count)
        return [arm, name, component, dtype, size, 1, compared, 1e6, round(value, 3)]

    rows: list[list[Any]] = []
    for arm, end in arms.items():
        slowest = min(rate(arm, a, b) for a in ranks for b in ranks if a != b)
        for name in ("all_reduce", "reduce_scatter"):
            rows += [row(arm, name, dtype, "gpus", 1.0) for dtype in ("bf16", "f16", "i32")]
        for name in GROUP:
            reading(f"collective_{name}{end}", "GB/s", "gpus", slowest)
            rows.append(row(arm, name, "f32", "gpus", slowest))
        reading(f"collective_latency{end}", "us", "gpus", 20.0)
        reading(f"collective_disagreements{end}", "count", "gpus", 0.0)
        for a in ranks:
            reading(f"collective_miscompares{end}", "count", f"gpu{a}", 0.0)
            for b in set(ranks) - {a} if arm != "multicast" else ():
                path = f"gpu{a}->gpu{b}"
                reading(f"collective_send_receive{end}", "GB/s", path, rate(arm, a, b))
                rows.append(row(arm, "send_receive", "f32", path, rate(arm, a, b)))
                reading(f"collective_send_receive_miscompares{end}", "count", path, 0.0)
        found += logs(arm, addresses, via)
    columns = [
        "arm",
        "operation",
        "component",
        "format",
        "bytes",
        "turns",
        "compared",
        "us",
        "GB/s",
    ]
    found.append({"table": "collectives", "columns": columns, "rows": rows})
    asked = {"backend": "nccl", "ranks": len(uuids), "seconds": seconds, "arms": list(arms)}
    hello: Line = {
        "rigproof_load": 1,
        "load": "collective",
        "parameters": {**asked, "most": 4 << 30, "turns": 5, "uuids": list(uuids)},
    }
    return [hello, *found, {"end": True, "readings": len(found)}]


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
