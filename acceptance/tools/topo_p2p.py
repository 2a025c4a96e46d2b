"""`nvidia-smi topo -p2p`: whether the driver would let each GPU reach into another's memory, for one capability.

The text does not say which capability was asked for (r read, w write, n NVLink, a atomics, p PCIe). It is what the driver knows of chips
and chipset, not a copy that was tried: `OK` promises neither a rate nor right data. GeForce GPUs answer CNS or NS as a rule.

Reading: `p2p_ok`, count, component `gpu0->gpu1` (row, then column): 1 for OK, 0 for a refusal.
"""

from __future__ import annotations

from collections import defaultdict

from acceptance.tools import topo_table
from acceptance.tools.reading import Reading, ToolOutput

TOOL = "topo-p2p"
_CAPABILITIES = ("r", "w", "n", "a", "p")


def argv(binary: str, *, capability: str = "r") -> tuple[str, ...]:
    """The command line. Raises ValueError for a capability that nvidia-smi does not know."""
    if capability not in _CAPABILITIES:
        raise ValueError(f"the capability is one of {', '.join(_CAPABILITIES)}, not '{capability}'")
    return (binary, "topo", "-p2p", capability)


def output(table: topo_table.Table) -> ToolOutput:
    """What one matrix is worth. *error* where the driver says U: it does not know."""
    gpus = table.gpus()
    pairs = {(a, b): table.cells[gpus[a], gpus[b]] for a in gpus for b in gpus if a != b}
    unknown = [f"{a}->{b}" for (a, b), cell in pairs.items() if cell == "U"]
    if unknown:
        return ToolOutput(TOOL, "error", f"the driver does not know (U) whether {unknown[0]} works")
    refused: dict[str, list[str]] = defaultdict(list)
    for (a, b), cell in pairs.items():
        if cell != "OK":
            refused[cell].append(f"{a}->{b}")
    count = f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}"
    if not pairs:
        return ToolOutput(TOOL, "pass", f"{count}: no pair")
    told = ", ".join(
        f"{cell} ({topo_table.ANSWERS[cell]}) for {len(names)} ({names[0]}{' ...' * (len(names) > 1)})"
        for cell, names in refused.items()
    )
    reason = f"{count}: OK for {len(pairs) - sum(map(len, refused.values()))} of {len(pairs)} directions"
    values = {f"{a}->{b}": float(cell == "OK") for (a, b), cell in pairs.items()}
    return ToolOutput(TOOL, "pass", reason + (f", {told}" if told else ""), (Reading("p2p_ok", "count", values),))


def parse(text: str) -> ToolOutput:
    """Read one `topo -p2p` matrix, or several that say the same. *error* for matrices that differ. Raises UnreadableOutput."""
    found = [table for table in topo_table.tables(TOOL, text) if table.is_p2p]
    if not found:
        return ToolOutput(TOOL, "error", topo_table.trouble(TOOL, text))
    table = topo_table.one(found)
    if table is None:
        return ToolOutput(
            TOOL, "error", "the text holds topo -p2p matrices that differ: give one machine and capability at a time"
        )
    return output(table)
