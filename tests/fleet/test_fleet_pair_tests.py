"""What the two programs of a pair prove, and which pairs are slow."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cases import each
from load_texts import printed
from pair_outputs import asked

from acceptance import resources
from acceptance.core.message import Message, SetupError
from acceptance.core.parts import Gpu, Pair
from acceptance.fleet.pair_tests import (
    RATES,
    Half,
    Judged,
    NodePair,
    PairTest,
    judge,
    next_tests,
    one_machine,
    read_half,
    read_limits,
)
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES, WrongCollective, WrongValue
from acceptance.loads.protocol import Output
from acceptance.process.command import ProgramResult

LIMITS = read_limits(resources.locate("pairs.toml"))
SOUND = dict.fromkeys(RATES, 10.0)


def ended(text: str, code: int = 0, err: str = "", **more: bool) -> ProgramResult:
    return ProgramResult(("load",), code, text, err, 1.0, **more)


@each("rank", [0, 1])
def test_a_whole_output_gives_rates_and_no_wrong_element(rank: int) -> None:
    ask = asked(rank)
    found = read_half(ask, ended(printed(ask, {"host": "boot", "uuids": ["GPU-7"]})))
    assert found == Half(SOUND, 0, True, None, frozenset(("boot", "GPU-7")))
    found = read_half(ask, ended(printed(ask, values={COLLECTIVE_MISCOMPARES: 7})))
    assert (found.wrong, found.reason) == (7, None)


ASK = asked(0)
WHOLE = printed(ASK)


@each(
    "done, began, code",
    [
        (ended("", 255, "ssh: no route"), False, "ended_with_code"),
        (ended(WHOLE, 1), True, "ended_with_code"),
        (ended(WHOLE, -9), True, "ended_by_signal"),
        (ended(WHOLE, timed_out=True), True, "timed_out"),
        (ended(WHOLE, truncated=True), True, "ended_with_code"),
        (ended(""), False, "load_silent"),
        (ended("Welcome to n1\n" + WHOLE), False, "load_line_torn"),
        (ended(WHOLE.replace('{"end"', '{"END"')), True, "load_line_unusable"),
        (ended(WHOLE.replace("10.0", "NaN")), True, "load_line_torn"),
        (ended(WHOLE.replace("_all_gather", "_broadcast")), True, "load_unmeasured"),
        (ended(printed(asked(1))), True, "load_parameter"),
        (ended(printed(asked(0, "other"))), True, "load_parameter"),
        (ended(printed(asked(0, inject="wrong"))), True, "load_fault_injected"),
    ],
)
def test_what_is_no_proof_has_no_rates(done: ProgramResult, began: bool, code: str) -> None:
    found = read_half(ASK, done)
    assert (found.rates, found.began) == ({}, began)
    why = found.reason
    if isinstance(why, Message) and why.code == "pair_program":
        why = why.values["how"]  # type: ignore[assignment]
    assert isinstance(why, Message)
    assert why.code == code


def test_wrong_results_of_a_program_that_died_are_counted() -> None:
    import io

    stream = io.StringIO()
    load = Output(stream)
    load.hello("collective_pair", {"rank": 1, "host": "boot", "uuids": "GPU-1"})
    wrong = WrongCollective(
        component=Pair(Gpu(0), Gpu(1)),
        check="send_receive",
        format="f32",
        arm="default",
        size=4096,
        turn=0,
        elements=3,
        unwritten=0,
        first=(WrongValue(index=(0,), expected="1", got="2"),),
    )
    load.miscompare(wrong)
    found = read_half(asked(1), ended(stream.getvalue(), 1))
    assert (found.wrong, found.began, found.machine) == (1, True, {"boot"})
    assert str(Gpu(1)) in str(wrong.component)


def one_half(rate: float) -> Half:
    return Half(dict.fromkeys(RATES, rate), 0, True)


def gone(began: bool = False) -> Half:
    return Half({}, 0, began, "gone")


def of_rates(rates: Sequence[float]) -> list[PairTest]:
    return [
        PairTest(NodePair(f"n{2 * k:04}", f"n{2 * k + 1:04}"), 1, (one, one))
        for k, one in enumerate(map(one_half, rates))
    ]


def judged(tests: Sequence[PairTest], count: int | None = None) -> Judged:
    return judge([f"n{k:04}" for k in range(count or 2 * len(tests))], tests, LIMITS)


def test_the_slower_node_counts() -> None:
    fast = Half(SOUND, 0, True)
    slow = Half({**SOUND, "all_gather": 4.0}, 0, True)
    (one,) = of_rates([10.0])
    assert PairTest(one.pair, 1, (fast, slow)).rates == {**SOUND, "all_gather": 4.0}
    assert PairTest(one.pair, 1, (Half({}, 0, True, "why"), slow)).rates == {}


def test_a_pair_is_slow_beyond_the_limit_alone() -> None:
    limit = 10.0 * (1 - LIMITS.few.share)
    found = judged(of_rates([10.0, limit * 1.001, 10.0, 30.0]))
    assert (found.slow, found.apart, found.compared) == ({}, {}, True)
    assert found.verdict == "PASS"
    found = judged(of_rates([10.0, limit * 0.999, 10.0, 30.0]))
    (pair,) = found.slow
    assert pair == ("n0002", "n0003")
    assert {one.rate for one in found.slow[pair]} == set(RATES)
    assert found.slow[pair][0].usual == 10.0
    assert found.slow[pair][0].threshold == LIMITS.few.share
    assert found.passed[pair] is False


@each(
    "rates, verdict, slow, apart",
    [
        ([], "UNJUDGED", [], []),
        ([10.0], "PASS", [], []),  # it has nothing to compare with
        # of two pairs none is blamed
        ([10.0, 9.0], "PASS", [], []),
        ([10.0, 5.0], "UNJUDGED", [], [("n0002", "n0003")]),
        # of an even number of others the worse counts
        ([6.0, 7.0, 10.0], "PASS", [], []),
        ([6.0, 10.0, 10.0], "UNJUDGED", [("n0000", "n0001")], []),
    ],
)
def test_few_pairs(
    rates: list[float],
    verdict: str,
    slow: list[tuple[str, str]],
    apart: list[tuple[str, str]],
) -> None:
    found = judged(of_rates(rates), 2 * len(rates) or 2)
    assert (found.verdict, found.bad) == (verdict, ())
    assert (list(found.slow), list(found.apart)) == (slow, apart)
    assert found.compared == (len(rates) > 1)


def all_tested(count: int, rate: Callable[[NodePair], Half]) -> Judged:
    """What is judged of so many nodes when no more tests are due."""
    nodes = [f"n{k:04}" for k in range(count)]
    found = judge(nodes, (), LIMITS)
    while now := next_tests(nodes, found.passed):
        round_ = 1 + max((one.round for one in found.tests), default=0)
        new = [PairTest(pair, round_, (half, half)) for pair in now for half in [rate(pair)]]
        found = judge(nodes, [*found.tests, *new], LIMITS)
    return found


@each("slow", ["n0000", "n0001", "n0002"])
def test_a_slow_node_of_three_is_not_judged(slow: str) -> None:
    """Wherever it stands in the order: both of its pairs are slower than the one without it."""
    found = all_tested(3, lambda pair: one_half(8.1 if slow in pair else 10.0))
    assert (found.verdict, found.apart, len(found.tests)) == ("PASS", {}, 3)
    found = all_tested(3, lambda pair: one_half(7.9 if slow in pair else 10.0))
    assert (found.verdict, found.compared, found.slow) == ("UNJUDGED", True, {})
    assert sorted(found.apart) == sorted(one.pair for one in found.tests if slow in one.pair)


@each("first, verdict", [(10.0, "PASS"), (1.0, "UNJUDGED")])
def test_a_retest_is_compared_both_ways_with_a_first_round_of_one_pair(
    first: float, verdict: str
) -> None:
    found = all_tested(3, lambda pair: one_half(first if pair[1] == "n0001" else 10.0))
    assert found.verdict == verdict
    assert list(found.apart) == ([] if verdict == "PASS" else [("n0000", "n0001")])


def test_a_retest_is_slow_where_it_is_below_both_pairs_of_the_first_round() -> None:
    first = of_rates([10.0, 8.1])
    for rate, slow in ((6.6, False), (6.4, True)):
        again = PairTest(NodePair("n0003", "n0004"), 2, (one_half(rate), one_half(rate)))
        found = judged([*first, again], 5)
        assert (found.apart, bool(found.slow)) == ({}, slow)


def test_without_a_rate_of_the_first_round_the_retests_are_compared() -> None:
    """No neighbours can talk to each other, and one node is slow."""
    neighbours = [("n0000", "n0001"), ("n0002", "n0003")]

    def rate(pair: NodePair) -> Half:
        return gone() if pair in neighbours else one_half(5.0 if "n0003" in pair else 10.0)

    found = all_tested(4, rate)
    assert (found.compared, list(found.apart)) == (True, [("n0001", "n0003")])
    assert found.blame.links == tuple(neighbours)


def test_no_pass_while_a_test_is_due() -> None:
    """A run that was ended in between."""
    found = all_tested(3, lambda _: one_half(10.0))
    assert judged(found.tests[:2], 3).verdict == "UNJUDGED"
    assert judged(found.tests, 3).verdict == "PASS"


def test_many_pairs_know_their_spread() -> None:
    """The practical limit where they are alike, and a wider one where they differ."""
    alike = [10.0] * 63
    assert judged(of_rates([*alike, 9.1])).slow == {}
    (found,) = judged(of_rates([*alike, 8.9])).slow.values()
    assert found[0].threshold == LIMITS.practical.share
    apart = [9.5, 10.0, 10.5] * 21
    found_apart = judged(of_rates([*apart, 7.0]))
    assert (found_apart.slow, found_apart.verdict) == ({}, "PASS")
    (found,) = judged(of_rates([*apart, 6.0])).slow.values()
    assert LIMITS.practical.share < found[0].threshold < LIMITS.ceiling.share


def test_rates_that_differ_too_much_are_not_judged() -> None:
    """No spread hides a pair below half of the others; any other drop may be chance."""
    apart = [7.0, 10.0, 13.0] * 21
    found = judged(of_rates([*apart, 5.2]))
    assert (found.slow, found.bad, found.verdict) == ({}, (), "UNJUDGED")
    assert found.too_wide.keys() == RATES.keys()
    assert min(found.too_wide.values()) > 1.0
    found = judged(of_rates([*apart, 4.8]))
    ((pair, slow),) = found.slow.items()
    assert pair == ("n0126", "n0127")
    assert {one.threshold for one in slow} == {LIMITS.ceiling.share}


@each("slow", [1.0, 0.1])
def test_a_slow_node_among_rates_that_differ_much_is_named(slow: float) -> None:
    """64 nodes whose sound rates lie within 25 % of the middle."""
    draw = random.Random(3)
    found = all_tested(
        64,
        lambda pair: one_half(10.0 * draw.uniform(0.75, 1.25) * (slow if "n0007" in pair else 1.0)),
    )
    assert (found.verdict, found.bad) == (("UNJUDGED", ()) if slow == 1.0 else ("FAIL", ("n0007",)))


def test_retests_are_held_against_the_first_round() -> None:
    first = of_rates([10.0, 10.0, 10.0, 2.0])
    again = [
        PairTest(NodePair("n0005", "n0006"), 2, of_rates([2.0])[0].halves),
        PairTest(NodePair("n0004", "n0007"), 2, of_rates([9.5])[0].halves),
        PairTest(NodePair("n0003", "n0006"), 3, of_rates([2.1])[0].halves),
    ]
    found = judged([*first, *again], 8)
    assert found.bad == ("n0006",)
    assert found.verdict == "FAIL"


@each(
    "first, second, same",
    [
        (("boot 1", "GPU-1"), ("boot 2", "GPU-2"), None),
        ((), (), None),
        (("boot 1", "GPU-1"), ("boot 1", "GPU-2"), ("n0001", "n0002", "boot 1")),
        (("boot 1", "GPU-1"), ("boot 2", "GPU-1"), ("n0001", "n0002", "GPU-1")),
    ],
)
def test_two_names_of_one_machine_are_found(
    first: Sequence[str], second: Sequence[str], same: tuple[str, ...] | None
) -> None:
    """In whatever tests the names are; a name may be in several."""
    one, other = (replace(gone(), machine=frozenset(said)) for said in (first, second))
    tests = [
        PairTest(NodePair("n0000", "n0001"), 1, (gone(), one)),
        PairTest(NodePair("n0002", "n0003"), 1, (other, gone())),
        PairTest(NodePair("n0001", "n0004"), 2, (one, gone())),
    ]
    assert one_machine(tests) == same


def broken(pair: NodePair, round_: int, began: bool) -> PairTest:
    return PairTest(pair, round_, (gone(began), gone(began)))


@each("began, verdict", [(False, "UNJUDGED"), (True, "FAIL")])
def test_a_node_that_met_no_other_is_not_judged(began: bool, verdict: str) -> None:
    """A program that died after the two had met is the node's own fault."""
    tests = of_rates([10.0, 10.0, 10.0])
    tests[2] = broken(tests[2].pair, 1, began)
    (good,) = of_rates([10.0])
    tests += [PairTest(NodePair("n0003", "n0004"), 2, good.halves)]
    tests += [broken(NodePair("n0002", "n0005"), 2, False)]
    found = judged(tests)
    assert found.verdict == verdict
    assert (found.bad, found.unreached) == (("n0005",), ())[:: 1 if began else -1]


def test_a_link_that_never_worked_is_bad() -> None:
    tests = of_rates([10.0, 10.0, 10.0])
    tests[2] = broken(tests[2].pair, 1, False)
    (good,) = of_rates([10.0])
    tests += [
        PairTest(NodePair(*pair), 2, good.halves)
        for pair in (("n0003", "n0004"), ("n0002", "n0005"))
    ]
    found = judged(tests)
    assert (found.verdict, found.blame.links) == ("FAIL", (("n0004", "n0005"),))


def test_a_broken_file_of_limits_names_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "pairs.toml"
    path.write_text(
        'practical = {share = 1.5, basis = "x"}\nceiling = {share = 0.5, basis = "x"}\n'
        'few = {below = 4, share = 0.1, basis = "y"}'
    )
    with pytest.raises(SetupError, match=r"pairs.toml: .*practical.share"):
        read_limits(path)
