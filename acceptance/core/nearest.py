"""The nearest known word to one that somebody has misspelt."""

from __future__ import annotations

from collections.abc import Iterable

# The least likeness of two words (difflib's ratio) at which one may be meant by the other. "acept"
# and "accept" have 0.91, "mem" and "memory" 0.67, "nightmare" and "nightly" 0.63.
LIKENESS = 0.65
_BEGINNING = 3  # letters that may stand for a longer word


def _plain(word: str) -> str:
    """A word without what is no slip of spelling: its case, and which mark divides it."""
    return "-".join(word.casefold().replace("_", " ").replace("-", " ").split())


def nearest(
    word: str, known_words: Iterable[str], most: int = 1, likeness: float = LIKENESS
) -> tuple[str, ...]:
    """At most so many of the known words that are like this one, the most alike first.

    Else those that begin with it: "net" for "network".
    """
    import difflib  # only for somebody's slip

    words: dict[str, str] = {}
    for known in sorted(set(known_words)):
        words.setdefault(_plain(known), known)
    plain = _plain(word)
    found = difflib.get_close_matches(plain, words, n=most, cutoff=likeness)
    if not found and len(plain) >= _BEGINNING:
        found = [one for one in words if one.startswith(plain)][:most]
    return tuple(words[one] for one in found)


def cure(word: str, known_words: Iterable[str], where: str, most: int = 1) -> str:
    """The cure for a word that there is not: the nearest that there are, else where to look."""
    near = nearest(word, known_words, most)
    return f"did you mean {' or '.join(near)}?" if near else f"correct it ({where})"
