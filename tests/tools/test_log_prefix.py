from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from parsers import PARSERS

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import log_prefix, topo
from acceptance.tools.reading import tool_lines

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"
TIME = "2026-03-04T05:06:07.123456789Z"
LOGGED: dict[str, Callable[[str], str]] = {
    "runtime of Kubernetes": lambda line: f"{TIME} stdout F {line}",
    "docker logs -t": lambda line: f"{TIME} {line}",
    "Jenkins": lambda line: f"[{TIME}] {line}",
    "ts": lambda line: f"Mar  4 05:06:07 {line}",
    "journal": lambda line: f"Mar 04 05:06:07 box-7 burn.sh[4711]: {line}",
    "journal with ISO times": lambda line: f"2026-03-04T05:06:07+0100 box-7 burn.sh[4711]: {line}",
    "compose": lambda line: f"\x1b[33mburn_1  | \x1b[0m{line}",
    "compose with times": lambda line: f"burn-1  | {TIME} {line}",
    "kubectl logs --prefix": lambda line: f"[pod/burn-x7k2p/burn] {line}",
    "kubectl logs --prefix --timestamps": lambda line: f"[pod/burn-x7k2p/burn] {TIME} {line}",
    "srun --label": lambda line: f" 3: {line}",
    "mpirun --tag-output": lambda line: f"[1,0]<stdout>:{line}",
    "pdsh": lambda line: f"gpu-17: {line}",
    "GitHub": lambda line: f"accept\tRun burn\t{TIME} {line}",
    "a script's comment": lambda line: f"# {line}".rstrip(),
}
TEXTS = [
    "gpu-burn/ok_tensor_2gpu_2024.txt",
    "gpu-burn/faulty_gpu1_errors_reset.txt",
    "deviceQuery/two_gpus_12.8.txt",
    "deviceQuery/truncated_12.8.txt",
    "bandwidthTest/quick_12.4.txt",
    "p2pBandwidthLatencyTest/l40s_x2_p2p_read.txt",
    "nvbandwidth/h200_x3_v0.8.txt",
    "nvbandwidth/h200_x3_wrong_data.txt",
    "nvbandwidth/h200_x3_v0.8.json.txt",
    "topo-m/eight_gpus_four_nics_570.txt",
    "topo-p2p/four_gpus_two_islands_550.txt",
]


def logged(kind: str, text: str) -> str:
    return "".join(LOGGED[kind](line) + "\n" for line in text.rstrip("\n").split("\n"))


@each("kind", LOGGED)
@each("name", TEXTS)
def test_a_logged_text_is_worth_the_same(name: str, kind: str) -> None:
    text = (RECORDINGS / name).read_text()
    assert PARSERS[name.partition("/")[0]](logged(kind, text)) == plain(name)


@functools.cache
def plain(name: str) -> object:
    return PARSERS[name.partition("/")[0]]((RECORDINGS / name).read_text())


@each("kind", ["compose", "kubectl logs --prefix", "docker logs -t", "journal"])
def test_lines_around_a_log_are_left(kind: str) -> None:
    assert tool_lines(
        "Attaching to burn-1\n" + logged(kind, "a\n\n  b\nc") + "burn-1 exited with code 0"
    ) == (*("Attaching to burn-1", "a", "", "  b", "c", "burn-1 exited with code 0"),)


def test_systemd_speaks_of_a_unit_around_it() -> None:
    started = "Mar 04 05:06:06 box-7 systemd[1]: Started burn.service."
    assert tool_lines(started + "\n" + logged("journal", "a\nb\nc")) == (started, "a", "b", "c", "")


def test_three_prefixes_at_most() -> None:
    """More would be the text's own."""
    assert log_prefix.strip_prefixes(["3: 3: 3: 3: a", "3: 3: 3: 3: b"]) == ["3: a", "3: b"]


def test_a_line_that_the_runtime_cut_is_joined() -> None:
    cut = (
        f"{TIME} stdout P \r10.0%  proc'd: 1\n{TIME} stdout F 00 (7 Gflop/s)\n{TIME} stdout F done"
    )
    assert tool_lines(cut) == ("", "10.0%  proc'd: 100 (7 Gflop/s)", "done")


def test_a_command_before_the_lines_of_a_host() -> None:
    assert tool_lines("$ pdsh -w gpu-17 topo\ngpu-17: a\ngpu-17:   b\ngpu-17:") == (
        "$ pdsh -w gpu-17 topo",
        "a",
        "  b",
        "",
    )


@each(
    "text",
    [
        "0: a\n0: b\n0: c\n1: a\n1: b\n1: c",
        "gpu-17: a\ngpu-18: a",
        "burn-1  | a\nburn-2  | b\nburn-1  | c\nburn-1  | d",
        "[pod/a/b] x\n[pod/a/b] y\n[pod/a/c] z",
        "gpu-17: a\nb\ngpu-17: c\ngpu-17: d",
        "a\nb\ngpu-17: c\ngpu-17: d\ngpu-17: e",
        "a\n0: b\n0: c",
        "Device: 0, NAME\nDevice: 1, NAME\nDevice: 2, NAME",
        "Waived: \nWaived: \nWaived: ",
        "gpu7: \ngpu7: \ngpu7: ",
        "a\nb",
        "",
    ],
)
def test_other_lines_stay(text: str) -> None:
    lines = text.split("\n")
    assert log_prefix.strip_prefixes(lines) == lines


def test_a_fault_on_another_host_is_not_passed_over() -> None:
    """Sorted by host: the second one's lines may not vanish behind a clean first one."""
    clean = (RECORDINGS / "topo-m/eight_gpus_four_nics_570.txt").read_text()
    lost = (RECORDINGS / "topo-m/row_missing_570.txt").read_text()
    with pytest.raises(UnreadableOutput):
        topo.parse(
            logged("srun --label", clean) + logged("srun --label", lost).replace(" 3: ", " 4: ")
        )


@given(st.lists(st.text(alphabet="ab|:#>[]0 \t\r", max_size=12), max_size=6))
def test_nothing_is_added(lines: list[str]) -> None:
    freed = log_prefix.strip_prefixes(lines)
    assert len(freed) == len(lines)
    assert all(line.endswith(rest) for line, rest in zip(lines, freed, strict=True))
