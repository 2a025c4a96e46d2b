"""Damage to a file of ours on purpose: what `contract.Kind` names."""

from __future__ import annotations

from dataclasses import replace

from acceptance.loads.storage.contract import Kind
from acceptance.loads.storage.scratch_file import ScratchFile
from acceptance.loads.storage.tokens import WORD, Content
from acceptance.loads.storage.wrong_file import BLOCK, flip


def damage(file: ScratchFile, content: Content, kind: Kind | None, offset: int, base: int) -> None:
    """Do to the block at `offset` what the kind says; `flight` leaves the file as it is.

    The content begins at byte `base` of the file, and the offset counts from there.
    """
    count = BLOCK // WORD
    match kind:
        case "rest":
            words = content.words(offset, count)
            flip(words, 1)
        case "stale":
            words = replace(content, turn=content.turn - 1).words(offset, count)
        case "elsewhere":
            words = content.words((offset + BLOCK) % (file.size - base), count)
        case _:
            return
    file.write(base + offset, words.data.cast("B"))
    file.flush()
