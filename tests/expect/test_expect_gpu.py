"""Limits derived from what GPUs show and from their sheets: healthy machines as published pass,
the same machines with one fault fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from known import known

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.expect import limit_book, sheet
from acceptance.expect.gpu import GpuFacts, PairFacts, gpu_limits
from acceptance.expect.limit_book import LimitBook
from acceptance.expect.sheet import Sheet
from acceptance.machine.pcie import data_rate
from acceptance.wording.words import text as told_of

SHEETS = sheet.read_all(resources.locate("models"))
BY_NAME = {one.name: one for one in SHEETS}


def seen(name: str, number: int = 0, /, **changed: object) -> GpuFacts:
    """A healthy GPU of a sheet's model in a slot that gives all it can take."""
    one = BY_NAME[name]
    links = (
        (one.nvlink.full(), one.nvlink.links)
        if one.nvlink and 0 not in one.nvlink.active
        else (0, 0)
    )
    gpu = GpuFacts(
        name=Gpu(number),
        model=one.nvml_names[0],
        device_id=one.pci_ids[0],
        compute_capability=one.compute_capability,
        memory_mib=int(one.memory.gib * 1024),
        card_link_gen=one.pcie_gen,
        card_link_width=one.pcie_width,
        slot_link_gen=one.pcie_gen,
        slot_link_width=one.pcie_width,
        nvlink_active=links[0],
        nvlink_total=links[1],
    )
    return replace(gpu, **changed)  # type: ignore[arg-type]


def pairs(count: int, nvlinks: int, p2p: str | None) -> list[PairFacts]:
    return [
        PairFacts(Gpu(a), Gpu(b), nvlinks, p2p)
        for a in range(count)
        for b in range(count)
        if a != b
    ]


def book(
    gpus: Sequence[GpuFacts], ways: Sequence[PairFacts] = (), sheets: Sequence[Sheet] = SHEETS
) -> LimitBook:
    entries = tuple(gpu_limits(gpus, ways, sheets))
    named = {(entry.measurement, entry.component) for entry in entries}
    assert len(named) == len(entries)
    assert all(component is not None for _, component in named)
    assert all((entry.limit is None) != (entry.unlimited is None) for entry in entries)
    return LimitBook(entries)


def held(found: LimitBook, measurement: str, component: Component = Gpu(0)) -> Limit:
    return known(known(found.find(measurement, component)).limit)


def unheld(found: LimitBook, measurement: str, component: Component = Gpu(0)) -> str:
    return told_of(known(known(found.find(measurement, component)).unlimited))


def assert_graded(
    found: LimitBook, component: Component = Gpu(0), **values: Mapping[float, str]
) -> None:
    """Each measurement's limit says this word of each of these values."""
    for measurement, words_ in values.items():
        limit = held(found, measurement, component)
        assert {value: limit.grade(value) for value in words_} == words_, measurement


# --- links and copies ---


@each(
    "model, gen, width, healthy",
    [
        ("V100 SXM2 16GB", 3, 16, (12.4, 13.2)),
        ("T4", 3, 8, (6.3, 6.6)),  # a cloud's T4, wired with eight lanes
        ("A100 SXM4 40GB", 4, 16, (25.9, 26.0, 25.92, 26.03, 26.1, 25.6)),
        ("H100 SXM5 80GB", 5, 16, (51.0, 52.0, 55.3, 55.6)),
        ("H200 SXM 141GB", 5, 16, (52.0, 55.50, 55.41, 55.3, 55.0, 55.4)),  # 1 x H200 in a VM
    ],
)
def test_published_copies_pass_and_no_lesser_link_reaches_the_floor(
    model: str, gen: int, width: int, healthy: tuple[float, ...]
) -> None:
    found = book([seen(model, slot_link_gen=gen, slot_link_width=width)])
    lesser = (data_rate(gen - 1, width), data_rate(gen, width // 2))
    slow = [
        *(value / 2 for value in healthy),
        *(known(rate)[0] for rate in lesser),
    ]  # half the lanes
    grades = {**dict.fromkeys(healthy, "pass"), **dict.fromkeys(slow, "fail")}
    assert_graded(found, **dict.fromkeys(limit_book.names("link"), grades))
    assert {held(found, name).unit for name in limit_book.names("link")} == {"GB/s"}


def test_every_copy_over_the_link_is_limited_by_it() -> None:
    """Each is measured by a program of its own: a copy without a limit could be any."""
    derived_ones = {
        one.measurement
        for one in book([seen("T4")]).entries
        if told_of(one.origin) == "derived from card and slot"
    }
    programs = ("bandwidth_test", "copy", "copy_own")
    copies = {f"{name}_{way}" for name in programs for way in ("d2h", "h2d")}
    assert derived_ones == {*copies, "gpu_link_gen", "gpu_link_width"}


@pytest.mark.usefixtures("shares")
def test_box_a_is_held_to_the_eight_lanes_that_it_has() -> None:
    """Two RTX 3090 Ti at Gen4 x8: half of what a card copies over sixteen lanes passes, and a
    quarter does not.
    """
    found = book([seen("GeForce RTX 3090 Ti", slot_link_width=8)])
    assert held(found, "copy_h2d").low == 0.75 * 16 * 8 * 128 / 130 / 8
    assert_graded(found, copy_h2d={26.0 / 2: "pass", 26.0 / 4: "fail"})
    width, copies = held(found, "gpu_link_width"), told_of(held(found, "copy_h2d").basis)
    assert (width.unit, width.low, width.high) == ("count", 8, None)
    told = "under load: the slot offers x8, the card x16: the slot limits"
    assert told_of(width.basis) == told
    assert copies.startswith("0.75 x 15.8 GB/s = 0.75 x 16 GT/s x 8 lanes x 128/130 / 8; card and")


def test_box_e_shows_no_slot() -> None:
    hidden: dict[str, Any] = {"slot_link_gen": None, "slot_link_width": None}
    found = book([seen("H200 SXM 141GB", **hidden, nvlink_active=0, nvlink_total=0)])
    assert held(found, "gpu_link_gen").low == 5
    assert "a VM withholds it" in told_of(held(found, "gpu_link_width").basis)
    assert_graded(found, gpu_sm_count={132: "pass"}, gpu_memory_total={143771 / 1024: "pass"})
    # the driver lists none there, so there is nothing to judge
    assert not any(found.find(f"nvlink_{name}", Gpu(0)) for name in ("active", "speed"))


@given(
    st.integers(1, 7),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.integers(1, 7),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_a_link_below_the_lesser_side_fails(
    card_gen: int, card: int, slot_gen: int, slot: int
) -> None:
    gpu = seen(
        "T4",
        card_link_gen=card_gen,
        card_link_width=card,
        slot_link_gen=slot_gen,
        slot_link_width=slot,
    )
    found = book([gpu])
    gen, width = min(card_gen, slot_gen), min(card, slot)
    assert_graded(
        found,
        gpu_link_gen={gen: "pass", gen - 1: "fail"},
        gpu_link_width={width: "pass", width / 2: "fail"},
    )
    whole = known(data_rate(gen, width))
    assert held(found, "copy_h2d").grade(whole[0]) == "pass"
    for lesser in (data_rate(gen - 1, width), data_rate(gen, width // 2)):
        assert lesser is None or held(found, "copy_d2h").grade(lesser[0]) == "fail"


def test_what_neither_side_shows_is_not_guessed() -> None:
    found = book([seen("T4", card_link_gen=None, slot_link_gen=None)])
    assert unheld(found, "gpu_link_gen").startswith("neither card nor slot shows what it can do")
    assert held(found, "gpu_link_width").low == 16
    assert "generation and width are not both known" in unheld(found, "copy_h2d")
    for more in (
        {"card_link_width": None, "slot_link_width": None},
        {"card_link_gen": 9, "slot_link_gen": 9},
    ):
        assert unheld(book([seen("T4", **more)]), "bandwidth_test_h2d")


# --- NVLink of one GPU ---


@each("one", [one for one in SHEETS if one.nvlink], told=lambda one: one.name)
def test_one_link_less_or_half_its_speed_fails(one: Sheet) -> None:
    full, speed = one.nvlink.full(), one.nvlink.link_gbs
    # without a switch those of a whole card alone
    for active in range(full if one.p2p == "nvlink" else 1, full + 1):
        links = {"nvlink_active": active, "nvlink_total": one.nvlink.links}
        found = book([seen(one.name, n, **links) for n in (0, 1)])
        assert (held(found, "nvlink_active").low, held(found, "nvlink_active").high) == (full, full)
        assert_graded(
            found,
            nvlink_active={full: "pass", full - 1: "fail"},
            nvlink_speed={speed: "pass", speed / 2: "fail"},
        )


def whole(model: str) -> LimitBook:
    """A card of this model with all its NVLinks."""
    links = known(BY_NAME[model].nvlink)
    return book([seen(model, nvlink_active=links.full(), nvlink_total=links.links)])


@each(
    "model, told",
    [
        ("RTX A6000", "an RTX A6000 has 4 of its 4 NVLinks active once it is bridged; nvlink_"),
        ("A100 SXM4 80GB", "an A100 SXM4 80GB has 12 of its 12 NVLinks active on its board; nvli"),
    ],
)
def test_the_basis_says_what_the_links_lead_over(model: str, told: str) -> None:
    entry = known(whole(model).find("nvlink_active", Gpu(0)))
    assert told_of(known(entry.limit).basis).startswith(told)
    assert told_of(entry.origin) == f"sheet of {model}"


@each(
    "model, reported",
    [
        ("V100 SXM2 16GB", 25.781),
        ("A100 SXM4 80GB", 25.0),
        ("A100 SXM4 80GB", 25.781),
        ("RTX A6000", 14.062),
        ("H100 PCIe 80GB", 26.562),
        ("H100 SXM5 80GB", 26.562),
        ("B300 SXM6 288GB", 53.125),
    ],
)
def test_speeds_that_drivers_report_pass(model: str, reported: float) -> None:
    assert_graded(whole(model), nvlink_speed={reported: "pass"})


def test_a_card_without_its_bridge_is_not_at_fault() -> None:
    """Three RTX A6000 of which two are bridged."""
    found = book(
        [
            seen("RTX A6000", n, nvlink_active=active, nvlink_total=4)
            for n, active in enumerate((4, 4, 0))
        ]
    )
    assert held(found, "nvlink_active", Gpu(1)).low == 4
    assert "no bridge is seen" in unheld(found, "nvlink_active", Gpu(2))
    assert found.find("nvlink_speed", "gpu2") is None


def test_a_board_that_lost_its_links_fails_and_one_gpu_alone_is_not_judged() -> None:
    dark = [seen("H100 SXM5 80GB", n, nvlink_active=0, nvlink_total=18) for n in range(2)]
    assert held(book(dark), "nvlink_active").grade(0) == "fail"
    unlisted = [replace(gpu, nvlink_active=None, nvlink_total=None) for gpu in dark]
    assert held(book(unlisted), "nvlink_active").low == 18
    assert "one GPU alone" in unheld(book(dark[:1]), "nvlink_active")


def test_links_of_unknown_models_are_recorded_only() -> None:
    stranger = seen("A30", model="NVIDIA Z9", nvlink_active=2, nvlink_total=4)
    found = book([stranger])
    reason = "no model sheet is that of NVIDIA Z9 with PCI id 10de:20b7"
    for name in ("nvlink_active", "nvlink_speed", "gpu_sm_count", "gpu_memory_total"):
        assert unheld(found, name).startswith(reason)
    assert held(found, "copy_h2d")
    nameless = book([replace(stranger, model=None, device_id="10de:ffff")])
    assert unheld(nameless, "gpu_sm_count").startswith("no model sheet is that of 10de:ffff with")
    odd = book([seen("L4", nvlink_active=2, nvlink_total=2)])
    for name in ("nvlink_active", "nvlink_speed"):
        assert "knows of no NVLink" in unheld(odd, name)
    assert book([seen("L4")]).find("nvlink_active", Gpu(0)) is None


# --- facts of one GPU ---


@each(
    "model, mib",
    [
        ("GeForce RTX 5090", 32607),
        ("RTX PRO 6000 Blackwell Max-Q", 97887),
        ("T4", 15360),
        ("L4", 23034),
        ("A40", 46068),
        ("H100 SXM5 80GB", 81559),
        ("H100 NVL 94GB", 95830),
        ("H200 SXM 141GB", 143771),
        ("GH200 96GB", 97871),
        ("B300 SXM6 288GB", 275040),
        ("GB200 186GB", 189471),
    ],
)
def test_memory_as_drivers_show_it_passes(model: str, mib: int) -> None:
    gib = mib / 1024
    assert_graded(book([seen(model)]), gpu_memory_total={gib: "pass", gib * 11 / 12: "fail"})


@each("one", SHEETS, told=lambda one: one.name)
def test_another_number_of_multiprocessors_fails(one: Sheet) -> None:
    grades = {one.sm - 1: "fail", one.sm: "pass", one.sm + 1: "fail"}
    assert_graded(book([seen(one.name)]), gpu_sm_count=grades)


def test_a_doubtful_fact_limits_nothing() -> None:
    told = {"sm": "144 or 148", "memory": "96 or 80", "nvlink": "12 or 18", "p2p": "not tried"}
    one = msgspec.structs.replace(BY_NAME["H100 SXM5 80GB"], doubtful=told)
    found = book([seen(one.name, 0), seen(one.name, 1)], pairs(2, 18, "ok"), [one])
    assert "(not tried)" in unheld(found, "p2p_supported", WAY)
    names = {"sm": "gpu_sm_count", "memory": "gpu_memory_total", "nvlink": "nvlink_active"}
    for key, name in names.items():
        assert f"({told[key]})" in unheld(found, name)
        assert told_of(known(found.find(name, Gpu(0))).origin) == "sheet of H100 SXM5 80GB"


WAY, BACK = Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))


# --- pairs ---


def test_box_a_over_its_bridge() -> None:
    gpus = [
        seen("GeForce RTX 3090 Ti", n, slot_link_width=8, nvlink_active=4, nvlink_total=4)
        for n in range(2)
    ]
    found = book(gpus, pairs(2, 4, "ok"))
    for way, on, off in ((WAY, 52.77, 6.23), (BACK, 52.89, 6.23)):
        assert_graded(
            found,
            way,
            p2p_supported={1: "pass", 0: "fail"},
            p2p_gain={on / off: "pass", 1.0: "fail"},
            p2p_write={on: "pass", on / 2: "fail"},  # two of four links
        )
    apart = book([replace(gpu, nvlink_active=0) for gpu in gpus], pairs(2, 0, "not-supported"))
    assert_graded(apart, WAY, p2p_supported={1: "fail", 0: "pass"})
    assert "no bridge is seen" in unheld(apart, "nvlink_active")
    assert "NVLinks are not known" in unheld(book(gpus), "p2p_supported", WAY)


def test_box_b_has_no_peer_access_and_is_suspect_if_it_says_so() -> None:
    found = book(
        [seen("GeForce RTX 4090", n) for n in range(2)], pairs(2, 0, "chipset-not-supported")
    )
    for way, on, off in (
        (WAY, 22.43, 21.89),
        (BACK, 22.50, 22.46),
    ):
        assert_graded(
            found,
            way,
            p2p_supported={0: "pass", 1: "fail"},
            p2p_gain={on / off: "pass", 0.5: "fail"},
        )
        assert "without NVLink" in unheld(found, "p2p_write", way)
    basis = told_of(held(found, "p2p_supported", WAY).basis)
    assert "early drivers advertised it there and delivered wrong data" in basis
    assert "`p2p = true`" in basis
    assert "so on equals off" in told_of(held(found, "p2p_gain", WAY).basis)


@each(
    "model, count, links, on, off",
    [
        # least of all ways with P2P on, most with P2P off, as p2pBandwidthLatencyTest printed them
        ("A100 SXM4 80GB", 8, 12, 269.59, 20.53),
        ("H100 SXM5 80GB", 8, 18, 365.30, 38.40),
        ("A100 PCIe 80GB", 2, 12, 274.11, 21.80),
    ],
)
def test_published_nvlink_machines_pass(
    model: str, count: int, links: int, on: float, off: float
) -> None:
    gpus = [seen(model, n, nvlink_active=links, nvlink_total=links) for n in range(count)]
    found = book(gpus, pairs(count, links, "ok"))
    for facts in pairs(count, links, "ok"):
        assert_graded(
            found,
            Pair(facts.a, facts.b),
            p2p_write={on: "pass", on / 2: "fail"},
            p2p_gain={on / off: "pass", 1.0: "fail"},
            p2p_supported={1: "pass", 0: "fail"},
        )


@pytest.mark.usefixtures("shares")
def test_pairs_over_pci_express() -> None:
    found = book([seen("RTX 6000 Ada Generation", n) for n in range(2)], pairs(2, 0, "ok"))
    supported = held(found, "p2p_supported", WAY)
    assert (supported.low, "`p2p = false`" in told_of(supported.basis)) == (1, True)
    assert "no slower" in told_of(held(found, "p2p_gain", WAY).basis)
    silent = book([seen("T4", n) for n in range(2)])
    assert [held(silent, f"p2p_{name}", BACK).low for name in ("supported", "gain")] == [1, 0.9]


def test_in_a_virtual_machine_its_host_decides_what_no_nvlink_does() -> None:
    gpus = [seen("A100 PCIe 80GB", n) for n in range(4)]
    way, bridged = Pair(Gpu(0), Gpu(2)), Pair(Gpu(0), Gpu(1))
    found = book(
        gpus,
        [
            PairFacts(Gpu(0), Gpu(1), 12, "ok", virtual=True),
            PairFacts(Gpu(0), Gpu(2), 0, "chipset-not-supported", virtual=True),
        ],
    )
    assert "the host of this virtual machine decides" in unheld(found, "p2p_supported", way)
    assert held(found, "p2p_supported", bridged).grade(0) == "fail"


def test_cards_that_are_wired_to_each_other_without_a_switch() -> None:
    """V100 SXM2: peer access is due where NVLinks are, and six of them where one card has six. One
    link gains enough: 25 GB/s beside 12 GB/s that a copy through the host reaches at most.
    """
    gpus = [seen("V100 SXM2 16GB", n) for n in range(3)]
    other = Pair(Gpu(0), Gpu(2))
    found = book(
        gpus, [PairFacts(Gpu(0), Gpu(1), 1, "ok"), PairFacts(Gpu(0), Gpu(2), 0, "not-supported")]
    )
    gains = {25 / 12: "pass", 2.0: "pass", 1.99: "fail", 1.0: "fail"}
    assert_graded(found, WAY, p2p_supported={0: "fail"}, p2p_gain=gains)
    assert "two V100 SXM2 16GB have peer-to-peer" in told_of(
        held(found, "p2p_supported", WAY).basis
    )
    why = "without NVLinks between them the board and its processors decide whether two V100 SXM2"
    assert why in unheld(found, "p2p_supported", other)
    assert why in unheld(book(gpus), "p2p_supported", WAY)

    def active(*counts: int) -> LimitBook:
        return book([replace(gpu, nvlink_active=n) for gpu, n in zip(gpus, counts, strict=False)])

    assert "more than 1 of its 6" in unheld(active(1, 1, 1), "nvlink_active")
    assert "has more than 5 of its 6 NVLinks active" in unheld(active(5, 5, 5), "nvlink_active")
    for counts, gpu, count in (((6, 5), 1, 5), ((5, 6), 0, 5), ((0, 0, 0), 0, 0)):
        assert held(active(*counts), "nvlink_active", Gpu(gpu)).grade(count) == "fail"
    mixed = [replace(gpus[0], nvlink_active=5), seen("A100 SXM4 80GB", 1)]
    assert "more than 5" in unheld(book(mixed), "nvlink_active")  # whose twelve are no equal's


@pytest.mark.usefixtures("shares")
def test_a_basis_says_what_it_is_made_of() -> None:
    gpus = [seen("GeForce RTX 3090 Ti", n, nvlink_active=4, nvlink_total=4) for n in (0, 1)]
    joined, apart = book(gpus, pairs(2, 4, "ok")), book(gpus, pairs(2, 0, "not-supported"))
    way = Pair(Gpu(0), Gpu(1))
    over = "a GeForce RTX 3090 Ti has peer-to-peer access over an NVLink bridge only"
    basis = {
        name: told_of(held(joined, name, part).basis)
        for name, part in (
            ("p2p_supported", way),
            ("p2p_gain", way),
            ("p2p_write", way),
            ("nvlink_speed", Gpu(0)),
            ("gpu_sm_count", Gpu(0)),
            ("gpu_memory_total", Gpu(0)),
        )
    }
    assert basis == {
        "p2p_supported": f"{over}, and there is one",
        "p2p_gain": "2 x: over 4 NVLinks a copy is far faster than through the host",
        "p2p_write": (
            "0.65 x 4 NVLinks x 14.0625 GB/s; healthy pairs reach 0.81 to 0.94 of the rate"
        ),
        "nvlink_speed": (
            "0.98 x 14.0625 GB/s, one link of NVLink 3 in one direction (sheet of "
            "GeForce RTX 3090 Ti)"
        ),
        "gpu_sm_count": "a GeForce RTX 3090 Ti has 84 multiprocessors",
        "gpu_memory_total": (
            "0.93 x 24 GiB of a GeForce RTX 3090 Ti; ECC and the driver keep up to 6.5 %"
        ),
    }
    assert told_of(held(apart, "p2p_supported", way).basis) == f"{over}, and none is seen"
    two = book([gpus[0], seen("RTX A6000", 1)], pairs(2, 0, "ok"))
    assert unheld(two, "p2p_supported", way) == (
        "two models, GeForce RTX 3090 Ti and RTX A6000, are not known to reach each other: "
        "declare p2p in a [[gpu_pair]] of the machine file"
    )


def test_two_models_are_not_known_to_reach_each_other_but_a_no_is_a_no() -> None:
    """A patched driver grants it: the machine file has to say so."""
    workstation = seen("RTX PRO 6000 Blackwell Workstation", 0)
    stranger = seen("RTX A6000", 1, model="NVIDIA Z9")
    found = book([workstation, seen("GeForce RTX 5090", 1)], pairs(2, 0, "ok"))
    beside = book([seen("GeForce RTX 4090", 0), stranger])
    for one, way in ((found, WAY), (found, BACK), (beside, BACK)):
        assert held(one, "p2p_supported", way).high == 0
    two = book([workstation, seen("RTX A6000", 1)], pairs(2, 0, "ok"))
    assert "two models" in unheld(two, "p2p_supported", WAY)
    assert "gpu1 (NVIDIA Z9)" in unheld(book([workstation, stranger]), "p2p_supported", BACK)


@pytest.mark.usefixtures("shares")
def test_links_to_a_model_without_a_sheet_go_by_the_other() -> None:
    """And links between two models are as fast as the slower one."""
    one = seen("RTX A6000", 0, nvlink_active=4, nvlink_total=4)
    strangers = [replace(one, name=Gpu(n), model="NVIDIA Z9") for n in (1, 2)]
    found = book([one, *strangers], pairs(3, 4, "ok"))
    for name in ("p2p_write", "copy_d2d_read", "copy_d2d_write", "copy_own_p2p"):
        assert held(found, name, WAY).low == 0.65 * 4 * 14.0625
    assert "no model sheet says how fast" in unheld(found, "p2p_write", Pair(Gpu(1), Gpu(2)))
    for models in (("RTX A6000", "A30"), ("A30", "RTX A6000")):
        found = book([seen(model, n) for n, model in enumerate(models)], pairs(2, 4, "ok"))
        assert held(found, "p2p_write", WAY).low == 0.65 * 4 * 14.0625


# --- every limit there can be ---

words = st.sampled_from([None, "ok", "chipset-not-supported", "unknown"])
counts = st.none() | st.integers(0, 18)
gens, widths = st.none() | st.integers(1, 8), st.none() | st.sampled_from([1, 2, 4, 8, 12, 16])
models = st.sampled_from(SHEETS)


@st.composite
def machines(draw: st.DrawFn) -> tuple[list[GpuFacts], list[PairFacts]]:
    one = draw(models)
    gpus = []
    for number in range(draw(st.integers(1, 3))):
        other = one if draw(st.booleans()) else draw(models)
        gpus.append(
            seen(
                other.name,
                number,
                model=draw(st.sampled_from([None, other.nvml_names[0], "NVIDIA Z9"])),
                card_link_gen=draw(gens),
                slot_link_gen=draw(gens),
                card_link_width=draw(widths),
                slot_link_width=draw(widths),
                nvlink_active=draw(counts),
                nvlink_total=draw(counts),
            )
        )
    links = draw(st.integers(0, 18))
    ways = [
        replace(pair, p2p=draw(words))
        for pair in pairs(len(gpus), links, None)
        if draw(st.booleans())
    ]
    return gpus, ways


@given(machines())
def test_every_limit_can_fail_and_says_where_it_is_from(
    machine: tuple[list[GpuFacts], list[PairFacts]],
) -> None:
    gpus, ways = machine
    names = {gpu.name for gpu in gpus}
    for entry in book(gpus, ways).entries:
        assert set(known(entry.component).ends) <= names
        assert (bool(entry.origin), entry.own) == (True, False)
        if entry.limit is None:
            continue
        low, high = entry.limit.low, entry.limit.high
        fails = [math.nan, math.nextafter(low, -math.inf), *([] if high is None else [high + 1])]
        assert [entry.limit.grade(value) for value in (low, *fails)] == [
            "pass",
            *["fail"] * len(fails),
        ]
        assert low > 0 or high == 0
