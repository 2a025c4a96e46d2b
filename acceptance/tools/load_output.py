"""Our own loads, as the suites run them: their command lines, and what a finished one is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.command import Completed
from acceptance.loads.protocol import Absence as Absence
from acceptance.loads.protocol import LoadOutput as LoadOutput
from acceptance.loads.protocol import LoadTable as LoadTable
from acceptance.loads.protocol import ProtocolError, parse, salvage
from acceptance.tools import cuda_error

# Group of cores -> its cores -> the logical CPUs of each, as `acceptance.loads.cores` reads them.
Groups = Mapping[str, Sequence[Sequence[int]]]


class LoadFailed(Exception):
    """A load did not run whole, so nothing it measured counts; the message is one sentence, then its last lines.

    `miscompares` holds the wrong results it had reported until then: they remain evidence against the machine.
    """

    def __init__(self, message: str, miscompares: tuple[dict[str, Any], ...]) -> None:
        super().__init__(message)
        self.miscompares = miscompares


def read(completed: Completed, load: str, asked: Mapping[str, Any], *, least_s: float | None = None) -> LoadOutput:
    """What the load named `load` printed, if it ran whole and with the parameters that were `asked`, `seconds` among them.

    A `uuid` among them names the GPU that it must have run on, with or without the driver's `GPU-` before it. It must have taken
    `least_s`, which is its `seconds` where nothing else is said. Raises LoadFailed when it ran out of time, printed more than is kept,
    ended with anything but 0 or before its time, is another load or ran with other parameters, had a fault injected, or its output
    cannot be read to its end line.
    """
    due_s = asked["seconds"] if least_s is None else least_s
    trouble: str | None = None
    output: LoadOutput | None = None
    if completed.timed_out or completed.returncode != 0:
        trouble = completed.describe()
    elif completed.truncated:
        trouble = "printed more than is kept, or its output was not read to the end"
    else:
        try:
            output = parse(completed.stdout)
        except ProtocolError as error:
            trouble = f"ended, but {error}"
        else:
            trouble = _other(output, load, asked) or _cuda_error(completed)
            if trouble is None and completed.seconds < due_s:
                trouble = f"ended after {completed.seconds:.1f} s and was to work for {due_s:g} s"
    if output is None or trouble is not None:
        last = completed.last_lines()
        message = f"the load {load} {trouble}" + (f"; its last lines:\n{last}" if last else "; it printed nothing")
        raise LoadFailed(message, salvage(completed.stdout))
    return output


def _cuda_error(completed: Completed) -> str | None:
    """The CUDA error that was printed beside a whole output."""
    found = cuda_error.find(completed.stderr.splitlines())
    return None if found is None else f"ended with exit code 0, but {found.reason}"


def _other(output: LoadOutput, load: str, asked: Mapping[str, Any]) -> str | None:
    """Why this output is not that of the run that was asked for."""
    if output.load != load:
        return f"is not what ran: the output is that of {output.load!r}"
    if output.injected is not None:
        return f"had a fault injected on purpose ({output.injected}): such a run never passes"
    for name, value in asked.items():
        if name == "gpu" and name not in output.parameters:
            continue  # the model; the UUID, which every load of a GPU says, is compared in any case
        told = output.parameters.get(name)
        if not (_same_gpu(told, value) if name == "uuid" else told == value):
            return f"ran with {name} = {told!r}, and {value!r} was asked for"
    return None


def _same_gpu(told: object, wanted: object) -> bool:
    """Whether both name one GPU: NVML puts `GPU-` before the digits, torch does not. What is no name names none."""
    if not isinstance(told, str) or not isinstance(wanted, str):
        return False
    one, other = (name.lower().removeprefix("gpu-") for name in (told, wanted))
    return one == other != ""


def cores_argument(groups: Groups) -> str:
    """The cores as a load's `--cores` reads them: `performance=0,1;2,3 efficiency=4;5`."""
    return " ".join(f"{name}=" + ";".join(",".join(map(str, core)) for core in cores) for name, cores in groups.items())


def cpu_gemm_argv(
    python: str, *, dtype: str, seconds: float, groups: Groups, size: int | None = None, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the CPU matrix load; dtype is float64 or float32, seconds the time under load."""
    argv = [python, "-m", "acceptance.loads.cpu_gemm", "--dtype", dtype, "--seconds", f"{float(seconds)}"]
    argv += ["--cores", cores_argument(groups)]
    argv += [] if size is None else ["--size", str(size)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def memory_bandwidth_argv(
    python: str,
    *,
    seconds: float,
    groups: Groups,
    llc_bytes: int,
    megabytes_per_core: int | None = None,
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of the memory load; llc_bytes is all last-level caches of the machine together."""
    argv = [python, "-m", "acceptance.loads.memory_bandwidth", "--seconds", f"{float(seconds)}"]
    argv += ["--cores", cores_argument(groups), "--llc-bytes", str(llc_bytes)]
    argv += [] if megabytes_per_core is None else ["--megabytes-per-core", str(megabytes_per_core)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def gpu_copy_argv(python: str, *, seconds: float, mib: int | None = None, inject: str | None = None) -> tuple[str, ...]:
    """The command line of the copy load of one GPU; seconds is how long each path is copied. Its `gpu0` is the first GPU that it sees."""
    argv = [python, "-m", "acceptance.loads.gpu_copy", "--seconds", f"{float(seconds)}"]
    argv += [] if mib is None else ["--mib", str(mib)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)
