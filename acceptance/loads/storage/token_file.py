"""Writing and reading a whole file of tokens, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acceptance.loads.storage.scratch_file import ScratchFile
from acceptance.loads.storage.tokens import WORD, Content
from acceptance.loads.storage.wrong_file import PIECE


def pieces(size: int) -> Iterator[tuple[int, int]]:
    """The offset and the bytes of each piece of a file of this size."""
    for offset in range(0, size, PIECE):
        yield offset, min(PIECE, size - offset)


def write_whole(file: ScratchFile, content: Content) -> None:
    """Write the content into the whole file, and flush it."""
    for offset, size in pieces(file.size):
        file.write(offset, content.words(offset, size // WORD).data.cast("B"))
    file.flush()


def read_whole(file: ScratchFile) -> None:
    """Read the whole file, so that the page cache holds it."""
    buffer = np.empty(min(PIECE, file.size), dtype=np.uint8)
    for offset, size in pieces(file.size):
        file.read_into(offset, buffer[:size].data)
