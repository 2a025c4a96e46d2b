"""A table of cases fails where parametrised tests would, and names each case that did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each


def told(loop: Callable[..., None], **fixtures: object) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        loop(**fixtures)
    return str(caught.value)


def test_every_case_that_is_wrong_is_told_and_no_other() -> None:
    tried = []

    @each("a, b", [(1, 1), (1, 2), (2, 2), (3, 4)])
    def same(a: int, b: int) -> None:
        tried.append(a)
        assert a == b, "they differ"

    text = told(same)
    assert tried == [1, 1, 2, 3]
    assert text.startswith("2 of 4 cases are wrong")
    assert ("--- 1: (1, 2)" in text, "--- 3: (3, 4)" in text, "(1, 1)" in text) == (
        True,
        True,
        False,
    )
    assert "AssertionError: they differ" in text
    assert __file__ in text


def test_what_was_not_raised_and_any_exception_are_told() -> None:
    @each("text", ["one", "two", None], told=str)
    def raises(text: str | None) -> None:
        with pytest.raises(ValueError, match="one"):
            parse(text)

    def parse(text: str | None) -> None:
        if text:
            raise {"one": ValueError, "two": KeyError}[text](text)

    found = told(raises)
    assert ("--- 0: one" in found, "--- 1: two" in found, "--- 2: None" in found) == (
        False,
        True,
        True,
    )
    assert "KeyError: 'two'" in found
    assert "DID NOT RAISE" in found


def test_cases_have_the_names_that_they_are_given() -> None:
    @each("one", [1, 2], told=["first", "second"])
    def is_one(one: int) -> None:
        assert one == 1

    @each("one", [1, 2], told=["first"])
    def nameless(one: int) -> None: ...

    assert "--- 1: second" in told(is_one)
    with pytest.raises(AssertionError, match="not every case has a name"):
        nameless()


def test_of_two_tables_every_case_of_one_meets_every_case_of_the_other() -> None:
    tried = []

    @each("a", [1, 2])
    @each("b", [3, 4])
    def pair(a: int, b: int) -> None:
        tried.append((a, b))

    pair()
    assert tried == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_an_empty_table_is_no_test() -> None:
    @each("one", lambda: [])
    def nothing(one: int) -> None: ...

    with pytest.raises(AssertionError, match="nothing was tried"):
        nothing()


@each("name", lambda: ["a", "b"])
def test_each_case_has_a_folder_of_its_own(tmp_path: Path, name: str) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).touch()


def test_what_a_case_would_leave_behind_or_never_see_is_refused() -> None:
    def patched(monkeypatch: pytest.MonkeyPatch, one: int) -> None: ...

    def other(two: int) -> None: ...

    with pytest.raises(TypeError, match="the case before it changed"):
        each("one", [1])(patched)
    with pytest.raises(AssertionError, match="no parameter"):
        each("one", [1])(other)
