"""`nvidia-smi topo -m` and `topo -p2p`: matrices of paths between devices, and of peer access."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core import parts, plain_text
from acceptance.core.message import Listed, Message, english, known, plural
from acceptance.core.parts import Component, Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import reading
from acceptance.tools.reading import Reading, ToolOutput

TOOL = "topo-m"
_RANK = {"PSB": 1, "PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
# The largest number of names that a sentence lists.
_SHORT = 4


def _rank(path: str) -> int:
    return 0 if path.startswith("NV") else _RANK[path]


def _component(name: str) -> str:
    return name.lower() if name.startswith(("GPU", "NIC")) else name


def _pair(row: str, column: str) -> Component:
    return Pair(parts.parse(row), parts.parse(column))


def _check_directions(table: MatrixTable) -> None:
    """Raise UnreadableOutput if a path differs between its two directions."""
    names = [name for name in table.names if not name.startswith("NVSwitch")]
    for row in names:
        for column in names:
            there, back = table.cells[row, column], table.cells[column, row]
            if there != back:
                a, b = _component(row), _component(column)
                raise UnreadableOutput(
                    TOOL,
                    f"{row} ... {column}",
                    Message(
                        english(
                            "directions_differ",
                            "{one}->{other} is {there} and {other}->{one} is {back}: the text is "
                            "damaged",
                        ),
                        {"one": a, "other": b, "there": there, "back": back},
                    ),
                )


def _gpus(table: MatrixTable) -> Message:
    return Message("number_of_gpus", {"n": len(table.gpus())})


def _reason(table: MatrixTable) -> Message:
    paths: dict[str, list[str]] = {}
    gpus = table.gpus()
    place = {gpu: index for index, gpu in enumerate(gpus)}
    for (a, b), path in sorted(table.pairs().items(), key=lambda pair: _rank(pair[1])):
        if place[a] < place[b]:
            paths.setdefault(path, []).append(f"{a}-{b}")
    many = "all_pairs_of_path" if len(paths) == 1 else "pairs_of_path"
    texts = tuple(
        f"{' '.join(names)} {path}"
        if len(names) <= _SHORT
        else Message(many, {"count": len(names), "path": path})
        for path, names in paths.items()
    )
    others = [
        _component(name)
        for name in table.names
        if name not in gpus.values() and not name.startswith("NVSwitch")
    ]
    nics = None
    if others:
        names = " ".join(others) if len(others) <= _SHORT else None
        nics = Message(
            plural("number_of_nics", "{n} NIC[: {names}]", "{n} NICs[: {names}]"),
            known(n=len(others), names=names),
        )
    pairs = Listed(texts) if texts else Message(english("no_pair", "no pair"))
    note = _unlinked(table)
    return Message(
        english("gpus_and_paths", "{gpus}: {pairs}[; {nics}][; {note}]"),
        known(gpus=_gpus(table), pairs=pairs, nics=nics, note=note),
    )


def _unlinked(table: MatrixTable) -> Message | None:
    """A note on the only GPU without an NVLink: sound, where it has no bridge."""
    linked = {gpu for pair, path in table.pairs().items() if path.startswith("NV") for gpu in pair}
    bare = [gpu for gpu in table.gpus() if gpu not in linked]
    if not linked or len(bare) != 1:
        return None
    return Message(
        english(
            "topo_unlinked_gpu",
            "{name} has no NVLink and all others do: no fault where it has no bridge",
        ),
        {"name": bare[0]},
    )


def _output(table: MatrixTable) -> ToolOutput:
    _check_directions(table)
    pairs = {_pair(a, b): path for (a, b), path in table.pairs().items()}
    ranks = {pair: float(_rank(path)) for pair, path in pairs.items()}
    readings = [Reading("topo_path_rank", "count", ranks)] if pairs else []
    links = {
        pair: float(path[2:]) if path.startswith("NV") else 0.0 for pair, path in pairs.items()
    }
    if any(links.values()):
        readings.append(Reading("topo_nvlinks", "count", links))
    return ToolOutput(TOOL, "pass", _reason(table), tuple(readings))


def parse(text: str) -> ToolOutput:
    """Parse a `topo -m` matrix, a `topo -p2p` matrix, or one of each.

    *pass* if they are complete; there is no machine to compare them with.

    *error* if nvidia-smi prints an error instead, or if matrices of one kind differ. Raises
    UnreadableOutput, for example for a missing or truncated row, and for a path that differs
    between its two directions.
    """
    tables = read_tables(TOOL, text)
    if not tables:
        return ToolOutput(TOOL, "error", table_trouble(TOOL, text))
    if lost := _lost(text):
        return ToolOutput(TOOL, "error", lost)
    paths = [table for table in tables if not table.is_p2p]
    if not paths:
        return parse_p2p(text)
    table = only_table(paths)
    if table is None:
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english(
                    "topo_matrices_differ",
                    "the text holds topo -m matrices that differ: give one machine at a time",
                )
            ),
        )
    wired = _output(table)
    if len(paths) == len(tables):
        return wired
    if any(other.gpus() != table.gpus() for other in tables):
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english(
                    "topo_gpus_differ",
                    "the topo -m and topo -p2p matrices have different GPUs: give one machine at "
                    "a time",
                )
            ),
        )
    access = parse_p2p(text)
    if access.outcome != "pass":
        return ToolOutput(TOOL, access.outcome, access.reason)
    return ToolOutput(
        TOOL,
        "pass",
        Message(
            english("paths_and_access", "{paths}; peer access: {access}"),
            {"paths": wired.reason, "access": access.reason},
        ),
        wired.readings + access.readings,
    )


P2P_TOOL = "topo-p2p"


def p2p_output(table: MatrixTable) -> ToolOutput:
    """Judge one matrix. *error* if the driver says U (unknown)."""
    pairs = table.pairs()
    unknown = [str(_pair(a, b)) for (a, b), cell in pairs.items() if cell == "U"]
    if unknown:
        return ToolOutput(
            P2P_TOOL,
            "error",
            Message(
                english("peer_unknown", "the driver does not know (U) whether {pair} works"),
                {"pair": unknown[0]},
            ),
        )
    refused: dict[str, list[str]] = defaultdict(list)
    for (a, b), cell in pairs.items():
        if cell != "OK":
            refused[cell].append(str(_pair(a, b)))
    if not pairs:
        reason = Message("gpus_and_paths", {"gpus": _gpus(table), "pairs": Message("no_pair")})
        return ToolOutput(P2P_TOOL, "pass", reason)
    told = tuple(
        Message(
            english("directions_refused", "{cell} ({meaning}) for {count} ({first})"),
            {
                "cell": cell,
                "meaning": ANSWERS[cell],
                "count": len(names),
                "first": names[0] + " ..." * (len(names) > 1),
            },
        )
        for cell, names in refused.items()
    )
    reason = Message(
        english("directions_ok", "{gpus}: OK for {count} of {pairs} directions[, {refused}]"),
        known(
            gpus=_gpus(table),
            count=len(pairs) - sum(map(len, refused.values())),
            pairs=len(pairs),
            refused=Listed(told) if told else None,
        ),
    )
    values = {_pair(a, b): float(cell == "OK") for (a, b), cell in pairs.items()}
    return ToolOutput(
        P2P_TOOL,
        "pass",
        reason,
        (Reading("p2p_ok", "count", values),),
    )


def parse_p2p(text: str) -> ToolOutput:
    """Parse one `topo -p2p` matrix, or several equal ones. *error* for matrices that differ.

    Raises UnreadableOutput.
    """
    found = [table for table in read_tables(P2P_TOOL, text) if table.is_p2p]
    if not found:
        return ToolOutput(P2P_TOOL, "error", table_trouble(P2P_TOOL, text))
    if lost := _lost(text):
        return ToolOutput(P2P_TOOL, "error", lost)
    table = only_table(found)
    if table is None:
        return ToolOutput(
            P2P_TOOL,
            "error",
            Message(
                english(
                    "answers_differ",
                    "the text holds topo -p2p matrices that differ: give one machine and "
                    "capability at a time",
                )
            ),
        )
    return p2p_output(table)


# Paths of `topo -m`. Drivers before 375 print SOC for SYS. PSB is a switch on the board itself.
PATHS = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
# Values of `topo -p2p`, as its legend explains them.
ANSWERS = {
    "OK": Message(english("peers_work", "ok")),
    "CNS": Message(english("peer_chipset_unsupported", "chipset not supported")),
    "GNS": Message(english("peer_gpu_unsupported", "GPU not supported")),
    "TNS": Message(english("peer_topology_unsupported", "topology not supported")),
    "NS": Message(english("peer_unsupported", "not supported")),
    "DR": Message(english("peer_disabled", "disabled by a key in the registry")),
    "U": Message(english("peer_not_known", "unknown")),
}
_PATH = re.compile(rf"NV[1-9]\d?|{'|'.join(PATHS)}")
_CELL = re.compile(rf"X|{_PATH.pattern}|{'|'.join(ANSWERS)}")
_GPU = re.compile(r"GPU(?P<index>0|[1-9]\d{0,3})")
_NAME = re.compile(r"[A-Za-z][\w.:-]*\d[\w.:-]*")
_NUMBERED = re.compile(r"(?:GPU|NIC|NVSwitch)\d+")
_HEADINGS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_HEADING = re.compile(r"CPU ?Affinity|NUMA ?Affinity|GPU NUMA ID")
_AFFINITY = re.compile(r"N/A|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
# A Markdown table: bars around the cells, and a line of dashes under the header.
_BARS = re.compile(r"^\s*\|.*\|$")
_DASHES = re.compile(r"^[\s|:-]+$")
_ROW_LIKE = re.compile(rf"\s*(?:(?:GPU|NIC)\d+|mlx\d+_\d+)\s+(?:{_CELL.pattern})(?:\s|$)")

# A GPU that does not answer is in no matrix.
_LOST = re.compile(r"Unable to determine the device handle|GPU is lost")
# nvidia-smi's errors instead of a matrix, with fixes.
_TROUBLES = (
    (
        re.compile(r"library version mismatch", re.IGNORECASE),
        Message(english("cure_modules", "reboot, or unload and load the nvidia modules")),
    ),
    (
        re.compile(r"communicate with the NVIDIA driver"),
        Message(english("cure_driver", "install or load the driver: modprobe nvidia, then dmesg")),
    ),
    (
        re.compile(r"No devices were found"),
        Message(english("cure_no_gpu", "read lspci and the kernel log: the driver has no GPU")),
    ),
    (_LOST, Message(english("cure_xid", "read the kernel log for Xid messages"))),
    (
        re.compile(r"Failed to initialize NVML|Insufficient Permissions"),
        Message(english("cure_root", "run it as root, and look at /dev/nvidia*")),
    ),
    (
        re.compile(r"is missing its value"),
        Message(english("cure_capability", "give the capability: nvidia-smi topo -p2p r")),
    ),
    (
        re.compile(r"nvidia-smi: (?:command )?not found"),
        Message(english("cure_utilities", "install the driver's utilities")),
    ),
)


@dataclass(frozen=True, slots=True)
class MatrixTable:
    """One complete, square matrix.

    `names` are its rows and columns as printed; `cells` are by (row, column).

    `affinity` has, for each GPU, the cells under `CPU Affinity`, `NUMA Affinity` and `GPU NUMA ID`,
    None for `N/A`. It leaves out a missing heading, and a cell whose heading is ambiguous because
    other cells in its row are empty.
    """

    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    affinity: Mapping[str, Mapping[str, str | None]]
    is_p2p: bool

    def gpus(self) -> dict[str, str]:
        """The printed name of each GPU, by component: `gpu0` -> `GPU0`."""
        return {name.lower(): name for name in self.names if _GPU.fullmatch(name)}

    def pairs(self) -> dict[tuple[str, str], str]:
        """The cell of every ordered pair of GPUs, by component."""
        gpus = self.gpus()
        return {(a, b): self.cells[gpus[a], gpus[b]] for a in gpus for b in gpus if a != b}


@dataclass(slots=True)
class _Open:
    """A header and the rows read so far."""

    tool: str
    line: str
    names: tuple[str, ...]
    headings: tuple[str, ...]
    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    tails: dict[str, str] = field(default_factory=dict)

    def row(self, line: str) -> None:
        """Add the next row.

        Raises UnreadableOutput for any other line: a row is missing or has an unknown form.
        """
        name, words = self.names[len(self.tails)], line.split()
        cells = words[1 : 1 + len(self.names)]
        if words[0] != name or len(cells) < len(self.names) or not all(map(_CELL.fullmatch, cells)):
            raise UnreadableOutput(
                self.tool,
                line,
                Message(
                    english("row_broken", "the row of {name} is missing, cut or of unknown form"),
                    {"name": name},
                ),
            )
        for column, cell in zip(self.names, cells, strict=True):
            if (cell == "X") is not (column == name):
                values = {"row": name, "column": column, "cell": cell}
                raise UnreadableOutput(
                    self.tool,
                    line,
                    Message(
                        english(
                            "cell_impossible", "the cell of {row} and {column} cannot be {cell}"
                        ),
                        values,
                    ),
                )
            self.cells[name, column] = cell
        self.tails[name] = re.sub(rf"^\s*\S+(?:\s+\S+){{{len(cells)}}}", "", line)

    def table(self) -> MatrixTable:
        """The matrix, once it has all its rows."""
        answers = {cell for cell in self.cells.values() if cell in ANSWERS}
        paths = {cell for cell in self.cells.values() if _PATH.fullmatch(cell)}
        is_p2p = not paths and not self.headings
        if answers and not is_p2p:
            raise UnreadableOutput(
                self.tool,
                self.line,
                Message(english("matrix_mixed", "a matrix mixes paths and answers of topo -p2p")),
            )
        return MatrixTable(self.names, self.cells, self._affinity(), is_p2p)

    def _affinity(self) -> dict[str, Mapping[str, str | None]]:
        tails = {name: re.sub(r",\s+", ",", tail) for name, tail in self.tails.items()}
        gpus = {name: tail for name, tail in tails.items() if _GPU.fullmatch(name)}
        # All GPUs have the same cells. If some cells are empty only for some GPUs, each row must
        # show by itself which.
        alike = len({len(tail.split()) for tail in gpus.values()}) == 1
        for name, tail in tails.items():
            words = tail.split()
            is_row = (alike or self._cells(tail) is not None) if name in gpus else not words
            if (
                not is_row
                or len(words) > len(self.headings)
                or not all(map(_AFFINITY.fullmatch, words))
            ):
                raise UnreadableOutput(
                    self.tool,
                    f"{name} ... {tail.strip()}",
                    Message(
                        english("affinities_unknown", "the affinities of a row are cut or unknown")
                    ),
                )
        return {name: self._values(tail) for name, tail in gpus.items()}

    def _cells(self, tail: str) -> list[str] | None:
        """The cell under each heading, "" for an empty one; None if that is ambiguous."""
        values = tail.split()
        if len(values) == len(self.headings):
            return values
        # Under a hypervisor, and without CPUs, cells are empty. The driver's tabs show which: one
        # after each cell, two after `NUMA Affinity`.
        fields = [field.strip() for field in tail.split("\t")[1:]]
        if len(self.headings) < len(_HEADINGS) or len(fields) != len(_HEADINGS) + 1 or fields[2]:
            return None
        return [fields[0], fields[1], fields[3]]

    def _values(self, tail: str) -> dict[str, str | None]:
        pairs = zip(self.headings, self._cells(tail) or (), strict=False)
        return {heading: None if value == "N/A" else value for heading, value in pairs if value}


def _header(tool: str, line: str) -> _Open | None:
    words = " ".join(line.split())
    first = _HEADING.search(words)
    names = tuple((words[: first.start()] if first else words).split())
    headings = (
        tuple(re.sub(r"(CPU|NUMA)Aff", r"\1 Aff", found) for found in _HEADING.findall(words))
        if first
        else ()
    )
    if not names or not _GPU.fullmatch(names[0]):
        return None
    if not first:
        return (
            _Open(tool, line, _checked(tool, line, names), ())
            if all(map(_NUMBERED.fullmatch, names))
            else None
        )
    if headings != _HEADINGS[: len(headings)] or _HEADING.sub("", words[first.start() :]).strip():
        raise UnreadableOutput(
            tool,
            line,
            Message(english("header_unknown", "the header of a matrix has unknown or cut columns")),
        )
    return _Open(tool, line, _checked(tool, line, names), headings)


def _checked(tool: str, line: str, names: tuple[str, ...]) -> tuple[str, ...]:
    gpus = [int(match["index"]) for match in map(_GPU.fullmatch, names) if match]
    if (
        gpus != list(range(len(gpus)))
        or len(set(names)) < len(names)
        or not all(map(_NAME.fullmatch, names))
    ):
        raise UnreadableOutput(
            tool,
            line,
            Message(
                english(
                    "matrix_columns_unknown",
                    "the columns of a matrix are not GPU0, GPU1 and so on, or one is there twice",
                )
            ),
        )
    return names


def _plain(text: str) -> list[str]:
    """The lines that are not blank, without the bars of a Markdown table."""
    found = []
    for line in filter(str.strip, reading.tool_lines(text)):
        if not _BARS.match(line):
            found.append(line)
        elif not _DASHES.match(line):
            found.append(line.replace("|", " "))
    return found


def read_tables(tool: str, text: str) -> tuple[MatrixTable, ...]:
    """Every matrix in a text, in order; empty if there is none.

    Raises UnreadableOutput for an incomplete matrix.
    """
    found: list[MatrixTable] = []
    current: _Open | None = None
    for line in _plain(text):
        if current is not None:
            current.row(line)
        elif (current := _header(tool, line)) is None and _ROW_LIKE.match(line):
            raise UnreadableOutput(
                tool,
                line,
                Message(english("row_astray", "a row stands outside its matrix or comes twice")),
            )
        if current is not None and len(current.tails) == len(current.names):
            found.append(current.table())
            current = None
    if current is not None:
        raise UnreadableOutput(
            tool,
            current.line,
            Message(
                english("rows_cut", "the text is cut after {rows} of {due} rows"),
                {"rows": len(current.tails), "due": len(current.names)},
            ),
        )
    return tuple(found)


def only_table(tables: Sequence[MatrixTable]) -> MatrixTable | None:
    """The matrix if all of them are equal; None if they differ."""
    return tables[0] if all(table == tables[0] for table in tables[1:]) else None


def _lost(text: str) -> Message | None:
    """What a text with a matrix says of a GPU that does not answer, with the fix."""
    line = next((line for line in reading.tool_lines(text) if _LOST.search(line)), None)
    if line is None:
        return None
    return Message(
        english("smi_failed", "nvidia-smi could not do it: '{line}'; {cure}"),
        {"line": plain_text.quote(line), "cure": Message("cure_xid")},
    )


def table_trouble(tool: str, text: str) -> Message:
    """Why a text has no matrix, with the fix. Raises UnreadableOutput if it does not say."""
    for line in reading.tool_lines(text):
        for pattern, cure in _TROUBLES:
            if pattern.search(line):
                return Message("smi_failed", {"line": plain_text.quote(line), "cure": cure})
    raise UnreadableOutput(
        tool,
        plain_text.first_line(text),
        Message(english("matrix_absent", "the text holds no matrix of nvidia-smi topo")),
    )
