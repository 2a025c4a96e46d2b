"""The GPU checks as the product runs them: its own session over fake tools,
read back from the journal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import gpu_texts
import pytest
from gpu_machine import address as gpu_address
from gpu_machine import device, link, look, machine, pairs, tree_of, uuid
from suite_box import Box, planned

# whole sessions with programs that sleep; what a check makes of its figures is also asked without
# one
from acceptance.core.parts import GPUS, Component, Gpu, Pair

pytestmark = pytest.mark.e2e

HOST = {
    "host_to_device_memcpy_ce": [25.1, 25.2],
    "device_to_host_memcpy_ce": [26.1, 26.2],
    "host_to_device_bidirectional_memcpy_ce": [20.1, 20.2],
    "device_to_host_bidirectional_memcpy_ce": [21.1, 21.2],
}
ALONE = {"device_local_copy": [450.0, 451.0], "host_device_latency_sm": [600.0, 610.0]}
PEER = {
    "device_to_device_memcpy_read_ce": [24.1, 24.2],
    "device_to_device_memcpy_write_ce": [24.3, 24.4],
}


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    return Box(tmp_path, monkeypatch)


def alone(figures: Mapping[str, Sequence[float]], count: int = 2) -> list[str]:
    """nvbandwidth of each GPU alone."""
    return [gpu_texts.nvbandwidth_alone(index, figures) for index in range(count)]


# --- everything is well ---


def test_a_healthy_machine(box: Box) -> None:
    box.tool("deviceQuery", gpu_texts.device_query([1, 2]))
    box.tool("nvbandwidth", *alone(HOST), *alone(ALONE), gpu_texts.nvbandwidth(2, PEER))
    box.tool("bandwidthTest", gpu_texts.bandwidth_test(0), gpu_texts.bandwidth_test(0, h2d=26.3))
    box.tool("p2pBandwidthLatencyTest", gpu_texts.p2p(2))
    box.tool("gpu-burn", gpu_texts.gpu_burn([52.0, 51.0]), seconds="1")
    outcomes = box.run("gpu.device_query", "link.[!c]*", "burn")
    assert outcomes == dict.fromkeys(
        [
            "gpu.device_query",
            "link.host_copies",
            "link.device_alone",
            "link.peer_copies",
            "link.bandwidth_test",
            "link.p2p",
            "burn.gpu_burn[float]",  # what heats comes last
        ],
        "pass",
    )
    for tool in ("deviceQuery", "p2pBandwidthLatencyTest", "gpu-burn"):
        assert set(box.saw(tool)) == {f"{uuid(0)},{uuid(1)}"}
    assert box.saw("bandwidthTest") == [uuid(0), uuid(1)]
    assert box.saw("nvbandwidth") == [*[uuid(0), uuid(1)] * 2, f"{uuid(0)},{uuid(1)}"]
    assert box.measured("gpu_seen_by_cuda") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert box.measured("gpu_sm_count") == {Gpu(0): 128.0, Gpu(1): 128.0}
    assert box.measured("gpu_memory_total") == {Gpu(0): 24216 / 1024, Gpu(1): 24216 / 1024}
    assert box.measured("copy_h2d") == {Gpu(0): 25.1, Gpu(1): 25.2}
    assert box.measured("copy_d2h_bidirectional") == {Gpu(0): 21.1, Gpu(1): 21.2}
    assert box.measured("latency_host_device") == {Gpu(0): 600.0, Gpu(1): 610.0}
    assert box.measured("copy_d2d_read") == {Pair(Gpu(0), Gpu(1)): 24.1, Pair(Gpu(1), Gpu(0)): 24.2}
    assert box.measured("copy_faults") == {GPUS: 0.0, Gpu(0): 0.0, Gpu(1): 0.0}
    assert box.measured("bandwidth_test_h2d") == {Gpu(0): 26.2, Gpu(1): 26.3}
    assert box.measured("p2p_gain") == pytest.approx(
        {Pair(Gpu(0), Gpu(1)): 25.0 / 24.8, Pair(Gpu(1), Gpu(0)): 25.0 / 24.8}
    )
    assert box.measured("p2p_latency") == {Pair(Gpu(0), Gpu(1)): 2.1, Pair(Gpu(1), Gpu(0)): 2.1}
    assert box.measured("gpu_burn_errors_float") == {Gpu(0): 0.0, Gpu(1): 0.0}
    assert box.measured("gpu_burn_compares_float") == {Gpu(0): 8.0, Gpu(1): 8.0}
    assert box.measured("gpu_burn_float") == {Gpu(0): 52.0, Gpu(1): 51.0}
    assert box.measured("gpu_burn_ratio_float") == pytest.approx({Gpu(0): 52 / 51, Gpu(1): 51 / 52})
    (burn,) = [words for words in box.commands() if words[0] == "gpu-burn"]
    assert burn[1:] == ("-m", burn[2], "1")
    queried = next(words for words in box.commands() if words[0] == "nvbandwidth")
    assert queried[1:6] == ("-t", *HOST)
    assert [words[1] for words in box.commands() if words[0] == "bandwidthTest"] == [
        "--device=0",
        "--device=0",
    ]


def test_the_gpus_that_are_tested_are_the_ones_that_tools_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, monkeypatch, machine(*(device(index) for index in range(3))))
    box.tool("deviceQuery", gpu_texts.device_query([2, 3]))
    box.tool("p2pBandwidthLatencyTest", gpu_texts.p2p(2, pairs={(0, 1): 30.0}, first_bus=2))
    outcomes = box.run("gpu.device_query", "link.p2p", names=(Gpu(1), Gpu(2)))
    assert outcomes == {"gpu.device_query": "pass", "link.p2p": "pass"}
    assert box.saw("deviceQuery") == [f"{uuid(1)},{uuid(2)}"]
    assert set(box.measured("gpu_sm_count")) == {Gpu(1), Gpu(2)}
    assert box.measured("p2p_write") == {Pair(Gpu(1), Gpu(2)): 30.0, Pair(Gpu(2), Gpu(1)): 25.0}


def test_one_gpu_has_no_pairs() -> None:
    alone = machine(device(0))
    made = planned(alone, (Gpu(0),), ("link", "burn"), "d")
    ids = [check.id for check in made.checks]
    assert {"link.host_copies", "link.bandwidth_test", "burn.gpu_burn[float]"} <= set(ids)
    assert not {"link.p2p", "link.peer_copies", "link.paths", "link.nvlinks"} & set(ids)
    assert not [
        due
        for check in made.checks
        for due in check.due
        if due.measurement.startswith("gpu_burn_ratio")
    ]


def test_gpus_that_do_not_reach_each_other_owe_no_copies_between_them() -> None:
    apart = machine(
        device(0), device(1), found=pairs(2, "chipset-not-supported", "chipset-not-supported")
    )
    ids = [check.id for check in planned(apart, (Gpu(0), Gpu(1)), ("link",), "d").checks]
    assert "link.peer_copies" not in ids
    assert "link.p2p" in ids


# --- deviceQuery ---


def test_a_gpu_that_cuda_does_not_show(box: Box) -> None:
    box.tool("deviceQuery", gpu_texts.device_query([2]))
    assert box.run("gpu.device_query") == {"gpu.device_query": "fail"}
    assert box.measured("gpu_seen_by_cuda") == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert box.message().startswith(
        "gpu_seen_by_cuda on gpu0: measured 0, limit >= 1; basis: CUDA must start and show"
    )
    assert "gpu1" not in box.message()
    assert box.skipped() == {("gpu_sm_count", Gpu(0)), ("gpu_memory_total", Gpu(0))}


def test_a_gpu_with_parts_switched_off(box: Box) -> None:
    box.tool("deviceQuery", gpu_texts.device_query([1, 2], sm=114))
    assert box.run("gpu.device_query") == {"gpu.device_query": "fail"}
    assert len(box.message().splitlines()) == 2
    assert (
        "gpu_sm_count on gpu1: measured 114, limit = 128; basis: a GeForce RTX 4090 has 128"
        in box.message()
    )


def test_a_gpu_whose_memory_cuda_and_nvml_tell_differently(box: Box) -> None:
    box.tool("deviceQuery", gpu_texts.device_query([1, 2], mib=20000))
    assert box.run("gpu.device_query") == {"gpu.device_query": "error"}
    assert (
        "says that device 0 has 20000 MB of memory, and gpu0 has 24564 MB by NVML" in box.message()
    )
    assert box.measured("gpu_memory_total") == {Gpu(0): 20000 / 1024, Gpu(1): 20000 / 1024}


def test_cuda_itself_names_the_hardware(box: Box) -> None:
    box.tool(
        "deviceQuery",
        gpu_texts.ECC_UNCORRECTABLE.replace(
            "[CUDA Bandwidth Test] - Starting", "deviceQuery Starting"
        ),
        code=1,
    )
    assert box.run("gpu.device_query") == {"gpu.device_query": "fail"}
    assert "gpu_seen_by_cuda on gpu1: measured 0" in box.message()
    assert "limit >= 1; basis: CUDA must start" in box.message()


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (gpu_texts.device_query([1, 2]), 1, "deviceQuery ended with exit code 1"),
        (
            gpu_texts.device_query([1, 2])[:900],
            0,
            "the text is cut: the line 'Result =' is missing",
        ),
        ("", 127, "deviceQuery ended with exit code 127"),
    ],
)
def test_a_device_query_that_proves_nothing(box: Box, text: str, code: int, told: str) -> None:
    box.tool("deviceQuery", text, code=code)
    assert box.run("gpu.device_query") == {"gpu.device_query": "error"}
    assert told in box.message()
    assert box.measured("gpu_seen_by_cuda") == {}


def test_a_tool_that_is_not_there_skips_its_check(box: Box) -> None:
    assert box.run("gpu.device_query", "burn") == {
        "gpu.device_query": "skip",
        "burn.gpu_burn[float]": "skip",
    }
    assert {one.check: one.message.split(":")[0] for one in box.ended()} == {
        "gpu.device_query": "deviceQuery is not installed",
        "burn.gpu_burn[float]": "gpu-burn is not installed",
    }


# --- gpu-burn ---


def test_faulty_with_a_last_count_of_zero(box: Box) -> None:
    box.tool("gpu-burn", gpu_texts.gpu_burn([52.0, 51.0], faulty=[1]), seconds="1")
    assert box.run("burn") == {"burn.gpu_burn[float]": "fail"}
    assert box.measured("gpu_burn_errors_float") == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert box.message().startswith(
        "gpu_burn_errors_float on gpu1: measured 1 (FAULTY: GPU 1), limit <= 0"
    )
    assert "gpu0" not in box.message()
    assert len(box.saw("gpu-burn")) == 1, "a fault is found once, and not looked for again"


def test_wrong_results_are_counted_and_fewer_compares_fail_too(box: Box) -> None:
    box.tool(
        "gpu-burn",
        gpu_texts.gpu_burn([52.0, 51.0], compares=2, faulty=[1], errors={0: 7, 1: 9}),
        seconds="1",
    )
    assert box.run("burn") == {"burn.gpu_burn[float]": "fail"}
    assert box.measured("gpu_burn_errors_float") == {Gpu(0): 7.0, Gpu(1): 9.0}
    assert "gpu_burn_compares_float on gpu0: measured 2, limit >= 3" in box.message()


def test_a_burn_that_died_of_the_hardware_names_every_gpu_that_it_does_not_tell_apart(
    box: Box,
) -> None:
    text = (
        "Burning for 1 seconds.\nCouldn't init a GPU test: Error (gpu_burn-drv.cpp:84): "
        "uncorrectable ECC error encountered\n"
    )
    box.tool("gpu-burn", text, code=1)
    assert box.run("burn") == {"burn.gpu_burn[float]": "fail"}
    assert box.measured("gpu_burn_errors_float") == {Gpu(0): 1.0, Gpu(1): 1.0}
    names = ("gpu_burn_compares_float", "gpu_burn_float", "gpu_burn_ratio_float")
    assert box.skipped() == {(name, gpu) for name in names for gpu in (Gpu(0), Gpu(1))}


def test_a_burn_that_died_and_says_nothing_of_hardware_proves_nothing(box: Box) -> None:
    """Whether the hardware did it, the kernel log of the run tells."""
    lines = gpu_texts.gpu_burn([52.0, 51.0]).partition("Killing")[0]
    died = (
        "100.0%  proc'd: -1 (0 Gflop/s) - 72 (51000 Gflop/s)   errors: -1  (DIED!)- 0   temps: "
        "60 C - 60 C \n"
    )
    box.tool("gpu-burn", f"{lines}\n{died}free(): invalid pointer\n", code=123)
    assert box.run("burn") == {"burn.gpu_burn[float]": "error"}
    assert "gpu-burn died on GPU 0: see the kernel log for an Xid of that time" in box.message()
    assert box.message().endswith("free(): invalid pointer")
    assert box.measured("gpu_burn_errors_float") == {}


def test_too_few_compares_are_tried_again_and_longer(box: Box) -> None:
    few, enough = (
        gpu_texts.gpu_burn([52.0, 51.0], compares=2),
        gpu_texts.gpu_burn([52.0, 51.0], compares=14),
    )
    box.tool("gpu-burn", few, enough, seconds="$last")
    assert box.run("burn") == {"burn.gpu_burn[float]": "pass"}
    first, second = box.commands()
    assert (first[-1], second[-1]) == ("1", "3")
    assert box.measured("gpu_burn_compares_float") == {Gpu(0): 14.0, Gpu(1): 14.0}


def test_too_few_compares_twice_are_an_error(box: Box) -> None:
    box.tool("gpu-burn", *[gpu_texts.gpu_burn([52.0, 51.0], compares=2)] * 2, seconds="$last")
    assert box.run("burn") == {"burn.gpu_burn[float]": "error"}
    assert len(box.commands()) == 2
    assert (
        "too few compares, which proves nothing (GPU 0: 2, GPU 1: 2; 3 are needed)" in box.message()
    )
    assert box.measured("gpu_burn_errors_float") == {}


def test_a_gpu_that_is_slower_than_its_siblings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, monkeypatch, machine(*(device(index) for index in range(3))))
    box.tool("gpu-burn", gpu_texts.gpu_burn([52.0, 51.0, 41.2]), seconds="1")
    assert box.run("burn", names=(Gpu(0), Gpu(1), Gpu(2))) == {"burn.gpu_burn[float]": "fail"}
    assert box.message().startswith(
        "gpu_burn_ratio_float on gpu2: measured 0.8, limit >= 0.9; basis: "
    )
    assert len(box.message().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "seconds", "code", "told"),
    [
        (gpu_texts.gpu_burn([52.0, 51.0]), "0", 0, "and was to load the machine for 1 s"),
        (
            gpu_texts.gpu_burn([52.0]),
            "1",
            0,
            "gpu-burn lists gpu1 (GPU-00000001-0000-4000-8000-000000000000) 0 times",
        ),
        (
            gpu_texts.gpu_burn([52.0, 51.0]).partition("Tested")[0],
            "1",
            0,
            "the text ends without the table",
        ),
        (
            gpu_texts.gpu_burn([52.0, 51.0, 50.0]),
            "1",
            0,
            "gpu-burn tells of gpu2, and was given 2 GPUs",
        ),
        (
            "Couldn't init CUDA: no CUDA-capable device is detected\n",
            "0",
            0,
            "gpu-burn ended after",
        ),
    ],
)
def test_a_burn_that_proves_nothing(
    box: Box, text: str, seconds: str, code: int, told: str
) -> None:
    box.tool("gpu-burn", text, seconds=seconds, code=code)
    assert box.run("burn") == {"burn.gpu_burn[float]": "error"}
    assert told in box.message()
    assert len(box.saw("gpu-burn")) == 1, "only a run that was too short is tried again"


# --- copies ---


def test_a_copy_below_its_limit(box: Box) -> None:
    slow = {"host_to_device_memcpy_ce": [12.7, 25.2], "device_to_host_memcpy_ce": [26.1, 12.9]}
    box.tool("nvbandwidth", *alone({**HOST, **slow}))
    assert box.run("link.host_copies") == {"link.host_copies": "fail"}
    first, second, *of_siblings = box.message().splitlines()
    assert first.startswith("copy_h2d on gpu0: measured 12.7 GB/s, limit >= 23.6")
    assert second.startswith("copy_d2h on gpu1: measured 12.9 GB/s, limit >= 23.6")
    assert [line.split(":")[0] for line in of_siblings] == [
        "copy_h2d_ratio on gpu0",
        "copy_d2h_ratio on gpu1",
    ]


def test_a_copy_behind_its_equals_is_measured_again_in_a_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = machine(device(0), device(1))
    box = Box(tmp_path, monkeypatch, replace(two, cpu=replace(two.cpu, virtualised=True)))
    first = {**HOST, "host_to_device_memcpy_ce": [25.0, 23.0]}
    box.tool("nvbandwidth", *alone(first), *alone(HOST))
    assert box.run("link.host_copies") == {"link.host_copies": "pass"}
    assert box.saw("nvbandwidth") == [uuid(0), uuid(1)] * 2
    assert list(box.measured("copy_h2d").values()) == HOST["host_to_device_memcpy_ce"]
    told = "all were measured a second time, and that counts: at first copy_h2d_ratio of gpu1 was"
    assert box.told_of("copy_h2d_ratio") == dict.fromkeys((Gpu(0), Gpu(1)), f"{told} 0.92")


def test_a_sample_below_its_limit_is_measured_again_in_a_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = machine(device(0), device(1))
    virtual = replace(two, cpu=replace(two.cpu, virtualised=True))
    good, bad = gpu_texts.bandwidth_test(0), gpu_texts.bandwidth_test(0, h2d=12.5)
    told = "all were measured a second time, and that counts: at first bandwidth_test_h2d of gpu1"
    for second, outcome, notes in (
        (good, "pass", {Gpu(0): f"{told} was 12.5 GB/s", Gpu(1): f"{told} was 12.5 GB/s"}),
        (bad, "fail", {Gpu(0): None, Gpu(1): None}),
    ):
        (tmp_path / outcome).mkdir()
        box = Box(tmp_path / outcome, monkeypatch, virtual)
        box.tool("bandwidthTest", good, bad, good, second)
        assert box.run("link.bandwidth_test") == {"link.bandwidth_test": outcome}
        assert box.saw("bandwidthTest") == [uuid(0), uuid(1)] * 2
        assert box.told_of("bandwidth_test_h2d") == notes


def test_wrong_data_is_not_measured_again(box: Box) -> None:
    slow = {**HOST, "host_to_device_memcpy_ce": [25.0, 12.0]}
    box.tool("nvbandwidth", gpu_texts.WRONG_DATA, *alone(slow)[1:])
    assert box.run("link.host_copies") == {"link.host_copies": "fail"}
    assert box.saw("nvbandwidth") == [uuid(0), uuid(1)]


def test_a_copy_that_is_slower_than_its_siblings_on_equal_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {
        **{name: [25.0, 25.2, 25.1] for name in HOST},
        "host_to_device_memcpy_ce": [28.0, 24.0, 28.0],
    }
    three = machine(*(device(number) for number in range(3)))
    narrow = tuple(
        replace(one, slot_max_link_width=8) if one.address == gpu_address(2) else one
        for one in three.pci
    )
    for folder, seen, told in (
        ("equal", three, 28.0),
        ("narrow", replace(three, pci=narrow), 28.0),
    ):
        (tmp_path / folder).mkdir()
        box = Box(tmp_path / folder, monkeypatch, seen)
        box.tool("nvbandwidth", *alone(figures, 3))
        assert box.run("link.host_copies", names=(Gpu(0), Gpu(1), Gpu(2))) == {
            "link.host_copies": "fail"
        }
        assert box.message().startswith(
            "copy_h2d_ratio on gpu1: measured 0.8571, limit >= 0.9; basis: GPUs of one"
        )
        assert len(box.message().splitlines()) == 1
        of = (Gpu(0), Gpu(1), Gpu(2)) if folder == "equal" else (Gpu(0), Gpu(1))
        assert tuple(box.measured("copy_h2d_ratio")) == of
        assert box.measured("copy_h2d_ratio")[Gpu(1)] == pytest.approx(24.0 / told)


WRONG = (
    "(wrong data arrived: 'Invalid value when checking the pattern at 0x7f1c40000000'), limit <= "
    "0; basis: data must"
)


@pytest.mark.parametrize(
    ("check", "on", "skipped"),
    [
        ("link.host_copies", (Gpu(0), Gpu(1)), 12),
        ("link.device_alone", (Gpu(0), Gpu(1)), 4),
        ("link.peer_copies", (GPUS,), 4),
    ],
)
def test_wrong_data_is_a_fault_and_no_trouble_of_the_tool(
    box: Box, check: str, on: tuple[Component, ...], skipped: int
) -> None:
    box.tool("nvbandwidth", *[gpu_texts.WRONG_DATA] * len(on), code=1)
    assert box.run(check) == {check: "fail"}
    assert box.measured("copy_faults") == dict.fromkeys(on, 1.0)
    lines = box.message().splitlines()
    assert len(lines) == len(on)
    for line, component in zip(lines, on, strict=True):
        assert line.startswith(f"copy_faults on {component}: measured 1 {WRONG}")
    assert len(box.skipped()) == skipped


def test_wrong_data_of_one_gpu_leaves_the_others_figures(box: Box) -> None:
    _, healthy = alone(HOST)
    box.tool("nvbandwidth", gpu_texts.WRONG_DATA, healthy)
    assert box.run("link.host_copies") == {"link.host_copies": "fail"}
    assert box.measured("copy_faults") == {Gpu(0): 1.0, Gpu(1): 0.0}
    assert box.measured("copy_h2d") == {Gpu(1): 25.2}
    assert box.measured("copy_h2d_ratio") == {}
    assert box.message().startswith(f"copy_faults on gpu0: measured 1 {WRONG}")
    assert len(box.message().splitlines()) == 1


@pytest.mark.parametrize("text", ["", "no words of it", gpu_texts.nvbandwidth(2, HOST)])
def test_a_run_that_cannot_be_read_leaves_the_others_figures(box: Box, text: str) -> None:
    healthy, _ = alone(HOST)
    box.tool("nvbandwidth", healthy, text)
    assert box.run("link.host_copies") == {"link.host_copies": "error"}
    assert box.measured("copy_faults") == {Gpu(0): 0.0}
    assert box.measured("copy_h2d") == {Gpu(0): 25.1}
    assert box.message().startswith("gpu1, which its program sees as gpu0: nvbandwidth")


def test_a_testcase_that_is_missing_is_an_error(box: Box) -> None:
    box.tool("nvbandwidth", *alone({"host_to_device_memcpy_ce": [25.1, 25.2]}))
    assert box.run("link.host_copies") == {"link.host_copies": "error"}
    assert [line.split(":")[0] for line in box.message().splitlines()] == [
        "gpu0",
        "gpu1, which its program sees as gpu0",
    ]
    assert "device_to_host_memcpy_ce" in box.message()


def test_a_testcase_that_the_tool_waived_is_an_error_in_its_words(box: Box) -> None:
    _, other = alone(HOST)
    told = json.loads(alone({"host_to_device_memcpy_ce": [25.1, 25.2]})[0])
    told["nvbandwidth"]["testcases"].append(
        {"name": "device_to_host_memcpy_ce", "status": "Waived"}
    )
    box.tool("nvbandwidth", json.dumps(told), other)
    assert box.run("link.host_copies") == {"link.host_copies": "error"}
    assert (
        "gpu0: nvbandwidth did not give device_to_host_memcpy_ce, host_to_device_bidirectional"
        in box.message()
    )
    assert "measured 1 matrix; waived: device_to_host_memcpy_ce" in box.message()
    assert box.measured("copy_h2d") == {Gpu(1): 25.2}


def test_a_pair_without_a_figure_is_an_error(box: Box) -> None:
    told = json.loads(gpu_texts.nvbandwidth(2, PEER))
    for testcase in told["nvbandwidth"]["testcases"]:
        testcase["bandwidth_matrix"][1][0] = "N/A"
        testcase["sum"] = float(testcase["bandwidth_matrix"][0][1])
    box.tool("nvbandwidth", json.dumps(told))
    assert box.run("link.peer_copies") == {"link.peer_copies": "error"}
    assert "copy_d2d_read on gpu1->gpu0 was not measured" in box.message()


def test_the_sample_that_builders_run(box: Box) -> None:
    box.tool(
        "bandwidthTest",
        gpu_texts.bandwidth_test(0, d2h=12.4),
        gpu_texts.bandwidth_test(0, h2d=12.5),
    )
    assert box.run("link.bandwidth_test") == {"link.bandwidth_test": "fail"}
    first, second = box.message().splitlines()
    assert first.startswith("bandwidth_test_h2d on gpu1: measured 12.5 GB/s, limit >= 23.6")
    assert second.startswith("bandwidth_test_d2h on gpu0: measured 12.4 GB/s, limit >= 23.6")


def test_a_memory_that_broke_under_the_sample(box: Box) -> None:
    box.tool("bandwidthTest", gpu_texts.bandwidth_test(0), gpu_texts.ECC_UNCORRECTABLE, code=0)
    assert box.run("link.bandwidth_test") == {"link.bandwidth_test": "fail"}
    assert box.measured("copy_faults") == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert box.message().startswith("copy_faults on gpu1: measured 1")
    assert box.measured("bandwidth_test_h2d") == {Gpu(0): 26.2}
    assert box.skipped() == {(f"bandwidth_test_{way}", Gpu(1)) for way in ("h2d", "d2h", "d2d")}


def test_a_pair_that_gains_nothing_from_peer_access(box: Box) -> None:
    box.tool("p2pBandwidthLatencyTest", gpu_texts.p2p(2, pairs={(1, 0): 12.0}))
    assert box.run("link.p2p") == {"link.p2p": "fail"}
    assert box.message().startswith(
        "p2p_gain on gpu1->gpu0: measured 0.4839, limit >= 0.9; basis: 0.9 x: peer-to-peer"
    )
    assert len(box.message().splitlines()) == 1


def test_a_bridge_that_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, links = "NVIDIA GeForce RTX 3090 Ti", 4
    wired = [
        device(index, name=name, links=tuple(link(n, to=1 - index) for n in range(links)))
        for index in (0, 1)
    ]
    tree = tree_of(tmp_path / "tree", 0)
    for bus in (1, 2):
        tree.gpu(bus, device="0x2203")
    box = Box(tmp_path, monkeypatch, look(tree, wired, pairs(2)))
    box.tool("p2pBandwidthLatencyTest", gpu_texts.p2p(2, on=20.0, off=19.0, name=name))
    assert box.run("link.p2p") == {"link.p2p": "fail"}
    assert "p2p_gain on gpu0->gpu1: measured 1.053, limit >= 2" in box.message()
    assert "p2p_write on gpu0->gpu1: measured 20 GB/s, limit >= " in box.message()


@pytest.mark.parametrize(
    ("text", "outcome", "told"),
    [
        (
            "Cuda failure p2pBandwidthLatencyTest.cu:222: 'uncorrectable ECC error encountered'\n",
            "fail",
            "copy_faults on gpus",
        ),
        (
            "Cuda failure p2pBandwidthLatencyTest.cu:222: 'out of memory'\n",
            "error",
            "another process holds the GPU's memory",
        ),
        (gpu_texts.p2p(2).partition("Bidirectional")[0], "error", "the text is cut"),
        (
            gpu_texts.p2p(3),
            "error",
            "p2pBandwidthLatencyTest tells of gpu0->gpu2, and was given 2 GPUs",
        ),
    ],
)
def test_what_else_the_peer_sample_may_say(box: Box, text: str, outcome: str, told: str) -> None:
    box.tool("p2pBandwidthLatencyTest", text)
    assert box.run("link.p2p") == {"link.p2p": outcome}
    assert told in box.message()
