"""Memory channels from the slots' names in the firmware's tables, and what a poor filling costs.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.core.limit import GIB, number
from acceptance.core.message import Listed, Message, Values, english
from acceptance.machine.inventory import Inventory

CHANNEL_BYTES = 8  # JEDEC DDR channels are 64 data bits wide (DDR5: two of 32)
# More slots on one channel than boards have today: then the letter names something else (on Dell's
# servers the processor).
MOST_SLOTS = 2
# The forms in which firmware names slots by channel, in a slot's bank or its own name; the groups
# together name the channel. A board uses one of them.
_BANKS = (
    re.compile(r"(P\d+ CHANNEL [A-Z])"),  # AMD's own firmware, of every processor since Zen
    re.compile(r"(P\d+)_(Node\d+)_(Channel\d+)_Dimm\d+"),  # AMI's, on Intel's servers
)
_SLOTS = (
    # Intel's since its 11th generation: each controller has one channel of 64 bits. Firmware that
    # goes on to ChannelB lists halves or quarters of it, whether or not the board has them.
    re.compile(r"(Controller\d+)-(ChannelA)-DIMM\d+"),
    re.compile(r"(Channel[A-Z])-DIMM\d+"),  # Intel's before
    re.compile(r"(P\d+)-(DIMM[A-Z])\d+"),  # Supermicro
    re.compile(r"(CPU\d+)[_ ](DIMM[_ ]?[A-Z])\d+"),
    re.compile(r"(DIMM[_ ]?(?:P\d+[_ ])?[A-Z])\d+"),
)
_SOCKET = re.compile(r"(?:CPU|P)\d+")  # the processor, in the name of a channel


def peak_gbs(rate_mts: int, channels: int) -> float:
    """The most that so many channels can move, in GB/s: rate x 64 bit x channels / 8."""
    return rate_mts * CHANNEL_BYTES * channels / 1000.0


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that have slots: bytes installed on each, by name.

    A channel whose modules do not all tell their size has None. `rate_mts` is the rate of the
    slowest module; None where none tells one.
    """

    sizes: Mapping[str, int | None]
    rate_mts: int | None

    @property
    def empty(self) -> tuple[str, ...]:
        """The channels without a module."""
        return tuple(name for name, size in self.sizes.items() if size == 0)

    @property
    def filled(self) -> dict[str, int | None]:
        """The channels with modules."""
        return {name: size for name, size in self.sizes.items() if size != 0}

    @property
    def less(self) -> tuple[str, ...] | None:
        """The filled channels that hold less than the fullest; None where a size is not told."""
        sizes = self.filled
        if any(size is None for size in sizes.values()):
            return None
        most = max((size or 0 for size in sizes.values()), default=0)
        return tuple(name for name, size in sizes.items() if size != most)

    def empty_cost(self) -> Message | None:
        """The empty channels and the bandwidth that they cost; None where there are none."""
        if not self.empty:
            return None
        values: Values = {
            "empty": Listed(self.empty),
            "filled": len(self.filled),
            "all": len(self.sizes),
        }
        costs = self._costs(len(self.filled), len(self.sizes))
        return Message(
            english(
                "channels_empty",
                "memory channels without a module: {empty}: {filled} of {all} are filled[, which "
                "moves {used} GB/s at most ({formula}) in place of {possible} GB/s]",
            ),
            {**values, **costs},
        )

    def unequal_cost(self) -> Message | None:
        """The unequal channels and the bandwidth that they cost; None where all are equal.

        Memory is interleaved over all filled channels as far as the smallest goes. What is left is
        reached over fewer of them, in the end over the fullest alone.
        """
        if not self.less:
            return None
        sizes = {name: size or 0 for name, size in self.filled.items()}
        held = tuple(
            Message(
                english("channel_size", "{channel} ({size} GiB)"),
                {"channel": name, "size": number(size / GIB)},
            )
            for name, size in sizes.items()
        )
        total = sum(sizes.values())
        values: Values = {
            "channels": Listed(held),
            "rest": number((total - min(sizes.values()) * len(sizes)) / GIB),
            "total": number(total / GIB),
        }
        costs = self._costs(len(sizes) - len(self.less), len(sizes))
        return Message(
            english(
                "channels_unequal",
                "memory channels hold different amounts: {channels}: {rest} of {total} GiB are "
                "not interleaved over all of them[, and move as little as {used} GB/s ({formula}) "
                "in place of {possible} GB/s]",
            ),
            {**values, **costs},
        )

    def _costs(self, used: int, there: int) -> dict[str, str]:
        """The bandwidth over the channels in use, and over all that could be."""
        if self.rate_mts is None:
            return {}
        costs = {
            "used": f"{peak_gbs(self.rate_mts, used):.1f}",
            "possible": f"{peak_gbs(self.rate_mts, there):.1f}",
        }
        return {**costs, "formula": f"{self.rate_mts} MT/s x 64 bit x {used} / 8"}


def channels(inventory: Inventory) -> Channels | None:
    """The channels of this machine.

    None where the tables were not read, their names tell no channels, or a hypervisor invents them.
    Where the names show more sockets than the machine is known to have processors, those without a
    module are left out.
    """
    memory = inventory.memory
    if memory.dimms is None or memory.empty_slots is None or inventory.cpu.virtualised:
        return None
    modules = [(dimm.slot, dimm.bank, dimm.size_bytes) for dimm in memory.dimms]
    slots = [*modules, *((slot.slot, slot.bank, 0) for slot in memory.empty_slots)]
    names = _names([(name, bank) for name, bank, _ in slots])
    if names is None:
        return None
    sockets = {_socket(name) for name in names}
    if len(sockets) > (inventory.cpu.sockets or 1):
        sockets = {_socket(name) for name in names[: len(modules)]}
    sizes: dict[str, int | None] = {}
    for name, (_slot, _bank, size) in zip(names, slots, strict=True):
        if _socket(name) in sockets:
            before = sizes.get(name, 0)
            sizes[name] = None if before is None or size is None else before + size
    rates = [dimm.configured_mts or dimm.rated_mts for dimm in memory.dimms]
    told = [rate for rate in rates if rate is not None]
    return Channels(dict(sorted(sizes.items())), min(told, default=None))


def _names(slots: list[tuple[str, str | None]]) -> list[str] | None:
    """The channel of each slot, by the first form that all of them have."""
    for form in _BANKS:
        found = [form.fullmatch(bank or "") for _, bank in slots]
        if (names := _whole(found)) is not None:
            return names
    for form in _SLOTS:
        if (names := _whole([form.fullmatch(slot) for slot, _ in slots])) is not None:
            return names
    return None


def _whole(found: list[re.Match[str] | None]) -> list[str] | None:
    """The names, where every slot has one and no channel has more slots than boards have."""
    names = [" ".join(filter(None, one.groups())) for one in found if one is not None]
    if len(names) < len(found) or any(names.count(name) > MOST_SLOTS for name in names):
        return None
    return names


def _socket(channel: str) -> str:
    """The socket that the name of a channel tells; empty where it tells none."""
    found = _SOCKET.search(channel)
    return found[0] if found else ""
