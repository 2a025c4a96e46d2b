"""Healthy machines as published PASS with the machine files that ship; with one fault each
fails, and the fault is named.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from boxes import BOXES, Box
from cases import each
from faults import false_claim, few_lanes, missing, slow, without_bridge, wrong_result
from gpu_machine import NO_COUNTERS
from synthetic_machines import SHEETS, Run, failed, inventory, planned
from thoroughness import ALL

from acceptance.core.parts import GPUS, MACHINE, Gpu, Pair
from acceptance.core.plan import Plan
from acceptance.wording import words

NAMES = sorted(BOXES)
# The faults are put into one of the two machines of eight, which take as long as all others.
FAULTY = [name for name in NAMES if ALL or name != "8xh200.toml"]
SEVERAL = [name for name in FAULTY if BOXES[name].count > 1]
RESULTS = ("gemm_f16_miscompares", "copy_own_miscompares", "elementwise_miscompares")


@functools.cache
def plan(box: Box) -> Plan:
    return planned(box, inventory(box))


def run(box: Box) -> Run:
    return Run(box, plan(box))


@each("name", [name for name in FAULTY if SHEETS[BOXES[name].sheet].ecc])
def test_a_machine_whose_memory_errors_nobody_counts_never_passes(name: str) -> None:
    box = BOXES[name]
    seen = inventory(box)
    first, *others = seen.nvml.devices
    assert first.traits is not None
    off = replace(first, traits=replace(first.traits, ecc_enabled=False), counters=NO_COUNTERS)
    blind = Run(box, planned(box, replace(seen, nvml=replace(seen.nvml, devices=(off, *others)))))
    assert blind.verdict().verdict == "UNJUDGED"
    assert words.text(blind.made.gaps[0]).startswith("gpu0: ECC is off, and an ")


@each("name", NAMES)
def test_the_published_figures_are_judged(name: str) -> None:
    """What was published is what the plan holds against a limit, wherever a check measures it."""
    healthy = run(BOXES[name])
    # gpu-burn's float and double modes run in soak alone
    plans = (planned(healthy.box, inventory(healthy.box), name="soak"), healthy.made)
    due = {one.measurement: one for made in plans for check in made.checks for one in check.due}
    ours = [
        measurement
        for measurement in healthy.box.figures
        if measurement.startswith(("gemm_", "copy_own_"))
    ]
    assert ours
    assert [measurement for measurement in ours if measurement not in due] == []
    assert [measurement for measurement in ours if due[measurement].limit is None] == []
    for measurement, given in healthy.box.figures.items():
        if measurement not in due:  # between GPUs, and this machine has one
            assert healthy.box.count == 1
            continue
        one = due[measurement]
        for value in given if isinstance(given, tuple) else (given,):
            assert one.limit is None or one.limit.grade(value) != "fail", measurement


@each("name", SEVERAL)
def test_a_gpu_a_fifth_slower_than_its_twin_fails(name: str) -> None:
    made = run(BOXES[name])
    made.change = slow(Gpu(1), 4 / 5)
    found = made.verdict()
    assert found.verdict == "FAIL"
    named = failed(found)
    formats = {
        due.measurement for check in made.made.checks for due in check.due if due.unit == "ratio"
    }
    formats = {name for name in formats if name.startswith(("gemm_", "gpu_burn_"))}
    assert {"gemm_bf16_ratio", "gemm_bf16_short_ratio", "gpu_burn_ratio_tensor"} <= formats
    # Short products in float16 may differ by 18 % between sound cards; the sustained ones, which
    # may not, name the card.
    assert {(name, Gpu(1)) for name in formats - {"gemm_f16_short_ratio"}} <= named
    assert {component for _, component in named} == {Gpu(1)}


@each("name", FAULTY)
def test_a_link_of_four_lanes_fails(name: str) -> None:
    box = BOXES[name]
    made = run(box)
    made.change = few_lanes(Gpu(0), 4, box.slot[1] if box.slot else 16)
    found = made.verdict()
    assert found.verdict == "FAIL"
    named = {"gpu_link_width", "copy_h2d", "copy_d2h", "copy_own_h2d", "copy_own_d2h"}
    assert {(name, Gpu(0)) for name in named} <= failed(found)
    assert {component for _, component in failed(found)} == {Gpu(0)}


@each("name", [name for name in FAULTY if name != "1xh200-vm.toml"])
def test_a_slot_of_four_lanes_fails_by_what_is_declared(name: str) -> None:
    """The link is then all that the slot offers, so only the machine file can tell."""
    box = BOXES[name]
    made = run(replace(replace(box, slot=(box.slot[0], 4)), figures={}))
    made.change = lambda _check, due, value: (
        4.0 if due.measurement == "gpu_link_width_max" else value
    )
    assert failed(made.verdict()) == {
        ("gpu_link_width_max", Gpu(index)) for index in range(box.count)
    }


@each("name", FAULTY)
def test_a_gpu_that_is_not_there_fails(name: str) -> None:
    box = BOXES[name]
    seen = inventory(box)
    lost = Gpu(box.count - 1)
    gone = seen.nvml.devices[-1].pci_address
    left = replace(
        seen,
        pci=tuple(function for function in seen.pci if function.address != gone),
        nvml=replace(
            seen.nvml,
            devices=seen.nvml.devices[:-1],
            pairs=tuple(pair for pair in seen.nvml.pairs if box.count - 1 not in (pair.a, pair.b)),
        ),
    )
    made = Run(box, planned(box, left), missing(lost))
    assert lost in made.made.gpus
    found = made.verdict()
    assert found.verdict == "FAIL"
    assert failed(found) == {("gpu_count", MACHINE)}
    (line,) = found.of_kind("fail")
    assert f"{box.file} declares {box.count} GPU" in words.of(line)
    assert any(one.kind == "error" for check in found.checks for one in check.findings), (
        "what it owes is not excused"
    )


def test_a_bridge_that_is_not_there_fails() -> None:
    box = BOXES["2x3090ti-bridge.toml"]
    bare = replace(box, nvlinks=0, p2p="not-supported")
    found = Run(box, planned(box, inventory(bare)), without_bridge).verdict()
    assert found.verdict == "FAIL"
    assert failed(found) == {
        *(("nvlink_active", gpu) for gpu in (Gpu(0), Gpu(1))),
        *(
            (name, way)
            for name in ("p2p_supported", "gpu_path_differs")
            for way in (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)))
        ),
    }
    assert all("2x3090ti-bridge.toml declares" in words.of(one) for one in found.of_kind("fail"))


# Every machine and every kind of result; together in `make test-all`.
@each(
    "name, measurement",
    [
        (name, measurement)
        for number, name in enumerate(FAULTY)
        for place, measurement in enumerate(RESULTS)
        if ALL or number % len(RESULTS) == place
    ],
)
def test_a_result_that_is_wrong_fails(name: str, measurement: str) -> None:
    last = Gpu(BOXES[name].count - 1)
    made = run(BOXES[name])
    made.change = wrong_result(measurement, last)
    found = made.verdict()
    assert found.verdict == "FAIL"
    assert failed(found) == {(measurement, last)}


@each("name", [name for name in FAULTY if BOXES[name].count == 8])
def test_a_link_of_a_board_that_is_down_fails(name: str) -> None:
    made = run(BOXES[name])

    def change(_check: str, due: object, value: float) -> float:
        measurement, component = getattr(due, "measurement", ""), getattr(due, "component", "")
        return 17.0 if (measurement, component) == ("nvlink_active", Gpu(5)) else value

    made.change = change
    assert failed(made.verdict()) == {("nvlink_active", Gpu(5))}


def test_peer_access_that_a_4090_claims_with_data_that_arrives_changed_fails() -> None:
    box = replace(BOXES["2x4090.toml"], p2p="ok")
    made = run(box)
    made.change = false_claim(made.made.checks)
    found = made.verdict()
    assert found.verdict == "FAIL"
    assert {
        ("p2p_supported", way) for way in (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)))
    } <= failed(found)
    assert {
        ("copy_own_p2p_miscompares", way) for way in (Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0)))
    } <= failed(found)
    assert ("copy_faults", GPUS) in failed(found)
    assert all(
        "p2p" in name or name == "copy_faults" or name.endswith("miscompares")
        for name, _ in failed(found)
    )
    claimed = run(box)
    claimed.change = lambda _check, due, value: 1.0 if due.measurement == "p2p_supported" else value
    assert {name for name, _ in failed(claimed.verdict())} == {"p2p_supported"}, (
        "the claim alone is enough"
    )
