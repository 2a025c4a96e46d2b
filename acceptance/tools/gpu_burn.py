"""gpu-burn: its command line, and the parser of its output.

The output is progress lines, a table of results and error messages. The parser was written for the
versions from 2012 to 2026, on Linux and Windows.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from acceptance.core import plain_text
from acceptance.core.message import Listed, Message, Single, Values, english, known, plural
from acceptance.core.parts import Gpu
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import proof, reading
from acceptance.tools.proof import (
    CAUSES,
    DRIVER_TOO_OLD,
    NO_DEVICE,
    NOT_READY,
    OUT_OF_MEMORY,
    UNAVAILABLE,
    ToolError,
    option,
)
from acceptance.tools.reading import GpuEntry, Reading, ToolOutput

Mode = Literal["float", "tensor", "double"]

# At its end gpu-burn asks its processes to stop and always sleeps this long.
STOP_S = 30
# Context, random matrices, and one or two products that are still running.
_START_S = 60
_FLAGS: dict[Mode, tuple[str, ...]] = {"float": (), "tensor": ("-tc",), "double": ("-d",)}
_RESULT_MB: dict[Mode, int] = {"float": 256, "tensor": 256, "double": 512}
_PRODUCT_FLOP = 2 * 8192**3
# The first result is the reference for the others: one result alone is compared with nothing.
_SMALLEST_RING = 2
_FREE_SHARE = 0.9
# gpu-burn looks for these anywhere in any word, even in a path: `-c /opt/my-data/compare.ptx` turns
# doubles on.
_FOUND_ANYWHERE = ("-h", "-l", "-d", "-tc")


def argv(
    binary: str, *, mode: Mode, seconds: int, memory_mb: int, compare_file: str | None = None
) -> tuple[str, ...]:
    """The command line that burns every visible GPU for `seconds`.

    It uses `memory_mb` (2^20 bytes) on each GPU. Raises ValueError for arguments that gpu-burn
    would refuse or misread.
    """
    if seconds < 1:
        raise ValueError(f"gpu-burn needs at least 1 second, not {seconds}")
    if memory_mb < _smallest_mb(mode):
        raise ValueError(
            f"gpu-burn needs {_smallest_mb(mode)} MB to compare anything in this mode, not "
            f"{memory_mb}"
        )
    words = [binary, *_FLAGS[mode], "-m", str(memory_mb)]
    if compare_file is not None:
        spoilt = [flag for flag in _FOUND_ANYWHERE if flag in compare_file]
        if spoilt or not compare_file or compare_file.startswith("-"):
            raise ValueError(
                f"gpu-burn would take '{compare_file}' for options"
                + (f": it finds {spoilt[0]} in it" if spoilt else "")
                + "; name another path of the compare kernel"
            )
        words += ["-c", compare_file]
    return (*words, str(seconds))


def _smallest_mb(mode: Mode) -> int:
    return (_SMALLEST_RING + 2) * _RESULT_MB[mode]


def memory_mb(mode: Mode, *, rate_tflops: float, compare_s: float, free_mb: int) -> int:
    """The memory in MB (2^20 bytes) that makes gpu-burn compare about every `compare_s` seconds.

    It is for a GPU of `rate_tflops`, and holds A, B and a ring of results. gpu-burn fills the ring,
    C[0] included, before each compare. With its default (0.9 of the free memory) a large card
    compares rarely, and in a short run not at all. The ring has at least two results; the memory is
    at most 0.9 of `free_mb`. Raises ToolError when that is not enough, and ValueError for a rate or
    a time that is not a positive number.
    """
    for name, value in (("rate_tflops", rate_tflops), ("compare_s", compare_s)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, not {value}")
    most = math.floor(free_mb * _FREE_SHARE)
    if most < _smallest_mb(mode):
        raise ToolError(
            english(
                "burn_memory_short",
                "{free} MB of GPU memory are free, and gpu-burn needs {needed} MB in this mode, "
                "which may be at most 0.9 of it: end what else holds GPU memory",
            ),
            free=free_mb,
            needed=_smallest_mb(mode),
        )
    ring = max(
        _SMALLEST_RING, math.floor(min(rate_tflops * 1e12 * compare_s / _PRODUCT_FLOP, free_mb))
    )
    return min((ring + 2) * _RESULT_MB[mode], most)


def deadline_s(seconds: int) -> float:
    """The longest time of a run of `seconds`, in seconds from its start."""
    return float(seconds + STOP_S + _START_S)


# Operations of a product of 8192 x 8192 matrices as gpu-burn counts them (OPS_PER_MUL), 0.05 % more
# than 2 x 8192^3.
_PRODUCT_GFLOP = 1100.048498688
# gpu-burn's clock counts whole seconds at both ends, and rates are rounded to one Gflop/s, which is
# 0.1 % of a slow one.
_CLOCK_S = 1.5
_ROUNDED = 0.01
# At the end gpu-burn waits for the next line of nvidia-smi, which comes every 5 s, and shows 100 %
# until then.
_OVERTIME_S = 10.0
# The reported rate is the median of the intervals. On steady cards it is this close to their mean:
# 3 % on an H200.
_SPREAD = 0.15


@dataclass(frozen=True, slots=True)
class BurnProgress:
    """The progress lines of one text, in order, and its frame. GPUs are numbered by column."""

    lines: tuple[ProgressLine, ...]
    frame: Frame

    @property
    def complete_lines(self) -> tuple[ProgressLine, ...]:
        """The lines with products and errors of every GPU."""
        return tuple(line for line in self.lines if line.whole)

    def widest(self) -> int:
        """The largest number of GPUs in one line."""
        return max((len(line.columns) for line in self.lines), default=0)

    def _columns(self, *, whole: bool = False) -> Iterator[tuple[int, list[ProgressColumn]]]:
        lines = self.complete_lines if whole else self.lines
        columns: list[list[ProgressColumn]] = [[] for _ in range(self.widest())]
        # Line by line: GPU by GPU, one very wide line among many short ones would take hours.
        for line in lines:
            for gpu, column in enumerate(line.columns):
                columns[gpu].append(column)
        yield from enumerate(columns)

    def rates(self) -> dict[int, float]:
        """Median rate of each GPU in TFLOP/s.

        A rate is printed again until the next compare, so it counts only if the products grew.
        """
        found = {}
        for gpu, columns in self._columns():
            before = 0
            rates = []
            for column in columns:
                if column.done is not None and column.done > before:
                    before = column.done
                    if column.rate:
                        rates.append(column.rate)
            if rates:
                found[gpu] = statistics.median(rates) / 1000
        return found

    def errors(self) -> dict[int, int]:
        """The most wrong elements in one line, for GPUs whose process did not die."""
        counts = {
            gpu: [wrong for column in columns if (wrong := column.wrong()) is not None]
            for gpu, columns in self._columns()
        }
        return {gpu: max(wrong) for gpu, wrong in counts.items() if wrong}

    def temperatures(self) -> dict[int, float]:
        """The highest temperature of each GPU in degC."""
        shown = {
            gpu: [column.temperature for column in columns if column.temperature is not None]
            for gpu, columns in self._columns()
        }
        return {gpu: max(values) for gpu, values in shown.items() if values}

    def died(self) -> list[int]:
        """GPUs whose process died."""
        return [gpu for gpu, columns in self._columns() if any(column.died for column in columns)]

    def rings(self) -> dict[int, int]:
        """The number of results in the ring of each GPU, if the text gives it."""
        gpus = self.widest()
        return (
            dict.fromkeys(range(gpus), self.frame.rings[0])
            if len(self.frame.rings) >= gpus and len(set(self.frame.rings)) == 1
            else {gpu: ring for gpu, ring in self.frame.by_device.items() if gpu < gpus}
        )

    def _products(self) -> Iterator[tuple[int, list[int]]]:
        """Products of each GPU in the whole lines, without those of a dead process."""
        for gpu, columns in self._columns(whole=True):
            if columns:
                yield (
                    gpu,
                    [
                        column.done
                        for column in columns
                        if column.done is not None and column.done >= 0
                    ],
                )

    def compares(self) -> dict[int, int]:
        """The least number of compares that each GPU made."""
        rings = self.rings()
        return {
            gpu: max(products, default=0) // (rings.get(gpu) or math.gcd(*products) or 1)
            for gpu, products in self._products()
        }

    def off_ring(self) -> list[int]:
        """GPUs whose products are no multiple of their ring, which gpu-burn cannot print."""
        rings = self.rings()
        return [
            gpu
            for gpu, products in self._products()
            if any(done % rings.get(gpu, 1) for done in products)
        ]

    def falls(self) -> bool:
        """Whether time or products decrease."""
        times = [line.percent for line in self.lines]
        return times != sorted(times) or any(
            products != sorted(products) for _, products in self._products()
        )

    def _intervals(self) -> Iterator[tuple[int, list[tuple[int, float, float]]]]:
        """(products, seconds by the printed rate, percent) of each interval with a rate, by GPU."""
        for gpu in range(self.widest()):
            before, found = 0, []
            for line in self.complete_lines:
                column = line.columns[gpu] if gpu < len(line.columns) else ProgressColumn()
                if column.done is not None and column.done > before and column.rate:
                    products, before = column.done - before, column.done
                    found.append((products, products * _PRODUCT_GFLOP / column.rate, line.percent))
            if found:
                yield gpu, found

    def false_rate(self, seconds: int) -> Message | None:
        """Why a printed rate contradicts the products and the time of a run of `seconds`, or None.

        Each rate is the products of an interval over its length, so the sum of products over rates
        is the time that the progress shows.
        """
        for gpu, intervals in self._intervals():
            worked_s, percent = sum(length for _, length, _ in intervals), intervals[-1][2]
            shown_s = seconds * percent / 100
            error_s = _CLOCK_S + _ROUNDED * shown_s
            most_s = shown_s + error_s + (_OVERTIME_S if percent >= 100 else 0.0)
            if not shown_s - error_s <= worked_s <= most_s:
                return Message(
                    english(
                        "burn_rate_false",
                        "the rates of GPU {gpu} do not agree with its products and time: at these "
                        "rates its {products} products take {worked} s, and the progress shows "
                        "{shown} s: the text was changed, or is of another run",
                    ),
                    {
                        "gpu": gpu,
                        "products": sum(done for done, _, _ in intervals),
                        "worked": f"{worked_s:.1f}",
                        "shown": f"{shown_s:.1f}",
                    },
                )
            after = intervals[1:]  # the first interval includes the start
            if len(after) < 2:
                continue
            mean = (
                sum(done for done, _, _ in after)
                * _PRODUCT_GFLOP
                / sum(length for _, length, _ in after)
            )
            median = statistics.median(done * _PRODUCT_GFLOP / length for done, length, _ in after)
            if abs(median / mean - 1) > _SPREAD:
                rates = {"median": f"{median:.0f}", "mean": f"{mean:.0f}"}
                return Message(
                    english(
                        "burn_stood_still",
                        "GPU {gpu} reports {median} Gflop/s and made {mean} Gflop/s over the "
                        "whole time: it stood still in between, or the text was changed; burn "
                        "again and watch its clocks",
                    ),
                    {"gpu": gpu, **rates},
                )
        return None

    def without_rate(self) -> list[int]:
        """GPUs whose printed rates are all 0."""
        rates = self.rates()
        return [
            gpu
            for gpu, columns in self._columns()
            if gpu not in rates and any(c.rate == 0 for c in columns)
        ]

    def stalled(self) -> list[int]:
        """GPUs whose products did not grow in the second half of the printed time."""
        lines = self.complete_lines
        found = []
        for gpu in range(self.widest()):
            final = lines[-1].columns[gpu].done
            reached = next(line.percent for line in lines if line.columns[gpu].done == final)
            if reached < lines[-1].percent / 2:
                found.append(gpu)
        return found


TOOL = "gpu-burn"
DIED = -1
# A C int: on a card whose every result is wrong, sums of wrong elements overflow within seconds.
_INT_RANGE = 2**32

_START = re.compile(r"(?<![\d.])(?P<percent>\d{1,3}\.\d)%\s+proc['\u2019\u00b4`]d:")
_DONE = re.compile(r"\s*(?P<done>-?\d+)\s*(?:\(\s*(?P<rate>\d+)\s*Gflop/s\s*\))?")
_ERRORS = re.compile(r"\s*(?P<errors>-?\d+)\s*(?P<note>\((?:WARNING|DIED)!\))?")
_TEMPERATURE = re.compile(r"\s*(?:(?P<celsius>\d+)\s*°?\s*C\b|--)")
_BETWEEN = re.compile(r"\s*(?:-(?=\s)|/)\s*")
_LABEL = {"errors": re.compile(r"\s*errors:"), "temps": re.compile(r"\s*temps:")}
# Words at which a clipped line may end, without digits and brackets.
_CLIPPED_WORDS = ("Gflop/s", "errors:", "WARNING!", "DIED!", "temps:")


@dataclass(frozen=True, slots=True)
class ProgressColumn:
    """One GPU in one progress line. None: the line does not show it.

    `done`: products so far (-1: its process died); `rate`: GFLOP/s of the last interval; `errors`:
    wrong elements since the last 10 % summary, as printed; `temperature`: degC.
    """

    done: int | None = None
    rate: float | None = None
    errors: int | None = None
    died: bool = False
    temperature: float | None = None

    def wrong(self) -> int | None:
        """The number of wrong elements, with an overflown count corrected; None if the GPU died."""
        if self.died or self.errors is None:
            return None
        return self.errors if self.errors >= 0 else self.errors + _INT_RANGE


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """One progress line at `percent` of the time.

    `whole`: each of its columns has products and errors.
    """

    percent: float
    columns: tuple[ProgressColumn, ...]
    whole: bool


def read_progress(text: str) -> tuple[tuple[ProgressLine, ...], str]:
    """The progress lines of a text, and the text without them.

    Raises UnreadableOutput for a line that is neither complete nor clipped.
    """
    starts = list(_START.finditer(text))
    found: list[ProgressLine] = []
    rest = [text[: starts[0].start()] if starts else text]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=False):
        line, stop = _line(text[match.start() : end], match.end() - match.start(), match["percent"])
        found.append(line)
        rest.append(text[match.start() + stop : end])
    return tuple(found), "\n".join(rest)


def _line(piece: str, position: int, percent: str) -> tuple[ProgressLine, int]:
    """The line at the beginning of `piece`, and the position of its end."""
    quoted = piece.partition("\n")[0]
    done, position = _values(_DONE, piece, position)
    errors: list[re.Match[str]] = []
    temperatures: list[re.Match[str]] = []
    if label := _LABEL["errors"].match(piece, position):
        errors, position = _values(_ERRORS, piece, label.end())
        if label := _LABEL["temps"].match(piece, position):
            temperatures, position = _values(_TEMPERATURE, piece, label.end())
        else:
            position = _clip(piece, position, quoted)
    else:
        position = _clip(piece, position, quoted)
    if len(errors) > len(done):
        raise UnreadableOutput(
            TOOL,
            quoted,
            Message(english("progress_errors", "a progress line has more error counts than GPUs")),
        )
    rated = any(match["rate"] for match in done)
    whole = 0 < len(done) == len(errors) and all(bool(match["rate"]) is rated for match in done)
    columns = tuple(
        _column(
            quoted,
            match,
            errors[index] if index < len(errors) else None,
            temperatures[index] if index < len(temperatures) else None,
            cut=not whole and not match["rate"],
        )
        for index, match in enumerate(done)
    )
    return ProgressLine(number(TOOL, quoted, percent), columns, whole), position


def _values(pattern: re.Pattern[str], piece: str, position: int) -> tuple[list[re.Match[str]], int]:
    """The values of one field, and the position of their end."""
    found: list[re.Match[str]] = []
    match = pattern.match(piece, position)
    while match is not None:
        found.append(match)
        position = match.end()
        between = _BETWEEN.match(piece, position)
        if between is None:
            break
        position = between.end()
        match = pattern.match(piece, position)
    return found, position


def _clip(piece: str, position: int, quoted: str) -> int:
    """The position of a clipped line's end.

    Raises UnreadableOutput when the rest is not the beginning of a field.
    """
    end = piece.find("\n", position)
    end = len(piece) if end < 0 else end
    left = piece[position:end].strip(" \t-/()0123456789")
    if not (left.startswith(("...", "…")) or any(word.startswith(left) for word in _CLIPPED_WORDS)):
        raise UnreadableOutput(
            TOOL,
            quoted,
            Message(english("progress_unknown", "a progress line has an unknown form")),
        )
    return end


def _column(
    quoted: str,
    done: re.Match[str],
    errors: re.Match[str] | None,
    temperature: re.Match[str] | None,
    *,
    cut: bool,
) -> ProgressColumn:
    """One column. `cut`: the products may lack their last digits, so they are unknown."""
    products = int(number(TOOL, quoted, done["done"]))
    celsius = temperature["celsius"] if temperature else None
    return ProgressColumn(
        done=None if cut else products,
        rate=number(TOOL, quoted, done["rate"]) if done["rate"] else None,
        errors=int(number(TOOL, quoted, errors["errors"])) if errors else None,
        died=products == DIED or (errors is not None and errors["note"] == "(DIED!)"),
        temperature=number(TOOL, quoted, celsius) if celsius else None,
    )


_TESTED = re.compile(r"\bTested (?P<gpus>\d{1,4}) GPUs?:")
# `nvidia-smi -L` prints `GPU 0: NVIDIA ...` earlier, so the word after the colon decides.
_VERDICT = re.compile(r"\bGPU (?P<gpu>\d{1,4}): *(?P<verdict>OK|FAULTY)\b")
# Versions before 2016 do not name the number format.
_DEVICE = re.compile(
    r"Initialized device (?P<gpu>\d{1,4}) with (?P<total>\d+) MB of memory"
    r" \((?P<free>\d+) MB available, using (?P<used>\d+) MB of it\)"
    r"(?:, using (?P<kind>FLOATS|DOUBLES)(?P<tensor>, using Tensor Cores)?)?"
)
# A GPU in the list of `nvidia-smi -L`, which gpu-burn runs first: all GPUs of the driver, in its
# order.
_LISTED = re.compile(
    r"^[ \t]*GPU (?P<index>\d{1,4}): (?P<name>\S.*?) \(UUID: (?P<uuid>\S+?)\)[ \t]*$", re.MULTILINE
)
_SECONDS = re.compile(r"Burning for (?P<seconds>\d+) sec", re.IGNORECASE)
_RING = re.compile(
    r"Results are (?P<bytes>\d+) bytes each, thus performing (?P<results>\d+) iterations"
)
_OURS = re.compile(
    (
        r"run length not specified in the command line|Using compare file:|Burning for \d+ "
        r"sec|Killing processes|Uninitted cublas"
    ),
    re.IGNORECASE,
)
_ELIDED = re.compile(
    r"^[ \t>*#=\[(<-]*(?:\.{3}|…)|\bsnip\b|\belided\b|similar lines", re.IGNORECASE | re.MULTILINE
)
_WINDOWS = re.compile(r"^Terminating threads$", re.MULTILINE)
_MEGABYTE = 2**20
# 8192 x 8192 numbers: all versions that print the size of a result multiply such matrices.
_RESULT_BYTES = {"FLOATS": 4 * 8192**2, "DOUBLES": 8 * 8192**2}


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One GPU as its process initialised it.

    Sizes are in MB of 2^20 bytes. `mode` is None if the text does not give it.
    """

    gpu: int
    total_mb: int
    free_mb: int
    used_mb: int
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class Frame:
    """The lines around the progress.

    `tested`: the number in each table's head; `verdicts`: (GPU, OK or FAULTY) in order; `rings`:
    results of each ring as printed; `by_device`: the same by device, as far as it follows from the
    used memory; `elided`: the poster of the text left lines out and marked it; `windows`: the
    Windows build, which may end before it shows 100 %; `ours`: at least one line is gpu-burn's.
    `listed`: the GPUs of `nvidia-smi -L`; `devices`: the initialised GPUs; `seconds`: each
    requested time; `result_bytes`: each printed size of a result.
    """

    tested: tuple[int, ...]
    verdicts: tuple[tuple[int, str], ...]
    rings: tuple[int, ...]
    by_device: dict[int, int]
    elided: bool
    windows: bool
    ours: bool
    listed: tuple[GpuEntry, ...]
    devices: tuple[DeviceEntry, ...]
    seconds: tuple[int, ...]
    result_bytes: frozenset[int]

    def faulty(self) -> list[int]:
        """GPUs with the verdict FAULTY."""
        return sorted({gpu for gpu, verdict in self.verdicts if verdict == "FAULTY"})

    def contradiction(self) -> Message | None:
        """Where the lines before the progress contradict each other, or None."""
        if twice := reading.duplicate(self.listed):
            return Message(
                english("gpu_listed_twice", "its list of GPUs names {twice} twice"),
                {"twice": twice},
            )
        if len(self.seconds) > 1:
            return Message(
                english("burn_times_differ", "it burned for {times} s: give one run at a time"),
                {"times": _each_of(english("and_for", "{first} and for {next}"), self.seconds)},
            )
        for device in self.devices:
            if not device.used_mb <= device.free_mb <= device.total_mb:
                sizes = {"total": device.total_mb, "free": device.free_mb, "used": device.used_mb}
                return Message(
                    english(
                        "burn_memory_impossible",
                        "device {device} has {total} MB of memory, {free} MB of it available and "
                        "{used} MB in use, which cannot be",
                    ),
                    {"device": device.gpu, **sizes},
                )
        return self._mode_contradiction()

    def _mode_contradiction(self) -> Message | None:
        modes = sorted({device.mode for device in self.devices if device.mode is not None})
        if len(modes) > 1:
            return Message(
                english(
                    "burn_modes_differ",
                    "some of its devices work in mode {one} and some in mode {other}",
                ),
                {"one": modes[0], "other": modes[1]},
            )
        for mode in modes:
            kind, other = ("DOUBLES", "FLOATS") if mode == "double" else ("FLOATS", "DOUBLES")
            if _RESULT_BYTES[other] in self.result_bytes:
                values: Values = {"kind": kind, "other": other, "bytes": _RESULT_BYTES[other]}
                return Message(
                    english(
                        "burn_result_size",
                        "it uses {kind} and a result has the {bytes} bytes of {other}",
                    ),
                    values,
                )
        return None


def read_frame(text: str) -> Frame:
    """The frame in a text without its progress lines."""
    rings = list(_RING.finditer(text))
    devices = list(_DEVICE.finditer(text))
    tested = tuple(int(match["gpus"]) for match in _TESTED.finditer(text))
    verdicts = tuple((int(match["gpu"]), match["verdict"]) for match in _VERDICT.finditer(text))
    return Frame(
        tested=tested,
        verdicts=verdicts,
        rings=tuple(_whole(match, "results") for match in rings),
        by_device=_by_device(rings, devices),
        elided=_ELIDED.search(text) is not None,
        windows=_WINDOWS.search(text) is not None,
        ours=bool(rings or devices or tested or verdicts) or _OURS.search(text) is not None,
        listed=_gpu_entries(text),
        devices=tuple(dict.fromkeys(map(_device, devices))),
        seconds=tuple(dict.fromkeys(_whole(match, "seconds") for match in _SECONDS.finditer(text))),
        result_bytes=frozenset(_whole(match, "bytes") for match in rings),
    )


def _gpu_entries(text: str) -> tuple[GpuEntry, ...]:
    entries = [
        GpuEntry(_whole(match, "index"), match["name"], match["uuid"])
        for match in _LISTED.finditer(text)
    ]
    return tuple(dict.fromkeys(entries))


def _device(match: re.Match[str]) -> DeviceEntry:
    mode: Mode | None = None
    if match["kind"] is not None:
        mode = "double" if match["kind"] == "DOUBLES" else "tensor" if match["tensor"] else "float"
    gpu, total, free, used = (_whole(match, name) for name in ("gpu", "total", "free", "used"))
    return DeviceEntry(gpu, total, free, used, mode)


def _by_device(rings: list[re.Match[str]], devices: list[re.Match[str]]) -> dict[int, int]:
    """Number of results in the ring of each device.

    The processes print at the same time, so a ring's line need not follow its device's. The used
    memory tells which ring belongs to which device.
    """
    printed = {_whole(match, "results") for match in rings}
    sizes = {_whole(match, "bytes") // _MEGABYTE for match in rings}
    found: dict[int, int] = {}
    for match in devices:
        for size in sizes - {0} if len(sizes) == 1 else ():
            results = _whole(match, "used") // size - 2
            if results in printed:
                found[int(match["gpu"])] = results
    return found


def _whole(match: re.Match[str], name: str) -> int:
    return int(number(TOOL, match.group(), match[name]))


# The driver's messages about a lost GPU, and about uncorrectable errors of memory or links.
_HARDWARE = re.compile(
    r"uncorrectable (?:ECC|NVLink)|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|GPU is lost|fallen off "
    r"the bus"
    r"|hardware stack error|HARDWARE_STACK_ERROR",
    re.IGNORECASE,
)
# Versions before 2015 print each wrong result.
_WRONG = re.compile(r"WE FOUND (?P<count>-?\d{1,12}) FAULTY ELEMENTS from GPU (?P<gpu>\d{1,4})")

# The first match is reported. The order is that of causes: an earlier entry may cause a later one.
_SETUP = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), cure)
    for pattern, cure in (
        (
            r"system not yet initialized|SYSTEM_NOT_READY",
            proof.numbered(NOT_READY),
        ),
        (
            (
                r"No CUDA devices|No CUDA capable GPUs|no CUDA-capable device|Couldn't init "
                r"CUDA|NVIDIA-SMI has failed|cuInit returned [1-9]"
            ),
            CAUSES[NO_DEVICE],
        ),
        (
            r"Low mem for result",
            Message(
                english(
                    "burn_no_room",
                    "there was no room for three results: end what else holds GPU memory, or "
                    "allow more with -m",
                )
            ),
        ),
        (
            r"out of memory|OUT_OF_MEMORY",
            Message(
                english("burn_memory_held", "{why}, or allow less with -m"),
                {"why": CAUSES[OUT_OF_MEMORY]},
            ),
        ),
        (
            r"couldn't find (?:compare kernel|file)|CUDA_ERROR_FILE_NOT_FOUND",
            Message(
                english(
                    "burn_kernel_missing",
                    "the compare kernel was not found: name compare.ptx with -c, or start "
                    "gpu-burn where it lies",
                )
            ),
        ),
        (
            r"load module|unsupported toolchain|kernel image|INVALID_PTX|INVALID_IMAGE|get func",
            Message(
                english(
                    "burn_kernel_unsuited",
                    "the compare kernel does not suit this GPU or driver: build it for this "
                    "architecture with a CUDA no newer than the driver's",
                )
            ),
        ),
        (
            r"ARCH_MISMATCH|STATUS_NOT_SUPPORTED",
            Message(
                english(
                    "burn_without_tensor_cores",
                    "cuBLAS cannot do this on this GPU: leave -tc out on cards without tensor "
                    "cores",
                )
            ),
        ),
        (r"driver version is insufficient|INSUFFICIENT_DRIVER", CAUSES[DRIVER_TOO_OLD]),
        (r"busy or unavailable|DEVICE_UNAVAILABLE", CAUSES[UNAVAILABLE]),
        (
            (
                r"unsupported display driver|STATUS_NOT_INITIALIZED|initialization "
                r"error|ERROR_NOT_INITIALIZED"
            ),
            Message(
                english(
                    "burn_cuda_not_started",
                    "CUDA or cuBLAS could not start: match the libraries to the driver, and see "
                    "that GPU memory is free",
                )
            ),
        ),
        (
            r"error while loading shared libraries|cannot open shared object file",
            Message(
                english(
                    "burn_library_missing",
                    "a library is missing: install the CUDA version that gpu-burn was built with",
                )
            ),
        ),
        (
            r"gpu[_-]burn: (?:command )?not found|gpu[_-]burn: No such file",
            Message(english("burn_missing", "gpu-burn is not there: install it or give its path")),
        ),
        (
            r"Syntax error near -|^GPU Burn$\s*^Usage:",
            Message(english("burn_usage", "the command line was not understood: see gpu-burn -h")),
        ),
    )
)
_ABORT = re.compile(
    r"Couldn't init|Failure during compute|No clients are alive|terminate called|OS call "
    r"failed|Segmentation fault|core dumped"
    r"|\bKilled$|read\[\d+\] error|CUDA_ERROR_|CUBLAS_STATUS_",
    re.MULTILINE,
)
_ALL_DEAD = re.compile(r"No clients are alive")
_NO_SMI = re.compile(
    r"nvidia-smi: (?:command )?not found|Could not invoke (?:nvidia-smi|tegrastats)"
)


@dataclass(frozen=True, slots=True)
class Complaints:
    """Error messages in the text, each as its whole line, or None.

    `hardware` is evidence against the machine. `setup` has its fix in `cure`. `abort` is any other
    early end. `all_dead`: every process died. `no_temperatures`: nvidia-smi is missing, which does
    no other harm but has been seen to crash gpu-burn. `wrong`: (GPU, wrong elements), from versions
    that print each.
    """

    hardware: str | None = None
    setup: str | None = None
    cure: Message | None = None
    abort: str | None = None
    all_dead: bool = False
    no_temperatures: bool = False
    wrong: tuple[tuple[int, int], ...] = ()


def find_complaint(text: str) -> Complaints:
    """Sort the error messages in a text without its progress lines."""
    setup, cure = next(
        ((line, cure) for pattern, cure in _SETUP if (line := _first_line(pattern, text))),
        (None, None),
    )
    return Complaints(
        hardware=_first_line(_HARDWARE, text),
        setup=setup,
        cure=cure,
        abort=_first_line(_ABORT, text),
        all_dead=_ALL_DEAD.search(text) is not None,
        no_temperatures=_NO_SMI.search(text) is not None,
        wrong=tuple((int(match["gpu"]), int(match["count"])) for match in _WRONG.finditer(text)),
    )


def _first_line(pattern: re.Pattern[str], text: str) -> str | None:
    """The whole line of the first match, or None."""
    match = pattern.search(text)
    if match is None:
        return None
    end = text.find("\n", match.start())
    return text[text.rfind("\n", 0, match.start()) + 1 : len(text) if end < 0 else end].strip()


# One compare may be of warm-up work; three are the fewest that show a rate and steady work.
_FEWEST_COMPARES = 3


def parse(text: str) -> ToolOutput:
    """Parse gpu-burn's text.

    Any wrong element, FAULTY, or a process that died without a set-up error is a *fail*.

    *pass* needs the complete table with every GPU OK, three compares of each, errors of 0 in every
    progress line, and an end at 100 %. Raises UnreadableOutput for a text without any line of
    gpu-burn, and for a progress line of unknown form if no GPU is FAULTY.
    """
    cleaned = "\n".join(reading.tool_lines(text))
    try:
        lines, rest = read_progress(cleaned)
    except UnreadableOutput:
        if faulty := read_frame(cleaned).faulty():
            return ToolOutput(
                TOOL,
                "fail",
                Message(
                    english("burn_faulty", "FAULTY: {gpus}[ ('{line}')]"), {"gpus": _names(faulty)}
                ),
            )
        raise
    frame = read_frame(rest)
    trouble = find_complaint(rest)
    if not (lines or frame.ours or trouble.hardware or trouble.setup or trouble.abort):
        raise reading.foreign(TOOL, text)
    history = BurnProgress(lines, frame)
    readings = _readings(history, frame, trouble)
    fault = _fault(history, frame, trouble)
    if fault is not None:
        return ToolOutput(TOOL, "fail", fault, readings)
    said = proof.find(rest.split("\n"))
    if said is not None and said.hardware:
        return ToolOutput(TOOL, "fail", said.reason, readings)
    why = (
        _hindered(trouble) or (said.reason if said else None) or _worthless(history, frame, trouble)
    )
    if why is not None:
        return ToolOutput(TOOL, "error", why, readings)
    fewest = min(history.compares().values())
    tested = _names([gpu for gpu, _ in frame.verdicts])
    reason = Message(
        english("burn_passed", "OK: {gpus}, compared {fewest} times or more, no result wrong"),
        {"gpus": tested, "fewest": fewest},
    )
    return ToolOutput(TOOL, "pass", reason, readings, gpus=frame.listed)


def mismatch(text: str, *, mode: Mode, seconds: int, memory_mb: int) -> Message | None:
    """How a complete text differs from that of our own run with these arguments, or None.

    Only for our own runs: other and older versions omit some of these lines.
    """
    lines, rest = read_progress("\n".join(reading.tool_lines(text)))
    frame = read_frame(rest)
    if frame.seconds != (seconds,):
        if not frame.seconds:
            return Message(
                english(
                    "burn_time_missing",
                    "gpu-burn says that it burned for no time, and was to burn for {due} s",
                ),
                {"due": seconds},
            )
        return Message(
            english(
                "burn_time_differs",
                "gpu-burn says that it burned for {burned} s, and was to burn for {due} s",
            ),
            {"burned": frame.seconds[0], "due": seconds},
        )
    if not frame.tested or [one.gpu for one in _by_number(frame)] != list(range(frame.tested[0])):
        return Message(
            english(
                "burn_start_missing",
                "gpu-burn does not say of each of its devices, once, how it was initialised",
            )
        )
    for device in _by_number(frame):
        if device.mode != mode:
            values: Values = {"device": device.gpu, "mode": str(device.mode), "due": mode}
            return Message(
                english(
                    "burn_mode_differs",
                    "gpu-burn says that device {device} works in mode {mode}, and was to work in "
                    "mode {due}",
                ),
                values,
            )
        if device.used_mb != memory_mb:
            sizes = {"used": device.used_mb, "due": memory_mb}
            return Message(
                english(
                    "burn_memory_differs",
                    "gpu-burn says that device {device} uses {used} MB, and was to use {due} MB",
                ),
                {"device": device.gpu, **sizes},
            )
    return BurnProgress(lines, frame).false_rate(seconds)


def shortfall(argv: Sequence[str], text: str) -> Message | None:
    """How a complete text differs from that of a run with this command line, or None."""
    modes = (mode for mode, flags in _FLAGS.items() if flags and flags[0] in argv)
    memory_mb = option(argv, "-m")
    return mismatch(text, mode=next(modes, "float"), seconds=least_s(argv), memory_mb=memory_mb)


def died_of_itself(output: ToolOutput) -> bool:
    """Whether gpu-burn's processes died and its output does not speak against the hardware.

    An Xid of that moment is in the kernel log.
    """
    found = {reading.name: reading.values.values() for reading in output.readings}
    wrong = any(found.get("gpu_burn_faulty", ())) or any(found.get("gpu_burn_errors", ()))
    return output.outcome == "fail" and bool(found.get("gpu_burn_died")) and not wrong


def least_s(argv: Sequence[str]) -> int:
    """How long a run with this command line lasts."""
    return option(("", *argv[-1:]), "")


def memory(text: str) -> tuple[int, ...]:
    """Total memory of each device in MB of 2^20 bytes, from CUDA, in CUDA's order."""
    _, rest = read_progress("\n".join(reading.tool_lines(text)))
    return tuple(device.total_mb for device in _by_number(read_frame(rest)))


def _by_number(frame: Frame) -> list[DeviceEntry]:
    """The devices by number; their processes print in the order in which they become ready."""
    return sorted(frame.devices, key=lambda device: device.gpu)


def _readings(history: BurnProgress, frame: Frame, trouble: Complaints) -> tuple[Reading, ...]:
    errors = history.errors()
    for gpu, count in trouble.wrong:
        errors[gpu] = max(errors.get(gpu, 0), count)
    faulty = set(frame.faulty())
    named = (
        ("gpu_burn_rate", "TFLOP/s", history.rates()),
        ("gpu_burn_errors", "count", errors),
        ("gpu_burn_compares", "count", history.compares()),
        ("gpu_burn_temperature", "degC", history.temperatures()),
        (
            "gpu_burn_died",
            "count",
            {} if trouble.hardware else dict.fromkeys(_dead(history, trouble), 1.0),
        ),
        ("gpu_burn_faulty", "count", {gpu: float(gpu in faulty) for gpu, _ in frame.verdicts}),
    )
    return tuple(
        Reading(name, unit, {Gpu(gpu): float(value) for gpu, value in sorted(values.items())})
        for name, unit, values in named
        if values
    )


def _dead(history: BurnProgress, trouble: Complaints) -> list[int]:
    """GPUs whose processes died; all GPUs if none is alive and no progress line shows which."""
    return history.died() or (list(range(max(history.widest(), 1))) if trouble.all_dead else [])


def _names(gpus: list[int]) -> Message:
    return Message(
        plural("gpus_numbered", "GPU {names}", "GPUs {names}"),
        {"n": len(gpus), "names": Listed(tuple(map(str, gpus)))},
    )


def _each_of(code: str, numbers: Iterable[int]) -> Single:
    """The numbers, each after the other by the wording of `code`."""
    told: Single
    told, *others = map(str, numbers)
    for one in others:
        told = Message(code, {"first": told, "next": one})
    return told


def _fault(history: BurnProgress, frame: Frame, trouble: Complaints) -> Message | None:
    """Evidence against the hardware in the text, or None."""
    text = trouble.hardware or trouble.setup or trouble.abort
    line = plain_text.quote(text) if text else None
    if faulty := frame.faulty():
        return Message("burn_faulty", known(gpus=_names(faulty), line=line))
    wrong = sorted(
        {gpu for gpu, count in history.errors().items() if count}
        | {gpu for gpu, _ in trouble.wrong}
    )
    if wrong:
        return Message(
            english(
                "burn_wrong_results",
                "wrong results on {gpus}, whatever the table says[ ('{line}')]",
            ),
            known(gpus=_names(wrong), line=line),
        )
    if trouble.hardware is not None:
        line = plain_text.quote(trouble.hardware)
        return Message(
            english("driver_reports_fault", "the driver reports a hardware fault: '{line}'"),
            {"line": line},
        )
    if trouble.setup is None and (dead := history.died()):
        return Message(
            english(
                "burn_died",
                "gpu-burn died on {gpus}[ ('{line}')]: see the kernel log for an Xid of that time",
            ),
            known(gpus=_names(dead), line=line),
        )
    if trouble.setup is None and trouble.all_dead:
        return Message(
            english(
                "burn_died_everywhere",
                "gpu-burn died on every GPU[ ('{line}')]: see the kernel log for an Xid of that "
                "time",
            ),
            known(line=line),
        )
    return None


def _hindered(trouble: Complaints) -> Message | None:
    """Why gpu-burn could not run, with the fix, or None."""
    if trouble.setup is not None:
        values = known(why=trouble.cure, line=plain_text.quote(trouble.setup))
        return Message(english("setup_trouble", "{why}: '{line}'"), values)
    if trouble.abort is not None:
        why = Message("no_work", {"tool": TOOL, "line": plain_text.quote(trouble.abort)})
        return (
            _and(
                why,
                Message(
                    english(
                        "burn_crash_without_smi",
                        "nvidia-smi is missing, without which some versions crash: put it on the "
                        "PATH",
                    )
                ),
            )
            if trouble.no_temperatures
            else why
        )
    return None


def _and(*clauses: Message) -> Message:
    return Message("clauses", {"why": clauses})


def _worthless(history: BurnProgress, frame: Frame, trouble: Complaints) -> Message | None:
    """Why a text without any error still proves nothing, or None."""
    return (
        _broken_table(history, frame, trouble)
        or frame.contradiction()
        or _broken_lines(history, frame)
        or _idle(history, frame)
    )


def _broken_table(history: BurnProgress, frame: Frame, trouble: Complaints) -> Message | None:
    if not frame.tested:
        clipped = history.lines and not history.complete_lines
        why = Message(
            english(
                "burn_clipped_without_table",
                "the progress lines are clipped before the error counts, and the table of results "
                "is missing",
            )
            if clipped
            else english(
                "burn_without_table",
                "the text ends without the table 'Tested N GPUs:': it is cut, or the run was "
                "stopped before its end",
            )
        )
        return (
            _and(why, Message(english("smi_missing", "nvidia-smi is missing: put it on the PATH")))
            if trouble.no_temperatures
            else why
        )
    if len(frame.tested) > 1:
        return Message(
            english(
                "result_table_twice", "the table of results comes twice: give one run at a time"
            )
        )
    gpus = sorted(gpu for gpu, _ in frame.verdicts)
    if gpus != list(range(frame.tested[0])) or not gpus:
        listed = Listed(tuple(map(str, gpus))) if gpus else Message("none")
        return Message(
            english(
                "burn_table_cut",
                "the table of results is incomplete: it speaks of {tested} GPUs and lists {listed}",
            ),
            {"tested": frame.tested[0], "listed": listed},
        )
    return None


def _broken_lines(history: BurnProgress, frame: Frame) -> Message | None:
    """Why the progress lines are not one complete run of the GPUs in the table, or None."""
    if not history.lines:
        return Message(
            english(
                "burn_no_compare",
                "OK, but no GPU showed a single compare, which proves nothing: burn longer or "
                "with less memory (-m)",
            )
        )
    if not history.complete_lines:
        return Message(
            english(
                "burn_clipped",
                "the progress lines are clipped, so the error counts are not known: run it on a "
                "wider terminal or into a file",
            )
        )
    widths = sorted({len(line.columns) for line in history.complete_lines} | {history.widest()})
    if widths != [frame.tested[0]]:
        shown = _each_of(english("and_number", "{first} and {next}"), widths)
        return Message(
            english(
                "burn_widths_differ", "the progress lines show {shown} GPUs, the table {tested}"
            ),
            {"shown": shown, "tested": frame.tested[0]},
        )
    if history.falls():
        return Message(
            english(
                "burn_progress_falls",
                "the progress falls: lines are changed or of several runs, give one run at a time",
            )
        )
    return None


def _idle(history: BurnProgress, frame: Frame) -> Message | None:
    """Why the GPUs did not do enough work, or stopped early; or None."""
    compares = history.compares()
    for gpu, ring in sorted(history.rings().items()):
        if ring < 2:
            return Message(
                english(
                    "burn_ring_short",
                    "the ring of GPU {gpu} holds {results} result, so nothing is compared: allow "
                    "more memory with -m",
                ),
                {"gpu": gpu, "results": ring},
            )
    if broken := history.off_ring():
        return Message(
            english(
                "burn_off_ring",
                "the products of {gpus} do not fit the ring's length: the text was changed",
            ),
            {"gpus": _names(broken)},
        )
    few = [f"GPU {gpu}: {count}" for gpu, count in compares.items() if count < _FEWEST_COMPARES]
    if few:
        listed = Listed(tuple(few))
        return Message(
            english(
                "burn_few_compares",
                "OK, but after too few compares, which proves nothing ({few}; {fewest} are "
                "needed): burn longer or with less memory (-m)",
            ),
            {"few": listed, "fewest": _FEWEST_COMPARES},
        )
    if slow := history.without_rate():
        return Message(
            english("burn_rate_zero", "{gpus} worked at a rate of 0, which proves nothing"),
            {"gpus": _names(slow)},
        )
    if stalled := history.stalled():
        return Message(
            english("burn_stalled", "{gpus} stopped comparing before half of the time was over"),
            {"gpus": _names(stalled)},
        )
    last = history.lines[-1].percent
    if last < 100 and not (frame.elided or frame.windows):
        return Message(
            english(
                "burn_end_missing",
                "the progress ends at {percent} % and a whole run shows 100 %: lines are missing",
            ),
            {"percent": f"{last:.1f}"},
        )
    return None
