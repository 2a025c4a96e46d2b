"""Signatures of wrong words of memory: one cell, an address line, a data line, or many. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from acceptance.diagnosis.signature import Signature, bits_text, positions, swapped_addresses
from acceptance.loads.miscompare import WrongMemory

WORD_BITS = 64
RANDOM = "random"  # in the name of the pattern whose words are random


def vram_signature(wrong: Sequence[WrongMemory]) -> Signature:
    """The signature of the wrong words in a GPU's memory."""
    kind, words = _kind(wrong)
    first = min(wrong, key=lambda one: one.found_s)
    place = first.first[0]
    either = 0
    for one in wrong:
        either |= one.differing
    passes = f"{len(wrong)} pass{'es' if len(wrong) > 1 else ''}"
    patterns = ", ".join(dict.fromkeys(one.pattern for one in wrong))
    words_wrong = sum(one.words for one in wrong)
    evidence = (
        f"{words_wrong} wrong word{'s' if words_wrong > 1 else ''} in {passes} ({patterns}), "
        f"first at byte {place.address:#x} "
        f"({place.got_bits:x} for {place.expected_bits:x}), {bits_text(either, WORD_BITS)}, found "
        f"{first.found_s:.0f} s after boot"
    )
    return Signature(kind, words, evidence, WrongMemory)


def _kind(found: Sequence[WrongMemory]) -> tuple[str, str]:
    if address := _address_line(found):
        return "address line", address
    listed = [wrong for one in found for wrong in one.first]
    if sum(one.words for one in found) == 1 and len(positions(listed[0].xor_bits)) == 1:
        return "one bit once", "One bit of one word, in one pass"
    if cell := _cell(found):
        return "memory bit", cell
    either = 0
    for one in found:
        either |= one.differing
    if len(positions(either)) == 1:
        return (
            "many",
            (
                f"Always bit {positions(either)[0]}, at many addresses: a data line of the "
                "memory, or its channel"
            ),
        )
    return "many", "Many words with different bits"


def _address_line(wrong: Sequence[WrongMemory]) -> str | None:
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
    return (
        "Words lie where others belong: the places differ in address "
        f"bit{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    )


def _lines(wrong: WrongMemory) -> tuple[int, ...]:
    pair = swapped_addresses(wrong.first)
    return positions(pair[0] ^ pair[1]) if pair is not None else ()


def _cell(found: Sequence[WrongMemory]) -> str | None:
    """The same bit of the same word in several passes, in words.

    None unless at least half of the passes show nothing else.
    """
    cells: Counter[tuple[int, int]] = Counter()
    own = []
    for one in found:
        own.append(
            {(wrong.address, bit) for wrong in one.first for bit in positions(wrong.xor_bits)}
        )
        own[-1] = own[-1] if one.words == len(one.first) else set()
        cells.update(own[-1])
    again = {cell for cell, times in cells.items() if times > 1}
    if not again or 2 * sum(bool(one) and one <= again for one in own) < len(found):
        return None
    address, bit = min(again, key=lambda cell: (-cells[cell], cell))
    more = f", and {len(again) - 1} more such cells" if len(again) > 1 else ""
    return (
        f"The same bit at the same address in {cells[address, bit]} of {len(found)} passes "
        "(byte "
        f"{address:#x}, bit {bit}{more})"
    )
