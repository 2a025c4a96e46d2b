"""The nearest known word to one that somebody has misspelt.

    python3 -m acceptance.core.nearest WORD KNOWN...

asks for the Makefile whether the nearest of the known words is meant; prints nothing where none is
near.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

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


def cure(word: str, known_words: Iterable[str], where: str) -> str:
    """The cure for a word that there is not: the nearest that there is, else where to look."""
    near = nearest(word, known_words)
    return f"did you mean {near[0]}?" if near else f"correct it ({where})"


def main(arguments: Sequence[str]) -> None:
    """Print the question whether the nearest of the other words is meant by the first."""
    word, *known_words = arguments
    sys.stdout.write("".join(f"did you mean {one}?" for one in nearest(word, known_words)))


if __name__ == "__main__":
    main(sys.argv[1:])
