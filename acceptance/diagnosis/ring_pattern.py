"""Signatures of wrong products: the same cell, the same elements, a stride, low bits, heat.

Each product is examined by itself first; then all of them for repetition: in the same place of
memory whatever its content (a cell), in the same elements wherever they were stored (the chip),
only when hot (cooling). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from acceptance.diagnosis.signature import (
    GpuHeat,
    Signature,
    bits_text,
    extent,
    positions,
    power_of_two,
    swapped_addresses,
)
from acceptance.loads.miscompare import WrongProduct

FEW_BITS = 2  # a stuck cell shows one bit, sometimes two neighbours
MANY = 8  # the least elements for which a stride of a power of two means something
# share of the differing bits in the lowest quarter: with errors of a unit each next bit differs
# half as often
LOW_SHARE = 0.7
LEAST_HOT = 3  # the least wrong products, and cooler right ones, to give heat as the cause
COOLER_C = 3.0  # a sensor's rounding and lag must not count as a difference
BY_CHANCE = 0.05
MOMENTS = 64

Known = Sequence[tuple[WrongProduct, GpuHeat | None]]


def product_signature(known: Known, right: Sequence[GpuHeat] = ()) -> Signature:
    """The signature of the wrong products of one format.

    `right` is the heat when products of this format were right.
    """
    rings = [one for one, _ in known]
    kind, words = _kind(rings)
    lasting = ("memory bit", "repeatable", "address line", "one bit once")
    threshold_c = None if kind in lasting else _threshold(known, right)
    if threshold_c is not None:
        cooler = sum(
            one.temperature_c is not None and one.temperature_c < threshold_c for one in right
        )
        text = (
            f"Wrong only at {threshold_c:.0f} degC and above, while {cooler} of {len(right)} "
            "right products looked at were cooler"
        )
        kind, words = "thermal", f"{text}; by itself: {words[:1].lower()}{words[1:]}"
    return Signature(kind, words, evidence(known), WrongProduct)


def _kind(rings: Sequence[WrongProduct]) -> tuple[str, str]:
    """The kind of all products together, and its description."""
    if cell := _cell(rings):
        return "memory bit", cell
    if same := _same_elements(rings):
        return same
    found = [_single(one) for one in rings]
    kinds = Counter(kind for kind, _ in found)
    if kinds.keys() == {"one bit once"} and len(rings) > 1:
        return (
            "scattered bits",
            f"One bit in each of {len(rings)} products, never in the same place",
        )
    if len(kinds) == 1:
        return found[0]
    text = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
    return "many", f"The products are wrong in different ways ({text})"


def _cell(rings: Sequence[WrongProduct]) -> str | None:
    """The same bit at the same address in several products, whatever was stored there, in words.

    None where most products show no such cell.
    """
    cells: Counter[tuple[int, int]] = Counter()
    own = []
    for one in rings:
        found = {(wrong.address, bit) for wrong in one.first for bit in positions(wrong.xor_bits)}
        narrow = all(len(positions(wrong.xor_bits)) <= FEW_BITS for wrong in one.first)
        own.append(found if narrow and one.elements == len(one.first) else set())
        cells.update(own[-1])
    again = {cell for cell, times in cells.items() if times > 1}
    if not again or 2 * sum(bool(found & again) for found in own) < len(rings):
        return None
    address, bit = min(again, key=lambda cell: (-cells[cell], cell))
    more = f", and {len(again) - 1} more such cells" if len(again) > 1 else ""
    return (
        f"The same bit at the same address in {cells[address, bit]} of {len(rings)} products "
        f"(byte {address:#x}, bit {bit}{more})"
    )


def _same_elements(rings: Sequence[WrongProduct]) -> tuple[str, str] | None:
    """The same elements with the same bits in every product, at several places of memory.

    That points to the chip and not to a cell.
    """
    looks = {
        (
            one.elements,
            one.span,
            one.xor_or,
            one.xor_and,
            tuple((wrong.index, wrong.xor_bits) for wrong in one.first),
        )
        for one in rings
    }
    if len(looks) != 1 or not rings[0].described or len({one.slot for one in rings}) < 2:
        return None
    numbers = sorted(one.iteration for one in rings)
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return (
            "repeatable",
            (
                f"The same elements with the same bits in each of {len(rings)} products one "
                "after the other"
            ),
        )
    among = numbers[-1] - numbers[0] + 1
    return (
        "datapath",
        (
            f"The same elements with the same bits in {len(rings)} of {among} products: always "
            "the same unit of the chip"
        ),
    )


def _single(product: WrongProduct) -> tuple[str, str]:
    """The kind of one product by itself, and its description."""
    if not product.described:
        return "read back right", "Wrong when it was compared, and right when it was read again"
    if product.elements == 1 and len(positions(product.differing)) == 1:
        return "one bit once", "One bit of one element"
    if product.nan or product.infinite:
        names = [
            name for count, name in ((product.nan, "NaN"), (product.infinite, "infinite")) if count
        ]
        return "not a number", f"Elements that are {' and '.join(names)}"
    if not _low(product) and (pair := swapped_addresses(product.first)):
        line = (pair[0] ^ pair[1]).bit_length() - 1
        return (
            "address line",
            (
                f"Byte {pair[0]:#x} holds what byte {pair[1]:#x} must: they differ in address "
                f"bit {line}"
            ),
        )
    return _regular(product) or ("many", _irregular(product))


def _regular(product: WrongProduct) -> tuple[str, str] | None:
    """The kind that stride and bits of many elements show, or None."""
    wide = len(positions(product.differing)) >= max(3, product.width // 4)
    stride = (
        product.distance
        if product.distance is not None and product.distance > 1 and product.elements > 2
        else None
    )
    every = None if stride is None else f"every {stride}{_ordinal(stride)} element"
    if _low(product):
        where = f"{every}, " if every else ""
        return "datapath", f"Wrong in the low bits only: {where}{_units(product)}"
    if stride is not None and stride == product.columns:
        return (
            "datapath",
            (
                f"A whole column ({every}): one value of the second operand was read or passed "
                "on wrong"
            ),
        )
    if stride is not None and not power_of_two(stride):
        return "datapath", f"A regular distance that is no power of two: {every}"
    if product.elements >= MANY and every and wide:
        return "address line", f"Many elements a power of two apart with many bits wrong: {every}"
    if product.elements > 2 and len(positions(product.differing)) == 1:
        return "datapath", "Always the same bit, in many elements: one line of a bus, or one lane"
    return None


def _irregular(product: WrongProduct) -> str:
    if product.elements == 1:
        return "One element with several wrong bits"
    if product.distance == 1:
        return (
            "Elements beside each other: a part of the product that one multiprocessor made, "
            "or "
            "a block of memory"
        )
    return "Elements without a regular distance and with many bits wrong"


def _low(product: WrongProduct) -> bool:
    low = sum(count for bit, count in product.bits.items() if bit < product.width // 4)
    return low >= LOW_SHARE * sum(product.bits.values())


def _units(product: WrongProduct) -> str:
    """How far the listed elements are off, in units of the last place.

    Their bits are read as whole numbers.
    """
    off = [abs(wrong.got_bits - wrong.expected_bits) for wrong in product.first]
    most = max(off)
    return f"off by {'one unit' if most == 1 else f'up to {most} units'} in the last place"


def _ordinal(number: int) -> str:
    return (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )


def _threshold(known: Known, right: Sequence[GpuHeat]) -> float | None:
    """The temperature in degC from which on products were wrong; None where heat is no cause.

    Every wrong product must be hot, cooler right ones must be known, and so many right ones must be
    cool that all wrong ones would be hot by chance once in twenty.
    """
    wrong = [
        own.temperature_c for _, own in known if own is not None and own.temperature_c is not None
    ]
    fine = [own.temperature_c for own in right if own.temperature_c is not None]
    if len(wrong) < max(LEAST_HOT, len(known)) or not fine:
        return None
    coolest = min(wrong)
    cooler = sum(one <= coolest - COOLER_C for one in fine)
    if cooler < LEAST_HOT or ((len(fine) - cooler) / len(fine)) ** len(wrong) > BY_CHANCE:
        return None
    return coolest


def evidence(known: Known) -> str:
    """The numbers: how many, where, when, at which temperature and clock."""
    rings = [one for one, _ in known]
    first = min(rings, key=lambda one: one.iteration)
    counts = f"{len(rings)} product{'s' if len(rings) > 1 else ''} wrong"
    elements = extent((one.elements for one in rings), f"of {first.of} elements")
    parts = [f"{counts}, {elements}"]
    if first.described:
        place = first.first[0]
        either = 0
        for one in rings:
            either |= one.differing
        parts.append(
            f"first at byte {place.address:#x} (element {list(place.index)}: {place.got_bits:x} "
            f"for {place.expected_bits:x})"
        )
        strides = {one.distance for one in rings if one.described}
        if len(strides) == 1 and first.distance is not None:
            parts.append(f"stride {first.distance}")
        parts.append(bits_text(either, first.width))
    numbers = sorted({one.iteration for one in rings})
    listed = ", ".join(map(str, numbers[:4])) + (" ..." if len(numbers) > 4 else "")
    parts.append(
        f"iteration {listed} (lap {first.lap}), made "
        f"{extent((one.made_s for one in rings), 's after boot')}"
    )
    heat = [own for _, own in known if own is not None]
    sentences = [
        extent((one.temperature_c for one in heat if one.temperature_c is not None), "degC"),
        extent((one.clock_mhz for one in heat if one.clock_mhz is not None), "MHz"),
    ]
    shown = [one for one in sentences if one is not None]
    parts.append(f"at {' and '.join(shown)}" if shown else "at a heat that was not sampled")
    return ", ".join(parts)


def right_moments_of(rings: Sequence[WrongProduct]) -> tuple[float, ...]:
    """Moments at which right products between these wrong ones were made.

    At most MOMENTS, spread evenly over those products. Only within a lap, where the products of a
    format follow each other, and in the first lap back to its first product: only there does a
    product's number give its moment. A load reports its first wrong products only, so nothing is
    said about the time after them.
    """
    found: list[
        tuple[float, int, float]
    ] = []  # a moment, how many products follow, and the seconds from one to the next
    laps: dict[int, list[WrongProduct]] = {}
    for one in sorted(rings, key=lambda one: one.iteration):
        laps.setdefault(one.lap, []).append(one)
    for lap, own in laps.items():
        steps = [
            (one, other, (other.made_s - one.made_s) / (other.iteration - one.iteration))
            for one, other in pairwise(own)
            if other.iteration > one.iteration and other.made_s > one.made_s
        ]
        found += [(one.made_s, other.iteration - one.iteration, step) for one, other, step in steps]
        if lap == 0 and steps:
            step = (own[-1].made_s - own[0].made_s) / (own[-1].iteration - own[0].iteration)
            found.append(
                (own[0].made_s - (own[0].iteration + 1) * step, own[0].iteration + 1, step)
            )
    total = sum(count - 1 for _, count, _ in found)
    every = -(-total // MOMENTS)
    moments = [
        begin + step * number
        for begin, count, step in found
        for number in range(1, count)
        if not number % every
    ]
    return tuple(sorted(moments))
