"""Signatures of wrong words of memory: one cell, an address line, a data line, or many. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.message import Listed, Message
from acceptance.diagnosis.signature import (
    Kind,
    Signature,
    all_bits,
    cells,
    differing_bits,
    flat,
    positions,
    repeated_cell,
    swapped_addresses,
)
from acceptance.loads.miscompare import WrongMemory

WORD_BITS = 64
RANDOM = "random"  # in the name of the pattern whose words are random


def vram_signature(wrong: Sequence[WrongMemory]) -> Signature:
    """The signature of the wrong words in one memory, of a GPU or of a socket."""
    kind, looks = _kind(wrong)
    first = min(wrong, key=lambda one: one.found_s)
    place = first.first[0]
    either = all_bits(one.differing for one in wrong)
    evidence = Message(
        "words_evidence",
        {
            "words": Message("words_wrong", {"n": sum(one.words for one in wrong)}),
            "passes": Message("passes", {"n": len(wrong)}),
            "patterns": Listed(tuple(dict.fromkeys(flat(one.pattern) for one in wrong))),
            "address": f"{place.address:#x}",
            "got": f"{place.got_bits:x}",
            "expected": f"{place.expected_bits:x}",
            "bits": differing_bits(either, WORD_BITS),
            "found": f"{first.found_s:.0f}",
        },
    )
    return Signature(kind, looks, evidence, WrongMemory)


def _kind(found: Sequence[WrongMemory]) -> tuple[Kind, Message]:
    if address := _address_line(found):
        return Kind.ADDRESS_LINE, address
    listed = [wrong for one in found for wrong in one.first]
    if sum(one.words for one in found) == 1 and len(positions(listed[0].xor_bits)) == 1:
        return Kind.ONE_BIT_ONCE, Message("word_bit_once")
    if cell := _cell(found):
        return Kind.MEMORY_BIT, cell
    either = all_bits(one.differing for one in found)
    if len(positions(either)) == 1:
        return Kind.MANY, Message("word_bit_always", {"bit": positions(either)[0]})
    return Kind.MANY, Message("words_differ")


def _address_line(wrong: Sequence[WrongMemory]) -> Message | None:
    """Words stored at the places of others, as the load reports it or the words themselves show.

    A bad data line looks the same where every word is its own number, but not where words are
    random. So passes with random words must agree.
    """
    bits = [one.address_bits or _lines(one) for one in wrong]
    if any(not lines for one, lines in zip(wrong, bits, strict=True) if RANDOM in one.pattern):
        return None
    lines = sorted({line for own in bits for line in own})
    if not lines:
        return None
    return Message("words_astray", {"n": len(lines), "bits": Listed(tuple(map(str, lines)))})


def _lines(wrong: WrongMemory) -> tuple[int, ...]:
    pair = swapped_addresses(wrong.first)
    return positions(pair[0] ^ pair[1]) if pair is not None else ()


def _cell(found: Sequence[WrongMemory]) -> Message | None:
    """The same bit of the same word in several passes.

    None unless at least half of the passes show nothing else.
    """
    own = [cells(one.first) if one.words == len(one.first) else set() for one in found]
    return repeated_cell("cell_in_passes", "passes", own, alone=True)
