"""Which component is which in two runs."""

from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.machine.matching import MovedPart, ReplacedPart, match, unique_identities


def test_by_name_where_nothing_tells_an_identity() -> None:
    found = match({}, {}, ["cpu", "core:3"])
    assert [found.name(name) for name in ("cpu", "core:3", "never seen")] == [
        "cpu",
        "core:3",
        "never seen",
    ]
    assert (found.moved, found.replaced) == ((), ())


def test_a_card_that_moved_to_another_slot_is_the_same_card() -> None:
    found = match({"gpu0": "X", "gpu1": "Y"}, {"gpu0": "Y", "gpu1": "X"}, [])
    assert (found.name("gpu0"), found.name("gpu1")) == ("gpu1", "gpu0")
    assert found.moved == (MovedPart("X", "gpu0", "gpu1"), MovedPart("Y", "gpu1", "gpu0"))
    assert found.replaced == ()
    assert not found.is_other("gpu0")


def test_a_path_goes_with_the_cards_at_its_ends() -> None:
    found = match({"gpu0": "X", "gpu1": "Y"}, {"gpu0": "Y", "gpu1": "X"}, ["gpu0->gpu1"])
    assert found.name("gpu0->gpu1") == "gpu1->gpu0"


def test_another_card_in_the_same_slot_keeps_its_name_and_is_told() -> None:
    found = match({"gpu0": "X"}, {"gpu0": "Z"}, ["gpu0"])
    assert found.name("gpu0") == "gpu0"
    assert found.replaced == (ReplacedPart("gpu0", "X", "Z"),)
    assert found.is_other("gpu0")
    assert found.is_other("gpu0->gpu1")
    assert not found.is_other("gpu1")


def test_a_new_card_never_takes_the_name_of_one_that_moved() -> None:
    found = match({"gpu0": "X", "gpu1": "Y"}, {"gpu0": "Y", "gpu1": "Z"}, ["gpu0", "gpu1"])
    assert (found.name("gpu0"), found.name("gpu1")) == ("gpu1", "gpu1'")


def test_a_serial_number_that_two_parts_share_tells_neither() -> None:
    found = match({"disk:a": "0", "disk:b": "0"}, {"disk:b": "0", "disk:c": "0"}, [])
    assert [found.name(name) for name in ("disk:b", "disk:c")] == ["disk:b", "disk:c"]
    assert (found.moved, found.replaced) == ((), ())


@each("nobody", ["0", "00000000", "", " 0 ", "N/A", "na", "NONE", "Unknown", "FFFFFFFF"])
def test_what_stands_for_no_serial_number_tells_no_part_from_another(nobody: str) -> None:
    assert unique_identities({"disk:a": nobody, "disk:b": "S1"}) == {"disk:b": "S1"}
    assert match({"disk:a": nobody}, {"disk:b": nobody}, []).moved == ()
    assert match({"disk:a": "S1"}, {"disk:a": nobody}, []).replaced == (
        ReplacedPart("disk:a", "S1", nobody),
    )


@each("identity", ["10", "0A", "FFF", "FFFFF1", "NAB", "None1", "GPU-00000000-0000"])
def test_a_serial_number_may_look_a_little_like_none(identity: str) -> None:
    assert unique_identities({"disk:a": identity}) == {"disk:a": identity}


def test_a_name_that_was_given_is_not_given_again() -> None:
    found = match({"gpu0": "X", "gpu1": "Y"}, {"gpu0": "Y", "gpu1": "Z"}, ["gpu0", "gpu1", "gpu1'"])
    assert [found.name(name) for name in ("gpu1", "gpu1'")] == ["gpu1'", "gpu1''"]


names = st.sampled_from(["gpu0", "gpu1", "gpu2", "gpu3"])
identities = st.dictionaries(names, st.sampled_from(["W", "X", "Y", "Z"]))


@given(identities, identities, st.lists(names))
def test_no_two_components_become_one(
    first: dict[str, str], later: dict[str, str], others: list[str]
) -> None:
    found = match(first, later, others)
    named = [found.name(name) for name in {*later, *others}]
    assert len(set(named)) == len(named)


@given(identities, st.lists(names))
def test_a_run_matched_with_itself_is_itself(found: dict[str, str], others: list[str]) -> None:
    same = match(found, found, others)
    assert all(same.name(name) == name for name in {*found, *others})
    assert (same.moved, same.replaced) == ((), ())
