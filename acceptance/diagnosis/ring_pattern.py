"""Signatures of wrong products: the same cell, the same elements, a stride, low bits, heat.

Each product is examined by itself first; then all of them for repetition: in the same place of
memory whatever its content (a cell), in the same elements wherever they were stored (the chip),
only when hot (cooling). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Values, english, known, plural
from acceptance.diagnosis.signature import (
    Cell,
    GpuHeat,
    Kind,
    Signature,
    all_bits,
    cells,
    differing_bits,
    extent,
    positions,
    power_of_two,
    repeated_cell,
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
LASTING = (Kind.MEMORY_BIT, Kind.REPEATABLE, Kind.ADDRESS_LINE)  # whatever the heat

# The kinds of single products, where several have different ones.
_WAYS = {
    Kind.READ_BACK_RIGHT: Message(english("way_read_back_right", "read back right")),
    Kind.ONE_BIT_ONCE: Message(english("way_one_bit_once", "one bit once")),
    Kind.NOT_A_NUMBER: Message(english("way_not_a_number", "not a number")),
    Kind.ADDRESS_LINE: Message(english("way_address_line", "address line")),
    Kind.DATAPATH: Message(english("way_datapath", "datapath")),
    Kind.MANY: Message(english("way_many", "many")),
}

Known = Sequence[tuple[WrongProduct, GpuHeat | None]]


def product_signature(sampled: Known, right: Sequence[GpuHeat] = ()) -> Signature:
    """The signature of the wrong products of one format.

    `right` is the heat when products of this format were right.
    """
    rings = [one for one, _ in sampled]
    kind, looks = _kind(rings)
    threshold_c = None if kind in LASTING else _threshold(sampled, right)
    if threshold_c is not None:
        cooler = sum(
            one.temperature_c is not None and one.temperature_c < threshold_c for one in right
        )
        values: Values = {"threshold": f"{threshold_c:.0f}", "cooler": cooler, "right": len(right)}
        kind, looks = (
            Kind.THERMAL,
            Message(
                english(
                    "wrong_when_hot",
                    "Wrong only at {threshold} degC and above, while {cooler} of {right} right "
                    "products looked at were cooler; by itself: {looks:lower}",
                ),
                {**values, "looks": looks},
            ),
        )
    return Signature(kind, looks, evidence(sampled), WrongProduct)


def _kind(rings: Sequence[WrongProduct]) -> tuple[Kind, Message]:
    """The kind of all products together, and its looks."""
    if cell := _cell(rings):
        return Kind.MEMORY_BIT, cell
    if same := _same_elements(rings):
        return same
    found = [_single(one) for one in rings]
    kinds = Counter(kind for kind, _ in found)
    if kinds.keys() == {Kind.ONE_BIT_ONCE} and len(rings) > 1:
        return Kind.SCATTERED_BITS, Message(
            english(
                "bits_scattered", "One bit in each of {products} products, never in the same place"
            ),
            {"products": len(rings)},
        )
    if len(kinds) == 1:
        return found[0]
    ways = tuple(
        Message(english("times_way", "{times} x {way}"), {"times": count, "way": _WAYS[kind]})
        for kind, count in kinds.most_common()
    )
    return Kind.MANY, Message(
        english("ways_differ", "The products are wrong in different ways ({ways})"),
        {"ways": Listed(ways)},
    )


def _cell(rings: Sequence[WrongProduct]) -> Message | None:
    """The same bit at the same address in several products, whatever was stored there.

    None where most products show no such cell.
    """
    return repeated_cell(
        english(
            "cell_in_products",
            "The same bit at the same address in {times} of {products} products (byte {address}, "
            "bit {bit}[, and {more} more such cells])",
        ),
        "products",
        list(map(_cells, rings)),
    )


def _cells(one: WrongProduct) -> set[Cell]:
    """The wrong bits of a product with few; none where it has more than are listed."""
    narrow = all(len(positions(wrong.xor_bits)) <= FEW_BITS for wrong in one.first)
    return cells(one.first) if narrow and one.elements == len(one.first) else set()


def _same_elements(rings: Sequence[WrongProduct]) -> tuple[Kind, Message] | None:
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
        return Kind.REPEATABLE, Message(
            english(
                "same_elements_each",
                "The same elements with the same bits in each of {products} products one after "
                "the other",
            ),
            {"products": len(rings)},
        )
    among = numbers[-1] - numbers[0] + 1
    values = {"wrong": len(rings), "products": among}
    return Kind.DATAPATH, Message(
        english(
            "same_elements_among",
            "The same elements with the same bits in {wrong} of {products} products: always the "
            "same unit of the chip",
        ),
        values,
    )


def _single(product: WrongProduct) -> tuple[Kind, Message]:
    """The kind of one product by itself, and its looks."""
    if not product.described:
        return Kind.READ_BACK_RIGHT, Message(
            english(
                "right_when_read_again",
                "Wrong when it was compared, and right when it was read again",
            )
        )
    if product.elements == 1 and len(positions(product.differing)) == 1:
        return Kind.ONE_BIT_ONCE, Message(english("element_bit_once", "One bit of one element"))
    if product.nan or product.infinite:
        alone = (
            english("elements_nan", "Elements that are NaN")
            if product.nan
            else english("elements_infinite", "Elements that are infinite")
        )
        both = product.nan and product.infinite
        return Kind.NOT_A_NUMBER, Message(
            english("elements_nan_and_infinite", "Elements that are NaN and infinite")
            if both
            else alone
        )
    if not _low(product) and (pair := swapped_addresses(product.first)):
        line = (pair[0] ^ pair[1]).bit_length() - 1
        values: Values = {"address": f"{pair[0]:#x}", "other": f"{pair[1]:#x}", "bit": line}
        return Kind.ADDRESS_LINE, Message(
            english(
                "element_of_other_byte",
                "Byte {address} holds what byte {other} must: they differ in address bit {bit}",
            ),
            values,
        )
    return _regular(product) or (Kind.MANY, _irregular(product))


def _regular(product: WrongProduct) -> tuple[Kind, Message] | None:
    """The kind that stride and bits of many elements show, or None."""
    wide = len(positions(product.differing)) >= max(3, product.width // 4)
    stride = (
        product.distance
        if product.distance is not None and product.distance > 1 and product.elements > 2
        else None
    )
    every = known(every=None if stride is None else _every(stride))
    if _low(product):
        return Kind.DATAPATH, Message(
            english("low_bits", "Wrong in the low bits only: [{every}, ]{units}"),
            {**every, "units": _units(product)},
        )
    if stride is not None:
        if stride == product.columns:
            return Kind.DATAPATH, Message(
                english(
                    "whole_column",
                    "A whole column ({every}): one value of the second operand was read or passed "
                    "on wrong",
                ),
                every,
            )
        if not power_of_two(stride):
            return Kind.DATAPATH, Message(
                english("distance_regular", "A regular distance that is no power of two: {every}"),
                every,
            )
        if product.elements >= MANY and wide:
            return Kind.ADDRESS_LINE, Message(
                english(
                    "distance_of_two",
                    "Many elements a power of two apart with many bits wrong: {every}",
                ),
                every,
            )
    if product.elements > 2 and len(positions(product.differing)) == 1:
        return Kind.DATAPATH, Message(
            english(
                "element_bit_always",
                "Always the same bit, in many elements: one line of a bus, or one lane",
            )
        )
    return None


def _irregular(product: WrongProduct) -> Message:
    if product.elements == 1:
        return Message(english("element_bits", "One element with several wrong bits"))
    return Message(
        english(
            "elements_beside",
            "Elements beside each other: a part of the product that one multiprocessor made, or a "
            "block of memory",
        )
        if product.distance == 1
        else english(
            "elements_irregular", "Elements without a regular distance and with many bits wrong"
        )
    )


def _low(product: WrongProduct) -> bool:
    low = sum(count for bit, count in product.bits.items() if bit < product.width // 4)
    return low >= LOW_SHARE * sum(product.bits.values())


def _units(product: WrongProduct) -> Message:
    """How far the listed elements are off, in units of the last place.

    Their bits are read as whole numbers.
    """
    off = [abs(wrong.got_bits - wrong.expected_bits) for wrong in product.first]
    most = max(off)
    if most == 1:
        return Message(english("off_by_one_unit", "off by one unit in the last place"))
    return Message(
        english("off_by_units", "off by up to {most} units in the last place"), {"most": f"{most}"}
    )


def _every(stride: int) -> Message:
    """Every so manyth element, by the English ordinal."""
    code = english("every_th", "every {stride}th element")
    if stride % 100 not in (11, 12, 13):
        match stride % 10:
            case 1:
                code = english("every_st", "every {stride}st element")
            case 2:
                code = english("every_nd", "every {stride}nd element")
            case 3:
                code = english("every_rd", "every {stride}rd element")
    return Message(code, {"stride": f"{stride}"})


def _threshold(sampled: Known, right: Sequence[GpuHeat]) -> float | None:
    """The temperature in degC from which on products were wrong; None where heat is no cause.

    Every wrong product must be hot, cooler right ones must be known, and so many right ones must be
    cool that all wrong ones would be hot by chance once in twenty.
    """
    wrong = [
        own.temperature_c for _, own in sampled if own is not None and own.temperature_c is not None
    ]
    fine = [own.temperature_c for own in right if own.temperature_c is not None]
    if len(wrong) < max(LEAST_HOT, len(sampled)) or not fine:
        return None
    coolest = min(wrong)
    cooler = sum(one <= coolest - COOLER_C for one in fine)
    if cooler < LEAST_HOT or ((len(fine) - cooler) / len(fine)) ** len(wrong) > BY_CHANCE:
        return None
    return coolest


def evidence(sampled: Known) -> Message:
    """The numbers: how many, where, when, at which temperature and clock."""
    rings = [one for one, _ in sampled]
    first = min(rings, key=lambda one: one.iteration)
    strides = {one.distance for one in rings if one.described}
    either = all_bits(one.differing for one in rings)
    numbers = sorted({one.iteration for one in rings})
    return Message(
        english(
            "products_evidence",
            "{products}, {elements} of {of} elements[, {first}][, stride {stride}][, {bits}], "
            "iteration {iterations} (lap {lap}), made {made} s after boot, at {heat}",
        ),
        known(
            products=Message(
                plural("products_wrong", "{n} product wrong", "{n} products wrong"),
                {"n": len(rings)},
            ),
            elements=extent(one.elements for one in rings),
            of=f"{first.of}",
            first=_first(first) if first.described else None,
            stride=first.distance if len(strides) == 1 else None,
            bits=differing_bits(either, first.width) if first.described else None,
            iterations=", ".join(map(str, numbers[:4])) + (" ..." if len(numbers) > 4 else ""),
            lap=first.lap,
            made=extent(one.made_s for one in rings),
            heat=_heat([own for _, own in sampled if own is not None]),
        ),
    )


def _first(product: WrongProduct) -> Message:
    """The first wrong element of a product."""
    place = product.first[0]
    return Message(
        english(
            "element_first", "first at byte {address} (element {element}: {got} for {expected})"
        ),
        {
            "address": f"{place.address:#x}",
            "element": f"{list(place.index)}",
            "got": f"{place.got_bits:x}",
            "expected": f"{place.expected_bits:x}",
        },
    )


def _heat(heat: Sequence[GpuHeat]) -> Message:
    temperature = extent(one.temperature_c for one in heat if one.temperature_c is not None)
    clock = extent(one.clock_mhz for one in heat if one.clock_mhz is not None)
    values = known(temperature=temperature, clock=clock)
    if temperature is None:
        return Message(
            english("heat_not_sampled", "a heat that was not sampled")
            if clock is None
            else english("at_clock", "{clock} MHz"),
            values,
        )
    return Message(
        english("at_temperature", "{temperature} degC")
        if clock is None
        else english("at_heat", "{temperature} degC and {clock} MHz"),
        values,
    )


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
    laps = grouped((one.lap, one) for one in sorted(rings, key=lambda one: one.iteration))
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
