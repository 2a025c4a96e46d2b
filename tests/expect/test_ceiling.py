"""Ceilings of plausibility: what is faster than link, memory or cores allow is an error; what
sound machines reach is not.
"""

from __future__ import annotations

import functools
import math

import pytest
from boxes import BOXES
from cases import each
from gpu_machine import device, link, machine, pairs
from hypothesis import given
from hypothesis import strategies as st
from journals import bodies, entries, without_siblings
from known import known
from msgspec.structs import replace
from published import CARDS, MORE, SUSTAINED
from synthetic_machines import inventory, planned
from thoroughness import ALL

from acceptance.core.finding import Waiver
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.parts import Core, Gpu, Pair
from acceptance.core.plan import Due, Plan
from acceptance.core.record import Body, Measured
from acceptance.expect import architecture, gpu_limits
from acceptance.expect.ceiling import gpu_ceilings, host_ceilings
from acceptance.expect.compute import ComputeFacts
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.sheet import Sheet
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.run import planning
from acceptance.wording import words

SHEETS = {one.name: one for one in gpu_limits.sheets()}
KNOWN = architecture.shipped()


@functools.cache
def plan(file: str) -> Plan:
    """The plan of a machine that ships, without what only a real one could show."""
    return replace(planned(BOXES[file], inventory(BOXES[file])), gaps=(), waivers=())


def limited(made: Plan) -> dict[str, Due]:
    """The first due measurement of each name that has a ceiling."""
    found: dict[str, Due] = {}
    for check in made.checks:
        for due in check.due:
            if due.ceiling is not None:
                found.setdefault(due.measurement, due)
    return found


@functools.cache
def alone(file: str, name: str) -> Plan:
    """The plan of the first check that owes a measurement with a ceiling, and of nothing else."""
    made = plan(file)
    return replace(
        made,
        checks=(
            next(one for one in made.checks if any(due.measurement == name for due in one.due)),
        ),
    )


def edge_of(ceiling: Limit) -> tuple[float, float]:
    """The bound of what is possible, and where beyond it lies."""
    if ceiling.high is not None:
        return ceiling.high, math.inf
    assert ceiling.low is not None
    return ceiling.low, -math.inf


# The plan of eight GPUs takes as long as all others, and has no ceiling that they have not.
FILES = ("2x3090ti-bridge.toml", "4090-7950x.toml", *(["8xh200.toml"] if ALL else []))


@functools.cache
def cases() -> list[tuple[str, str]]:
    return [(file, name) for file in FILES for name in limited(plan(file))]


@each("file, name", cases)
def test_above_its_ceiling_a_reading_leaves_the_run_unjudged(file: str, name: str) -> None:
    due = limited(plan(file))[name]
    assert due.ceiling is not None
    edge, beyond = edge_of(due.ceiling)
    key = (due.measurement, due.component)
    made = without_siblings(alone(file, name))
    assert fold(entries(bodies(made, {key: edge}))).verdict == "PASS"
    above = fold(entries(bodies(made, {key: math.nextafter(edge, beyond)})))
    assert above.verdict == "UNJUDGED"
    assert [(one.kind, one.measurement, one.component) for one in above.of_kind("error")] == [
        ("error", *key)
    ]
    assert "is possible: it proves nothing" in words.of(above.of_kind("error")[0])


def test_what_has_a_ceiling() -> None:
    """Every rate has one, every latency a floor: its own, or what its unit can be at best."""
    made = plan("8xh200.toml")
    rates = {
        one.measurement
        for check in made.checks
        for one in check.due
        if one.unit in ("GB/s", "TFLOP/s", "GFLOP/s", "Mtokens/s", "IOPS", "us", "ns")
        or one.measurement == "network_rate"
    }
    efficiencies = {"parallel_ddp_efficiency", "parallel_ddp_efficiency_p2p_off"}
    found = limited(made)
    assert set(found) == rates | {"vram_rate"} | efficiencies
    latencies = {name for name, one in found.items() if one.unit in ("us", "ns")}
    lows = {name for name, one in found.items() if one.ceiling and one.ceiling.low is not None}
    assert (
        lows
        == latencies
        == {
            "collective_latency",
            "collective_latency_p2p_off",
            "latency_host_device",
            "p2p_latency",
        }
    )
    # What its link, its memory or its cores allow comes before what the unit allows.
    general = {
        name for name, one in found.items() if one.ceiling and isinstance(one.ceiling.basis, str)
    }
    assert general - latencies == {
        "bandwidth_test_d2d", "memory_copy", "memory_triad", "memory_random",
        "stressapptest_copy", "parallel_ddp",
    }  # fmt: skip


@given(
    st.deferred(lambda: st.sampled_from(cases())),
    st.floats(min_value=1e-9, max_value=1e12),
    st.booleans(),
)
def test_no_value_above_its_ceiling_passes(
    case: tuple[str, str], beyond: float, waived: bool
) -> None:
    made = alone(*case)
    due = limited(made)[case[1]]
    assert due.ceiling is not None
    edge, side = edge_of(due.ceiling)
    value = edge * (1 + beyond) if side > 0 else edge / (1 + beyond)
    waivers = (
        (Waiver("known", measurement=due.measurement, component="*", worst=value),)
        if waived
        else ()
    )
    found = fold(
        entries(bodies(replace(made, waivers=waivers), {(due.measurement, due.component): value}))
    )
    assert found.verdict != "PASS"


def test_a_failure_beside_it_stays_a_failure() -> None:
    made = alone("2x3090ti-bridge.toml", "copy_h2d")
    low = {("copy_h2d", Gpu(0)): 1.0, ("copy_d2h", Gpu(0)): 1e6}
    assert fold(entries(bodies(made, low))).verdict == "FAIL"
    # The same measurement twice: slow once and impossible once.
    twice = list[Body](bodies(made, {("copy_h2d", Gpu(0)): 1.0}))
    place = next(
        n
        for n, one in enumerate(twice)
        if isinstance(one, Measured) and one.measurement == "copy_h2d"
    )
    first = twice[place]
    assert isinstance(first, Measured)
    twice.insert(place, replace(first, value=1e6))
    found = fold(entries(twice))
    assert found.verdict == "FAIL"
    assert found.of_kind("fail")
    assert found.of_kind("error")


# --- sound cards stay below, whatever clock the driver names ---


def card(one: Sheet, clock: float | None) -> ComputeFacts:
    memory = one.memory.pin_gbps * 500
    return ComputeFacts(
        Gpu(0),
        one.nvml_names[0],
        one.pci_ids[0],
        one.compute_capability,
        one.cuda_cores,
        clock,
        memory,
        one.memory.bus_bits,
    )


def seen(model: str | None = "NVIDIA H200", **changes: object) -> GpuFacts:
    given = {
        "name": "gpu0",
        "model": model,
        "device_id": "10de:2335",
        "compute_capability": "9.0",
        "memory_mib": None,
        "card_link_gen": 5,
        "card_link_width": 16,
        "slot_link_gen": None,
        "slot_link_width": None,
        "nvlink_active": 0,
        "nvlink_total": 0,
    }
    return GpuFacts(**{**given, **changes})  # type: ignore[arg-type]


def most(gpu: GpuFacts, one: ComputeFacts) -> dict[str, float]:
    found = gpu_ceilings([gpu], [one], tuple(SHEETS.values()), KNOWN)
    return {
        entry.measurement: float(entry.limit.high or 0)
        for entry in found
        if entry.limit is not None
    }


FIGURES = [
    *((name, what, value) for name, figures in CARDS.items() for what, value in figures.items()),
    *MORE,
    *SUSTAINED,
]


@each("name, what, value", FIGURES)
def test_what_sound_cards_reach_is_plausible(name: str, what: str, value: float) -> None:
    one = SHEETS[name]
    measurement = "copy_own_d2d" if what == "copy" else f"gemm_{what}_short"
    above = 1.2 if "GeForce" in name else 1.0  # the driver names a clock above the published one
    for clock in (one.nvml_max_sm_mhz or above * one.boost_mhz, None):
        found = most(seen(one.nvml_names[0], device_id=one.pci_ids[0]), card(one, clock))
        assert value <= 0.97 * found[measurement]


@each(
    "name, clock, what, low, high",
    [
        ("GeForce RTX 3090 Ti", 2100, "gpu_burn_float", 31.3, 91.0),
        ("GeForce RTX 3090 Ti", 2100, "gpu_burn_tensor", 55.35, 160.0),
        ("GeForce RTX 4090", 3105, "gpu_burn_tensor", 146.5, 300.0),
        (
            "GeForce RTX 4090",
            3105,
            "gemm_f8",
            320.0,
            1000.0,
        ),  # narrow accumulation doubles its published rate
        ("H200 SXM 141GB", 1980, "gpu_burn_double", 54.4, 134.0),
        ("H200 SXM 141GB", 1980, "copy_local", 2093.0, 4299.0),
        (
            "H20 96GB",
            1980,
            "gemm_f16",
            142.0,
            300.0,
        ),  # capped: what its cores could do counts for nothing
        (
            "A10",
            1695,
            "copy_own_d2d",
            640.7,
            700.0,
        ),  # DCGM's own figure, above the published bandwidth
    ],
)
def test_the_same_card_with_figures_that_are_too_good(
    name: str, clock: float, what: str, low: float, high: float
) -> None:
    one = SHEETS[name]
    assert (
        low < most(seen(one.nvml_names[0], device_id=one.pci_ids[0]), card(one, clock))[what] < high
    )


@pytest.mark.usefixtures("shares")
def test_a_card_without_a_sheet() -> None:
    def bare(capability: str | None, cores: int | None, clock: float | None) -> ComputeFacts:
        return ComputeFacts(Gpu(0), "NVIDIA X", "10de:ffff", capability, cores, clock, None, None)

    gpu = seen("NVIDIA X", device_id="10de:ffff", card_link_gen=9)
    assert most(gpu, bare("8.9", 1280, 2000))["gemm_f16"] == pytest.approx(
        1.1 * 10 * 2000 * 1024 / 1e6
    )
    unknown = most(gpu, bare("99.0", 1280, 2000))
    assert (
        unknown["gemm_f32"]
        == unknown["gpu_burn_float"]
        == pytest.approx(1.1 * 2 * 1280 * 2000 / 1e6)
    )
    assert set(unknown) == {"gemm_f32", "gemm_f32_short", "burn_f32", "gpu_burn_float", "vram_rate"}
    assert set(most(gpu, bare(None, None, None))) == {"vram_rate"}


# --- links ---


def ceiling(found: Inventory, measurement: str, component: str) -> float | None:
    names = tuple(gpu.name for gpu in gpus(found))
    held = (
        LimitBook()
        .under(gpu_limits.ceilings(found, names, gpu_limits.sheets()))
        .ceiling(measurement, component)
    )
    return held.high if held is not None else None


@pytest.mark.usefixtures("shares")
def test_the_host_link() -> None:
    assert (
        most(seen(slot_link_gen=4, slot_link_width=8), card(SHEETS["H200 SXM 141GB"], None))[
            "copy_h2d"
        ]
        < 16.1
    )
    assert most(seen(), card(SHEETS["H200 SXM 141GB"], None))[
        "copy_own_d2h_pageable"
    ] == pytest.approx(1.02 * 63.015, rel=1e-3)
    grace = SHEETS["GH200 96GB"]
    assert most(seen(grace.nvml_names[0], device_id=grace.pci_ids[0]), card(grace, None))[
        "copy_h2d"
    ] == pytest.approx(459)


def test_pairs() -> None:
    model = {"name": "NVIDIA GeForce RTX 3090 Ti"}
    bridged = machine(
        *(device(n, links=tuple(link(i, to=1 - n) for i in range(4)), **model) for n in (0, 1)),
        found=pairs(2),
    )
    bare = machine(device(0), device(1), found=pairs(2))
    assert (
        ceiling(bare, "p2p_write", Pair(Gpu(0), Gpu(1)))
        == ceiling(bare, "p2p_staged", Pair(Gpu(0), Gpu(1)))
        == ceiling(bare, "copy_h2d", Gpu(0))
    )
    # The card of the test tree has another PCI id, so no sheet tells how fast these links are.
    assert ceiling(bridged, "copy_d2d_read", Pair(Gpu(0), Gpu(1))) is None
    assert ceiling(bridged, "p2p_staged", Pair(Gpu(1), Gpu(0))) is not None


def test_without_nvml_nothing_is_said_of_pairs() -> None:
    two = (seen(nvlink_active=None), seen(name=Gpu(1)))
    cards = [card(SHEETS["H200 SXM 141GB"], None)] * 2
    found = {entry.measurement for entry in gpu_ceilings(two, cards, (), ())}
    assert "p2p_staged" in found
    assert "p2p_write" not in found
    dark = [seen(card_link_gen=None), seen(name=Gpu(1), card_link_gen=None)]
    assert "p2p_write" not in {entry.measurement for entry in gpu_ceilings(dark, cards, (), ())}


def test_in_a_vm_a_port_that_offers_less_than_the_link_carries_is_no_slot() -> None:
    from dataclasses import replace as changed

    real = machine(device(0))
    pci = tuple(
        changed(one, link_width=16, slot_max_link_speed_gts=2.5, slot_max_link_width=1)
        for one in real.pci
    )
    assert (
        ceiling(
            changed(real, pci=pci, cpu=changed(real.cpu, virtualised=False)), "copy_h2d", Gpu(0)
        )
        or 0
    ) < 1
    assert (
        ceiling(changed(real, pci=pci, cpu=changed(real.cpu, virtualised=True)), "copy_h2d", Gpu(0))
        or 0
    ) > 30


# --- the host ---


@pytest.mark.usefixtures("shares")
def test_processors_and_ram() -> None:
    found = {
        entry.measurement: entry for entry in host_ceilings(8, [Core(0)], [(3200, 64), (3200, 64)])
    }
    assert found["cpu_gemm_f64"].limit == Limit(
        "GFLOP/s", found["cpu_gemm_f64"].limit.basis, high=8 * 208
    )  # type: ignore[union-attr]
    assert found["memory_copy"].limit.high == pytest.approx(1.25 * 51.2)  # type: ignore[union-attr]
    assert found["cpu_gemm_core_f32"].component == Core(0)
    for modules in ([], [(3200, 64), (None, 64)], [(3200, None)]):
        assert "memory_copy" not in {entry.measurement for entry in host_ceilings(8, [], modules)}


def test_a_machine_files_own_limit_does_not_raise_a_ceiling() -> None:
    box = BOXES["2x4090.toml"]
    book = planning.book(None, None, inventory(box), (Gpu(0), Gpu(1)))
    own = book.after(
        [Override("copy_h2d", "override", Limit("GB/s", "mine", low=1.0, high=1e9), own=True)]
    )
    assert known(own.ceiling("copy_h2d", Gpu(1))) == book.ceiling("copy_h2d", Gpu(1))
    assert own.ceiling("gpu_count", "machine") is None
