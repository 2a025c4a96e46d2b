"""The nearest known word to one that somebody has misspelt.

    python3 -m acceptance.core.nearest WORD KNOWN...

prints the cure for a misspelt word of the Makefile; nothing where no known word is near.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

# The least likeness of two words (difflib's ratio) at which one may be meant by the other. "acept"
# and "accept" have 0.91, "mem" and "memory" 0.67, "nightmare" and "nightly" 0.63.
LIKENESS = 0.65


def _plain(word: str) -> str:
    """A word without what is no slip of spelling: its case, and which mark divides it."""
    return "-".join(word.casefold().replace("_", " ").replace("-", " ").split())


def nearest(
    word: str, known_words: Iterable[str], most: int = 1, likeness: float = LIKENESS
) -> tuple[str, ...]:
    """At most so many of the known words that are like this one, the most alike first."""
    import difflib  # only for somebody's slip

    words: dict[str, str] = {}
    for known in sorted(set(known_words)):
        words.setdefault(_plain(known), known)
    found = difflib.get_close_matches(_plain(word), words, n=most, cutoff=likeness)
    return tuple(words[one] for one in found)


def cure(word: str, known_words: Iterable[str], otherwise: str) -> str:
    """The cure for a word that there is not: the nearest that there is, else something else."""
    near = nearest(word, known_words)
    return f"did you mean {near[0]}?" if near else otherwise


def main(arguments: Sequence[str]) -> None:
    """Print the cure for the first of these words among the others."""
    word, *known_words = arguments
    sys.stdout.write(cure(word, known_words, ""))


if __name__ == "__main__":
    main(sys.argv[1:])
