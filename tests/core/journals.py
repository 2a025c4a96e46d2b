"""Plans and journals for tests: small ones to read, a complete passing journal of any plan, and
hypothesis strategies for both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st
from msgspec.structs import replace
from sound_values import good_value as good_value

from acceptance.core.finding import Siblings, Waiver, Within
from acceptance.core.limit import Limit
from acceptance.core.parts import CPU, Component, Gpu
from acceptance.core.plan import SESSIONS, Due, Plan, PlannedCheck, Session
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Note,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)

DIGEST = "digest-of-the-plan"
FLOOR = Limit("GB/s", "a basis", low=100.0, warn_low=110.0)
NONE_ALLOWED = Limit("count", "no fault is sound", high=0.0)


def due(
    measurement: str = "copy",
    component: Component = Gpu(0),
    unit: str = "GB/s",
    limit: Limit | None = FLOOR,
    *,
    waivable: bool = True,
) -> Due:
    """One due measurement; without a limit it says so."""
    return Due(
        measurement,
        component,
        unit,
        (Within(limit),) if limit else (),
        "class default",
        None if limit else "no limit can be",
        waivable,
    )


def check(
    name: str = "link.copy",
    *dues: Due,
    session: Session = "load",
    seconds: float = 1.0,
    gate: bool = False,
) -> PlannedCheck:
    """A planned check; without dues it owes `due()`."""
    return PlannedCheck(name, f"title of {name}", session, seconds, dues or (due(),), gate)


def plan(
    *checks: PlannedCheck,
    waivers: Sequence[Waiver] = (),
    gaps: Sequence[str] = (),
    declared: bool = True,
    profile: str = "smoke",
    digest: str = DIGEST,
) -> Plan:
    """A full plan; without checks it holds `check()`."""
    return Plan(
        profile=profile,
        scope="full",
        checks=checks or (check(),),
        waivers=tuple(waivers),
        loads_s={},
        memory_gib=1.0,
        cannot_detect=("faults that need heat",),
        not_tested=(),
        gaps=tuple(gaps),
        inventory_declared=declared,
        digest=digest,
    )


def without_siblings(made: Plan) -> Plan:
    """The plan in which each ratio stands by itself, whatever it is made of."""
    return replace(
        made,
        checks=tuple(
            replace(one, due=tuple(due.without(Siblings) for due in one.due)) for one in made.checks
        ),
    )


def check_bodies(
    planned: PlannedCheck, values: Mapping[tuple[str, Component], float] | None = None
) -> list[Body]:
    """The records of one check that ran and passed; `values` replaces those of
    (measurement, component).
    """
    given = values or {}
    bodies: list[Body] = [CheckStarted(planned.id)]
    for one in planned.due:
        value = given.get((one.measurement, one.component), good_value(one))
        bodies.append(Measured(planned.id, one.measurement, one.component, one.unit, value))
    return [*bodies, CheckEnded(planned.id, "pass", "", planned.seconds)]


def bodies(made: Plan, values: Mapping[tuple[str, Component], float] | None = None) -> list[Body]:
    """A complete passing journal of a plan; `values` replaces measured values
    by (measurement, component).
    """
    found: list[Body] = [RunStarted("run-1", made, {"host": "box"}, "machine-1")]
    for session in SESSIONS:
        share = made.share(session)
        if share:
            found.append(SessionStarted(session, made.digest, tuple(one.id for one in share)))
            found += itertools.chain.from_iterable(check_bodies(one, values) for one in share)
            found.append(SessionEnded(session, True, "exited 0", 3.0))
    return [*found, RunEnded(True, "every session of the plan was run")]


def entries(records: Iterable[Body], *, start_s: float = 100.0, step_s: float = 1.0) -> list[Entry]:
    """Records as lines of one segment, a step of the boot-time clock apart."""
    return [
        Entry(number, start_s + step_s * number, "2026-01-01T00:00:00.000Z", body, "journal.jsonl")
        for number, body in enumerate(records)
    ]


# --- strategies ---

UNIT = "GB/s"
_bounds = st.integers(-5, 5).map(float)
waivers = st.builds(
    Waiver,
    reason=st.just("known"),
    measurement=st.sampled_from(["a", "b"]),
    component=st.sampled_from(["gpu0", "gpu*", "cpu"]),
    worst=_bounds,
) | st.builds(
    Waiver,
    reason=st.just("known"),
    skip=st.sampled_from(["s.one", "s", "t.*"]),
    component=st.sampled_from([None, "gpu0", "gpu*"]),
)


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    """Any limit over a small range of whole numbers, so that values hit its bounds often."""
    ladder = sorted(draw(st.lists(_bounds, min_size=4, max_size=4)))
    low, warn_low, warn_high, high = (draw(st.sampled_from([bound, None])) for bound in ladder)
    if low is None and high is None:
        low = ladder[0]
    return Limit(UNIT, "a basis", low, high, warn_low, warn_high)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans of one to four checks over all sessions, with limits, waivers, and
    now and then a gap.
    """
    names = draw(
        st.lists(
            st.sampled_from(["s.one", "s.two", "t.one", "t.two[x]"]),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    checks = []
    for name in names:
        owed = draw(
            st.lists(
                st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([Gpu(0), Gpu(1), CPU])),
                min_size=1,
                max_size=3,
                unique=True,
            )
        )
        dues = tuple(
            due(m, c, UNIT, draw(st.none() | limits()), waivable=draw(st.booleans()))
            for m, c in owed
        )
        checks.append(check(name, *dues, session=draw(st.sampled_from(SESSIONS))))
    checks.sort(key=lambda one: SESSIONS.index(one.session))
    gaps = draw(st.sampled_from([(), (), (), ("gpu7: no check of this plan loads it",)]))
    return plan(*checks, waivers=draw(st.lists(waivers, max_size=2)), gaps=gaps)


_checks = st.sampled_from(["s.one", "s.two", "t.one", "t.two[x]", "stranger.one"])
_text = st.sampled_from(["", "a reason", "a was not measured"])
_values = (
    st.none()
    | st.integers(-6, 6).map(float)
    | st.sampled_from([float("nan"), float("inf"), float("-inf")])
)
_session_names = st.sampled_from(SESSIONS)
records: st.SearchStrategy[Body] = st.one_of(
    st.builds(CheckStarted, _checks),
    st.builds(
        CheckEnded, _checks, st.sampled_from(["pass", "fail", "error", "skip"]), _text, st.just(1.0)
    ),
    st.builds(
        Measured,
        _checks,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([Gpu(0), Gpu(1), CPU]),
        st.sampled_from([UNIT, UNIT, "W"]),
        _values,
        note=st.none() | _text,
    ),
    st.builds(
        Skipped,
        _checks,
        _text,
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, Gpu(0), Gpu(1)]),
    ),
    st.builds(SessionStarted, _session_names, st.sampled_from([DIGEST, "another"]), st.just(())),
    st.builds(SessionEnded, _session_names, st.booleans(), _text, st.just(1.0)),
    st.builds(
        Event,
        kind=st.just("Xid"),
        severity=st.sampled_from(["fatal", "error", "warning", "info"]),
        text=_text,
        meaning=_text,
        action=_text,
        code=st.sampled_from([None, 79, "x"]),
        component=st.sampled_from([None, Gpu(0)]),
        boot_s=st.none() | st.floats(90.0, 130.0),
        hardware=st.booleans(),
    ),
    st.builds(Note, _text, st.booleans()),
    st.builds(RunEnded, st.booleans(), _text),
    st.builds(RunClosed, st.none() | _checks, st.booleans(), st.just({}), _text),
)
