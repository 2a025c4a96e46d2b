"""Reads the samples of a telemetry segment for a chart.

Only a few readings of each sample are decoded, and samples are streamed: a segment of days is long.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.message import english
from acceptance.core.parts import Component
from acceptance.journal.segment import UNDECODABLE, JournalError, unreadable_segment


class GpuReadings(msgspec.Struct, frozen=True, gc=False):
    """Readings of a sample for a chart: degrees Celsius, watts, megahertz, and throttle reasons.

    A reason is 0 or 1 and says why the clock is below its maximum. None: not in the sample.
    """

    temperature_c: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    reason_hw_slowdown: float | None = None
    reason_sw_thermal: float | None = None
    reason_hw_thermal: float | None = None
    reason_hw_power_brake: float | None = None
    reason_sw_power_cap: float | None = None


class GpuSample(msgspec.Struct, frozen=True, gc=False, tag_field="record", tag="sample"):
    """A `Sample` with only these readings."""

    values: GpuReadings
    span_s: float = 0.0
    low: GpuReadings | None = None
    high: GpuReadings | None = None
    component: Component | None = None


class TimedSample(msgspec.Struct, frozen=True, gc=False):
    """A line of the segment: a sample and its time in seconds since boot."""

    seq: int
    boot_s: float
    body: GpuSample


def read_samples(path: Path) -> Iterator[TimedSample]:
    """Every sample of a segment, in order.

    A torn last line is left out. A missing segment has no samples.

    Raises JournalError when the segment cannot be read, a complete line is no sample, or a record
    is out of sequence.
    """
    decode = msgspec.json.Decoder(TimedSample, dec_hook=parts.decode).decode
    due = -1  # line 1 is the head
    try:
        with regular_file.open_read(path, regular_file.TELEMETRY_BYTES) as file:
            for text in regular_file.lines(file, path):
                if due >= 0 and text.endswith(b"\n"):
                    look = decode(text)
                    if look.seq != due:
                        raise JournalError(
                            english(
                                "samples_out_of_order",
                                "{path}: record {found} stands where {due} is due: lines were "
                                "lost or moved",
                            ),
                            path=str(path),
                            found=look.seq,
                            due=due,
                        )
                    yield look
                due += 1
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable_segment(path, error) from error
    except UNDECODABLE as error:
        raise JournalError(
            english("no_sample", "{path}, line {line}: is no sample ({why})"),
            path=str(path),
            line=due + 2,
            why=str(error),
        ) from error
