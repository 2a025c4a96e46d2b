"""Ceilings of plausibility: the most that link, memory and cores allow.

A reading above its ceiling is an error and proves nothing. A ceiling is a `Limit` with `high`
alone, and applies beside the limit that judges the hardware. Where an input is not known there is
no ceiling. By how much a sound reading may lie above the calculated maximum is data (`derived`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from acceptance.core.dtype import DTYPES, PEAKS, burn_name, gemm_names, trained_dtype
from acceptance.core.message import Message, Values, english
from acceptance.core.parts import CPU, GPUS, MEMORY, Component, Pair
from acceptance.expect import architecture, sheet
from acceptance.expect.architecture import Architecture
from acceptance.expect.compute import ComputeFacts, memory_formula, peak_formula
from acceptance.expect.gpu import GpuFacts, one_nvlink
from acceptance.expect.limit_book import Amount, Override, Rate, ceilings, figures
from acceptance.expect.sheet import Sheet
from acceptance.loads.train.rates import OF_MATMUL, TRAINING_RATES
from acceptance.loads.train.shapes import LAYERS, MODELS, LayerShape

# Soldered memory (Grace, GB10, laptops): firmware has one entry for several channels of it.
_SOLDERED = re.compile("LPDDR|HBM", re.IGNORECASE)
# Processors whose own memory (HBM) is a cache of what the modules hold: "Xeon(R) CPU Max 9480".
_OWN_MEMORY = re.compile(r"\bCPU Max\b")

# gpu-burn's modes and their possible formats: with tensor cores TF32, or float16 where the library
# chooses that.
BURN_FORMATS = {
    "gpu_burn_float": ("f32",),
    "gpu_burn_tensor": ("tf32", "f16"),
    "gpu_burn_double": ("f64",),
}
# Models whose processor is connected by NVLink-C2C, published as 900 GB/s for both directions
# together (GH200, GB200, GB300; GB10 has less), and not by the PCI Express link that they show.
_C2C = re.compile(r"\bG[BH]\d+")
_Ways = tuple[Rate | None, Rate | None]  # through host memory, and the best


def _rate(rate: Rate) -> float:
    return rate[0]


def gpu_ceilings(
    gpus: Sequence[GpuFacts],
    cards: Sequence[ComputeFacts],
    sheets: Sequence[Sheet],
    architectures: Sequence[Architecture],
) -> Iterator[Override]:
    """The ceilings of each GPU and of each ordered pair.

    `gpus` and `cards` are the same GPUs, in the same order.
    """
    sheet_of = {
        gpu.name: sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model) for gpu in gpus
    }
    links = {gpu.name: _host_link(gpu) for gpu in gpus}
    for gpu, card in zip(gpus, cards, strict=True):
        own, link = sheet_of[gpu.name], links[gpu.name]
        if link is not None:
            yield from ceilings("host_link", gpu.name, link)
        if own is not None and own.nvlink is not None:
            rate = own.nvlink.link_gbs, one_nvlink(own, own.nvlink)
            yield from ceilings("nvlink", gpu.name, rate)
        yield from _memory(card, own)
        yield from _products(card, own, architectures)
    ways: list[_Ways] = []
    for first, second in permutations(gpus, 2):
        ways.append(_ways(first, second, sheet_of, links))
        yield from _pair(Pair(first.name, second.name), ways[-1])
    yield from _groups(ways)


def _host_link(gpu: GpuFacts) -> Rate | None:
    """The link between host memory and this GPU, in GB/s in one direction."""
    if gpu.model is not None and _C2C.search(gpu.model):
        return figures().chip_link_gbs.value, Message(
            english("chip_link", "NVLink-C2C to the processor in one direction")
        )
    if (link := gpu.link) is None:
        return None
    values: Values = {"rate": link.formula, "generation": link.generation, "width": link.width}
    return link.rate, Message(
        english("one_direction", "{rate} in one direction; {generation}; {width}"), values
    )


def _ways(
    first: GpuFacts,
    second: GpuFacts,
    sheet_of: Mapping[Component, Sheet | None],
    links: Mapping[Component, Rate | None],
) -> _Ways:
    """The most from one GPU to another: through host memory, and over the best way.

    That is NVLink where there is one, otherwise PCI Express at the rate of the slower side.
    """
    sides = [link for link in (links[first.name], links[second.name]) if link is not None]
    staged = min(sides, key=_rate, default=None)
    if first.nvlink_active is None or second.nvlink_active is None:
        return staged, None
    # The links that both have: where a link ends is not always shown, and through a switch every
    # link reaches every GPU.
    count = min(first.nvlink_active, second.nvlink_active)
    found = staged
    if count:
        speeds = [
            one.nvlink.link_gbs
            for one in map(sheet_of.get, (first.name, second.name))
            if one and one.nvlink
        ]
        if len(speeds) < 2:
            return staged, None
        values: Values = {"links": count, "speed": f"{min(speeds):g}"}
        over = (
            count * min(speeds),
            Message(
                english("nvlinks_rate", "{links} NVLinks x {speed} GB/s in one direction"), values
            ),
        )
        found = max(staged, over, key=_rate) if staged is not None else over
    return staged, found


def _pair(component: Component, ways: _Ways) -> Iterator[Override]:
    """The ceilings of traffic from one GPU to another."""
    for of, rate in zip(("path_p2p_off", "path"), ways, strict=True):
        if rate is not None:
            yield from ceilings(of, component, rate)


def _groups(ways: Sequence[_Ways]) -> Iterator[Override]:
    """The ceilings of operations of all GPUs: the best way of any two of them.

    Bus bandwidth is what one link carries in one direction, whatever the number of GPUs.
    """
    for of, rates in zip(("best_path_p2p_off", "best_path"), zip(*ways, strict=True), strict=False):
        known_rates = [rate for rate in rates if rate is not None]
        if len(known_rates) == len(rates):
            yield from ceilings(of, GPUS, max(known_rates, key=_rate))


def _memory(card: ComputeFacts, own: Sheet | None) -> Iterator[Override]:
    """Copies within the GPU's memory.

    Their buffers are four times the L2 cache and more, so the cache cannot serve them.
    """
    rates: list[Rate] = []
    doubtful = ""
    if own is not None:
        told = Message(
            english("memory_bandwidth", "the memory's bandwidth ({sheet})"), {"sheet": own.origin}
        )
        rates.append((own.memory.bandwidth_gbs, told))
        if own.doubt("memory.bandwidth_gbs"):
            doubtful = "_doubtful"
    if card.max_memory_clock_mhz and card.memory_bus_bits:
        formula = memory_formula(card.max_memory_clock_mhz, card.memory_bus_bits)
        told = Message(
            english(
                "memory_as_driver_names",
                "{formula}, the memory's highest clock and its bus as the driver names them",
            ),
            {"formula": formula},
        )
        rates.append((2 * card.max_memory_clock_mhz * card.memory_bus_bits / 8 / 1000, told))
    if rates:
        most = max(rates, key=_rate)
        yield from ceilings(f"memory{doubtful}", card.name, most)
        # nvbandwidth counts a byte that is read and written once.
        yield from ceilings(f"memory_once{doubtful}", card.name, most, 0.5)
    yield from ceilings("copy_in_memory", card.name, Amount())


def _products(
    card: ComputeFacts, own: Sheet | None, architectures: Sequence[Architecture]
) -> Iterator[Override]:
    """Ceilings of matrix products: our own (short, sustained, in the burn) and gpu-burn's."""
    capability = card.compute_capability or (own.compute_capability if own is not None else None)
    entry = architecture.find(architectures, capability, card.model)
    peaks = {
        dtype: peak for dtype in DTYPES if (peak := _peak(card, own, entry, dtype)) is not None
    }
    if (
        "f8" in peaks and "i8" in peaks
    ):  # with narrow accumulation float8 reaches INT8's rate: both have eight bits
        peaks["f8"] = max(peaks["i8"], peaks["f8"], key=_rate)
    for dtype, peak in peaks.items():
        names = (*gemm_names(dtype), burn_name(dtype))
        yield from ceilings("peak", card.name, peak, names=names)
    for name, formats in BURN_FORMATS.items():
        if found := [peaks[dtype] for dtype in formats if dtype in peaks]:
            yield from ceilings("peak", card.name, max(found, key=_rate), names=(name,))
    if capability is not None and (peak := peaks.get(trained_dtype(capability))) is not None:
        for name in (*OF_MATMUL, *sorted(TRAINING_RATES)):
            yield from ceilings("peak", card.name, peak, _counted(name), (name,))


def _counted(name: str) -> float:
    """The counted operations of a layer or step for each one that is computed.

    Causal attention counts whole, and half of its scores is computed.
    """
    what, _, own = name.removesuffix("_forward").partition("_")
    shapes: Mapping[str, LayerShape] = (
        {str(layer): shape for layer, shape in LAYERS.items()}
        if what == "layer"
        else {str(model): shape.layer for model, shape in MODELS.items()}
    )
    shape = shapes.get(own)
    if shape is None or not shape.causal:
        return 1.0
    whole = shape.forward_flop(1, shape.sequence)
    return round(whole / (whole - 2 * shape.hidden * shape.sequence**2), 3)


def _peak(
    card: ComputeFacts, own: Sheet | None, entry: Architecture | None, dtype: str
) -> Rate | None:
    """The dense peak of a format in TFLOP/s at the card's highest clock.

    The sheet's value, or the architecture's where that is higher.
    """
    rates = list(_published(card, own, dtype))
    capped = (
        own is not None and not own.half_rate and any(key in own.exempt for key in PEAKS[dtype])
    )
    if not (rates and capped):
        rates += _from_units(card, entry, dtype)
    return max(rates, key=_rate, default=None)


def _published(card: ComputeFacts, own: Sheet | None, dtype: str) -> Iterator[Rate]:
    if own is None:
        return
    clock = max(filter(None, (card.max_sm_clock_mhz, own.nvml_max_sm_mhz)), default=None)
    for key in PEAKS[dtype]:
        peak = getattr(own.peak, key)
        if peak is None:
            continue
        dense = Message(
            english("dense_peak", "{peak} (dense peak {format}, {sheet})"),
            {"peak": f"{peak:g}", "format": key, "sheet": own.origin},
        )
        if clock is None:
            factor = figures().unknown_clock.value
            values: Values = {"peak": dense, "factor": f"{factor:g}"}
            yield (
                factor * peak,
                Message(
                    english(
                        "peak_without_clock",
                        "{peak} x {factor}, because the driver does not name its highest clock",
                    ),
                    values,
                ),
            )
        elif clock > own.boost_mhz:
            values = {"peak": dense, "clock": f"{clock:g}", "boost": f"{own.boost_mhz:g}"}
            yield (
                peak * clock / own.boost_mhz,
                Message(
                    english("peak_at_clock", "{peak} x {clock} MHz (its highest) / {boost} MHz"),
                    values,
                ),
            )
        else:
            yield peak, dense


def _from_units(card: ComputeFacts, entry: Architecture | None, dtype: str) -> Iterator[Rate]:
    clock = card.max_sm_clock_mhz
    if card.cuda_cores is None or clock is None:
        return
    if entry is not None:
        multiprocessors, operations = card.cuda_cores / entry.cores, entry.operations.get(dtype)
        if operations is not None:
            formula = peak_formula(multiprocessors, clock, operations)
            told = Message(
                english("of_architecture", "{formula} ({architecture})"),
                {"formula": formula, "architecture": entry.told},
            )
            yield multiprocessors * clock * operations / 1e6, told
    elif dtype == "f32":
        values: Values = {"cores": card.cuda_cores, "clock": f"{clock:g}"}
        yield (
            2 * card.cuda_cores * clock / 1e6,
            Message(english("cuda_cores_rate", "{cores} CUDA cores x {clock} MHz x 2"), values),
        )


def are_all_memory(processor: str | None, kinds: Sequence[str | None]) -> bool:
    """Whether the modules that the firmware lists carry all traffic to RAM.

    `kinds` are their types, such as "DDR5".
    """
    beside = processor is not None and _OWN_MEMORY.search(processor) is not None
    return not beside and not any(kind and _SOLDERED.match(kind) for kind in kinds)


def host_ceilings(
    cores: int, singles: Sequence[Component], modules: Sequence[tuple[int | None, int | None]]
) -> Iterator[Override]:
    """The ceilings of processors and RAM.

    `cores` counts the machine's cores, `singles` names those that are measured alone ("core:0").
    `modules` are the memory modules as megatransfers a second and data bits. RAM has no ceiling
    where one of them is not known.
    """
    clock = figures().core_ghz.value
    for dtype, figure in (
        ("f64", figures().core_f64_operations),
        ("f32", figures().core_f32_operations),
    ):
        operations = figure.value
        one = clock * operations
        core = Message(
            english(
                "core_rate",
                "{clock} GHz x {operations} operations a clock, more than any processor on sale",
            ),
            {"clock": f"{clock:g}", "operations": int(operations)},
        )
        told = Message(
            english("cores_rate", "{cores} cores x {core}"), {"cores": cores, "core": core}
        )
        yield from ceilings("cores", CPU, (cores * one, told), names=(f"cpu_gemm_{dtype}",))
        for name in singles:
            yield from ceilings("cores", name, (one, core), names=(f"cpu_gemm_core_{dtype}",))
    widths = [(rate, bits) for rate, bits in modules if rate and bits]
    if not widths or len(widths) < len(modules):
        return
    rate = sum(rate * bits for rate, bits in widths) / 8 / 1000
    told = Message(
        english(
            "modules_rate",
            "{modules} modules, each at its rate x its data bits / 8, if each had a channel of "
            "its own",
        ),
        {"modules": len(widths)},
    )
    yield from ceilings("modules", MEMORY, (rate, told))
