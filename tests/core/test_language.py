"""A sentence is told in the language of the report, with its values; one that nobody translated
stands as it is.
"""

from __future__ import annotations

from cases import each

from acceptance.core.language import ENGLISH, Language

CHINESE = Language("zh-CN", {"{n} checks": "{n} 项检查"})


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
