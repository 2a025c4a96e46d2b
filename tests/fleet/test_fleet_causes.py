"""What flagged machines have in common: planted causes, alone and side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.parts import CPU, Gpu
from acceptance.fleet.common_cause import (
    CHANCE,
    Attribute,
    Card,
    FlaggedPart,
    differing_versions,
    find_causes,
    tail,
)

CARDS = 8


def machines(count: int = 256) -> dict[str, dict[str, str]]:
    """Racks of 16; one driver in seven of eight machines; a firmware in every fifth."""
    return {
        f"m{n:03d}": {
            "rack": f"r{n // 16:02d}",
            "driver": "580" if n % 8 else "575",
            "firmware": "2" if n % 5 == 0 else "1",
        }
        for n in range(count)
    }


def slots(names: Iterable[str]) -> dict[Card, str]:
    return {Card(name, Gpu(n)): f"slot {n}" for name in names for n in range(CARDS)}


def flags(names: Iterable[str], cards: Iterable[int] = range(CARDS)) -> list[FlaggedPart]:
    return [FlaggedPart(name, Gpu(n), "gemm_bf16") for name in names for n in cards]


ALL = machines()
SLOTS = slots(ALL)


def test_one_card_is_one_card() -> None:
    flagged = [*flags(["m007"], [3]), FlaggedPart("m007", Gpu(3), "copy_h2d")]
    found = find_causes(flagged, ALL, SLOTS)
    assert not found.common
    (single,) = found.single
    assert (single.machine, single.components) == ("m007", (Gpu(3),))
    assert single.measurements == ("copy_h2d", "gemm_bf16")


def test_a_machine_of_which_all_is_slow_is_one_machine() -> None:
    found = find_causes([*flags(["m007"]), FlaggedPart("m007", CPU, "x")], ALL, SLOTS)
    assert not found.common
    assert found.single[0].components == (CPU, *(Gpu(n) for n in range(CARDS)))


@pytest.mark.parametrize(
    ("attribute", "share"),
    [
        (Attribute("rack", "r04"), 1),
        (Attribute("driver", "575"), 1),
        (Attribute("firmware", "2"), 1),
        (Attribute("rack", "r04"), 3),
    ],
)
def test_one_cause_is_named(attribute: Attribute, share: int) -> None:
    """All machines of it, and every third of them."""
    having = [name for name, some in ALL.items() if some[attribute.name] == attribute.value]
    sick = having[::share]
    found = find_causes(flags(sick), ALL, SLOTS)
    (cause,) = found.common
    assert cause.attributes == (attribute,)
    assert (cause.flagged_having, cause.having) == (len(sick), len(having))
    assert (cause.flagged, cause.all_units) == (len(sick), len(ALL))
    assert cause.chance < CHANCE
    assert {card.machine for card in cause.parts} == set(sick)
    assert cause.measurements == ("gemm_bf16",)
    assert not found.single


def test_one_slot_in_many_chassis_is_named() -> None:
    sick = sorted(ALL)[::4]
    found = find_causes(flags(sick, [5]), ALL, SLOTS)
    (cause,) = found.common
    assert cause.attributes == (Attribute("slot", "slot 5"),)
    assert (cause.flagged_having, cause.having) == (len(sick), len(ALL))
    assert (cause.flagged, cause.all_units) == (len(sick), len(ALL) * CARDS)
    assert cause.parts == tuple(Card(name, Gpu(5)) for name in sick)
    assert not found.single


def test_causes_side_by_side_and_a_card_beside_them() -> None:
    rack = [name for name, some in ALL.items() if some["rack"] == "r02"]
    others = [name for name in sorted(ALL) if name not in rack]
    flagged = [*flags(rack), *flags(others[::3], [6]), *flags([others[1]], [2])]
    found = find_causes(flagged, ALL, SLOTS)
    slot, whole = found.common
    assert slot.attributes == (Attribute("slot", "slot 6"),)
    assert slot.flagged_having == len(others[::3]) + len(rack)
    assert whole.attributes == (Attribute("rack", "r02"),)
    assert (whole.flagged_having, whole.having) == (len(rack), len(rack))
    assert slot.chance < whole.chance < CHANCE
    assert [(one.machine, one.components) for one in found.single] == [(others[1], (Gpu(2),))]


def test_attributes_of_the_same_machines_are_named_together() -> None:
    some = {name: {**have, "switch": f"s{have['rack']}"} for name, have in ALL.items()}
    rack = [name for name, have in some.items() if have["rack"] == "r02"]
    (cause,) = find_causes(flags(rack), some, SLOTS).common
    assert cause.attributes == (Attribute("rack", "r02"), Attribute("switch", "sr02"))
    assert cause.all_units == len(ALL)


def test_scattered_cards_have_no_common_cause() -> None:
    scattered = [FlaggedPart(f"m{n * 37 % 256:03d}", Gpu(n % 8), "copy") for n in range(8)]
    found = find_causes(scattered, ALL, SLOTS)
    assert not found.common
    assert [one.machine for one in found.single] == sorted(one.machine for one in scattered)


def test_what_all_machines_have_is_no_cause() -> None:
    alike = {name: {"driver": "580"} for name in ALL}
    found = find_causes(flags(sorted(ALL)), alike, SLOTS)
    assert not found.common
    assert len(found.single) == len(ALL)


def test_a_machine_whose_attribute_is_not_read_takes_no_part() -> None:
    some = {name: dict(have) for name, have in ALL.items()}
    for name in sorted(some)[100:]:
        del some[name]["rack"]
    rack = [name for name, have in some.items() if have.get("rack") == "r02"]
    (cause,) = find_causes(flags(rack), some, SLOTS).common
    assert cause.attributes == (Attribute("rack", "r02"),)
    assert cause.all_units == 100


def test_order_does_not_matter() -> None:
    sick = [*flags([name for name in ALL if ALL[name]["rack"] == "r09"]), *flags(["m001"], [1])]
    turned = dict(reversed(ALL.items()))
    assert find_causes(reversed(sick), turned, SLOTS) == find_causes(sick, ALL, SLOTS)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no attributes: x"):
        find_causes(flags(["x"]), ALL, SLOTS)
    with pytest.raises(ValueError, match="'slot' is"):
        find_causes([], {"m": {"slot": "1"}}, {})


@given(st.data())
def test_the_chance_is_the_exact_one(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 40))
    having = data.draw(st.integers(0, total))
    drawn = data.draw(st.integers(0, total))
    hits = data.draw(st.integers(0, min(having, drawn)))
    ways = sum(
        math.comb(having, some) * math.comb(total - having, drawn - some)
        for some in range(hits, min(having, drawn) + 1)
    )
    assert tail(hits, having, drawn, total) == pytest.approx(
        float(Fraction(ways, math.comb(total, drawn)))
    )


def test_versions_that_differ_in_a_batch() -> None:
    some = {
        "a": {"bios": "1.2", "firmware": "9", "driver": "580"},
        "b": {"bios": "1.2", "firmware": "8", "driver": "580"},
        "c": {"bios": "1.1", "firmware": "9", "driver": "580"},
        "d": {"firmware": "8", "driver": "580"},
    }
    bios, firmware = differing_versions(some, ["firmware", "bios", "driver", "never"])
    assert (bios.name, bios.usual, bios.others) == ("bios", "1.2", (("1.1", ("c",)),))
    assert bios.unread == ("d",)
    # two and two: nobody can say which is the odd one
    assert (firmware.usual, firmware.unread) == (None, ())
    assert firmware.others == (("8", ("b", "d")), ("9", ("a", "c")))


def test_a_version_that_is_not_known_everywhere_is_listed() -> None:
    (one,) = differing_versions({"a": {"bios": "1"}, "b": {}}, ["bios"])
    assert (one.usual, one.others, one.unread) == ("1", (), ("b",))


def test_a_cause_is_named_below_one_percent() -> None:
    """Of 30 machines in two racks some are flagged, all of them of one rack."""
    some = {f"m{n:02d}": {"rack": "a" if n < 10 else "b"} for n in range(30)}
    chances = {}
    for count in range(2, 9):
        flagged = flags(list(some)[:count], [0])
        chances[count] = 2 * tail(count, 10, count, 30)
        assert bool(find_causes(flagged, some, {}).common) == (chances[count] < 0.01)
    assert any(0.01 < chance < 0.02 for chance in chances.values())


def test_two_machines_are_a_cause_and_one_is_none() -> None:
    some = {f"m{n:04d}": {"rack": f"r{n // 2}"} for n in range(4000)}
    (cause,) = find_causes(flags(["m0010", "m0011"], [0]), some, {}).common
    assert cause.attributes == (Attribute("rack", "r5"),)
    assert not find_causes(flags(["m0010"]), some, {}).common


def test_machines_that_are_explained_take_no_further_part() -> None:
    """A slow rack whose machines have one driver, and two more machines that have it too: after the
    rack, two of 18 are no sign of the driver.
    """
    some = {f"m{n:03d}": {"rack": f"r{n // 16:02d}", "driver": "1"} for n in range(256)}
    for name in (*list(some)[64:80], *list(some)[100:102]):
        some[name]["driver"] = "2"
    found = find_causes(flags([*list(some)[64:80], "m200"], [0]), some, slots(some))
    assert [cause.attributes for cause in found.common] == [(Attribute("rack", "r04"),)]
    assert [one.machine for one in found.single] == ["m200"]


def test_of_attributes_of_the_same_machines_the_weakest_evidence_counts() -> None:
    """The BIOS was read of four machines only, the driver of all."""
    some = {f"m{n:03d}": {"driver": "2" if n < 4 else "1"} for n in range(200)}
    for name in list(some)[:4]:
        some[name]["bios"] = "9"
    assert not find_causes(flags(list(some)[:4], [0]), some, {}).common
