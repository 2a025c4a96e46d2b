"""`nvidia-smi topo -m`: the path between each two GPUs and NICs, and the CPUs next to each GPU.

It says how the driver sees the machine wired, not how fast a path is: NV12 is the *number* of NVLinks bonded between two GPUs, of
whatever generation, and links that are down are not counted. A GPU that the driver lost is simply not in the matrix. Matrices of
`topo -p2p` are read too (topo_p2p).

Readings, component `gpu0->gpu1`, each pair in both directions:

- `topo_path_rank`, count: 0 for NVLink, PSB and PIX 1 (one PCIe switch), PXB 2 (several), PHB 3 (the host bridge), NODE 4 (between host
  bridges of a NUMA node), SYS 5 (between NUMA nodes; SOC in old drivers).
- `topo_nvlinks`, count: the NVLinks between two GPUs; absent where no GPUs of the matrix have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.tools import topo_p2p, topo_table
from acceptance.tools.reading import Reading, ToolOutput, UnreadableOutput

TOOL = "topo-m"
_RANK = {"PSB": 1, "PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
# Up to so many names are written out in a sentence.
_SHORT = 4


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix by component: `gpu0`, `nic0`, or the device's own name in old drivers (`mlx5_0`). NVSwitches are left out.

    `cells` are the printed paths by (row, column), X on the diagonal. The affinities are by GPU: lists such as `0-31,64-95` as printed,
    None where the driver says N/A or the text does not tell.
    """

    rows: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    cpu_affinity: Mapping[str, str | None]
    numa_affinity: Mapping[str, str | None]
    gpu_numa: Mapping[str, str | None]

    def gpus(self) -> tuple[str, ...]:
        """The GPUs among the rows."""
        return tuple(self.cpu_affinity)


def argv(binary: str) -> tuple[str, ...]:
    """The command line."""
    return (binary, "topo", "-m")


def _matrix(table: topo_table.Table) -> Matrix:
    names = {
        name.lower() if name.startswith(("GPU", "NIC")) else name: name
        for name in table.names
        if not name.startswith("NVSwitch")
    }
    for a, row in names.items():
        for b, column in names.items():
            there, back = table.cells[row, column], table.cells[column, row]
            if there != back:
                raise UnreadableOutput(
                    TOOL, f"{row} ... {column}", f"{a}->{b} is {there} and {b}->{a} is {back}: the text is damaged"
                )

    def affinity(heading: str) -> dict[str, str | None]:
        return {gpu: table.affinity[name].get(heading) for gpu, name in table.gpus().items()}

    return Matrix(
        rows=tuple(names),
        cells={(a, b): table.cells[row, column] for a, row in names.items() for b, column in names.items()},
        cpu_affinity=affinity("CPU Affinity"),
        numa_affinity=affinity("NUMA Affinity"),
        gpu_numa=affinity("GPU NUMA ID"),
    )


def matrix(text: str) -> Matrix:
    """The one `topo -m` matrix of a text. Raises UnreadableOutput when it holds none, several that differ, or one that is not whole."""
    found = [table for table in topo_table.tables(TOOL, text) if not table.is_p2p]
    if not found:
        raise UnreadableOutput(TOOL, "", topo_table.trouble(TOOL, text))
    table = topo_table.one(found)
    if table is None:
        raise UnreadableOutput(TOOL, "", "the text holds matrices that differ: give one machine at a time")
    return _matrix(table)


def _pairs(found: Matrix) -> dict[tuple[str, str], str]:
    return {(a, b): found.cells[a, b] for a in found.gpus() for b in found.gpus() if a != b}


def _rank(path: str) -> int:
    return 0 if path.startswith("NV") else _RANK[path]


def _reason(found: Matrix) -> str:
    paths: dict[str, list[str]] = {}
    place = {gpu: index for index, gpu in enumerate(found.gpus())}
    for (a, b), path in sorted(_pairs(found).items(), key=lambda pair: _rank(pair[1])):
        if place[a] < place[b]:
            paths.setdefault(path, []).append(f"{a}-{b}")
    told = [
        f"{' '.join(names) if len(names) <= _SHORT else f'{len(names)} pairs'} {path}" for path, names in paths.items()
    ]
    if len(paths) == 1:
        told = [entry.replace("pairs", "pairs, all") for entry in told]
    others = [name for name in found.rows if name not in found.gpus()]
    nics = f"; {len(others)} NIC{'s' * (len(others) > 1)}" if others else ""
    if 0 < len(others) <= _SHORT:
        nics += f": {' '.join(others)}"
    return f"{len(found.gpus())} GPU{'s' * (len(found.gpus()) > 1)}: {', '.join(told) or 'no pair'}{nics}"


def _output(found: Matrix) -> ToolOutput:
    pairs = {f"{a}->{b}": path for (a, b), path in _pairs(found).items()}
    readings = (
        [Reading("topo_path_rank", "count", {pair: float(_rank(path)) for pair, path in pairs.items()})]
        if pairs
        else []
    )
    links = {pair: float(path[2:]) if path.startswith("NV") else 0.0 for pair, path in pairs.items()}
    if any(links.values()):
        readings.append(Reading("topo_nvlinks", "count", links))
    return ToolOutput(TOOL, "pass", _reason(found), tuple(readings))


def parse(text: str) -> ToolOutput:
    """Read a `topo -m` matrix, a `topo -p2p` one, or one of each. *pass* when they are whole; it knows no machine to compare with.

    *error* when nvidia-smi says why there is none, or matrices of one kind differ. Raises UnreadableOutput, among others for a row that
    is missing or cut and for a path that is not the same from both ends.
    """
    tables = topo_table.tables(TOOL, text)
    if not tables:
        return ToolOutput(TOOL, "error", topo_table.trouble(TOOL, text))
    paths = [table for table in tables if not table.is_p2p]
    if not paths:
        return topo_p2p.parse(text)
    table = topo_table.one(paths)
    if table is None:
        return ToolOutput(TOOL, "error", "the text holds topo -m matrices that differ: give one machine at a time")
    wired = _output(_matrix(table))
    if len(paths) == len(tables):
        return wired
    if any(other.gpus() != table.gpus() for other in tables):
        return ToolOutput(
            TOOL, "error", "the topo -m and topo -p2p matrices have different GPUs: give one machine at a time"
        )
    access = topo_p2p.parse(text)
    if access.outcome != "pass":
        return ToolOutput(TOOL, access.outcome, access.reason)
    return ToolOutput(TOOL, "pass", f"{wired.reason}; peer access: {access.reason}", wired.readings + access.readings)
