from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import each
from reasons import require, why_of

from acceptance.core.limit import UNITS
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import nvbandwidth

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/nvbandwidth"
TEXT = (RECORDINGS / "h200_x3_v0.8.txt").read_text()
JSON = (RECORDINGS / "h200_x3_v0.8.json.txt").read_text()
H2D = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
D2D = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
BIDIRECTIONAL = "device_to_device_bidirectional_memcpy_read_ce"
PAIRS = {Pair(Gpu(row), Gpu(column)) for row in range(3) for column in range(3) if row != column}
GPUS = {Gpu(0), Gpu(1), Gpu(2)}


def host(*figures: str, name: str = "host_to_device_memcpy_ce", total: str | None = None) -> str:
    """One testcase between host and GPUs, as text."""
    columns = "".join(f"{index:10d}" for index in range(len(figures)))
    text = (
        f"Running {name}.\n{H2D}  {columns}\n 0"
        + "".join(f"{figure:>10}" for figure in figures)
        + "\n\n"
    )
    return text + (f"SUM {name} {total}\n\n" if total else "")


def document(**changes: Any) -> str:
    """One testcase as JSON, with keys of the testcase changed; None leaves a key out."""
    testcase = {
        "name": "host_to_device_memcpy_ce",
        "status": "Passed",
        "bandwidth_description": H2D.strip(),
        "bandwidth_matrix": [["55.3123", "55.4001"]],
        "sum": 110.7124,
    } | changes
    return root(testcases=[{key: value for key, value in testcase.items() if value is not None}])


def root(**keys: Any) -> str:
    return json.dumps({"nvbandwidth": keys}, indent=1)


def test_argv() -> None:
    names = ["host_to_device_memcpy_ce", "device_to_host_memcpy_ce"]
    asked = ("nvb", "-t", *names, "-b", "512", "-i", "3")
    assert nvbandwidth.argv("nvb", testcases=names) == (*asked, "-j")
    assert nvbandwidth.argv("nvb", testcases=names, json=False) == asked
    assert nvbandwidth.argv("nvb", testcases=names[:1], buffer_mib=64, samples=9) == (
        *("nvb", "-t", names[0], "-b", "64", "-i", "9", "-j"),
    )
    assert nvbandwidth.argv("nvb", testcases=names[:1], buffer_mib=1, samples=1)[3:7] == (
        "-b",
        "1",
        "-i",
        "1",
    )


@each(
    "names, buffer, samples",
    [
        ([], 512, 3),
        (["-h"], 512, 3),
        (["a", "-h"], 512, 3),
        (["a b"], 512, 3),
        (["a"], 0, 3),
        (["a"], 1, 0),
    ],
)
def test_argv_refuses(names: list[str], buffer: int, samples: int) -> None:
    with pytest.raises(ValueError, match="nvbandwidth needs"):
        nvbandwidth.argv("nvb", testcases=names, buffer_mib=buffer, samples=samples)


def test_text() -> None:
    output = nvbandwidth.parse(TEXT)
    assert (output.outcome, why_of(output)) == ("pass", "measured 8 matrices")
    assert {reading.unit for reading in output.readings} == {"GB/s", "ns"} <= UNITS
    units = {reading.name: reading.unit for reading in output.readings}
    assert [name for name, unit in units.items() if unit == "ns"] == ["device_to_device_latency_sm"]
    for name in ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_local_copy"):
        assert output.reading(name).keys() == GPUS
    for name in (
        "device_to_device_memcpy_read_ce",
        "device_to_device_latency_sm",
        f"{BIDIRECTIONAL}_read1",
    ):
        assert output.reading(name).keys() == PAIRS
    one, two, both = (
        output.reading(f"{BIDIRECTIONAL}_{part}") for part in ("read1", "read2", "total")
    )
    assert all(abs(one[pair] + two[pair] - both[pair]) <= 0.02 for pair in PAIRS)


def test_json_gives_what_the_text_gives() -> None:
    output = nvbandwidth.parse(JSON)
    assert (output.outcome, why_of(output)) == (
        "pass",
        "measured 6 matrices; waived: all_to_one_write_ce",
    )
    text = nvbandwidth.parse(TEXT)
    for reading in output.readings:
        assert dict(reading.values) == pytest.approx(dict(text.reading(reading.name)), abs=0.006)


def run(*devices: int, name: str, total: str = "50.00") -> str:
    """A whole run of one testcase with figures of two GPUs."""
    shown = "".join(
        f"Device {index}: NVIDIA L40S (00000000:{index + 1:02x}:00)\n" for index in devices
    )
    return f"nvbandwidth Version: v0.6\n\n{shown}\n" + host(
        "20.00", "30.00", name=name, total=total
    )


def test_several_runs_of_one_machine() -> None:
    one = run(0, 1, name="host_to_device_memcpy_ce")
    output = nvbandwidth.parse(one + run(0, 1, name="device_to_host_memcpy_ce"))
    assert (output.outcome, why_of(output)) == ("pass", "measured 2 matrices")
    for other in ((0,), (1,), (0, 2), (0, 1, 2), (0, 1, 0, 1)):
        output = nvbandwidth.parse(one + run(*other, name="device_to_host_memcpy_ce"))
        require(output, "error", "or another run has another")
    with pytest.raises(UnreadableOutput, match="comes twice"):
        nvbandwidth.parse(one + one)


def across(*processes: int) -> str:
    shown = "".join(
        f"Process {rank} (node-{rank // 2}): device {rank % 2}: NVIDIA GB200\n"
        for rank in processes
    )
    pairs = "multinode_device_to_device_memcpy_write_ce"
    totals = "multinode_device_to_device_all_to_one_write_sm"
    return (
        f"nvbandwidth Version: v0.7\nMPI version: Open MPI v4.1.4\n{shown}\nRunning {pairs}.\n{D2D}"
        "           0         1         2\n 0       N/A    798.00    797.00\n 1    798.00       "
        "N/A    797.50\n"
        f" 2    797.00    798.50       N/A\n\nSUM {pairs} 4786.00\n\nRunning {totals}.\n"
        "memcpy SM All Gpus -> GPU(column) total bandwidth (GB/s)\n           0         1         "
        "2\n"
        f" 0    800.00    801.00    802.00\n\nSUM {totals} 2403.00\n"
    )


def test_across_machines_rows_and_columns_are_processes() -> None:
    output = nvbandwidth.parse(across(0, 1, 2))
    assert (output.outcome, why_of(output)) == ("pass", "measured 2 matrices")
    assert output.reading("multinode_device_to_device_memcpy_write_ce").keys() == PAIRS
    assert output.reading("multinode_device_to_device_all_to_one_write_sm").keys() == GPUS
    for lost in ((0, 1), (1, 2), (0, 2)):
        assert nvbandwidth.parse(across(*lost)).outcome == "error"
    row = " 1    798.00       N/A    797.50\n"
    with pytest.raises(UnreadableOutput, match="row 1 of 3 figures"):
        nvbandwidth.parse(across(0, 1, 2).replace(row, ""))


@each("kind, said", [("read", "Read"), ("write", "Write"), ("write", "Read")])
def test_parts_without_sums(kind: str, said: str) -> None:
    testcase = f"device_to_device_bidirectional_memcpy_{kind}_ce"
    table = "           0         1\n 0       N/A     10.00\n 1     10.00       N/A\n\n"
    words = (f"{said}1", f"{said}2", "Total")
    heads = [f"memcpy CE CPU(row) <-> GPU(column) {word} bandwidth (GB/s)\n" for word in words]
    output = nvbandwidth.parse(f"Running {testcase}.\n" + "".join(head + table for head in heads))
    assert [one.name for one in output.readings] == [
        f"{testcase}_{part}" for part in (f"{kind}1", f"{kind}2", "total")
    ]
    cut = nvbandwidth.parse(f"Running {testcase}.\n" + "".join(head + table for head in heads[:2]))
    require(cut, "error", "gives three matrices")


WEATHER: list[Callable[[str], str]] = [
    lambda text: "user@host:~$ ./nvbandwidth -t 0\nmake: *** [x] Error 2\n" + text,
    lambda text: "".join(line.lstrip(" ") for line in text.splitlines(True)),
    lambda text: text.replace("Running", "> Running"),
    lambda text: text.replace("\n", "\n\n"),
    lambda text: text.replace("        ", "\t"),
    lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("SUM ")),
    lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("Running ")),
    lambda text: "".join(
        line
        for line in text.splitlines(True)
        if line[:8] not in ("Device 0", "Device 1", "Device 2")
    ),
    lambda text: text.replace(
        "\nRunning", "COEFFICIENT_OF_VARIATION x 0.01\nMIN x 0.00\n&&&& PERF x 1.0 +GB/s\n\nRunning"
    ),
]


@each("weather", WEATHER)
def test_weather(weather: Callable[[str], str]) -> None:
    assert nvbandwidth.parse(weather(TEXT)) == nvbandwidth.parse(TEXT)


PAIR = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))
OLDER = (  # no version, no devices, no sums; a diagonal of 0.00 is what N/A is today
    f"Running device_to_device_memcpy_write_ce.\n{D2D}          0         1\n"
    "0      0.00    276.07\n1    276.36      0.00\n" + host("6.20", "12.36")
)
HOST_NAME = "host_to_device_memcpy_ce"
WAYS = [["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"], ["N/A", "4"], ["6", "N/A"]]
WRITES = BIDIRECTIONAL.replace("read", "write")
BOTH = "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)"
ONE_ROW = host("N/A", "43.10", name="one_to_all_write_ce", total="43.10")


@each(
    "text, name, values",
    [
        (OLDER, "device_to_device_memcpy_write_ce", dict(zip(PAIR, (276.07, 276.36), strict=True))),
        (OLDER, HOST_NAME, {Gpu(0): 6.20, Gpu(1): 12.36}),
        (
            host("6.20", "12.36").replace("Running ", "Running benchmark "),
            HOST_NAME,
            {Gpu(0): 6.20, Gpu(1): 12.36},
        ),
        (ONE_ROW.replace("CPU(row)", "GPU(row)"), "one_to_all_write_ce", {Gpu(1): 43.10}),
        (  # figures may be numbers
            document(bandwidth_matrix=[[55.3123, 55]], sum=110.3123),
            HOST_NAME,
            {Gpu(0): 55.3123, Gpu(1): 55.0},
        ),
        *(
            (
                document(name=WRITES, bandwidth_matrix=WAYS, sum=10),
                f"{WRITES}_{part}",
                dict(zip(PAIR, values, strict=True)),
            )
            for part, values in (("write2", (3.0, 4.0)), ("total", (4.0, 6.0)))
        ),
        *(
            (
                document(
                    name=BIDIRECTIONAL,
                    bandwidth_description=BOTH.replace(" Total", said) + " ",
                    bandwidth_matrix=[["N/A", "740.1"], ["741.2", "N/A"]],
                    sum=1481.3,
                ),
                f"{BIDIRECTIONAL}{part}",
                dict(zip(PAIR, (740.1, 741.2), strict=True)),
            )
            for said, part in (("", ""), (" Total", "_total"), (" Read1", "_read1"))
        ),
    ],
)
def test_readings(text: str, name: str, values: dict[Component, float]) -> None:
    output = nvbandwidth.parse(text)
    require(output, "pass")
    assert output.reading(name) == values


GOOD = host("55.31", "55.40", total="110.71")
LATENCY = "memory latency SM CPU(row) <-> GPU(column) (ns)\n"


@each(
    "text, reason",
    [
        (
            host("55.31", "0.00"),
            "host_to_device_memcpy_ce of gpu1 is 0.00: nothing was copied there",
        ),
        (host("55.31", "-1.00"), "host_to_device_memcpy_ce of gpu1 is -1.00"),
        (host("N/A", "N/A"), "host_to_device_memcpy_ce gave no figure"),
        (host("55.31", "55.40", total="111.71"), "a figure was changed"),
        ("Device 0: NVIDIA L4\n" + GOOD, "has 2 columns and the output lists 1 devices"),
        ("Device 0: NVIDIA L4\nDevice 2: NVIDIA L4\n" + GOOD, "is not numbered from 0"),
        (
            GOOD.replace(" 0     55.31", " 0     55.31     55.40\n 1     55.31"),
            "has 2 rows of 2 figures where 1 belong",
        ),
        (
            TEXT.replace("device_to_device_memcpy", "all_to_one"),
            "has 3 rows of 3 figures where 1 belong",
        ),
        (
            GOOD + "Running device_to_host_memcpy_ce.\n",
            "device_to_host_memcpy_ce was started and gave no result",
        ),
        (GOOD + "Running device_to_h", "device_to_h was started and gave no result"),
        (GOOD + "ERROR: Testcase x not found!\n", "could not run: 'ERROR: Testcase x not found!'"),
        (GOOD + "Running x.\nError: something\n", "could not run: 'Error: something'"),
        ("nvbandwidth Version: v0.8\nERROR: Invalid Arguments\nnvb -q\n", "Invalid Arguments"),
        ("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n", "no testcase was run"),
        ("Waived: \nWaived: \n", "every testcase was waived"),
        (
            GOOD
            + (
                "[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access was encountered in "
                "expression x"
            ),
            "it died",
        ),
        (GOOD + "NVML_ERROR: [Unknown Error] in expression nvmlInit()", "it died"),
        (
            "ASSERT in expression 0 == gethostname(localHostname, STRING_LENGTH - 1) in main()",
            "it died",
        ),
        ("bash: nvbandwidth: command not found", "it did not start"),
        (root(testcases=[]), "no testcase was run"),
        (root(testcases=None), "no testcase was run"),
        (root(version="v0.8"), "no testcase was run"),
        (
            root(error="Specified list of testcase prefixes did not match any testcases"),
            "did not match",
        ),
        (document(status="Error"), "host_to_device_memcpy_ce could not run: 'Error'"),
        (
            document(status="ERROR", error="Testcase not found!"),
            "could not run: 'ERROR: Testcase not found!'",
        ),
        *((document(status="Error", error=error), "could not run: 'Error'") for error in ("", 5)),
        *(
            (TEXT.replace(old, "9" + old, 1), "a figure was changed")
            for old in ("55.34", "392.06", "371.2", "821.20")
        ),
        (
            re.sub(r"SUM device_to_host_memcpy_ce.*\n", "", TEXT),
            "'SUM device_to_host_memcpy_ce' is missing",
        ),
        *(  # each cell may be half of 0.01 off, and of six digits the last may be rounded
            (document(bandwidth_matrix=[cells], sum=total), "a figure was changed")
            for cells, total in (((["0.01"] * 2), 0.0), (["12345.6"] * 2, 24691.4))
        ),
        (document(error="odd"), "could not run: 'Passed: odd'"),
        (document(status="Not Found"), "could not run: 'Not Found'"),
        (document(status=""), "could not run: 'no status'"),
        (document(status="Running"), "was started and gave no result"),
        (document(status="Running", error="odd"), "could not run: 'Running: odd'"),
        (document(status="Waived"), "every testcase was waived"),
        (document(sum=111.7), "a figure was changed"),
        (document(bandwidth_matrix=[["55.3123", 0]], sum=55.3123), "of gpu1 is 0.00"),
        (
            document(bandwidth_matrix=[["55.3123", "N/A"], ["N/A", "55.4001"]]),
            "2 rows of 2 figures where 1 belong",
        ),
        (
            JSON.replace('"2: NVIDIA H200 (00000000:3a:00): (node17)"', '"2: x", "3: x"'),
            "lists 4 devices",
        ),
        (
            root(
                error=(
                    "[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected in expression "
                    "cuInit(0)"
                )
            ),
            "it died",
        ),
    ],
)
def test_worthless(text: str, reason: str) -> None:
    require(nvbandwidth.parse(text), "error", reason)


def both_ways(way: str, total: str, whole: float) -> str:
    """Both directions, each with this figure, and their total."""
    one, both = [["N/A", way], [way, "N/A"]], [["N/A", total], [total, "N/A"]]
    return document(
        name=BIDIRECTIONAL, bandwidth_description=BOTH, bandwidth_matrix=one * 2 + both, sum=whole
    )


@each(
    "text",
    [
        document(bandwidth_matrix=[["0.01", "0.01"]], sum=0.01),
        document(bandwidth_matrix=[["12345.6", "12345.6"]], sum=24691.3),
        both_ways("0.01", "0.005", 0.01),
        both_ways("12345.6", "24691.3", 49382.6),
    ],
)
def test_a_sum_and_a_total_may_differ_by_what_was_rounded(text: str) -> None:
    require(nvbandwidth.parse(text), "pass")


@each(
    "text, why",
    [
        (JSON + TEXT, "2 outputs"),
        (TEXT + JSON, "2 outputs"),
        (document().replace('"status"', '"spare": NaN, "status"'), "a figure is no number"),
        (
            document(bandwidth_matrix=[["55.3123", "5_5"]], sum=110.3123),
            "a cell of host_to_device_memcpy_ce is no figure",
        ),
    ],
)
def test_why_a_text_is_unreadable(text: str, why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        nvbandwidth.parse(text)


def test_what_can_be_read_beside_an_error_stays() -> None:
    output = nvbandwidth.parse(
        "Device 0: NVIDIA L4\n" + GOOD + "Waived:\n" + host("0.00", name="host_to_all_memcpy_ce")
    )
    assert output.outcome == "error"
    assert why_of(output).endswith("; waived: 1 that the text does not name")
    assert [reading.name for reading in output.readings] == ["host_to_device_memcpy_ce"]


@each(
    "line",
    [
        " Invalid value when checking the pattern at 0x70a640000000",
        "ASSERT in expression h_errorFlag == 0 in void memcmpPatternHelper() : memcpy.cpp:165",
        "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable ECC error encountered in expression x",
    ],
)
def test_a_fault_is_a_fail_wherever_it_stands(line: str) -> None:
    for text in (
        line,
        TEXT + line,
        f"{line}\n{TEXT}",
        f"{line}\n{JSON}",
        JSON[:700] + f"\n{line}\n",
    ):
        require(nvbandwidth.parse(text), "fail", line.strip())


@each(
    "text",
    [
        "",
        "hello",
        TEXT + TEXT,
        GOOD + GOOD,
        GOOD.partition("SUM")[0] + GOOD.partition("Running host_to_device_memcpy_ce.\n")[2],
        "Running a.\nRunning a.\n",
        H2D,
        H2D + " 0     55.31\n",
        H2D + "           0\n",
        H2D + "           0\n 0     55.31\n",
        host("55.3"),
        host("nan"),
        host("9" * 400 + ".00"),
        GOOD.replace("         0         1\n", "         1         2\n"),
        GOOD.replace("55.40\n", "55.40     55.41\n"),
        GOOD.replace("55.40\n", "55.40\n 0     55.31     55.40\n"),
        GOOD + " 0     55.31     55.40\n",
        GOOD + "SUM host_to_device_memcpy_ce 110.71\n",
        GOOD.replace("110.71", "110.7"),
        GOOD.replace("SUM host_to_device_memcpy_ce", "SUM device_to_host_memcpy_ce"),
        GOOD.replace("(GB/s)", "(MB/s)"),
        GOOD.replace(H2D, LATENCY),
        GOOD.replace("host_to_device_memcpy_ce", "host_device_latency_sm"),
        JSON + JSON,
        JSON.replace('"2: NVIDIA H200', '"3: NVIDIA H200'),
        JSON.replace('"2: NVIDIA H200', '"H200'),
        document(name=None),
        document(name=3),
        document(status=None),
        document(bandwidth_description=None),
        document(bandwidth_description="no unit"),
        document(bandwidth_matrix=None),
        document(bandwidth_matrix=[]),
        document(bandwidth_matrix=[[], []]),
        document(bandwidth_matrix=[["1.5", "1.5"], ["1.5"]]),
        document(bandwidth_matrix=["55.3", "55.4"]),
        document(bandwidth_matrix=[["55.3123", "nan"]]),
        document(bandwidth_matrix=[["55.3123", True]]),
        document(bandwidth_matrix=[["55.3123", None]]),
        document(bandwidth_matrix=[["55.3123", 10**400]]),
        document(sum=None),
        document(sum="N/A"),
        document(sum=float("nan")),
        document().replace("110.7124", "1e999"),
        document().replace('"sum": 110.7124', '"sum": 110.7124, "sum": 110.7124'),
        document().replace('"status"', '"name"'),
        root(testcases=["Passed"]),
        root(testcases={}),
        root(**{"GPU Device list": "0: NVIDIA H200"}),
        '{"nvbandwidth": []}',
        '{"nvbandwidth": {"testcases": ' + "[" * 100_000,
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        nvbandwidth.parse(text)


@each("place", range(6))
def test_in_json_both_directions_add_up_to_the_total_cell_by_cell(place: int) -> None:
    rows = [
        ["N/A", "371.2"],
        ["369.2", "N/A"],
        ["N/A", "370.4"],
        ["373.1", "N/A"],
        ["N/A", "741.6"],
        ["742.3", "N/A"],
    ]

    def text() -> str:
        return document(
            name=BIDIRECTIONAL, bandwidth_description=BOTH, bandwidth_matrix=rows, sum=1483.9
        )

    require(nvbandwidth.parse(text()), "pass")
    for other in ("1.0", "N/A"):
        rows[place][1 - place % 2] = other
        with pytest.raises(UnreadableOutput):
            nvbandwidth.parse(text())


def extremes(**figures: object) -> str:
    whole = json.loads(JSON[JSON.index("{") : JSON.index("\ndone {")])
    whole["nvbandwidth"]["testcases"][0] |= figures
    return json.dumps(whole)


def test_extremes_of_its_own_cells() -> None:
    rows = json.loads(extremes())["nvbandwidth"]["testcases"][0]["bandwidth_matrix"]
    cells = [float(one) for row in rows for one in row if one != "N/A"]
    good = {"min": min(cells), "max": max(cells), "average": sum(cells) / len(cells)}
    require(nvbandwidth.parse(extremes(**good)), "pass")
    for key in good:
        with pytest.raises(UnreadableOutput, match=rf"says {key} .* and its figures make"):
            nvbandwidth.parse(extremes(**{**good, key: good[key] * 1.5}))
    nothing = extremes(**good, bandwidth_matrix=[["N/A" for _ in row] for row in rows], sum=0)
    require(nvbandwidth.parse(nothing), "error")
