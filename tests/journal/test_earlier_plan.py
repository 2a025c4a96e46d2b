"""Plans of format 1: what a value is held against had a field for each kind."""

from __future__ import annotations

import pytest
from cases import each

from acceptance.core.criterion import Plausible, Within
from acceptance.core.limit import Limit
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.record import RunStarted
from acceptance.journal import segment

DUE = (
    b'{"measurement":"copy","component":"gpu0","unit":"GB/s","limit":%s,"origin":"sheet",'
    b'"unlimited":null,"waivable":true,"past":%s,"worse":null,"ceiling":%s}'
)
LINE = (
    b'{"seq":0,"boot_s":1.0,"utc":"2026-01-01T00:00:00Z","body":{"record":"run-started",'
    b'"run_id":"r","plan":{"profile":"smoke","scope":"full","checks":[{"id":"link.copy",'
    b'"title":"t","session":"load","seconds":1.0,"due":[%s]}],"waivers":[],"loads_s":{},'
    b'"memory_gib":1.0,"cannot_detect":[],"not_tested":[],"gaps":[],"inventory_declared":true,'
    b'"digest":"d"},"provenance":{},"machine_id":"m"}}'
)
LIMIT = b'{"unit":"GB/s","basis":"b","low":10.0,"high":null,"warn_low":null,"warn_high":null}'
MOST = b'{"unit":"GB/s","basis":"c","high":32.0}'
PAST = (
    b'{"decides":true,"off_fails":4,"off_of":14,"level":{"middle":25.0,"nights":5,'
    b'"deviation":1.0,"factor":4.5,"bounds":{"low":20.0}}}'
)
LOW = Within(Limit("GB/s", "b", low=10.0))
HIGH = Plausible(Limit("GB/s", "c", high=32.0))
BEFORE = Past(True, 4, 14, level=Level(25.0, 5, 1.0, 4.5, Bounds(20.0)))


@each(
    "fields, criteria",
    [
        ((b"null", b"null", b"null"), ()),
        ((LIMIT, b"null", b"null"), (LOW,)),
        ((b"null", b"null", MOST), (HIGH,)),
        ((LIMIT, PAST, MOST), (HIGH, LOW, BEFORE)),
    ],
)
def test_every_kind_becomes_a_criterion_ceiling_first(
    fields: tuple[bytes, ...], criteria: tuple[object, ...]
) -> None:
    body = segment.decode_line(LINE % (DUE % fields)).body
    assert isinstance(body, RunStarted)
    (due,) = body.plan.checks[0].due
    assert (due.criteria, due.origin) == (criteria, "sheet")


@each(
    "due, said",
    [
        (b"{}", "neither `criteria` nor, as in format 1, `limit`"),
        (b"1", "`object`"),
        (b'{"criteria":[]}', "missing required field `measurement`"),
        (
            b'{"measurement":"copy","component":"gpu0","unit":"GB/s","origin":"o"}',
            "neither `criteria` nor, as in format 1, `limit`",
        ),
        (DUE % (b'{"unit":"GB/s","basis":"b"}', b"null", b"null"), "in its plan of format 1, "),
        (DUE % (b"7", b"null", b"null"), "in its plan of format 1, "),
        (DUE % (b"null", b"7", b"null"), "`past` of a measurement of the plan is no object"),
        (DUE % (b"null", b'{"decides":true}', b"null"), "in its plan of format 1, "),
    ],
)
def test_a_plan_of_neither_format_is_refused(due: bytes, said: str) -> None:
    with pytest.raises(segment.UNDECODABLE, match=said):
        segment.decode_line(LINE % due)


def test_a_line_of_today_is_not_changed() -> None:
    made = segment.encoded(segment.decode_line(LINE % (DUE % (LIMIT, PAST, MOST))))
    assert segment.encoded(segment.decode_line(made)) == made
