"""bandwidthTest: copies between host and GPU and inside the GPU.

It is part of NVIDIA's samples of CUDA 3 to 12.8; later ones have no such program.

It checks no data: `Result = PASS` only means that it ran. Without `--device` it measures only GPU
0. It replaces a GPU number that does not exist by 0. With `--device=all` it prints the *sum* of the
GPUs, measured one after the other. Device to device counts each byte as read and as written, and
its 32 MB fit in the L2 cache of Ada and newer GPUs, so that rate says nothing about their memory.
Versions that print MB/s compute them with 2^20 bytes. They are taken as printed, as 10^6 bytes, so
the true rate is up to 4.9 % higher.

Readings, GB/s, component `gpu0` for `Device 0`, or `machine` for a sum: `bandwidth_test_h2d`,
`bandwidth_test_d2h`, `bandwidth_test_d2d`, at the largest size of the table; with `_pageable` for
pageable and `_wc` for write-combined host memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from acceptance.core import plain_text
from acceptance.core.message import Listed, Message, english
from acceptance.core.parts import MACHINE, Component, Gpu
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import proof, reading
from acceptance.tools.reading import GpuEntry, Reading, ToolOutput

# The meaning of a megabyte depends on the version; the unit is taken as the text prints it.
_PER_GB = {"GB": 1.0, "MB": 1000.0}
# Shmoo mode ends at the first size beyond this, in bytes: 64e6, and 2**26 in the versions that
# print MB/s.
_SHMOO_END = {"GB": 64_000_000, "MB": 1 << 26}


@dataclass(slots=True)
class CopyTable:
    """One table: `kind` is h2d, d2h or d2d; `rates` are in `unit`/s by size in bytes.

    `pageable` is None until the text gives it. `csv`: the table came as lines of `--csv`, which do
    not name the host memory for d2d.
    """

    kind: str
    devices: int
    line: str
    pageable: bool | None = None
    combined: bool = False
    unit: str | None = None
    csv: bool = False
    rates: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The reading's name; each kind of host memory is a measurement of its own."""
        return (
            f"bandwidth_test_{self.kind}{'_pageable' * bool(self.pageable)}{'_wc' * self.combined}"
        )

    def rate(self) -> float:
        """Rate at the largest size, in GB/s."""
        assert self.unit is not None
        return self.rates[max(self.rates)] / _PER_GB[self.unit]

    def worthless(self, mode: str | None, old: bool) -> Message | None:
        """Why the table proves nothing, or None.

        `mode` is Quick, Shmoo or Range, or None if the text does not say. `old`: a version that
        names the host memory in the title.
        """
        title = self.name.removeprefix("bandwidth_test_")
        if self.unit is None or not self.rates:
            return Message(
                english("table_empty", "the text is cut: the table {table} has no row"),
                {"table": title},
            )
        if self.pageable is None and not (self.kind == "d2d" and (self.csv or old)):
            return Message(
                english(
                    "table_memory_untold",
                    "the text is cut: the table {table} does not say PINNED or PAGEABLE",
                ),
                {"table": title},
            )
        if min(self.rates.values()) == 0:
            return Message(
                english("table_zero", "the table {table} says 0 {unit}, so nothing was measured"),
                {"table": title, "unit": f"{self.unit}/s"},
            )
        if mode == "Quick" and len(self.rates) > 1:
            return Message(
                english(
                    "table_of_sizes",
                    "the table {table} has {sizes} sizes, which quick mode has not",
                ),
                {"table": title, "sizes": len(self.rates)},
            )
        if mode == "Shmoo" and max(self.rates) <= _SHMOO_END[self.unit]:
            return Message(
                english("table_ends", "the text is cut: the table {table} ends at {bytes} bytes"),
                {"table": title, "bytes": max(self.rates)},
            )
        return None


TOOL = "bandwidthTest"

_START = re.compile(r"\[CUDA Bandwidth Test\] - Starting")
# deviceQuery, whose text often comes before, puts the name in quotes.
_DEVICE = re.compile(r"Device (?P<index>\d{1,4}): (?P<name>[^\"“„\s].*)")
_MODE = re.compile(r"(?P<mode>Quick|Shmoo|Range) Mode")
_KINDS = {"Host to Device": "h2d", "Device to Host": "d2h", "Device to Device": "d2d"}
_TITLE_START = re.compile(r"(?:Host|Device) to (?:Host|Device) Bandwidth")
_TITLE = re.compile(
    r"(?P<kind>Host to Device|Device to Host|Device to Device) Bandwidth, (?P<devices>\d{1,4}) "
    r"Device\(s\)"
    r"(?:, (?P<memory>Paged|Pinned) memory(?P<combined>, Write-Combined Memory Enabled)?)?"
)
_MEMORY = re.compile(r"(?P<memory>PINNED|PAGEABLE) Memory Transfers")
_COMBINED = "Write-Combined Memory Writes are Enabled"
_HEADER = re.compile(r"Transfer Size \(Bytes\) ?Bandwidth ?\((?P<unit>[MG]B)/s\)")
_ROW_START = re.compile(r"\d+(?: |$)")
_ROW = re.compile(r"(?P<size>\d+) (?P<rate>\d+\.\d+)")
_CSV_START = re.compile(r"bandwidthTest-[HD]2[HD]")
_CSV = re.compile(
    r"bandwidthTest-(?P<kind>H2D|D2H|D2D)"
    r"(?:-(?P<memory>Pinned|Paged))?(?P<combined>-WriteCombined)?, "
    r"Bandwidth = (?P<rate>\d+\.\d+) (?P<unit>[MG]B)/s, Time = \S+ s, Size = (?P<size>\d+) bytes, "
    r"NumDevsUsed = (?P<devices>\d{1,4})"
)
_REFUSED = re.compile(
    r"Invalid (?:memory )?mode - |Illegal argument - |Must specify an? |Not enough memory "
    r"ava|Invalid GPU number \d"
)


def argv(binary: str, *, device: int) -> tuple[str, ...]:
    """The command line for one GPU: pinned memory, one size, three directions.

    Raises ValueError for a negative GPU number.
    """
    if device < 0:
        raise ValueError(f"bandwidthTest needs the number of a GPU, not {device}")
    return (
        binary,
        f"--device={device}",
        "--memory=pinned",
        "--mode=quick",
        "--htod",
        "--dtoh",
        "--dtod",
    )


@dataclass(slots=True)
class _Run:
    """Content of the lines of one run, before it is judged."""

    devices: dict[int, str] = field(default_factory=dict)
    tables: list[CopyTable] = field(default_factory=list)
    mode: str | None = None
    old: bool = False
    result: str | None = None
    refused: str | None = None


def _unknown(line: str, why: Message | None = None) -> UnreadableOutput:
    return UnreadableOutput(
        TOOL,
        line,
        why
        or Message(
            english(
                "line_misplaced",
                "a line has an unknown form, comes twice or stands in the wrong place",
            )
        ),
    )


def _row(table: CopyTable, line: str, match: re.Match[str]) -> None:
    size = int(number(TOOL, line, match["size"]))
    if size in table.rates:
        raise _unknown(line, Message(english("size_twice", "a table has a size twice")))
    table.rates[size] = number(TOOL, line, match["rate"])


def _title(run: _Run, line: str, text: str) -> None:
    match = _TITLE.fullmatch(text)
    if match is None:
        raise _unknown(line)
    table = CopyTable(
        _KINDS[match["kind"]], int(match["devices"]), line, combined=match["combined"] is not None
    )
    if match["memory"] is not None:
        table.pageable = match["memory"] == "Paged"
        run.old = True
    run.tables.append(table)


def _in_table(run: _Run, line: str, text: str) -> None:
    """Read a line under a title: memory, header or row.

    Raises UnreadableOutput if the title is missing, because then a line is lost.
    """
    table = run.tables[-1] if run.tables else None
    combined = text.startswith(_COMBINED)
    if memory := _MEMORY.fullmatch(text):
        if table is None or table.pageable is not None:
            raise _unknown(line)
        table.pageable = memory["memory"] == "PAGEABLE"
    elif (header := _HEADER.fullmatch(text.removeprefix(_COMBINED).strip())) or combined:
        # With --wc this remark has no line end, so the header follows on the same line.
        if table is None or table.unit is not None:
            raise _unknown(line)
        table.combined = table.combined or combined
        table.unit = header["unit"] if header else None
    elif (
        _ROW_START.match(text)
        and table is not None
        and table.unit is not None
        and run.result is None
    ):
        match = _ROW.fullmatch(text)
        if match is None:
            raise _unknown(line)
        _row(table, line, match)
    elif _ROW.fullmatch(text) and run.result is None:
        raise _unknown(line)


def _csv(run: _Run, line: str, text: str) -> None:
    match = _CSV.fullmatch(text)
    if match is None:
        raise _unknown(line)
    pageable = None if match["memory"] is None else match["memory"] == "Paged"
    wanted = CopyTable(
        match["kind"].lower(), int(match["devices"]), line, pageable, unit=match["unit"], csv=True
    )
    wanted.combined = match["combined"] is not None
    table = next((table for table in run.tables if table.name == wanted.name), wanted)
    if (table.devices, table.unit) != (wanted.devices, wanted.unit):
        raise _unknown(
            line, Message(english("rows_apart", "the rows of a table do not go together"))
        )
    if table is wanted:
        run.tables.append(table)
    _row(table, line, match)


def _collect(lines: Sequence[str]) -> _Run:
    run = _Run()
    for line in lines:
        text = " ".join(line.split())
        if match := _DEVICE.fullmatch(text):
            if int(match["index"]) in run.devices or run.tables:
                raise _unknown(line)
            run.devices[int(match["index"])] = match["name"]
        elif match := _MODE.fullmatch(text):
            run.mode = match["mode"]
        elif _TITLE_START.match(text):
            _title(run, line, text)
        elif _CSV_START.match(text):
            _csv(run, line, text)
        elif result := reading.sample_result(TOOL, line, run.result):
            run.result = result
        elif _REFUSED.search(text):
            run.refused = run.refused or text
        else:
            _in_table(run, line, text)
    names = [table.name for table in run.tables]
    if len(set(names)) < len(names):
        raise _unknown(
            run.tables[-1].line,
            Message(english("table_twice", "a table comes twice: give one run at a time")),
        )
    return run


def _worthless(run: _Run) -> Message | None:
    """Why a run without a CUDA error still proves nothing, or None."""
    if run.refused is not None:
        return Message(
            english("tool_refused", "{tool} did not do what it was asked for: '{line}'"),
            {"tool": TOOL, "line": plain_text.quote(run.refused)},
        )
    if run.result is None:
        return Message(
            english("line_missing", "the text is cut: the line '{line}' is missing"),
            {"line": "Result ="},
        )
    if run.result == "FAIL":
        return Message(english("fail_unexplained", "{tool} says FAIL and not why"), {"tool": TOOL})
    if not run.devices:
        return Message("line_missing", {"line": "Device N:"})
    if not run.tables:
        return Message(english("bandwidth_test_empty", "bandwidthTest passed and measured nothing"))
    for table in run.tables:
        why = table.worthless(run.mode, run.old)
        if why is not None:
            return why
        if table.devices != len(run.devices):
            counts = {"devices": table.devices, "named": len(run.devices)}
            return Message(
                english(
                    "table_devices_differ",
                    "a table is of {devices} devices and {named} are named: the text is cut",
                ),
                counts,
            )
        if table.rates.keys() != run.tables[0].rates.keys():
            return Message(
                english("table_sizes_differ", "the tables have different sizes: the text is cut")
            )
    return None


def _runs(lines: Sequence[str]) -> list[Sequence[str]]:
    """The lines of each run, from its first line on.

    Lines before the first start line are a run that lost its start line, if they have a table.
    """
    starts = [index for index, line in enumerate(lines) if _START.search(line)]
    words = [" ".join(line.split()) for line in lines[: starts[0] if starts else None]]
    if not starts or any(_TITLE_START.match(text) or _CSV_START.match(text) for text in words):
        starts.insert(0, 0)
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def parse(text: str) -> ToolOutput:
    """Parse bandwidthTest's text: tables or `--csv`, one run or several of other GPUs or memory.

    *pass* needs the result, the GPU's name and complete tables of every run. A CUDA error is an
    *error* with cause and fix; only a code that itself proves a fault (uncorrectable ECC) is a
    *fail*. Raises UnreadableOutput.
    """
    lines = reading.tool_lines(text)
    if error := proof.find_code(lines) or proof.trouble(lines):
        return proof.outcome(TOOL, error)
    runs = [_collect(part) for part in _runs(lines)]
    if not any(_START.search(line) for line in lines) and not any(
        run.tables or run.refused for run in runs
    ):
        raise reading.foreign(TOOL, text)
    values: dict[str, dict[Component, float]] = {}
    texts = []
    for run in runs:
        why = _worthless(run)
        if why is not None:
            return ToolOutput(TOOL, "error", why)
        alone = len(run.devices) == 1
        index, model = next(iter(run.devices.items()))
        component = Gpu(index) if alone else MACHINE
        for table in run.tables:
            if component in values.setdefault(table.name, {}):
                raise _unknown(
                    table.line,
                    Message(
                        english(
                            "measured_twice",
                            "{component} was measured twice: give one run at a time",
                        ),
                        {"component": str(component)},
                    ),
                )
            values[table.name][component] = table.rate()
        rates = tuple(
            f"{table.name.removeprefix('bandwidth_test_')} {table.rate():.4g} GB/s"
            for table in run.tables
        )
        shown = {"rates": Listed(rates)}
        texts.append(
            Message(
                english("rates_of_gpu", "{gpu} ({model}): {rates}"),
                {"gpu": str(component), "model": model, **shown},
            )
            if alone
            else Message(
                english("rates_of_all", "sum over {gpus} GPUs, not one's rate: {rates}"),
                {"gpus": len(run.devices), **shown},
            )
        )
    readings = tuple(Reading(name, "GB/s", rates_by_gpu) for name, rates_by_gpu in values.items())
    reason = Message("clauses", {"why": tuple(texts)})
    gpus = tuple(GpuEntry(index, name) for run in runs for index, name in run.devices.items())
    return ToolOutput(TOOL, "pass", reason, readings, gpus=gpus)
