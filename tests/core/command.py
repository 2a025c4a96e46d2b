"""The command line, called in this process, and what it must answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from acceptance.__main__ import main

Call = Callable[..., tuple[int, str, str]]
Output = TypeVar("Output", str, list[str])


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a call."""
    try:
        code = main(arguments)
    except SystemExit as left:  # argparse
        code = int(left.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def assert_one_sentence(err: str, *words: str) -> None:
    assert err.count("\n") == 1
    assert err.startswith("rigproof: ")
    assert "Traceback" not in err
    for word in words:
        assert word in err


def assert_refused(answered: tuple[int, Output, str], code: int, *words: str) -> None:
    """Nothing is printed, and one sentence says what is wrong."""
    found, out, err = answered
    assert (found, len(out)) == (code, 0), err
    assert_one_sentence(err, *words)


def printed(answered: tuple[int, Output, str], code: int = 0) -> Output:
    """What it printed, and there was no trouble."""
    found, out, err = answered
    assert (found, err) == (code, "")
    return out
