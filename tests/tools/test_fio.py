from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import each
from reasons import require, why_of

from acceptance.core.limit import GIB, MIB
from acceptance.core.parts import Named, Part
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import fio
from acceptance.tools.fio import Job
from acceptance.wording import words

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/fio"


def recording(name: str) -> str:
    return (RECORDINGS / f"{name}_3.33.txt").read_text()


WRITE, READ, TIMED = recording("write"), recording("read"), recording("read_time_based")
FOUR, SHORT_FILE = recording("randread_each_job"), recording("verify_truncated_file")
FLIPPED = recording("verify_flipped_bits")
FILE = "/data/.rigproof/run-X/data.bin"
JOB = Job("write", FILE, 64 * MIB, 20261124)


# --- the command line ---

COMMON = (
    f"--filename={FILE} --size=67108864 --bs=1048576 --ioengine=libaio --direct=1 --iodepth=16 "
    "--numjobs=1 --group_reporting=1 --randseed=20261124 --allow_file_create=0 --fallocate=none "
    "--percentile_list=50:99:99.9:99.99 --output-format=json --eta=never "
)
SMALL = (
    COMMON.replace("--bs=1048576", "--bs=4096")
    .replace("depth=16", "depth=32")
    .replace("jobs=1", "jobs=4")
)
CHECKED = "--verify=crc32c --verify_offset=340676 --verify_dump=0 --verify_state_save=0 "


@each(
    "job, expected",
    [
        (
            JOB,
            f"fio --name=write --rw=write {COMMON} --end_fsync=1 {CHECKED} --do_verify=0",
        ),
        (
            replace(JOB, kind="verify"),
            f"fio --name=verify --rw=read {COMMON} --readonly {CHECKED} --verify_only=1 "
            "--continue_on_error=verify",
        ),
        (replace(JOB, kind="read"), f"fio --name=read --rw=read {COMMON} --readonly"),
        (
            replace(JOB, kind="read", seconds=5),
            f"fio --name=read --rw=read {COMMON} --readonly --runtime=5 --time_based=1",
        ),
        (
            Job("randread", FILE, 64 * MIB, 20261124, 3, 4096, 32, 4),
            f"fio --name=randread --rw=randread {SMALL} --readonly --norandommap=1 --runtime=3 "
            "--time_based=1",
        ),
        (
            Job("randread", FILE, 64 * MIB, 20261124, None, 4096, 32, 4),
            f"fio --name=randread --rw=randread {SMALL} --readonly --norandommap=1 "
            "--io_size=16777216",
        ),
        (
            Job("randwrite", FILE, 64 * MIB, 20261124, 3, 4096, 32, 4),
            f"fio --name=randwrite --rw=randwrite {SMALL} --end_fsync=1 --norandommap=1 "
            "--refill_buffers=1 --io_size=16777216 --runtime=3",
        ),
    ],
)
def test_argv(job: Job, expected: str) -> None:
    assert fio.argv("fio", job) == tuple(expected.split())


@each("kind", ["write", "verify", "read", "randread", "randwrite"])
def test_no_job_may_make_a_file_and_none_that_reads_may_write(kind: fio.Kind) -> None:
    words_of = fio.argv("fio", replace(JOB, kind=kind))
    assert "--allow_file_create=0" in words_of
    assert ("--readonly" in words_of) == (kind in {"verify", "read", "randread"})
    assert [word for word in words_of if word.startswith("--filename=")] == [f"--filename={FILE}"]
    assert not any(re.match("--(?:directory|opendir|filename_format|unlink)", w) for w in words_of)


@each(
    "change, word",
    [
        (
            {"file": "/data/a:b/.rigproof/run-X/data.bin"},
            r"--filename=/data/a\:b/.rigproof/run-X/data.bin",
        ),
        ({"seed": (1 << 40) + 5}, "--randseed=5"),  # cut to what fio takes
        ({"seed": MIB - 129}, f"--verify_offset={MIB - 65}"),  # the header, within its block
        ({"seed": MIB - 128}, "--verify_offset=64"),
        ({"kind": "read", "seconds": 1}, "--runtime=1"),
    ],
)
def test_words_of_the_command_line(change: dict[str, Any], word: str) -> None:
    assert word in fio.argv("fio", replace(JOB, **change))


def test_the_header_is_elsewhere_for_another_seed() -> None:
    words_of = [set(fio.argv("fio", replace(JOB, seed=seed))) for seed in range(1000)]
    assert len({one for of in words_of for one in of if "verify_offset" in one}) == 1000


@each(
    "change",
    [
        {"file": "data/.rigproof/x"},
        {"file": "/data/x"},
        {"file": "/data/.rigproof"},
        {"file": "/data/.rigproof/../x"},
        {"file": "/data/.rigproof//x"},
        {"file": "/data/.rigproof/x "},
        {"file": "/data/.rigproof/x\n"},
        {"file": "/data/.rigproof/x\\:y"},
        {"file": "/dev/nvme0n1"},
        {"file": ""},
        {"bytes": 0},
        {"bytes": MIB + 4096},
        {"bytes": -MIB},
        {"block_bytes": 0},
        {"block_bytes": 512},
        {"depth": 0},
        {"jobs": 0},
        {"jobs": 2},
        {"kind": "read", "jobs": 2},
        {"kind": "randread", "jobs": 3},
        {"seed": -1},
        {"seconds": 5},
        {"kind": "verify", "seconds": 5},
        {"kind": "read", "seconds": 0},
    ],
)
def test_a_job_that_could_do_harm_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"fio|several jobs|have no time"):
        replace(JOB, **change)


# --- sound texts ---


def test_what_a_pass_says() -> None:
    output = fio.parse(READ)
    assert why_of(output) == "completed without an error: read read 0.0625 GiB at 0.8184 GB/s"
    assert {one.name: one.unit for one in output.readings} == {
        "fio_read": "GB/s",
        "fio_read_iops": "IOPS",
        "fio_read_moved": "GiB",
        "fio_read_time": "s",
        "fio_read_latency_mean": "us",
        "fio_read_latency_max": "us",
        "fio_read_latency_p50": "us",
        "fio_read_latency_p99": "us",
        "fio_read_latency_p99_9": "us",
        "fio_read_latency_p99_99": "us",
        "fio_disk_reads": "count",
        "fio_disk_writes": "count",
        "fio_disk_busy": "ratio",
    }
    own = Named("read")
    assert output.reading("fio_read_moved") == {own: 64 * MIB / GIB}
    assert output.reading("fio_read")[own] == pytest.approx(64 * MIB / 0.082 / 1e9)
    assert list(output.reading("fio_disk_busy")) == [Part("disk", "vda")]


def altered(text: str, old: str, new: str) -> str:
    assert re.search(old, text), old
    return re.sub(old, new, text, count=1)


def side(runtime: int, blocks: int = 2048, **more: object) -> dict[str, object]:
    """A direction in which so many blocks of 4 KiB were moved in so many ms."""
    rate = blocks / runtime * 1000 if runtime else 0.0
    return {
        "io_bytes": blocks * 4096,
        "io_kbytes": blocks * 4,
        "bw_bytes": int(rate * 4096),
        "bw": int(rate * 4),
        "iops": rate,
        "runtime": runtime,
        "total_ios": blocks,
        "short_ios": 0,
        "drop_ios": 0,
        **more,
    }


def made(*jobs: dict[str, object]) -> str:
    """fio's output of these jobs, shortened to what is read."""
    named = [{"jobname": "x", "error": 0, **job} for job in jobs]
    return json.dumps({"fio version": "fio-3.33", "jobs": named})


OLD = altered(  # no `bw_bytes`, no `N`, and percentiles of nothing behind the others
    re.sub(r' +"(?:bw_bytes)" : \d+,\n|,\n +"N" : \d+', "", READ.replace("fio-3.33", "fio-3.1")),
    r'("99.990000" : \d+)\n',
    r"\1" + ',\n"0.00" : 0,\n"0.00" : 0,\n"0.00" : 0\n',
)
FULL = "fio: io_u error on file /x: No space left on device: write offset=8, buflen=4096\n"


@each(
    "text, same",
    [
        (OLD, READ),
        # a percentile that nobody asked for
        (altered(READ, r'("50.000000" : (\d+)),', r'\1, "60.000000" : \2,'), READ),
        *(
            (altered(TIMED, r'"runtime" : "2"', f'"runtime" : "{asked}"'), TIMED)
            for asked in ("2", "2s", "2000ms", "2000000us", "0m", "0h", "0d")
        ),
        # a disk that was to be filled may be full
        *(
            (FULL + altered(text, f'"rw" : "{rw}"', f'"rw" : "{rw}", "fill_device" : {end}'), text)
            for text, rw, end in (
                *((WRITE, "write", '"1"'), (WRITE, "write", '""'), (FOUR, "randread", '"1"')),
            )
        ),
    ],
)
def test_what_changes_nothing(text: str, same: str) -> None:
    assert fio.parse(text) == fio.parse(same)


@each(
    "text, name, of",
    [
        (FOUR, "read", ["randread", "randread (2)", "randread (3)", "randread (4)"]),
        (READ.replace('"jobname" : "read"', '"jobname" : ""'), "read", ["fio"]),
        (READ.replace('"read" : {', '"mixed" : {'), "mixed_iops", ["read"]),
    ],
)
def test_whose_readings_they_are(text: str, name: str, of: list[str]) -> None:
    assert [str(where) for where in fio.parse(text).reading(f"fio_{name}")] == of


@each(
    "version, read",
    [
        ("fio-3.1", True),
        ("fio-3.41", True),
        ("fio-3.42-6-g219f", True),
        ("fio-3.28.1", True),
        ("fio-3.0", False),
        ("fio-2.21", False),
        ("fio-4.0", False),
        ("fio-3", False),
        ("", False),
    ],
)
def test_versions(version: str, read: bool) -> None:
    text = READ.replace('"fio-3.33"', f'"{version}"')
    if read:
        assert fio.parse(text).outcome == "pass"
    else:
        with pytest.raises(UnreadableOutput, match="version"):
            fio.parse(text)


def test_the_largest_latency_may_be_a_percentile() -> None:
    output = fio.parse(altered(READ, r'"99.990000"', '"100.000000"'))
    assert output.outcome == "pass"
    assert "fio_read_latency_p99_99" not in {one.name for one in output.readings}


@each("low, high, sound", [(63, 65, True), (62, 65, False), (63, 66, False)])
def test_a_percentile_lies_within_its_class_of_the_bounds(low: int, high: int, sound: bool) -> None:
    clat = {"min": 64, "max": 64, "mean": 64.0, "percentile": {"50.000000": low, "99.000000": high}}
    text = made({"read": side(2000, clat_ns=clat)})
    if sound:
        assert list(fio.parse(text).reading("fio_read_latency_p99").values()) == [0.065]
    else:
        with pytest.raises(UnreadableOutput, match="latencies"):
            fio.parse(text)


@each(
    "old, new, gone",
    [
        (r'"clat_ns"', '"other_ns"', "all"),
        (r'"percentile"', '"percentiles"', "percentiles"),
        (r'("clat_ns" : \{)[^}]*\{[^}]*\}\s*\}', r'\1"min" : 0, "max" : 0, "mean" : 0}', "all"),
    ],
)
def test_latencies_that_were_not_measured_are_absent(old: str, new: str, gone: str) -> None:
    names = {one.name for one in fio.parse(altered(READ, old, new)).readings}
    assert "fio_read_latency_p50" not in names
    assert ("fio_read_latency_mean" in names) == (gone == "percentiles")


# --- texts that prove nothing ---


@each(
    "text, old, new, reason",
    [
        (READ, r'"bw_bytes" : [1-9]\d+', '"bw_bytes" : 818400790', "read has bw_bytes 818400790"),
        (READ, r'"bw" : [1-9]\d+', '"bw" : 799222', "read has bw 799222"),
        (READ, r'"iops" : [1-9][\d.]+', '"iops" : 780.5', "read has iops 780.5"),
        (READ, r'"io_kbytes" : [1-9]\d+', '"io_kbytes" : 65538', "read has io_kbytes 65538"),
        (READ, r'"runtime" : [1-9]\d*', '"runtime" : 83', "read has bw_bytes"),
        (WRITE, r'"io_bytes" : [1-9]\d+', '"io_bytes" : 0', "write has bw_bytes"),
        (WRITE, r'"total_ios" : 0', '"total_ios" : 1', "read has total_ios 1"),
        (WRITE, r'"short_ios" : 0', '"short_ios" : 1', "cut short"),
        (WRITE, r'"drop_ios" : 0', '"drop_ios" : 1', "cut short"),
        (TIMED, r'"runtime" : "2"', '"runtime" : "3"', "2.017 of 3 s"),
        (TIMED, r'"runtime" : "2"', '"runtime" : "2130ms"', "2.017 of 2.13 s"),
        (TIMED, r'"runtime" : "2"', '"timeout" : "3"', "2.017 of 3 s"),
        (READ, r'"error" : 0', '"error" : 28', "job read of fio ended with ENOSPC"),
        (READ, r'"error" : 0', '"error" : 9999', "job read of fio ended with 9999"),
        (READ, r'"error" : 0', '"total_err" : 1, "error" : 0', "I/Os failed"),
        (READ, r'"error" : 0', '"first_error" : 1, "error" : 0', "ended with EPERM"),
    ],
)
def test_one_change_makes_an_error(text: str, old: str, new: str, reason: str) -> None:
    output = fio.parse(altered(text, old, new))
    require(output, "error", reason)
    assert output.readings == ()


TIMED_JOB = {"job options": {"time_based": "1", "runtime": "2"}}


@each(
    "read, write, reason",
    [
        (2000, 1000, None),
        (1000, 2000, None),
        (1900, 100, None),
        (1899, 100, "1.899 of 2 s"),
        (2000, 0, "too short to be timed"),
        (0, 2000, "too short to be timed"),
    ],
)
def test_a_job_of_two_directions(read: int, write: int, reason: str | None) -> None:
    """It lasted as long as the longer one, and each must have taken time."""
    output = fio.parse(made({"read": side(read), "write": side(write), **TIMED_JOB}))
    require(output, "pass" if reason is None else "error", reason or "")


@each(
    "text",
    [
        "",
        "hello\n",
        "sh: 1: fio: not found\n",
        "{}",
        READ + READ,
        READ[: len(READ) // 2],
        READ[:-3],
        altered(READ, r'"error" : 0', '"error" : 0, "error" : 0'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : NaN'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : nan'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : -1'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : 1e999'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : "1"'),
        altered(READ, r'"io_bytes" : \d+', '"io_bytes" : ' + "9" * 5000),
        altered(READ, r'"util" : [\d.]+', '"util" : 900'),
        altered(READ, r'"jobs"', '"client_stats"'),
        altered(READ, r'"mean" : [\d.]+', '"mean" : ' + "[" * 100_000),
        altered(TIMED, r'"runtime" : "2"', '"runtime" : "a while"'),
        '{"fio version" : "fio-3.33", "jobs" : []}',
        *(  # latencies in no order
            altered(READ, old, new)
            for old, new in (
                (r'("clat_ns" : \{\s+"min" : )\d+', r"\g<1>99999999999"),
                (r'("clat_ns" : \{\s+"min" : \d+,\s+"max" : )\d+', r"\g<1>1"),
                (r'("clat_ns" : \{[^}]*?"mean" : )[\d.]+', r"\g<1>1.0"),
                (r'"99.000000" : \d+', '"99.000000" : 1'),
                (r'"99.990000" : \d+', '"99.990000" : 99999999999'),
                (r'"50.000000"', '"99.950000"'),
                (r'"99.990000"', '"100.100000"'),
                (r'"50.000000"', '"-1"'),
                (r'"50.000000"', '"0.000000"'),
                (r'"50.000000"', '"nan"'),
                (r'"50.000000"', '"fifty"'),
            )
        ),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        fio.parse(text)


@each(
    "text, reason",
    [
        (altered(READ, r'"clat_ns" : {', '"clat_ns" : NaN, "other" : {'), "is no number: 'NaN'"),
        (
            altered(READ, r'"error" : 0', '"error" : 0, "error" : 0'),
            "comes twice in one object: 'error'",
        ),
        (
            made({"error": "0"}),
            "the JSON is not that of fio: Expected `int`, got `str` - at `$.jobs[0].error`",
        ),
        (READ[: len(READ) // 2], "the JSON is cut or damaged (JSONDecodeError)"),
        (
            altered(READ, r'"mean" : [\d.]+', '"mean" : ' + "[" * 100_000),
            "the JSON is cut or damaged (RecursionError)",
        ),
    ],
)
def test_why_it_is_unreadable(text: str, reason: str) -> None:
    with pytest.raises(UnreadableOutput) as caught:
        fio.parse(text)
    assert reason in str(caught.value)


# --- lines beside the JSON ---


@each(
    "line, outcome",
    [
        ("fio: engine libaio not loadable", "error"),
        ("fio: failed to load engine", "error"),
        ("fio: pid=7, err=1/file:filesetup.c:805, func=open(/x), error=Operation not", "error"),
        ("fio: pid=7, err=2/file:filesetup.c:805, func=open(/x), error=No such file", "error"),
        ("fio: pid=7, err=22/file:io_u.c:1876, func=io_u error, error=Invalid argument", "error"),
        ("fio: pid=7, err=28/file:io_u.c:1876, func=io_u error, error=No space left", "error"),
        ("fio: pid=7, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error", "fail"),
        ("fio: pid=7, err=61/file:io_u.c:1876, func=io_u error, error=No data", "fail"),
        ("fio: pid=7, err=84/file:io_u.c:2190, func=x, error=Invalid or", "fail"),
        ("fio: pid=7, err=6", "error"),  # does not say of what
        ("fio: pid=7, got signal=9", "error"),
        ("fio: terminating on signal 2", "error"),
        ("fio: something that nobody has seen", "error"),
        ("fio: verification read phase will never start because write phase uses all", "error"),
        ("fio: io_u error on file /x: Input/output error: read offset=0, buflen=4096", "fail"),
        ("fio: io_u error on file /x: No such device: write offset=0, buflen=4096", "fail"),
        ("fio: io_u error on file /x: Read-only file system: write offset=0, buflen=4", "fail"),
        ("fio: io_u error: Input/output error: sync offset=0, buflen=0", "fail"),
        ("fio: io_u error on file /x: No space left on device: write offset=1, buflen=4", "error"),
        ("fio: io_u error on file /x: Invalid argument: write offset=1, buflen=4096", "error"),
        ("crc32c: verify failed at file /x offset 4096, length 4096", "fail"),
        ("verify: bad header rand_seed 5, wanted 4 at file /x offset 0, length 4096", "fail"),
        ("verify: bad magic header 0, wanted acca at file /x offset 0, length 65536", "fail"),
        ("verify: bad header crc 1, calculated 2", "fail"),
        ("fio: got pattern 'ff', wanted 'fe'. Bad bits 1", "fail"),
        ("fio: bad pattern block offset 15", "fail"),
        ("fio: verify type mismatch (1 media, 2 given)", "fail"),
        ("       Expected CRC: c24b3fae", "fail"),
        ("fio: cache invalidation of /x failed: Bad file descriptor", "pass"),
        ("fio: clocksource=cpu may not be reliable", "pass"),
        ("note: both iodepth >= 1 and synchronous I/O engine are selected", "pass"),
        ("Jobs: 1 (f=1): [R(1)][100.0%][r=800MiB/s][r=800 IOPS][eta 00m:00s]", "pass"),
    ],
)
def test_one_more_line(line: str, outcome: str) -> None:
    for text in (f"{line}\n{READ}", f"{READ}{line}\n"):
        output = fio.parse(text)
        require(output, outcome)
        assert (output.readings != ()) == (outcome == "pass")


@each(
    "text, places, reason",
    [
        (
            FLIPPED,
            [3145728, 41943040],
            f"fio read back other data than it had written: 2 blocks of {FILE}, at bytes 3145728, "
            "41943040",
        ),
        (
            recording("verify_flipped_bit_stops"),
            [3145728],
            f"fio read back other data than it had written: 1 block of {FILE}, at byte 3145728",
        ),
        (
            recording("verify_other_seed"),
            [MIB * index for index in range(64)],
            f"fio read back other data than it had written: 64 blocks of {FILE}, at bytes 0, "
            "1048576, 2097152, 3145728, 4194304, 5242880, 6291456, 7340032 and 56 more",
        ),
    ],
)
def test_every_wrong_block_has_its_place(text: str, places: list[int], reason: str) -> None:
    require(fio.parse(text), "fail", reason)
    found = fio.wrong_blocks(text)
    assert [(one.file, one.offset) for one in found] == [(FILE, place) for place in places]
    assert all(one.line in text for one in found)


def too_short(text: str) -> str:
    for name, told in (("bw_bytes", 1), ("bw", 0), ("runtime", 0)):  # 1: what fio may cut off
        text = altered(text, rf'"{name}" : [1-9]\d*', f'"{name}" : {told}')
    return altered(text, r'"iops" : [1-9][\d.]*', '"iops" : 0')


LONG = altered(TIMED, r'"runtime" : "2"', '"runtime" : "200"')
OF_ALL = altered(
    re.sub(r' +"(?:runtime)" : "\d+",\n', "", FOUR),
    r'"jobs" : \[',
    '"global options" : {"time_based" : "", "runtime" : "9"}, "jobs" : [',
)
UNSEEN = "fio: something that nobody has seen\n"
BAD_CRC = "crc32c: verify failed at file /x offset 4096, length 4096\n"
NUMBER = "fio: pid=7, err={}/file:io_u.c:2190, func=x, error=y\n"
REFUSED = next(line for line in SHORT_FILE.splitlines() if "refusing extend" in line) + "\n"
DEEP = "/data/" + "long/" * 60


@each(
    "text, outcome, reason",
    [
        (LONG, "error", ""),
        (altered(LONG, '"time_based" : "1"', '"time_based" : "0"'), "pass", ""),  # only a bound
        (
            altered(FOUR, r'"jobs" : \[', '"global options" : {"time_based" : ""}, "jobs" : ['),
            "pass",
            "",
        ),
        (OF_ALL, "error", "of 9 s"),
        (
            recording("write_short_file").replace("fio: file creation", "file creation"),
            "error",
            "job write of fio moved no data",
        ),
        (too_short(READ), "error", "too short to be timed"),
        (
            FULL + altered(WRITE, '"rw" : "write"', '"rw" : "write", "fill_device" : "0"'),
            "error",
            "",
        ),
        # lines without a JSON, or with a part of it
        ("fio: engine nosuch not loadable\n", "error", ""),
        (FULL, "error", ""),
        (BAD_CRC, "fail", ""),
        (FLIPPED[:-30], "fail", ""),
        # what lies behind the end of a short file is no fault
        (SHORT_FILE, "error", ""),
        (SHORT_FILE.replace(REFUSED, ""), "fail", ""),
        (f"fio: refusing extend of file /x\n{UNSEEN}{BAD_CRC}", "error", ""),
        # another hindrance does not excuse wrong data, which are quoted before failed I/O
        (UNSEEN + BAD_CRC, "fail", ""),
        (NUMBER.format(5) + NUMBER.format(84), "fail", "err=84/"),
        *(
            (altered(READ, r'"error" : 0', number), "fail", f"job read of fio ended with {name}")
            for number, name in (
                ('"error" : 84', "EILSEQ"),
                ('"error" : 5', "EIO"),
                ('"error" : -5', "EIO"),
                ('"first_error" : 61, "error" : 0', "ENODATA"),
            )
        ),
        (
            f"fio: io_u error on file {DEEP}x: No such device: write offset=4096, buflen=1048576",
            "fail",
            "No such device: write offset=4096, buflen=1048576",
        ),
    ],
)
def test_what_a_text_is_worth(text: str, outcome: str, reason: str) -> None:
    require(fio.parse(text), outcome, reason)


def test_faults_are_counted() -> None:
    why = why_of(fio.parse(recording("disk_gone_in_part")))
    assert re.search(r"Input/output error: .*\(and \d+ more such lines\)$", why)
    assert "more" not in why_of(fio.parse("fio: got pattern 'ff', wanted 'fe'. Bad bits 1\n"))


def test_a_name_with_anything_in_it_is_a_name() -> None:
    name = "/a at file /b offset 7, length 1/ c"
    line = f"crc32c: verify failed at file {name} offset 4096, length 8 (requested block: offset=1)"
    assert fio.wrong_blocks(line) == (fio.WrongBlock(name, 4096, line),)


# --- what was to be moved ---


@each(
    "job, text, reason",
    [
        (JOB, WRITE, None),
        (replace(JOB, kind="verify"), recording("verify"), None),
        (replace(JOB, kind="read"), READ, None),
        (replace(JOB, kind="read", seconds=2), TIMED, None),
        (Job("randwrite", FILE, 64 * MIB, 1, None, 4096, 32, 4), recording("randwrite"), None),
        (
            replace(JOB, bytes=128 * MIB),
            WRITE,
            "fio moved 0.0625 GiB and not the 0.125 GiB of its job",
        ),
        (
            replace(JOB, kind="read"),
            TIMED,
            "fio moved 1.75292969 GiB and not the 0.0625 GiB of its job",
        ),
        (
            replace(JOB, kind="read"),
            FOUR,
            "fio moved 0.50328064 GiB and not the 0.0625 GiB of its job",
        ),
    ],
)
def test_shortfall(job: Job, text: str, reason: str | None) -> None:
    why = fio.shortfall(fio.argv("fio", job), fio.parse(text))
    assert (None if why is None else words.text(why)) == reason


# --- anything ---


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on a disk: older kernels have no direct I/O on the tmpfs of `tmp_path`."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.mark.tools
def test_the_real_one(on_disk: Path) -> None:
    """Written, read back, with one bit flipped, and with another seed; the file stays itself."""
    file = on_disk / ".rigproof/run-1/a:b.bin"
    file.parent.mkdir(parents=True)
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.posix_fallocate(descriptor, 0, 4 * MIB)
    os.close(descriptor)
    binary, before = command.find("fio", "fio"), file.stat().st_ino
    job = Job("write", str(file), 4 * MIB, 7)

    def outcome(job: Job) -> str:
        done = command.run(fio.argv(binary, job), deadline=Deadline.after(60.0))
        output = fio.parse(done.text)
        if output.outcome == "pass":
            assert fio.shortfall(done.argv, output) is None
        return output.outcome

    assert outcome(job) == "pass"
    assert outcome(replace(job, kind="verify")) == "pass"
    assert outcome(replace(job, kind="verify", seed=8)) == "fail"
    assert outcome(Job("randread", str(file), 4 * MIB, 7, 1, 4096, 8, 2)) == "pass"
    data = bytearray(file.read_bytes())
    data[3 * MIB + 5000] ^= 4
    file.write_bytes(data)
    assert outcome(replace(job, kind="verify")) == "fail"
    assert file.stat().st_ino == before
    assert sorted(path.name for path in on_disk.rglob("*") if path.is_file()) == ["a:b.bin"]
