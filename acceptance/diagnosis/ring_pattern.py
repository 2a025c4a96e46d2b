"""Signatures of wrong products: the same cell, the same elements, a stride, low bits, heat.

Each product is examined by itself first; then all of them for repetition: in the same place of
memory whatever its content (a cell), in the same elements wherever they were stored (the chip),
only when hot (cooling). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from acceptance.core.message import Listed, Message, Values, known
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
    Kind.READ_BACK_RIGHT: Message("way_read_back_right"),
    Kind.ONE_BIT_ONCE: Message("way_one_bit_once"),
    Kind.NOT_A_NUMBER: Message("way_not_a_number"),
    Kind.ADDRESS_LINE: Message("way_address_line"),
    Kind.DATAPATH: Message("way_datapath"),
    Kind.MANY: Message("way_many"),
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
        kind, looks = Kind.THERMAL, Message("wrong_when_hot", {**values, "looks": looks})
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
        return Kind.SCATTERED_BITS, Message("bits_scattered", {"products": len(rings)})
    if len(kinds) == 1:
        return found[0]
    ways = tuple(
        Message("times_way", {"times": count, "way": _WAYS[kind]})
        for kind, count in kinds.most_common()
    )
    return Kind.MANY, Message("ways_differ", {"ways": Listed(ways)})


def _cell(rings: Sequence[WrongProduct]) -> Message | None:
    """The same bit at the same address in several products, whatever was stored there.

    None where most products show no such cell.
    """
    return repeated_cell("cell_in_products", "products", list(map(_cells, rings)))


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
        return Kind.REPEATABLE, Message("same_elements_each", {"products": len(rings)})
    among = numbers[-1] - numbers[0] + 1
    values = {"wrong": len(rings), "products": among}
    return Kind.DATAPATH, Message("same_elements_among", values)


def _single(product: WrongProduct) -> tuple[Kind, Message]:
    """The kind of one product by itself, and its looks."""
    if not product.described:
        return Kind.READ_BACK_RIGHT, Message("right_when_read_again")
    if product.elements == 1 and len(positions(product.differing)) == 1:
        return Kind.ONE_BIT_ONCE, Message("element_bit_once")
    if product.nan or product.infinite:
        alone = "elements_nan" if product.nan else "elements_infinite"
        both = product.nan and product.infinite
        return Kind.NOT_A_NUMBER, Message("elements_nan_and_infinite" if both else alone)
    if not _low(product) and (pair := swapped_addresses(product.first)):
        line = (pair[0] ^ pair[1]).bit_length() - 1
        values: Values = {"address": f"{pair[0]:#x}", "other": f"{pair[1]:#x}", "bit": line}
        return Kind.ADDRESS_LINE, Message("element_of_other_byte", values)
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
        return Kind.DATAPATH, Message("low_bits", {**every, "units": _units(product)})
    if stride is not None:
        if stride == product.columns:
            return Kind.DATAPATH, Message("whole_column", every)
        if not power_of_two(stride):
            return Kind.DATAPATH, Message("distance_regular", every)
        if product.elements >= MANY and wide:
            return Kind.ADDRESS_LINE, Message("distance_of_two", every)
    if product.elements > 2 and len(positions(product.differing)) == 1:
        return Kind.DATAPATH, Message("element_bit_always")
    return None


def _irregular(product: WrongProduct) -> Message:
    if product.elements == 1:
        return Message("element_bits")
    return Message("elements_beside" if product.distance == 1 else "elements_irregular")


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
        return Message("off_by_one_unit")
    return Message("off_by_units", {"most": f"{most}"})


def _every(stride: int) -> Message:
    """Every so manyth element, by the English ordinal."""
    code = "every_th"
    if stride % 100 not in (11, 12, 13):
        match stride % 10:
            case 1:
                code = "every_st"
            case 2:
                code = "every_nd"
            case 3:
                code = "every_rd"
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
        "products_evidence",
        known(
            products=Message("products_wrong", {"n": len(rings)}),
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
        "element_first",
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
        return Message("heat_not_sampled" if clock is None else "at_clock", values)
    return Message("at_temperature" if clock is None else "at_heat", values)


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
