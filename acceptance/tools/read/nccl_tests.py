"""nccl-tests (`all_reduce_perf` and its siblings), of 2019 to 2.18: the tables that they print.

Pitfalls. Old versions have a column `error`, the largest deviation, where newer ones count wrong
values in `#wrong`; both print N/A where nothing was compared (`-c 0`, or in place for operations
that have no such form), and go on to `Out of bounds values : 0 OK`. NCCL's own lines come between
the rows, and within them: a row is printed in two or three pieces. One rank sends nothing: its bus
bandwidth is 0, and its time in place next to nothing. Several programs in one text stand one
behind the other; without MPI in the build, `mpirun` starts programs of one rank each.

Readings, of component `gpus`, or of `float sum` and so on where a text has several tables:

- `nccl_tests_bus_bandwidth`, `nccl_tests_bus_bandwidth_in_place`, GB/s: at the largest size; absent
  for one rank and where nothing was measured.
- `nccl_tests_average_bus_bandwidth`, GB/s: the program's own mean over all sizes, small ones too.
- `nccl_tests_wrong`, count: wrong values; in the old form, sizes with values out of bounds.
- `nccl_tests_ranks`, count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from acceptance.core import parts, plain_text
from acceptance.core.message import Listed, Message, english, known
from acceptance.core.parts import Component
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools import proof
from acceptance.tools.read import nccl_warnings
from acceptance.tools.reading import Outcome, Reading, ToolOutput, foreign, tool_lines

TOOL = "nccl-tests"

# Launchers put the rank before each line, and ranks take turns: mpirun --tag-output, srun --label.
# Open MPI 5 has its launcher's name before them: [prterun-node1-4711@1,0]<stdout>:
_RANK_LABEL = re.compile(r"^\s*(?:\[(?:[\w.-]{1,99}@)?\d+,\d+\]<std(?:out|err)>: ?|\[\d+\] |\d+: )")
_NCCL = re.compile(r"NCCL (?:INFO|WARN|TRACE|version)\b")
# The pieces of a row before one of NCCL's lines.
_CELL = r"(?:-?\d[\d.]*(?:e[+-]?\d+)?|N/A)"
_ROW_START = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*(?:\s+[a-z]+)?(?=\s|$|-?\d)")
_CELLS = re.compile(rf"(?:\s+{_CELL})+")
_IS_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
_IS_CELLS = re.compile(rf"\s*{_CELL}(?:\s|$)")

_PARAMETERS = re.compile(
    r"nThread (?P<threads>\d{1,9}) nGpus (?P<gpus>\d{1,9}) minBytes (?P<low>\d{1,19}) "
    r"maxBytes (?P<high>\d{1,19}) step: (?P<step>\d{1,19})\((?P<how>factor|bytes)\) "
    r".*?\bvalidation: (?P<validation>\d{1,9})\b.*"
)
_REDUCED = re.compile(r"Reducing maxBytes to (?P<high>\d{1,19}) due to memory limitation")
_DEVICE = re.compile(r"Rank +(?P<rank>\d{1,7}) (?:Group +\d+ )?Pid +\d+ on +\S+ device +\d+ .*")
_STARTING = re.compile(r"Collective test (?P<what>starting|concluded): (?P<name>\w+?)(?:_perf)?")
_BOUNDS = re.compile(r"Out of bounds values +: (?P<count>\d+) (?P<word>OK|FAILED)")
_AVERAGE = re.compile(r"Avg bus bandwidth +: (?P<rate>\S+)(?: +(?P<word>OK|FAILED))?")
_FOOTER = re.compile(r"Out of bounds|Avg bus")
_HEADER = re.compile(r"size +count +type\b")
# Titles and settings that change nothing.
_TITLE = re.compile(
    r"|nccl-tests version .*|Using devices|out-of-place +in-place"
    r"|out-of-place \(\+ per-iteration\) +in-place \(\+ per-iteration\)"
    r"|\(B\) +\(elements\) .*|(?:Blocking|Parallel Init) Enabled: .*|Per-Iteration Report: .*"
    r"|Writing JSON output to .*|GPU memory usage +: .*|\.\.\."
)
_COMMAND = re.compile(r"(?P<name>all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoallv?"
                      r"|sendrecv|hypercube|gather|scatter)_perf\b")  # fmt: skip
_FAILED = re.compile(
    r"Test (?:NCCL |CUDA )?failure|Test timeout|Invalid number of GPUs|invalid (?:option|size)"
    r"|exited on signal|BAD TERMINATION|srun: error|prterun noticed|mpirun noticed"
    r"|MPI_ABORT|(?:task|process) \d+: (?:Killed|Aborted)|non-zero (?:exit|status)"
)
_HEAD = ("size", "count", "type", "redop", "root")
_TIMES = ("time", "cputime")
_PER_ITERATION = ("i_min", "i_max", "i_p99", "i_cv%")
_FORMS = tuple(
    (time, "algbw", "busbw", wrong, *more)
    for time in _TIMES
    for wrong in ("#wrong", "error")
    for more in ((), _PER_ITERATION)
)
_STAMP = "timestamp"
# Largest deviation of sound sums that any version allowed (half precision).
_LOOSEST = 5e-2
_HUNDREDTH = 0.01  # rates are rounded to it


@dataclass(frozen=True, slots=True)
class _Half:
    """One half of a row; None for N/A. `wrong` is a deviation in the old form."""

    time: float | None
    algorithm: float | None
    bus: float | None
    wrong: float | None


@dataclass(frozen=True, slots=True)
class _Row:
    line: str
    size: int
    table: str  # type, operation and root, as printed
    halves: tuple[_Half, ...]


@dataclass(slots=True)
class _Run:
    """One program's output."""

    parameters: re.Match[str] | None = None
    high: int | None = None
    name: str | None = None
    ranks: list[int] = field(default_factory=list)
    shortened: bool = False  # the list of devices had no room for all
    columns: tuple[str, ...] = ()
    rows: list[_Row] = field(default_factory=list)
    cut: str | None = None  # a row without its end
    out_of_bounds: int | None = None
    average: float | None = None
    below_wish: bool = False
    unknown: list[str] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether the table counts wrong values, as newer versions do."""
        return "#wrong" in self.columns

    def wrong(self) -> float:
        """Wrong values: those that the rows count, or the tool's sum of sizes that have some."""
        counted = sum(half.wrong or 0.0 for row in self.rows for half in row.halves)
        return max(counted if self.counts else 0.0, float(self.out_of_bounds or 0))


@dataclass(slots=True)
class _Text:
    """What the lines say, before it is judged."""

    runs: list[_Run] = field(default_factory=list)
    command: str | None = None
    failed: list[str] = field(default_factory=list)
    unreadable: UnreadableOutput | None = None  # the first line that is

    def run(self, *, begins: bool = False) -> _Run:
        """The program that prints now; a new one where another begins."""
        if not self.runs or begins:
            self.runs.append(_Run(name=self.command))
        return self.runs[-1]


def _refuse(line: str, why: Message) -> NoReturn:
    raise UnreadableOutput(TOOL, line, why)


def _pieces(lines: Sequence[str]) -> Iterator[str]:
    """The lines without NCCL's; a row that one of them split is put together again."""
    pending = ""
    for line in lines:
        plain = _RANK_LABEL.sub("", line, count=1)
        nccl = _NCCL.search(plain) is not None
        if nccl:
            plain = _before_nccl(plain, pending)
            if not plain:
                continue
        if pending and _IS_CELLS.match(plain) and not _IS_ROW.match(plain):
            plain, pending = f"{pending} {plain.strip()}", ""
        elif pending:
            yield pending
            pending = ""
        if nccl:
            pending = plain
        else:
            yield plain
    if pending:
        yield pending


def _before_nccl(line: str, pending: str) -> str:
    """The beginning of a row, or of its rest, that stands before NCCL's own line; else empty."""
    start = _ROW_START.match(line)
    if start is None and not (pending and _IS_CELLS.match(line)):
        return ""
    end = start.end() if start else 0
    cells = _CELLS.match(line if start else f" {line}", end)
    return line[:end] if cells is None else line[: cells.end() - (0 if start else 1)]


def _collect(lines: Sequence[str]) -> _Text:
    found = _Text()
    for line in _pieces(lines):
        try:
            _line(found, line)
        except UnreadableOutput as error:
            found.unreadable = found.unreadable or error
    return found


def _line(found: _Text, line: str) -> None:
    said = " ".join(line.split()).lstrip("#").strip()
    if _FAILED.search(line):
        found.failed.append(line)
    elif _IS_ROW.match(line):
        _row(found.run(), line)
    elif _comment(found, line, said):
        pass
    elif match := _COMMAND.search(line):
        found.command = match["name"]
    elif found.runs:
        found.run().unknown.append(line)


def _comment(found: _Text, line: str, said: str) -> bool:
    """Store what a line besides the rows says; False if it is not known."""
    if match := _STARTING.fullmatch(said):
        _started(found, match)
    elif match := _PARAMETERS.fullmatch(said):
        run = found.run()
        if run.parameters is not None or run.rows:
            run = found.run(begins=True)
        run.parameters, run.high = match, int(match["high"])
    elif match := _REDUCED.fullmatch(said):
        found.run().high = int(match["high"])
    elif match := _DEVICE.fullmatch(said):
        found.run().ranks.append(int(match["rank"]))
        found.run().shortened |= said.endswith("...")
    elif _HEADER.match(said):
        _header(found.run(), line, said)
    elif _FOOTER.match(said):
        _footer(found.run(), line, said)
    elif said == "..." or (said.startswith("Rank ") and said.endswith("...")):
        found.run().shortened = True
    else:
        return _TITLE.fullmatch(said) is not None
    return True


def _started(found: _Text, match: re.Match[str]) -> None:
    if match["what"] == "starting":
        run = found.run()
        if run.parameters is not None or run.rows:
            run = found.run(begins=True)
        run.name = match["name"]


def _header(run: _Run, line: str, said: str) -> None:
    """The names of the columns. Raises UnreadableOutput for a column that is not known."""
    names = tuple(said.split())
    first = next((place for place, name in enumerate(names) if name in _TIMES), len(names))
    head, rest = names[:first], names[first:]
    stamped = rest[-1:] == (_STAMP,)
    halves = rest[:-1] if stamped else rest
    width = len(halves) // 2
    if (
        head != tuple(name for name in _HEAD if name in head)
        or halves[:width] not in _FORMS
        or halves[width:] != halves[:width]
        or run.columns not in ((), names)
    ):
        _refuse(
            line,
            Message(
                english(
                    "nccl_tests_columns", "the table's columns are not those of a known version"
                )
            ),
        )
    run.columns = names


def _footer(run: _Run, line: str, said: str) -> None:
    if match := _BOUNDS.fullmatch(said):
        count = int(number(TOOL, line, match["count"]))
        if (count > 0) != (match["word"] == "FAILED") or run.out_of_bounds not in (None, count):
            _refuse(
                line,
                Message(
                    english(
                        "nccl_tests_footer",
                        "the closing lines have an unknown form, or contradict each other or the "
                        "rows",
                    )
                ),
            )
        run.out_of_bounds = count
    elif match := _AVERAGE.fullmatch(said):
        rate = number(TOOL, line, match["rate"])
        if rate < 0 or run.average not in (None, rate):
            _refuse(line, Message("nccl_tests_footer"))
        run.average, run.below_wish = rate, match["word"] == "FAILED"
    else:
        _refuse(line, Message("nccl_tests_footer"))


def _row(run: _Run, line: str) -> None:
    """Store a row. One without its end is the last of a text that is cut."""
    columns = run.columns
    if not columns:
        _refuse(
            line,
            Message(
                english("nccl_tests_no_columns", "a row without the line that names its columns")
            ),
        )
    words = line.split()
    stamped = columns[-1] == _STAMP
    width = len(columns) + stamped  # a date and a time of day
    head = sum(name in _HEAD for name in columns)
    half = (len(columns) - head) // 2
    if len(words) < width:
        run.cut = run.cut or line
        if len(words) != head + half or not _is_head(columns, words):
            return
    if len(words) > width:
        _refuse(line, Message(english("nccl_tests_row", "a row has an unknown form")))
    cells = words[head : head + 2 * half]
    starts = range(0, len(cells), half)
    halves = tuple(_half(run, line, cells[start : start + half]) for start in starts)
    size = int(number(TOOL, line, words[0]))
    run.rows.append(_Row(line, size, _table(columns[:head], words), halves))


def _is_head(columns: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a row that ends with its first half has lost no word before."""
    head = dict(zip(columns, words, strict=False))
    return head.get("redop", "sum").isalpha() and "." not in head.get("root", "-1")


def _half(run: _Run, line: str, cells: Sequence[str]) -> _Half:
    values = [None if cell == "N/A" else number(TOOL, line, cell) for cell in cells]
    time, algorithm, bus, wrong = values[:4]
    if any(value is not None and value < 0 for value in values[:4]):
        _refuse(line, Message("nccl_tests_row"))
    if len({time is None, algorithm is None, bus is None}) > 1 or (time is None and wrong):
        _refuse(line, Message("nccl_tests_row"))
    if wrong is not None and run.counts and wrong != int(wrong):
        _refuse(line, Message("nccl_tests_row"))
    return _Half(time, algorithm, bus, wrong)


def _table(columns: Sequence[str], words: Sequence[str]) -> str:
    """Type, operation and root of a row, without those that say nothing."""
    head = dict(zip(columns, words, strict=False))
    told = [head["type"]]
    told += [head["redop"]] if head.get("redop", "none") != "none" else []
    told += [f"root {head['root']}"] if head.get("root", "-1") != "-1" else []
    return " ".join(told)


def _sizes(low: int, high: int, step: int, how: str) -> int:
    """How many sizes a table has."""
    if how == "bytes":
        return 1 if low == high else (high - low) // step + 1 if step else 0
    count = 0
    while low <= high:
        count, low = count + 1, low * step
        if low == 0 or step < 2:
            return 0
    return count


def _worthless(run: _Run) -> Message | None:
    """Why a program's output without a wrong value still proves nothing, or None."""
    given = run.parameters
    if run.cut is not None:
        return Message(
            english("nccl_tests_cut", "the text is cut in a row: '{line}'"),
            {"line": plain_text.quote(run.cut)},
        )
    if given is None or not run.ranks:
        return Message(
            english(
                "nccl_tests_no_head",
                "the text is cut: the settings and the list of devices are not both there",
            )
        )
    if not run.columns or not run.rows:
        return Message(
            english(
                "nccl_tests_no_rows",
                "the text has no row of figures: the program did not come to its first size",
            )
        )
    if run.out_of_bounds is None or run.average is None:
        return Message(
            english(
                "nccl_tests_no_footer",
                "the text is cut: the lines 'Out of bounds values' and 'Avg bus bandwidth' are "
                "not both there",
            )
        )
    ranks = sorted(run.ranks)
    per_process = int(given["threads"]) * int(given["gpus"])
    if len(set(ranks)) < len(ranks):
        return Message(
            english(
                "nccl_tests_apart",
                "several programs printed at once, and not each has its table: nccl-tests that "
                "mpirun starts must be built with MPI=1",
            )
        )
    if not run.shortened and (ranks != list(range(len(ranks))) or len(ranks) % (per_process or 1)):
        return Message(
            english(
                "nccl_tests_ranks_missing", "the list of devices is not whole: it has {ranks} ranks"
            ),
            {"ranks": len(ranks)},
        )
    due = _sizes(int(given["low"]), run.high or 0, int(given["step"]), given["how"])
    for table, rows in _tables(run).items():
        sizes = [row.size for row in rows]
        cycles = [sizes[start : start + due] for start in range(0, len(sizes), due or 1)]
        if not due or len(rows) % due or any(one != sorted(one) for one in cycles):
            return Message(
                english(
                    "nccl_tests_rows_missing",
                    "the table of {table} has {rows} rows, and {due} sizes are due, each after "
                    "the smaller ones",
                ),
                {"table": table, "rows": len(rows), "due": due},
            )
        if len({row.halves[1].wrong is None for row in rows}) > 1:
            return Message(
                english(
                    "nccl_tests_unchecked", "values were not compared (N/A): run it without -c 0"
                )
            )
    if given["validation"] == "0" or any(row.halves[0].wrong is None for row in run.rows):
        return Message("nccl_tests_unchecked")
    if len(run.ranks) > 1 and _average_differs(run):
        return Message("nccl_tests_footer")
    return next(filter(None, (_contradiction(run, row) for row in run.rows)), None)


def _average_differs(run: _Run) -> bool:
    """Whether the program's own mean is another than that of the rows: its number may be cut."""
    rates = [half.bus for row in run.rows for half in row.halves if half.bus is not None]
    mean, told = sum(rates) / max(len(rates), 1), run.average or 0.0
    # Threads of a process time for themselves, and one of them prints.
    return not mean / 2 - _HUNDREDTH <= told <= 2 * mean + _HUNDREDTH


def _contradiction(run: _Run, row: _Row) -> Message | None:
    values = {"line": plain_text.quote(row.line)}
    for half in row.halves:
        if not run.counts and half.wrong is not None and half.wrong > _LOOSEST:
            return Message(
                english(
                    "nccl_tests_deviates",
                    "a row deviates more than any version allows, and the program counted nothing "
                    "out of bounds: '{line}'",
                ),
                values,
            )
        if len(run.ranks) < 2 or half.time is None:
            continue
        # The factor between the rates is a half at least.
        silent = half.bus == 0 and (half.algorithm or 0.0) > 2 * _HUNDREDTH
        # Old versions divide the size by the ranks. Bytes in a microsecond are 1000 times GB/s.
        least = 2 * _HUNDREDTH * 1000 * half.time * len(run.ranks)
        if silent or (half.algorithm == 0 and row.size > least):
            return Message(
                english(
                    "nccl_tests_sent_nothing",
                    "a row has a bus bandwidth of 0 beside data that were sent: '{line}'",
                ),
                values,
            )
    return None


def _tables(run: _Run) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in run.rows:
        found.setdefault(row.table, []).append(row)
    return found


def _components(runs: Sequence[_Run]) -> Iterator[tuple[_Run, Component, dict[Component, _Row]]]:
    """Each program with its component and those of its tables, and the largest size of each."""
    seen: set[str] = set()
    for place, run in enumerate(runs, start=1):
        title = run.name or TOOL
        if len(runs) > 1 and title in seen:
            title = f"{title} ({place})"
        seen.add(title)
        tables = _tables(run)
        largest: dict[Component, _Row] = {}
        for table, rows in tables.items():
            words = [title] if len(runs) > 1 else []
            words += [table] if len(tables) > 1 else []
            own = parts.Named(" ".join(words)) if words else parts.GPUS
            # of equal sizes the last, as of several cycles
            largest[own] = max(reversed(rows), key=lambda row: row.size)
        yield run, parts.Named(title) if len(runs) > 1 else parts.GPUS, largest


def _readings(runs: Sequence[_Run]) -> tuple[Reading, ...]:
    values: dict[tuple[str, str], dict[Component, float]] = {}

    def add(name: str, unit: str, component: Component, value: float | None) -> None:
        if value is not None:
            values.setdefault((f"nccl_tests_{name}", unit), {})[component] = value

    for run, whole, largest in _components(runs):
        if len(run.ranks) > 1:
            for component, row in largest.items():
                for half, end in zip(row.halves, ("", "_in_place"), strict=True):
                    add(f"bus_bandwidth{end}", "GB/s", component, half.bus)
            add("average_bus_bandwidth", "GB/s", whole, run.average)
        add("wrong", "count", whole, run.wrong())
        add("ranks", "count", whole, float(len(run.ranks)))
    return tuple(Reading(name, unit, found) for (name, unit), found in values.items())


def _notes(runs: Sequence[_Run], note: Message | None) -> tuple[Message, ...]:
    """What a reader must know of a pass."""
    notes: list[Message] = []
    if any(len(run.ranks) == 1 for run in runs):
        notes.append(
            Message(
                english(
                    "nccl_tests_one_rank",
                    "one rank sends nothing, so this says nothing about the links between GPUs",
                )
            )
        )
    if any(half.wrong is None for run in runs for row in run.rows for half in row.halves):
        notes.append(
            Message(english("nccl_tests_in_place_unchecked", "in place nothing was compared"))
        )
    if any(run.shortened for run in runs):
        notes.append(
            Message(
                english(
                    "nccl_tests_ranks_shortened", "the program had no room to list all its devices"
                )
            )
        )
    if note is not None:
        notes.append(note)
    lines = [line for run in runs for line in run.unknown]
    if lines:
        values = known(line=plain_text.quote(lines[0]), more=len(lines) - 1 or None)
        notes.append(
            Message(
                english(
                    "nccl_tests_unknown_lines",
                    "a line that is not known: '{line}'[ (and {more} more)]",
                ),
                values,
            )
        )
    return tuple(notes)


def _passed(runs: Sequence[_Run], note: Message | None) -> Message:
    ran: list[Message] = []
    for run, whole, largest in _components(runs):
        rates = [
            Message(
                english("nccl_tests_rate", "{rate} GB/s at {size} bytes ({table})"),
                {
                    "table": row.table,
                    "size": row.size,
                    "rate": f"{row.halves[0].bus:.4g}",
                },
            )
            for row in largest.values()
            if row.halves[0].bus is not None and len(run.ranks) > 1
        ]
        name = run.name or (str(whole) if whole != parts.GPUS else None)
        values = known(
            name=name, ranks=len(run.ranks), rates=Listed(tuple(rates)) if rates else None
        )
        ran.append(
            Message(
                english(
                    "nccl_tests_ran",
                    "[{name}, ]ranks: {ranks}[, bus bandwidth out of place: {rates}]",
                ),
                values,
            )
        )
    notes = _notes(runs, note)
    values = known(ran=Listed(tuple(ran)), notes=Listed(notes) if notes else None)
    return Message(
        english("nccl_tests_passed", "every value that was compared was right: {ran}[; {notes}]"),
        values,
    )


def _wrong(runs: Sequence[_Run]) -> ToolOutput | None:
    """The fault that the text proves: wrong values, whatever else is missing of it."""
    wrong = sum(run.wrong() for run in runs)
    if not wrong:
        return None
    rows = [
        row.line
        for run in runs
        for row in run.rows
        if run.counts and any(half.wrong for half in row.halves)
    ]
    values = known(
        count=f"{wrong:.0f}", line=plain_text.quote(" ".join(rows[0].split())) if rows else None
    )
    counts = {whole: run.wrong() for run, whole, _ in _components(runs)}
    reading = Reading("nccl_tests_wrong", "count", counts)
    return ToolOutput(
        TOOL,
        "fail",
        Message(
            english(
                "nccl_tests_wrong",
                "nccl-tests found wrong values: {count}[, the first in the row '{line}']",
            ),
            values,
        ),
        (reading,),
    )


def parse(text: str) -> ToolOutput:
    """Parse the output of one program of nccl-tests, or of several.

    *fail*: values were wrong, or a line names a fault of the hardware. *error*: the program could
    not run, the text is cut, a column is missing, or nothing was compared. *pass*: every value of
    every size that is due was compared out of place, and right; the notes say what it does not
    prove. Raises UnreadableOutput.
    """
    lines = tool_lines(text)
    if lines and not text.endswith("\n") and _FOOTER.search(lines[-1]):
        lines = lines[:-1]  # its figure may be cut
    trouble = proof.trouble(lines)
    if trouble is not None and trouble.hardware:
        return proof.outcome(TOOL, trouble)
    warnings = nccl_warnings.find(lines)
    found = _collect(lines)
    runs = found.runs
    if fault := _wrong(runs):
        return fault
    if told := warnings.verdict(TOOL):
        return told
    if found.failed:
        line = plain_text.quote(found.failed[0])
        return ToolOutput(TOOL, "error", Message("no_work", {"tool": TOOL, "line": line}))
    if trouble is not None:
        return proof.outcome(TOOL, trouble)
    if found.unreadable is not None:
        raise found.unreadable
    if not any(run.parameters or run.ranks or run.rows for run in runs):
        raise foreign(TOOL, text)
    if len(runs) > 1 and not all(run.rows for run in runs):
        return ToolOutput(TOOL, "error", Message("nccl_tests_apart"))
    for run in runs:
        if why := _worthless(run):
            return ToolOutput(TOOL, "error", why)
    below = [run for run in runs if run.below_wish]
    if below:
        # one rank sends nothing
        outcome: Outcome = "fail" if any(len(run.ranks) > 1 for run in below) else "error"
        return ToolOutput(
            TOOL,
            outcome,
            Message(
                english(
                    "nccl_tests_below_wish",
                    "nccl-tests found its average bus bandwidth below what NCCL_TESTS_MIN_BW "
                    "asked for",
                )
            ),
        )
    return ToolOutput(
        TOOL, "pass", _passed(runs, warnings.note()), _readings(runs), events=warnings.events()
    )
