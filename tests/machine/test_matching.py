"""Which component is which in two runs."""

from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.parts import CPU, Core, Gpu, Pair, Part, Renamed, parse
from acceptance.machine.matching import MovedPart, ReplacedPart, match, unique_identities


def test_by_name_where_nothing_tells_an_identity() -> None:
    found = match({}, {}, [CPU, Core(3)])
    assert [found.name(name) for name in (CPU, Core(3), parse("never seen"))] == [
        CPU,
        Core(3),
        parse("never seen"),
    ]
    assert (found.moved, found.replaced) == ((), ())


def test_a_card_that_moved_to_another_slot_is_the_same_card() -> None:
    found = match({Gpu(0): "X", Gpu(1): "Y"}, {Gpu(0): "Y", Gpu(1): "X"}, [])
    assert (found.name(Gpu(0)), found.name(Gpu(1))) == (Gpu(1), Gpu(0))
    assert found.moved == (MovedPart("X", Gpu(0), Gpu(1)), MovedPart("Y", Gpu(1), Gpu(0)))
    assert found.replaced == ()
    assert not found.is_other(Gpu(0))


def test_a_path_goes_with_the_cards_at_its_ends() -> None:
    found = match({Gpu(0): "X", Gpu(1): "Y"}, {Gpu(0): "Y", Gpu(1): "X"}, [Pair(Gpu(0), Gpu(1))])
    assert found.name(Pair(Gpu(0), Gpu(1))) == Pair(Gpu(1), Gpu(0))


def test_another_card_in_the_same_slot_keeps_its_name_and_is_told() -> None:
    found = match({Gpu(0): "X"}, {Gpu(0): "Z"}, [Gpu(0)])
    assert found.name(Gpu(0)) == Gpu(0)
    assert found.replaced == (ReplacedPart(Gpu(0), "X", "Z"),)
    assert found.is_other(Gpu(0))
    assert found.is_other(Pair(Gpu(0), Gpu(1)))
    assert not found.is_other(Gpu(1))


def test_a_new_card_never_takes_the_name_of_one_that_moved() -> None:
    found = match({Gpu(0): "X", Gpu(1): "Y"}, {Gpu(0): "Y", Gpu(1): "Z"}, [Gpu(0), Gpu(1)])
    assert (found.name(Gpu(0)), found.name(Gpu(1))) == (Gpu(1), Renamed(parse("gpu1")))


def test_a_serial_number_that_two_parts_share_tells_neither() -> None:
    found = match(
        {Part("disk", "a"): "0", Part("disk", "b"): "0"},
        {Part("disk", "b"): "0", Part("disk", "c"): "0"},
        [],
    )
    assert [found.name(name) for name in (Part("disk", "b"), Part("disk", "c"))] == [
        Part("disk", "b"),
        Part("disk", "c"),
    ]
    assert (found.moved, found.replaced) == ((), ())


@each("nobody", ["0", "00000000", "", " 0 ", "N/A", "na", "NONE", "Unknown", "FFFFFFFF"])
def test_what_stands_for_no_serial_number_tells_no_part_from_another(nobody: str) -> None:
    assert unique_identities({Part("disk", "a"): nobody, Part("disk", "b"): "S1"}) == {
        Part("disk", "b"): "S1"
    }
    assert match({Part("disk", "a"): nobody}, {Part("disk", "b"): nobody}, []).moved == ()
    assert match({Part("disk", "a"): "S1"}, {Part("disk", "a"): nobody}, []).replaced == (
        ReplacedPart(Part("disk", "a"), "S1", nobody),
    )


@each("identity", ["10", "0A", "FFF", "FFFFF1", "NAB", "None1", "GPU-00000000-0000"])
def test_a_serial_number_may_look_a_little_like_none(identity: str) -> None:
    assert unique_identities({Part("disk", "a"): identity}) == {Part("disk", "a"): identity}


def test_a_name_that_was_given_is_not_given_again() -> None:
    found = match(
        {Gpu(0): "X", Gpu(1): "Y"},
        {Gpu(0): "Y", Gpu(1): "Z"},
        [Gpu(0), Gpu(1), Renamed(parse("gpu1"))],
    )
    assert [found.name(name) for name in (Gpu(1), Renamed(parse("gpu1")))] == [
        Renamed(parse("gpu1")),
        Renamed(Renamed(parse("gpu1"))),
    ]


names = st.sampled_from([Gpu(0), Gpu(1), Gpu(2), Gpu(3)])
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
