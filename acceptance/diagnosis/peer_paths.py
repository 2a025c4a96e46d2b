"""Holds what a run says of each path between two GPUs together. Pure.

Topology, the driver's status of peer access, NVLinks, copies and collectives are sources that say
one thing about a path. Where two of them exclude each other, one is wrong or lies: that is a
contradiction. It is not counted where a measurement of its own already fails for the same cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Text, Values, english
from acceptance.core.parts import Component, Pair
from acceptance.core.verdict import Judgement
from acceptance.diagnosis.transports import PairLinks
from acceptance.machine.gpu import Gpu
from acceptance.machine.thresholds import thresholds

CONTRADICTIONS = "link_contradictions"
# Rates from one GPU to the other with peer access on, in GB/s.
COPIES = ("p2p_write", "copy_d2d_write", "copy_d2d_read")
COLLECTIVE, COLLECTIVE_OFF = "collective_send_receive", "collective_send_receive_p2p_off"
STAGED = "p2p_staged"
RATES = (*COPIES, STAGED, COLLECTIVE, COLLECTIVE_OFF)
# All measurements of a path by itself, in the order of the table.
OF_PATHS = (
    "p2p_supported",
    "gpu_path_differs",
    "p2p_gain",
    "collective_send_receive_ratio",
    "collective_send_receive_miscompares",
    "collective_send_receive_miscompares_p2p_off",
    "transport_faults",
    "transport_faults_p2p_off",
    "burn_peer_miscompares",
    "copy_own_p2p",
    *RATES,
)
# What each GPU counts of its links in the run: over NVLink, and over PCI Express.
NVLINK_ERRORS = ("gpu_nvlink_replays", "gpu_nvlink_crc_errors", "gpu_nvlink_recoveries")
PCIE_ERRORS = ("gpu_pcie_replays",)
# What a GPU's own failure explains of its paths.
_NVLINK_FAULTS = ("nvlink_active", "nvlink_speed")
_PCIE_LINK = ("gpu_link_gen", "gpu_link_width")
_PCIE_FAULTS = (*_PCIE_LINK, "copy_h2d", "copy_d2h")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sources that exclude each other.

    `explained` are measurements that fail by their own limit for the same cause.
    """

    why: Message
    explained: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PeerPath:
    """What a run says of the path from one GPU to another.

    `rates` are by measurement in GB/s, without those that were not measured. `failed` are the
    measurements of this path, and of the links of its two GPUs, that are outside their limits.
    `errors` is what both GPUs counted in the run on links of the kind that joins the two, None
    where neither did. `nvlink_gbs` is the rate of all
    NVLinks between the two in one direction, None where it is not known.
    """

    pair: Pair
    links: PairLinks
    rates: Mapping[str, float]
    failed: tuple[str, ...] = ()
    nvlink_gbs: float | None = None
    contradictions: tuple[Contradiction, ...] = ()
    errors: float | None = None

    @property
    def joined(self) -> str:
        """What joins the two, as in the matrix: "NV4", "PHB"; "-" where it is not known."""
        return f"NV{self.links.nvlinks}" if self.links.nvlinks else self.links.path or "-"

    @property
    def open(self) -> tuple[Contradiction, ...]:
        """The contradictions that no other measurement has said already."""
        return tuple(one for one in self.contradictions if not one.explained)


@dataclass(frozen=True, slots=True)
class _Figures:
    """Judgements of a run by measurement and component."""

    found: Mapping[tuple[str, Component], Sequence[Judgement]] = field(default_factory=dict)

    @classmethod
    def of(cls, judged: Iterable[Judgement]) -> _Figures:
        return cls(grouped(((one.due.measurement, one.due.component), one) for one in judged))

    def value(self, measurement: str, component: Component) -> float | None:
        """The lowest value; None where none was measured."""
        told = [one.value for one in self.found.get((measurement, component), ())]
        return min((value for value in told if value is not None), default=None)

    def fails(self, measurement: str, component: Component) -> bool:
        """Whether it is outside its limit, waived or not."""
        return any(
            finding.kind in ("fail", "waived") and finding.code != "skip_waived"
            for one in self.found.get((measurement, component), ())
            for finding in one.findings
        )


def paths(
    links: Mapping[Pair, PairLinks], due: Sequence[Gpu], judged: Iterable[Judgement]
) -> tuple[PeerPath, ...]:
    """Every path of `links`, with what the run measured on it and where its sources disagree."""
    figures, gpus = _Figures.of(judged), {gpu.name: gpu for gpu in due}
    plain = {
        pair: _measured(pair, one, figures, (gpus[pair.first], gpus[pair.second]))
        for pair, one in links.items()
    }
    return tuple(
        replace(
            one,
            contradictions=tuple(
                _Comparison(one, plain[Pair(pair.second, pair.first)], figures).contradictions()
            ),
        )
        for pair, one in plain.items()
    )


def _measured(pair: Pair, links: PairLinks, figures: _Figures, both: tuple[Gpu, Gpu]) -> PeerPath:
    """What was measured on a path, before it is compared."""
    counters = NVLINK_ERRORS if links.nvlinks else PCIE_ERRORS
    counted = [figures.value(name, end) for name in counters for end in pair.ends]
    known = [value for value in counted if value is not None]
    of_gpus = (*_NVLINK_FAULTS, *counters, *(() if links.nvlinks else _PCIE_LINK))
    failed = [name for name in OF_PATHS if figures.fails(name, pair)]
    failed += [name for name in of_gpus if any(figures.fails(name, end) for end in pair.ends)]
    return PeerPath(
        pair,
        links,
        {name: value for name in RATES if (value := figures.value(name, pair)) is not None},
        tuple(failed),
        _nvlink_gbs(*both, links),
        errors=sum(known) if known else None,
    )


def _nvlink_gbs(first: Gpu, second: Gpu, links: PairLinks) -> float | None:
    speeds = [link.speed_gbs for gpu in (first, second) for link in gpu.links if link.active]
    told = [speed for speed in speeds if speed is not None]
    return (
        links.nvlinks * min(told) if links.nvlinks and told and len(told) == len(speeds) else None
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A path beside the opposite one."""

    path: PeerPath
    back: PeerPath
    figures: _Figures

    def contradictions(self) -> Iterable[Contradiction]:
        yield from self._topology()
        yield from self._access()
        yield from self._nvlinks()
        yield from self._directions()

    def _said(self, of_path: Iterable[str], of_gpus: Iterable[str] = ()) -> tuple[str, ...]:
        """Which of these fail by their own limits, on the path both ways or on either GPU."""
        pair, figures = self.path.pair, self.figures
        ways = [
            name
            for name in of_path
            if figures.fails(name, pair) or figures.fails(name, self.back.pair)
        ]
        gpus = [name for name in of_gpus if any(figures.fails(name, end) for end in pair.ends)]
        return tuple(dict.fromkeys((*ways, *gpus)))

    def _host_gbs(self) -> float | None:
        """What host copies of the two cards' links reach from the first to the second."""
        told = [
            self.figures.value("copy_d2h", self.path.pair.first),
            self.figures.value("copy_h2d", self.path.pair.second),
        ]
        known = [value for value in told if value is not None]
        return min(known) if len(known) == len(told) else None

    def _topology(self) -> Iterable[Contradiction]:
        here, there = self.path.links, self.back.links
        if here.nvlinks < there.nvlinks:
            values: Values = {"here": here.nvlinks, "there": there.nvlinks}
            said = self._said(("gpu_path_differs",), _NVLINK_FAULTS)
            yield Contradiction(
                Message(
                    english(
                        "peers_links_differ", "{here} NVLinks lead there and {there} lead back"
                    ),
                    values,
                ),
                said,
            )
        if here.offered is False and there.offered:
            status: Values = {
                "read": here.p2p_read or "unknown",
                "write": here.p2p_write or "unknown",
            }
            yield Contradiction(
                Message(
                    english(
                        "peers_offered_one_way",
                        "the driver offers peer access back, and not there (read {read}, write "
                        "{write})",
                    ),
                    status,
                ),
                self._said(("p2p_supported",)),
            )

    def _access(self) -> Iterable[Contradiction]:
        """What the driver says of peer access beside what copies gain by it."""
        links, rates, edges = self.path.links, self.path.rates, thresholds().peer_path
        on, off = rates.get("p2p_write"), rates.get(STAGED)
        if on is None or off is None:
            return
        if links.offered is False and on >= edges.gain * off:
            status: Values = {
                "read": links.p2p_read or "unknown",
                "write": links.p2p_write or "unknown",
            }
            said = self._said(("p2p_supported", "transport_faults"))
            yield Contradiction(
                Message(
                    english(
                        "peers_refused_and_used",
                        "the driver offers no peer access (read {read}, write {write}), and "
                        "copies with it are far faster than without",
                    ),
                    status,
                ),
                said,
            )
        host = self._host_gbs()
        if links.nvlinks or not links.offered or host is None:
            return
        if on <= edges.no_gain * off and on < edges.host * host:
            said = self._said(("p2p_supported", "p2p_gain", "p2p_write"), _PCIE_FAULTS)
            yield Contradiction(
                Message(
                    english(
                        "peers_offered_without_gain",
                        "the driver offers peer access, and copies go through host memory: they "
                        "are no faster than with P2P off, and slower than the links of the two "
                        "cards",
                    )
                ),
                said,
            )

    def _nvlinks(self) -> Iterable[Contradiction]:
        """What NVLinks could carry beside what was carried."""
        path, most, edges = self.path, self.path.nvlink_gbs, thresholds().peer_path
        if most is None:
            return
        host, links = self._host_gbs(), path.links.nvlinks
        if host is not None and most >= 2 * host:
            slow = [
                name
                for name in (*COPIES, COLLECTIVE)
                if path.rates.get(name, most) <= edges.no_gain * host
            ]
            if slow:
                said = self._said((*slow, "p2p_gain", "transport_faults"), _NVLINK_FAULTS)
                values: Values = {"links": links, "rates": Listed(tuple(slow))}
                yield Contradiction(
                    Message(
                        english(
                            "peers_nvlink_unused",
                            "{links} NVLinks are up, and data goes at the rate of PCI Express "
                            "({rates})",
                        ),
                        values,
                    ),
                    said,
                )
                return
        copied, sent = path.rates.get("copy_d2d_write"), path.rates.get(COLLECTIVE)
        of_collectives = (COLLECTIVE, f"{COLLECTIVE}_ratio", "transport_faults")
        if copied is not None and sent is not None and sent < edges.collective * copied:
            said = self._said((*of_collectives, "copy_d2d_write"), _NVLINK_FAULTS)
            yield Contradiction(
                Message(
                    english(
                        "peers_collective_slow",
                        "NCCL sends far less over the NVLinks than copies reach",
                    )
                ),
                said,
            )
            return
        off = path.rates.get(COLLECTIVE_OFF)
        if sent is not None and off is not None and most >= 2 * off and sent <= edges.no_gain * off:
            said = self._said(of_collectives, _NVLINK_FAULTS)
            yield Contradiction(
                Message(
                    english(
                        "peers_collective_without_gain",
                        "{links} NVLinks are up, and NCCL sends no faster than with P2P off",
                    ),
                    {"links": links},
                ),
                said,
            )

    def _directions(self) -> Iterable[Contradiction]:
        """Both directions of one path, and two tools on one direction.

        Only with peer access: through host memory sound machines differ. Collectives go there
        beyond NCCL's reach, whatever the driver offers.
        """
        links, rates, edges = self.path.links, self.path.rates, thresholds().peer_path
        if not links.offered:
            return
        for name in (*COPIES, COLLECTIVE) if links.within_reach else COPIES:
            one, other = rates.get(name), self.back.rates.get(name)
            if one is not None and other is not None and one < edges.one_way * other:
                of_path: tuple[str, ...] = (
                    name,
                    "p2p_gain",
                    f"{COLLECTIVE}_ratio",
                    "transport_faults",
                )
                said = self._said(of_path, (*_NVLINK_FAULTS, *_PCIE_FAULTS))
                yield Contradiction(
                    Message(
                        english("peers_one_way_slow", "{name} is far slower this way than back"),
                        {"name": name},
                    ),
                    said,
                )
        sample, copied = rates.get("p2p_write"), rates.get("copy_d2d_write")
        if sample is not None and copied is not None:
            low, high = sorted((sample, copied))
            if low < edges.tools * high:
                of_path = ("p2p_write", "copy_d2d_write", "p2p_gain")
                yield Contradiction(
                    Message(
                        english(
                            "peers_tools_differ",
                            "p2pBandwidthLatencyTest and nvbandwidth differ widely on what a "
                            "write reaches",
                        )
                    ),
                    self._said(of_path),
                )


def note(path: PeerPath) -> Text | None:
    """What the path's sources contradict each other in; None where they do not.

    Contradictions that a measurement of its own has said stand last, with its name. Rates are left
    out: paths with the same trouble share a line of the reports, and the table has the rates.
    """
    told: list[Message] = [one.why for one in path.open]
    told += [
        Message(
            english("peers_said_by", "{why} (said by {names} already)"),
            {"why": one.why, "names": Listed(one.explained)},
        )
        for one in path.contradictions
        if one.explained
    ]
    return Message(english("clauses", "{why}"), {"why": tuple(told)}) if told else None
