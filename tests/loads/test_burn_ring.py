from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.loads.burn.shape import AHEAD, MIN_GROUPS, ResultGroup, ResultRing, division


@given(st.integers(MIN_GROUPS, 40), st.integers(0, 200))
def test_every_group_is_compared_once_before_it_is_overwritten(groups: int, turns: int) -> None:
    ring, compared, left = ResultRing(groups), [], []
    for number in range(turns):
        ahead = ring.ahead()
        if ahead is not None:
            ahead.ticket = number
            compared.append(ahead.number)
        made = ring.pop()
        if made is not None:
            left.append(made.number)
            assert made.ticket is not None, "it is overwritten and was not compared"
            assert number - made.ticket == AHEAD, (
                "its comparison was given to the GPU before the work in between"
            )
            assert number - made.number == groups, "it lay in memory for the whole ring"
        assert ring.next == number % groups
        ring.push(ResultGroup(ring.next, number, 0, 0.0))
    rest = ring.drain()
    assert [made.number for made in rest] == list(range(max(0, turns - groups), turns))
    begun = [made.number for made in rest if made.ticket is not None]
    assert compared == [*left, *begun]
    assert left + [made.number for made in rest] == list(range(turns))


def test_a_ring_needs_room() -> None:
    with pytest.raises(ValueError, match=r"needs 4 groups of results, and there is memory for 3"):
        ResultRing(3)


@given(st.integers(4, 3000), st.integers(1, 8))
def test_places_are_divided_so_that_each_has_had_another_shape(slots: int, most: int) -> None:
    group, groups = division(slots, most, 3)
    assert 1 <= group <= most
    assert groups >= MIN_GROUPS
    assert groups % 3 != 0
    assert group * groups <= slots
    if slots >= 20:
        assert group * groups >= 0.85 * slots
    before = [place % groups for place in range(5 * groups)]
    shapes = {}
    for count, place in enumerate(before):
        assert shapes.get(place) != count % 3, "what was never written would be what is due"
        shapes[place] = count % 3


def test_how_places_are_divided() -> None:
    assert division(1000, 8, 3) == (8, 125)
    assert division(42 * 8, 8, 3) == (8, 41)
    assert division(9, 8, 3) == (2, 4)
    assert division(4, 8, 3) == (1, 4)
    with pytest.raises(ValueError, match="there is memory for 3 results"):
        division(3, 8, 3)
