"""NVIDIA's nvbandwidth: its command line, and the parser of its text and JSON.

The parser was written for versions 0.1 to 0.10.

It copies 512 MiB unless told otherwise (`buffer_mib`), between host and GPU and between GPUs, 16
times a sample, by copy engine (`_ce`) or by a kernel (`_sm`), and takes the median of the samples.
It compares the received data with the pattern that was sent: wrong data ends it with an ASSERT,
which is a *fail* here. Pitfalls: an unknown testcase and one that does not apply leave the exit
code 0; a latency is printed in the same kind of matrix as a bandwidth, and has a SUM too; a host
buffer that is small or on the far socket looks like a bad slot; with `--skipVerification` nothing
is compared, and the text does not say so.

Readings have the name of the testcase (`host_to_device_memcpy_ce`), in GB/s (1e9), or in ns if the
name contains `latency`. Figures that the tool prints as N/A are absent, never 0. Components:

- `gpu0`: host and GPU, or one GPU with all others (`all_to_one`, `one_to_all`), or the GPU with
  itself (`device_local_copy`, which counts one direction).
- `gpu0->gpu1`: row 0, column 1 of `device_to_device` testcases, as printed. The data goes from the
  row to the column in `..._write_...`, and from the column to the row in `..._read_...`. The arrow
  printed above the matrix says the reverse, up to 0.8 at least.
- A bidirectional copy between GPUs gives three readings since 0.6: `<testcase>_read1`, `_read2` and
  `_total`, or `_write1` and so on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from acceptance.core import plain_text
from acceptance.core.message import Listed, Message, Text, Values, english, known, plural
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import proof
from acceptance.tools import reading as tools_reading
from acceptance.tools.reading import GpuEntry, Reading, ToolOutput, duplicate

_ROOT = re.compile(r'\{\s*"nvbandwidth"\s*:')
# A cell is a string with the default form of a C++ stream: six significant digits. Two decimals are
# accepted too.
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$")
_HALF_DIGIT = 5e-6
_HALF_CENT = 0.005
_Row = tuple[float | None, ...]
_PARTS = {"read": ("read1", "read2", "total"), "write": ("write1", "write2", "total")}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableOutput(TOOL, plain_text.quote_value(pairs), Message("key_twice"))
    return found


def _need(holder: dict[str, Any], key: str, kind: type, where: Text) -> Any:
    """The value of a required key, with its type. Raises UnreadableOutput."""
    value = holder.get(key)
    if not isinstance(value, kind):
        raise UnreadableOutput(
            TOOL,
            plain_text.quote_value(value),
            Message(
                english("key_needed", "{where} needs '{key}' as {kind}"),
                {"where": where, "key": key, "kind": kind.__name__},
            ),
        )
    return value


def _cell(value: object, name: str) -> float | None:
    if value == "N/A":
        return None
    if isinstance(value, str) and _NUMBER.match(value):
        return number(TOOL, value, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(TOOL, str(value), str(value))
    why = Message(english("cell_no_figure", "a cell of {name} is no figure"), {"name": name})
    raise UnreadableOutput(TOOL, plain_text.quote_value(value), why)


def _matrices(testcase: dict[str, Any], name: str) -> list[CopyMatrix]:
    description = _need(testcase, "bandwidth_description", str, name).strip()
    shown = _need(testcase, "bandwidth_matrix", list, name)
    if not shown or not all(
        isinstance(row, list) and row and len(row) == len(shown[0]) for row in shown
    ):
        raise UnreadableOutput(
            TOOL,
            description,
            Message(
                english(
                    "matrix_uneven", "the matrix of {name} has no rows, or rows of unequal length"
                ),
                {"name": name},
            ),
        )
    rows = [tuple(_cell(value, name) for value in row) for row in shown]
    total = _cell(testcase.get("sum"), name)
    if total is None:
        raise UnreadableOutput(
            TOOL,
            description,
            Message(english("sum_needed", "{name} needs 'sum' as a number"), {"name": name}),
        )
    names: Sequence[str] = (part(name, description),)
    width = len(rows[0])
    # Until 0.8 the three matrices of a bidirectional copy between GPUs are printed one below the
    # other; `sum` belongs to the last.
    if "device_to_device_bidirectional" in name and len(rows) == 3 * width:
        names = [f"{name}_{part}" for part in _PARTS["write" if "_write_" in name else "read"]]
        _added_up(name, *(rows[width * place : width * (place + 1)] for place in range(3)))
    each = len(rows) // len(names)
    found = []
    for index, one in enumerate(names):
        block = tuple(rows[index * each : (index + 1) * each])
        slack = sum(_rounded(value) for row in block for value in row)
        found.append(
            CopyMatrix(one, description, block, total if index == len(names) - 1 else None, slack)
        )
    _extremes(testcase, found[-1])
    return found


def _extremes(testcase: dict[str, Any], last: CopyMatrix) -> None:
    """Compare `min`, `max` and `average` (of `--verbose`) with the cells of the last matrix.

    The tool counts N/A as 0 in its minimum, and ignores it in its average. Raises UnreadableOutput
    when they differ.
    """
    cells = [value for row in last.rows for value in row]
    figures = [value for value in cells if value is not None]
    if not figures:
        return
    due = {
        "min": [min(figures)] + [0.0] * (None in cells),
        "max": [max(figures)],
        "average": [sum(figures) / len(figures)],
    }
    for key, values in due.items():
        printed = _cell(testcase[key], last.name) if key in testcase else None
        if printed is not None and not any(
            abs(printed - value) <= 2 * _rounded(value) for value in values
        ):
            figures_say = {"told": f"{printed:.2f}", "made": f"{values[0]:.2f}"}
            why = Message(
                english(
                    "extreme_differs",
                    "{name} says {key} {told} and its figures make {made}: a figure was changed",
                ),
                {"name": last.name, "key": key, **figures_say},
            )
            raise UnreadableOutput(TOOL, last.description, why)


def _rounded(value: float | None) -> float:
    """The largest difference between a printed figure and the measured value."""
    return max(_HALF_CENT, _HALF_DIGIT * abs(value or 0.0))


def _added_up(name: str, rows: Sequence[_Row], other: Sequence[_Row], both: Sequence[_Row]) -> None:
    """Check that each figure of `both` is the sum of the two directions.

    `sum` covers only the last matrix. Raises UnreadableOutput.
    """
    for cells in zip(chain(*rows), chain(*other), chain(*both), strict=True):
        first, second, total = (value or 0.0 for value in cells)
        if abs(first + second - total) > sum(map(_rounded, cells)):
            values = {"both": f"{first + second:.2f}", "told": f"{total:.2f}"}
            why = Message(
                english(
                    "total_differs",
                    "{name}: both directions are {both} and the total says {told}: a figure was "
                    "changed",
                ),
                {"name": name, **values},
            )
            raise UnreadableOutput(TOOL, "", why)


def _testcase(output: ParsedOutput, testcase: object) -> None:
    if not isinstance(testcase, dict):
        raise UnreadableOutput(
            TOOL,
            plain_text.quote_value(testcase),
            Message(english("testcase_no_object", "a testcase is no object")),
        )
    name = _need(testcase, "name", str, Message(english("a_testcase", "a testcase")))
    status = _need(testcase, "status", str, name)
    said = testcase.get("error")
    if status == "Waived":
        output.waived.append(name)
    elif status == "Running" and not said:
        output.unfinished[name] = None
    elif status != "Passed" or said:
        words = [word for word in (status, said) if isinstance(word, str) and word]
        shown = (
            plain_text.quote(": ".join(words))
            if words
            else Message(english("no_status", "no status"))
        )
        output.errors.append(
            Message(
                english("testcase_failed", "{name} could not run: '{line}'"),
                {"name": name, "line": shown},
            )
        )
    else:
        for matrix in _matrices(testcase, name):
            output.add(matrix)


def read_json(text: str) -> ParsedOutput:
    """Parse the JSON. Raises UnreadableOutput, also for truncated JSON."""
    whole, begin, end = tools_reading.only_json(TOOL, text, _ROOT, _once)
    beside = f"{text[:begin]}\n{text[end:]}".split("\n")
    if any(_VERSION.match(line.strip()) or _SUM.match(line.strip()) for line in beside):
        raise UnreadableOutput(TOOL, "", Message("outputs_several", {"count": 2}))
    whole_output = Message(english("the_output", "the output"))
    root = _need(whole, "nvbandwidth", dict, whole_output)
    found = ParsedOutput()
    if isinstance(root.get("error"), str) and root["error"].strip():
        found.errors.append(
            Message(
                english("run_failed", "it could not run: '{line}'"),
                {"line": plain_text.quote(root["error"])},
            )
        )
    if root.get("GPU Device list") is not None:
        entries = _need(root, "GPU Device list", list, whole_output)
        gpus = [gpu_entry(entry) if isinstance(entry, str) else None for entry in entries]
        for place, (entry, gpu) in enumerate(zip(entries, gpus, strict=True)):
            if gpu is None or gpu.index != place:
                raise UnreadableOutput(
                    TOOL,
                    plain_text.quote_value(entry),
                    Message(
                        english(
                            "listed_device_unknown",
                            "a listed device has an unknown form or the wrong number",
                        )
                    ),
                )
        found.devices, found.gpus = len(entries), tuple(gpu for gpu in gpus if gpu is not None)
    if isinstance(driver := root.get("Driver Version"), str):
        found.driver = driver
    if root.get("testcases") is not None:
        for testcase in _need(root, "testcases", list, whole_output):
            _testcase(found, testcase)
    return found


TOOL = "nvbandwidth"

# A bidirectional copy between GPUs gives three matrices: each direction, and the sum of both.
_PART = re.compile(r"\b(?:Read|Write)?(?P<part>[12]|Total) bandwidth")
# `0: NVIDIA H200 (00000000:18:00): (host)` in JSON; the text has no host, and versions before 0.5
# have no address.
_LISTED = re.compile(
    r"^(?P<index>\d{1,4}): (?P<name>\S.*?)"
    r"(?: \((?P<domain>[0-9a-fA-F]{4,8}):"
    r"(?P<bus>[0-9a-fA-F]{2}):(?P<slot>[0-9a-fA-F]{2})(?:\.0)?\))?"
    r"(?:: \([^()]*\))?$"
)
_UNIT = re.compile(r"(?P<unit>GB/s|\bns)\)? *$")


def gpu_entry(entry: str) -> GpuEntry | None:
    """One GPU of the list of devices (`0: NVIDIA H200 (00000000:18:00)`); None for another form."""
    match = _LISTED.match(entry)
    if match is None:
        return None
    domain, bus, slot = match["domain"], match["bus"], match["slot"]
    place = f"{int(domain, 16):04x}:{bus}:{slot}.0".lower() if domain is not None else None
    return GpuEntry(int(match["index"]), match["name"], pci_address=place)


def part(testcase: str, description: str) -> str:
    """The name of a testcase's matrix, from the line above it, for a text without SUM lines."""
    match = _PART.search(description)
    if match is None:
        return testcase
    # 0.6 and 0.7 call the parts of `write_ce` Read1 and Read2, but write in their SUM lines.
    kind = "" if match["part"] == "Total" else "write" if "_write_" in testcase else "read"
    return f"{testcase}_{kind}{match['part'].lower()}"


@dataclass(frozen=True, slots=True)
class CopyMatrix:
    """The matrix of one testcase.

    `description` is the line above it. None in `rows` is N/A in the text.

    `total` is the tool's own sum, None if the text lacks it; `slack` is the largest difference from
    the sum of the cells that rounding allows.
    """

    name: str
    description: str
    rows: tuple[tuple[float | None, ...], ...]
    total: float | None
    slack: float

    @property
    def of_pairs(self) -> bool:
        """Whether the rows are GPUs too.

        Versions 0.6 and 0.7 call them CPUs in bidirectional tests, so the name decides. But across
        machines some testcases with such a name have one total for each GPU (`All Gpus ->
        GPU(column)`).
        """
        return "device_to_device" in self.name and "(row)" in self.description

    @property
    def unit(self) -> str:
        """GB/s, or ns for a latency.

        Raises UnreadableOutput for another unit, and for a unit that contradicts the name.
        """
        match = _UNIT.search(self.description)
        if match is None or (match["unit"] == "ns") != ("latency" in self.name):
            raise UnreadableOutput(
                TOOL,
                self.description,
                Message(
                    english("unit_unknown", "the unit of {name} is unknown"), {"name": self.name}
                ),
            )
        return match["unit"]

    def values(self) -> Mapping[Component, float]:
        """Component -> figure, for every measured cell.

        Versions before 0.4 printed 0.00 for N/A on the diagonal of a matrix of pairs.
        """
        found: dict[Component, float] = {}
        for row, cells in enumerate(self.rows):
            for column, value in enumerate(cells):
                if value is None or (self.of_pairs and row == column and value == 0):
                    continue
                own = Gpu(column)
                of_pair = self.of_pairs and row != column
                found[Pair(Gpu(row), own) if of_pair else own] = value
        return found

    def trouble(self, devices: int | None) -> Message | None:
        """Why its figures are not valid, or None.

        `devices` is the number of GPUs in the output's list, None without a list.
        """
        width = len(self.rows[0])
        height = width if self.of_pairs else 1
        if len(self.rows) != height:
            counts = {"rows": len(self.rows), "width": width, "due": height}
            return Message(
                english(
                    "matrix_rows",
                    "{name} has {rows} rows of {width} figures where {due} belong: lines are "
                    "missing or added",
                ),
                {"name": self.name, **counts},
            )
        if devices is not None and width != devices:
            values: Values = {"name": self.name, "width": width, "devices": devices}
            return Message(
                english(
                    "matrix_columns",
                    "{name} has {width} columns and the output lists {devices} devices",
                ),
                values,
            )
        found = self.values()
        if not found:
            return Message(
                english("matrix_without_figure", "{name} gave no figure"), {"name": self.name}
            )
        for component, value in found.items():
            if value <= 0:
                values = {"name": self.name, "component": str(component), "value": f"{value:.2f}"}
                return Message(
                    english(
                        "nothing_copied",
                        "{name} of {component} is {value}: nothing was copied there",
                    ),
                    values,
                )
        if self.total is not None and abs(sum(found.values()) - self.total) > self.slack:
            sums = {"made": f"{sum(found.values()):.2f}", "told": f"{self.total:.2f}"}
            return Message(
                english(
                    "sum_differs",
                    "{name} adds up to {made} and its SUM says {told}: a figure was changed",
                ),
                {"name": self.name, **sums},
            )
        return None

    def reading(self) -> Reading:
        """The figures under the testcase's name."""
        return Reading(self.name, self.unit, self.values())


@dataclass(slots=True)
class ParsedOutput:
    """Content of an output, before it is judged.

    `waived` and `unfinished` are names of testcases, `errors` say what went wrong. A waived
    testcase without a name is an empty string. `gpus` are the GPUs in the output's list of devices.
    """

    devices: int | None = None
    gpus: tuple[GpuEntry, ...] = ()
    driver: str | None = None
    matrices: list[CopyMatrix] = field(default_factory=list)
    waived: list[str] = field(default_factory=list)
    # A dict, because the order matters and every line looks a name up.
    unfinished: dict[str, None] = field(default_factory=dict)
    errors: list[Message] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, matrix: CopyMatrix) -> None:
        """Add a matrix. Raises UnreadableOutput if its name is there already."""
        if matrix.name in self._names:
            raise UnreadableOutput(
                TOOL,
                matrix.description,
                Message(
                    english("testcase_twice", "{name} comes twice: give one run at a time"),
                    {"name": matrix.name},
                ),
            )
        self._names.add(matrix.name)
        self.matrices.append(matrix)

    def trouble(self) -> Message | None:
        """Why the output proves nothing, or None."""
        if self.errors:
            return self.errors[0]
        if self.unfinished:
            return Message(
                english(
                    "testcase_unfinished",
                    "{name} was started and gave no result: the tool died or the text is cut",
                ),
                {"name": next(iter(self.unfinished))},
            )
        if twice := duplicate(self.gpus):
            return Message(
                english("device_listed_twice", "its list of devices names {twice} twice"),
                {"twice": twice},
            )
        for matrix in self.matrices:
            why = matrix.trouble(self.devices)
            if why is not None:
                return why
        if not self.matrices and self.waived:
            return Message(
                english(
                    "all_waived",
                    "every testcase was waived, so nothing was measured: those between GPUs need "
                    "two with peer access",
                )
            )
        return None if self.matrices else Message(english("no_testcase", "no testcase was run"))


_VERSION = re.compile(r"^nvbandwidth Version: ")
_DRIVER = re.compile(r"^Driver Version: (?P<driver>\S+)$")
# Across machines each process has one GPU, and rows and columns are process numbers.
_DEVICE = re.compile(
    r"^(?:Device (?P<index>\d{1,4}): \S|Process (?P<process>\d{1,4}) \([^)]*\): device \d{1,4}: \S)"
)
_RUNNING = re.compile(r"^Running (?:benchmark )?(?P<name>[a-z0-9_]+)\.?$")
_WAIVED = re.compile(r"^waived\b[:.]?\s*(?P<name>[a-z0-9_]*)", re.IGNORECASE)
# Status words of a testcase without a result, and of refused arguments.
_ERROR = re.compile(r"^(?:error|failed|not found)\b", re.IGNORECASE)
_DESCRIPTION = re.compile(r"\((?:row|column)\)")
_COLUMNS = re.compile(r"^\d+(?:\s+\d+)*$")
_ROW = re.compile(r"^(?P<index>\d+)(?P<cells>(?:\s+\S+)+)$")
# std::fixed always prints two decimals; fewer mean a truncated line.
_CELL = re.compile(r"^(?:N/A|-?\d+\.\d\d)$")
_LOOSE_ROW = re.compile(r"^\d+(?:\s+(?:N/A|-?\d+\.\d+))+$")
_SUM = re.compile(r"^SUM (?P<name>\w+) (?P<total>-?\d+\.\d\d)$")
_OF_THREE = re.compile(
    r"^(?P<base>\w*device_to_device_bidirectional\w*)_(?:(?:read|write)[12]|total)$"
)
_HALF_DIGIT_TEXT = 0.005


@dataclass(slots=True)
class _Open:
    """A matrix that is being read: `width` is None until the line of columns."""

    description: str
    width: int | None = None
    rows: list[tuple[float | None, ...]] = field(default_factory=list)


@dataclass(slots=True)
class _Text:
    """State of the parser.

    `devices` has the list of each run: a text may hold several runs of one machine.
    """

    found: ParsedOutput = field(default_factory=ParsedOutput)
    ours: bool = False
    devices: list[list[str]] = field(default_factory=lambda: [[]])
    gpus: list[GpuEntry] = field(default_factory=list)
    running: str | None = None
    open: _Open | None = None


def _close(state: _Text, summed: re.Match[str] | None = None) -> None:
    """Assign the open matrix to the testcase in its SUM line, or else to the running testcase."""
    if state.open is None:
        return
    shown, state.open = state.open, None
    if not shown.rows:
        raise UnreadableOutput(
            TOOL,
            shown.description,
            Message(english("no_figures_follow", "no figures follow this line")),
        )
    running = state.running
    if summed is None and running is None:
        raise UnreadableOutput(
            TOOL,
            shown.description,
            Message(english("figures_unnamed", "figures of a testcase that no line names")),
        )
    name = summed["name"] if summed else part(str(running), shown.description)
    if running in state.found.unfinished:
        if name != running and not name.startswith(f"{running}_"):
            raise UnreadableOutput(
                TOOL,
                shown.description,
                Message(
                    english(
                        "sum_of_another", "{running} was running, and the sum below names {name}"
                    ),
                    {"running": str(running), "name": name},
                ),
            )
        del state.found.unfinished[str(running)]
    cells = sum(len(row) for row in shown.rows)
    state.found.add(
        CopyMatrix(
            name,
            shown.description,
            tuple(shown.rows),
            number(TOOL, summed.string, summed["total"]) if summed else None,
            _HALF_DIGIT_TEXT * (cells + 1) + 1e-6,
        )
    )


def _figures(matrix: _Open, line: str) -> bool:
    """Whether the line belongs to the open matrix; if so, it is added."""
    if matrix.width is None:
        if not _COLUMNS.match(line) or line.split() != [
            str(index) for index in range(len(line.split()))
        ]:
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english("columns_belong_here", "the numbers of the columns belong here, from 0")
                ),
            )
        matrix.width = len(line.split())
        return True
    match = _ROW.match(line)
    if match is None:
        return False
    cells = match["cells"].split()
    if (
        match["index"] != str(len(matrix.rows))
        or len(cells) != matrix.width
        or not all(map(_CELL.match, cells))
    ):
        raise UnreadableOutput(
            TOOL,
            line,
            Message(
                english("row_belongs_here", "row {row} of {width} figures belongs here"),
                {"row": len(matrix.rows), "width": matrix.width},
            ),
        )
    matrix.rows.append(tuple(None if cell == "N/A" else number(TOOL, line, cell) for cell in cells))
    return True


def _line(state: _Text, line: str) -> None:
    if state.open is not None and _figures(state.open, line):
        return
    found = state.found
    if line.startswith("SUM "):
        match = _SUM.match(line)
        if match is None or state.open is None:
            raise UnreadableOutput(
                TOOL,
                line,
                Message(english("sum_unknown", "a sum of unknown form, or without its matrix")),
            )
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
            raise UnreadableOutput(
                TOOL,
                line,
                Message(
                    english(
                        "testcase_starts_twice", "a testcase starts twice: give one run at a time"
                    )
                ),
            )
        found.unfinished[state.running] = None
    elif match := _WAIVED.match(line):
        found.waived.append(match["name"])
    elif _ERROR.match(line):
        named: Values = {"name": Message("a_testcase"), "line": plain_text.quote(line)}
        found.errors.append(Message("testcase_failed", named))
    elif _DESCRIPTION.search(line):
        state.open = _Open(line)
    elif _LOOSE_ROW.match(line):
        raise UnreadableOutput(
            TOOL, line, Message(english("row_outside_matrix", "a row outside of its matrix"))
        )


def read_text(lines: Iterable[str]) -> ParsedOutput | None:
    """Parse plain text; None if no line is nvbandwidth's. Raises UnreadableOutput."""
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
                Message(
                    english(
                        "devices_unnumbered",
                        "its list of {devices} devices is not numbered from 0, or another run has "
                        "another: lines are missing",
                    ),
                    {"devices": found.devices},
                )
            )
    bases = Counter(
        match["base"] for matrix in found.matrices if (match := _OF_THREE.match(matrix.name))
    )
    cut = next((base for base, count in bases.items() if count != 3), None)
    if cut is not None:
        found.errors.append(
            Message(
                english(
                    "three_matrices",
                    "the text is cut: {name} gives three matrices, one for each direction and "
                    "their total",
                ),
                {"name": cut},
            )
        )
    # Older versions have no sums at all, so a matrix without one among others is a truncated text.
    unsummed = [matrix.name for matrix in found.matrices if matrix.total is None]
    if 0 < len(unsummed) < len(found.matrices):
        found.errors.append(Message("line_missing", {"line": f"SUM {unsummed[0]}"}))
    said = state.ours or lists or found.matrices or found.waived or found.unfinished
    return found if said else None


_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
# A kernel prints the first message for each wrong word; then the host stops with the second.
_MISCOMPARE = re.compile(
    r"Invalid value when checking the pattern|ASSERT in expression h_errorFlag"
)
_ASSERT = re.compile(r"\bASSERT in expression\b")


BUFFER_MIB = 512


def argv(
    binary: str,
    *,
    testcases: Sequence[str],
    json: bool = True,
    buffer_mib: int = BUFFER_MIB,
    samples: int = 3,
) -> tuple[str, ...]:
    """The command line.

    `buffer_mib` is the size of each copy in MiB, `samples` the number of samples for the median.

    Raises ValueError without a testcase (nvbandwidth would run all of them), for an invalid name,
    and for a buffer or a number of samples below 1.
    """
    if not testcases or not all(_NAME.match(name) for name in testcases):
        raise ValueError(f"nvbandwidth needs names of testcases, not {list(testcases)}")
    if buffer_mib < 1 or samples < 1:
        raise ValueError(
            f"nvbandwidth needs at least 1 MiB and 1 sample, not {buffer_mib} and {samples}"
        )
    words = (binary, "-t", *testcases, "-b", str(buffer_mib), "-i", str(samples))
    return (*words, "-j") if json else words


def _with_waived(code: str, output: ParsedOutput, values: Values) -> Message:
    """The message, with the waived testcases."""
    named = [name for name in output.waived if name]
    nameless = len(output.waived) - len(named)
    said: list[str | Message] = [*named]
    said += (
        [
            Message(
                english("waived_unnamed", "{count} that the text does not name"),
                {"count": nameless},
            )
        ]
        if nameless
        else []
    )
    return Message(code, {**values, **known(waived=Listed(tuple(said)) if said else None)})


def parse(text: str) -> ToolOutput:
    """Parse nvbandwidth's text or JSON.

    *fail* is wrong data, or a hardware fault that CUDA names. *pass* needs at least one testcase
    with figures, and none that died, was unknown, was truncated, moved nothing, or contradicts its
    own sum or the list of devices. Raises UnreadableOutput.
    """
    lines = tools_reading.tool_lines(text)
    wrong = next((line for line in lines if _MISCOMPARE.search(line)), None)
    if wrong is not None:
        return ToolOutput(
            TOOL,
            "fail",
            Message(
                english("wrong_data_arrived", "wrong data arrived: '{line}'"),
                {"line": plain_text.quote(wrong)},
            ),
        )
    if error := proof.trouble(lines):
        return proof.outcome(TOOL, error)
    asserted = next((line for line in lines if _ASSERT.search(line)), None)
    if asserted is not None:
        return ToolOutput(
            TOOL,
            "error",
            Message(
                english("tool_died", "it died: '{line}'[ ({cure})]"),
                {"line": plain_text.quote(asserted)},
            ),
        )
    joined = "\n".join(lines)
    found = read_json(joined) if _ROOT.search(joined) else read_text(lines)
    if found is None:
        return proof.not_started(TOOL, text, lines)
    why = found.trouble()
    # Readings beside an error are still shown; they decide nothing.
    readings = tuple(matrix.reading() for matrix in found.matrices if matrix.trouble(None) is None)
    if why is not None:
        return ToolOutput(
            TOOL,
            "error",
            _with_waived(english("and_waived", "{why}[; waived: {waived}]"), found, {"why": why}),
            readings,
        )
    reason = _with_waived(
        plural(
            "matrices_measured",
            "measured {n} matrix[; waived: {waived}]",
            "measured {n} matrices[; waived: {waived}]",
        ),
        found,
        {"n": len(readings)},
    )
    return ToolOutput(TOOL, "pass", reason, readings, gpus=found.gpus, driver=found.driver)
