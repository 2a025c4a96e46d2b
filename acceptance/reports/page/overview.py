"""The top of the page: the cards of all GPUs, and a line for each other part. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import GIB, number
from acceptance.core.parts import CPU, MACHINE, MEMORY, Component, Socket
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Disk
from acceptance.reports import closing
from acceptance.reports.page import gpu_figures, machine, run_log
from acceptance.reports.page.gpu_figures import (
    DEGREES,
    MISCOMPARES,
    SHARE,
    GpuFigures,
    Source,
    errors,
    not_made,
)
from acceptance.reports.page.timeline import Timeline
from acceptance.reports.text import duration, one_line
from acceptance.wording.words import quantity

_MOST_GPUS = 1000  # a journal may hold anything


@dataclass(frozen=True, slots=True)
class Overview:
    """The top of a page below the verdict.

    `models` is what all cards are. `lines` are the other parts as pairs of name and text. `method`
    says how the values were taken.
    """

    models: str
    gpus: tuple[GpuFigures, ...]
    lines: tuple[tuple[str, str], ...]
    method: str


def overview(
    run: Run, sheets: Sequence[Sheet], seen: Timeline, language: Language
) -> Overview | None:
    """The top of a run's page; None where the run knows no part of the machine."""
    source = gpu_figures.source(run, sheets, seen, language)
    cards = tuple(gpu_figures.card(source, gpu) for gpu in source.due)
    lines = tuple(_lines(source))
    if not cards and not lines:
        return None
    models = Counter(one.model or language("model not shown") for one in source.due)
    several = "{} x " if len(source.due) > 1 else ""
    each = [
        language(", ").join(
            filter(None, (f"{several.format(count)}{one_line(model)}", _memory(source.due, model)))
        )
        for model, count in models.items()
    ]
    found = (*(each or [language("No GPU")]), _missing(source))
    title = language("; ").join(filter(None, found))
    return Overview(title, cards, lines, _method(source, cards))


def _missing(source: Source) -> str:
    """How many GPUs were due and not found; "" where none is missing."""
    missing = max(
        (
            one.due.limit.low - one.value
            for one in source.judged.get(("gpu_count", MACHINE), ())
            if one.value is not None and one.due.limit is not None and one.due.limit.low is not None
        ),
        default=0.0,
    )
    if not 0 < missing < _MOST_GPUS:
        return ""
    return source.language.ngettext("{n} GPU missing", "{n} GPUs missing", int(missing))


def about(run: Run, seconds: float, language: Language) -> tuple[str, ...]:
    """Which machine was tested, when, for how many `seconds`, and how."""
    _, known = language, run.verdict.provenance
    order, tag, watts = (known.get(key) for key in ("order_number", "asset_tag", "psu_watts"))
    began = run_log.moment(run.first.utc)
    facts = (
        known.get("host") or _("this machine"),
        _("order number {number}", number=order) if order else None,
        _("asset tag {tag}", tag=tag) if tag else None,
        _("power supply {watts} W", watts=watts) if watts else None,
        began,
        duration(seconds),
        _("profile {name}", name=run.verdict.profile),
    )
    return tuple(one_line(one) for one in facts if one)


def _memory(due: Sequence[Gpu], model: str) -> str:
    """The memory of the GPUs of a model, where all have the same."""
    sizes = {one.memory_bytes for one in due if one.model == model}
    size = sizes.pop() if len(sizes) == 1 else None
    return f"{number(round(size / GIB, 1))} GiB" if size else ""


def _method(source: Source, cards: Sequence[GpuFigures]) -> str:
    """How the values were taken: what holds for all cards stands once."""
    if not cards:
        return ""
    _ = source.language
    method = _(
        "Rates are of sustained matrix products on all GPUs at once; peaks are dense and by the "
        "model's sheet. Memory copies count reads and writes. The host link is to / from the GPU "
        "and pinned memory, the peer link writes to the other GPUs. Products of the burn are "
        "compared whole, bit for bit."
    )
    if any(reading.spot for card in cards for reading in card.readings):
        ends = f"{100 * SHARE:.0f} %", quantity(DEGREES, "degC")
        strip = _(
            "A strip shows the GPU beside the median of the others of its model; its ends are "
            "{share} or {degrees} away.",
            share=ends[0],
            degrees=ends[1],
        )
        method = _.sentences((method, strip))
    return method


def _lines(source: Source) -> Iterator[tuple[str, str]]:
    """The processors, the memory and the disks with what was measured of them."""
    _, inventory = source.language, source.run.inventory
    rates = [
        f"{title} {quantity(value, 'GFLOP/s')}"
        for title, name in (("FP64", "cpu_gemm_f64"), ("FP32", "cpu_gemm_f32"))
        if (value := source.value(name, CPU)) is not None
    ]
    hottest = source.value("cpu_temperature", CPU)
    if hottest is not None:
        rates.append(_("hottest {value}", value=quantity(round(hottest, 1), "degC")))
    failures = ("cpu_gemm_miscompares_f64", "cpu_gemm_miscompares_f32", "stress_ng_failures")
    wrong = _errors_of(source, (*failures, "burn_cpu_failures"), (CPU,))
    if model := machine.processor(inventory, _):
        yield _("processor"), _joined(_, model, [*rates, *wrong])
    copy, tested = source.value("memory_copy", MEMORY), source.value("memory_tested", MEMORY)
    rates = [] if copy is None else [_("copies {value}", value=quantity(copy, "GB/s"))]
    if tested is not None:
        rates.append(_("{value} tested", value=quantity(tested, "GiB")))
    failures = ("stressapptest_errors", "memory_copy_miscompares", "memory_triad_miscompares")
    wrong = _errors_of(
        source,
        (*failures, "burn_memory_errors", "memory_random_miscompares"),
        (MEMORY, *{at for _name, at in source.judged if isinstance(at, Socket)}),
    )
    if size := machine.memory(inventory):
        yield _("memory"), _joined(_, size, [*rates, *wrong])
    alike = grouped((_disk(source, disk), disk) for disk in inventory.disks or ())
    for text, disks in alike.items():
        names = closing.names([disk.name for disk in disks], _)
        label = _("disks {names}", names=names) if len(disks) > 1 else _("disk {name}", name=names)
        yield label, text


def _errors_of(
    source: Source, names: Iterable[str], components: Sequence[Component]
) -> tuple[str, ...]:
    """How many errors were counted, and how many counts were not made; nothing if none was due."""
    _ = source.language
    due = [
        one
        for name in names
        for component in components
        for one in source.judged.get((name, component), ())
    ]
    known = [one.value for one in due if one.value is not None]
    return (
        *((errors(sum(known), _),) if known else ()),
        *((not_made(source, due),) if known and len(known) < len(due) else ()),
    )


def _joined(_: Language, model: str, measured: Sequence[str]) -> str:
    """What a part is, and what was measured of it."""
    text = _(", ").join(measured) or _("not measured")
    return _("{label}: {text}", label=model, text=text)


def _disk(source: Source, disk: Disk) -> str:
    _ = source.language
    speeds = (("storage_write", _("write {value}")), ("storage_read", _("read {value}")))
    rates = [
        text.format(value=quantity(value, "GB/s"))
        for name, text in speeds
        if (value := source.value(name, disk.component)) is not None
    ]
    names = {
        name
        for name, component in source.judged
        if component == disk.component
        and (MISCOMPARES in name or name in ("storage_wrong_blocks", "storage_kept_errors"))
    }
    wrong = _errors_of(source, sorted(names), (disk.component,))
    return _joined(_, machine.disk(disk, _), [*rates, *wrong])
