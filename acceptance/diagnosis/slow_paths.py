"""Points from slow paths between GPUs to a card with its slot, or to what joins two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from acceptance.core.message import Listed, Message, Quantity, Values, known
from acceptance.core.parts import Component, Pair
from acceptance.diagnosis.transports import PairLinks
from acceptance.machine.gpu import Gpu

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
            else Message("joined_unknown")
        )
        values: Values = {"link": joined, "first": first, "second": second}
        code = "slow_path_untold" if sick or len(due) == 2 else "slow_path_link"
        if len(sick) == 1:
            code = "slow_path_card"
            values = {"card": _card(cards[sick[0]])}
        tried = tuple(
            Message(
                "slow_path_tried", {"path": str(one.tried), "rate": Quantity(one.again, "GB/s")}
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
    return Message("card_in_slot", {**values, **known(serial=gpu.serial or gpu.uuid)})


def _joined(one: PairLinks) -> Message:
    if one.nvlinks:
        return Message("joined_by_nvlink", {"links": one.nvlinks})
    if one.path is None:
        return Message("joined_unknown")
    return Message("joined_by_path", {"path": one.path})
