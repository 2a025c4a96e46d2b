"""Limits and waivers of a machine file that could not fail: refused for every family."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases import each
from msgspec.structs import replace
from real_checks import collected
from refusal import assert_raises, raised
from thoroughness import ALL

from acceptance import resources
from acceptance.core.finding import Waiver
from acceptance.core.limit import Limit
from acceptance.core.message import Message, SetupError
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.expect import declaration, loosest, measurements, plan_builder
from acceptance.expect.collected import Measures, PlanError
from acceptance.expect.limit_book import LimitBook, Override, at_least, class_defaults, exactly
from acceptance.expect.loosest import Bounds, Loosest
from acceptance.expect.measurements import Measurement
from acceptance.machine.machine_file import (
    DeclaredDimm,
    DeclaredGpu,
    DeclaredGpuPair,
    DeclaredLink,
    DeclaredMemory,
    Machine,
)

SHIPPED = measurements.shipped()
OWN = Message("override_in", {"file": "box.toml"})
HUGE = 999_999.0


@functools.cache
def measured() -> frozenset[str]:
    return frozenset(one.name for check in collected() for one in check.measures)


def lint(*own: Override, derived: Sequence[Override] = ()) -> None:
    """As the plan does, over all checks and class defaults."""
    book = class_defaults(SHIPPED).after(derived).after(own)
    plan_builder.lint(collected(), book)


def own_limit(name: str, component: Component | None = None, **bounds: float) -> Override:
    limit = Limit(SHIPPED.by_name[name].unit, "b", **bounds)
    return Override(name, OWN, limit, component, own=True)


def waive(name: str, worst: float, book: LimitBook | None = None, component: str = "*") -> None:
    waiver = Waiver("r", measurement=name, component=component, worst=worst)
    plan_builder.lint_waivers(collected(), [waiver], "box.toml", book or class_defaults(SHIPPED))


def refused(*own: Override, derived: Sequence[Override] = ()) -> tuple[str | int, ...]:
    with pytest.raises(PlanError) as refusal:
        lint(*own, derived=derived)
    return refusal.value.place


# --- the families ---


def counts_faults(one: Measurement) -> bool:
    """Whether less of it is better, down to nothing: its limit is a ceiling on a count or a time,
    or a fact that must not differ."""
    limit = one.limit
    ceiling = limit is not None and limit.low is None and one.unit in ("count", "s")
    return one.waivable and (ceiling or one.name.endswith(("_differs", "_unequal")))


def test_each_count_of_faults_says_so() -> None:
    counts = {one.name for one in SHIPPED.by_name.values() if counts_faults(one)}
    assert {one.name for one in SHIPPED.by_name.values() if one.own.faults is not None} == counts
    assert len(counts) > 30


def test_each_shipped_limit_can_fail() -> None:
    for one in SHIPPED.by_name.values():
        limit = one.limit
        if limit is None:
            continue
        assert loosest.idle_bound(one.name, replace_warn(limit), one.own.possible) is None, one.name
        bounds = one.own.loosest
        if bounds is not None:
            assert limit.low is None or bounds.low is None or bounds.low <= limit.low, one.name
            assert limit.high is None or bounds.high is None or bounds.high >= limit.high, one.name


def replace_warn(limit: Limit) -> Limit:
    """Its deciding bounds: a warning may well be at the end of what can occur."""
    return Limit(limit.unit, limit.basis, limit.low, limit.high)


def test_each_ceiling_of_0_says_what_a_waiver_accepts() -> None:
    for one in SHIPPED.by_name.values():
        if one.waivable and one.limit is not None and one.limit.high == 0:
            assert one.own.faults is not None, one.name


@each(
    "one",
    [one for one in SHIPPED.by_name.values() if one.own.faults is not None],
    told=lambda one: one.name,
)
def test_a_count_of_faults_is_only_tightened(one: Measurement) -> None:
    if one.name not in measured() or one.limit is None or one.limit.high is None:
        return
    high, warn = one.limit.high, one.limit.warn_high
    for wrong in (HUGE, high + 1):
        assert refused(own_limit(one.name, high=wrong)) == ("limit", 0, "high"), one.name
    lint(own_limit(one.name, high=high, **({} if warn is None else {"warn_high": warn})))
    if warn is not None:
        assert refused(own_limit(one.name, high=high)) == ("limit", 0, "warn_high"), one.name
        lint(own_limit(one.name, high=warn))


@each(
    "one",
    [one for one in SHIPPED.by_name.values() if one.waivable and not one.fact],
    told=lambda one: one.name,
)
def test_no_limit_and_no_waiver_of_any_family_allows_everything(one: Measurement) -> None:
    """The least and the most that can occur, and all beyond, for one component and for all."""
    if one.name not in measured():
        return
    (least, most), limit = one.own.possible, one.limit
    for component in (None, Gpu(0)):
        if limit is None or limit.high is not None:
            for high in (most, 1e300) if ALL else (most,):
                assert refused(own_limit(one.name, component, high=high)), one.name
        if limit is None or limit.low is not None:
            for low in (least, least - 1) if ALL else (least,):
                assert refused(own_limit(one.name, component, low=low)), one.name
    if limit is None:
        return
    for worst in () if limit.low is None else (least, -1e9, min(0.0, least)):
        assert_raises(PlanError, waive, one.name, worst)
    for worst in () if limit.high is None else (most, HUGE, 1e300):
        assert_raises(PlanError, waive, one.name, worst)


@each(
    "name, bounds",
    [
        ("gpu_ecc_uncorrected", {"high": 1e6}),
        ("disk_faults", {"high": 1e6}),
        ("disk_growth", {"high": 1e6}),
        ("raid_faults", {"high": 1e6}),
        ("gpu_hw_thermal_slowdown", {"high": 1e6}),
        ("network_port_lost", {"high": 1e6}),
        ("network_port_lost", {"high": 1}),
        ("gpu_ecc_uncorrected", {"high": 0.5}),
        ("burn_bf16_ratio", {"low": 0.01}),
        ("burn_bf16_ratio", {"low": 0.44}),
        ("burn_bf16_ratio", {"low": 0.5, "high": 1e6}),
        ("cpu_temperature", {"high": 1000}),
        ("cpu_temperature", {"high": 111}),
        ("gpu_temperature_margin", {"low": -40}),
        ("disk_temperature_margin", {"low": -100}),
        ("gpu_temperature", {"high": 300}),
        ("storage_read", {"low": 1e-9}),
        ("gpu_link_width", {"low": 1}),
        ("gpu_link_gen", {"low": 1}),
        ("p2p_supported", {"high": 1}),
        ("disk_self_test_begun", {"high": 1}),
        ("gpu_power_cap", {"high": 1e6}),
        ("power_pulses_excursion", {"high": 50}),
        ("collective_latency", {"high": 1e6}),
        ("disk_link_share", {"low": 0.01}),
        ("vram_tested", {"low": 0.1}),
        ("disk_wear", {"high": 10}),
    ],
)
def test_a_limit_that_could_not_fail(name: str, bounds: dict[str, float]) -> None:
    assert refused(own_limit(name, **bounds))[:2] == ("limit", 0)
    assert_raises(
        PlanError, lint, own_limit("cpu_gemm_f64", low=100), own_limit(name, Gpu(1), **bounds)
    )


@each(
    "name, bounds",
    [
        ("cpu_gemm_core_ratio_f64", {"low": 0.5, "warn_low": 0.9}),
        ("cpu_temperature", {"high": 105, "warn_high": 100}),
        ("gpu_temperature_margin", {"low": 0}),
        ("disk_link_share", {"low": 0.25}),
        ("storage_read", {"low": 0.05}),
        ("gpu_link_width", {"low": 8}),
        ("p2p_supported", {"low": 1, "high": 1}),
        ("gpu_pcie_replays", {"high": 0}),
        ("gpu_power_cap", {"high": 600}),
        ("disk_wear", {"high": 1}),
    ],
)
def test_a_limit_of_the_machines_own(name: str, bounds: dict[str, float]) -> None:
    lint(own_limit(name, **bounds))


# --- in place of what is derived ---


def test_a_floor_in_place_of_a_derived_one_is_at_least_a_share_of_it() -> None:
    sheet = [Override("copy_own_d2d", "sheet", at_least(1000, "GB/s", "b"), Gpu(n)) for n in (0, 1)]
    lint(own_limit("copy_own_d2d", low=250), derived=sheet)
    assert refused(own_limit("copy_own_d2d", low=249), derived=sheet) == ("limit", 0, "low")
    assert refused(own_limit("copy_own_d2d", Gpu(1), low=249), derived=sheet)
    lint(own_limit("copy_own_d2d", Gpu(2), low=249), derived=sheet)


def test_a_limit_of_the_burn_is_held_against_the_sheets_not_against_ones_own() -> None:
    sheet = [
        Override(name, "sheet", at_least(1000, "TFLOP/s", "b"), Gpu(0))
        for name in ("gemm_bf16", "burn_bf16")
    ]
    own = own_limit("gemm_bf16", low=250)
    derived = Override("burn_bf16", OWN, at_least(245, "TFLOP/s", "b"))
    assert refused(own, own_limit("burn_bf16", low=100), derived=[derived, *sheet]) == (
        "limit",
        1,
        "low",
    )


def test_an_exact_limit_keeps_its_floor() -> None:
    sheet = [Override("gpu_sm_count", "sheet", exactly(132, "count", "b"), Gpu(0))]
    lint(own_limit("gpu_sm_count", low=130), derived=sheet)
    lint(own_limit("gpu_sm_count", low=130, high=132), derived=sheet)
    assert refused(own_limit("gpu_sm_count", high=200), derived=sheet) == ("limit", 0)


def test_a_limit_in_place_of_a_declared_fact() -> None:
    declared = Machine(schema=1, name="box", memory=DeclaredMemory(total_gib=64))
    facts = list(declaration.declared_limits(declared, "box.toml"))
    lint(own_limit("memory_total", low=60), derived=facts)
    assert refused(own_limit("memory_total", low=10), derived=facts) == ("limit", 0, "low")


@each(
    "machine, place",
    [
        (Machine(1, "b", gpu=(DeclaredGpu(link_gen=1),)), ("gpu", 0, "link_gen")),
        (Machine(1, "b", gpu=(DeclaredGpu(count=2, link_width=1),)), ("gpu", 0, "link_width")),
        (
            Machine(1, "b", gpu=(DeclaredGpu(count=2), DeclaredGpu(nvlink_links=0))),
            ("gpu", 1, "nvlink_links"),
        ),
        (
            Machine(1, "b", gpus=2, gpu_pair=(DeclaredGpuPair((0, 1), write_gbs=0.001),)),
            ("gpu_pair", 0, "write_gbs"),
        ),
        (
            Machine(1, "b", gpus=2, gpu_pair=(DeclaredGpuPair((0, 1), write_gbs=4),)),
            ("gpu_pair", 0, "write_gbs"),
        ),
        (Machine(1, "b", memory=DeclaredMemory(total_gib=1)), ("memory", "total_gib")),
        (
            Machine(1, "b", memory=DeclaredMemory(dimm=(DeclaredDimm("A1", rated_mts=1),))),
            ("memory", "dimm", 0, "rated_mts"),
        ),
        (
            Machine(1, "b", network=(DeclaredLink("a"), DeclaredLink("b", speed_mbps=1))),
            ("network", 1, "speed_mbps"),
        ),
    ],
)
def test_a_declared_fact_that_could_not_fail(
    machine: Machine, place: tuple[str | int, ...]
) -> None:
    derived = [
        Override("nvlink_active", "sheet", exactly(18, "count", "b"), Gpu(2)),
        Override("p2p_write", "links", at_least(45, "GB/s", "b"), Pair(Gpu(0), Gpu(1))),
    ]
    facts = declaration.declared_limits(machine, "box.toml")
    assert refused(derived=[*facts, *derived]) == place


def test_declared_facts_that_can_fail() -> None:
    machine = Machine(
        1,
        "b",
        gpu=(DeclaredGpu(count=2, link_gen=3, link_width=8, nvlink_links=0),),
        gpu_pair=(DeclaredGpuPair((0, 1), p2p=True, write_gbs=40),),
        memory=DeclaredMemory(total_gib=64),
    )
    derived = [
        Override("p2p_supported", "sheet", exactly(0, "count", "b"), Pair(Gpu(0), Gpu(1))),
        Override("p2p_write", "links", at_least(45, "GB/s", "b"), Pair(Gpu(0), Gpu(1))),
    ]
    lint(derived=[*declaration.declared_limits(machine, "box.toml"), *derived])


# --- waivers ---


@each(
    "name, worst",
    [
        ("gpu_ecc_uncorrected", 101),
        ("disk_faults", 1e6),
        ("raid_faults", 11),
        ("network_port_lost", 1),
        ("burn_power_short", 1),
        ("burn_bf16_ratio", 0.001),
        ("burn_bf16_ratio", 0.0),
        ("cpu_temperature", 1000),
        ("gpu_temperature_margin", -50),
        ("disk_temperature_margin", -11),
        ("gpu_remapped_uncorrected", 513),
        ("gpu_pcie_replays", 1e6),
        ("memory_copy", 0.4),
        ("kernel_differs", 1),
    ],
)
def test_a_waiver_that_would_excuse_anything(name: str, worst: float) -> None:
    derived = [
        Override("memory_copy", "derived", at_least(40, "GB/s", "b")),
        Override("kernel_differs", "declared", Limit("count", "b", high=0)),
    ]
    book = class_defaults(SHIPPED).after(derived)
    with pytest.raises(PlanError) as refusal:
        waive(name, worst, book)
    assert refusal.value.place == ("waiver", 0, "worst")


@each(
    "name, worst",
    [
        ("disk_faults", 1),
        ("gpu_ecc_uncorrected", 3),
        ("gpu_hw_thermal_slowdown", 5),
        ("burn_bf16_ratio", 0.85),
        ("cpu_temperature", 104),
        ("disk_temperature_margin", -3),
        ("disk_link_share", 0.25),
        ("gpu_pcie_replays", 200),
        ("power_step_excursion", 3),  # has no limit
        ("cpu_gemm_f64", 0.0),
    ],
)
def test_a_waiver_with_a_bound(name: str, worst: float) -> None:
    waive(name, worst)


def test_a_waiver_is_held_against_the_limits_of_its_components_alone() -> None:
    floors = [
        Override("copy_h2d", "slot", at_least(low, "GB/s", "b"), Gpu(n))
        for n, low in enumerate((10, 1000))
    ]
    book = class_defaults(SHIPPED).after(floors)
    waive("copy_h2d", 5, book, "gpu0")
    for component in ("gpu*", "gpu1", "*"):
        assert_raises(PlanError, waive, "copy_h2d", 5, book, component)


def test_a_waiver_of_a_count_whose_family_does_not_say_how_many() -> None:
    check = replace(
        collected()[0], id="site.x", measures=(Measures("site_errors", "count", "cpu"),)
    )
    book = LimitBook((Override("site_errors", "site", Limit("count", "b", high=0)),))
    for worst, right in ((10, True), (1e6, False)):
        waiver = Waiver("r", measurement="site_errors", component="cpu", worst=worst)
        if right:
            plan_builder.lint_waivers([check], [waiver], "box.toml", book)
            continue
        assert_raises(PlanError, plan_builder.lint_waivers, [check], [waiver], "box.toml", book)


def test_what_a_family_may_say() -> None:
    bounds = Bounds(possible=(0, 10), loosest=Loosest(basis="b", low=2))
    assert (bounds.loosest_low(5, 0.5), bounds.loosest_low(1, 0.5)) == (2, 1)
    assert (bounds.loosest_high(4, 0.5), bounds.loosest_high(0, 0.5)) == (8, 0)
    assert Bounds(possible=(0, 10)).loosest_low(-3, 0.5) == -3
    limit = Limit("W", "b", low=1)
    assert loosest.beyond(limit, bounds) is not None
    assert loosest.beyond(Limit("W", "b", high=9), bounds) is None
    assert loosest.beyond(limit, Bounds(possible=(0, 10))) is None
    assert "needs low, high, or both" in raised(ValueError, Loosest, basis="b")
    tight = Bounds(possible=(0, 10), faults=1)
    own = Limit("W", "b", low=3)
    assert loosest.looser("x", own, Limit("W", "b", low=4), tight) is not None
    assert loosest.looser("x", own, Limit("W", "b", low=3, warn_low=3), tight) is None
    assert loosest.looser("x", own, Limit("W", "b", low=2), tight) is None


@each(
    "old, new",
    [
        ('unit = "W"', 'unit = "watt"'),
        ('unit = "W"', 'unit = "us"'),
        ("[0, 86400]", "[86400, 0]"),
        ("share = 0.25", "share = 0"),
        ("basis", "reason"),
    ],
)
def test_a_wrong_file(tmp_path: Path, old: str, new: str) -> None:
    text = resources.locate(loosest.FILE).read_text(encoding="utf-8")
    (tmp_path / loosest.FILE).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert_raises(
        SetupError, resources.read, tmp_path / loosest.FILE, loosest.Book, match=loosest.FILE
    )
