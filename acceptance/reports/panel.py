"""Panel: the gauges of the GPUs and the machine, laid out for a terminal's width.

Pure: gauges in, lines out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from acceptance.core import clock_reasons
from acceptance.core.grouping import grouped
from acceptance.core.language import Language
from acceptance.core.limit import number
from acceptance.reports.gauges import ALARMING, Gauge
from acceptance.reports.text import Glyphs, one_line

_GAP = 2  # columns of space between two columns


def cut(text: Text, room: int, signs: Glyphs) -> Text:
    """The text on one line of `room` columns; a cut is marked."""
    if text.cell_len > room:
        text.truncate(max(0, room - cell_len(signs.more)))
        text.append(signs.more)
        text.truncate(room)
    return text


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the panel.

    Where there is no room, the columns of the least `worth` are dropped first.
    """

    head: str
    width: int
    right: bool
    worth: int
    cell: Callable[[Gauge], Text]


def throttle_words(gauge: Gauge, language: Language) -> Text:
    """The reasons that hold a GPU's clocks down, in words; empty if there are none."""
    words = {
        clock_reasons.HW_THERMAL: language("too hot (hardware)"),
        clock_reasons.SW_THERMAL: language("too hot"),
        clock_reasons.POWER_BRAKE: language("power brake"),
        clock_reasons.HW_SLOWDOWN: language("slowed by hardware"),
        clock_reasons.POWER_CAP: language("power limit"),
        clock_reasons.SYNC_BOOST: language("sync boost"),
        clock_reasons.DISPLAY_CLOCKS: language("display clocks"),
        clock_reasons.CLOCKS_SET: language("clocks set by hand"),
        clock_reasons.UNKNOWN: language("unknown reason"),
    }
    if gauge.lost:
        return Text(language("LOST"), "bold red")
    if not gauge.held:
        return Text(language("idle") if gauge.idle else "", "dim")
    return Text(
        language(", ").join(words[one] for one in gauge.held),
        "yellow" if set(gauge.held) & ALARMING else "",
    )


def turn(gauge: Gauge, language: Language) -> str:
    """The progress of a GPU's burn."""
    return (
        language("turn {number} of {total}", number=gauge.lap[0], total=gauge.lap[1])
        if gauge.lap
        else ""
    )


def _value(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def rate(gauge: Gauge, link: str) -> str:
    """What a GPU receives and sends over a link in GB/s, such as `55/0.3`; empty if unknown.

    A direction that the driver does not tell is a dash.
    """
    found = [gauge.rates.get(f"{link}_{way}_gb_s") for way in ("rx", "tx")]
    if all(value is None for value in found):
        return ""
    shown = ("-" if one is None else f"{one:.0f}" if one >= 10.0 else f"{one:.1f}" for one in found)
    return "/".join(shown)


_LINKS = {"pcie": "PCIe", "nvlink": "NVLink"}


def rate_parts(gauges: Sequence[Gauge], language: Language) -> Iterator[Text]:
    """What the links of each GPU move, below a title; nothing where no driver tells."""
    if any(rate(one, link) for one in gauges for link in _LINKS):
        yield Text(language("GB/s in/out"), "dim")
    for one in gauges:
        rates = [f"{name} {found}" for link, name in _LINKS.items() if (found := rate(one, link))]
        if rates:
            yield Text(f"{one.name} {' '.join(rates)}")


def _rate_columns(gauges: Sequence[Gauge], language: Language) -> Iterator[Column]:
    """A column for each kind of link of which a rate is known."""
    for link, name in _LINKS.items():
        if any(rate(one, link) for one in gauges):
            head = language("{link} in/out", link=name)

            def cell(one: Gauge, link: str = link) -> Text:
                found = rate(one, link)
                return Text(f"{found} GB/s" if found else "")

            yield Column(head, 13, True, 2, cell)


def shows_rates(gauges: Sequence[Gauge], width: int, language: Language, signs: Glyphs) -> bool:
    """Whether the table has room for every rate that is known."""
    rates = {one.head for one in _rate_columns(gauges, language)}
    fitting = fitting_columns(columns(language, signs, gauges), width)
    return rates <= {one.head for one in fitting}


def columns(language: Language, signs: Glyphs, gauges: Sequence[Gauge] = ()) -> tuple[Column, ...]:
    """All columns in order."""
    return (
        Column(language("GPU"), 5, False, 9, lambda one: Text(one.name)),
        Column(language("power"), 6, True, 5, lambda one: Text(_value(one.power_w, "W"))),
        Column(
            language("temp"), 5, True, 8, lambda one: Text(_value(one.temperature_c, signs.degree))
        ),
        Column(language("clock"), 8, True, 4, lambda one: Text(_value(one.clock_mhz, "MHz"))),
        Column(
            language("errors"),
            6,
            True,
            7,
            lambda one: Text(str(one.errors), "bold red" if one.errors else ""),
        ),
        Column(language("held back by"), 14, False, 6, lambda one: throttle_words(one, language)),
        *_rate_columns(gauges, language),
        Column(
            language("latest figure"), 20, False, 3, lambda one: Text(one_line(one.figure or ""))
        ),
        Column(language("burn"), 13, False, 1, lambda one: Text(turn(one, language))),
    )


def fitting_columns(columns: Sequence[Column], width: int) -> tuple[Column, ...]:
    """The columns that fit; those of the least worth are dropped."""
    kept = list(columns)
    while len(kept) > 1 and sum(one.width + _GAP for one in kept) > width:
        kept.remove(min(kept, key=lambda one: one.worth))
    return tuple(kept)


def table(gauges: Sequence[Gauge], width: int, language: Language, signs: Glyphs) -> Table:
    """One line per GPU, below a line of heads."""
    found = fitting_columns(columns(language, signs, gauges), width)
    spare = max(0, width - sum(one.width + _GAP for one in found))
    made = Table(
        box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False, header_style="dim"
    )
    for index, one in enumerate(found):
        room = one.width + (spare if index == len(found) - 1 and not one.right else 0)
        made.add_column(
            cut(Text(one.head), room, signs),
            width=room,
            justify="right" if one.right else "left",
            no_wrap=True,
        )
    for gauge in gauges:
        made.add_row(
            *(
                cut(one.cell(gauge), column.width or 0, signs)
                for one, column in zip(found, made.columns, strict=True)
            )
        )
    return made


def _extreme(
    gauges: Sequence[Gauge], value: Callable[[Gauge], float | None], most: bool
) -> tuple[Gauge, float] | None:
    known = [(one, found) for one in gauges if (found := value(one)) is not None]
    if not known:
        return None
    return (max if most else min)(known, key=lambda pair: pair[1])


def summary_parts(gauges: Sequence[Gauge], language: Language, signs: Glyphs) -> Iterator[Text]:
    """A summary of many GPUs.

    It has the hottest, the slowest, the total power, errors, and the reasons that hold clocks down.
    """
    errors = sum(one.errors for one in gauges)
    whose = language.listed(one.name for one in gauges if one.errors)
    lost = language.listed(one.name for one in gauges if one.lost)
    yield Text(language("{number} GPUs", number=len(gauges)))
    if lost:
        yield Text(language("LOST: {names}", names=lost), "bold red")
    if errors:
        yield Text(language("errors: {number} ({names})", number=errors, names=whose), "bold red")
    if hottest := _extreme(gauges, lambda one: one.temperature_c, True):
        shown = _value(hottest[1], signs.degree)
        yield Text(language("hottest {name} {value}", name=hottest[0].name, value=shown))
    if slowest := _extreme(gauges, lambda one: one.clock_mhz, False):
        yield Text(
            language(
                "slowest {name} {value}", name=slowest[0].name, value=_value(slowest[1], "MHz")
            )
        )
    for name, words in _held_by(gauges, language).items():
        text = language.listed(words)
        yield Text(language("{label}: {text}", label=name, text=text))
    powers = [one.power_w for one in gauges if one.power_w is not None]
    if powers:
        yield Text(language("{value} in all", value=_value(sum(powers), "W")))
    if not errors:
        yield Text(language("no errors"))


def _held_by(gauges: Sequence[Gauge], language: Language) -> dict[str, tuple[str, ...]]:
    return grouped(
        (throttle_words(one, language).plain, one.name)
        for one in gauges
        if set(one.held) & ALARMING
    )


def gpu_parts(gauges: Sequence[Gauge], language: Language, signs: Glyphs) -> Iterator[Text]:
    """A few GPUs in words, each with all its gauges."""
    for one in gauges:
        parts = [
            _value(one.power_w, "W"),
            _value(one.temperature_c, signs.degree),
            _value(one.clock_mhz, "MHz"),
            throttle_words(one, language).plain,
            one_line(one.figure or ""),
            turn(one, language),
            language("errors: {number}", number=one.errors) if one.errors else "",
        ]
        yield Text(f"{one.name} {language(', ').join(filter(None, parts))}")


def machine(values: Mapping[str, float], language: Language, signs: Glyphs) -> Iterator[Text]:
    """The machine's own sensors of processor and memory."""
    if (degrees := values.get("cpu_temperature_c")) is not None:
        yield Text(language("CPU {value}", value=_value(degrees, signs.degree)))
    if (clock := values.get("cpu_mhz_mean")) is not None:
        yield Text(language("CPU clock {value}", value=_value(clock, "MHz")))
    if (load := values.get("load_1m")) is not None:
        yield Text(language("system load {value}", value=number(round(load, 1))))
    if (free := values.get("memory_available_gib")) is not None:
        yield Text(language("RAM free {value}", value=_value(free, "GiB")))


def flow_lines(parts: Sequence[Text], width: int, signs: Glyphs) -> list[Text]:
    """Parts side by side, as many per line as fit, none broken."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + len(signs.between) + part.cell_len <= width:
            lines[-1].append(signs.between).append_text(part)
        else:
            lines.append(cut(part.copy(), width, signs))
    return lines
