"""Ceilings of plausibility: the most that link, memory and cores allow.

A reading above its ceiling is an error and proves nothing. A ceiling is a `Limit` with `high`
alone, and applies beside the limit that judges the hardware. Where an input is not known there is
no ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from acceptance.core.dtype import DTYPES, PEAKS, burn_name, gemm_names
from acceptance.core.limit import Limit, number
from acceptance.expect import architecture, sheet
from acceptance.expect.architecture import Architecture
from acceptance.expect.compute import ComputeFacts
from acceptance.expect.gpu import GpuFacts
from acceptance.expect.gpu_pair import WRITES
from acceptance.expect.limit_book import Override
from acceptance.expect.sheet import LOCAL_COPY, Sheet
from acceptance.machine import pcie

# How far a sound reading may lie above the calculated maximum, because clocks and published values
# are not exact. Links: headers take 5 % of the data rate and more, and healthy copies reach at most
# 0.94 of it, so this covers the timing alone.
LINK_ERROR = 1.02
# NVML reports up to 7 % more than the published rate of an NVLink (26.562 of 25, 53.125 of 50).
NVLINK_SPEED_ERROR = 1.10
# Healthy copies reach 0.93 of the published bandwidth; the timing does not wait for what is still
# in the L2 cache at the end of a copy.
MEMORY_ERROR = 1.05
# For bandwidths on which sources differ: DCGM has 640.7 GB/s for an A10, 600 are published.
DOUBTFUL_MEMORY_ERROR = 1.10
# Healthy products reach 1.16 of a published peak, which is for the boost clock, and cards of some
# makers run above the highest clock that the driver reports.
PRODUCT_ERROR = 1.10
# Where the driver reports no highest clock: the most that it reports of any model is 1.36 times the
# published boost clock.
UNKNOWN_CLOCK = 1.36
# The passes of the memory test read or write at most the memory's full bandwidth; a copy in the
# same memory reaches at least half of that.
VRAM_RATE = 2.0
# The arrays are four times the last-level caches, which may serve a part of them.
RAM_ERROR = 1.25
# No processor does more in one clock than two fused multiply-adds of 512 bits, and none on sale
# runs at more than 6.5 GHz.
CPU_OPERATIONS = {"f64": 32, "f32": 64}
CPU_GHZ = 6.5

HOST_COPIES = (
    "copy_h2d",
    "copy_d2h",
    "copy_h2d_bidirectional",
    "copy_d2h_bidirectional",
    "copy_own_h2d",
    "copy_own_d2h",
    "copy_own_h2d_bidirectional",
    "copy_own_d2h_bidirectional",
    "copy_own_h2d_pageable",
    "copy_own_d2h_pageable",
    "bandwidth_test_h2d",
    "bandwidth_test_d2h",
)
STAGED = "p2p_staged"
# The measured bytes for each byte of memory traffic: nvbandwidth counts a byte that is read and
# written once. bandwidthTest copies 32 MB, which fit into the L2 cache, so the memory sets no
# ceiling for it.
MEMORY_COPIES = {LOCAL_COPY: 1.0, "vram_copy": 1.0, "copy_local": 0.5}
# gpu-burn's modes and their possible formats: with tensor cores TF32, or float16 where the library
# chooses that.
BURN_MODES = {"float": ("f32",), "tensor": ("tf32", "f16"), "double": ("f64",)}
# Models whose processor is connected by NVLink-C2C, published as 900 GB/s for both directions
# together (GH200, GB200, GB300; GB10 has less), and not by the PCI Express link that they show.
_C2C = re.compile(r"\bG[BH]\d+")
C2C_GBS = 450.0

Rate = tuple[float, str]  # the maximum, and its derivation


def _ceiling(
    name: str, component: str, unit: str, error: float, rate: Rate, share: float = 1.0
) -> Override:
    value, formula = rate
    part = f"{share:g} x " if share != 1.0 else ""
    basis = f"{error:g} x {part}{number(value)} {unit}, the most that is possible = {formula}"
    return Override(name, "ceiling", Limit(unit, basis, high=error * share * value), component)


def gpu_ceilings(
    gpus: Sequence[GpuFacts],
    cards: Sequence[ComputeFacts],
    sheets: Sequence[Sheet],
    architectures: Sequence[Architecture],
) -> Iterator[Override]:
    """The ceilings of each GPU and of each ordered pair.

    `gpus` and `cards` are the same GPUs, in the same order.
    """
    known = {
        gpu.name: sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in gpus
    }
    links = {gpu.name: _host_link(gpu) for gpu in gpus}
    for gpu, card in zip(gpus, cards, strict=True):
        own, link = known[gpu.name], links[gpu.name]
        if link is not None:
            yield from (_ceiling(name, gpu.name, "GB/s", LINK_ERROR, link) for name in HOST_COPIES)
        if own is not None and own.nvlink is not None:
            text = (
                f"one link of NVLink {own.nvlink.generation} in one direction (sheet of {own.name})"
            )
            rate = own.nvlink.link_gbs, text
            yield _ceiling("nvlink_speed", gpu.name, "GB/s", NVLINK_SPEED_ERROR, rate)
        yield from _memory(card, own)
        yield from _products(card, own, architectures)
    for first, second in permutations(gpus, 2):
        yield from _pair(first, second, known, links)


def _host_link(gpu: GpuFacts) -> Rate | None:
    """The link between host memory and this GPU, in GB/s in one direction."""
    if gpu.model is not None and _C2C.search(gpu.model):
        return C2C_GBS, "NVLink-C2C to the processor in one direction"
    generation, width = gpu.link_generation, gpu.link_width
    rate = pcie.data_rate(generation.value, width.value) if generation and width else None
    if generation is None or width is None or rate is None:
        return None
    return rate[0], f"{rate[1]} in one direction; {generation.told}; {width.told}"


def _pair(
    first: GpuFacts,
    second: GpuFacts,
    known: Mapping[str, Sheet | None],
    links: Mapping[str, Rate | None],
) -> Iterator[Override]:
    """The ceilings of traffic from one GPU to another.

    Over NVLink where there is one, otherwise over PCI Express at the rate of the slower side.
    """
    component = f"{first.name}->{second.name}"
    sides = [link for link in (links[first.name], links[second.name]) if link is not None]
    staged = min(sides, default=None)
    if staged is not None:
        yield _ceiling(STAGED, component, "GB/s", LINK_ERROR, staged)
    if first.nvlink_active is None or second.nvlink_active is None:
        return
    # The links that both have: where a link ends is not always shown, and through a switch every
    # link reaches every GPU.
    count = min(first.nvlink_active, second.nvlink_active)
    found = staged
    if count:
        speeds = [
            one.nvlink.link_gbs
            for one in map(known.get, (first.name, second.name))
            if one and one.nvlink
        ]
        if len(speeds) < 2:
            return
        over = count * min(speeds), f"{count} NVLinks x {min(speeds):g} GB/s in one direction"
        found = max(over, staged) if staged is not None else over
    if found is not None:
        yield from (_ceiling(name, component, "GB/s", LINK_ERROR, found) for name in WRITES)


def _memory(card: ComputeFacts, own: Sheet | None) -> Iterator[Override]:
    """Copies within the GPU's memory.

    Their buffers are four times the L2 cache and more, so the cache cannot serve them.
    """
    rates: list[Rate] = []
    error = MEMORY_ERROR
    if own is not None:
        rates.append((own.memory.bandwidth_gbs, f"the memory's bandwidth (sheet of {own.name})"))
        if own.doubt("memory.bandwidth_gbs"):
            error = DOUBTFUL_MEMORY_ERROR
    if card.max_memory_clock_mhz and card.memory_bus_bits:
        formula = f"2 x {card.max_memory_clock_mhz:g} MHz x {card.memory_bus_bits} bit / 8"
        text = f"{formula}, the memory's highest clock and its bus as the driver names them"
        rates.append((2 * card.max_memory_clock_mhz * card.memory_bus_bits / 8 / 1000, text))
    if rates:
        for name, share in MEMORY_COPIES.items():
            yield _ceiling(name, card.name, "GB/s", error, max(rates), share)
    text = (
        "the passes of the memory test against a copy in the same memory, which reads and "
        "writes "
        "each byte"
    )
    yield Override(
        "vram_rate", "ceiling", Limit("ratio", f"{VRAM_RATE:g} x {text}", high=VRAM_RATE), card.name
    )


def _products(
    card: ComputeFacts, own: Sheet | None, architectures: Sequence[Architecture]
) -> Iterator[Override]:
    """Ceilings of matrix products: our own (short, sustained, in the burn) and gpu-burn's."""
    capability = card.compute_capability or (own.compute_capability if own is not None else None)
    known = architecture.find(architectures, capability, card.model)
    peaks = {
        dtype: peak for dtype in DTYPES if (peak := _peak(card, own, known, dtype)) is not None
    }
    if (
        "f8" in peaks and "i8" in peaks
    ):  # with narrow accumulation float8 reaches INT8's rate: both have eight bits
        peaks["f8"] = max(peaks["f8"], peaks["i8"])
    for dtype, peak in peaks.items():
        for name in (*gemm_names(dtype), burn_name(dtype)):
            yield _ceiling(name, card.name, "TFLOP/s", PRODUCT_ERROR, peak)
    for mode, formats in BURN_MODES.items():
        if found := [peaks[dtype] for dtype in formats if dtype in peaks]:
            yield _ceiling(f"gpu_burn_{mode}", card.name, "TFLOP/s", PRODUCT_ERROR, max(found))


def _peak(
    card: ComputeFacts, own: Sheet | None, known: Architecture | None, dtype: str
) -> Rate | None:
    """The dense peak of a format in TFLOP/s at the card's highest clock.

    The sheet's value, or the architecture's where that is higher.
    """
    rates = list(_published(card, own, dtype))
    capped = (
        own is not None and not own.half_rate and any(key in own.exempt for key in PEAKS[dtype])
    )
    if not (rates and capped):
        rates += _from_units(card, known, dtype)
    return max(rates, default=None)


def _published(card: ComputeFacts, own: Sheet | None, dtype: str) -> Iterator[Rate]:
    if own is None:
        return
    clock = max(filter(None, (card.max_sm_clock_mhz, own.nvml_max_sm_mhz)), default=None)
    for key in PEAKS[dtype]:
        peak = getattr(own.peak, key)
        if peak is None:
            continue
        text = f"{peak:g} (dense peak {key}, sheet of {own.name})"
        if clock is None:
            more = f"{UNKNOWN_CLOCK:g}, because the driver does not name its highest clock"
            yield UNKNOWN_CLOCK * peak, f"{text} x {more}"
        elif clock > own.boost_mhz:
            yield (
                peak * clock / own.boost_mhz,
                f"{text} x {clock:g} MHz (its highest) / {own.boost_mhz:g} MHz",
            )
        else:
            yield peak, text


def _from_units(card: ComputeFacts, known: Architecture | None, dtype: str) -> Iterator[Rate]:
    if card.cuda_cores is None or card.max_sm_clock_mhz is None:
        return
    clock = f"{card.max_sm_clock_mhz:g} MHz"
    if known is not None:
        multiprocessors, operations = card.cuda_cores / known.cores, known.operations.get(dtype)
        if operations is not None:
            text = (
                f"{multiprocessors:g} multiprocessors x {clock} x {operations:g} operations a "
                f"clock ({known})"
            )
            yield multiprocessors * card.max_sm_clock_mhz * operations / 1e6, text
    elif dtype == "f32":
        yield (
            2 * card.cuda_cores * card.max_sm_clock_mhz / 1e6,
            f"{card.cuda_cores} CUDA cores x {clock} x 2",
        )


def host_ceilings(
    cores: int, singles: Sequence[str], modules: Sequence[tuple[int | None, int | None]]
) -> Iterator[Override]:
    """The ceilings of processors and RAM.

    `cores` counts the machine's cores, `singles` names those that are measured alone ("core:0").
    `modules` are the memory modules as megatransfers a second and data bits. RAM has no ceiling
    where one of them is not known.
    """
    for dtype, operations in CPU_OPERATIONS.items():
        text = f"{CPU_GHZ:g} GHz x {operations} operations a clock, more than any processor on sale"
        one = CPU_GHZ * operations
        yield _ceiling(
            f"cpu_gemm_{dtype}", "cpu", "GFLOP/s", 1.0, (cores * one, f"{cores} cores x {text}")
        )
        yield from (
            _ceiling(f"cpu_gemm_core_{dtype}", name, "GFLOP/s", 1.0, (one, text))
            for name in singles
        )
    widths = [(rate, bits) for rate, bits in modules if rate and bits]
    if not widths or len(widths) < len(modules):
        return
    rate = sum(rate * bits for rate, bits in widths) / 8 / 1000
    text = (
        f"{len(widths)} modules, each at its rate x its data bits / 8, if each had a channel "
        "of "
        "its own"
    )
    for name in ("memory_copy", "memory_triad", "stressapptest_copy"):
        yield _ceiling(name, "memory", "GB/s", RAM_ERROR, (rate, text))
