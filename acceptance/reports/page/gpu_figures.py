"""The figures of each GPU that builders compare, beside those of its equals.

Pure. What the run did not measure is said to be so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from acceptance.core.dtype import burn_name, gemm_names
from acceptance.core.evidence import Table
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.core.parts import Component, Pair
from acceptance.core.verdict import Judgement
from acceptance.diagnosis import peer_paths
from acceptance.diagnosis.transports import pair_links
from acceptance.expect.sheet import LOCAL_COPY, PATTERN_COPY, Sheet
from acceptance.journal.run import Run
from acceptance.loads.burn.contract import LAP_COLUMNS, LAP_ROWS, LAPS
from acceptance.machine.gpu import Gpu, gpus
from acceptance.reports import closing, pair_table
from acceptance.reports.page import bars
from acceptance.reports.page.timeline import Timeline, Track
from acceptance.reports.text import duration, one_line
from acceptance.wording import words
from acceptance.wording.words import quantity

# Formats of floating-point products by the names that people know them by. The first four are those
# of tensor cores.
_FORMATS = {"f8": "FP8", "bf16": "BF16", "f16": "FP16", "tf32": "TF32", "f32": "FP32"}
_ALWAYS = "bf16"
# Of each, the first that any GPU of the run measured is shown for all.
_MEMORY_COPIES = (LOCAL_COPY, PATTERN_COPY)  # both count what is read and what is written
_HOST_COPIES = (
    ("copy_h2d", "copy_d2h"),
    ("copy_own_h2d", "copy_own_d2h"),
    ("bandwidth_test_h2d", "bandwidth_test_d2h"),
)
_PEER_COPIES = ("copy_d2d_write", "p2p_write", "copy_own_p2p", "collective_send_receive")
_STAGED = "p2p_staged"
MISCOMPARES = "_miscompares"
_ERRORS = frozenset(
    {
        *("gpu_burn_errors_tensor", "gpu_burn_errors_float", "gpu_burn_errors_double"),
        *("burn_digests_differ", "digest_repeats_differ", "digest_differs"),
    }
)
# The ends of a strip: so far from the median of the GPU's equals.
SHARE, DEGREES = 0.1, 20.0
_WORST = ("fail", "error", "skip", "warn", "waived")
_MOST = 1e12  # a journal may hold anything


@dataclass(frozen=True, slots=True)
class Spot:
    """A value beside the median of the GPU's equals.

    `place` is 0 to 100, 50 that median; `text` is the difference.
    """

    place: float
    text: str

    @property
    def bar(self) -> tuple[float, float]:
        """Where the bar from the median begins, and its width."""
        return min(50.0, self.place), max(1.5, abs(self.place - 50.0))


@dataclass(frozen=True, slots=True)
class Reading:
    """A line of a GPU's card: what was measured, and more about it.

    `mark` is the worst kind of finding about it, "" if there is none. `spot` is None where no equal
    GPU has such a value.
    """

    label: str
    value: str
    more: str = ""
    mark: str = ""
    spot: Spot | None = None


@dataclass(frozen=True, slots=True)
class GpuFigures:
    """A GPU's card. `state` says in words what its worst findings are; `mark` is their kind."""

    name: str
    model: str
    state: str
    mark: str
    trouble: str | None
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A run as the cards take it."""

    run: Run
    language: Language
    seen: Timeline
    due: tuple[Gpu, ...]
    peaks: bars.Peaks
    judged: Mapping[tuple[str, Component], Sequence[Judgement]]
    paths: tuple[peer_paths.PeerPath, ...]
    products: Mapping[Component, float]

    def value(self, measurement: str, component: Component) -> float | None:
        """The value of a component; None where none was measured."""
        found = self.judged.get((measurement, component), ())
        return next((one.value for one in found if one.value is not None), None)

    def mark(self, names: Sequence[str], *components: Component, beside: Sequence[str] = ()) -> str:
        """The worst kind of finding of these measurements, and of their ratios to siblings.

        Of those `beside` them, what was not measured does not count.
        """
        more = [
            one
            for one in self._named(beside, components)
            if bars.mark(one) not in ("error", "skip")
        ]
        return _worst([*self._named(names, components), *more])

    def _named(self, names: Sequence[str], components: Sequence[Component]) -> Iterator[Judgement]:
        for name in names:
            for form in (name, f"{name}_ratio"):
                for component in components:
                    yield from self.judged.get((form, component), ())

    def first(self, names: Iterable[str]) -> str | None:
        """The first of these measurements that any GPU has."""
        known = {one.name for one in self.due}
        return next(
            (name for name in names if any(self.value(name, gpu) is not None for gpu in known)),
            None,
        )

    def spot(self, gpu: Gpu, of: Callable[[Gpu], float | None], unit: str = "") -> Spot | None:
        """A GPU's value beside the median of the other GPUs of its model.

        The difference is a share; with a `unit`, an amount.
        """
        own = of(gpu)
        others = [
            value
            for one in self.due
            if one.name != gpu.name and one.model == gpu.model
            if (value := of(one)) is not None
        ]
        if own is None or not others or not (middle := median(others)) > 0 or own > _MOST:
            return None
        apart = own - middle if unit else own / middle - 1
        far = apart / (DEGREES if unit else SHARE)
        rounded = round(apart if unit else 100 * apart, 0 if unit else 1) + 0.0  # no minus before 0
        text = f"{rounded:+.0f} {unit}" if unit else f"{rounded:+.1f} %"
        return Spot(round(50 + 50 * max(-1.0, min(1.0, far)), 1), text)


def _worst(judged: Iterable[Judgement]) -> str:
    """The worst kind of finding of these values, "" without any."""
    kinds = {bars.mark(one) for one in judged}
    return next((kind for kind in _WORST if kind in kinds), "")


def source(run: Run, sheets: Sequence[Sheet], seen: Timeline, language: Language) -> Source:
    """What the cards of a run are made of; `seen` are the samples of its GPUs."""
    due = gpus(run.inventory, run.plan.gpus or None)
    judged = list(pair_table.judged(run))
    found = grouped(((one.due.measurement, one.due.component), one) for one in judged)
    return Source(
        run,
        language,
        seen,
        due,
        bars.peaks(run.inventory, sheets, language),
        found,
        peer_paths.paths(pair_links(run.inventory, due, ()), due, judged),
        dict(_products(run)),
    )


def card(source: Source, gpu: Gpu) -> GpuFigures:
    """The card of a GPU."""
    mark, state = _state(source, gpu)
    trouble = words.text(gpu.error, source.language) if gpu.error else None
    model = gpu.model or source.language("model not shown")
    return GpuFigures(
        str(gpu.name), one_line(model), state, mark, trouble, tuple(_readings(source, gpu))
    )


def _state(source: Source, gpu: Gpu) -> tuple[str, str]:
    """The worst kind of finding that names a GPU, and how many there are."""
    _ = source.language
    judged = [
        one for (_name, at), known in source.judged.items() if gpu.name in at.ends for one in known
    ]
    kinds = Counter(map(bars.mark, judged))
    kinds.update(
        one.kind
        for one in source.run.verdict.of_kind(*_WORST)
        if one.measurement is None and one.component is not None
        if gpu.name in one.component.ends or str(one.component) == gpu.pci_address
    )
    open_ = kinds["error"] + kinds["skip"]
    if kinds["fail"]:
        return "fail", _.ngettext("{n} failure", "{n} failures", kinds["fail"])
    if open_:
        return "error", _.ngettext("{n} value not judged", "{n} values not judged", open_)
    if kinds["warn"]:
        return "warn", _.ngettext("{n} warning", "{n} warnings", kinds["warn"])
    if kinds["waived"]:
        return "waived", _.ngettext("{n} value waived", "{n} values waived", kinds["waived"])
    if any(one.value is not None for one in judged):
        return "pass", _("nothing to note")
    return "skip", _("not measured")


def _readings(source: Source, gpu: Gpu) -> Iterator[Reading]:
    yield from _rates(source, gpu)
    yield _memory_copy(source, gpu)
    yield _host_link(source, gpu)
    yield _peer_link(source, gpu)
    yield _heat(source, gpu)
    yield _results(source, gpu)


def _rates(source: Source, gpu: Gpu) -> Iterator[Reading]:
    """The best rate of all formats, and that of bfloat16."""
    formats = {gemm_names(one)[1]: one for one in _FORMATS}
    always = gemm_names(_ALWAYS)[1]

    def most(name: str) -> float:
        return max((source.value(name, one.name) or 0.0 for one in source.due), default=0.0)

    best = max(formats, key=most)
    for name in dict.fromkeys((best, always) if most(best) else (always,)):
        label = source.language("{format} rate", format=_FORMATS[formats[name]])
        about = (*gemm_names(formats[name]), burn_name(formats[name]))
        yield _rate(source, gpu, label, name, "TFLOP/s", about)


def _memory_copy(source: Source, gpu: Gpu) -> Reading:
    name = source.first(_MEMORY_COPIES) or LOCAL_COPY
    label = source.language("memory copy")
    return _rate(source, gpu, label, name, "GB/s", _MEMORY_COPIES)


def _rate(
    source: Source, gpu: Gpu, label: str, name: str, unit: str, about: Sequence[str]
) -> Reading:
    """A rate with its share of the peak; the mark is of everything it is `about`."""
    _ = source.language
    value = source.value(name, gpu.name)
    mark = source.mark((name,), gpu.name, beside=about)
    if value is None:
        return Reading(label, _("not measured"), mark=mark)
    peak = source.peaks.get((about[0], gpu.name))
    part = f"{number(round(100 * value / peak.value))} %" if peak else ""
    share = _("{share} of peak", share=part) if part else ""
    spot = source.spot(gpu, lambda one: source.value(name, one.name))
    return Reading(label, quantity(value, unit), share, mark, spot)


def _host_link(source: Source, gpu: Gpu) -> Reading:
    """Both directions between the host's memory and the GPU; the strip is of the slower one."""
    _ = source.language
    to, back = next((pair for pair in _HOST_COPIES if source.first(pair)), _HOST_COPIES[0])
    label = _("host link")
    about = (*(name for pair in _HOST_COPIES for name in pair), "gpu_link_gen", "gpu_link_width")
    mark = source.mark((to, back), gpu.name, beside=about)
    ways = [source.value(name, gpu.name) for name in (to, back)]
    link = _link(source, gpu)
    if ways == [None, None]:
        return Reading(label, _("not measured"), link, mark)

    def slower(one: Gpu) -> float | None:
        rates = [source.value(name, one.name) for name in (to, back)]
        known = [rate for rate in rates if rate is not None]
        return min(known) if len(known) == len(rates) else None

    rates = " / ".join("-" if way is None else f"{way:.1f}" for way in ways)
    return Reading(label, f"{rates} GB/s", link, mark, source.spot(gpu, slower))


def _link(source: Source, gpu: Gpu) -> str:
    """The PCI Express link under load; "" where it was not measured."""
    generation, width = (
        source.value(name, gpu.name) for name in ("gpu_link_gen", "gpu_link_width")
    )
    if generation is None or width is None:
        return ""
    return source.language(
        "PCIe gen {generation} x{width}",
        generation=number(generation),
        width=number(width),
    )


def _peer_link(source: Source, gpu: Gpu) -> Reading:
    """Writes from the GPU to each of the others: their median, and the slowest if it differs."""
    _ = source.language
    label = _("peer link")
    own = [path for path in source.paths if path.pair.first == gpu.name]
    if len(source.due) < 2:
        return Reading(label, _("one GPU"))
    pairs = [
        pair
        for one in source.due
        if one != gpu
        for pair in (Pair(gpu.name, one.name), Pair(one.name, gpu.name))
    ]
    every = [Pair(a.name, b.name) for a in source.due for b in source.due if a != b]
    name = next(
        (
            one
            for one in (*_PEER_COPIES, _STAGED)
            if any(source.value(one, pair) is not None for pair in every)
        ),
        _PEER_COPIES[0],
    )

    def rates(one: Gpu) -> list[float]:
        ways = [Pair(one.name, other.name) for other in source.due if other != one]
        return [rate for way in ways if (rate := source.value(name, way)) is not None]

    marks = (
        source.mark((name,), *pairs, beside=("link_contradictions", "p2p_supported")),
        source.mark((), gpu.name, beside=("nvlink_active", "nvlink_speed")),
    )
    mark = next((kind for kind in _WORST if kind in marks), "")
    joined = _(", ").join(dict.fromkeys(path.joined for path in own if path.joined != "-"))
    found = rates(gpu)
    if not found:
        return Reading(label, _("not measured"), joined, mark)
    slowest, usual = min(found), median(found)
    more = [joined]
    if number(slowest) != number(usual):
        more.append(_("lowest {rate}", rate=quantity(slowest, "GB/s")))
    if name == _STAGED:
        more.append(_("through host memory: no peer access"))
    spot = source.spot(gpu, lambda one: median(found) if (found := rates(one)) else None)
    beside = _(", ").join(filter(None, more))
    return Reading(label, quantity(usual, "GB/s"), beside, mark, spot)


# What can hold the clocks back, by the seconds that it did.
_CLOCK_LIMITS = (
    "gpu_power_cap",
    "gpu_sw_thermal_slowdown",
    "gpu_hw_thermal_slowdown",
    "gpu_power_brake",
    "gpu_hw_slowdown",
)


def _heat(source: Source, gpu: Gpu) -> Reading:
    """The highest temperature and power, and what held the clocks back."""
    _ = source.language
    track = source.seen.tracks.get(gpu.name)
    names = ("gpu_temperature", "gpu_power")
    about = ("gpu_temperature_margin", "burn_temperature_spread", *_CLOCK_LIMITS)
    mark = source.mark(names, gpu.name, beside=about)
    heat, power = (
        source.value(name, gpu.name) if source.value(name, gpu.name) is not None else most
        for name, most in zip(names, _highest(track), strict=True)
    )
    if heat is None and power is None:
        return Reading(_("hottest"), _("not measured"), mark=mark)
    values = [
        quantity(round(value, digits), unit)
        for value, unit, digits in ((heat, "degC", 1), (power, "W", 0))
        if value is not None
    ]

    def hottest(one: Gpu) -> float | None:
        value = source.value(names[0], one.name)
        return value if value is not None else _highest(source.seen.tracks.get(one.name))[0]

    spot = source.spot(gpu, hottest, "degC")
    return Reading(_("hottest"), _(", ").join(values), _limited(source, gpu, track), mark, spot)


def _highest(track: Track | None) -> tuple[float | None, float | None]:
    """The highest temperature and power of a GPU's samples."""
    if track is None:
        return None, None
    heat, power = (
        max((cell.most for cell in track.cells[name].values()), default=None)
        for name in ("temperature_c", "power_w")
    )
    return heat, power


def _limited(source: Source, gpu: Gpu, track: Track | None) -> str:
    """What held the clocks back and for how long, or that nothing did."""
    _ = source.language
    names = {
        "gpu_power_cap": _("power limit"),
        "gpu_sw_thermal_slowdown": _("heat (driver)"),
        "gpu_hw_thermal_slowdown": _("heat (hardware)"),
        "gpu_power_brake": _("power brake"),
        "gpu_hw_slowdown": _("hardware slowdown"),
    }
    seconds = {name: source.value(name, gpu.name) for name in _CLOCK_LIMITS}
    if any(value is not None for value in seconds.values()):
        causes = [
            f"{names[name]} {duration(min(value, _MOST))}"
            for name, value in seconds.items()
            if value
        ]
    elif track is not None:  # the run broke off before its samples were judged
        causes = [names["gpu_power_cap"]] if track.capped else []
        causes += [_("heat or hardware")] if track.slowed else []
    else:
        return ""
    if not causes:
        return _("nothing held the clock back")
    return _("held back: {what}", what=_(", ").join(causes))


def _results(source: Source, gpu: Gpu) -> Reading:
    """How many results were compared, and how many were wrong."""
    _ = source.language
    due = [
        one
        for (name, at), known in source.judged.items()
        if at == gpu.name or (isinstance(at, Pair) and at.first == gpu.name)
        if MISCOMPARES in name or name in _ERRORS
        for one in known
    ]
    values = [one.value for one in due if one.value is not None]
    label = _("results")
    mark = _worst(due)
    if not values:
        return Reading(label, _("not measured"), mark=mark)
    wrong = sum(values)
    more = [_.ngettext("{n} comparison", "{n} comparisons", len(values))]
    if products := source.products.get(gpu.name):
        more.append(_("{number} burn products", number=f"{products:,.0f}"))
    if len(values) < len(due):
        more.append(not_made(source, due))
    return Reading(label, errors(wrong, _), _(", ").join(more), mark)


def not_made(source: Source, due: Iterable[Judgement]) -> str:
    """How many of these counts were not made, and by which checks."""
    missing = {id(one) for one in due if one.value is None}
    checks = (
        check.id
        for check in source.run.verdict.checks
        if any(id(one) in missing for one in check.judged)
    )
    return source.language(
        "{number} not made ({checks})",
        number=len(missing),
        checks=closing.names(checks, source.language),
    )


def _products(run: Run) -> Iterator[tuple[Component, float]]:
    """The matrix products that the burn computed on each GPU; it compares all of them."""
    count = LAP_COLUMNS.index("products")
    found: dict[Component, float] = {}
    for entry in run.entries:
        table = entry.body
        whole = isinstance(table, Table) and len(table.rows) < LAP_ROWS  # of more it has a part
        if (
            isinstance(table, Table)
            and whole
            and (table.name, table.columns) == (LAPS, LAP_COLUMNS)
        ):
            numbers = (row[count] for row in table.rows)
            known = [one for one in numbers if isinstance(one, float) and 0 <= one < _MOST]
            found[table.component] = found.get(table.component, 0.0) + sum(known)
    yield from found.items()


def errors(count: float, _: Language) -> str:
    """How many errors were found."""
    return _.ngettext("{n} error", "{n} errors", int(min(count, _MOST))) if count else _("no error")
