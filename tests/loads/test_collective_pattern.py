from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import each
from collective_model import STORED, add_all, as_bfloat16, received, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from thoroughness import examples

from acceptance.loads import exact_product
from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    EXACT,
    LISTED,
    MOST_RANKS,
    OPERATIONS,
    SPOILED,
    CollectiveFault,
    Numbers,
    Operation,
    before,
    due,
    fault,
    mixed,
)
from acceptance.loads.miscompare import CollectiveCheck, ElementType, WrongValue

dtypes = st.sampled_from(ELEMENT_TYPES)
ranks_ = st.integers(2, 11)  # as many as bfloat16 has numbers for
turns = st.integers(0, (1 << 26) - 1)


def places_of(count: int, first: int = 0) -> Any:
    return np.arange(first, first + count, dtype=np.int64)


def sources_of(numbers: Numbers, operation: Operation, turn: int, share: int) -> list[Any]:
    """What each rank has, in its format; all of it, although some ranks send nothing."""
    count = max(operation.sends(rank, share) for rank in range(operation.ranks))
    return [
        stored(numbers.dtype, numbers.own(rank, turn, places_of(count)))
        for rank in range(operation.ranks)
    ]


def found(
    numbers: Numbers, operation: Operation, rank: int, turn: int, share: int, got: Any
) -> CollectiveFault | None:
    places = places_of(len(got))
    due_there = numbers.by(due(operation, rank, share), turn, places)
    return fault(places, due_there, old_of(numbers, operation, rank, turn, places), got)


def old_of(numbers: Numbers, operation: Operation, rank: int, turn: int, places: Any) -> Any:
    """What stands there before the operation."""
    rule = before(operation, rank)
    return SPOILED if rule is None else numbers.by(rule, turn, places)


def test_the_hash_has_the_bits_of_the_one_of_the_other_loads() -> None:
    places = places_of(1000, (1 << 62) - 500)
    assert (mixed(places).view(np.uint64) == exact_product.mixed(places.view(np.uint64))).all()


@each("dtype", ELEMENT_TYPES)
def test_a_format_holds_all_whole_numbers_up_to_its_bound_and_not_the_next(
    dtype: ElementType,
) -> None:
    bound = EXACT[dtype]
    low = places_of(min(bound, 4096), max(0, bound - 4095))
    assert (stored(dtype, low).astype(np.int64) == low).all()
    if dtype == "i32":
        assert bound == np.iinfo(np.int32).max
    else:
        assert int(stored(dtype, [bound + 1])[0]) != bound + 1


@given(values=st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1))
@settings(max_examples=examples(200))
def test_the_bfloat16_of_these_tests_is_the_nearest_one(values: list[float]) -> None:
    given_ = np.array(values, np.float32)
    rounded = as_bfloat16(given_)
    assert (rounded.view(np.uint32) & np.uint32(0xFFFF) == 0).all()
    for one, near in zip(given_.tolist(), rounded.tolist(), strict=True):
        if one:  # 8 bits: the next one is 2**-7 of the leading power away
            step = math.ldexp(1.0, max(math.frexp(one)[1] - 8, -133))
            assert abs(near - one) <= step / 2


@given(dtype=dtypes, ranks=ranks_, turn=turns, data=st.data())
@settings(max_examples=examples(200))
def test_a_sum_has_the_due_bits_in_every_order_and_grouping(
    dtype: ElementType, ranks: int, turn: int, data: st.DataObject
) -> None:
    numbers, places = Numbers(dtype, ranks), places_of(64)
    parts = [stored(dtype, numbers.own(rank, turn, places)) for rank in range(ranks)]
    while len(parts) > 1:  # any two of what is left, as any tree or ring would
        one = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = data.draw(st.integers(0, len(parts) - 1))
        parts[second] = add_all(dtype, [one, parts[second]])
    assert parts[0].tobytes() == stored(dtype, numbers.total(turn, places)).tobytes()


@each("dtype", ELEMENT_TYPES)
def test_the_largest_numbers_of_all_ranks_have_an_exact_sum(dtype: ElementType) -> None:
    for ranks in range(2, 12):
        numbers = Numbers(dtype, ranks)
        assert numbers.ranks * numbers.largest <= EXACT[dtype]
        whole = stored(dtype, [numbers.largest])
        assert int(add_all(dtype, [whole] * ranks)[0]) == ranks * numbers.largest


@given(dtype=dtypes, ranks=ranks_, turn=turns)
@settings(max_examples=examples(100))
def test_at_one_place_no_two_ranks_have_the_same_number_and_all_are_in_bounds(
    dtype: ElementType, ranks: int, turn: int
) -> None:
    numbers, places = Numbers(dtype, ranks), places_of(500)
    every = np.stack([numbers.own(rank, turn, places) for rank in range(ranks)])
    assert every.min() >= 1 > SPOILED
    assert every.max() <= numbers.largest
    assert (np.diff(np.sort(every, axis=0), axis=0) > 0).all()
    assert (every.sum(axis=0) == numbers.total(turn, places)).all()


@each("dtype", ELEMENT_TYPES)
def test_numbers_and_sums_differ_by_place_and_turn(dtype: ElementType) -> None:
    numbers, places = Numbers(dtype, 8), places_of(10_000)
    for values in (lambda turn, at: numbers.own(3, turn, at), numbers.total):
        here = values(5, places)
        for other in (values(6, places), values(5, places + 1)):
            assert (here == other).mean() < 0.15
        assert len(np.unique(here)) >= 20


def test_every_number_of_a_rank_occurs_about_as_often_as_any_other() -> None:
    numbers = Numbers("bf16", 8)
    for rank in range(8):
        times = np.bincount(numbers.own(rank, 1, places_of(64_000)), minlength=33)[1:]
        assert numbers.largest == 32
        assert times.min() > 1600
        assert times.max() < 2400


def test_ranks_may_be_given_place_by_place() -> None:
    numbers, places = Numbers("i32", 4), places_of(40)
    mixed_ranks = numbers.own(places % 4, 7, places)
    for rank in range(4):
        assert (mixed_ranks[rank::4] == numbers.own(rank, 7, places)[rank::4]).all()


@each(
    "dtype, ranks",
    [("f32", 1), ("f32", MOST_RANKS + 1), ("bf16", 12), ("f16", 33), ("i32", 0)],
)
def test_a_format_with_too_few_numbers_is_refused(dtype: ElementType, ranks: int) -> None:
    with pytest.raises(ValueError, match=f"{dtype} has no exact sums of {ranks} ranks"):
        Numbers(dtype, ranks)


@each("turn", [-1, 1 << 26])
def test_a_turn_without_places_of_its_own_is_refused(turn: int) -> None:
    with pytest.raises(ValueError, match="is no turn"):
        Numbers("f32", 2).own(0, turn, places_of(1))


@given(
    name=st.sampled_from(OPERATIONS),
    dtype=dtypes,
    ranks=ranks_,
    turn=turns,
    size=st.integers(1, 4000),
    data=st.data(),
)
@settings(max_examples=examples(200))
def test_a_right_operation_has_no_fault_and_one_that_did_nothing_is_unwritten(
    name: CollectiveCheck, dtype: ElementType, ranks: int, turn: int, size: int, data: st.DataObject
) -> None:
    source, destination = data.draw(st.permutations(range(ranks)))[:2]
    operation, numbers = Operation(name, ranks, source, destination), Numbers(dtype, ranks)
    share = operation.share(size, np.dtype(STORED[dtype]).itemsize)
    sources = sources_of(numbers, operation, turn, share)
    for rank in range(ranks):
        count = operation.receives(rank, share)
        if not count:
            continue
        got = received(operation, dtype, sources, share, rank)
        assert len(got) == count
        assert found(numbers, operation, rank, turn, share, got) is None
        if name == "broadcast" and rank == source:
            continue  # it holds what is due from the start
        old = old_of(numbers, operation, rank, turn, places_of(count))
        nothing = known(
            found(numbers, operation, rank, turn, share, stored(dtype, old + np.zeros(count)))
        )
        assert (nothing.elements, nothing.unwritten) == (count, count)


@given(
    name=st.sampled_from(("all_reduce", "all_gather", "reduce_scatter", "all_to_all")),
    dtype=dtypes,
    ranks=ranks_,
    turn=turns,
    data=st.data(),
)
@settings(max_examples=examples(200))
def test_one_rank_in_the_place_of_another_is_wrong_wherever_it_matters(
    name: CollectiveCheck, dtype: ElementType, ranks: int, turn: int, data: st.DataObject
) -> None:
    operation, numbers, share = Operation(name, ranks), Numbers(dtype, ranks), 16
    one, other = data.draw(st.permutations(range(ranks)))[:2]
    sources = sources_of(numbers, operation, turn, share)
    right = received(operation, dtype, sources, share, 0)
    sources[one] = sources[other]
    doubled = known(
        found(numbers, operation, 0, turn, share, received(operation, dtype, sources, share, 0))
    )
    if name in ("all_reduce", "reduce_scatter"):
        assert doubled.elements == share
        return
    assert doubled.elements == share
    assert doubled.first[0].index == (one * share,)
    swapped = right.reshape(ranks, share).copy()
    swapped[[one, other]] = swapped[[other, one]]
    both = known(found(numbers, operation, 0, turn, share, swapped.reshape(-1)))
    assert both.elements == 2 * share


@given(dtype=dtypes, ranks=ranks_, turn=turns, missing=st.integers(0, 10))
@settings(max_examples=examples(100))
def test_a_sum_without_one_rank_is_wrong_in_every_element(
    dtype: ElementType, ranks: int, turn: int, missing: int
) -> None:
    operation, numbers = Operation("all_reduce", ranks), Numbers(dtype, ranks)
    sources = sources_of(numbers, operation, turn, 50)
    del sources[missing % ranks]
    assert known(found(numbers, operation, 0, turn, 50, add_all(dtype, sources))).elements == 50


@given(
    name=st.sampled_from(OPERATIONS),
    dtype=dtypes,
    place=st.integers(0, 59),
    off=st.sampled_from([-1, 1, math.nan]),
)
@settings(max_examples=examples(200))
def test_one_wrong_element_is_found_and_named(
    name: CollectiveCheck, dtype: ElementType, place: int, off: float
) -> None:
    operation, numbers = Operation(name, 4), Numbers(dtype, 4)
    got = received(operation, dtype, sources_of(numbers, operation, 9, 60), 60, 1)
    right = got[place].item()
    got[place] = right - 1 if dtype == "i32" else right + off
    wrong = found(numbers, operation, 1, 9, 60, got)
    assert wrong == CollectiveFault(
        1,
        0,
        (WrongValue(index=(place,), expected=repr(right), got=repr(got[place].item())),),
    )


def test_all_wrong_elements_are_counted_and_the_first_are_listed_over_all_pieces() -> None:
    places, right = places_of(10), places_of(10) + 1
    got = right.astype(np.float32)
    got[2:8] = SPOILED
    whole = fault(places, right, SPOILED, got)
    pieces = [fault(places[at], right[at], SPOILED, got[at]) for at in (slice(5), slice(5, 10))]
    assert pieces[0] is not None
    assert pieces[1] is not None
    assert whole == pieces[0] + pieces[1]
    assert (whole.elements, whole.unwritten) == (6, 6)
    assert [one.index for one in whole.first] == [(2,), (3,), (4,), (5,)]
    assert len(whole.first) == LISTED
