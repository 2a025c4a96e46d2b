"""Whether another word of the Makefile is meant by a misspelt one.

    python3 -m acceptance.cli.nearest_word WORD KNOWN...

prints the question; nothing where no known word is near. It needs Python alone, because `make` asks
before there is an environment.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from acceptance.core.nearest import nearest


def main(arguments: Sequence[str]) -> None:
    """Print the question whether the nearest of the other words is meant by the first."""
    word, *known_words = arguments
    sys.stdout.write("".join(f"did you mean {one}?" for one in nearest(word, known_words)))


if __name__ == "__main__":
    main(sys.argv[1:])
