from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from reasons import require

from acceptance.core.limit import UNITS
from acceptance.core.parts import Gpu, Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import p2p_bandwidth
from acceptance.tools.reading import ToolOutput

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/p2pBandwidthLatencyTest"
FOUR = (RECORDINGS / "l40s_x4_peers_inside_a_socket.txt").read_text()
OLD = (RECORDINGS / "titan_x2_old_without_cpu_tables.txt").read_text()
READS = (RECORDINGS / "l40s_x2_p2p_read.txt").read_text()
ONE = (RECORDINGS / "h200_x1.txt").read_text()
ENABLED = "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
PAIRS = {Pair(Gpu(row), Gpu(column)) for row in range(4) for column in range(4) if row != column}

# The builders' figures of 2 x RTX 4090, no peer access. Row by row.
BOX_B = {
    "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)": ("D\\D", (911.08, 21.89, 22.46, 920.74)),
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)": (
        "D\\D",
        (913.21, 22.43, 22.50, 922.92),
    ),
    "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)": ("D\\D", (917.94, 31.30, 31.36, 923.43)),
    "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)": ("D\\D", (918.58, 31.35, 31.35, 923.10)),
}


def box_b() -> str:
    text = (
        "Device: 0, NVIDIA GeForce RTX 4090, pciBusID: 1\nDevice: 1, NVIDIA GeForce RTX 4090, "
        "pciBusID: 41\n"
    )
    text += (
        "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     0\n     1\t     "
        "0    "
        " 1\n"
    )
    for heading, (label, (a, b, c, d)) in BOX_B.items():
        text += (
            f"{heading}\n   {label}     0      1 \n     0 {a:6.2f} {b:6.2f} \n     1 {c:6.2f} "
            f"{d:6.2f} \n"
        )
    return text


PAIR = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))


@each(
    "name, values",
    [
        ("connectivity", (0, 0)),
        ("off", (21.89, 22.46)),
        ("on", (22.43, 22.50)),
        ("on_bidirectional", (31.35, 31.35)),
    ],
)
def test_box_b(name: str, values: tuple[float, float]) -> None:
    output = p2p_bandwidth.parse(box_b())
    require(output, "pass", "2 devices, peer access in 0 of 2 ordered pairs; no data was compared")
    assert output.reading(f"p2p_{name}") == dict(zip(PAIR, values, strict=True))
    assert output.reading("p2p_local") == {Gpu(0): 911.08, Gpu(1): 920.74}
    gains = (22.43 / 21.89, 22.50 / 22.46)
    assert p2p_bandwidth.gain(output) == pytest.approx(dict(zip(PAIR, gains, strict=True)))


def test_readings_of_four() -> None:
    output = p2p_bandwidth.parse(FOUR)
    assert {reading.unit for reading in output.readings} == {"count", "GB/s", "us"} <= UNITS
    for name in (
        "p2p_off",
        "p2p_on",
        "p2p_off_bidirectional",
        "p2p_on_bidirectional",
        "p2p_connectivity",
    ):
        assert output.reading(name).keys() == PAIRS
    for name in ("p2p_latency_off", "p2p_latency_on", "p2p_cpu_latency_off", "p2p_cpu_latency_on"):
        assert output.reading(name).keys() == PAIRS
        assert output.reading(f"{name}_local").keys() == {Gpu(0), Gpu(1), Gpu(2), Gpu(3)}
    gain = p2p_bandwidth.gain(output)
    assert gain.keys() == PAIRS
    assert gain[Pair(Gpu(0), Gpu(1))] > 1.3 > 1.1 > gain[Pair(Gpu(0), Gpu(2))]


def test_reads_are_readings_of_their_own() -> None:
    output = p2p_bandwidth.parse(READS)
    for name in ("p2p_on", "p2p_latency_on", "p2p_cpu_latency_on"):
        assert output.reading(f"{name}_read").keys() == output.reading(name).keys()
        assert output.reading(f"{name}_read") != output.reading(name)


def test_an_old_version_has_no_cpu_tables() -> None:
    output = p2p_bandwidth.parse(OLD)
    assert output.outcome == "pass"
    assert "p2p_latency_on" in {reading.name for reading in output.readings}
    with pytest.raises(KeyError):
        output.reading("p2p_cpu_latency_on")


PAIR_LINES = "".join(
    f"Device={row} {'CAN' if {row, column} == {0, 1} else 'CANNOT'} Access Peer Device={column}\n"
    for row in range(3)
    for column in range(3)
    if row != column
)


def grouped(pairs: str = PAIR_LINES, groups: str = "[0 1]\n[2]\n") -> str:
    """Three GPUs as the samples before CUDA 8 print them."""
    text = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
    text += "".join(f"Device: {index}, Tesla K40m, pciBusID: {index + 5}\n" for index in range(3))
    text += f"{pairs}\nP2P Cliques: \n{groups}"
    heads = [
        f"{way} P2P={p2p} Bandwidth"
        for way in ("Unidirectional", "Bidirectional")
        for p2p in ("Disabled", "Enabled")
    ]
    for unit, head in [
        *(("GB/s", head) for head in heads),
        ("us", "P2P=Disabled Latency"),
        ("us", "P2P=Enabled Latency"),
    ]:
        text += f"{head} Matrix ({unit})\n   D\\D     0      1      2 \n"
        text += "".join(f"     {row}   9.87  10.12  11.30 \n" for row in range(3))
    return text


def test_groups_of_gpus_instead_of_a_connectivity_matrix() -> None:
    output = p2p_bandwidth.parse(grouped())
    require(output, "pass", "3 devices, peer access in 2 of 6 ordered pairs; no data was compared")
    assert {pair for pair, can in output.reading("p2p_connectivity").items() if can} == {
        Pair(Gpu(0), Gpu(1)),
        Pair(Gpu(1), Gpu(0)),
    }
    assert output.reading("p2p_on")[Pair(Gpu(2), Gpu(0))] == 9.87
    without = p2p_bandwidth.parse(grouped(pairs=""))
    require(without, "pass", "3 devices, in 2 groups; no data was compared")
    assert without.readings == tuple(
        one for one in output.readings if one.name != "p2p_connectivity"
    )


@each(
    "text",
    [
        grouped(groups="[0 1]\n"),
        grouped(groups="[2]\n"),
        grouped(groups=""),
        grouped(pairs="", groups="[0 1]\n"),
        grouped(pairs="", groups="[1 2]\n"),
        grouped(pairs="", groups=""),
        grouped(pairs="".join(PAIR_LINES.splitlines(True)[1:])),
        grouped(pairs=PAIR_LINES + "Device=3 CAN Access Peer Device=0\n"),
        grouped().replace("P2P Cliques: \n", ""),
        grouped(pairs="").replace("P2P Cliques: \n", ""),
    ],
)
def test_groups_with_a_line_lost_or_added(text: str) -> None:
    assert p2p_bandwidth.parse(text).outcome == "error"


def test_one_gpu_has_no_pairs() -> None:
    output = p2p_bandwidth.parse(ONE)
    require(output, "pass", "1 devices, peer access in 0 of 0")
    assert output.reading("p2p_local").keys() == {Gpu(0)}
    assert all(reading.name.endswith("_local") for reading in output.readings)
    assert p2p_bandwidth.gain(output) == {}


def test_gain_of_nothing() -> None:
    with pytest.raises(ValueError, match="measured nothing"):
        p2p_bandwidth.gain(ToolOutput(p2p_bandwidth.TOOL, "error", "it died"))


WEATHER: list[Callable[[str], str]] = [
    lambda text: "user@host:~$ ./p2pBandwidthLatencyTest\n" + text + "user@host:~$ \n",
    lambda text: "bash: p2pBandwidthLatencyTest: command not found\n" + text,
    lambda text: text.replace("D\\D", "D\\\\D"),
    lambda text: text.replace(" \n", "\n").replace("\t", "  "),
    lambda text: "```\n" + text + "```\n",
    lambda text: "\n".join(
        "> " + line if line.startswith("Uni") else line for line in text.splitlines()
    ),
    lambda text: text.replace("\n", "\n\n"),
    lambda text: "".join(
        line for line in text.splitlines(True) if "Access" not in line and "NOTE" not in line
    ),
    lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("Device: ")),
]


@each("weather", WEATHER)
def test_weather(weather: Callable[[str], str]) -> None:
    assert p2p_bandwidth.parse(weather(FOUR)) == p2p_bandwidth.parse(FOUR)


def cell(text: str, heading: str, value: str) -> str:
    """The text with the first figure of row 1 below the heading replaced."""
    before, after = text.split(heading, 1)
    rows = after.split("\n")
    figures = rows[2].split()
    rows[2] = " ".join([figures[0], value, *figures[2:]])
    return before + heading + "\n".join(rows)


@each(
    "text, reason",
    [
        (cell(FOUR, ENABLED, "0.00"), "p2p_on of gpu1->gpu0 is 0.00"),
        (cell(FOUR, ENABLED, "-1.00"), "p2p_on of gpu1->gpu0 is -1.00"),
        (cell(FOUR, ENABLED, "nan"), "p2p_on of gpu1->gpu0 is nan"),
        (cell(FOUR, ENABLED, "inf"), "p2p_on of gpu1->gpu0 is inf"),
        (cell(FOUR, ENABLED, "9" * 400 + ".00"), "p2p_on of gpu1->gpu0 is inf"),
        (
            cell(FOUR, "P2P=Disabled Latency Matrix (us)\n", "0.00"),
            "p2p_latency_off of gpu1->gpu0 is 0.00",
        ),
        (FOUR.replace("CANNOT", "CAN", 1), "gainsays the connectivity matrix"),
        (FOUR.replace("Device=3 CAN ", "Device=4 CAN "), "gainsays the connectivity matrix"),
        (FOUR.replace("Peer Device=3\n", "Peer Device=4\n", 1), "gainsays the connectivity matrix"),
        (box_b().replace("911.08", "  0.00"), "p2p_off of gpu0 is 0.00"),
        (FOUR.replace("Device=3 CAN ", "Device=7 CAN "), "gainsays the connectivity matrix"),
        (FOUR.replace("Device: 3,", "Device: 4,"), "it lists 4 devices and a matrix of 4"),
        (
            "".join(line for line in FOUR.splitlines(True) if not line.startswith("Device: 2")),
            "it lists 3 devices",
        ),
        (
            "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n",
            "the matrix of p2p_connectivity is missing",
        ),
        (
            FOUR.partition("P2P=Disabled Latency")[0] + "P2P=Disabled Latency Matrix (us)\n",
            "of p2p_latency_off is missing",
        ),
        (FOUR.partition("P2P=Enabled Latency")[0], "of p2p_latency_on is missing"),
        (FOUR.rpartition("   CPU")[0], "of p2p_cpu_latency_on is missing"),
        (FOUR + "Cuda failure x.cu:1: 'unspecified launch failure'\n", "it died: 'Cuda failure"),
        (
            "./p2p: error while loading shared libraries: libcudart.so.12: cannot open",
            "it did not start",
        ),
        (READS[: READS.rindex("P2P=Enabled Latency (P2P Reads)")], "p2p_latency_on_read"),
        (READS[: READS.rindex("   CPU")], "p2p_cpu_latency_on_read"),
        (
            box_b().partition("Bidirectional P2P=Enabled")[0]
            + "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0 \n     0 918.58 \n",
            "p2p_on_bidirectional holds 1 GPUs and p2p_connectivity 2",
        ),
        (">>> one or more GPUs not found\n", "it did not start"),
        ("Two or more GPUs with P2P are needed, test waived\n", "it did not start"),
    ],
)
def test_worthless(text: str, reason: str) -> None:
    output = p2p_bandwidth.parse(text)
    require(output, "error", reason)
    assert output.readings == ()


@each(
    "text",
    [
        "",
        "hello",
        FOUR + FOUR,
        FOUR + "Device: 0, NVIDIA L40S, pciBusID: 17\n",
        FOUR.replace("(GB/s)\n", "(MB/s)\n"),
        FOUR.replace("P2P=Disabled Bandwidth Matrix", "P2P=Disabled Bandwidth (P2P Writes) Matrix"),
        FOUR.replace("P2P Connectivity Matrix", "P2P Connectivity"),
        FOUR.replace(ENABLED, ""),
        FOUR.replace("P2P=Disabled Latency Matrix (us)\n", ""),
        FOUR.replace("   CPU     0", "   CPU     1"),
        FOUR.replace("   GPU     0", "   XPU     0"),
        cell(FOUR, ENABLED, "26.2"),
        cell(FOUR, ENABLED, ""),
        cell(FOUR, ENABLED, "26.25 26.25"),
        cell(FOUR, ENABLED, "x"),
        cell(FOUR, "P2P Connectivity Matrix\n", "2"),
        FOUR.replace("     3\t     0     0     1     1", "     3\t     0     0     1     0"),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        p2p_bandwidth.parse(text)


@each(
    "text",
    [
        box_b().replace("P2P Connectivity Matrix\n", ""),
        box_b().replace("D\\D     0      1", "GPU     0      1"),
        box_b().replace("D\\D     0      1", "CPU     0      1"),
    ],
)
def test_a_table_without_its_heading_is_told(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="a table without its heading"):
        p2p_bandwidth.parse(text)


@pytest.mark.timeout(60)
def test_a_group_of_ten_thousand_is_not_written_out() -> None:
    text = (
        "P2P Cliques:\n["
        + " ".join(map(str, range(10_000)))
        + "]\nDevice=0 CAN Access Peer Device=1\n"
    )
    assert p2p_bandwidth.parse("Device: 0, x\n" + text).outcome == "error"
