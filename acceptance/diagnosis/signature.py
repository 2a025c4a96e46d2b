"""Signatures of wrong results: their kinds, and which bits, where and when. Pure.

Signatures of wrong words of memory: one cell, an address line, a data line, or many. Pure.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from acceptance.core.message import Listed, Message, english, known, plural
from acceptance.loads.miscompare import WrongElement, WrongMemory

Cell = tuple[int, int]  # an address, and the number of a bit


class Kind(StrEnum):
    """The kinds of wrong results, as a table names them."""

    INPUTS = "inputs"
    REPEATABLE = "repeatable"
    UNREPEATABLE = "unrepeatable"
    MEMORY_BIT = "memory bit"
    ONE_BIT_ONCE = "one bit once"
    SCATTERED_BITS = "scattered bits"
    ADDRESS_LINE = "address line"
    DATAPATH = "datapath"
    NOT_A_NUMBER = "not a number"
    READ_BACK_RIGHT = "read back right"
    COPIES = "copies"
    LOST_COPIES = "lost copies"
    MANY = "many"
    THERMAL = "thermal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GpuHeat:
    """A GPU at one moment: its temperature in degC and its SM clock in MHz.

    None for a value that was not read.
    """

    temperature_c: float | None
    clock_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """A kind of wrong results with its looks and the evidence in numbers.

    `of` is the type of the facts that it describes.
    """

    kind: Kind
    looks: Message
    evidence: Message
    of: type


def positions(word: int) -> tuple[int, ...]:
    """The numbers of the set bits, from the lowest."""
    return tuple(bit for bit in range(word.bit_length()) if word >> bit & 1)


def all_bits(words: Iterable[int]) -> int:
    """The bits that are set in any of these."""
    return functools.reduce(operator.or_, words, 0)


def cells(elements: Iterable[WrongElement]) -> set[Cell]:
    """The wrong bits of these, by address."""
    return {(wrong.address, bit) for wrong in elements for bit in positions(wrong.xor_bits)}


def repeated_cell(
    code: str, unit: str, found: Sequence[Set[Cell]], *, alone: bool = False
) -> Message | None:
    """The same bit at the same address in several of these, whatever was stored there.

    None where less than half of them show such a cell, or, with `alone`, nothing else. `unit` is
    the name of their number among the values.
    """
    cells = Counter(cell for one in found for cell in one)
    again = {cell for cell, times in cells.items() if times > 1}
    shown = (bool(one) and one <= again if alone else bool(one & again) for one in found)
    if not again or 2 * sum(shown) < len(found):
        return None
    address, bit = min(again, key=lambda cell: (-cells[cell], cell))
    about = known(
        times=cells[address, bit],
        **{unit: len(found)},
        address=f"{address:#x}",
        bit=bit,
        more=len(again) - 1 or None,
    )
    return Message(code, about)


def power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, and so on."""
    return number > 0 and number & (number - 1) == 0


def differing_bits(word: int, width: int) -> Message:
    """Differing bits, as hexadecimal digits and by number."""
    found = positions(word)
    ranges = list(_ranges(found))
    names = ", ".join(ranges[:6]) + (" ..." if len(ranges) > 6 else "")
    digits = f"{word:0{max(1, width // 4)}x}"
    return Message(
        plural("bits_differ", "XOR {xor} (bit {bits})", "XOR {xor} (bits {bits})"),
        {"n": len(found), "xor": digits, "bits": names},
    )


def _ranges(numbers: Sequence[int]) -> Iterable[str]:
    """Ascending whole numbers, with neighbours as ranges: `0-3`, `7`."""
    begin = end = None
    for number in [*numbers, None]:
        if end is not None and number == end + 1:
            end = number
            continue
        if begin is not None:
            yield f"{begin}" if begin == end else f"{begin}-{end}"
        begin = end = number


def extent(values: Iterable[float]) -> str | None:
    """The least and the largest value; one number where they print alike.

    None where there are no values.
    """
    found = sorted(values)
    if not found:
        return None
    low, high = f"{found[0]:.0f}", f"{found[-1]:.0f}"
    return low if low == high else f"{low} .. {high}"


def flat(text: str) -> str:
    """A text of a load on one line."""
    return " ".join(text.split())


def swapped_addresses(elements: Sequence[WrongElement]) -> tuple[int, int] | None:
    """Two addresses of which the first holds what the second should: an addressing error.

    None where nothing proves it. The proof is two such words whose addresses differ in the same
    single bit, among words that all should be different; anything less is chance.
    """
    due = {one.expected_bits: one.address for one in elements}
    if len(due) != len(elements):
        return None
    pairs = [
        (one.address, due[one.got_bits]) for one in elements if one.got_bits in due and one.xor_bits
    ]
    lines = Counter(one ^ other for one, other in pairs if power_of_two(one ^ other))
    again = [line for line, times in lines.most_common() if times > 1]
    return next(pair for pair in pairs if pair[0] ^ pair[1] == again[0]) if again else None


WORD_BITS = 64
RANDOM = "random"  # in the name of the pattern whose words are random


def vram_signature(wrong: Sequence[WrongMemory]) -> Signature:
    """The signature of the wrong words in one memory, of a GPU or of a socket."""
    kind, looks = _kind(wrong)
    first = min(wrong, key=lambda one: one.found_s)
    place = first.first[0]
    either = all_bits(one.differing for one in wrong)
    evidence = Message(
        english(
            "words_evidence",
            "{words} in {passes} ({patterns}), first at byte {address} ({got} for {expected}), "
            "{bits}, found {found} s after boot",
        ),
        {
            "words": Message(
                plural("words_wrong", "{n} wrong word", "{n} wrong words"),
                {"n": sum(one.words for one in wrong)},
            ),
            "passes": Message(plural("passes", "{n} pass", "{n} passes"), {"n": len(wrong)}),
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
        return Kind.ONE_BIT_ONCE, Message(
            english("word_bit_once", "One bit of one word, in one pass")
        )
    if cell := _cell(found):
        return Kind.MEMORY_BIT, cell
    either = all_bits(one.differing for one in found)
    if len(positions(either)) == 1:
        return Kind.MANY, Message(
            english(
                "word_bit_always",
                "Always bit {bit}, at many addresses: a data line of the memory, or its channel",
            ),
            {"bit": positions(either)[0]},
        )
    return Kind.MANY, Message(english("words_differ", "Many words with different bits"))


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
    return Message(
        plural(
            "words_astray",
            "Words lie where others belong: the places differ in address bit {bits}",
            "Words lie where others belong: the places differ in address bits {bits}",
        ),
        {"n": len(lines), "bits": Listed(tuple(map(str, lines)))},
    )


def _lines(wrong: WrongMemory) -> tuple[int, ...]:
    pair = swapped_addresses(wrong.first)
    return positions(pair[0] ^ pair[1]) if pair is not None else ()


def _cell(found: Sequence[WrongMemory]) -> Message | None:
    """The same bit of the same word in several passes.

    None unless at least half of the passes show nothing else.
    """
    own = [cells(one.first) if one.words == len(one.first) else set() for one in found]
    return repeated_cell(
        english(
            "cell_in_passes",
            "The same bit at the same address in {times} of {passes} passes (byte {address}, bit "
            "{bit}[, and {more} more such cells])",
        ),
        "passes",
        own,
        alone=True,
    )
