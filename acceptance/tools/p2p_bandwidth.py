r"""p2pBandwidthLatencyTest of the CUDA samples: its command line, and the parser of its text.

The parser was written for the samples of CUDA 6 to 13.

The program copies 160 MB between every two GPUs, five times, with peer access off (through host
memory) and on, in one direction and in both; then a few bytes, for the latency. Pitfalls: it copies
zeros and compares nothing, so its text does not prove that one byte arrived (early RTX 4090 drivers
offered peer access and delivered wrong data), and it always exits with 0. For a pair without peer
access it prints the staged figure under `P2P=Enabled` as well: `p2p_connectivity` distinguishes the
two.

Readings of pairs, component `gpu0->gpu1` for row 0, column 1. The copy runs on the row's stream
and, except for the `read` readings, from row to column. A section that the text lacks gives no
reading; with one GPU there are no pairs.

- `p2p_connectivity`, count: 1 if the driver offers peer access, else 0. Samples before CUDA 8 print
  no such matrix: their reading comes from the lines `Device=0 CAN Access Peer Device=1`, and is
  absent without those.
- `p2p_off`, `p2p_on`, GB/s: one direction. `p2p_off_bidirectional`, `p2p_on_bidirectional`, GB/s:
  the sum of both directions.
- `p2p_latency_off`, `p2p_latency_on`, us: one small copy, timed by the GPU; `p2p_cpu_latency_off`,
  `p2p_cpu_latency_on`, us: the time that the host needs to queue it.
- `p2p_on_read`, GB/s, `p2p_latency_on_read` and `p2p_cpu_latency_on_read`, us: the row reads from
  the column (`--p2p_read`).

Readings of one GPU, component `gpu0`, from the diagonals, which are copies inside that GPU and
count read and write: `p2p_local`, GB/s, from `p2p_off`, and `<name>_local` from each other matrix.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acceptance.core.message import Message, Values, english
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import proof, reading
from acceptance.tools.reading import GpuEntry, Reading, ToolOutput, duplicate

_PAIR = re.compile(
    r"^Device=(?P<row>\d{1,4}) (?P<can>CAN|CANNOT) Access Peer Device=(?P<column>\d{1,4})$"
)
_HEAD = re.compile(r"^P2P Cliques:?$")
_GROUP = re.compile(r"^\[(?P<gpus>\d{1,4}(?: \d{1,4})*)\]$")


@dataclass(slots=True)
class Access:
    """Peer access. `pairs`: whether (row, column) has it.

    `groups`: sets of GPUs that the first member reaches; None if the text has a matrix instead.
    """

    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)
    groups: list[set[int]] | None = None

    def take(self, line: str) -> bool:
        """Whether the line is about peer access; if so, it is stored."""
        if match := _PAIR.match(line):
            self.pairs[int(match["row"]), int(match["column"])] = match["can"] == "CAN"
        elif _HEAD.match(line):
            self.groups = []
        elif self.groups is not None and (match := _GROUP.match(line)):
            self.groups.append(set(map(int, match["gpus"].split())))
        else:
            return False
        return True

    def grouped(self) -> int | None:
        """The number of GPUs in the groups; None without groups, or if a GPU is missing."""
        gpus = set[int]().union(*self.groups or ())
        return len(gpus) if gpus and gpus == set(range(len(gpus))) else None

    def rows(self) -> list[tuple[float, ...]] | None:
        """The connectivity matrix of a text with groups, from its lines of pairs.

        None unless there is a line for every pair: the groups alone do not say which of their
        members reach each other.
        """
        count = self.grouped() or 0
        gpus = range(count)
        # Counted before they are listed: a group may name ten thousand GPUs, which have a hundred
        # million pairs.
        counted = count > 0 and len(self.pairs) == count * (count - 1)
        if not counted or self.pairs.keys() != {
            (row, column) for row in gpus for column in gpus if row != column
        }:
            return None
        return [
            tuple(float(row == column or self.pairs[row, column]) for column in gpus)
            for row in gpus
        ]


TOOL = "p2pBandwidthLatencyTest"

_TITLE = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
# The numbers are hexadecimal; the function is always 0.
_DEVICE = re.compile(
    r"^Device: (?P<index>\d{1,4}), (?P<name>.+?)(?:, pciBusID: (?P<bus>[0-9a-fA-F]{1,2}),"
    r" pciDeviceID: (?P<slot>[0-9a-fA-F]{1,2}), pciDomainID: ?(?P<domain>[0-9a-fA-F]{1,8}))?$"
)
# Beginnings of headings; such a line in an unknown form may be a renamed measurement.
_HEADING = re.compile(r"^(?:Unidirectional|Bidirectional) P2P|^P2P=|^P2P Connectivity")
_BANDWIDTH = re.compile(
    r"^(?P<way>Uni|Bi)directional P2P=(?P<p2p>Disabled|Enabled) Bandwidth "
    r"(?:\(P2P (?P<how>Writes|Reads)\) )?Matrix \(GB/s\)$"
)
_LATENCY = re.compile(
    r"^P2P=(?P<p2p>Disabled|Enabled) Latency (?:\(P2P (?P<how>Writes|Reads)\) )?Matrix \(us\)$"
)
# A markdown page may show the backslash of `D\D` twice or not at all.
_COLUMNS = re.compile(r"^(?P<label>D\\{0,2}D|GPU|CPU)\s+(?P<indices>\d+(?:\s+\d+)*)$")
_LOOSE_ROW = re.compile(r"^\d+(?:\s+-?(?:\d+\.\d+|\d|nan|inf))+$")
# printf("%6.02f") always prints two decimals; fewer mean a truncated line.
_CELL = re.compile(r"^-?(?:\d+\.\d\d|nan|inf)$")
_CONNECTIVITY = "p2p_connectivity"
_NEEDED = (_CONNECTIVITY, "p2p_off", "p2p_on", "p2p_off_bidirectional", "p2p_on_bidirectional")
# Sections that are printed together: one without the other means a truncated text.
_TOGETHER = (
    *(("p2p_latency_off", "p2p_latency_on"), ("p2p_cpu_latency_off", "p2p_cpu_latency_on")),
    ("p2p_on_read", "p2p_latency_on_read"),
)


def argv(binary: str) -> tuple[str, ...]:
    """The command line: all GPUs visible to CUDA, copy engines, peer writes."""
    return (binary,)


@dataclass(slots=True)
class _Matrix:
    """A table that is being read: `width` columns, and the rows so far."""

    name: str
    width: int
    rows: list[tuple[float, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Text:
    """Content of the lines, before it is judged."""

    ours: bool = False
    devices: dict[int, GpuEntry] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    headings: list[str] = field(default_factory=list)
    matrices: dict[str, _Matrix] = field(default_factory=dict)
    timed_by_gpu: list[str] = field(default_factory=list)
    open: _Matrix | None = None


def _heading(line: str) -> str:
    """The name of the reading under a heading."""
    if line == "P2P Connectivity Matrix":
        return _CONNECTIVITY
    bandwidth = _BANDWIDTH.match(line)
    match = bandwidth or _LATENCY.match(line)
    if match is None or (match["p2p"] == "Disabled" and match["how"]):
        raise UnreadableOutput(
            TOOL, line, Message(english("heading_unknown", "a heading has an unknown form"))
        )
    name = "p2p" if bandwidth else "p2p_latency"
    name += "_on" if match["p2p"] == "Enabled" else "_off"
    if bandwidth and bandwidth["way"] == "Bi":
        name += "_bidirectional"
    return name + ("_read" if match["how"] == "Reads" else "")


def _columns(text: _Text, line: str, match: re.Match[str]) -> None:
    """Read the first line of a table: it opens the matrix of the heading."""
    name = text.headings[-1] if text.headings else ""
    if not name or ("latency" not in name and match["label"] in ("GPU", "CPU")):
        raise UnreadableOutput(
            TOOL, line, Message(english("heading_missing", "a table without its heading"))
        )
    if match["label"] == "GPU":
        text.timed_by_gpu.append(name)
    if match["label"] == "CPU":
        name = name.replace("p2p_latency", "p2p_cpu_latency")
    if name in text.matrices:
        raise UnreadableOutput(
            TOOL,
            line,
            Message(
                english(
                    "table_of_name_twice",
                    "the table of {name} comes twice: a heading is missing, or it is two runs",
                ),
                {"name": name},
            ),
        )
    indices = match["indices"].split()
    if indices != [str(index) for index in range(len(indices))]:
        raise UnreadableOutput(
            TOOL,
            line,
            Message(english("columns_unnumbered", "the columns are not numbered from 0")),
        )
    text.matrices[name] = text.open = _Matrix(name, len(indices))


def _row(matrix: _Matrix, line: str) -> tuple[float, ...]:
    index, *cells = line.split()
    if index != str(len(matrix.rows)) or len(cells) != matrix.width:
        counts = {"row": len(matrix.rows), "width": matrix.width}
        raise UnreadableOutput(
            TOOL,
            line,
            Message(
                english("row_needed", "{name} needs row {row} of {width} figures here"),
                {"name": matrix.name, **counts},
            ),
        )
    if matrix.name == _CONNECTIVITY:
        if not set(cells) <= {"0", "1"} or cells[len(matrix.rows)] != "1":
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english("connectivity_unknown", "connectivity is 0 or 1, and 1 with itself")
                ),
            )
        return tuple(map(float, cells))
    if not all(map(_CELL.match, cells)):
        raise UnreadableOutput(
            TOOL, line, Message(english("figure_unknown", "a figure has an unknown form"))
        )
    return tuple(map(float, cells))


def _entry(match: re.Match[str]) -> GpuEntry:
    place = None
    if match["bus"] is not None:
        domain, bus, slot = (int(match[name], 16) for name in ("domain", "bus", "slot"))
        place = f"{domain:04x}:{bus:02x}:{slot:02x}.0"
    return GpuEntry(int(match["index"]), match["name"], pci_address=place)


def _line(text: _Text, line: str) -> None:
    """Store the content of one line. In an open table only its next row is allowed."""
    if text.open is not None:
        text.open.rows.append(_row(text.open, line))
        if len(text.open.rows) == text.open.width:
            text.open = None
    elif line == _TITLE:
        text.ours = True
    elif match := _DEVICE.match(line):
        if int(match["index"]) in text.devices:
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english("device_twice", "a device is listed twice: give one run at a time")
                ),
            )
        text.devices[int(match["index"])] = _entry(match)
    elif text.access.take(line):
        pass
    elif _HEADING.match(line):
        text.headings.append(_heading(line))
    elif match := _COLUMNS.match(line):
        _columns(text, line, match)
    elif _LOOSE_ROW.match(line):
        raise UnreadableOutput(
            TOOL, line, Message(english("row_outside_table", "a row outside of its table"))
        )


def _cells(matrix: _Matrix) -> Iterator[tuple[int, int, float]]:
    return (
        (row, column, value)
        for row, values in enumerate(matrix.rows)
        for column, value in enumerate(values)
    )


def _component(row: int, column: int) -> Component:
    return Gpu(row) if row == column else Pair(Gpu(row), Gpu(column))


def _worthless(text: _Text) -> Message | None:
    """Why a readable text proves nothing, or None."""
    if text.open is not None:
        counts = {"row": len(text.open.rows) - 1, "width": text.open.width}
        return Message(
            english("matrix_cut", "the text is cut: {name} ends after row {row} of {width}"),
            {"name": text.open.name, **counts},
        )
    # Old samples print groups of GPUs instead of the connectivity matrix. If they print pairs too,
    # the pairs must be complete.
    grouped = None if text.access.pairs else text.access.grouped()
    needed = [
        name for name in (*_NEEDED, *text.headings) if grouped is None or name != _CONNECTIVITY
    ]
    missing = [name for name in needed if name not in text.matrices]
    missing += [
        two
        for pair in _TOGETHER
        for one, two in (pair, pair[::-1])
        if one in text.matrices and two not in text.matrices
    ]
    # Versions that separate the GPU's latency from the CPU's print both tables under each heading.
    timed = [name.replace("p2p_", "p2p_cpu_") for name in text.timed_by_gpu]
    missing += [name for name in timed if name not in text.matrices]
    if missing:
        return Message(
            english("matrix_missing", "the text is cut: the matrix of {name} is missing"),
            {"name": missing[0]},
        )
    count = grouped or text.matrices[_CONNECTIVITY].width
    if text.devices and sorted(text.devices) != list(range(count)):
        return Message(
            english(
                "devices_and_matrix",
                "it lists {devices} devices and a matrix of {count}: lines are missing",
            ),
            {"devices": len(text.devices), "count": count},
        )
    if twice := duplicate(tuple(text.devices.values())):
        return Message("device_listed_twice", {"twice": twice})
    for matrix in text.matrices.values():
        if matrix.width != count:
            widths: Values = {"width": matrix.width, "other": _CONNECTIVITY, "count": count}
            return Message(
                english("matrices_differ_in_gpus", "{name} holds {width} GPUs and {other} {count}"),
                {"name": matrix.name, **widths},
            )
        for row, column, value in _cells(matrix):
            if matrix.name != _CONNECTIVITY and not 0 < value < math.inf:
                where = {"component": str(_component(row, column)), "value": f"{value:.2f}"}
                return Message(
                    english(
                        "nothing_measured",
                        "{name} of {component} is {value}: nothing was measured there",
                    ),
                    {"name": matrix.name, **where},
                )
    for (row, column), can in text.access.pairs.items():
        if not (
            row < count and column < count and text.matrices[_CONNECTIVITY].rows[row][column] == can
        ):
            return Message(
                english(
                    "peer_gainsays",
                    "its line about device {device} and peer {peer} gainsays the connectivity "
                    "matrix",
                ),
                {"device": row, "peer": column},
            )
    return None


def _readings(text: _Text) -> Iterator[Reading]:
    for name, matrix in text.matrices.items():
        unit = "count" if name == _CONNECTIVITY else "us" if "latency" in name else "GB/s"
        pairs = {
            _component(row, column): value for row, column, value in _cells(matrix) if row != column
        }
        if pairs:
            yield Reading(name, unit, pairs)
        if name != _CONNECTIVITY:
            local = "p2p_local" if name == "p2p_off" else f"{name}_local"
            yield Reading(
                local,
                unit,
                {Gpu(row): value for row, column, value in _cells(matrix) if row == column},
            )


def parse(text: str) -> ToolOutput:
    """Parse p2pBandwidthLatencyTest's text.

    *pass* needs the complete connectivity matrix and the four complete bandwidth matrices, for the
    same GPUs, and no figure that is zero or not a number. It means that copies ran, not that their
    data was right. Raises UnreadableOutput.
    """
    found = _Text()
    kept = [line.strip().removeprefix("> ").strip() for line in reading.tool_lines(text)]
    if error := proof.trouble(kept):
        return proof.outcome(TOOL, error)
    for line in filter(None, kept):
        _line(found, line)
    if not (found.ours or found.devices or found.matrices):
        return proof.not_started(TOOL, text, kept)
    if _CONNECTIVITY not in found.matrices and (rows := found.access.rows()):
        found.matrices[_CONNECTIVITY] = _Matrix(_CONNECTIVITY, len(rows), rows)
    why = _worthless(found)
    if why is not None:
        return ToolOutput(TOOL, "error", why)
    matrix = found.matrices.get(_CONNECTIVITY)
    access = Message(
        english("in_groups", "in {groups} groups"), {"groups": len(found.access.groups or ())}
    )
    if matrix is not None:
        peers = sum(value == 1 for row, column, value in _cells(matrix) if row != column)
        pairs = matrix.width * (matrix.width - 1)
        access = Message(
            english("peer_access", "peer access in {peers} of {pairs} ordered pairs"),
            {"peers": peers, "pairs": pairs},
        )
    width = found.matrices["p2p_off"].width
    reason = Message(
        english("peers_passed", "{devices} devices, {access}; no data was compared"),
        {"devices": width, "access": access},
    )
    gpus = tuple(found.devices[index] for index in sorted(found.devices))
    return ToolOutput(TOOL, "pass", reason, tuple(_readings(found)), gpus=gpus)


def gain(output: ToolOutput) -> dict[Component, float]:
    """The gain from peer access: `p2p_on` over `p2p_off`, a ratio, for each ordered pair.

    Empty for one GPU. About 1 means that peer access is off or has no effect. Raises ValueError for
    an output that is not a pass.
    """
    if output.outcome != "pass":
        raise ValueError(f"{output.tool} measured nothing")
    values: dict[str, Mapping[Component, float]] = {one.name: one.values for one in output.readings}
    off = values.get("p2p_off", {})
    return {pair: on / off[pair] for pair, on in values.get("p2p_on", {}).items()}
