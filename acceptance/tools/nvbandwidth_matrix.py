"""One matrix of nvbandwidth, as its text or its JSON gave it: which GPUs its cells belong to, and whether it can be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from acceptance.tools.reading import GpuEntry, Reading, UnreadableOutput, duplicate

TOOL = "nvbandwidth"

# A bidirectional copy between GPUs gives three matrices: either direction, and both added.
_PART = re.compile(r"\b(?:Read|Write)?(?P<part>[12]|Total) bandwidth")
# `0: NVIDIA H200 (00000000:18:00): (host)` in JSON; the text has no host, versions before 0.5 no address.
_LISTED = re.compile(
    r"^(?P<index>\d{1,4}): (?P<name>\S.*?)"
    r"(?: \((?P<domain>[0-9a-fA-F]{4,8}):(?P<bus>[0-9a-fA-F]{2}):(?P<slot>[0-9a-fA-F]{2})(?:\.0)?\))?(?:: \([^()]*\))?$"
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
    """The name of a matrix of a testcase, from the line above it, where no SUM says it."""
    match = _PART.search(description)
    if match is None:
        return testcase
    # 0.6 and 0.7 call the parts of `write_ce` Read1 and Read2; their SUM lines say write.
    kind = "" if match["part"] == "Total" else "write" if "_write_" in testcase else "read"
    return f"{testcase}_{kind}{match['part'].lower()}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Figures of one testcase. `description` is the line above them; None stands where the tool printed N/A.

    `total` is the tool's own sum, None where the text does not hold it; `slack` is how far rounding may take it from the sum of
    the cells.
    """

    name: str
    description: str
    rows: tuple[tuple[float | None, ...], ...]
    total: float | None
    slack: float

    @property
    def of_pairs(self) -> bool:
        """Whether rows are GPUs too. Versions 0.6 and 0.7 call them CPUs in bidirectional tests, so the name tells; but across machines
        some testcases of that name have one total for each GPU (`All Gpus -> GPU(column)`).
        """
        return "device_to_device" in self.name and "(row)" in self.description

    @property
    def unit(self) -> str:
        """GB/s, or ns for a latency. Raises UnreadableOutput for another unit, and where the name and the unit disagree."""
        match = _UNIT.search(self.description)
        if match is None or (match["unit"] == "ns") != ("latency" in self.name):
            raise UnreadableOutput(TOOL, self.description, f"the unit of {self.name} is unknown")
        return match["unit"]

    def values(self) -> Mapping[str, float]:
        """Component -> figure, for every cell that was measured.

        A 0.00 that a matrix of pairs has on its diagonal is how versions before 0.4 printed N/A.
        """
        found = {}
        for row, cells in enumerate(self.rows):
            for column, value in enumerate(cells):
                if value is None or (self.of_pairs and row == column and value == 0):
                    continue
                found[f"gpu{row}->gpu{column}" if self.of_pairs and row != column else f"gpu{column}"] = value
        return found

    def trouble(self, devices: int | None) -> str | None:
        """Why its figures cannot be taken, or None. `devices` is how many GPUs the output lists, None where it lists none."""
        width = len(self.rows[0])
        height = width if self.of_pairs else 1
        if len(self.rows) != height:
            return f"{self.name} has {len(self.rows)} rows of {width} figures where {height} belong: lines are missing or added"
        if devices is not None and width != devices:
            return f"{self.name} has {width} columns and the output lists {devices} devices"
        values = self.values()
        if not values:
            return f"{self.name} gave no figure"
        for component, value in values.items():
            if value <= 0:
                return f"{self.name} of {component} is {value:.2f}: nothing was copied there"
        if self.total is not None and abs(sum(values.values()) - self.total) > self.slack:
            return f"{self.name} adds up to {sum(values.values()):.2f} and its SUM says {self.total:.2f}: a figure was changed"
        return None

    def reading(self) -> Reading:
        """The figures under the testcase's name."""
        return Reading(self.name, self.unit, self.values())


@dataclass(slots=True)
class Found:
    """What an output said, before it is judged: `waived` and `unfinished` name testcases, `errors` are sentences.

    A waived testcase without a name is an empty string. `gpus` are those that the output lists with their names.
    """

    devices: int | None = None
    gpus: tuple[GpuEntry, ...] = ()
    driver: str | None = None
    matrices: list[Matrix] = field(default_factory=list)
    waived: list[str] = field(default_factory=list)
    # Their order counts and they are looked up for every line: a dict is both.
    unfinished: dict[str, None] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, matrix: Matrix) -> None:
        """Keep a matrix. Raises UnreadableOutput for one that is there already."""
        if matrix.name in self._names:
            raise UnreadableOutput(TOOL, matrix.description, f"{matrix.name} comes twice: give one run at a time")
        self._names.add(matrix.name)
        self.matrices.append(matrix)

    def trouble(self) -> str | None:
        """Why the output proves nothing, or None."""
        if self.errors:
            return self.errors[0]
        if self.unfinished:
            return f"{next(iter(self.unfinished))} was started and gave no result: the tool died or the text is cut"
        if twice := duplicate(self.gpus):
            return f"its list of devices names {twice} twice"
        for matrix in self.matrices:
            why = matrix.trouble(self.devices)
            if why is not None:
                return why
        if not self.matrices and self.waived:
            return "every testcase was waived, so nothing was measured: those between GPUs need two with peer access"
        return None if self.matrices else "no testcase was run"
