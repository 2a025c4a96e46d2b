"""Memory channels by the names that firmware gives its slots."""

from __future__ import annotations

from dataclasses import replace

from cases import each
from known import known

from acceptance.machine.channels import Channels, channels
from acceptance.machine.inventory import Dimm, EmptySlot, Inventory
from acceptance.machine.observation import NOTHING
from acceptance.wording import words

GIB = 1 << 30
Slot = tuple[str, str | None, int | None]  # name, bank, GiB: 0 is an empty slot, None a size untold


def machine(
    *slots: Slot, rate: int | None = 5200, virtualised: bool = False, sockets: int | None = 2
) -> Inventory:
    modules = tuple(
        Dimm(slot, size and size * GIB, "DDR5", 5600, rate, None, None, None, 64, 64, bank)
        for slot, bank, size in slots
        if size != 0
    )
    empty = tuple(EmptySlot(slot, bank) for slot, bank, size in slots if size == 0)
    memory = replace(NOTHING.memory, dimms=modules, empty_slots=empty)
    cpu = replace(NOTHING.cpu, virtualised=virtualised, sockets=sockets)
    return replace(NOTHING, memory=memory, cpu=cpu)


def read(*slots: Slot) -> Channels | None:
    return channels(machine(*slots))


@each(
    "slots, names",
    [
        (
            (("P0 CHANNEL A DIMM 0", "P0 CHANNEL A", 32), ("DIMM 1", "P0 CHANNEL B", 0)),
            ("P0 CHANNEL A", "P0 CHANNEL B"),
        ),
        (
            (
                ("CPU1_DIMM_A1", "P0_Node0_Channel0_Dimm0", 32),
                ("CPU1_DIMM_B1", "P0_Node0_Channel1_Dimm0", 0),
            ),
            ("P0 Node0 Channel0", "P0 Node0 Channel1"),
        ),
        (
            (
                ("Controller0-ChannelA-DIMM0", "BANK 0", 32),
                ("Controller0-ChannelA-DIMM1", "BANK 0", 0),
                ("Controller1-ChannelA-DIMM0", "BANK 1", 32),
            ),
            ("Controller0 ChannelA", "Controller1 ChannelA"),
        ),
        ((("ChannelA-DIMM0", None, 8), ("ChannelB-DIMM0", None, 8)), ("ChannelA", "ChannelB")),
        ((("P1-DIMMA1", None, 8), ("P2-DIMMA1", None, 0)), ("P1 DIMMA", "P2 DIMMA")),
        ((("CPU0_DIMM_A1", None, 8), ("CPU1_DIMM_A1", None, 8)), ("CPU0 DIMM_A", "CPU1 DIMM_A")),
        ((("DIMM_A1", "BANK 0", 8), ("DIMM_B1", "BANK 1", 8)), ("DIMM_A", "DIMM_B")),
        ((("DIMMA1", None, 8), ("DIMMB1", None, 0)), ("DIMMA", "DIMMB")),
        ((("DIMM_P0_A0", None, 8), ("DIMM_P1_A0", None, 8)), ("DIMM_P0_A", "DIMM_P1_A")),
    ],
)
def test_the_forms_of_names(slots: tuple[Slot, ...], names: tuple[str, ...]) -> None:
    assert tuple(known(read(*slots)).sizes) == names


@each(
    "slots",
    [
        (("A1", None, 8), ("A2", None, 8)),  # the letter is the processor
        (("PROC 1 DIMM 1", None, 8), ("PROC 1 DIMM 2", None, 0)),
        tuple((f"DIMM_A{number}", None, 8) for number in range(1, 4)),
        (("DIMM_A1", None, 8), ("M2", None, 8)),  # one slot of another form
        (("DIMM_A1", "P0 CHANNEL A", 8), ("SLOT", None, 0)),
        (("DIMM 1", None, 8), ("DIMM 2", None, 0)),
        # parts of two channels, of which all are filled
        tuple(
            (f"Controller{one}-Channel{letter}-DIMM0", None, 8 if letter == "A" else 0)
            for one in (0, 1)
            for letter in "ABCD"
        ),
        (("Controller0-ChannelA-DIMM0", None, 8), ("Controller0-ChannelB-DIMM0", None, 0)),
    ],
)
def test_other_names_tell_no_channel(slots: tuple[Slot, ...]) -> None:
    assert read(*slots) is None


def test_what_was_not_read_and_what_a_hypervisor_invents_tell_none() -> None:
    seen = machine(("DIMM_A1", None, 8), ("DIMM_B1", None, 0))
    assert channels(seen) is not None
    assert channels(NOTHING) is None
    assert channels(replace(seen, memory=replace(seen.memory, empty_slots=None))) is None
    assert channels(machine(("DIMM_A1", None, 8), virtualised=True)) is None


@each(
    "names",
    [
        (("S", "P0 CHANNEL A", 8), ("S", "P1 CHANNEL A", 0)),
        (("S", "P0_Node0_Channel0_Dimm0", 8), ("S", "P1_Node1_Channel0_Dimm0", 0)),
        (("P1-DIMMA1", None, 8), ("P2-DIMMA1", None, 0)),
        (("CPU1_DIMM_A1", None, 8), ("CPU2_DIMM_A1", None, 0)),
        (("DIMM_P0_A0", None, 8), ("DIMM_P1_A0", None, 0)),
    ],
)
def test_slots_of_a_processor_that_is_not_there(names: tuple[Slot, ...]) -> None:
    for sockets in (1, None):
        found = known(channels(machine(*names, sockets=sockets)))
        assert (len(found.sizes), found.empty) == (1, ())
    assert len(known(channels(machine(*names, sockets=2))).empty) == 1
    seen = known(channels(machine(*tuple((slot, bank, 8) for slot, bank, _ in names), sockets=1)))
    assert len(seen.filled) == 2, "modules in both: nothing is left out"


def test_an_empty_channel_of_the_one_processor_is_told() -> None:
    found = known(
        channels(
            machine(
                ("P1-DIMMA1", None, 8), ("P1-DIMMB1", None, 0), ("P2-DIMMA1", None, 0), sockets=1
            )
        )
    )
    assert found.empty == ("P1 DIMMB",)


def test_even_channels_cost_nothing() -> None:
    found = known(read(("DIMM_A1", None, 0), ("DIMM_A2", None, 32), ("DIMM_B2", None, 32)))
    assert (found.empty, found.less, found.rate_mts) == ((), (), 5200)
    assert (found.empty_cost(), found.unequal_cost()) == (None, None)


def test_an_empty_channel_costs_its_share() -> None:
    found = known(read(("DIMM_A1", None, 32), ("DIMM_A2", None, 32), ("DIMM_B1", None, 0)))
    told = known(found.empty_cost())
    assert words.message(told) == (
        "memory channels without a module: DIMM_B: 1 of 2 are filled, which moves 41.6 GB/s at "
        "most (5200 MT/s x 64 bit x 1 / 8) in place of 83.2 GB/s"
    )
    assert found.unequal_cost() is None


def test_unequal_channels_cost_what_is_not_interleaved() -> None:
    found = known(
        read(
            ("DIMM_A1", None, 32),
            ("DIMM_A2", None, 32),
            ("DIMM_B1", None, 32),
            ("DIMM_C1", None, 16),
        )
    )
    assert found.less == ("DIMM_B", "DIMM_C")
    told = known(found.unequal_cost())
    assert words.message(told) == (
        "memory channels hold different amounts: DIMM_A (64 GiB), DIMM_B (32 GiB), "
        "DIMM_C (16 GiB): 64 of 112 GiB are not interleaved over all of them, and move as little "
        "as 41.6 GB/s (5200 MT/s x 64 bit x 1 / 8) in place of 124.8 GB/s"
    )


def test_a_size_or_rate_that_is_not_told() -> None:
    found = known(read(("DIMM_A1", None, 32), ("DIMM_B1", None, None), ("DIMM_C1", None, 0)))
    assert (len(found.filled), found.less, found.unequal_cost()) == (2, None, None)
    slots: tuple[Slot, ...] = (("DIMM_A1", None, 8), ("DIMM_B1", None, 0))
    unrated = known(channels(machine(*slots, rate=None)))
    assert unrated.rate_mts == 5600, "the rate that the module is made for"
    bare = known(replace(unrated, rate_mts=None).empty_cost())
    assert words.message(bare) == "memory channels without a module: DIMM_B: 1 of 2 are filled"
