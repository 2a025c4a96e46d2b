from __future__ import annotations

import pytest
from cases import each

from acceptance.core.limit import GIB
from acceptance.loads.collective.pattern import SIZES, Operation, affordable, fitting, pairs
from acceptance.loads.miscompare import CollectiveCheck


@each(
    "name, factor, sends, receives, in_place",
    [
        ("all_reduce", 1.75, 1000, 1000, True),
        ("all_gather", 0.875, 248, 4 * 248, False),
        ("reduce_scatter", 0.875, 4 * 248, 248, False),
        ("all_to_all", 0.875, 4 * 248, 4 * 248, False),
        ("broadcast", 1.0, 1000, 1000, True),
        ("send_receive", 1.0, 1000, 0, False),
    ],
)
def test_bandwidths_and_counts_are_those_of_nccl_tests(
    name: CollectiveCheck, factor: float, sends: int, receives: int, in_place: bool
) -> None:
    """4,000 bytes of four ranks: 1,000 bytes for each rank are 992 in whole pieces of 16 bytes."""
    eight, operation = Operation(name, 8), Operation(name, 4)
    assert (eight.factor, eight.bus_rate(2 * 10**9, 0.5)) == (factor, 4 * factor)
    share = operation.share(4000, 4)
    assert (operation.sends(0, share), operation.receives(0, share)) == (sends, receives)
    assert operation.size(share, 4) == 4 * max(sends, receives)
    assert operation.in_place == in_place, "torch has one buffer for sums of all and for broadcasts"
    least = eight.share(8, 4)
    assert least == (1 if eight.shares == 8 else 2), "one element for each rank at least"
    assert eight.size(least, 4) == 4 * least * eight.shares


def test_only_the_source_of_a_broadcast_or_a_pair_sends_and_only_the_end_of_a_pair_receives() -> (
    None
):
    pair, cast = Operation("send_receive", 3, 2, 0), Operation("broadcast", 3, 1)
    assert [pair.sends(rank, 5) for rank in range(3)] == [0, 0, 5]
    assert [pair.receives(rank, 5) for rank in range(3)] == [5, 0, 0]
    assert [pair.takes_part(rank) for rank in range(3)] == [True, False, True]
    assert [cast.sends(rank, 5) for rank in range(3)] == [0, 5, 0]
    assert [cast.receives(rank, 5) for rank in range(3)] == [5, 5, 5]
    assert all(cast.takes_part(rank) for rank in range(3))


@each(
    "ranks, source, destination, said",
    [
        (1, 0, 0, "needs two ranks"),
        (2, 0, 2, "not both ranks"),
        (2, -1, 1, "not both ranks"),
        (2, 1, 1, "cannot send to itself"),
    ],
)
def test_what_no_ranks_can_do_is_refused(
    ranks: int, source: int, destination: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Operation("send_receive", ranks, source, destination)


def test_the_sizes_reach_from_8_bytes_to_4_gib_and_hold_those_that_others_publish() -> None:
    assert (SIZES[0], SIZES[-1]) == (8, 4 * GIB)
    assert {1 << 24, 1 << 27, 1 << 30} <= set(SIZES)
    assert list(SIZES) == sorted(SIZES)
    assert pairs(3) == ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))


def test_a_size_fits_with_both_its_buffers_and_the_work() -> None:
    assert fitting(9 * GIB, GIB) == SIZES
    assert fitting(9 * GIB - 1, GIB) == SIZES[:-1]
    assert fitting(17, 1) == (8,)
    with pytest.raises(ValueError, match="too little for any size"):
        fitting(16, 1)


def test_a_size_is_tried_where_the_time_for_it_is_left() -> None:
    assert affordable(800, 100, 0.5, 4.0)
    assert not affordable(800, 100, 0.5, 3.9)
