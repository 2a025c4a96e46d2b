"""`rigproof read nccl-log`: the transport of each pair of GPUs, from a kept log of NCCL's.

The logs of all processes may stand in one text, one behind the other, as `cat` puts them.
"""

from __future__ import annotations

from itertools import permutations

from acceptance.core import parts
from acceptance.core.message import Listed, Message, known
from acceptance.core.parts import Pair
from acceptance.tools.read import nccl_log
from acceptance.tools.reading import ToolOutput

TOOL = "nccl-log"
# The largest number of pairs that a sentence lists.
_SHORT = 4


def parse(text: str) -> ToolOutput:
    """Parse NCCL's log, of one process or of all of them.

    *pass* if it is complete: without the machine's links nothing says whether a transport is the
    right one. `events` has the transport of each pair, and what NCCL warns of. *error* if no pair
    has a transport. Raises UnreadableOutput as `nccl_log.parse` does, which says what environment
    makes a log that can be read.
    """
    log = nccl_log.parse([text])
    due = {ends for one in log.communicators for ends in permutations(one, 2)}
    gpus = {address for one in log.communicators for address in one}
    if not log.transports:
        return ToolOutput(TOOL, "error", Message("nccl_no_transport"))
    pairs: dict[str, list[str]] = {}
    for ends, one in log.transports.items():
        pairs.setdefault(f"{one.kind} ({', '.join(one.ways)})", []).append(
            str(Pair(*map(parts.parse, ends)))
        )
    many = "all_pairs_of_path" if len(pairs) == 1 else "pairs_of_path"
    texts = tuple(
        f"{', '.join(names)} {transport}"
        if len(names) <= _SHORT
        else Message(many, {"count": len(names), "path": transport})
        for transport, names in sorted(pairs.items())
    )
    reason = Message(
        "nccl_transports",
        known(
            version=log.version,
            gpus=Message("number_of_gpus", {"n": len(gpus)}),
            pairs=Listed(texts),
            absent=len(due - set(log.transports)) or None,
            remarks=len(log.remarks) or None,
        ),
    )
    events: list[dict[str, object]] = [
        {"kind": "transport", "from": first, "to": second, "transport": one.kind, "ways": one.ways}
        for (first, second), one in log.transports.items()
    ]
    events += [{"kind": one.kind, "text": one.text, "between": one.ends} for one in log.remarks]
    return ToolOutput(TOOL, "pass", reason, events=tuple(events))
