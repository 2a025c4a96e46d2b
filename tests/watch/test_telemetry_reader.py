"""The telemetry of the GPUs while it is written: what was sampled next to a moment, and
histories that grow.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from runs import BOOT

from acceptance.core.evidence import Sample
from acceptance.core.parts import Component, Gpu
from acceptance.core.record import Body, Note
from acceptance.diagnosis.signature import GpuHeat
from acceptance.journal.reader import GPU_TELEMETRY
from acceptance.journal.segment import VERSION, JournalError, SegmentHead, SegmentLine, encoded
from acceptance.watch.telemetry_reader import GpuTelemetry


class Segment:
    """A segment that is being written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / GPU_TELEMETRY
        self.number = 0

    def begin(self) -> Segment:
        self.path.write_bytes(
            msgspec.json.encode(SegmentHead(VERSION, GPU_TELEMETRY, BOOT, 1)) + b"\n"
        )
        return self

    def add(self, moment: float, body: Body) -> None:
        with self.path.open("ab") as file:
            file.write(
                encoded(SegmentLine(self.number, moment, "2026-01-01T00:00:00.000Z", body)) + b"\n"
            )
        self.number += 1

    def sample(
        self, moment: float, degrees: float, *, gpu: Component = Gpu(0), span_s: float = 0.0
    ) -> None:
        values = {"temperature_c": degrees, "sm_clock_mhz": 1500.0, "power_w": 1.0}
        bounds = {"temperature_c": degrees - 1}, {"temperature_c": degrees + 1}
        self.add(
            moment, Sample(values, span_s, *(bounds if span_s else (None, None)), component=gpu)
        )


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment(tmp_path)


def test_the_sample_next_to_a_moment(segment: Segment) -> None:
    segment.begin().add(99.0, Note("no sample"))
    for step in range(10):
        segment.sample(100.0 + step, 50.0 + step)
        segment.sample(100.0 + step, 90.0, gpu=Gpu(1))
    heat = GpuTelemetry(segment.path).heat
    assert heat(Gpu(0), 103.4) == GpuHeat(53.0, 1500.0)
    assert heat(Gpu(0), 103.6) == GpuHeat(54.0, 1500.0)
    assert heat(Gpu(1), 103.6) == GpuHeat(90.0, 1500.0)
    assert (heat(Gpu(0), 98.0), heat(Gpu(0), 111.0)) == (
        GpuHeat(50.0, 1500.0),
        GpuHeat(59.0, 1500.0),
    )
    assert heat(Gpu(0), 97.9) is heat(Gpu(0), 111.1) is heat(Gpu(2), 103.0) is None


def test_after_the_first_hour_a_span_tells_of_its_time(segment: Segment) -> None:
    segment.begin().sample(3700.0, 60.0)
    segment.sample(3710.2, 70.0, span_s=10.0)
    segment.sample(3720.4, 80.0, span_s=10.0)
    heat = GpuTelemetry(segment.path).heat
    assert [heat(Gpu(0), moment) for moment in (3700.1, 3702.0, 3710.0, 3711.0, 3720.0)] == [
        GpuHeat(60.0, 1500.0),
        *[GpuHeat(70.0, 1500.0)] * 2,
        *[GpuHeat(80.0, 1500.0)] * 2,
    ]
    # What tells of the last seconds is not written yet: the span before tells of ten.
    assert heat(Gpu(0), 3730.3) == GpuHeat(80.0, 1500.0)
    assert heat(Gpu(0), 3730.5) is None


def test_what_was_not_sampled_is_absent(segment: Segment) -> None:
    segment.begin().add(100.0, Sample({"power_w": 5.0}, component=Gpu(0)))
    assert GpuTelemetry(segment.path).heat(Gpu(0), 100.0) == GpuHeat(None, None)


def test_it_goes_on_where_it_ended(segment: Segment) -> None:
    found = GpuTelemetry(segment.path)
    assert found.heat(Gpu(0), 100.0) is None  # no segment yet
    assert found.histories() == {}
    segment.begin().sample(100.0, 50.0)
    assert found.heat(Gpu(0), 100.0) == GpuHeat(50.0, 1500.0)
    with segment.path.open("ab") as file:
        file.write(b'{"seq":1,"boot')  # the watch is just writing
    assert found.heat(Gpu(0), 101.0) == GpuHeat(50.0, 1500.0)
    whole = segment.path.read_bytes().rpartition(b"\n")[0] + b"\n"
    segment.path.write_bytes(whole)
    segment.sample(101.0, 55.0)
    assert found.heat(Gpu(0), 101.0) == GpuHeat(55.0, 1500.0)
    (history,) = found.histories().values()
    assert [point.values["temperature_c"] for point in history.points] == [50.0, 55.0]
    segment.sample(102.0, 56.0)
    assert len(found.histories()[Gpu(0)].points) == 3
    assert len(history.points) == 2


def test_damage_is_named(segment: Segment) -> None:
    segment.begin().sample(100.0, 50.0)
    segment.number = 5
    segment.sample(101.0, 50.0)
    found = GpuTelemetry(segment.path)
    # What was found wrong is told all the same, with the heat that can be read.
    assert (found.heat(Gpu(0), 100.0), found.heat(Gpu(0), 105.0)) == (GpuHeat(50.0, 1500.0), None)
    for _ in range(2):
        with pytest.raises(JournalError, match=r"line 3: record 5 stands where 1 is due"):
            found.histories()
    segment.begin()
    with segment.path.open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(JournalError, match="line 2: is no record"):
        GpuTelemetry(segment.path).histories()
