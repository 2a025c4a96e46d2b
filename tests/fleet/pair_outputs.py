"""What the programs of a pair print, as the load prints it; as a program, the load of a node.

    python pair_outputs.py FOLDER NODE -m MODULE [ARGUMENTS OF THE LOAD]

FOLDER/NODE.json has what is wrong with a node: `slow` (the factor of its rates), `with` (only with
the node of this address), `wrong` (elements), `inject`, `dies` or `hangs` after the first line,
`absent` (it ends at once), `host` and `gpu` (what it says of its machine; its name, and none).
"""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads.names import COLLECTIVE_COLUMNS, COLLECTIVES
from acceptance.loads.protocol import Output

WAYS = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))
READINGS = (
    ("collective_all_reduce", GPUS),
    ("collective_all_gather", GPUS),
    ("collective_send_receive", WAYS[0]),
    ("collective_send_receive", WAYS[1]),
)


def output(
    rank: int, rate: float = 10.0, wrong: int = 0, inject: str | None = None, **said: str
) -> str:
    """The whole output of a rank; `said` are parameters: its test, its host, and its GPU."""
    stream = io.StringIO()
    load = Output(stream)
    parameters = {"rank": rank, "test": said.get("test", "t"), "host": said.get("host", f"h{rank}")}
    parameters |= {"uuids": [said.get("gpu", "")]} | ({"inject": inject} if inject else {})
    load.hello("collective_pair", parameters)
    for name, component in READINGS:
        load.reading(name, "GB/s", component, rate)
    load.reading("collective_miscompares", "count", Gpu(rank), wrong)
    load.reading("collective_send_receive_miscompares", "count", WAYS[1 - rank], 0)
    rows = [
        ("default", name, "gpus", "f32", 4096, 5, 6144, 9.0, rate)
        for name in ("all_reduce", "all_gather", "send_receive")
    ]
    load.table(COLLECTIVES, COLLECTIVE_COLUMNS, rows)
    load.end()
    return stream.getvalue()


def main(folder: Path, node: str, argv: list[str]) -> int:
    rank, address, test = (argv[argv.index(name) + 1] for name in ("--rank", "--address", "--test"))
    with (folder / "log").open("a") as log:
        log.write(f"{node} {' '.join(argv)}\n")
    path = folder / f"{node}.json"
    how = json.loads(path.read_text()) if path.exists() else {}
    if how.pop("with", address) != address:
        how = {}
    if "absent" in how:
        print("ssh: connect to host: No route to host", file=sys.stderr)
        return 255
    said = {"test": test, "host": node} | {key: how[key] for key in ("host", "gpu") if key in how}
    rate, wrong = 10.0 * how.get("slow", 1.0), how.get("wrong", 0)
    text = output(int(rank), rate, wrong, how.get("inject"), **said)
    if "hangs" in how or "dies" in how:
        print(text.splitlines()[0], flush=True)
        time.sleep(600 if "hangs" in how else 0)
        return 9
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
