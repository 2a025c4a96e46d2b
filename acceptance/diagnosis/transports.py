"""Holds the transports that NCCL chose against the links that the GPUs have.

NCCL's rules, from its documentation (NCCL_P2P_LEVEL) and its public source (src/graph/paths.cc):

- NVLink is taken where there is one.
- Peer access over PCI Express is taken where the driver offers it and both are within reach: by
  default below one host bridge (PIX, PXB). On AMD's processors, with at most two GPUs in the
  communicator, everywhere (SYS).
- What is left goes through host memory, and through the network only where host memory is closed.

So two cards with peer access and a host bridge of Intel's between them are healthy with data that
goes through host memory, and so are GeForce cards whose driver offers no peer access.

Points from slow paths between GPUs to a card with its slot, or to what joins two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import median
from typing import Literal

from acceptance.core.message import Listed, Message, Quantity, Values, english, known
from acceptance.core.parts import Component, Pair
from acceptance.expect import sheet
from acceptance.expect.sheet import Sheet
from acceptance.machine import topology
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Inventory
from acceptance.machine.transport import Transport

# "doubt": the machine may be as it should, but data takes a longer way than NCCL's rules say, or
# one that the model does not have: a patched driver may offer that, and whether the data arrives is
# verified.
# "untold": the driver or the kernel does not show what would decide.
# "unknown": what would decide was not captured.
Outcome = Literal["healthy", "doubt", "fault", "untold", "unknown"]

AMD = "AuthenticAMD"
ModelP2p = Literal["yes", "no", "bridge", "nvlink"]

# NVML's words for what joins two GPUs.
_WITHIN = frozenset({"INTERNAL", "PIX", "PXB"})
_BEYOND = frozenset({"PHB", "NODE", "SYS"})


@dataclass(frozen=True, slots=True)
class PairLinks:
    """What joins two GPUs, in one direction.

    `nvlinks` is how many active NVLinks lead from one to the other, directly or through switches;
    `path` is NVML's word for their PCI ways ("PIX" ... "SYS"). `p2p_read` and `p2p_write` are the
    driver's status of peer access ("ok", "chipset-not-supported", ...). Each is None where it was
    not captured. `model_p2p` is the model's peer access by its sheet: "yes", "no", "bridge" for
    over NVLink alone, or "nvlink" where the board decides without one; None where sheets say
    nothing.
    """

    nvlinks: int
    path: str | None
    p2p_read: str | None
    p2p_write: str | None
    model_p2p: ModelP2p | None = None

    @property
    def offered(self) -> bool | None:
        """Whether the driver offers peer access, for reads and writes; None if it is not known."""
        states = {self.p2p_read, self.p2p_write}
        if states - {"ok", "unknown", None}:
            return False
        return True if states == {"ok"} else None

    @property
    def within_reach(self) -> bool:
        """Whether NCCL takes peer access on every machine where the driver offers it."""
        return bool(self.nvlinks) or self.path in _WITHIN

    @property
    def told(self) -> Values:
        """The values of a message about this pair."""
        return known(
            nvlinks=self.nvlinks or None,
            path=self.path,
            read=self.p2p_read or "unknown",
            write=self.p2p_write or "unknown",
        )


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What else decides the transports of one communicator.

    `cpu_vendor` is as in /proc/cpuinfo ("GenuineIntel", "AuthenticAMD"), None where it is not
    known: only AMD's widens the reach. `gpus` is how many GPUs the communicator has. `p2p_off` says
    that the load itself set NCCL_P2P_DISABLE=1. `environment` has NCCL's settings from the
    environment, `disabled` the pairs of which NCCL says that the driver has no P2P between them.
    """

    cpu_vendor: str | None
    gpus: int
    p2p_off: bool = False
    environment: Mapping[str, str] | None = field(default=None, hash=False)
    disabled: frozenset[Pair] = frozenset()


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """Whether a pair's transport fits its links, and why."""

    outcome: Outcome
    why: Message


def pair_links(
    inventory: Inventory, due: Sequence[Gpu], sheets: Sequence[Sheet]
) -> dict[Pair, PairLinks]:
    """What joins every two of these GPUs, in both directions."""
    told = {(a.name, b.name): pair for a, b, pair in topology.pairs(inventory, due)}
    found = {}
    for a, b in permutations(due, 2):
        pair, name = told.get((a.name, b.name)), Pair(a.name, b.name)
        found[name] = PairLinks(
            topology.nvlinks(a, b),
            None if pair is None else pair.path,
            None if pair is None else pair.p2p_read,
            None if pair is None else pair.p2p_write,
            _model_p2p(a, b, sheets),
        )
    return found


def _model_p2p(a: Gpu, b: Gpu, sheets: Sequence[Sheet]) -> ModelP2p | None:
    """The peer access of two cards of one model; None for two models, or without a sure sheet."""
    first, second = (
        sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in (a, b)
    )
    return None if first is None or first is not second or first.doubt("p2p") else first.p2p


def by_pair(
    transports: Mapping[tuple[str, str], Transport], due: Sequence[Gpu]
) -> dict[Pair, Transport]:
    """Transports by PCI addresses, as NCCL's log has them, by the GPUs' names.

    Raises KeyError for an address of no GPU that is due.
    """
    names = {gpu.pci_address: gpu.name for gpu in due}
    return {Pair(names[first], names[second]): one for (first, second), one in transports.items()}


def judge(
    transports: Mapping[Pair, Transport],
    links: Mapping[Pair, PairLinks],
    around: Circumstances,
) -> dict[Pair, PairJudgement]:
    """Judge every pair of `links`; one without a transport is "unknown".

    Raises KeyError for a transport of a pair that `links` does not have.
    """
    return {
        pair: _judge(pair, transports.get(pair), links[pair], links, around)
        for pair in (*links, *transports)
    }


def _judge(
    pair: Pair,
    transport: Transport | None,
    one: PairLinks,
    links: Mapping[Pair, PairLinks],
    around: Circumstances,
) -> PairJudgement:
    if transport is None:
        return PairJudgement(
            "unknown",
            Message(english("transport_missing", "NCCL's log has no transport of this pair")),
        )
    ways = Listed(transport.ways)
    values: Values = {**one.told, "ways": ways}
    if transport.kind == "NET":
        return PairJudgement(
            "fault",
            Message(
                english(
                    "transport_net",
                    "through the network ({ways}), between GPUs of one machine: NCCL could use "
                    "neither peer access nor host memory; look at the size of /dev/shm, and "
                    "whether the processes share it",
                ),
                {"ways": ways},
            ),
        )
    if around.p2p_off and transport.kind == "SHM":
        return PairJudgement(
            "healthy",
            Message(
                english(
                    "transport_host_as_asked",
                    "through host memory ({ways}), as NCCL_P2P_DISABLE=1 asks",
                ),
                {"ways": ways},
            ),
        )
    if around.p2p_off:
        return PairJudgement(
            "fault",
            Message(
                english(
                    "transport_peer_though_off",
                    "peer access ({ways}), although NCCL_P2P_DISABLE=1 was set",
                ),
                {"ways": ways},
            ),
        )
    if transport.kind == "SHM":
        return _through_host(pair, one, around)
    if transport.kind == "indirect":
        return _indirect(pair, one, links)
    if one.offered is False:
        return PairJudgement(
            "fault",
            Message(
                english(
                    "transport_peer_refused",
                    "NCCL uses peer access ({ways}), which the driver refuses (read {read}, write "
                    "{write}): one of the two is wrong, and the data may be too",
                ),
                values,
            ),
        )
    if one.offered is None:
        return PairJudgement(
            "untold",
            Message(
                english(
                    "transport_peer_unknown",
                    "NCCL uses peer access ({ways}), and the driver does not say whether it "
                    "offers it",
                ),
                {"ways": ways},
            ),
        )
    if one.nvlinks:
        return PairJudgement(
            "healthy",
            Message(english("transport_nvlink", "over NVLink ({nvlinks} links; {ways})"), values),
        )
    if one.model_p2p in ("no", "bridge"):
        return PairJudgement(
            "doubt",
            Message(
                english(
                    "transport_peer_of_model",
                    "NCCL uses peer access over PCI Express ({ways}), which this model does not "
                    "have: the driver may promise what the card cannot do",
                ),
                {"ways": ways},
            ),
        )
    return PairJudgement(
        "healthy",
        Message(
            english(
                "transport_peer_over_pcie", "peer access over PCI Express ({ways}[; path {path}])"
            ),
            values,
        ),
    )


def _through_host(pair: Pair, one: PairLinks, around: Circumstances) -> PairJudgement:
    if one.nvlinks:
        values: Values = {**one.told, "causes": _causes(pair, one, around)}
        return PairJudgement(
            "fault",
            Message(
                english(
                    "transport_nvlink_host",
                    "through host memory, although {nvlinks} NVLinks join the two: {causes}",
                ),
                values,
            ),
        )
    if one.offered is False:
        return PairJudgement(
            "healthy",
            Message(
                english(
                    "transport_host_refused",
                    "through host memory, because the driver offers no peer access (read {read}, "
                    "write {write})",
                ),
                one.told,
            ),
        )
    if one.offered is None:
        if one.model_p2p in ("no", "bridge"):
            return PairJudgement(
                "healthy",
                Message(
                    english(
                        "transport_host_of_model",
                        "through host memory, because this model has no peer access over PCI "
                        "Express",
                    )
                ),
            )
        return PairJudgement(
            "untold",
            Message(
                english(
                    "transport_host_unknown",
                    "through host memory, and the driver does not say whether it offers peer "
                    "access",
                )
            ),
        )
    if one.path not in _WITHIN | _BEYOND:
        return PairJudgement(
            "untold",
            Message(
                english(
                    "transport_path_unknown",
                    "through host memory, and the PCI path between the two is not known",
                )
            ),
        )
    if one.path in _WITHIN or (around.cpu_vendor == AMD and around.gpus <= 2):
        values = {**one.told, "causes": _causes(pair, one, around)}
        return PairJudgement(
            "doubt",
            Message(
                english(
                    "transport_within_reach",
                    "through host memory, although the driver offers peer access and the two are "
                    "within its reach (path {path}): {causes}",
                ),
                values,
            ),
        )
    return PairJudgement(
        "healthy",
        Message(
            english(
                "transport_host_beyond",
                "through host memory: by default NCCL uses no peer access over this path ({path})",
            ),
            one.told,
        ),
    )


def _causes(pair: Pair, one: PairLinks, around: Circumstances) -> tuple[Message, ...]:
    """What the evidence says of why peer access was not taken, the surest first."""
    found = [
        Message(
            english("transport_cause_setting", "the environment sets {name}={value}"),
            {"name": name, "value": value},
        )
        for name, value in sorted((around.environment or {}).items())
        if name in ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
    ]
    if one.offered is False:
        found.append(
            Message(
                english(
                    "transport_cause_driver",
                    "the driver refuses peer access (read {read}, write {write}), which points to "
                    "a link or its fabric",
                ),
                one.told,
            )
        )
    if pair in around.disabled:
        found.append(
            Message(
                english(
                    "transport_cause_nccl", "NCCL says that peer access is disabled between the two"
                )
            )
        )
    return tuple(found) or (
        Message(
            english(
                "transport_cause_none",
                "neither the driver, nor the environment, nor NCCL says why; look whether the "
                "processes share /dev/shm and see each other's GPUs",
            )
        ),
    )


def _indirect(pair: Pair, one: PairLinks, links: Mapping[Pair, PairLinks]) -> PairJudgement:
    """Through a third GPU: right where both have NVLinks to it, and none to each other.

    NCCL asks the driver for peer access to and from the third, not between the two.
    """
    usable = {
        other.ends
        for other, between in links.items()
        if between.nvlinks and between.offered is not False
    }
    joined = any(first == pair.first and (third, pair.second) in usable for first, third in usable)
    if one.nvlinks or not joined:
        return PairJudgement(
            "fault",
            Message(
                english(
                    "transport_indirect_astray",
                    "through a third GPU, which the NVLinks of the two do not explain",
                ),
                one.told,
            ),
        )
    return PairJudgement(
        "healthy",
        Message(english("transport_indirect", "through a third GPU to which both have NVLinks")),
    )


SLOW = 0.9  # of the median of the equal paths


@dataclass(frozen=True, slots=True)
class Trial:
    """A path that was tried again beside a slow one: its rates in GB/s, first and again."""

    slow: Component
    tried: Component
    first: float
    again: float


def explain(
    rates: Mapping[Component, float],
    groups: Iterable[Sequence[Component]],
    due: Sequence[Gpu],
    links: Mapping[Pair, PairLinks],
    trials: Sequence[Trial],
) -> dict[Component, Message]:
    """What each slow path points to, by the path.

    `groups` are the paths of which equal rates are to be expected. A path is slow below SLOW of the
    median of the others in its group. It points to the one end whose paths to all third GPUs are
    slow too; to what joins the two, where neither end has such; else to one of them all.
    """
    compared: dict[Component, bool] = {}
    for group in groups:
        for path in group:
            others = [rates[one] for one in group if one != path and one in rates]
            if path in rates and others:
                compared[path] = rates[path] < SLOW * median(others)
    cards = {gpu.name: gpu for gpu in due}
    found = {}
    for path in [path for path, slow in compared.items() if slow]:
        sick = [end for end in path.ends if _all_slow(end, path, compared)]
        first, second = (_card(cards[end]) for end in path.ends)
        joined = (
            _joined(links[path])
            if isinstance(path, Pair) and path in links
            else Message(english("joined_unknown", "not known what"))
        )
        values: Values = {"link": joined, "first": first, "second": second}
        code = (
            english(
                "slow_path_untold",
                "points to {first}, to {second} or to what joins them ({link})[; tried again: "
                "{tried}]",
            )
            if sick or len(due) == 2
            else "slow_path_link"
        )
        if len(sick) == 1:
            code = "slow_path_card"
            values = {"card": _card(cards[sick[0]])}
        tried = tuple(
            Message(
                english("slow_path_tried", "{path} {rate}"),
                {"path": str(one.tried), "rate": Quantity(one.again, "GB/s")},
            )
            for one in trials
            if one.slow == path
        )
        found[path] = Message(code, {**values, **({"tried": Listed(tried)} if tried else {})})
    return found


def _all_slow(end: Component, path: Component, compared: Mapping[Component, bool]) -> bool:
    """Whether all paths of one end to third GPUs are slow, and there are some."""
    other = [
        slow
        for one, slow in compared.items()
        if end in one.ends and set(one.ends) != set(path.ends)
    ]
    return bool(other) and all(other)


def _card(gpu: Gpu) -> Message:
    values: Values = {"gpu": str(gpu.name), "slot": gpu.pci_address}
    return Message(
        english("card_in_slot", "{gpu} [({serial}) ]in the slot at {slot}"),
        {**values, **known(serial=gpu.serial or gpu.uuid)},
    )


def _joined(one: PairLinks) -> Message:
    if one.nvlinks:
        return Message(english("joined_by_nvlink", "{links} x NVLink"), {"links": one.nvlinks})
    if one.path is None:
        return Message("joined_unknown")
    return Message(english("joined_by_path", "PCI Express, {path}"), {"path": one.path})
