"""The processors under load: every result verified, every core compared with its siblings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from acceptance.core.dtype import CPU_DTYPES, DtypeName
from acceptance.core.message import Message, Values, english
from acceptance.core.parts import CPU
from acceptance.diagnosis.series import Series
from acceptance.loads.cpu.contract import GEMM, Gemm, Groups
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.machine_file import Machine
from acceptance.machine.thresholds import thresholds
from acceptance.process.command import ProgramResult
from acceptance.session.check import Check
from acceptance.session.loads import Loads, Part, Place
from acceptance.session.programs import Programs
from acceptance.session.tools import Outputs, Tools
from acceptance.suites.fixtures.host_tools import stress_ng_argv
from acceptance.tools import cpuburn, stress_ng
from acceptance.tools.proof import ToolError
from acceptance.wording.errors import WordedError

NamedSpans = Sequence[tuple[str, float, float]]


@pytest.mark.session("host-load")
@pytest.mark.costs(0.1, load="stress_ng", slack=2.5)
@pytest.mark.measures("stress_ng_failures")
def test_stress_ng(
    tools: Tools, load_s: Mapping[str, float], inventory: Inventory, check: Check
) -> None:
    """Every logical CPU under all of stress-ng's CPU methods, each result verified by stress-ng
    itself.

    Measured: whether any method reported a wrong result, beside the GPUs' own loads, whose
    processes go first. Not measured: speed; stress-ng's bogo operations are no basis for a
    judgement.
    """
    threads, seconds = known(inventory.cpu.threads), round(load_s["stress_ng"])
    argv = stress_ng_argv(tools.folder, threads=threads, seconds=seconds)
    runs = tools.run(stress_ng.TOOL, argv, on=[Place(CPU)])
    check.faults("stress_ng_failures", runs)
    runs.raise_failed()


@pytest.mark.session("load")
@pytest.mark.costs(0.9, load="cpu_gemm", slack=3.0)
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.measures(*names))
        for dtype, name in CPU_DTYPES.items()
        for *names, _products in (GEMM[name],)
    ],
)
def test_gemm(
    dtype: DtypeName, loads: Loads, groups: Groups, load_s: Mapping[str, float], check: Check
) -> None:
    """Matrix products on every physical core at once, one pinned process a core, every result
    compared bit for bit.

    Measured: wrong results, the rate of the whole machine and of each core, and each core's rate
    over the median of the others of its kind. Not measured: the second hardware thread of a core,
    which stress-ng loads.
    """
    results = loads.run(
        lambda _: Gemm(dtype=CPU_DTYPES[dtype], seconds=load_s["cpu_gemm"], cores=groups),
        on=(Place(CPU),),
    )
    check.all(results)


@pytest.mark.session("host-load")
@pytest.mark.costs(1.0, load="cpuburn")
@pytest.mark.measures("cpuburn_failures")
def test_cpuburn(
    programs: Programs,
    load_s: Mapping[str, float],
    machine: Machine,
    inventory: Inventory,
    check: Check,
) -> None:
    """The burn program that the machine file names (`cpu.cpuburn`), on every CPU.

    Measured: whether it found an error or died of a fault signal, beside the GPUs' own loads, whose
    processes go first. Only the classic programs (burnP6 and its kin) check their results.
    """
    assert machine.cpu.cpuburn is not None
    binary = programs.find(machine.cpu.cpuburn)
    copies = known(inventory.cpu.threads) if cpuburn.is_classic(binary) else 1
    part = Part(CPU, cpuburn.argv(binary), seconds=load_s["cpuburn"])
    runs = cpuburn_output(binary, programs.run_stage([part] * copies))
    check.faults("cpuburn_failures", runs)
    runs.raise_failed()


def cpuburn_output(binary: str, done: Sequence[ProgramResult]) -> Outputs:
    """What the copies of a burn program say together: the worst of them."""
    order = ("fail", "error", "pass")
    judged = [
        cpuburn.judge(
            binary, returncode=one.returncode, timed_out=one.timed_out, seconds=one.seconds
        )
        for one in done
    ]
    worst = min(judged, key=lambda output: order.index(output.outcome))
    if worst.outcome == "error":
        error = ToolError("tool_says", tool=worst.tool, why=worst.reason)
        return Outputs(failed={CPU: error})
    return Outputs({CPU: worst})


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures("cpu_temperature", "cpu_throttle_events")
def test_cooling(telemetry: Mapping[str, Series], load_spans: NamedSpans, check: Check) -> None:
    """The processors' highest temperature of the run, and whether any of them throttled for heat.

    Measured: the hottest sensor at one sample a second, and the growth of the processors' own
    throttle counters over the whole run. A temperature that no sensor can mean is left out; a
    sensor that failed in more than one sample in ten of a check was not measured.
    """
    low, _ = thresholds().range.cpu_c.between
    dead = None
    if "cpu_temperature_c" in telemetry:
        warm = telemetry["cpu_temperature_c"]
        alive = _possible(warm)
        dead = None if alive.points else warm.maximum()
        telemetry = {**telemetry, warm.name: alive if alive.points else warm}
        if dead is None or dead < low:
            check("cpu_temperature", {CPU: telemetry[warm.name].maximum()})
    if "cpu_throttle_count" in telemetry:
        check("cpu_throttle_events", {CPU: telemetry["cpu_throttle_count"].growth()})
    # After the readings: a temperature above the limit counts even from few samples.
    gaps = [
        gap
        for name in ("cpu_temperature_c", "cpu_throttle_count")
        if (gap := coverage_gap(name, telemetry) or patches(name, telemetry, load_spans))
    ]
    if dead is not None:  # no processor under load is so cold, and none runs so hot
        cold = dead < low
        highest = dead if cold else telemetry["cpu_temperature_c"].minimum()
        code = (
            english(
                "sensor_cold",
                "cpu_temperature_c was never above {highest} degC, and no processor at work is so "
                "cold",
            )
            if cold
            else english(
                "sensor_hot",
                "cpu_temperature_c was never below {highest} degC, and no processor runs so hot",
            )
        )
        gaps.append(Message(code, {"highest": f"{highest:g}"}))
    if gaps:
        raise WordedError(
            english(
                "sensor_unread",
                "{gaps}: see whether the sensor can be read under load, and run again",
            ),
            gaps=tuple(gaps),
        )


def _possible(warm: Series) -> Series:
    """The moments of a temperature that a processor can have.

    Of the least, the mean and the highest of some seconds all must be possible.
    """
    low, high = thresholds().range.cpu_c.between
    impossible = {moment for moment, value in warm.points if not low <= value <= high}
    return replace(warm, points=tuple(one for one in warm.points if one[0] not in impossible))


def patches(name: str, telemetry: Mapping[str, Series], checks: NamedSpans) -> Message | None:
    """In which check too many samples lack a reading; None where none does.

    A single sample is excused, however short the check.
    """
    if name not in telemetry:
        return None
    having = {moment for moment, _ in telemetry[name].points}
    every = having | {moment for series in telemetry.values() for moment, _ in series.points}
    for check, begin, end in checks:
        due = [moment for moment in every if begin <= moment <= end]
        missing = sum(moment not in having for moment in due)
        if missing > max(1.0, thresholds().sensor.missing * len(due)):
            values: Values = {
                "reading": name,
                "check": check,
                "share": f"{100 * missing / len(due):.0f}",
                "most": f"{100 * thresholds().sensor.missing:g}",
            }
            return Message(
                english(
                    "sensor_patches",
                    "{reading} was not measured in {check}: {share} % of its samples are missing "
                    "or out of range, more than {most} %",
                ),
                values,
            )
    return None


def coverage_gap(name: str, telemetry: Mapping[str, Series]) -> Message | None:
    """How a reading fails to cover the run; None where it covers it.

    The run lasts from the first to the last sample of any reading. A reading owes half of the
    samples that the watch keeps: one a second for the first hour, then one of each 10 s
    (`observe.sensors.SampleThinner`).
    """
    if name not in telemetry:
        return None
    moments = {moment for moment, _ in telemetry[name].points}
    every = [moment for series in telemetry.values() for moment, _ in series.points]
    began, ended = min(every), max(every)
    span = ended - began
    due = (min(span, 3600.0) + max(span - 3600.0, 0.0) / 10.0) / 2
    if len(moments) < due:
        values: Values = {"reading": name, "count": len(moments), "seconds": f"{span:.0f}"}
        return Message(
            english("few_samples", "{reading} has {count} samples of a run of {seconds} s"), values
        )
    if ended - max(moments) > thresholds().host_sensor.late_s:
        since = f"{ended - max(moments):.0f}"
        return Message(
            english(
                "last_read_before_end",
                "{reading} was last read {seconds} s before the end of the run",
            ),
            {"reading": name, "seconds": since},
        )
    return None
