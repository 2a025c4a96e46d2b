"""Figures of a GPU or disk sheet against each other: a slip of the pen is found without the card.

A peak may lie below multiprocessors x clock x operations of its architecture, because some cards
are capped, and never above. Pure; the tolerances are in `fixtures/sheets.toml`.

The arithmetic of a basis, such as "0.58 x 82.6 (dense peak)". Pure.

A basis is a sentence for people. If it holds a product with a share, or begins with one, that must
give the floor. One without a product is a note.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import msgspec

from acceptance import resources
from acceptance.core.dtype import PEAKS, gemm_names, native_dtypes
from acceptance.core.limit import number
from acceptance.core.message import UserError
from acceptance.core.strict import Strict, Text
from acceptance.expect import architecture
from acceptance.expect.architecture import Architecture
from acceptance.expect.disk_sheet import BLOCK_BYTES, DiskSheet
from acceptance.expect.sheet import LOCAL_COPY, Problem, Sheet, SheetLimit
from acceptance.machine import pcie

_NUMBER = r"\d+(?:[.,]\d+)*"
_UNIT = r"(?: ?(?:T(?:FL)?OP/s|GFLOP/s|GB/s|MB/s|MHz|W))?"
_PER_CENT = r" ?(?:%|per ?cent\b)"
_FACTOR = rf"{_NUMBER}(?:{_PER_CENT})?{_UNIT}"
_TIMES = r" ?(?:x|X|\u00d7|\u00b7|\*|times|of) ?"
_PRODUCT = re.compile(rf"(?<![\w.,]){_FACTOR}(?:{_TIMES}{_FACTOR})+(?![\w])")
_FACTORS = re.compile(rf"({_NUMBER})({_PER_CENT})?")


class Product(NamedTuple):
    """A product in a basis: its text and its factors."""

    text: str
    factors: tuple[float, ...]

    @property
    def value(self) -> float:
        """What it gives."""
        return math.prod(self.factors)


def product(basis: str) -> Product | None:
    """The product that a basis says its floor comes from, or None.

    Sizes such as 8192 x 8192 are none. Raises UserError for a number with a comma.
    """
    for match in _PRODUCT.finditer(basis):
        text = match[0].strip()
        if " of " in text and not re.search(_PER_CENT, text) and not _begins_with_a_share(match):
            continue  # "52 of 82.6" compares two figures
        if "," in text:
            told = "write its numbers with a point, and no comma"
            raise UserError(f"{text!r} cannot be calculated: {told}")
        factors = [
            float(one) / 100 if per_cent else float(one) for one, per_cent in _FACTORS.findall(text)
        ]
        begins = match.start() == 0 and "." in text
        if begins or min(factors) < 1:
            return Product(text, tuple(factors))
    return None


def _begins_with_a_share(match: re.Match[str]) -> bool:
    return match.start() == 0 and match[0].startswith("0.")


def check_basis(basis: str, low: float, digits: int) -> None:
    """Hold the product of a basis against the floor, to so many digits.

    Raises UserError where it gives another value.
    """
    found = product(basis)
    if found is None:
        return
    step = 10.0 ** (math.floor(math.log10(low)) + 1 - digits)
    if not abs(found.value - low) < step * (1 + 1e-9):
        told = f"{found.text} is {number(found.value)}, and low is {number(low)}"
        raise UserError(f"{told}: correct the one that is wrong")


FILE = "sheets.toml"
Range = tuple[float, float]
_TENSOR = ("tf32", "f16", "bf16", "f8")  # formats that `half_rate` halves
_LANES = (1, 2, 4, 8, 12, 16, 32)


class _Gpu(Strict, frozen=True):
    rounding: float
    exempt: float
    clock: float
    boost_mhz: Range
    sm: Range
    tdp_w: Range
    bandwidth: float
    floor: float
    degrees: Range
    nvlink_links: int


class _Memory(Strict, frozen=True):
    """Of one type: the rate of a pin, and GiB for each 32 bits of the bus."""

    type: Text
    pin_gbps: Range
    gib: Range


class _Other(Strict, frozen=True):
    pin_gbps: Range
    gib: Range
    link_gbs: Range


class _NvLink(Strict, frozen=True):
    generation: int
    link_gbs: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]


class _Disk(Strict, frozen=True):
    """Of one kind: sequential rates, random operations, the least share of the link."""

    kind: Text
    rate_gbs: Range
    iops: Range
    link: float


class Figures(Strict, frozen=True):
    """`sheets.toml`."""

    gpu: _Gpu
    memory: tuple[_Memory, ...]
    other: _Other
    nvlink: tuple[_NvLink, ...]
    disk: tuple[_Disk, ...]


@functools.cache
def figures() -> Figures:
    """The shipped file. Raises SetupError."""
    return resources.read(resources.locate(FILE), Figures)


def problem(sheet: Sheet) -> Problem | None:
    """The first figure of a GPU sheet that contradicts another one, or None.

    Raises SetupError.
    """
    return next(
        (
            found
            for check in (_ranges, _cores, _memory, _links, _thermal, _peaks, _limits, _rows)
            for found in check(sheet)
        ),
        None,
    )


def unchecked(sheet: Sheet) -> tuple[str, ...]:
    """The peaks that nothing here can be held against: the architecture is not known."""
    return () if _architecture(sheet) else tuple(sorted(sheet.peak.by_dtype()))


def _outside(key: str, value: float, allowed: Range, unit: str = "") -> str | None:
    low, high = allowed
    if low <= value <= high:
        return None
    between = f"between {number(low)} and {number(high)}{unit}"
    return f"{key} is {number(value)}, and must be {between}: correct it"


def _ranges(sheet: Sheet) -> Iterator[Problem]:
    of = figures().gpu
    for key, allowed in (("sm", of.sm), ("boost_mhz", of.boost_mhz), ("tdp_w", of.tdp_w)):
        if told := _outside(key, getattr(sheet, key), allowed):
            yield (key,), told
    highest = sheet.nvml_max_sm_mhz
    if highest is not None:
        allowed = sheet.boost_mhz, of.clock * sheet.boost_mhz
        if told := _outside("nvml_max_sm_mhz", highest, allowed, " (by boost_mhz)"):
            yield ("nvml_max_sm_mhz",), told


def _architecture(sheet: Sheet, *, of_brand: bool = True) -> Architecture | None:
    name = sheet.nvml_names[0] if of_brand else None
    return architecture.find(architecture.shipped(), sheet.compute_capability, name)


def _cores(sheet: Sheet) -> Iterator[Problem]:
    known = _architecture(sheet)
    if known is not None and sheet.cuda_cores != sheet.sm * known.cores:
        told = f"cuda_cores is {sheet.cuda_cores}, and {sheet.sm} multiprocessors of {known.name}"
        yield ("cuda_cores",), f"{told} have {sheet.sm * known.cores}: correct sm or cuda_cores"


def _memory(sheet: Sheet) -> Iterator[Problem]:
    memory, of = sheet.memory, figures()
    known = next((one for one in of.memory if one.type == memory.type), None) or of.other
    if told := _outside("pin_gbps", memory.pin_gbps, known.pin_gbps, f" for {memory.type}"):
        yield ("memory", "pin_gbps"), f"memory.{told}"
    if memory.bus_bits % 32:
        yield (
            ("memory", "bus_bits"),
            f"memory.bus_bits is {memory.bus_bits}, which is no multiple of 32: correct it",
        )
    words = memory.bus_bits / 32
    allowed = known.gib[0] * words, known.gib[1] * words
    of_bus = f" for {memory.bus_bits} bits of {memory.type}"
    if told := _outside("gib", memory.gib, allowed, of_bus):
        yield ("memory", "gib"), f"memory.{told}"
    rate = memory.bus_bits * memory.pin_gbps / 8
    if abs(memory.bandwidth_gbs - rate) > of.gpu.bandwidth * rate:
        told = f"memory.bandwidth_gbs is {number(memory.bandwidth_gbs)}, and {memory.bus_bits} bits"
        each = f"x {number(memory.pin_gbps)} Gbit/s / 8 are {number(rate)}"
        yield ("memory", "bandwidth_gbs"), f"{told} {each}: correct the one that is wrong"


def _links(sheet: Sheet) -> Iterator[Problem]:
    of = figures()
    if (sheet.pcie_gen is None) != (sheet.pcie_width is None):
        key = "pcie_gen" if sheet.pcie_gen is not None else "pcie_width"
        yield (key,), f"{key} stands alone: give both pcie_gen and pcie_width, or neither"
    if sheet.pcie_gen is not None and pcie.data_rate(sheet.pcie_gen, 1) is None:
        yield ("pcie_gen",), f"pcie_gen is {sheet.pcie_gen}, which is no generation: correct it"
    if sheet.pcie_width is not None and sheet.pcie_width not in _LANES:
        yield ("pcie_width",), f"pcie_width is {sheet.pcie_width}, which is no width: correct it"
    link = sheet.nvlink
    if link is None:
        return
    if link.links > of.gpu.nvlink_links:
        told = f"nvlink.links is {link.links}, and no card has more than {of.gpu.nvlink_links}"
        yield ("nvlink", "links"), f"{told}: correct it"
    known = next((one for one in of.nvlink if one.generation == link.generation), None)
    if known is None:
        if beyond := _outside("nvlink.link_gbs", link.link_gbs, of.other.link_gbs, " GB/s"):
            yield ("nvlink", "link_gbs"), beyond
    elif link.link_gbs not in known.link_gbs:
        rates = " or ".join(map(number, known.link_gbs))
        told = f"nvlink.link_gbs is {number(link.link_gbs)}, and one link of NVLink"
        one = f"{link.generation} carries {rates} GB/s in one direction"
        yield ("nvlink", "link_gbs"), f"{told} {one}: correct it"


def _thermal(sheet: Sheet) -> Iterator[Problem]:
    thermal = sheet.thermal
    last = 0.0
    for key in ("max_operating_c", "slowdown_c", "shutdown_c"):
        value = getattr(thermal, key) if thermal is not None else None
        if value is None:
            continue
        if told := _outside(key, value, figures().gpu.degrees, " degC"):
            yield ("thermal", key), f"thermal.{told}"
        if value < last:
            told = f"thermal.{key} is {number(value)}, below the {number(last)} before it"
            yield ("thermal", key), f"{told}: a card slows down before it shuts down"
        last = value


def _possible(sheet: Sheet, dtype: str) -> tuple[float, str] | None:
    """The most that a peak of this format can be in TFLOP/s, and the formula; None if unknown."""
    known = _architecture(sheet)
    if known is None or dtype not in known.operations:
        return None
    operations = known.operations[dtype]
    whole = _architecture(sheet, of_brand=False)
    if sheet.half_rate and dtype in _TENSOR and whole is not None:
        operations = min(operations, whole.operations[dtype] / 2)
    clock = sheet.boost_mhz
    if sheet.doubt("boost_mhz"):
        clock = max(clock, sheet.nvml_max_sm_mhz or clock)
    formula = f"{sheet.sm} multiprocessors x {number(clock)} MHz x {number(operations)} operations"
    return sheet.sm * clock * operations / 1e6, formula


def _peaks(sheet: Sheet) -> Iterator[Problem]:
    of = figures().gpu
    for dtype, keys in PEAKS.items():
        found = _possible(sheet, dtype)
        for key in keys:
            peak = getattr(sheet.peak, key)
            if peak is None:
                continue
            if dtype not in native_dtypes(sheet.compute_capability):
                told = f"peak.{key}: no card of compute capability {sheet.compute_capability}"
                yield ("peak", key), f"{told} has this format: remove it"
            elif found is not None:
                most, formula = found
                share = of.exempt if key in sheet.exempt else 1 + of.rounding
                if peak > share * most:
                    told = f"peak.{key} is {number(peak)}, and {formula} are {number(most)}"
                    yield ("peak", key), f"{told}: correct the one that is wrong"


def _most(sheet: Sheet, measurement: str) -> tuple[float, str] | None:
    """The most that a floor can be, and the key that says so; None where the sheet has none."""
    known = {LOCAL_COPY: (sheet.memory.bandwidth_gbs, "memory.bandwidth_gbs")}
    for dtype, keys in PEAKS.items():
        given = [(getattr(sheet.peak, key), f"peak.{key}") for key in keys]
        for one in [one for one in given if one[0] is not None][:1]:
            known |= dict.fromkeys(gemm_names(dtype), one)
    return known.get(measurement)


def _limits(sheet: Sheet) -> Iterator[Problem]:
    for at, row in enumerate(sheet.limit):
        text, place = f"limit for {row.measurement}", ("limit", at)
        found = _most(sheet, row.measurement)
        if found is None:
            yield place, f"{text}: the sheet has no peak to hold it against: add it to [peak]"
        else:
            yield from _floor(row, place, *found)


def _floor(
    row: SheetLimit, place: tuple[str | int, ...], most: float, key: str
) -> Iterator[Problem]:
    text, share = f"limit for {row.measurement}", figures().gpu.floor
    for bound in ("low", "warn_low"):
        value = getattr(row, bound)
        if value is not None and value > most:
            told = f"{bound} is {number(value)}, above {key}, which is {number(most)}"
            yield (*place, bound), f"{text}: {told}: correct the one that is wrong"
    if row.low < share * most:
        told = f"low is {number(row.low)}, less than {share:g} of {key}, which is"
        asks = f"{number(most)}, and would ask for next to nothing: correct it"
        yield (*place, "low"), f"{text}: {told} {asks}"
    yield from _basis(text, (*place, "basis"), row.basis, row.low, 3)


def _rows(sheet: Sheet) -> Iterator[Problem]:
    """Collectives against the links, and the bases of collectives and of shares."""
    link = sheet.nvlink
    most = link.full() * link.link_gbs if link is not None else None
    if most is None and sheet.pcie_gen is not None and sheet.pcie_width is not None:
        rate = pcie.data_rate(sheet.pcie_gen, sheet.pcie_width)
        most = rate[0] if rate is not None else None
    for at, row in enumerate(sheet.collective):
        text, place = f"collective {row.measurement}", ("collective", at)
        if most is not None and row.low > most:
            told = f"low is {number(row.low)}, and the links of the sheet carry {number(most)} GB/s"
            yield (*place, "low"), f"{text}: {told} in one direction: correct the one that is wrong"
        if link is not None and most is not None and row.low < figures().gpu.floor * most:
            told = f"low is {number(row.low)}, less than {figures().gpu.floor:g} of what the links"
            asks = f"carry ({number(most)} GB/s), and would ask for next to nothing: correct it"
            yield (*place, "low"), f"{text}: {told} {asks}"
        yield from _basis(text, (*place, "basis"), row.basis, row.low, 3)
    for at, share in enumerate(sheet.share):
        text = f"share {share.measurement}"
        yield from _basis(text, ("share", at, "basis"), share.basis, share.low, 2)


def _basis(
    text: str, place: tuple[str | int, ...], told: str, low: float, digits: int
) -> Iterator[Problem]:
    try:
        check_basis(told, low, digits)
    except UserError as error:
        yield place, f"{text}: basis: {error}"


def disk_problem(sheet: DiskSheet) -> Problem | None:
    """The first figure of a disk sheet that is of another unit or kind, or None."""
    return next(_disk(sheet), None)


def _disk(sheet: DiskSheet) -> Iterator[Problem]:
    of = next(one for one in figures().disk if one.kind == sheet.kind)
    link = sheet.link_gbs() or 0.0
    for at, one in enumerate(sheet.variant):
        for keys, allowed in (
            (("read_gbs", "write_gbs"), of.rate_gbs),
            (("read_iops", "write_iops"), of.iops),
        ):
            for key in keys:
                value = getattr(one, key)
                if value is not None and (
                    told := _outside(key, value, allowed, f" for a disk of kind {sheet.kind}")
                ):
                    yield ("variant", at, key), told
        place = ("variant", at, "read_gbs")
        if one.read_gbs < of.link * link:
            told = f"{number(one.read_gbs)} GB/s is less than {of.link:g} of the link's"
            yield place, f"{told} {number(link)}: correct the figure, or the link"
        for kind in ("read", "write"):
            count, rate = getattr(one, f"{kind}_iops"), getattr(one, f"{kind}_gbs")
            if count is not None and rate is not None and count * BLOCK_BYTES > 1e9 * rate:
                told = f"{count} IOPS of 4 KiB are more than {number(rate)} GB/s"
                yield ("variant", at, f"{kind}_iops"), f"{told}: correct the one that is wrong"
