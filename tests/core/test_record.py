"""Every record survives the journal's own format."""

from __future__ import annotations

import msgspec
import pytest
from cases import each
from hypothesis import given, settings
from journals import due, entries, plans, records
from msgspec.structs import replace
from thoroughness import examples

from acceptance.core import parts
from acceptance.core.evidence import (
    AnyBody,
    Observed,
    PartBegan,
    Sample,
    Scratch,
    Sealed,
    SealedFile,
    Table,
    ToolRan,
)
from acceptance.core.limit import Limit
from acceptance.core.parts import Function, Gpu, Part
from acceptance.core.plan import Plan
from acceptance.core.record import (
    Body,
    Entry,
    Event,
    ForeignProcess,
    GpuUser,
    Measured,
    Postponed,
    RunClosed,
    RunStarted,
    Stopped,
    Suspicion,
)

OTHERS: list[Body] = [
    Observed({"cpu": {"model": "x", "cores": 4, "odd": None}, "disks": [1.5, "a"]}),
    ToolRan("cpu.gemm[f64]", ("stress-ng", "--cpu", "0"), -9, 1.5, "logs/a.log"),
    ToolRan("cpu.gemm[f64]", (), 0, 0.0),
    PartBegan("together.burn", Gpu(0), "logs/together.burn-1.log"),
    Scratch(
        path="/data",
        component=Part("disk", "md0"),
        mount="/",
        kind="xfs",
        source="/dev/md0",
        disks=("nvme0n1", "nvme1n1"),
        layers=("raid1",),
        free_bytes=1 << 40,
        write_bytes=8 << 30,
        kept_bytes=1 << 30,
        keep=True,
        sealed_bytes=1 << 30,
    ),
    Sample(
        {"cpu_temperature_c": 55.0}, 10.0, {"cpu_temperature_c": 50.0}, {"cpu_temperature_c": 60.0}
    ),
    Sample({}),
    Sample({"power_w": 612.5}, component=Gpu(0)),
    Event("Xid", "fatal", "t", "m", "a", code="79", component=Gpu(0), boot_s=1.5, hardware=False),
    Event(
        "xid", "fatal", "t", "m", "a", code=79, component=Function("0000:01:00.0"), source="nvml"
    ),
    ForeignProcess(Gpu(0), 125.5, 4242, "python3", 1 << 40),
    ForeignProcess(Gpu(1), 125.5, None, None, None, 130.0),
    GpuUser(Gpu(1), 125.5, 4242, None, own=False, until_s=130.0),
    Stopped("a.one", ended=True, component=Gpu(0)),
    Stopped(session="gpu-load"),
    Event("xid", "warning", "t", "m", "a", code=45, suspicion=Suspicion(Gpu(0), 7, "x", True)),
    Table(
        "a.one",
        Gpu(0),
        "gemm_f64_by_size",
        ("n", "TFLOP/s", "how"),
        ((128.0, 0.25, "a"), (512.0, 21.5, "b")),
    ),
    Postponed(("gpu0: train (process 12) computes on it",), 2, 7),
    RunClosed("a.one", True, {"cpu_temperature_c": 91.0}, "the machine was restarted"),
    RunClosed(None, False, {}, "killed"),
    Sealed("ab", (SealedFile("journal.jsonl", 3, "cd"),)),
    Measured("a.one", "copy", Gpu(0), "GB/s", None, "serial", "the value was nan"),
]


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


@each("body", OTHERS)
def test_records_come_back_as_they_were(body: Body) -> None:
    for entry in entries([body]):
        assert there_and_back(entry) == entry


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


def test_every_kind_of_record_is_among_these() -> None:
    assert set(Body.__subclasses__()) == set(AnyBody.__args__)
    covered = {type(body) for body in OTHERS} | {RunStarted}
    strategy = {kind for kind in AnyBody.__args__ if kind not in covered}
    assert {kind.__name__ for kind in strategy} == {
        "SessionStarted",
        "SessionEnded",
        "CheckStarted",
        "Skipped",
        "Refused",
        "CheckEnded",
        "Note",
        "RunEnded",
    }


def test_a_limit_from_a_journal_is_checked_like_any_other() -> None:
    text = msgspec.json.encode(due(limit=Limit("W", "b", low=1.0)), enc_hook=parts.encode).replace(
        b'"low":1.0', b'"low":null'
    )
    with pytest.raises(msgspec.ValidationError, match="needs low, high, or both"):
        msgspec.json.decode(text, type=type(due()), dec_hook=parts.decode)
