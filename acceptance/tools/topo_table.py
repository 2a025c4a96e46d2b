"""The matrices that `nvidia-smi topo` prints: header and rows, whatever tabs and blanks became of in a mail or a forum."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.tools import reading
from acceptance.tools.reading import UnreadableOutput

# Paths of `topo -m`. SOC is the word of drivers before 375 for SYS; PSB is a switch on the board itself.
PATHS = ("PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
# Answers of `topo -p2p`, as its legend explains them.
ANSWERS = {
    "OK": "ok",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a key in the registry",
    "U": "unknown",
}
_PATH = re.compile(rf"NV[1-9]\d?|{'|'.join(PATHS)}")
_CELL = re.compile(rf"X|{_PATH.pattern}|{'|'.join(ANSWERS)}")
_GPU = re.compile(r"GPU(?P<index>0|[1-9]\d{0,3})")
_NAME = re.compile(r"[A-Za-z][\w.:-]*\d[\w.:-]*")
_NUMBERED = re.compile(r"(?:GPU|NIC|NVSwitch)\d+")
_HEADINGS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_HEADING = re.compile(r"CPU ?Affinity|NUMA ?Affinity|GPU NUMA ID")
_AFFINITY = re.compile(r"N/A|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
# A table of Markdown: bars around the cells, and a line of dashes under the header.
_BARS = re.compile(r"^\s*\|.*\|$")
_DASHES = re.compile(r"^[\s|:-]+$")
_ROW_LIKE = re.compile(rf"\s*(?:(?:GPU|NIC)\d+|mlx\d+_\d+)\s+(?:{_CELL.pattern})(?:\s|$)")

# What nvidia-smi says instead of a matrix, with the cure.
_TROUBLES = (
    (re.compile(r"library version mismatch", re.IGNORECASE), "reboot, or unload and load the nvidia modules"),
    (re.compile(r"communicate with the NVIDIA driver"), "install or load the driver: modprobe nvidia, then dmesg"),
    (re.compile(r"No devices were found"), "read lspci and the kernel log: the driver has no GPU"),
    (re.compile(r"Unable to determine the device handle|GPU is lost"), "read the kernel log for Xid messages"),
    (re.compile(r"Failed to initialize NVML|Insufficient Permissions"), "run it as root, and look at /dev/nvidia*"),
    (re.compile(r"is missing its value"), "give the capability: nvidia-smi topo -p2p r"),
    (re.compile(r"nvidia-smi: (?:command )?not found"), "install the driver's utilities"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """One whole, square matrix. `names` are its rows and columns as printed; `cells` are by (row, column).

    `affinity` has, for each GPU, what stands under `CPU Affinity`, `NUMA Affinity` and `GPU NUMA ID`, None for `N/A`; a heading that
    is not there, and a cell whose heading cannot be told because others of its row are empty, is left out.
    """

    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    affinity: Mapping[str, Mapping[str, str | None]]
    is_p2p: bool

    def gpus(self) -> dict[str, str]:
        """The printed name of each GPU, by component: `gpu0` -> `GPU0`."""
        return {name.lower(): name for name in self.names if _GPU.fullmatch(name)}


@dataclass(slots=True)
class _Open:
    """A header and the rows that were read under it so far."""

    tool: str
    line: str
    names: tuple[str, ...]
    headings: tuple[str, ...]
    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    tails: dict[str, str] = field(default_factory=dict)

    def row(self, line: str) -> None:
        """Take the next row. Raises UnreadableOutput for any other line: a row is lost or has an unknown form."""
        name, words = self.names[len(self.tails)], line.split()
        cells = words[1 : 1 + len(self.names)]
        if words[0] != name or len(cells) < len(self.names) or not all(map(_CELL.fullmatch, cells)):
            raise UnreadableOutput(self.tool, line, f"the row of {name} is missing, cut or of unknown form")
        for column, cell in zip(self.names, cells, strict=True):
            if (cell == "X") is not (column == name):
                raise UnreadableOutput(self.tool, line, f"the cell of {name} and {column} cannot be {cell}")
            self.cells[name, column] = cell
        self.tails[name] = re.sub(rf"^\s*\S+(?:\s+\S+){{{len(cells)}}}", "", line)

    def table(self) -> Table:
        """The matrix, once it has all its rows."""
        answers = {cell for cell in self.cells.values() if cell in ANSWERS}
        paths = {cell for cell in self.cells.values() if _PATH.fullmatch(cell)}
        is_p2p = not paths and not self.headings
        if answers and not is_p2p:
            raise UnreadableOutput(self.tool, self.line, "a matrix mixes paths and answers of topo -p2p")
        return Table(self.names, self.cells, self._affinity(), is_p2p)

    def _affinity(self) -> dict[str, Mapping[str, str | None]]:
        tails = {name: re.sub(r",\s+", ",", tail) for name, tail in self.tails.items()}
        gpus = {name: tail for name, tail in tails.items() if _GPU.fullmatch(name)}
        # All GPUs have the same cells; where some are empty for some GPUs only, each row must tell by itself which.
        alike = len({len(tail.split()) for tail in gpus.values()}) == 1
        for name, tail in tails.items():
            words = tail.split()
            told = (alike or self._cells(tail) is not None) if name in gpus else not words
            if not told or len(words) > len(self.headings) or not all(map(_AFFINITY.fullmatch, words)):
                raise UnreadableOutput(
                    self.tool, f"{name} ... {tail.strip()}", "the affinities of a row are cut or unknown"
                )
        return {name: self._values(tail) for name, tail in gpus.items()}

    def _cells(self, tail: str) -> list[str] | None:
        """What stands under each heading, empty for nothing; None where that cannot be told."""
        values = tail.split()
        if len(values) == len(self.headings):
            return values
        # Under a hypervisor, and without CPUs, cells are empty. The driver's tabs tell which: one after each, two after `NUMA Affinity`.
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
    headings = tuple(re.sub(r"(CPU|NUMA)Aff", r"\1 Aff", found) for found in _HEADING.findall(words)) if first else ()
    if not names or not _GPU.fullmatch(names[0]):
        return None
    if not first:
        return _Open(tool, line, _checked(tool, line, names), ()) if all(map(_NUMBERED.fullmatch, names)) else None
    if headings != _HEADINGS[: len(headings)] or _HEADING.sub("", words[first.start() :]).strip():
        raise UnreadableOutput(tool, line, "the header of a matrix has unknown or cut columns")
    return _Open(tool, line, _checked(tool, line, names), headings)


def _checked(tool: str, line: str, names: tuple[str, ...]) -> tuple[str, ...]:
    gpus = [int(match["index"]) for match in map(_GPU.fullmatch, names) if match]
    if gpus != list(range(len(gpus))) or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        raise UnreadableOutput(
            tool, line, "the columns of a matrix are not GPU0, GPU1 and so on, or one is there twice"
        )
    return names


def _plain(text: str) -> list[str]:
    """The lines with something on them, freed of the bars of a table in Markdown."""
    found = []
    for line in filter(str.strip, reading.tool_lines(text)):
        if not _BARS.match(line):
            found.append(line)
        elif not _DASHES.match(line):
            found.append(line.replace("|", " "))
    return found


def tables(tool: str, text: str) -> tuple[Table, ...]:
    """Every matrix in a text, in its order; none when it holds none. Raises UnreadableOutput for one that is not whole."""
    found: list[Table] = []
    current: _Open | None = None
    for line in _plain(text):
        if current is not None:
            current.row(line)
        elif (current := _header(tool, line)) is None and _ROW_LIKE.match(line):
            raise UnreadableOutput(tool, line, "a row stands outside its matrix or comes twice")
        if current is not None and len(current.tails) == len(current.names):
            found.append(current.table())
            current = None
    if current is not None:
        raise UnreadableOutput(
            tool, current.line, f"the text is cut after {len(current.tails)} of {len(current.names)} rows"
        )
    return tuple(found)


def one(found: Sequence[Table]) -> Table | None:
    """The matrix that all of them are; None when they differ."""
    return found[0] if all(table == found[0] for table in found[1:]) else None


def trouble(tool: str, text: str) -> str:
    """Why a text holds no matrix, with the cure. Raises UnreadableOutput when it does not say."""
    for line in reading.tool_lines(text):
        for pattern, cure in _TROUBLES:
            if pattern.search(line):
                return f"nvidia-smi could not do it: '{reading.quote(line)}'; {cure}"
    raise UnreadableOutput(tool, reading.first_line(text), "the text holds no matrix of nvidia-smi topo")
