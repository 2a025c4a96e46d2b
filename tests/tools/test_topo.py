from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import pytest
from cases import each
from reasons import require, why_of

from acceptance.core.parts import Gpu, Pair
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import topo

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
EIGHT = (RECORDINGS / "topo-m/eight_gpus_four_nics_570.txt").read_text()
OLD = (RECORDINGS / "topo-m/four_gpus_old_words_352.txt").read_text()
EMPTY = (RECORDINGS / "topo-m/hypervisor_empty_cells_550.txt").read_text()
ISLANDS = (RECORDINGS / "topo-p2p/four_gpus_two_islands_550.txt").read_text()
REFUSED = (RECORDINGS / "topo-p2p/two_gpus_not_supported_570.txt").read_text()
BRIDGED = (
    "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tNODE\t0-31,64-95\t0\n"
    "GPU1\tNV4\t X \tNODE\t0-31,64-95\t0\n"
    "GPU2\tNODE\tNODE\t X \t0-31,64-95\t0\n"
)
ALONE = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t0\t\t1\n"


def matrix(text: str) -> topo.MatrixTable:
    (found,) = topo.read_tables(topo.TOOL, text)
    return found


def test_matrix() -> None:
    found = matrix(EIGHT)
    assert found.names == (*(f"GPU{i}" for i in range(8)), *(f"NIC{i}" for i in range(4)))
    assert found.gpus() == {f"gpu{i}": f"GPU{i}" for i in range(8)}
    assert found.cells["GPU0", "GPU0"] == "X"
    assert (found.cells["GPU0", "GPU7"], found.cells["NIC0", "GPU1"]) == ("NV18", "PXB")
    assert found.pairs()["gpu0", "gpu7"] == "NV18"
    assert len(found.pairs()) == 8 * 7
    assert found.affinity["GPU7"] == {
        "CPU Affinity": "48-95,144-191",
        "NUMA Affinity": "1",
        "GPU NUMA ID": None,
    }


def test_old_words() -> None:
    found = matrix(OLD)
    assert found.cells["GPU0", "mlx5_0"] == "SOC"
    assert found.affinity["GPU3"] == {"CPU Affinity": "8-15"}
    output = topo.parse(OLD)
    assert output.reading("topo_path_rank")[Pair(Gpu(0), Gpu(3))] == 5
    with pytest.raises(KeyError):
        output.reading("topo_nvlinks")


def test_nvlinks_of_bridged_pairs() -> None:
    output = topo.parse(BRIDGED)
    links = output.reading("topo_nvlinks")
    assert (
        links[Pair(Gpu(0), Gpu(1))],
        links[Pair(Gpu(1), Gpu(0))],
        links[Pair(Gpu(0), Gpu(2))],
        len(links),
    ) == (
        4,
        4,
        0,
        6,
    )
    ranks = output.reading("topo_path_rank")
    assert (ranks[Pair(Gpu(0), Gpu(1))], ranks[Pair(Gpu(2), Gpu(1))]) == (0, 4)


FIVE = [f"GPU{number}" for number in range(5)]
NAMED = "\tGPU0\tIB0\tCPU Affinity\nGPU0\t X \tSYS\t0-7\nIB0\tSYS\t X \n"
NICS = ["GPU0", *(f"mlx5_{i}" for i in range(5))]
SWITCHED = "GPU0 NVSwitch0 CPU Affinity\nGPU0 X NV6 0-7\nNVSwitch0 {} X\n"


def square(names: list[str], near: Set[str] = frozenset()) -> str:
    """A matrix of these, of which two are near."""
    rows = [
        " ".join(
            [
                a,
                *("X" if a == b else "NV4" if {a, b} == near else "SYS" for b in names),
                "0-7" * (a[:3] == "GPU"),
            ]
        )
        for a in names
    ]
    return "\n".join([" ".join([*names, "CPU Affinity"]), *rows])


@each(
    "text, reason",
    [
        (
            BRIDGED,
            "3 GPUs: gpu0-gpu1 NV4, gpu0-gpu2 gpu1-gpu2 NODE; gpu2 has no NVLink and all others "
            "do: no fault where it has no bridge",
        ),
        (EIGHT, "8 GPUs: 28 pairs, all NV18; 4 NICs: nic0 nic1 nic2 nic3"),
        (
            OLD,
            (
                "4 GPUs: gpu0-gpu1 gpu2-gpu3 PIX, gpu0-gpu2 gpu0-gpu3 gpu1-gpu2 gpu1-gpu3 SOC; 1 "
                "NIC: mlx5_0"
            ),
        ),
        (ALONE, "1 GPU: no pair"),
        (REFUSED, "2 GPUs: OK for 0 of 2 directions, NS (not supported) for 2 (gpu0->gpu1 ...)"),
        (
            ISLANDS,
            "4 GPUs: OK for 4 of 12 directions, CNS (chipset not supported) for 8 (gpu0->gpu2 ...)",
        ),
        (" \tGPU0\t\n GPU0\tX\t\n", "1 GPU: no pair"),
        (square(NICS), "1 GPU: no pair; 5 NICs"),
        *((SWITCHED.format(path), "1 GPU: no pair") for path in ("NV6", "NV4")),
        (NAMED, "1 GPU: no pair; 1 NIC: IB0"),
        (square(FIVE, {"GPU0", "GPU1"}), "5 GPUs: gpu0-gpu1 NV4, 9 pairs SYS"),
        (REFUSED.replace("NS", "OK"), "2 GPUs: OK for 2 of 2 directions"),
        (
            REFUSED.replace("NS", "OK", 1),
            "2 GPUs: OK for 1 of 2 directions, NS (not supported) for 1 (gpu1->gpu0)",
        ),
    ],
)
def test_reason(text: str, reason: str) -> None:
    assert (topo.parse(text).outcome, why_of(topo.parse(text))) == ("pass", reason)


@each(
    "row, cpu, numa, memory",
    [
        ("GPU0\t X \t0-71\t0\t\t1", "0-71", "0", "1"),
        ("GPU0 X 0-23, 48-71 0 N/A", "0-23,48-71", "0", None),
        ("GPU0\t X \t\t\t\tN/A", None, None, None),
        ("GPU0\t X \t0-71\t\t\tN/A", "0-71", None, None),
        ("GPU0\t X \t\t0\t\tN/A", None, "0", None),
        ("GPU0     X                                N/A", None, None, None),
        ("GPU0\t X", None, None, None),
    ],
)
def test_affinities(row: str, cpu: str | None, numa: str | None, memory: str | None) -> None:
    found = matrix("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" + row).affinity["GPU0"]
    headings = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
    assert tuple(map(found.get, headings)) == (cpu, numa, memory)


def test_gpus_without_cpus_beside_gpus_with_some() -> None:
    head = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    found = matrix(head + "GPU0\t X \tNV18\t\t0\t\tN/A\nGPU1\tNV18\t X \t1,3\t1\t\tN/A\n")
    first, second = found.affinity["GPU0"], found.affinity["GPU1"]
    assert (first.get("CPU Affinity"), second["CPU Affinity"]) == (None, "1,3")
    assert (first["NUMA Affinity"], second["NUMA Affinity"]) == ("0", "1")
    for cut in ("GPU0\t X \tNV18\t0-31\t0\n", "GPU0  X  NV18    0   N/A\n"):
        with pytest.raises(UnreadableOutput, match="cut or unknown"):
            matrix(head + cut + "GPU1\tNV18\t X \t1,3\t1\t\tN/A\n")


@pytest.mark.parametrize(
    "corner", ["| | GPU0 | GPU1 | CPU Affinity |", "| GPU0 | GPU1 | CPU Affinity | |"]
)
def test_a_table_in_markdown(corner: str) -> None:
    text = f"{corner}\n|---|:-:|---|---|\n| GPU0 | X | PIX | 0-7 |\n| GPU1 | PIX | X | 0-7 |\n"
    assert why_of(topo.parse(text)) == "2 GPUs: gpu0-gpu1 PIX"
    with pytest.raises(UnreadableOutput):
        topo.parse(text.replace("| GPU1 | PIX | X | 0-7 |\n", ""))


@each("text", [EIGHT, OLD, EMPTY, BRIDGED, ISLANDS])
def test_tabs_blanks_and_what_stands_around_change_nothing(text: str) -> None:
    whole = topo.parse(text)
    for rough in (
        text.partition("\nLegend")[0],
        text.expandtabs(8),
        "\n".join(" ".join(line.split()) for line in text.split("\n")),
        "\n\n".join(text.split("\n")),
        (
            "user@box:~$ nvidia-smi -L\nGPU 0: NVIDIA A100 (UUID: GPU-0)\nuser@box:~$ "
            f"nvidia-smi topo -m\n{text}user@box:~$ \n"
        ),
        text + text,
        f"GPU0 is warm\n{text}",
    ):
        assert topo.parse(rough) == whole


def test_both_matrices_in_one_text() -> None:
    output = topo.parse(EMPTY + REFUSED)
    assert (output.tool, output.outcome) == ("topo-m", "pass")
    assert {reading.name for reading in output.readings} == {"topo_path_rank", "p2p_ok"}
    assert topo.parse_p2p(EMPTY + REFUSED).reading("p2p_ok") == output.reading("p2p_ok")
    require(topo.parse_p2p("No devices were found"), "error")
    with pytest.raises(UnreadableOutput):  # paths are no peer access
        topo.parse_p2p(EIGHT)
    assert topo.parse(ALONE).readings == ()


@each(
    "text, reason",
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "reboot"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "load the driver",
        ),
        ("No devices were found", "no GPU"),
        ('Option "-p2p" is missing its value.', "topo -p2p r"),
        (EIGHT + BRIDGED, "topo -m matrices that differ"),
        (ISLANDS + REFUSED, "topo -p2p matrices that differ"),
        (EMPTY + ISLANDS, "different GPUs"),
        (EMPTY + REFUSED.replace("X\tNS", "X\tU"), "does not know (U) whether gpu0->gpu1"),
        (REFUSED.replace("X\tNS", "X\tU"), "does not know (U) whether gpu0->gpu1"),
    ],
)
def test_error(text: str, reason: str) -> None:
    output = topo.parse(text)
    require(output, "error", reason)
    assert output.readings == ()


@each(
    "text",
    [
        "",
        "hello",
        BRIDGED.replace("GPU1\tNV4\t X \tNODE\t0-31,64-95\t0\n", ""),
        BRIDGED.replace("GPU2\tNODE\tNODE\t X \t0-31,64-95\t0\n", ""),
        BRIDGED.replace("GPU2\tNODE\tNODE\t X \t0-31,64-95\t0", "GPU2\tNODE\tNODE"),
        BRIDGED.replace("NODE\t0-31,64-95\t0\nGPU2", "NODE\t0-31,64-95\nGPU2"),
        BRIDGED.replace("0-31,64-95\t0\nGPU2", "0-31,64-\t0\nGPU2"),
        BRIDGED.replace("\t0-31,64-95\t0\n", "\t0-31,64-95\t0\t0\n"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\t X \tNV"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\t X \tERR"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\t X \tNV2"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\t X \tX"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\tNV4\tNV4"),
        BRIDGED.replace("GPU0\t X \tNV4", "GPU0\t X \tOK"),
        BRIDGED.replace("\tGPU0\tGPU1\tGPU2\tCPU", "\tGPU0\tGPU2\tGPU1\tCPU"),
        BRIDGED.replace("\tGPU0\tGPU1\tGPU2\tCPU", "\tGPU0\tGPU1\tGPU1\tCPU"),
        BRIDGED.replace("\tGPU0\tGPU1\tGPU2\tCPU", "\tGPU0\tGPU1\tGPU2\tnic\tCPU"),
        BRIDGED.replace("CPU Affinity\tNUMA Affinity", "NUMA Affinity"),
        BRIDGED.replace("NUMA Affinity", "NUMA Aff"),
        BRIDGED.replace("\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n", ""),
        BRIDGED.replace("CPU Affinity\tNUMA Affinity", "CPU"),
        EIGHT.replace("NIC3\tSYS", "NIC3\tPIX"),
        ISLANDS.replace(" GPU2\tCNS", " GPU2\tCN"),
        ISLANDS.replace("GPU0\tX\tOK", "GPU0\tX\tNV4"),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        topo.parse(text)


@each(
    "text, why",
    [
        (BRIDGED.replace("NV4", "OK"), "a matrix mixes paths and answers of topo -p2p"),
        (
            NAMED.replace("SYS\t X \n", "SYS\t X \t0-7\n"),
            "the affinities of a row are cut or unknown",
        ),
        (
            BRIDGED.replace("CPU Affinity\tNUMA Affinity", "NUMA Affinity\tCPU Affinity"),
            "has unknown or cut columns",
        ),
        (BRIDGED.replace("NUMA Affinity", "NUMA Affinity\tSocket"), "has unknown or cut columns"),
        (
            ALONE.replace("GPU0\tCPU", "GPU0\tGPU2\tCPU"),
            "are not GPU0, GPU1 and so on, or one is there twice",
        ),
        (BRIDGED.replace("GPU2", "GPU3"), "are not GPU0, GPU1 and so on"),
        (NAMED.replace("\tIB0\t", "\tIB0\tIB0\t"), "or one is there twice"),
        (NAMED.replace("IB0", "ib"), "are not GPU0, GPU1 and so on"),
        (
            BRIDGED.replace("GPU1\tNV4", "GPU1\t|NV4"),
            "the row of GPU1 is missing, cut or of unknown form",
        ),
        (
            BRIDGED.replace("GPU1\tNV4", "-----\nGPU1\tNV4"),
            "the row of GPU1 is missing, cut or of unknown form",
        ),
        (BRIDGED + BRIDGED.splitlines()[-1], "a row stands outside its matrix or comes twice"),
        ("\n".join(BRIDGED.splitlines()[:-1]), "the text is cut after 2 of 3 rows"),
    ],
)
def test_why_a_matrix_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        topo.parse(text)


def test_a_gpu_that_does_not_answer_is_in_no_matrix() -> None:
    lost = (
        "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.  Reboot the "
        "system to recover this GPU\n"
    )
    for parse, text in ((topo.parse, BRIDGED), (topo.parse, REFUSED), (topo.parse_p2p, REFUSED)):
        output = parse(lost + text)
        require(output, "error", "GPU is lost")
        assert output.readings == ()
