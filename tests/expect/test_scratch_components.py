"""The classes of tested filesystems, and which of them are held against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gpu_machine
import msgspec
from cases import each

from acceptance.core.evidence import Scratch
from acceptance.core.limit import GIB
from acceptance.core.parts import Component, Part
from acceptance.expect import components
from acceptance.machine.inventory import Disk, Inventory

ONE, TWO, THREE = (Part("disk", f"nvme{n}n1") for n in range(3))
MODEL = Disk("nvme0n1", "MAKER 980", "S0", 10**12, "nvme", "nvme", None)


def inventory(*changes: dict[str, Any]) -> Inventory:
    """A machine with disks of one model, but for what changes."""
    disks = tuple(
        replace(MODEL, **{"name": f"nvme{n}n1", "serial": f"S{n}", **one})
        for n, one in enumerate(changes)
    )
    return replace(gpu_machine.machine(), disks=disks)


def scratch(number: int, **changes: Any) -> Scratch:
    name = f"nvme{number}n1"
    place = Scratch(
        path=f"/data{number}",
        component=Part("disk", name),
        mount=f"/data{number}",
        kind="xfs",
        source=f"/dev/{name}",
        disks=(name,),
        layers=(),
        free_bytes=1,
        write_bytes=4 * GIB,
        kept_bytes=0,
        keep=True,
        sealed_bytes=0,
    )
    return msgspec.structs.replace(place, **changes)


def equal(
    seen: Inventory, *scratches: Scratch
) -> tuple[tuple[tuple[Component, ...], ...], tuple[tuple[Component, ...], ...]]:
    """The groups that are written to, and those that are read."""
    groups = components.siblings(None, seen, (), scratches)
    found = components.resolve(None, seen, frozenset(), (), scratches=scratches)
    for name in ("disk-scratch-with-peers", "disk-scratch-read-with-peers"):
        assert set(found[name]) == {one for group in groups[name] for one in group}
    return groups["disk-scratch-with-peers"], groups["disk-scratch-read-with-peers"]


def test_equal_disks_are_held_against_each_other() -> None:
    three = inventory({}, {}, {"model": "OTHER"})
    pair = ((ONE, TWO),)
    assert equal(three, scratch(0), scratch(1), scratch(2)) == (pair, pair)
    assert equal(three, scratch(0), scratch(2)) == ((), ())
    whole = inventory({}, {}, {})
    all_three = ((ONE, TWO, THREE),)
    assert equal(whole, scratch(0), scratch(1), scratch(2)) == (all_three, all_three)


@each(
    "disk, place",
    [
        ({"size_bytes": 2 * 10**12}, {}),
        ({"size_bytes": None}, {}),
        ({"model": None}, {}),
        ({"kind": "virtual"}, {}),
        ({"name": "sda"}, {}),
        ({}, {"layers": ("crypt",)}),
        ({}, {"kind": "btrfs"}),
        ({}, {"disks": ("nvme1n1", "nvme2n1")}),
        ({}, {"disks": ()}),
        ({}, {"write_bytes": 0}),
    ],
)
def test_unequal_disks_are_not(disk: dict[str, Any], place: dict[str, Any]) -> None:
    assert equal(inventory({}, disk), scratch(0), scratch(1, **place)) == ((), ())


def test_files_that_earlier_runs_kept_are_read_and_not_written() -> None:
    kept = {"write_bytes": 0, "sealed_bytes": GIB}
    seen = inventory({}, {})
    assert equal(seen, scratch(0, **kept), scratch(1, **kept)) == ((), ((ONE, TWO),))
    assert equal(seen, scratch(0), scratch(1, **kept)) == ((), ())


@each("write_gib, kept_gib, due", [(8, 1, ()), (12, 1, ()), (13, 1, (ONE,)), (200, 0, (ONE,))])
def test_what_a_soak_may_write_beyond_fills_a_cache(
    write_gib: int, kept_gib: int, due: tuple[Component, ...]
) -> None:
    place = scratch(0, write_bytes=write_gib * GIB, kept_bytes=kept_gib * GIB)
    found = components.resolve(None, inventory({}), frozenset(), (), scratches=[place])
    assert found["disk-scratch-full"] == due


def test_the_disks_that_show_a_threshold_of_their_own() -> None:
    found = components.resolve(
        None, inventory({}, {}), frozenset(), (), thermometers=[TWO, Part("disk", "sda")]
    )
    assert found["disk-thermometer"] == (TWO,)
