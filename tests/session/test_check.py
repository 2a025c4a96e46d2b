from __future__ import annotations

import math

import journals
import msgspec
import pytest
from journals import NONE_ALLOWED

from acceptance.core.finding import Plausible, Siblings, Waiver
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Unmeasured, no_answer, not_permitted
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due
from acceptance.core.record import Body, Measured, Skipped
from acceptance.session.check import Check, Incomplete, Violation

ZERO = journals.due("errors", Gpu(0), "count", NONE_ALLOWED)
BOTH = (journals.due("copy", Gpu(0)), journals.due("copy", Gpu(1)))


class Bench:
    """A check with what it wrote."""

    def __init__(self, *dues: Due, waivers: tuple[Waiver, ...] = ()) -> None:
        self.written: list[Body] = []
        self.check = Check(journals.check("link.copy", *dues), waivers, self.written.append)


def test_a_check_that_passes() -> None:
    bench = Bench(*BOTH, ZERO)
    bench.check(
        "copy", {Gpu(0): 100.0, Gpu(1): 120.0}, serials={Gpu(1): "GPU-1"}, notes={Gpu(0): "cold"}
    )
    bench.check("errors", {Gpu(0): 0.0})
    bench.check.conclude()
    assert bench.written == [
        Measured("link.copy", "copy", Gpu(0), "GB/s", 100.0, None, "cold"),
        Measured("link.copy", "copy", Gpu(1), "GB/s", 120.0, "GPU-1", None),
        Measured("link.copy", "errors", Gpu(0), "count", 0.0),
    ]


def test_it_fails_once_and_names_every_fault() -> None:
    bench = Bench(*BOTH, ZERO)
    bench.check("copy", {Gpu(0): 50.0, Gpu(1): 99.9})
    bench.check("errors", {Gpu(0): 3.0}, notes={Gpu(0): "three of them"})
    with pytest.raises(Violation) as raised:
        bench.check.conclude()
    first, second, third = str(raised.value).split("\n")
    assert first.startswith("copy on gpu0: measured 50 GB/s, limit >= 100 GB/s; basis: a basis")
    assert second.startswith("copy on gpu1: ")
    assert third.startswith("errors on gpu0: measured 3 (three of them), limit <= 0")
    assert len(bench.written) == 3  # and the good were journalled as well as the bad


@pytest.mark.parametrize(
    ("dues", "values", "error", "told"),
    [
        (BOTH, [{Gpu(0): 120.0}], Incomplete, "^copy on gpu1 was not measured$"),
        (BOTH, [], Incomplete, "copy on gpu0 was not measured\ncopy on gpu1 was not measured"),
        (
            *(BOTH[:1], [{Gpu(0): 120.0, Gpu(7): 1.0}]),
            *(Incomplete, "^copy came for gpu7, which is not due$"),
        ),
        # A fault goes before a gap, and the worst of several values counts.
        (BOTH, [{Gpu(0): 1.0, Gpu(7): 1.0}], Violation, "copy on gpu0"),
        (BOTH[:1], [{Gpu(0): one} for one in (120.0, 90.0, 130.0)], Violation, "measured 90 GB/s"),
    ],
)
def test_what_is_no_pass(
    dues: tuple[Due, ...], values: list[dict[str, float]], error: type[Exception], told: str
) -> None:
    bench = Bench(*dues)
    for one in values:
        bench.check("copy", one)
    with pytest.raises(error, match=told):
        bench.check.conclude()
    measured = [body for body in bench.written if isinstance(body, Measured)]
    assert Gpu(7) not in {body.component for body in measured}


def test_a_fact_that_nothing_declared_is_passed_over() -> None:
    bench = Bench(BOTH[0])
    bench.check("copy", {Gpu(0): 120.0})
    bench.check("gpu_model_differs", {Gpu(0): 1.0}, skipped={Gpu(0): "no"})
    bench.check.conclude()
    assert len(bench.written) == 1
    assert bench.check.due("gpu_model_differs") == ()
    assert bench.check.due("copy") == (BOTH[0],)


def test_what_was_skipped_does_not_fail_here() -> None:
    # The fold makes a skip that nobody waived unjudged.
    bench = Bench(*BOTH)
    bench.check(
        "copy",
        {Gpu(0): 120.0},
        skipped={
            Gpu(0): not_permitted("not used: there is a value"),
            Gpu(1): not_permitted("run it as root"),
            Gpu(7): not_permitted("x"),
        },
    )
    bench.check.conclude()
    assert [body for body in bench.written if isinstance(body, Skipped)] == [
        Skipped("link.copy", "run it as root", "copy", Gpu(1), why=Unmeasured.NOT_PERMITTED)
    ]


def test_what_failed_to_answer_is_an_error_of_the_check() -> None:
    bench = Bench(*BOTH)
    lost = no_answer("an I/O error")
    bench.check("copy", {Gpu(0): 120.0}, skipped={Gpu(1): lost})
    with pytest.raises(Incomplete) as caught:
        bench.check.conclude()
    assert caught.value.codes == ("no_answer",)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_journalled_as_such(value: float) -> None:
    bench = Bench(journals.due("copy", Gpu(0), "GB/s", Limit("GB/s", "a basis", low=100.0)), ZERO)
    bench.check("copy", {Gpu(0): value}, notes={Gpu(0): "after 3 s"})
    bench.check("errors", {Gpu(0): value})
    assert bench.written == [
        Measured(
            "link.copy",
            "copy",
            Gpu(0),
            "GB/s",
            None,
            note=Message("value_was", {"value": f"{value}", "note": "after 3 s"}),
        ),
        Measured(
            "link.copy",
            "errors",
            Gpu(0),
            "count",
            None,
            note=Message("value_was", {"value": f"{value}"}),
        ),
    ]
    with pytest.raises(
        Incomplete, match=f"copy on gpu0 is no finite number: after 3 s; the value was {value}"
    ):
        bench.check.conclude()


def test_a_waiver_within_its_bound() -> None:
    waiver = Waiver("an old riser", measurement="copy", component="gpu0", worst=80.0)
    bench = Bench(BOTH[0], waivers=(waiver,))
    bench.check("copy", {Gpu(0): 85.0})
    bench.check.conclude()
    bench.check("copy", {Gpu(0): 79.0})
    with pytest.raises(Violation, match="worse than the waiver accepts"):
        bench.check.conclude()


def ratios() -> Bench:
    ceiling = Limit("GB/s", "the link carries no more", high=32.0)
    names = (Gpu(0), Gpu(1), Gpu(2))
    floor = Limit("ratio", "its siblings", low=0.9)
    return Bench(
        *(
            msgspec.structs.replace(
                journals.due("copy", name), criteria=(Plausible(ceiling),), unlimited="recorded"
            )
            for name in names
        ),
        *(
            journals.due("copy_ratio", name, "ratio", floor).against(Siblings("copy", names))
            for name in names
        ),
    )


def test_a_ratio_is_made_of_what_was_journalled() -> None:
    bench = ratios()
    bench.check("copy", {Gpu(0): 24.0, Gpu(1): 20.0, Gpu(2): 28.0})
    bench.check.ratio("copy_ratio", serials={Gpu(2): "GPU-2"})
    assert bench.written[3:] == [
        Measured("link.copy", "copy_ratio", Gpu(0), "ratio", 1.0),
        Measured("link.copy", "copy_ratio", Gpu(1), "ratio", 20 / 26),
        Measured("link.copy", "copy_ratio", Gpu(2), "ratio", 28 / 22, "GPU-2"),
    ]
    with pytest.raises(ValueError, match="copy is no ratio"):
        bench.check.ratio("copy")


def test_a_ratio_that_does_not_follow_proves_nothing_in_the_session_too() -> None:
    bench = ratios()
    bench.check("copy", {Gpu(0): 30.0, Gpu(1): 30.0, Gpu(2): 30.0})
    bench.check("copy_ratio", {Gpu(0): 1.0, Gpu(1): 1.5, Gpu(2): 1.0})
    with pytest.raises(Incomplete, match=r"^copy_ratio on gpu1: 1\.5 was recorded[^\n]*$"):
        bench.check.conclude()


def test_a_reading_that_is_not_possible_accuses_no_sibling() -> None:
    bench = ratios()
    bench.check("copy", {Gpu(0): 131.0, Gpu(1): 31.0, Gpu(2): 31.0})
    bench.check.ratio("copy_ratio")
    assert [one.value for one in bench.written[3:] if isinstance(one, Measured)] == [1.0, 1.0]
    with pytest.raises(Incomplete, match=r"^copy on gpu0: .*131 GB/s"):
        bench.check.conclude()
