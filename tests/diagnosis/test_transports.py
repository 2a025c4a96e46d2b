"""Transports held against links: what is healthy through host memory, and what never is."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from boxes import BOXES
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from synthetic_machines import SHEETS, inventory

from acceptance.core.message import Listed, Message, Values
from acceptance.core.parts import Gpu, Pair
from acceptance.diagnosis.transports import (
    AMD,
    Circumstances,
    Outcome,
    PairLinks,
    by_pair,
    judge,
    pair_links,
)
from acceptance.machine.gpu import gpus
from acceptance.machine.transport import Transport, TransportKind
from acceptance.wording import words

INTEL = "GenuineIntel"
THERE = Pair(Gpu(0), Gpu(1))
P2P = Transport("P2P", ("CUMEM",))
SHM = Transport("SHM", ("direct/direct",))
NET = Transport("NET", ("Socket/0",))
INDIRECT = Transport("indirect", ("indirect/2[2]",))

H200 = PairLinks(18, "NODE", "ok", "ok", "yes")
# Two cards whose driver offers peer access over PCI Express, such as RTX 6000 Ada.
PCIE = PairLinks(0, "NODE", "ok", "ok", "yes")
# GeForce: the driver offers none (4090), or only over a bridge that is not there (3090).
GEFORCE = PairLinks(0, "SYS", "chipset-not-supported", "chipset-not-supported", "no")
UNBRIDGED = replace(GEFORCE, model_p2p="bridge")
SILENT = PairLinks(0, "PHB", None, None)


def outcome(
    transport: Transport | None, links: PairLinks, around: Circumstances | None = None
) -> tuple[Outcome, str]:
    """Whether it fits, and the code that says why."""
    found = judge(
        {} if transport is None else {THERE: transport},
        {THERE: links},
        around or Circumstances(INTEL, 2),
    )[THERE]
    assert words.message(found.why)
    return found.outcome, found.why.code


@each(
    "transport, links, expected",
    (
        (P2P, H200, ("healthy", "transport_nvlink")),
        (SHM, H200, ("fault", "transport_nvlink_host")),
        (SHM, replace(H200, p2p_read=None), ("fault", "transport_nvlink_host")),
        (NET, H200, ("fault", "transport_net")),
        (INDIRECT, H200, ("fault", "transport_indirect_astray")),
        # one of eighteen links is up: how many are due is another check
        (P2P, replace(H200, nvlinks=1), ("healthy", "transport_nvlink")),
        (
            P2P,
            replace(H200, p2p_write="topology-not-supported"),
            ("fault", "transport_peer_refused"),
        ),
        (P2P, replace(H200, p2p_write=None), ("untold", "transport_peer_unknown")),
        (SHM, GEFORCE, ("healthy", "transport_host_refused")),
        (SHM, UNBRIDGED, ("healthy", "transport_host_refused")),
        (P2P, GEFORCE, ("fault", "transport_peer_refused")),
        (INDIRECT, GEFORCE, ("fault", "transport_indirect_astray")),
        (NET, GEFORCE, ("fault", "transport_net")),
        # a patched driver promises what the card may not do
        (
            P2P,
            replace(GEFORCE, p2p_read="ok", p2p_write="ok"),
            ("doubt", "transport_peer_of_model"),
        ),
        # without a sheet
        (P2P, PairLinks(0, "SYS", "ok", "ok"), ("healthy", "transport_peer_over_pcie")),
        (P2P, replace(H200, nvlinks=4, model_p2p="bridge"), ("healthy", "transport_nvlink")),
        (
            SHM,
            replace(GEFORCE, p2p_read=None, p2p_write="unknown"),
            ("healthy", "transport_host_of_model"),
        ),
        (SHM, SILENT, ("untold", "transport_host_unknown")),
        (P2P, SILENT, ("untold", "transport_peer_unknown")),
        (INDIRECT, PCIE, ("fault", "transport_indirect_astray")),
        (None, H200, ("unknown", "transport_missing")),
        (None, GEFORCE, ("unknown", "transport_missing")),
    ),
)
def test_what_joins_them_decides(
    transport: Transport | None, links: PairLinks, expected: tuple[Outcome, str]
) -> None:
    assert outcome(transport, links) == expected


def _reach() -> list[tuple[str | None, str | None, int, TransportKind, Outcome]]:
    """Vendor, path, GPUs, transport and outcome, for cards with peer access over PCI Express."""
    healthy: Outcome = "healthy"
    rows: list[tuple[str | None, str | None, int, TransportKind, Outcome]] = []
    for vendor in (INTEL, AMD, None):
        for path in ("INTERNAL", "PIX", "PXB", "PHB", "NODE", "SYS"):
            for count in (2, 3):
                within = path in ("INTERNAL", "PIX", "PXB") or (vendor == AMD and count == 2)
                rows.append((vendor, path, count, "SHM", "doubt" if within else healthy))
                rows.append((vendor, path, count, "P2P", healthy))
        rows.append((vendor, None, 2, "SHM", "untold"))
    return rows


@each("vendor, path, gpus, kind, expected", _reach)
def test_reach_of_peer_access(
    vendor: str | None, path: str | None, gpus: int, kind: TransportKind, expected: Outcome
) -> None:
    """Across a host bridge NCCL goes through host memory, except for two GPUs on AMD."""
    transport = P2P if kind == "P2P" else SHM
    around = Circumstances(vendor, gpus)
    assert outcome(transport, replace(PCIE, path=path), around)[0] == expected


@each("links", (H200, PCIE, GEFORCE, SILENT))
def test_control_without_peer_access(links: PairLinks) -> None:
    around = Circumstances(INTEL, 2, p2p_off=True)
    assert outcome(SHM, links, around) == ("healthy", "transport_host_as_asked")
    assert outcome(P2P, links, around) == ("fault", "transport_peer_though_off")
    assert outcome(INDIRECT, links, around) == ("fault", "transport_peer_though_off")
    assert outcome(NET, links, around) == ("fault", "transport_net")


PATCHED = replace(GEFORCE, p2p_read="ok", p2p_write="ok")
NEAR = replace(PCIE, path="PIX")


@each(
    "transport, links, off, values",
    (
        (P2P, H200, False, {**H200.told, "ways": Listed(P2P.ways)}),
        (P2P, PCIE, False, {**PCIE.told, "ways": Listed(P2P.ways)}),
        (P2P, GEFORCE, False, {**GEFORCE.told, "ways": Listed(P2P.ways)}),
        (P2P, SILENT, False, {"ways": Listed(P2P.ways)}),
        (P2P, PATCHED, False, {"ways": Listed(P2P.ways)}),
        (NET, H200, False, {"ways": Listed(NET.ways)}),
        (SHM, H200, True, {"ways": Listed(SHM.ways)}),
        (P2P, H200, True, {"ways": Listed(P2P.ways)}),
        (SHM, H200, False, {**H200.told, "causes": (Message("transport_cause_none"),)}),
        (SHM, NEAR, False, {**NEAR.told, "causes": (Message("transport_cause_none"),)}),
    ),
)
def test_what_a_judgement_says(
    transport: Transport, links: PairLinks, off: bool, values: Values
) -> None:
    around = Circumstances(INTEL, 2, p2p_off=off)
    assert judge({THERE: transport}, {THERE: links}, around)[THERE].why.values == values


def test_what_is_told_of_a_pair() -> None:
    assert H200.told == {"nvlinks": 18, "path": "NODE", "read": "ok", "write": "ok"}
    assert SILENT.told == {"path": "PHB", "read": "unknown", "write": "unknown"}


def test_causes() -> None:
    """All that the evidence says, the surest first; without any, what to look at."""

    def causes(links: PairLinks, around: Circumstances) -> list[str]:
        found = judge({THERE: SHM}, {THERE: links}, around)[THERE].why.values["causes"]
        assert isinstance(found, tuple)
        return [one.code for one in found if isinstance(one, Message)]

    refused = replace(H200, p2p_read="topology-not-supported")
    settings = {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_P2P_LEVEL": "LOC"}
    assert causes(H200, Circumstances(INTEL, 2)) == ["transport_cause_none"]
    assert causes(
        refused, Circumstances(INTEL, 2, environment=settings, disabled=frozenset({THERE}))
    ) == [
        "transport_cause_setting",
        "transport_cause_setting",
        "transport_cause_driver",
        "transport_cause_nccl",
    ]
    within = replace(PCIE, path="PIX")
    elsewhere = frozenset({Pair(Gpu(1), Gpu(0))})
    assert causes(within, Circumstances(INTEL, 2, disabled=elsewhere)) == ["transport_cause_none"]
    around = Circumstances(INTEL, 2, environment=settings)
    assert causes(within, around) == ["transport_cause_setting"] * 2
    told = words.message(judge({THERE: SHM}, {THERE: within}, around)[THERE].why)
    assert "NCCL_P2P_DISABLE=1" in told
    assert "NCCL_P2P_LEVEL=LOC" in told


def test_through_a_third_gpu() -> None:
    """Eight V100 have NVLinks to four others each; the rest is reached through one of these.

    The driver offers peer access to those four alone.
    """
    none = PairLinks(0, "SYS", "topology-not-supported", "topology-not-supported", "nvlink")
    some = PairLinks(1, "SYS", "ok", "ok", "nvlink")
    names = [Gpu(index) for index in range(3)]
    links = {Pair(a, b): none for a, b in permutations(names, 2)}
    ends = Pair(names[0], names[1])

    def found(*linked: tuple[int, int], leg: PairLinks = some) -> str:
        known = links | {Pair(Gpu(a), Gpu(b)): leg for a, b in linked}
        return judge({ends: INDIRECT}, known, Circumstances(INTEL, 3))[ends].outcome

    assert found((0, 2), (2, 1)) == "healthy"
    assert found((0, 2), (2, 1), leg=replace(some, p2p_read="not-supported")) == "fault"
    assert found((0, 2)) == "fault"
    assert found((2, 1)) == "fault"
    assert found((0, 2), (2, 1), (0, 1)) == "fault"


def test_a_pair_that_is_not_due() -> None:
    with pytest.raises(KeyError):
        judge({Pair(Gpu(1), Gpu(0)): P2P}, {THERE: H200}, Circumstances(INTEL, 2))


STATES = st.sampled_from(
    (None, "ok", "chipset-not-supported", "gpu-not-supported", "not-supported", "unknown")
)
LINKS = st.builds(
    PairLinks,
    st.integers(0, 18),
    st.sampled_from((None, "INTERNAL", "PIX", "PXB", "PHB", "NODE", "SYS", "?")),
    STATES,
    STATES,
    st.sampled_from((None, "yes", "no", "bridge", "nvlink")),
)
AROUND = st.builds(
    Circumstances, st.sampled_from((None, INTEL, AMD)), st.integers(2, 8), st.booleans()
)


@given(st.sampled_from((None, P2P, SHM, NET, INDIRECT)), LINKS, AROUND)
def test_never_healthy(
    transport: Transport | None, links: PairLinks, around: Circumstances
) -> None:
    """Whatever else is so: the network, NVLink through host memory, and peer access that the driver
    refuses.
    """
    found, _ = outcome(transport, links, around)
    refused = {links.p2p_read, links.p2p_write} - {"ok", "unknown", None}
    if transport is None:
        assert found == "unknown"
    elif transport is NET or (transport is not SHM and (refused or around.p2p_off)):
        assert found == "fault"
    elif transport is SHM and not around.p2p_off:
        assert (found == "fault") == bool(links.nvlinks)


# --- machines as they show themselves ---

SEVERAL = [name for name, box in sorted(BOXES.items()) if box.count > 1]


def healthy_transport(links: PairLinks) -> Transport:
    """What NCCL takes on Intel's processors."""
    near = links.path in ("INTERNAL", "PIX", "PXB")
    return P2P if links.offered and (links.nvlinks or near) else SHM


@each("name", SEVERAL)
def test_a_healthy_machine_and_one_that_goes_through_host_memory(name: str) -> None:
    seen = inventory(BOXES[name])
    due = gpus(seen)
    links = pair_links(seen, due, tuple(SHEETS.values()))
    assert len(links) == len(due) * (len(due) - 1)
    around = Circumstances(INTEL, len(due))
    by_address = {
        (a.pci_address, b.pci_address): healthy_transport(links[Pair(a.name, b.name)])
        for a, b in permutations(due, 2)
    }
    found = judge(by_pair(by_address, due), links, around)
    assert {one.outcome for one in found.values()} == {"healthy"}
    staged = judge(dict.fromkeys(links, SHM), links, around)
    linked = {pair for pair, one in links.items() if one.nvlinks}
    assert {pair for pair, one in staged.items() if one.outcome == "fault"} == linked
    direct = judge(dict.fromkeys(links, P2P), links, around)
    assert all(
        (direct[pair].outcome == "healthy") == (one.offered is True) for pair, one in links.items()
    )


def test_the_models_peer_access() -> None:
    """Of one model with a sheet; not of two models."""
    seen = inventory(BOXES["2x4090.toml"])
    due = gpus(seen)
    sheets = tuple(SHEETS.values())

    def models(*cards: object) -> list[str | None]:
        found = pair_links(seen, cards, sheets)  # type: ignore[arg-type]
        return [one.model_p2p for one in found.values()]

    assert models(*due) == ["no", "no"]
    other = replace(due[1], function=replace(due[1].function, device_id="10de:ffff"))
    assert models(due[0], other) == [None, None]


def test_a_gpu_that_nvml_does_not_know() -> None:
    seen = inventory(BOXES["2x4090.toml"])
    first, second = gpus(seen)
    lost = replace(second, device=None)
    links = pair_links(seen, (first, lost), ())
    assert set(links.values()) == {PairLinks(0, None, None, None)}
    with pytest.raises(KeyError):
        by_pair({("0000:ff:00.0", first.pci_address): P2P}, (first, lost))


def test_what_is_within_reach_of_peer_access() -> None:
    def reach(nvlinks: int, path: str) -> bool:
        return PairLinks(nvlinks, path, "ok", "ok").within_reach

    assert (reach(4, "SYS"), reach(0, "PIX"), reach(0, "SYS")) == (True, True, False)
