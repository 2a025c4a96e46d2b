"""English grammar helpers: the indefinite article."""

from __future__ import annotations

from acceptance.core.message import Message

# Letters whose own names begin with a vowel: "an H200", "an RTX 4090", "an L4", but "a B200", "a
# V100", "a T4".
_VOWEL_NAMES = frozenset("AEFHILMNORSX")
_VOWELS = frozenset("AEIOU")


def with_article(name: str) -> Message:
    """A name with "a" or "an" before it, in languages that have them.

    A first word of capitals and digits is read letter by letter, any other as a word.
    """
    first = name.partition(" ")[0]
    sounds = _VOWEL_NAMES if first == first.upper() else _VOWELS
    return Message("an_item" if first[:1].upper() in sounds else "a_item", {"name": name})
