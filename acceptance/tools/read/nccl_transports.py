"""`rigproof read nccl-log`: the transport of each pair of GPUs, from a kept log of NCCL's.

The logs of all processes may stand in one text, one behind the other, as `cat` puts them.
"""

from __future__ import annotations

from itertools import permutations

from acceptance.core import parts
from acceptance.core.message import Listed, Message, english, known
from acceptance.core.parts import Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import nccl_log, nccl_warnings
from acceptance.tools.reading import ToolOutput, tool_lines

TOOL = "nccl-log"
# The largest number of pairs that a sentence lists.
_SHORT = 4


def parse(text: str) -> ToolOutput:
    """Parse NCCL's log, of one process or of all of them.

    *pass* if it is complete: without the machine's links nothing says whether a transport is the
    right one. `events` has the transport of each pair, and what NCCL warns of. *fail* if a warning
    names a fault of the hardware. *error* if NCCL could not do its work, or if no pair has a
    transport; so is a log that is not whole and has a warning. Raises UnreadableOutput as
    `nccl_log.parse` does, which says what environment makes a log that can be read.
    """
    warnings = nccl_warnings.find(tool_lines(text))
    if told := warnings.verdict(TOOL):
        return told
    note = warnings.note()
    try:
        log = nccl_log.parse([text])
    except UnreadableOutput as error:
        if note is None:
            raise
        reason = Message(
            english("nccl_unreadable_and_warned", "{why}; {note}"),
            {"why": error.message, "note": note},
        )
        return ToolOutput(TOOL, "error", reason, events=warnings.events())
    due = {ends for one in log.communicators for ends in permutations(one, 2)}
    gpus = {address for one in log.communicators for address in one}
    broken = [remark.text for remark in log.remarks if remark.kind == "p2p-disabled-nvlink"]
    if broken:
        values = known(line=broken[0], more=len(broken) - 1 or None)
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english(
                    "nccl_failed",
                    "NCCL could not do its work: '{line}'[ (and {more} more such lines)][: "
                    "{cause}]",
                ),
                values,
            ),
        )
    if not log.transports:
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english(
                    "nccl_no_transport",
                    "the log names no transport: does NCCL_DEBUG_SUBSYS name INIT,P2P,SHM,NET, "
                    "and did a collective operation run?",
                )
            ),
        )
    pairs: dict[str, list[str]] = {}
    for ends, one in log.transports.items():
        pairs.setdefault(f"{one.kind} ({', '.join(one.ways)})", []).append(
            str(Pair(*map(parts.parse, ends)))
        )
    many = (
        english("all_pairs_of_path", "{count} pairs, all {path}")
        if len(pairs) == 1
        else english("pairs_of_path", "{count} pairs {path}")
    )
    texts = tuple(
        f"{', '.join(names)} {transport}"
        if len(names) <= _SHORT
        else Message(many, {"count": len(names), "path": transport})
        for transport, names in sorted(pairs.items())
    )
    reason = Message(
        english(
            "nccl_transports",
            "NCCL {version}, {gpus}: {pairs}[; paths without one, because nothing was sent over "
            "them: {absent}][; NCCL's own remarks: {remarks}][; {note}]",
        ),
        known(
            version=log.version,
            gpus=Message("number_of_gpus", {"n": len(gpus)}),
            pairs=Listed(texts),
            absent=len(due - set(log.transports)) or None,
            remarks=len(log.remarks) or None,
            note=note,
        ),
    )
    events: list[dict[str, object]] = [
        {"kind": "transport", "from": first, "to": second, "transport": one.kind, "ways": one.ways}
        for (first, second), one in log.transports.items()
    ]
    events += [{"kind": one.kind, "text": one.text, "between": one.ends} for one in log.remarks]
    return ToolOutput(TOOL, "pass", reason, events=tuple(events))
