"""What the programs of a pair print, as the load prints it; as a program, the load of a node.

    python pair_outputs.py FOLDER NODE -m acceptance.loads collective_pair NAME=VALUE ...

FOLDER/NODE.json has what is wrong with a node: `slow` (the factor of its rates), `with` (only with
the node of this address), `wrong` (elements), `inject`, `dies` or `hangs` after the first line,
`absent` (it ends at once), `host` and `gpu` (what it says of its machine; its name, and none).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import load_texts
from msgspec.structs import replace

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads.__main__ import parsed
from acceptance.loads.collective.contract import COLLECTIVES, COLUMNS, PairAsk
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES

WAYS = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))
ELEMENTS = 6 * 2048  # of 8 KiB, in a turn to warm up and five


def asked(rank: int, test: str = "t", **more: Any) -> PairAsk:
    given = {"backend": "nccl", "address": "n1", "within": 60.0, **more}
    return PairAsk(rank=rank, test=test, **given)


def output(ask: PairAsk, rate: float = 10.0, wrong: int = 0, **said: str) -> str:
    """The whole output of a rank; `said` are the host that it names, and its GPU."""
    about = {"host": said.get("host", f"h{ask.rank}"), "uuids": [said.get("gpu", "")]}
    at = dict.fromkeys(
        (one for one, unit in ask.due(load_texts.EMPTY).readings.items() if unit == "GB/s"), rate
    )
    rows = [
        ("default", name, str(component), "f32", 8192, 5, elements, 9.0, rate)
        for name, component, elements in (
            ("all_reduce", GPUS, ELEMENTS),
            ("all_gather", GPUS, ELEMENTS),
            *(("send_receive", way, ELEMENTS * (way.second == Gpu(ask.rank))) for way in WAYS),
        )
    ]
    tables = {COLLECTIVES: (COLUMNS, rows)}
    return load_texts.printed(
        ask, about, values={COLLECTIVE_MISCOMPARES: wrong, **at}, tables=tables
    )


def main(folder: Path, node: str, argv: list[str]) -> int:
    ask = parsed(argv[argv.index("collective_pair") :])
    assert isinstance(ask, PairAsk)
    with (folder / "log").open("a") as log:
        log.write(f"{node} {' '.join(argv)}\n")
    path = folder / f"{node}.json"
    how = json.loads(path.read_text()) if path.exists() else {}
    if how.pop("with", ask.address) != ask.address:
        how = {}
    if "absent" in how:
        print("ssh: connect to host: No route to host", file=sys.stderr)
        return 255
    said = {"host": node} | {key: how[key] for key in ("host", "gpu") if key in how}
    made = replace(ask, inject=how.get("inject"))
    text = output(made, 10.0 * how.get("slow", 1.0), how.get("wrong", 0), **said)
    if "hangs" in how or "dies" in how:
        print(text.splitlines()[0], flush=True)
        time.sleep(600 if "hangs" in how else 0)
        return 9
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
