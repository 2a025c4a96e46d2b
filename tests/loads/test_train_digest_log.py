"""The digests of a run as text, and where two runs first differ."""

from __future__ import annotations

import dataclasses

import pytest
from cases import each
from known import known
from sound_loads import TENSORS, Flip, digest_run

from acceptance.loads.program import LoadError
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import (
    Row,
    RunDigests,
    Stamp,
    difference,
    due_rows,
    from_numbers,
    gpt_tensors,
    parse,
)

RUN = digest_run("bf16")
SMALL = from_numbers(("a", "b"), 1, [[3, 4, 0]] * 9)


def test_a_run_is_read_as_it_was_written() -> None:
    assert parse(RUN.text()) == RUN
    assert (RUN.steps, len(TENSORS)) == (20, 196)
    assert RUN.summaries == parse(RUN.text()).summaries
    assert len(set(RUN.summaries)) == 3
    assert {len(one) for one in RUN.summaries} == {16}
    odd = from_numbers(("a",), 1, [[-1, -2, 3]] * 5)
    assert parse(odd.text()) == odd
    assert odd.rows[0].stamps == (Stamp((1 << 64) - 1, (1 << 64) - 2, 3),)


def test_the_backward_pass_is_done_with_the_last_block_first() -> None:
    names = gpt_tensors(2)
    assert len(names) == 4 + 2 * 16
    assert names[:3] == ("norm.weight", "norm.bias", "blocks.1.feed_forward.down.weight")
    assert names[-3:] == ("blocks.0.first.bias", "positions", "tokens.weight")


def test_another_number_of_stamps() -> None:
    with pytest.raises(ValueError, match="8 stamps instead of 9"):
        from_numbers(("a", "b"), 1, [[3, 4, 0]] * 8)
    assert [one[:2] for one in due_rows(1, 2)] == [
        (0, "loss"),
        (0, "gradient"),
        (0, "weight"),
        (0, "first_moment"),
        (0, "second_moment"),
    ]


STAMP = f"{3:016x}{4:016x}"


@each(
    "old, new, said",
    [
        ("tensors a b", "tensors", "no names of tensors"),
        ("tensors a b", "tensors ", "no names of tensors"),
        ("tensors a b", "tensors a a", "no names of tensors"),
        ("tensors a b", "tensor a b", "no names of tensors"),
        ("tensors a b", "tensors a b c", "not those of 1 steps of 3 tensors"),
        ("0 loss ", "1 loss ", "not those of"),
        ("0 loss ", "00 loss ", "no row"),
        ("0 loss ", "-1 loss ", "no row"),
        ("0 loss ", "0 lost ", "no row"),
        ("0 gradient ", "0 loss ", "not those of"),
        (f"0 loss {STAMP}\n", "", "not those of 0 steps"),
        (f"0 weight {STAMP} {STAMP}\n", "", "not those of"),
        (f"0 loss {STAMP}", "0 loss", "no stamp"),
        (f"0 loss {STAMP}", f"0 loss {STAMP} ", "no stamp"),
        (f"0 loss {STAMP}", f"0 loss {STAMP}!0", "no stamp"),
        (f"0 loss {STAMP}", f"0 loss {STAMP[:-1]}", "no stamp"),
        (f"0 loss {STAMP}", f"0 loss {STAMP}\n", "no row"),
    ],
)
def test_what_is_no_log_is_refused(old: str, new: str, said: str) -> None:
    text = SMALL.text()
    assert old in text
    with pytest.raises(LoadError, match=said):
        parse(text.replace(old, new, 1))


def changed(place: tuple[int, int], stamp: Stamp) -> RunDigests:
    """The small run with another stamp in a row."""
    row, at = place
    rows = list(SMALL.rows)
    stamps = list(rows[row].stamps)
    stamps[at] = stamp
    rows[row] = Row(rows[row].step, rows[row].part, tuple(stamps))
    return dataclasses.replace(SMALL, rows=tuple(rows))


@each(
    "place, stamp, kind, bit",
    [
        ((1, 1), Stamp(5, 4 + 1, 0), "bit", 0),
        ((1, 1), Stamp(5, 4 + (1 << 12), 0), "bit", 12),
        ((1, 1), Stamp(5, (4 - (1 << 31)) % (1 << 64), 0), "bit", 31),
        ((1, 1), Stamp(5, 4 + (1 << 32), 0), "several", None),
        ((1, 1), Stamp(5, 4 + 3, 0), "several", None),
        ((1, 1), Stamp(5, 4, 0), "several", None),
        ((1, 1), Stamp(5, 4 + (1 << 12), 1), "not_finite", None),
        ((0, 0), Stamp(5, 4 + (1 << 12), 0), "several", None),
        ((0, 0), Stamp(5, 4 + (1 << 12), 1), "not_finite", None),
    ],
)
def test_the_kind_of_a_difference(
    place: tuple[int, int], stamp: Stamp, kind: str, bit: int | None
) -> None:
    other = changed(place, stamp)
    for one, beside in ((SMALL, other), (other, SMALL)):
        found = known(difference(one, beside))
        assert (found.kind, found.bit, found.digests) == (kind, bit, 1)
        assert found.tensor == ("b" if place[0] else digest_log.LOSS)


def test_the_first_difference_counts_and_all_are_counted() -> None:
    wrong = Flip()
    found = known(difference(RUN, digest_run("bf16", wrong)))
    assert (found.step, found.part, found.tensor, found.kind, found.bit) == (
        wrong.step,
        wrong.part,
        wrong.tensor,
        "bit",
        wrong.bit,
    )
    assert found.digests > 13 * 196
    assert difference(RUN, digest_run("bf16")) is None


def test_runs_of_other_tensors_or_steps_are_not_compared() -> None:
    for other in (
        dataclasses.replace(SMALL, tensors=("a", "c")),
        from_numbers(("a", "b"), 2, [[3, 4, 0]] * 12),
    ):
        with pytest.raises(ValueError, match="not of the same tensors and steps"):
            difference(SMALL, other)
