"""A sentence is told in the language of the report, with its values; one that nobody translated
stands as it is.
"""

from __future__ import annotations

import gettext
from typing import Any

import pytest
import translated
from cases import each

from acceptance.core.language import ENGLISH, Language

CHINESE = translated.language({"{n} checks": "{n} 项检查"}, "zh-CN")
HOSTILE = "{n.__class__} {0} %s {"


@each(
    "language, text, values, told",
    [
        (ENGLISH, "What failed", {}, "What failed"),
        (ENGLISH, "{n} checks", {"n": 3}, "3 checks"),
        (CHINESE, "{n} checks", {"n": 3}, "3 项检查"),
        (CHINESE, "{n} checks of {of}", {"n": 3, "of": "{n}"}, "3 checks of {n}"),
        (ENGLISH, "a brace { without values", {}, "a brace { without values"),
    ],
)
def test_a_sentence_is_looked_up_and_filled_in(
    language: Language, text: str, values: dict[str, object], told: str
) -> None:
    assert language(text, **values) == told


@each("n, told", [(0, "0 nights of x"), (1, "1 night of x"), (2, "2 nights of x")])
def test_english_has_two_forms_and_needs_no_catalogue(n: int, told: str) -> None:
    assert ENGLISH.ngettext("{n} night of {of}", "{n} nights of {of}", n, of="x") == told


def test_a_sentence_under_a_key() -> None:
    class Keyed(gettext.NullTranslations):
        def pgettext(self, context: str, message: str) -> str:
            return {("gpu", "memory of {gpu}"): "显存 {gpu}"}.get((context, message), message)

    chinese = Language("zh-CN", Keyed())
    assert chinese.pgettext("gpu", "memory of {gpu}", gpu="gpu0") == "显存 gpu0"
    assert chinese.pgettext("host", "memory of {gpu}", gpu="gpu0") == "memory of gpu0"
    assert ENGLISH.pgettext("gpu", "memory {") == "memory {"


@each("language", [ENGLISH, CHINESE])
def test_a_value_is_data_and_never_a_format(language: Language) -> None:
    assert HOSTILE in language("{n} checks", n=HOSTILE)
    assert language.ngettext("{n} of {of}", "{n} of {of}", 2, of=HOSTILE) == f"2 of {HOSTILE}"
    assert language.pgettext("key", "of {of}", of=HOSTILE) == f"of {HOSTILE}"
    assert language.text(HOSTILE) == HOSTILE


def test_a_text_of_a_data_file_is_looked_up_apart() -> None:
    language = Language("xx", texts=translated.Sentences({"Read it.": "Lies es {nach}."}))
    assert language.text("Read it.") == "Lies es {nach}."
    assert language("Read it.") == language.text("Read it") + "."


def test_no_text_is_none_in_every_language() -> None:
    """Under the empty text a catalogue has its header."""
    language = Language("xx", texts=translated.Sentences({"": "Language: xx"}))
    assert language.text("") == ""


def test_a_value_that_is_missing_is_no_sentence() -> None:
    values: dict[str, Any] = {"of": 1}
    with pytest.raises(KeyError):
        ENGLISH("{n} checks", **values)


def test_lists_notes_and_sentences_are_joined_as_the_language_does() -> None:
    assert ENGLISH.listed(["a", "b", "c"]) == "a, b, c"
    assert ENGLISH.listed([]) == ""
    assert ENGLISH.sentences(["One.", "Two."]) == "One. Two."
    assert ENGLISH.noted("gpu0", "{serial}") == "gpu0 ({serial})"
