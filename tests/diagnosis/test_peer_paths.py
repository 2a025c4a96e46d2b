"""Paths between GPUs: from where on two sources exclude each other, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cases import each
from gpu_machine import gpu, link

from acceptance.core.finding import Finding, FindingKind
from acceptance.core.message import Listed, Message
from acceptance.core.parts import Component, Gpu, Pair
from acceptance.core.plan import Due
from acceptance.core.verdict import Judgement
from acceptance.diagnosis import peer_paths
from acceptance.diagnosis.peer_paths import PeerPath, note, paths
from acceptance.diagnosis.transports import PairLinks
from acceptance.machine.inventory import NvLink
from acceptance.machine.thresholds import thresholds

NO_GAIN = thresholds().peer_path.no_gain

ONE, TWO = Gpu(0), Gpu(1)
THERE, BACK = Pair(ONE, TWO), Pair(TWO, ONE)
NVLINKS = PairLinks(4, "PHB", "ok", "ok")  # 100 GB/s
PCIE = PairLinks(0, "PHB", "ok", "ok")
REFUSED = PairLinks(0, "PHB", "no", None)
WIRED = tuple(link(number, to=1) for number in range(4))
Rates = Mapping[str, float]
WRITE, STAGED, COPIED, SENT = "p2p_write", "p2p_staged", "copy_d2d_write", "collective_send_receive"
OFF = "collective_send_receive_p2p_off"


def one(
    name: str, component: Component, value: float | None = None, kind: FindingKind | None = None
) -> Judgement:
    found = (Finding(kind, "a.check", "low"),) if kind else ()
    return Judgement(Due(name, component, "GB/s", (), ""), value, None, None, found)


def host(rate: float, other: float | None = None) -> tuple[Judgement, ...]:
    """What host copies reach from the first GPU to the second: out of one, into the other."""
    into = rate if other is None else other
    return one("copy_d2h", ONE, rate), one("copy_h2d", TWO, into)


def path(
    links: PairLinks,
    there: Rates | None = None,
    *more: Judgement,
    back: Rates | None = None,
    links_back: PairLinks | None = None,
    wired: tuple[tuple[NvLink, ...], tuple[NvLink, ...]] = (WIRED, WIRED),
) -> PeerPath:
    """The path from the first GPU to the second."""
    judged = [one(name, THERE, value) for name, value in (there or {}).items()]
    judged += [one(name, BACK, value) for name, value in (back or {}).items()]
    due = [gpu(number, links=own) for number, own in enumerate(wired)]
    both = {THERE: links, BACK: links_back or links}
    found = {told.pair: told for told in paths(both, due, [*judged, *more])}
    return found[THERE]


def codes(found: PeerPath) -> list[str]:
    return [told.why.code for told in found.contradictions]


UNUSED, ONLY_OFF = ["peers_nvlink_unused"], ["peers_collective_without_gain"]


@each(
    "links, there, judged, expected",
    (
        (REFUSED, {WRITE: 30.0, STAGED: 20.0}, (), ["peers_refused_and_used"]),
        (REFUSED, {WRITE: 29.9, STAGED: 20.0}, (), []),
        (REFUSED, {WRITE: 30.0}, (), []),
        (PCIE, {WRITE: NO_GAIN * 20.0, STAGED: 20.0}, host(40.0), ["peers_offered_without_gain"]),
        (PCIE, {WRITE: NO_GAIN * 20.0 + 0.1, STAGED: 20.0}, host(40.0), []),
        (PCIE, {WRITE: 0.7 * 40.0, STAGED: 28.0}, host(40.0), []),
        # the slower of the two cards' links counts
        (PCIE, {WRITE: 20.0, STAGED: 20.0}, host(25.0, 50.0), []),
        (NVLINKS, {WRITE: NO_GAIN * 50.0}, host(50.0), UNUSED),
        (NVLINKS, {"copy_d2d_read": 50.0}, host(50.0), UNUSED),
        (NVLINKS, {WRITE: NO_GAIN * 50.0 + 0.1}, host(50.0), []),
        (NVLINKS, {WRITE: 50.0}, host(50.1), []),
        (NVLINKS, {WRITE: 50.0}, (), []),
        (NVLINKS, {COPIED: 100.0, SENT: 39.9}, (), ["peers_collective_slow"]),
        (NVLINKS, {COPIED: 100.0, SENT: 40.0}, (), []),
        (NVLINKS, {SENT: NO_GAIN * 50.0, OFF: 50.0}, (), ONLY_OFF),
        (NVLINKS, {SENT: NO_GAIN * 50.0 + 0.1, OFF: 50.0}, (), []),
        (NVLINKS, {SENT: 50.0, OFF: 50.1}, (), []),
        (PCIE, {WRITE: 29.9, COPIED: 50.0}, (), ["peers_tools_differ"]),
        (PCIE, {WRITE: 30.0, COPIED: 50.0}, (), []),
    ),
)
def test_from_where_on_sources_exclude_each_other(
    links: PairLinks, there: Rates, judged: Sequence[Judgement], expected: list[str]
) -> None:
    assert codes(path(links, there, *judged)) == expected


def test_both_ways_of_a_path() -> None:
    assert codes(path(PCIE, {WRITE: 0.7 * 30.0}, back={WRITE: 30.0})) == []
    assert codes(path(PCIE, {WRITE: 20.9}, back={WRITE: 30.0})) == ["peers_one_way_slow"]
    for read, write in (("no", None), (None, "no")):
        (told,) = path(PairLinks(0, "PHB", read, write), links_back=PCIE).contradictions
        status = {"read": read or "unknown", "write": write or "unknown"}
        assert told.why == Message("peers_offered_one_way", status)


@each(
    "links, there, code, names",
    (
        (PCIE, {WRITE: 20.0, STAGED: 20.0}, "peers_offered_without_gain",
         ("gpu_link_gen", "gpu_link_width", "copy_h2d", "copy_d2h")),
        (NVLINKS, {WRITE: 40.0}, "peers_nvlink_unused", ("nvlink_active", "nvlink_speed")),
    ),
)  # fmt: skip
def test_what_either_gpu_fails_by_itself_explains_its_paths(
    links: PairLinks, there: Rates, code: str, names: tuple[str, ...]
) -> None:
    for name in names:
        for end in (ONE, TWO):
            found = path(links, there, *host(40.0), one(name, end, kind="fail"))
            assert codes(found) == [code]
            assert (found.contradictions[0].explained, found.open) == ((name,), ())


def test_a_failure_of_the_way_back_explains_too_and_a_waived_one() -> None:
    kinds: tuple[FindingKind, ...] = ("fail", "waived")
    for kind in kinds:
        for pair in (THERE, BACK):
            failed = one("p2p_gain", pair, kind=kind)
            (told,) = path(NVLINKS, {WRITE: 40.0}, *host(40.0), failed).contradictions
            assert told.explained == ("p2p_gain",)


def test_the_note_has_what_others_have_said_last() -> None:
    rates = {WRITE: 40.0}
    told = one("nvlink_active", TWO, kind="fail")
    fewer = PairLinks(2, "PHB", "ok", "ok")
    assert note(path(PCIE)) is None
    open_ones = path(NVLINKS, rates, *host(40.0))
    (why,) = (each_one.why for each_one in open_ones.contradictions)
    assert note(open_ones) == Message("clauses", {"why": (why,)})
    # half the links are up, and the copies both ways differ
    both = path(fewer, {COPIED: 20.0, WRITE: 45.0}, told, links_back=NVLINKS)
    links, tools = (each_one.why for each_one in both.contradictions)
    said = Message("peers_said_by", {"why": links, "names": Listed(("nvlink_active",))})
    assert note(both) == Message("clauses", {"why": (tools, said)})


OF_PATH = (
    "p2p_supported", "gpu_path_differs", "p2p_gain", "collective_send_receive_ratio",
    "collective_send_receive_miscompares", "collective_send_receive_miscompares_p2p_off",
    "transport_faults", "transport_faults_p2p_off", "burn_peer_miscompares", "copy_own_p2p",
    "p2p_write", "copy_d2d_write", "copy_d2d_read", "p2p_staged", "collective_send_receive",
    "collective_send_receive_p2p_off",
)  # fmt: skip
OVER_NVLINK = ("gpu_nvlink_replays", "gpu_nvlink_crc_errors", "gpu_nvlink_recoveries")
OVER_PCIE = ("gpu_pcie_replays",)


@each(
    "links, of_gpus",
    (
        (NVLINKS, ("nvlink_active", "nvlink_speed", *OVER_NVLINK)),
        (PCIE, ("nvlink_active", "nvlink_speed", *OVER_PCIE, "gpu_link_gen", "gpu_link_width")),
    ),
)
def test_what_fails_of_a_path_and_of_either_gpu(links: PairLinks, of_gpus: tuple[str, ...]) -> None:
    every = (*OVER_NVLINK, *OVER_PCIE, "gpu_link_gen", "gpu_link_width")
    for end in (ONE, TWO):
        failing = [one(name, THERE, kind="fail") for name in OF_PATH]
        failing += [one(name, end, kind="fail") for name in ("nvlink_active", "nvlink_speed")]
        failing += [one(name, end, kind="fail") for name in every]
        assert path(links, {}, *failing).failed == (*OF_PATH, *of_gpus)
    assert path(links).failed == ()


def test_what_both_gpus_counted_on_the_links_between_them() -> None:
    counted = [one(name, end, 2.0**n) for n, name in enumerate(OVER_NVLINK) for end in (ONE, TWO)]
    counted += [one("gpu_pcie_replays", ONE, 100.0)]
    assert path(NVLINKS, {}, *counted).errors == 14.0
    assert path(PCIE, {}, *counted).errors == 100.0
    assert path(PCIE).errors is None
    # of two values the lower one counts
    assert path(PCIE, {}, one(WRITE, THERE, 9.0), one(WRITE, THERE, 7.0)).rates == {WRITE: 7.0}


def test_the_rate_of_the_nvlinks_between_two() -> None:
    down, silent = (*WIRED, link(4, active=False)), (*WIRED, link(4, speed_gbs=None))
    slower = tuple(link(number, to=1, speed_gbs=14.0625) for number in range(4))
    assert path(NVLINKS, wired=(down, WIRED)).nvlink_gbs == 100.0
    assert path(NVLINKS, wired=(WIRED, slower)).nvlink_gbs == 56.25
    assert path(NVLINKS, wired=(silent, WIRED)).nvlink_gbs is None
    assert path(PCIE).nvlink_gbs is None
    assert [path(links).joined for links in (NVLINKS, PCIE)] == ["NV4", "PHB"]
    assert path(PairLinks(0, None, None, None)).joined == "-"
    assert (*peer_paths.OF_PATHS,) == OF_PATH
