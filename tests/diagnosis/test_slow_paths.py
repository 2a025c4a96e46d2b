"""Slow paths between GPUs: to what they point."""

from __future__ import annotations

from itertools import permutations

from gpu_machine import gpu
from worded import worded

from acceptance.core.parts import Component, Gpu, Pair
from acceptance.diagnosis.transports import PairLinks, Trial, explain

LINKED = PairLinks(18, "SYS", "ok", "ok")


def path(first: int, second: int) -> Component:
    return Pair(Gpu(first), Gpu(second))


def found(
    count: int,
    *slow: tuple[int, int],
    links: PairLinks = LINKED,
    trials: tuple[Trial, ...] = (),
    groups: tuple[tuple[Component, ...], ...] | None = None,
    rate: float = 200.0,
) -> dict[str, str]:
    every = [path(a, b) for a, b in permutations(range(count), 2)]
    rates = dict.fromkeys(every, 300.0) | {path(a, b): rate for a, b in slow}
    due = [gpu(number) for number in range(count)]
    joined = {pair: links for pair in every if isinstance(pair, Pair)}
    told = explain(rates, groups if groups is not None else (tuple(every),), due, joined, trials)
    return {str(name): worded(message) for name, message in told.items()}


def test_equal_paths_point_to_nothing() -> None:
    assert found(4) == {}
    assert found(4, (0, 1), groups=()) == {}
    # a path alone in its group, and one that has no rate
    assert found(2, (0, 1), groups=((path(0, 1),), (path(1, 0), path(2, 3)))) == {}
    # 0.9 of the median itself is not slow
    assert found(4, (0, 1), rate=0.9 * 300.0) == {}


def test_all_paths_of_a_card_point_to_it_and_its_slot() -> None:
    slow = [(2, other) for other in (0, 1, 3)] + [(other, 2) for other in (0, 1, 3)]
    told = found(4, *slow)
    assert sorted(told) == sorted(f"gpu{a}->gpu{b}" for a, b in slow)
    for text in told.values():
        assert text.startswith("points to gpu2 (GPU-00000002-")
        assert "in the slot at 0000:03:00.0" in text


def test_one_path_points_to_what_joins_the_two() -> None:
    trials = (
        Trial(path(0, 1), path(0, 1), 200.0, 205.0),
        Trial(path(0, 1), path(0, 2), 300.0, 301.0),
        Trial(path(1, 0), path(1, 0), 200.0, 200.0),
    )
    told = found(4, (0, 1), trials=trials)
    assert list(told) == ["gpu0->gpu1"]
    (text,) = told.values()
    assert text.startswith("points to what joins gpu0 ")
    assert "(18 x NVLink)" in text
    assert text.endswith("tried again: gpu0->gpu1 205 GB/s, gpu0->gpu2 301 GB/s")
    (text,) = found(4, (0, 1), links=PairLinks(0, "PHB", "ok", "ok")).values()
    assert "(PCI Express, PHB)" in text
    (text,) = found(4, (0, 1), links=PairLinks(0, None, None, None)).values()
    assert "(not known what)" in text
    assert "tried again" not in text


def test_a_path_of_which_nothing_is_known() -> None:
    rates = dict.fromkeys([path(a, b) for a, b in permutations(range(3), 2)], 300.0)
    told = explain(rates | {path(0, 1): 200.0}, [[*rates]], [*map(gpu, range(3))], {}, ())
    assert "(not known what)" in worded(told[path(0, 1)])


def test_a_card_with_one_good_path_is_not_the_cause() -> None:
    told = found(4, (0, 1), (0, 2))
    assert all(text.startswith("points to what joins gpu0 ") for text in told.values())
    assert len(told) == 2


def test_of_two_gpus_nothing_shows_which_of_them() -> None:
    (text,) = found(2, (0, 1)).values()
    assert text.startswith("points to gpu0 ")
    assert " or to what joins them (18 x NVLink)" in text


def test_two_cards_whose_paths_are_all_slow_are_not_told_apart() -> None:
    slow = [(a, b) for a, b in permutations(range(8), 2) if {a, b} & {0, 1}]
    told = found(8, *slow)
    assert " or to what joins them" in told["gpu0->gpu1"]
    assert told["gpu0->gpu5"].startswith("points to gpu0 (")
