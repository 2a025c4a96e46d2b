"""Trend reports to render: a machine with a slow card, another driver since some night, and one
in which every text is hostile.
"""

from __future__ import annotations

from acceptance import resources
from acceptance.core.verdict import VerdictWord
from acceptance.history import noise, trend
from acceptance.history.night import Era, ExclusionReason, Night
from acceptance.history.trend import TrendPoint, TrendReport, TrendSeries

BOOK = noise.read(resources.locate("noise.toml"))
FACTS = {1: {"driver": "580.1", "load burn": "20 s"}, 2: {"driver": "590.2", "load burn": "30 s"}}
NIGHTS = 24


def night(
    run_id: str,
    utc: str,
    verdict: VerdictWord,
    apart: ExclusionReason | None = None,
    postponed: bool = False,
) -> Night:
    """A night without figures."""
    return Night(
        run_id=run_id,
        machine_id="m",
        utc=utc,
        day=20454.0,
        seconds=None,
        profile="nightly",
        scope="full",
        verdict=verdict,
        virtual=False,
        postponed=postponed,
        apart=apart,
        era=Era(()),
        series=(),
        figures=(),
    )


def nights(count: int = NIGHTS) -> tuple[Night, ...]:
    """Nights in January, one of them a failure, one put off."""
    told: dict[int, tuple[VerdictWord, ExclusionReason | None, bool]] = {
        3: ("FAIL", None, False),
        5: ("UNJUDGED", None, True),
        7: ("UNJUDGED", "interrupted", False),
    }
    return tuple(
        night(
            f"run-{number}",
            f"2026-01-{number % 28 + 1:02}T02:00:00.000Z",
            *told.get(number, ("PASS", None, False)),
        )
        for number in range(count)
    )


def course(
    name: str, where: str, values: dict[int, float], *, serial: str | None = None, since: int = 9999
) -> TrendSeries:
    """Values by night; another era from night `since` on."""
    points = (
        TrendPoint(
            f"run-{n}", 20454.0 + n, value, None, n == 20, False, n != 7, 2 if n >= since else 1
        )
        for n, value in values.items()
    )
    return TrendSeries("link.copy", name, where, "GB/s", serial, tuple(points))


def machine(others: tuple[str, ...] = ()) -> TrendReport:
    """Four courses: one that fell in the last week, one that did not move, one in two eras, one
    with a single night.
    """
    usual = {n: 50.0 + 0.1 * (n % 3) for n in range(NIGHTS) if n != 5}
    fallen = {n: value - (4.0 if n >= 17 else 0.0) for n, value in usual.items()}
    made = [
        (course("copy_h2d", "gpu0", fallen, serial="GPU-a"), 50.1),
        (course("copy_h2d", "gpu1", usual, serial="GPU-b"), None),
        (course("copy_d2h", "gpu0", usual, since=12), 51.0),
        (course("copy_d2h", "gpu1", {23: 5.0}), None),
    ]
    rows = tuple(
        trend.row(one, BOOK, virtual=False, facts=FACTS, baseline=born) for one, born in made
    )
    return TrendReport("0123abcd", 40, nights(), rows, others, "run-0")


def hostile(text: str) -> TrendReport:
    """Everything that comes from outside is this text."""
    one = TrendSeries(
        text,
        text,
        f"disk:{text}",
        "count",
        text,
        (TrendPoint(text, 1.0, 1.0, None, True, False, True, 1),) * 2,
    )
    row = trend.row(one, BOOK, virtual=False, facts={1: {text: text}})
    last = night(text, text, "PASS")
    changes = ((1, ((text, None, text), (f"load {text}", text, None))),)
    made = trend.TrendRow(row.series, row.summary, changes, 2.0)
    return TrendReport(text, 2, (last, last), (made,), (text,), text)
