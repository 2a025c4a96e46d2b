"""Build the reference of the next night from the nights of one measurement of one part. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import median

import msgspec

from acceptance.core.bounds import deviation_of, on_worse_side
from acceptance.core.limit import Worse
from acceptance.core.past import (
    Bounds,
    CounterReference,
    FirstNights,
    Level,
    NoiseGrowth,
    Past,
    Slope,
)
from acceptance.expect.measurements import Rate
from acceptance.history.noise import Constants, DriftRule


class NightValue(msgspec.Struct, frozen=True, gc=False):
    """One measurement of one part on one night.

    `day` is in days since 1970-01-01 in UTC, with its fraction; `value` and `again`, the repeat if
    there was one, are in the measurement's unit. `outside` and `unsteady` are that night's
    judgement: beyond the bound of its past (in the repeat too, if there was one), or beyond it at
    first and within it in the repeat. `failed` says that the value broke its limit without a
    waiver: it counts as a night outside, and never as usual.
    """

    day: float
    value: float
    again: float | None = None
    outside: bool = False
    unsteady: bool = False
    failed: bool = False


MEDIAN_SPREAD = 1.2533  # standard error of a median over that of a mean: the root of pi / 2


def build_reference(
    nights: Sequence[NightValue],
    baseline: float | None,
    *,
    rule: DriftRule,
    today: float,
    baseline_day: float | None = None,
    rebased: bool = False,
) -> Past | None:
    """The reference for tonight; None if there is nothing to compare with yet.

    `nights` are the nights of one part in one era, in order, without tonight: all since the machine
    was accepted, or as many of the first and last as the rules need. Nights without a finite value
    are ignored; one that broke its limit counts as outside, and never as usual.

    `baseline` is the value of the run that accepted the machine and `baseline_day` its day, in days
    since 1970-01-01 as `today`. `rebased` says that this run was of another era: its value is
    ignored, and the first nights of this era take its place. A counter's baseline value is used in
    any case, because a part counts on in every era.
    """
    every = [one for one in nights if math.isfinite(one.value)]
    held = not rebased or rule.rate is not None
    has_baseline = (
        baseline is not None and baseline_day is not None and math.isfinite(baseline) and held
    )
    if has_baseline:
        assert baseline is not None
        assert baseline_day is not None
        # whatever that night's judgement was: it was accepted
        every.insert(0, NightValue(baseline_day, baseline))
    known = [one for one in every if not one.failed]
    if rule.rate is not None:
        return _counter_reference(known, every, rule.rate, rule.constants, today)
    rules = rule.constants
    decides = rule.worse is not None
    # If the worse side is unknown, a change becomes usual in time: else it would be reported for
    # ever.
    inside = [one for one in known if not (one.outside and decides)]
    within = inside if len(inside) >= rules.nights.least else known
    recent = within[-rules.slope.over :]
    level = _level(recent, rule) if len(within) >= rules.nights.least else None
    first = None
    if has_baseline or (
        decides and len(inside) >= 2 * rules.nights.recent
    ):  # with fewer nights, the first ones are the last ones too
        first = _first(inside, level, rule, baseline=has_baseline)
    slope, grown = (
        (_slope(recent, level, rule), _noise_growth(recent, rule))
        if level is not None
        else (None, None)
    )
    few = _few(inside, level, rule, baseline=has_baseline)
    if level is None and first is None and few is None:
        return None
    if slope is None and grown is None and _limit_is_tighter((level, first, few), rule):
        return None
    last = every[-rules.off.of + 1 :]
    return Past(
        decides=decides,
        off_fails=rules.off.fails,
        off_of=rules.off.of,
        off=sum(_outside(one) or one.unsteady for one in last),
        before=_outside(every[-1]),
        level=level,
        first=first,
        slope=slope,
        grown=grown,
        rebased=rebased,
        few=few,
    )


def _outside(night: NightValue) -> bool:
    return night.outside or night.failed


def _level(within: Sequence[NightValue], rule: DriftRule) -> Level:
    step, rules = rule.constants.step, rule.constants.deviation
    values = [one.value for one in within[-rule.constants.nights.recent :]]
    middle, count = median(values), len(values)
    general, own = rule.deviation(middle), deviation_of(values, middle)
    mixed = math.sqrt((rules.prior * general**2 + count * own**2) / (rules.prior + count))
    deviation = max(rules.floor * general, mixed, own)
    allowed = step.factor * deviation * math.sqrt(1 + MEDIAN_SPREAD**2 / count)
    return Level(
        _round_figure(middle),
        count,
        _round_figure(deviation),
        step.factor,
        _bounds(middle, allowed, rule.worse),
    )


def _first(
    inside: Sequence[NightValue], level: Level | None, rule: DriftRule, *, baseline: bool
) -> FirstNights:
    nights = inside[: rule.constants.nights.recent]
    middle = median([one.value for one in nights])
    deviation = max(rule.deviation(middle), level.deviation if level is not None else 0.0)
    allowed = (
        rule.constants.first.factor * deviation * math.sqrt(1 + MEDIAN_SPREAD**2 / len(nights))
    )
    bounds = _bounds(middle, allowed + (rule.slow or 0.0), rule.worse)  # began in another season
    moved = level is not None and bounds.beyond(level.middle)
    return FirstNights(_round_figure(middle), len(nights), nights[0].day, bounds, baseline, moved)


def _few(
    inside: Sequence[NightValue], level: Level | None, rule: DriftRule, *, baseline: bool
) -> FirstNights | None:
    """Nights that are too few for a spread of their own, with the bounds of two compared runs."""
    if level is not None or not inside:
        return None
    middle = median([one.value for one in inside])
    bounds = rule.general.bounds(middle, rule.worse)
    return FirstNights(_round_figure(middle), len(inside), inside[0].day, bounds, baseline)


def _slope(within: Sequence[NightValue], level: Level, rule: DriftRule) -> Slope | None:
    rules, worse = rule.constants.slope, rule.worse
    if worse is None or len(within) < rules.least:
        return None
    third = len(within) // 3
    early, late = within[:third], within[-third:]
    days = median([one.day for one in late]) - median([one.day for one in early])
    if days < rules.days:
        return None
    first, last = (
        median([one.value for one in early]),
        median([one.value for one in late]),
    )
    error = MEDIAN_SPREAD * level.deviation * math.sqrt(2 / third)
    change = rule.slow if rule.slow is not None else rules.change * rule.deviation(first)
    allowed = max(change, rules.factor * error)
    bounds = _bounds(first, allowed, worse)
    return Slope(first, last, days, len(within), bounds) if bounds.beyond(last) else None


def _noise_growth(within: Sequence[NightValue], rule: DriftRule) -> NoiseGrowth | None:
    rules = rule.constants.growth
    values = [one.value for one in within]
    if len(values) < rules.recent + rules.before:
        return None
    early, late = values[: -rules.recent], values[-rules.recent :]
    middle = median(early)
    before = max(
        deviation_of(early, middle), rule.constants.deviation.floor * rule.deviation(middle)
    )
    now = deviation_of(late, median(late))
    return (
        NoiseGrowth(_round_figure(before), _round_figure(now), rules.recent)
        if now > rules.ratio * before
        else None
    )


def _counter_reference(
    known: Sequence[NightValue],
    every: Sequence[NightValue],
    rate: Rate,
    rules: Constants,
    today: float,
) -> Past | None:
    """The reference of a counter.

    It starts at the last night that is `over_days` or more ago, or else at the first night with a
    plausible clock.
    """
    if not known:
        return None
    # If tonight's clock was set back, all growth since the first night would be compared with one
    # day.
    today = max(today, known[-1].day)
    # Nights whose clock ran ahead of tonight are ignored. If a clock fell behind an earlier
    # night's, it was set back: no time has passed.
    past = [one for one in known if one.day <= today]
    days = list(accumulate((one.day for one in past), max))
    place = max(
        (index for index, day in enumerate(days) if day <= today - rate.over_days), default=0
    )
    ago = today - days[place]
    allowed = rate.step + rate.per_day * max(ago, 1.0)
    most = rate.most_per_day * max(ago, 1.0) if rate.most_per_day is not None else None
    counter = CounterReference(past[place].value, ago, allowed, rate.basis, most, rate.repeats)
    off = sum(_outside(one) for one in every[-rules.off.of + 1 :])
    return Past(
        True, rules.off.fails, rules.off.of, off, before=_outside(every[-1]), counter=counter
    )


def _limit_is_tighter(known: Sequence[Level | FirstNights | None], rule: DriftRule) -> bool:
    """Whether the limit already fails every value beyond these bounds, so that they add nothing."""
    limit = rule.limit
    if limit is None:
        return False
    every = [one.bounds for one in known if one is not None]
    lows = [one.low for one in every if one.low is not None]
    highs = [one.high for one in every if one.high is not None]
    low = not lows or (limit.low is not None and limit.low >= max(lows))
    return low and (not highs or (limit.high is not None and limit.high <= min(highs)))


def _bounds(middle: float, allowed: float, worse: Worse | None) -> Bounds:
    return on_worse_side(middle - allowed, middle + allowed, worse)


def _round_figure(value: float) -> float:
    """A number for display, rounded to five digits; it decides nothing."""
    return float(f"{value:.5g}")
