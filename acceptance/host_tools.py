"""What runs of stress-ng and stressapptest prove: the same where they run alone, and where they run beside everything else."""

from __future__ import annotations

from acceptance.command import Completed
from acceptance.tools import stress_ng, stressapptest
from acceptance.tools.proof import EARLY, ToolTrouble, proven
from acceptance.tools.reading import ToolOutput

FILLED = 0.99  # stressapptest rounds to its blocks of a MiB


def of_stress_ng(done: Completed, *, seconds: float, threads: int) -> ToolOutput:
    """What a run of stress-ng on so many logical CPUs proves. Raises ToolTrouble, also where it loaded fewer of them."""
    output = proven(stress_ng.TOOL, done, stress_ng.parse, seconds)
    started = {reading.name: reading.values.get("cpu") for reading in output.readings}.get("stress_ng_workers")
    if output.outcome == "pass" and started != threads:
        raise ToolTrouble(f"stress-ng tells of {started} workers, and there are {threads} logical CPUs to load")
    if output.outcome == "pass":
        names, worked_s = output.reading("stress_ng_workers").keys(), output.reading("stress_ng_time")["cpu"]
        if set(names) != {"cpu"}:
            raise ToolTrouble(f"stress-ng tells of the stressors {', '.join(sorted(names))}, and cpu alone was started")
        _require_time("stress-ng", worked_s, done, seconds)
    return output


def of_stressapptest(done: Completed, *, seconds: float, gib: float) -> ToolOutput:
    """What a run of stressapptest over so much RAM proves. Raises ToolTrouble, also where it filled less."""
    output = proven(stressapptest.TOOL, done, stressapptest.parse, seconds)
    if output.outcome == "pass" and output.reading("stressapptest_tested")["memory"] < FILLED * gib:
        filled = output.reading("stressapptest_tested")["memory"]
        raise ToolTrouble(f"stressapptest filled {filled:.2f} GiB and was to fill {gib:.2f} GiB")
    if output.outcome == "pass":
        _require_time("stressapptest", output.reading("stressapptest_time")["memory"], done, seconds)
    return output


def _require_time(tool: str, worked_s: float, done: Completed, seconds: float) -> None:
    """Raise ToolTrouble where the time that the text gives is shorter than what was asked for, or longer than the process lived."""
    if worked_s < EARLY * seconds:
        raise ToolTrouble(f"{tool} says that it worked for {worked_s:.4g} s, and was to work for {seconds:.4g} s")
    if worked_s * EARLY > done.seconds:
        raise ToolTrouble(f"{tool} says that it worked for {worked_s:.4g} s, and ended after {done.seconds:.1f} s")


def memory_errors(output: ToolOutput) -> float:
    """How many errors stressapptest counted; at least 1 where its text says so without a count."""
    counts = ("stressapptest_incidents", "stressapptest_errors")
    counted = sum(reading.values["memory"] for reading in output.readings if reading.name in counts)
    return max(counted, float(output.outcome == "fail"))
