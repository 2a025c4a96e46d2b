"""Prometheus' text format: gauges, with labels from outside made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from acceptance.reports.text import one_line

LABEL = 200  # characters of a label's value; a longer one is cut and marked as cut


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge: its name with its unit, one sentence of help, and its samples.

    A label that is None is left out.
    """

    name: str
    help: str
    samples: tuple[tuple[Mapping[str, str | None], float], ...] = field(hash=False)


def metric(name: str, help_: str, value: float | None) -> Metric:
    """A metric of one sample without labels; without any sample if the value is None."""
    return Metric(name, help_, () if value is None else (({}, value),))


def escape(text: str) -> str:
    """A label's value on one line, with backslash, quote and line end escaped."""
    return one_line(text, LABEL).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _series(name: str, labels: Mapping[str, str | None]) -> str:
    words = ",".join(f'{key}="{escape(text)}"' for key, text in labels.items() if text)
    return f"{name}{{{words}}}" if words else name


def _lines(metrics: Iterable[Metric]) -> Iterator[str]:
    for one in metrics:
        values: dict[str, float] = {}
        for labels, value in one.samples:
            # Prometheus refuses a whole file in which two samples have the same labels. Two names
            # may become equal when they are cut: the first one stays.
            values.setdefault(_series(one.name, labels), value)
        if values:
            yield f"# HELP {one.name} {one.help}"
            yield f"# TYPE {one.name} gauge"
            yield from (f"{series} {value!r}" for series, value in values.items())


def render(metrics: Iterable[Metric]) -> bytes:
    """The metrics as UTF-8 text; a metric without samples is left out."""
    return "".join(f"{line}\n" for line in _lines(metrics)).encode("utf-8")
