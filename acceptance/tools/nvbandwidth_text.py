"""nvbandwidth's plain text: what its lines say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from acceptance.tools import reading
from acceptance.tools.nvbandwidth_matrix import TOOL, Found, Matrix, gpu_entry, part
from acceptance.tools.reading import GpuEntry, UnreadableOutput

_VERSION = re.compile(r"^nvbandwidth Version: ")
_DRIVER = re.compile(r"^Driver Version: (?P<driver>\S+)$")
# Across machines each process has a GPU, and rows and columns are numbered by process.
_DEVICE = re.compile(r"^(?:Device (?P<index>\d{1,4}): \S|Process (?P<process>\d{1,4}) \([^)]*\): device \d{1,4}: \S)")
_RUNNING = re.compile(r"^Running (?:benchmark )?(?P<name>[a-z0-9_]+)\.?$")
_WAIVED = re.compile(r"^waived\b[:.]?\s*(?P<name>[a-z0-9_]*)", re.IGNORECASE)
# Status words of a testcase that gave nothing, and of arguments that it refused.
_ERROR = re.compile(r"^(?:error|failed|not found)\b", re.IGNORECASE)
_DESCRIPTION = re.compile(r"\((?:row|column)\)")
_COLUMNS = re.compile(r"^\d+(?:\s+\d+)*$")
_ROW = re.compile(r"^(?P<index>\d+)(?P<cells>(?:\s+\S+)+)$")
# std::fixed with two decimals, always; fewer are a line that was cut.
_CELL = re.compile(r"^(?:N/A|-?\d+\.\d\d)$")
_LOOSE_ROW = re.compile(r"^\d+(?:\s+(?:N/A|-?\d+\.\d+))+$")
_SUM = re.compile(r"^SUM (?P<name>\w+) (?P<total>-?\d+\.\d\d)$")
_OF_THREE = re.compile(r"^(?P<base>\w*device_to_device_bidirectional\w*)_(?:(?:read|write)[12]|total)$")
_HALF_DIGIT = 0.005


@dataclass(slots=True)
class _Open:
    """A matrix while it is read: `width` is None until the line of columns came."""

    description: str
    width: int | None = None
    rows: list[tuple[float | None, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Text:
    """Where the reading stands. `devices` has the list of each run: several of one machine may stand in one text."""

    found: Found = field(default_factory=Found)
    ours: bool = False
    devices: list[list[str]] = field(default_factory=lambda: [[]])
    gpus: list[GpuEntry] = field(default_factory=list)
    running: str | None = None
    open: _Open | None = None


def _close(state: _Text, summed: re.Match[str] | None = None) -> None:
    """Give the matrix that is open to the testcase that its SUM names, or else to the one that runs."""
    if state.open is None:
        return
    shown, state.open = state.open, None
    if not shown.rows:
        raise UnreadableOutput(TOOL, shown.description, "no figures follow this line")
    running = state.running
    if summed is None and running is None:
        raise UnreadableOutput(TOOL, shown.description, "figures of a testcase that no line names")
    name = summed["name"] if summed else part(str(running), shown.description)
    if running in state.found.unfinished:
        if name != running and not name.startswith(f"{running}_"):
            raise UnreadableOutput(TOOL, shown.description, f"{running} was running, and the sum below names {name}")
        del state.found.unfinished[str(running)]
    cells = sum(len(row) for row in shown.rows)
    state.found.add(
        Matrix(
            name,
            shown.description,
            tuple(shown.rows),
            reading.number(TOOL, summed.string, summed["total"]) if summed else None,
            _HALF_DIGIT * (cells + 1) + 1e-6,
        )
    )


def _figures(matrix: _Open, line: str) -> bool:
    """Whether the line belongs to the matrix that is open; if so it is kept."""
    if matrix.width is None:
        if not _COLUMNS.match(line) or line.split() != [str(index) for index in range(len(line.split()))]:
            raise UnreadableOutput(TOOL, line, "the numbers of the columns belong here, from 0")
        matrix.width = len(line.split())
        return True
    match = _ROW.match(line)
    if match is None:
        return False
    cells = match["cells"].split()
    if match["index"] != str(len(matrix.rows)) or len(cells) != matrix.width or not all(map(_CELL.match, cells)):
        raise UnreadableOutput(TOOL, line, f"row {len(matrix.rows)} of {matrix.width} figures belongs here")
    matrix.rows.append(tuple(None if cell == "N/A" else reading.number(TOOL, line, cell) for cell in cells))
    return True


def _line(state: _Text, line: str) -> None:
    if state.open is not None and _figures(state.open, line):
        return
    found = state.found
    if line.startswith("SUM "):
        match = _SUM.match(line)
        if match is None or state.open is None:
            raise UnreadableOutput(TOOL, line, "a sum of unknown form, or without its matrix")
        _close(state, match)
        return
    _close(state)
    if _VERSION.match(line):
        state.ours = True
        state.devices.append([])
    elif match := _DEVICE.match(line):
        state.devices[-1].append(match["index"] or match["process"])
        entry = gpu_entry(line.removeprefix("Device "))
        if len(state.devices) <= 2 and entry is not None:
            state.gpus.append(entry)
    elif match := _DRIVER.match(line):
        found.driver = match["driver"]
    elif match := _RUNNING.match(line):
        state.running = match["name"]
        if state.running in found.unfinished:
            raise UnreadableOutput(TOOL, line, "a testcase starts twice: give one run at a time")
        found.unfinished[state.running] = None
    elif match := _WAIVED.match(line):
        found.waived.append(match["name"])
    elif _ERROR.match(line):
        found.errors.append(f"a testcase could not run: '{reading.quote(line)}'")
    elif _DESCRIPTION.search(line):
        state.open = _Open(line)
    elif _LOOSE_ROW.match(line):
        raise UnreadableOutput(TOOL, line, "a row outside of its matrix")


def read(lines: Iterable[str]) -> Found | None:
    """What plain text says; None when no line of it is nvbandwidth's. Raises UnreadableOutput."""
    state = _Text()
    for raw in lines:
        line = raw.strip().removeprefix(">").strip()
        if line:
            _line(state, line)
    _close(state)
    found = state.found
    lists = [devices for devices in state.devices if devices]
    if lists:
        found.devices, found.gpus = len(lists[0]), tuple(state.gpus)
        if any(devices != [str(index) for index in range(found.devices)] for devices in lists):
            found.errors.append(
                f"its list of {found.devices} devices is not numbered from 0, or another run has another: lines are missing"
            )
    bases = Counter(match["base"] for matrix in found.matrices if (match := _OF_THREE.match(matrix.name)))
    cut = next((base for base, count in bases.items() if count != 3), None)
    if cut is not None:
        found.errors.append(f"the text is cut: {cut} gives three matrices, one for each direction and their total")
    # Versions without sums have none at all.
    unsummed = [matrix.name for matrix in found.matrices if matrix.total is None]
    if 0 < len(unsummed) < len(found.matrices):
        found.errors.append(f"the text is cut: the line 'SUM {unsummed[0]}' is missing")
    said = state.ours or lists or found.matrices or found.waived or found.unfinished
    return found if said else None
