"""The loads of one GPU, as the suites run them: their command lines, and what a finished one is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.command import Completed
from acceptance.loads.protocol import LoadOutput
from acceptance.tools.load_output import LoadFailed, read

GEMM_READINGS = ("gemm_{}_short", "gemm_{}", "gemm_{}_miscompares")


def gpu_gemm_argv(
    python: str,
    *,
    dtypes: Sequence[str],
    seconds: float,
    size: int | None = None,
    table: Sequence[int] = (),
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of the GPU's matrix load; `dtypes` are short names, `seconds` the sustained time of each."""
    argv = [python, "-m", "acceptance.loads.gpu_gemm", "--dtypes", ",".join(dtypes), "--seconds", f"{float(seconds)}"]
    argv += [] if size is None else ["--size", str(size)]
    argv += ["--table", ",".join(map(str, table))] if table else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_gpu_gemm(
    completed: Completed,
    *,
    dtypes: Sequence[str],
    seconds: float,
    table: Sequence[int] = (),
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """What the matrix load printed, if it ran whole and as asked; `also` are parameters that it must have had, such as the GPU's `uuid`.

    Raises LoadFailed as `load_output.read` does, and when a format is neither measured whole nor said to be absent whole, when something
    else was measured, or when it ended sooner than its formats take.
    """
    asked = {"dtypes": list(dtypes), "seconds": seconds, "table": list(table), **(also or {})}
    output = read(completed, "gpu_gemm", asked, least_s=0.0)
    measured = {reading.name for reading in output.readings}
    absent = {absence.name for absence in output.absences}
    offered = 0
    for dtype in dtypes:
        names = {name.format(dtype) for name in GEMM_READINGS}
        if names <= measured:
            offered += 1
        elif not names <= absent:
            raise _failed(f"neither measured {dtype} whole nor said that the GPU does not have it", output)
    strangers = (measured | absent) - {name.format(dtype) for dtype in dtypes for name in GEMM_READINGS}
    if strangers:
        raise _failed(f"measured what it was not asked for: {', '.join(sorted(strangers))}", output)
    if completed.seconds < offered * seconds:
        due_s = offered * seconds
        raise _failed(f"ended after {completed.seconds:.1f} s and was to work for {due_s:g} s", output)
    return output


def _failed(trouble: str, output: LoadOutput) -> LoadFailed:
    return LoadFailed(f"the load {output.load} {trouble}", output.miscompares)
