"""What is asked of the programs of a pair; as a program, the load of a node.

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

from load_texts import printed
from msgspec.structs import replace

from acceptance.loads.__main__ import parsed
from acceptance.loads.collective.contract import PairAsk
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES

ROOT = Path(__file__).parents[2]
# Of this as a program.
PYTHONPATH = ":".join(
    [str(ROOT), *(f"{ROOT}/tests/{one}" for one in ("loads", "tools", "diagnosis"))]
)


def asked(rank: int, test: str = "t", **more: Any) -> PairAsk:
    given = {"backend": "nccl", "address": "n1", "within": 60.0, **more}
    return PairAsk(rank=rank, test=test, **given)


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
    about = {"host": how.get("host", node), "uuids": [how.get("gpu", "")]}
    wrong = {COLLECTIVE_MISCOMPARES: how.get("wrong", 0)}
    made = replace(ask, inject=how.get("inject"))
    text = printed(made, about, rate=10.0 * how.get("slow", 1.0), values=wrong)
    if "hangs" in how or "dies" in how:
        print(text.splitlines()[0], flush=True)
        time.sleep(600 if "hangs" in how else 0)
        return 9
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
