"""Equal GPUs held against each other by what they computed: whoever differs from most is told,
and a tie clears nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.parts import Component, Gpu
from acceptance.diagnosis.agreement import Agreement, ProductDigests, ProductKey, compare
from acceptance.wording import words

KEY, OTHER = ("bf16", "8192x8192x8192"), ("f64", "4096x4096x4096")
RIGHT, WRONG, ODD = ("in", "out"), ("in", "uot"), ("ni", "out")


def gpus(
    *results: tuple[str, str], library: str = "cuBLAS 12.8"
) -> dict[Component, ProductDigests]:
    """GPUs that agree in one product and made these of another."""
    return {
        Gpu(index): ProductDigests(library, {KEY: one, OTHER: RIGHT})
        for index, one in enumerate(results)
    }


def siblings(count: int) -> dict[str, tuple[Component, ...]]:
    return {"NVIDIA H200": tuple(Gpu(index) for index in range(count))}


def counts(found: Agreement) -> dict[Component, int]:
    return {name: len(rows) for name, rows in found.differing.items()}


def worded(found: Agreement, gpu: Component) -> dict[ProductKey, str]:
    return {key: words.message(told) for key, told in found.differing[gpu].items()}


WHERE = "bf16 8192x8192x8192: "


@each(
    "results, differing",
    [
        ((RIGHT, RIGHT, RIGHT), {}),
        ((RIGHT, WRONG, RIGHT, RIGHT), {1: "result uot, 3 of 4 have out"}),
        ((RIGHT, ODD, RIGHT), {1: "inputs ni, 2 of 3 have in"}),
        # of two alone that differ either may be wrong, and a tie clears nobody
        ((RIGHT, WRONG), {0: "result out, another has uot", 1: "result uot, another has out"}),
        ((RIGHT, WRONG, RIGHT, WRONG), {0: None, 1: None, 2: None, 3: None}),
    ],
)
def test_whoever_differs_from_most_is_told_with_its_product(
    results: Sequence[tuple[str, str]], differing: dict[int, str | None]
) -> None:
    found = compare(gpus(*results), siblings(len(results)))
    assert found.troubles == ()
    assert counts(found) == {Gpu(n): n in differing for n in range(len(results))}
    for number, told in differing.items():
        assert told is None or worded(found, Gpu(number)) == {KEY: WHERE + told}


def test_gpus_of_other_models_are_not_held_against_each_other() -> None:
    models = {"A": (Gpu(0), Gpu(1)), "B": (Gpu(2),)}
    assert counts(compare(gpus(RIGHT, RIGHT, WRONG), models)) == {Gpu(0): 0, Gpu(1): 0}


def test_a_sibling_whose_load_died_is_left_out_and_one_alone_is_not_compared() -> None:
    made = gpus(RIGHT, WRONG, RIGHT)
    assert counts(compare({Gpu(0): made[Gpu(0)], Gpu(2): made[Gpu(2)]}, siblings(3))) == {
        Gpu(0): 0,
        Gpu(2): 0,
    }
    assert compare({Gpu(0): made[Gpu(0)]}, siblings(3)) == Agreement()


def test_another_library_is_a_trouble_and_no_result() -> None:
    made = {**gpus(RIGHT, RIGHT), Gpu(1): gpus(RIGHT, library="cuBLAS 13.0")[Gpu(0)]}
    found = compare(made, siblings(2))
    assert found.differing == {}
    (trouble,) = found.troubles
    assert words.message(trouble).startswith(
        "equal GPUs (NVIDIA H200) ran with different libraries"
    )
    assert words.message(trouble).endswith("gpu0 cuBLAS 12.8, gpu1 cuBLAS 13.0")


def test_another_selection_of_products_is_a_trouble_and_no_result() -> None:
    made = gpus(RIGHT, RIGHT)
    found = compare({**made, Gpu(1): ProductDigests("cuBLAS 12.8", {KEY: RIGHT})}, siblings(2))
    assert (found.differing, len(found.troubles)) == ({}, 1)
    told = "did not make the same products, so their results cannot be compared: "
    assert words.message(found.troubles[0]).endswith(
        f"{told}gpu0 bf16 8192x8192x8192, f64 4096x4096x4096; gpu1 bf16 8192x8192x8192"
    )


@given(st.lists(st.sampled_from([RIGHT, WRONG, ODD]), min_size=2, max_size=8))
def test_whoever_is_cleared_has_what_more_have_than_anything_else(
    results: list[tuple[str, str]],
) -> None:
    found = compare(gpus(*results), siblings(len(results)))
    assert set(found.differing) == {Gpu(index) for index in range(len(results))}
    for index, own in enumerate(results):
        cleared = not found.differing[Gpu(index)]
        others = [results.count(one) for one in {*results} - {own}]
        assert cleared == (results.count(own) > max(others, default=0))
