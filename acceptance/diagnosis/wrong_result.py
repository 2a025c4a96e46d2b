"""One wrong result in words: how much of it is wrong, where, and its first wrong element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acceptance.core import plain_text
from acceptance.core.message import Listed, Message, Value, english, known
from acceptance.loads.miscompare import UnreadMiscompare, WrongResult, details

_COUNTS = ("elements", "words", "wrong", "rows", "digests")
_GIVEN = 160  # characters of one that cannot be read
_PLACES = ("index", "word", "address", "offset")  # of an element in its result
# What is said in words of its own, or says nothing of the place.
_OTHERS = frozenset({
    *_COUNTS, *_PLACES, "component", "of", "first", "expected", "got", "want", "xor", "xor_or",
    "xor_and", "bits", "made_s", "found_s", "nan", "infinite", "odd", "unwritten", "stride", "span",
    "slot", "seconds", "address_bits",
})  # fmt: skip


def in_words(wrong: WrongResult, names: Mapping[str, object] | None = None) -> Message:
    """A wrong result; `names` are other values for some of its keys, such as a GPU's own name."""
    if isinstance(wrong, UnreadMiscompare):
        given = plain_text.shortened(wrong.given, _GIVEN)
        return Message(
            english("wrong_result_unread", "a wrong result that cannot be read ({why}): {given}"),
            {"why": wrong.reason, "given": given},
        )
    printed = {**details(wrong), **(names or {})}
    element = _element(printed)
    where = tuple(
        f"{key} {value}"
        for key, value in printed.items()
        if key not in _OTHERS and isinstance(value, str | int | float)
    )
    count = next((printed[key] for key in _COUNTS if isinstance(printed.get(key), int)), None)
    told: dict[str, Value | None] = {
        "where": Listed(where),
        "component": printed["component"] if names and "component" in names else None,
        "count": count,
        "of": printed.get("of"),
        "at": _place(element),
        "got": _text(element.get("got")),
        "expected": _text(element.get("expected", element.get("want"))),
    }
    return Message(
        english(
            "wrong_result_at",
            "[{component}, ]{where}[; wrong: {count}][ of {of}][; the first at {at}][: {got} "
            "instead of {expected}]",
        ),
        known(**told),
    )


def _element(printed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first wrong element, or the result itself, which has the keys of its only one."""
    first = printed.get("first")
    if isinstance(first, list) and first:
        return first[0] if isinstance(first[0], dict) else {"index": first[0]}
    return printed


def _place(element: Mapping[str, Any]) -> str | None:
    place = next((element[key] for key in _PLACES if key in element), None)
    return ", ".join(map(str, place)) if isinstance(place, list) else _text(place)


def _text(value: object) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)
