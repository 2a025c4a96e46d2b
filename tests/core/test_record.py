"""Every record survives the journal's own format."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from journals import due, entries, plans, records
from msgspec.structs import replace
from thoroughness import examples

from acceptance.core import parts
from acceptance.core.evidence import (
    AnyBody,
    Sample,
)
from acceptance.core.limit import Limit
from acceptance.core.plan import Plan
from acceptance.core.record import (
    Body,
    Entry,
    Measured,
    RunStarted,
)


class Line(msgspec.Struct, frozen=True):
    """An entry as a journal's line decodes it."""

    seq: int
    body: AnyBody


def there_and_back(entry: Entry) -> Entry:
    line = Line(entry.seq, entry.body)
    back = msgspec.json.decode(
        msgspec.json.encode(line, enc_hook=parts.encode), type=Line, dec_hook=parts.decode
    )
    return replace(entry, body=back.body)


@settings(max_examples=examples(100))
@given(records)
def test_any_record_comes_back_and_no_number_is_invented(body: Body) -> None:
    (entry,) = entries([body])
    back = there_and_back(entry)
    if isinstance(body, Measured) and body.value is not None and body.value - body.value != 0:
        assert isinstance(back.body, Measured)
        assert (
            back.body.value is None
        )  # JSON has no NaN and no infinity: absent, never another number
    else:
        assert back == entry


@settings(max_examples=examples(50))
@given(plans())
def test_any_plan_comes_back_with_its_limits_and_waivers(made: Plan) -> None:
    (entry,) = entries([RunStarted("run-1", made, {"host": "box"}, "machine-1")])
    assert there_and_back(entry) == entry


def test_a_sample_without_a_span_is_of_one_moment() -> None:
    (entry,) = entries([Sample({"power_w": 612.5})])
    back = msgspec.json.decode(
        msgspec.json.encode(entry, enc_hook=parts.encode).replace(b'"span_s":0.0,', b""),
        type=Line,
        dec_hook=parts.decode,
    )
    assert isinstance(back.body, Sample)
    assert back.body.span_s == 0.0


def test_a_limit_from_a_journal_is_checked_like_any_other() -> None:
    text = msgspec.json.encode(due(limit=Limit("W", "b", low=1.0)), enc_hook=parts.encode).replace(
        b'"low":1.0', b'"low":null'
    )
    with pytest.raises(msgspec.ValidationError, match="needs low, high, or both"):
        msgspec.json.decode(text, type=type(due()), dec_hook=parts.decode)
