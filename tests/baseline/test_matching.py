"""Which component is which in two runs."""

from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.baseline.facts import MovedPart, ReplacedPart, match, unique_identities
from acceptance.core.parts import CPU, Component, Core, Gpu, Pair, Part, Renamed, parse

ZERO, ONE, OTHER = Gpu(0), Gpu(1), Renamed(parse("gpu1"))
PATH, NEVER_SEEN = Pair(ZERO, ONE), parse("never seen")
DISK_A, DISK_B, DISK_C = (Part("disk", name) for name in "abc")
SWAPPED = (MovedPart("X", ZERO, ONE), MovedPart("Y", ONE, ZERO))
WENT = MovedPart("Y", ONE, ZERO)


@each(
    "first, later, others, names, moved, replaced, is_other",
    [
        (
            {},
            {},
            [CPU, Core(3)],
            {CPU: CPU, Core(3): Core(3), NEVER_SEEN: NEVER_SEEN},
            (),
            (),
            {CPU: False},
        ),
        (
            {ZERO: "X", ONE: "Y"},
            {ZERO: "Y", ONE: "X"},
            [PATH],
            {ZERO: ONE, ONE: ZERO, PATH: Pair(ONE, ZERO)},
            SWAPPED,
            (),
            {ZERO: False},
        ),
        (
            {ZERO: "X"},
            {ZERO: "Z"},
            [ZERO],
            {ZERO: ZERO},
            (),
            (ReplacedPart(ZERO, "X", "Z"),),
            {ZERO: True, PATH: True, ONE: False},
        ),
        (
            {ZERO: "X", ONE: "Y"},
            {ZERO: "Y", ONE: "Z"},
            [ZERO, ONE, OTHER],
            {ZERO: ONE, ONE: OTHER, OTHER: Renamed(OTHER)},
            (WENT,),
            (),
            {},
        ),
        (
            {DISK_A: "0", DISK_B: "0"},
            {DISK_B: "0", DISK_C: "0"},
            [],
            {DISK_B: DISK_B, DISK_C: DISK_C},
            (),
            (),
            {},
        ),
    ],
    told=[
        "by name where nothing tells an identity",
        "a card that moved to another slot is the same card, and a path goes with its ends",
        "another card in the same slot keeps its name and is told",
        "a new card never takes the name of one that moved, nor one that was given",
        "a serial number that two parts share tells neither",
    ],
)
def test_which_component_is_which(
    first: dict[Component, str],
    later: dict[Component, str],
    others: list[Component],
    names: dict[Component, Component],
    moved: tuple[MovedPart, ...],
    replaced: tuple[ReplacedPart, ...],
    is_other: dict[Component, bool],
) -> None:
    found = match(first, later, others)
    assert {name: found.name(name) for name in names} == names
    assert (found.moved, found.replaced) == (moved, replaced)
    assert {name: found.is_other(name) for name in is_other} == is_other


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
