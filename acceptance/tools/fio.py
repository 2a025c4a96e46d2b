"""fio: its command lines, and the parser of its JSON and the lines around it (3.1 to 3.41).

Pitfalls, each tried with fio 3.33, and how `argv` avoids them:

- `--rw=read` of a file that is too short overwrites and extends it; with `--readonly` it refuses.
- `--rw=write` on a file that is too short unlinks it and makes another one. With
  `--allow_file_create=0` it makes none, so that the caller must make the file in its full size.
- `crc32c` takes data of another run, whatever `--randseed` was: a reader takes the seed from the
  block itself. So the seed also decides where in a block its header is (`--verify_offset`): what
  another run wrote has `bad magic header` there, but for one in a million (blocks of 1 MiB).
- With `--verify_interval` smaller than the block a wrong interval before a sound one leaves error
  and exit code 0. So no interval is given: each block has one checksum.
- A colon in `--filename` is between two names.
- Without `--continue_on_error=verify` it stops at the first wrong block.

Readings, each with the name of the job as component; `read` may also be `write`, `trim` or, with
`unified_rw_reporting`, `mixed`:

- `fio_read`, GB/s: bytes / runtime, from fio's own sums.
- `fio_read_iops`, IOPS. `fio_read_moved`, GiB. `fio_read_time`, s.
- `fio_read_latency_mean`, `_max`, `_p50`, `_p99`, `_p99_9`, `_p99_99`, us: from the submission to
  the end of an I/O (`clat`), those that the text has.
- `fio_disk_reads`, `fio_disk_writes`, count, and `fio_disk_busy`, ratio, of each disk.
"""

from __future__ import annotations

import errno
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from acceptance.core import disk_error, parts, plain_text
from acceptance.core.disk_error import Operation
from acceptance.core.limit import GIB, MIB
from acceptance.core.message import Listed, Message, english, known, plural
from acceptance.core.parts import Component
from acceptance.process.unreadable import UnreadableOutput, number
from acceptance.tools.proof import option
from acceptance.tools.reading import (
    Reading,
    ToolOutput,
    foreign,
    only_json,
    plain_lines,
    tool_lines,
)

TOOL = "fio"
Kind = Literal["write", "verify", "read", "randread", "randwrite"]

# The folder that rigproof makes on a filesystem under test: fio is given no file outside of it.
FOLDER = ".rigproof"
_SECTOR = 4096  # direct I/O needs multiples of the disk's sector, which is at most this
# Room for fio's header (40 bytes) and its checksum, before and behind the header's place.
_HEADER = 64
# fio puts no bound on its own; beyond, a seed is of no use to it.
_SEEDS = 1 << 32


@dataclass(frozen=True, slots=True)
class Job:
    """One job of fio, on a file that is there in its full size.

    `write` writes the file once, with checksums, and flushes it; `verify` reads it once and
    compares, with the seed and the block size of the write. `read` and `randread` read as many
    bytes, or for `seconds`. `randwrite` writes no more than these in all, and ends after `seconds`.
    `jobs` processes share a random kind; the others have one. The seed is the run's: data of a run
    with another one do not pass.

    Raises ValueError for what fio would refuse or do to another file.
    """

    kind: Kind
    file: str
    bytes: int
    seed: int
    seconds: int | None = None
    block_bytes: int = MIB
    depth: int = 16
    jobs: int = 1

    def __post_init__(self) -> None:
        path = PurePosixPath(self.file)
        if (
            not path.is_absolute()
            or str(path) != self.file
            or FOLDER not in path.parent.parts
            or ".." in path.parts
            or "\\" in self.file
            or self.file != self.file.strip()
            or not self.file.isprintable()
        ):
            raise ValueError(f"fio is given no such file: '{plain_text.quote(self.file)}'")
        if min(self.block_bytes, self.bytes, self.depth, self.jobs) < 1 or self.seed < 0:
            raise ValueError("fio needs a block, a size, a depth, and jobs above 0, and a seed")
        if self.block_bytes % _SECTOR or self.bytes % (self.block_bytes * self.jobs):
            raise ValueError(
                f"fio needs whole sectors of {_SECTOR} bytes and whole blocks for each job, not "
                f"{self.bytes} bytes in blocks of {self.block_bytes} for {self.jobs}"
            )
        if self.jobs > 1 and not self.kind.startswith("rand"):
            raise ValueError(f"several jobs would each {self.kind} the same blocks")
        if self.seconds is not None and (self.seconds < 1 or self.kind in {"write", "verify"}):
            raise ValueError(f"{self.kind} for {self.seconds} s: whole files have no time")


def file_argument(file: str) -> str:
    """The argument that names the file; that of a folder is the beginning of its files'."""
    return "--filename=" + file.replace(":", "\\:")


def argv(binary: str, job: Job) -> tuple[str, ...]:
    """The command line of a job. It runs in any folder and leaves nothing there."""
    rw = {"verify": "read"}.get(job.kind, job.kind)
    words = [
        binary,
        f"--name={job.kind}",
        f"--rw={rw}",
        file_argument(job.file),
        f"--size={job.bytes}",
        f"--bs={job.block_bytes}",
        # io_uring is refused in a container
        "--ioengine=libaio",
        "--direct=1",
        f"--iodepth={job.depth}",
        f"--numjobs={job.jobs}",
        "--group_reporting=1",
        f"--randseed={job.seed % _SEEDS}",
        "--allow_file_create=0",
        "--fallocate=none",
        "--percentile_list=50:99:99.9:99.99",
        "--output-format=json",
        "--eta=never",
    ]
    if job.kind in {"write", "randwrite"}:
        words.append("--end_fsync=1")
    else:
        words.append("--readonly")
    if job.kind in {"write", "verify"}:
        place = _HEADER + job.seed % (job.block_bytes - 2 * _HEADER)
        words += ["--verify=crc32c", f"--verify_offset={place}", "--verify_dump=0"]
        words += ["--verify_state_save=0"]
        if job.kind == "write":
            words.append("--do_verify=0")
        else:
            words += ["--verify_only=1", "--continue_on_error=verify"]
    if job.kind.startswith("rand"):
        words.append("--norandommap=1")
        if job.kind == "randwrite":
            words.append("--refill_buffers=1")
        if job.kind == "randwrite" or job.seconds is None:
            words.append(f"--io_size={job.bytes // job.jobs}")
    if job.seconds is not None:
        words.append(f"--runtime={job.seconds}")
        if job.kind != "randwrite":
            words.append("--time_based=1")
    return tuple(words)


@dataclass(frozen=True, slots=True)
class WrongBlock:
    """A place in a file where fio did not read what was written; `line` is what it said."""

    file: str
    offset: int
    line: str


# `crc32c: verify failed at file F offset N, ...`, `verify: bad magic header ... at file F offset
# N, ...`
_WRONG = re.compile(
    r"^(?:verify: bad [^/]{1,120}|\S{1,8}: verify failed) at file (?P<file>.{1,4096}) offset "
    r"(?P<offset>\d{1,19}),"
)
# What also says that data are wrong; the line with the place may be lost.
_WRONG_TOO = re.compile(
    r"^(?:verify: bad |\S{1,8}: verify failed|Bad verify |fio: (?:got pattern|bad pattern block"
    r"|verify type mismatch)|\s*(?:Expected|Received) CRC:)"
)
_IO_ERROR = re.compile(
    r"^fio: io_u error(?: on file .{0,4096})?: "
    r"(?P<told>(?P<what>[^:]{1,200}): (?P<side>\w+) offset=\d+, buflen=\d+)"
)
# `fio: pid=N, err=30/file:filesetup.c:224, func=write, error=Read-only file system`: the source is
# where fio met the error first.
_ERR = re.compile(r"^fio: pid=\d+, err=(?P<number>\d{1,9})(?:/(?:file:(?P<source>[\w.]+))?|$)")
_SET_UP = "filesetup.c"  # opens, makes and extends the files
_OWN = re.compile(r"^fio: ")
_SHORT_FILE = "fio: refusing extend of file"
# Remarks that leave the work as it is.
_HARMLESS = re.compile(
    r"^fio: (?:cache invalidation of|clocksource=cpu may not|fadvise hint failed|norandommap given"
    r"|Any use of blockalign|only root may flush|file .* exceeds 32-bit|Switching to tausworthe64"
    r"|Use the random_generator|multiple writers may|this platform does not|(?:kb|unit)_base "
    r"differs|--latency-log is deprecated)"
)
_ROOT = re.compile(r'\{\s*"fio version"\s*:')
_VERSION = re.compile(r"fio-3\.(?P<minor>\d{1,3})(?:[.-].*)?")
_TIME = re.compile(r"(?P<number>\d{1,12})(?P<unit>us|ms|s|m|h|d)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
_EARLY = 0.95
_SIDES = ("read", "write", "trim", "mixed")
_DID = {
    "read": Message(english("fio_side_read", "read")),
    "write": Message(english("fio_side_write", "wrote")),
    "trim": Message(english("fio_side_trim", "trimmed")),
    "mixed": Message(english("fio_side_mixed", "moved")),
}
_KIB = 1024
_PERCENTILES = {50.0: "p50", 99.0: "p99", 99.9: "p99_9", 99.99: "p99_99"}
_SHOWN = 8  # places in a sentence; wrong_blocks() has all
# fio counts latencies in classes that are at most 1/64 wide.
_CLASS = 1 / 64

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62))]
_Figure = Annotated[float, msgspec.Meta(ge=0, lt=2.0**63)]
_Options = dict[str, str | None]
_Kind = TypeVar("_Kind")


class _Latency(msgspec.Struct, frozen=True):
    """Nanoseconds from the submission to the end of an I/O."""

    min: _Figure
    max: _Figure
    mean: _Figure
    percentile: dict[str, _Figure] = {}


class _Side(msgspec.Struct, frozen=True):
    """What a job did in one direction. `bw` is in KiB/s, `runtime` in ms."""

    io_bytes: _Count
    bw: _Figure
    iops: _Figure
    runtime: _Count
    total_ios: _Count
    short_ios: _Count
    drop_ios: _Count
    io_kbytes: _Count | msgspec.UnsetType = msgspec.UNSET
    bw_bytes: _Count | msgspec.UnsetType = msgspec.UNSET
    clat_ns: Any = None  # without I/O, some versions have no bounds in it


class _JobResult(msgspec.Struct, frozen=True):
    jobname: str
    error: int
    total_err: _Count = 0
    first_error: int = 0
    options: _Options = msgspec.field(name="job options", default_factory=dict)
    read: _Side | None = None
    write: _Side | None = None
    trim: _Side | None = None
    mixed: _Side | None = None

    def reported(self) -> dict[str, _Side]:
        """The directions that the text has."""
        found = {name: getattr(self, name) for name in _SIDES}
        return {name: side for name, side in found.items() if side is not None}

    def sides(self) -> dict[str, _Side]:
        """The directions in which it moved data."""
        return {name: side for name, side in self.reported().items() if side.io_bytes}


class _Disk(msgspec.Struct, frozen=True):
    """A disk under the files while the jobs ran; `util` is a percentage of that time."""

    name: str
    read_ios: _Count
    write_ios: _Count
    util: Annotated[float, msgspec.Meta(ge=0, le=101)]


class _Whole(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[_JobResult], msgspec.Meta(min_length=1)]
    options: _Options = msgspec.field(name="global options", default_factory=dict)
    disk_util: list[_Disk] = []


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # fio 3.1 ends its percentiles with some of these
    kept = [(name, value) for name, value in pairs if (name, value) != ("0.00", 0)]
    found = dict(kept)
    if len(found) != len(kept):
        names = Counter(name for name, _ in kept)
        raise UnreadableOutput(
            TOOL,
            max(names, key=names.__getitem__),
            Message(english("key_twice", "a key comes twice in one object")),
        )
    return found


def _convert(value: object, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UnreadableOutput(
            TOOL,
            "",
            Message(
                english("fio_json_form", "the JSON is not that of fio: {error}"),
                {"error": str(error)},
            ),
        ) from error


def _whole(text: str) -> _Whole | None:
    """The JSON in a text, None without any.

    Raises UnreadableOutput for a JSON that is cut, that is not fio's, or of an unknown version.
    """
    if not _ROOT.search(text):
        return None
    value, _, _ = only_json(TOOL, text, _ROOT, _once)
    whole = _convert(value, _Whole)
    version = _VERSION.fullmatch(whole.version)
    if version is None or int(version["minor"]) < 1:
        raise UnreadableOutput(
            TOOL,
            whole.version,
            Message(
                english(
                    "fio_version", "this version of fio is not known: give the JSON of 3.1 or later"
                )
            ),
        )
    return whole


@dataclass(slots=True)
class _Said:
    """What the lines around the JSON say, in their order."""

    wrong: list[WrongBlock] = field(default_factory=list)
    # wrong data without a place, failed I/O
    wrong_too: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    full: list[str] = field(default_factory=list)
    hindrances: list[str] = field(default_factory=list)
    short_file: bool = False
    # numbers of errno with which files could not be opened, made or extended
    unopened: frozenset[int] = frozenset()

    def note(self, line: str) -> None:
        """Sort one line; those of other programs, and remarks, are left out."""
        if match := _WRONG.match(line):
            self.wrong.append(WrongBlock(match["file"], int(match["offset"]), line))
        elif _WRONG_TOO.match(line):
            self.wrong_too.append(line)
        elif match := _IO_ERROR.match(line):
            number = disk_error.number_of(match["what"])
            operation = Operation.DATA_TO_WRITE if match["side"] == "write" else Operation.DATA
            # the path of the file may be longer than what is quoted of a line
            self._failed(f"fio: io_u error: {match['told']}", number, operation)
        elif match := _ERR.match(line):
            code = int(match["number"])
            if code == errno.EILSEQ:
                self.wrong_too.append(line)
            else:
                self._failed(line, code, Operation.DATA if match["source"] else Operation.FILE)
        elif _OWN.match(line) and not _HARMLESS.match(line):
            self.hindrances.append(line)
            self.short_file = self.short_file or line.startswith(_SHORT_FILE)

    def _failed(self, line: str, number: int | None, operation: Operation) -> None:
        """Sort an operation that failed. An I/O to a file that was never open failed with it."""
        if number in self.unopened:
            operation = Operation.FILE
        if number == errno.ENOSPC:
            self.full.append(line)
        elif number is not None and disk_error.is_fault(number, operation):
            self.faults.append(line)
        else:
            self.hindrances.append(line)


def _read(text: str) -> tuple[_Said, str]:
    """What the lines say, and the text without what terminals and launchers add to it.

    A text of `verify: bad ...` lines alone must not lose `verify: ` as the prefix of a launcher.
    """
    for lines in (plain_lines(text), tool_lines(text)):
        # fio says only at the end of a job that it could not open its file
        ends = filter(None, map(_ERR.match, lines))
        said = _Said(
            unopened=frozenset(int(end["number"]) for end in ends if end["source"] == _SET_UP)
        )
        for line in lines:
            said.note(line)
        whole = "\n".join(lines)
        if said != _Said() or _ROOT.search(whole):
            return said, whole
    raise foreign(TOOL, text)


def wrong_blocks(text: str) -> tuple[WrongBlock, ...]:
    """Every place at which fio read something else than was written, for a text that is a fail."""
    return tuple(_read(text)[0].wrong)


def _fault(said: _Said) -> Message | None:
    """What the lines prove: wrong data, or failed I/O."""
    if blocks := said.wrong:
        places = Listed.first([f"{one.offset}" for one in blocks], _SHOWN)
        files = sorted({plain_text.quote(one.file) for one in blocks})
        of = Listed.first(files, _SHOWN)
        return Message(
            plural(
                "fio_wrong_blocks",
                "fio read back other data than it had written: {n} block of {files}, at byte "
                "{places}",
                "fio read back other data than it had written: {n} blocks of {files}, at bytes "
                "{places}",
            ),
            {"n": len(blocks), "places": places, "files": of},
        )
    if lines := [*said.wrong_too, *said.faults]:
        more = len(lines) - 1
        return Message(
            english("fio_fault", "fio met a fault: '{line}'[ (and {more} more such lines)]"),
            known(line=plain_text.quote(lines[0]), more=more or None),
        )
    return None


def _ended(jobs: Sequence[_JobResult], *, faults: bool) -> Message | None:
    """The first job that ended with an error number that is, or is not, a disk's fault."""
    for job in jobs:
        for code in (job.error, job.first_error):
            if code and disk_error.is_fault(abs(code), Operation.FILE) is faults:
                name = errno.errorcode.get(abs(code), str(code))
                values = {"job": plain_text.quote(job.jobname), "name": name}
                return Message(
                    english("fio_job_error", "job {job} of fio ended with {name}"), values
                )
    return None


def _hindrance(said: _Said, whole: _Whole) -> Message | None:
    """What kept fio from its work, or None."""
    lines = list(said.hindrances)
    if not any(_on(job.options | whole.options, "fill_device") for job in whole.jobs):
        lines += said.full
    if lines:
        return Message(
            english("no_work", "{tool} could not do its work: '{line}'"),
            {"tool": TOOL, "line": plain_text.quote(lines[0])},
        )
    return _ended(whole.jobs, faults=False)


def _on(options: Mapping[str, str | None], name: str) -> bool:
    """Whether an option without a value, or with a number, is set."""
    return name in options and options[name] != "0"


def _disagreement(side: _Side) -> tuple[str, float, float] | None:
    """The first of fio's figures that the others contradict: its name, value, and what they give.

    fio computes them from bytes, I/Os and runtime, and cuts them to whole numbers (iops to six
    decimals).
    """
    rate = side.io_bytes * 1000 / side.runtime if side.runtime else 0.0
    made = (
        ("bw_bytes", side.bw_bytes, rate, 1.0),
        ("bw", side.bw, rate / _KIB, 1.0),
        ("iops", side.iops, side.total_ios * 1000 / side.runtime if side.runtime else 0.0, 1e-5),
        ("io_kbytes", side.io_kbytes, side.io_bytes / _KIB, 1.0),
    )
    for name, printed, due, slack in made:
        if printed is not msgspec.UNSET and abs(printed - due) > slack + 1e-9 * due:
            return name, printed, due
    if (side.total_ios > 0) != (side.io_bytes > 0):
        return "total_ios", side.total_ios, side.io_bytes
    return None


def _latencies(side: _Side, where: str) -> dict[str, float]:
    """Latencies in us by the end of their reading's name; none where fio did not measure any.

    Raises UnreadableOutput for figures that are in no order.
    """
    if side.clat_ns is None:
        return {}
    found = _convert(side.clat_ns, _Latency)
    shares = [number(TOOL, where, share) for share in found.percentile]
    values = list(found.percentile.values())
    low, high = found.min * (1 - _CLASS), found.max * (1 + _CLASS)
    if (
        not found.min <= found.mean <= found.max
        or shares != sorted(set(shares))
        or values != sorted(values)
        or not all(low <= value <= high for value in values)
        or not all(0 < share <= 100 for share in shares)
    ):
        raise UnreadableOutput(
            TOOL,
            where,
            Message(
                english(
                    "fio_latencies",
                    "latencies of fio are in no order: a percentile, the mean or a bound is "
                    "impossible",
                )
            ),
        )
    if found.max == 0:
        return {}
    named = {"mean": found.mean, "max": found.max}
    for share, value in zip(shares, values, strict=True):
        if share in _PERCENTILES:
            named[_PERCENTILES[share]] = value
    return {name: value / 1000 for name, value in named.items()}


def _due_s(options: Mapping[str, str | None]) -> float | None:
    """Seconds that a job was to last at least, None where it ends with its bytes."""
    asked = options.get("runtime") or options.get("timeout")
    if asked is None or not _on(options, "time_based"):
        return None
    match = _TIME.fullmatch(asked)
    if match is None:
        raise UnreadableOutput(
            TOOL, asked, Message(english("time_unknown", "a time of unknown form"))
        )
    return int(match["number"]) * _SECONDS[match["unit"] or "s"]


def _worthless(job: _JobResult, options: Mapping[str, str | None]) -> Message | None:
    """Why a job without an error still proves nothing, or None."""
    name, sides = plain_text.quote(job.jobname), job.sides()
    for side_name, side in job.reported().items():
        if wrong := _disagreement(side):
            figure, printed, due = wrong
            values = {"figure": figure, "printed": f"{printed:.10g}", "due": f"{due:.10g}"}
            return Message(
                english(
                    "fio_disagrees",
                    "job {job} of fio contradicts itself: {side} has {figure} {printed}, its "
                    "other figures give {due}",
                ),
                {"job": name, "side": side_name, **values},
            )
    if not sides:
        return Message(english("fio_idle", "job {job} of fio moved no data"), {"job": name})
    if any(side.runtime == 0 for side in sides.values()):
        return Message(
            english("fio_no_time", "job {job} of fio was too short to be timed"), {"job": name}
        )
    if job.total_err or any(side.short_ios or side.drop_ios for side in job.reported().values()):
        return Message(
            english(
                "fio_short",
                "job {job} of fio got less than it asked for: I/Os failed, were cut short or "
                "dropped",
            ),
            {"job": name},
        )
    due_s, ran_s = _due_s(options), max(side.runtime for side in sides.values()) / 1000
    if due_s is not None and ran_s < _EARLY * due_s:
        return Message(
            english("ran_short", "it ran for {ran} of {due} s"),
            {"ran": f"{ran_s:.4g}", "due": f"{due_s:.4g}"},
        )
    return None


def _components(jobs: Sequence[_JobResult]) -> list[Component]:
    """One for each job: its name, with a number from the second of a name on."""
    seen: Counter[str] = Counter()
    found: list[Component] = []
    for job in jobs:
        name = plain_text.quote(job.jobname) or TOOL
        seen[name] += 1
        found.append(parts.Named(name if seen[name] == 1 else f"{name} ({seen[name]})"))
    return found


def _readings(whole: _Whole) -> tuple[Reading, ...]:
    values: dict[tuple[str, str], dict[Component, float]] = {}
    for component, job in zip(_components(whole.jobs), whole.jobs, strict=True):
        for name, side in job.sides().items():
            seconds = side.runtime / 1000
            figures = {
                (f"fio_{name}", "GB/s"): side.io_bytes / seconds / 1e9,
                (f"fio_{name}_iops", "IOPS"): side.total_ios / seconds,
                (f"fio_{name}_moved", "GiB"): side.io_bytes / GIB,
                (f"fio_{name}_time", "s"): seconds,
            }
            for end, value in _latencies(side, f"{component}: {name}").items():
                figures[f"fio_{name}_latency_{end}", "us"] = value
            for key, value in figures.items():
                values.setdefault(key, {})[component] = value
    for disk in whole.disk_util:
        own = parts.part("disk", plain_text.quote(disk.name))
        for key, value in {
            ("fio_disk_reads", "count"): float(disk.read_ios),
            ("fio_disk_writes", "count"): float(disk.write_ios),
            ("fio_disk_busy", "ratio"): disk.util / 100,
        }.items():
            values.setdefault(key, {})[own] = value
    return tuple(Reading(name, unit, found) for (name, unit), found in values.items())


def parse(text: str) -> ToolOutput:
    """Parse fio's JSON and what it prints beside it: standard output and error together.

    *fail*: data were not what had been written, or the disk refused I/O, by a line or by a job's
    error number. *error*: fio could not do its work (no space, no right, no file, no engine, a
    signal), did none, ended early, or its figures do not agree with each other; so is a file that
    is shorter than the job: fio compares what lies behind its end, too, with whatever is in its
    buffers. The exit code is not asked for: fio 3.33 exits with 0 after wrong blocks.
    Raises UnreadableOutput.
    """
    said, plain = _read(text)
    fault = None if said.short_file else _fault(said)
    if fault is not None:
        return ToolOutput(TOOL, "fail", fault)
    whole = _whole(plain)
    if whole is None:
        line = plain_text.quote([*said.hindrances, *said.full][0])
        return ToolOutput(TOOL, "error", Message("no_work", {"tool": TOOL, "line": line}))
    if not said.short_file and (fault := _ended(whole.jobs, faults=True)):
        return ToolOutput(TOOL, "fail", fault)
    why = _hindrance(said, whole)
    for job in whole.jobs:
        why = why or _worthless(job, whole.options | job.options)
    if why is not None:
        return ToolOutput(TOOL, "error", why)
    readings = _readings(whole)
    ran = tuple(
        Message(
            english("fio_moved", "{job} {side} {moved} GiB at {rate} GB/s"),
            {
                "job": str(component),
                "side": _DID[name],
                "moved": f"{side.io_bytes / GIB:.4g}",
                "rate": f"{side.io_bytes / side.runtime / 1e6:.4g}",
            },
        )
        for component, job in zip(_components(whole.jobs), whole.jobs, strict=True)
        for name, side in job.sides().items()
    )
    return ToolOutput(
        TOOL,
        "pass",
        Message(english("fio_passed", "completed without an error: {ran}"), {"ran": Listed(ran)}),
        readings,
    )


def shortfall(argv: Sequence[str], output: ToolOutput) -> Message | None:
    """Why a pass is not of this command line, or None: it moved fewer or more bytes than asked.

    A job that lasts a time, or is ended by it, moves what it can.
    """
    asked = [half for word in argv for half in word.split("=", 1)]
    side = "write" if {"write", "randwrite"} & {*asked} else "read"
    moved, due = list(output.reading(f"fio_{side}_moved").values()), option(asked, "--size") / GIB
    if "--runtime" not in asked and moved != [due]:
        told = math.fsum(moved)
        return Message(
            english("fio_moved_other", "fio moved {moved} GiB and not the {due} GiB of its job"),
            {"moved": f"{told:.9g}", "due": f"{due:.9g}"},
        )
    return None
