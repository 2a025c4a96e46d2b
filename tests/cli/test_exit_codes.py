"""One table of exit codes: what the help says, the page, and both READMEs are the same."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import each

from acceptance.cli import exit_codes
from acceptance.cli.parser import VERBS, parser
from acceptance.core import exit_code

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/exit-codes.md"


def parts(verb: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parsers of a verb and of what may follow it, by their names in the table."""

    def below(name: str, own: argparse.ArgumentParser) -> Iterator[tuple[str, Any]]:
        yield name, own
        for action in own._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, further in action.choices.items():
                    yield from below(f"{name} {word}", further)

    (verbs,) = (
        one for one in parser([verb])._actions if isinstance(one, argparse._SubParsersAction)
    )
    return below(verb, verbs.choices[verb])


def test_the_page_has_the_table_of_the_code() -> None:
    assert exit_codes.table() in PAGE.read_text(encoding="utf-8")


def test_every_verb_is_in_the_table_and_nothing_else() -> None:
    assert {name.partition(" ")[0] for name in exit_codes.CODES} == VERBS.keys()
    for verb, codes in exit_codes.CODES.items():
        assert {exit_code.PASS, exit_code.USAGE} <= set(codes) <= set(exit_codes.ORDER), verb
        assert all(codes.values()), verb


@each("verb", list(VERBS))
def test_every_help_ends_with_its_own_codes(verb: str) -> None:
    for name, own in parts(verb):
        told = " ".join(own.format_help().split())
        assert told.endswith(exit_codes.epilog(name)), name
        codes = exit_codes.meanings(name)
        if len(codes) == 1:
            for code, meaning in next(iter(codes.values())).items():
                assert f"{code} {meaning}" in told, name


def test_a_verb_that_is_not_in_the_table() -> None:
    with pytest.raises(KeyError):
        exit_codes.epilog("fly")


def test_the_readmes_and_the_report_agree() -> None:
    for name in ("README.md", "README.zh-CN.md", "docs/report.md"):
        rows = re.findall(
            r"^\| (PASS|FAIL|UNJUDGED|) ?\| ([0-9]) \|", (ROOT / name).read_text(), re.MULTILINE
        )
        told = dict(rows)
        assert told.pop("", str(exit_code.USAGE)) == str(exit_code.USAGE), name
        assert told == {"PASS": "0", "FAIL": "1", "UNJUDGED": "3"}, name
