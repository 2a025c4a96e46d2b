"""The command lines of our own loads, and the check of their output, for the suites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.core.dtype import GEMM_READINGS
from acceptance.loads.miscompare import WrongResult
from acceptance.loads.names import (
    BURN_DIGESTS,
    BURN_LAPS,
    BURN_OF_GPU,
    BURN_OF_PEER,
    BURN_READINGS,
    DIGESTS,
    LAP_ROWS,
    LAPS,
    OWN,
    PASSES,
    PATTERNS,
    VRAM_PASSES,
    VRAM_READINGS,
)
from acceptance.loads.protocol import LoadOutput, LoadTable, ProtocolError, parse, salvage
from acceptance.process.command import ProgramResult
from acceptance.tools import cuda_error


def gpu_gemm_argv(
    python: str,
    *,
    dtypes: Sequence[str],
    seconds: float,
    size: int | None = None,
    table: Sequence[int] = (),
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of the GPU's matrix load.

    `dtypes` are short names; `seconds` is the sustained time of each.
    """
    argv = [
        python,
        "-m",
        "acceptance.loads.gemm.load",
        "--dtypes",
        ",".join(dtypes),
        "--seconds",
        f"{float(seconds)}",
    ]
    argv += [] if size is None else ["--size", str(size)]
    argv += ["--table", ",".join(map(str, table))] if table else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_gpu_gemm(
    completed: ProgramResult,
    *,
    dtypes: Sequence[str],
    seconds: float,
    table: Sequence[int] = (),
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """The matrix load's output, if the load ran completely and as requested.

    `also` holds other parameters that it must have had, such as the GPU's `uuid`.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed when a format is neither
    fully measured nor fully reported as absent, when something else was measured, or when the load
    took less time than its formats need.
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
            raise _failed(
                f"neither measured {dtype} whole nor said that the GPU does not have it", output
            )
    strangers = (measured | absent) - {
        name.format(dtype) for dtype in dtypes for name in GEMM_READINGS
    }
    if strangers:
        raise _failed(f"measured what it was not asked for: {', '.join(sorted(strangers))}", output)
    if completed.seconds < offered * seconds:
        due_s = offered * seconds
        raise _failed(
            f"ended after {completed.seconds:.1f} s and was to work for {due_s:g} s", output
        )
    return output


# Share of the requested time: after the first round the load does not start a pattern that would
# end too late, and the longest takes a third of a round.
VRAM_LEAST_SHARE = 0.5
WORKED = 0.95  # least share of the requested time that the turns take together
LEAST_LAPS = 2  # rates and digests are compared with those of an earlier lap

ProductKey = tuple[str, str]  # a reading's name and component, or a product's format and shape
_DIGEST = re.compile(r"[0-9a-f]{16}")


def burn_argv(
    python: str, *, dtypes: Sequence[str], seconds: float, peers: int = 0, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the burn of one GPU.

    `dtypes` are short names; `seconds` is the time of all of them together. `peers` is the number
    of GPUs after its own to which it copies.
    """
    argv = [
        python,
        "-m",
        "acceptance.loads.burn.load",
        "--dtypes",
        ",".join(dtypes),
        "--seconds",
        f"{float(seconds)}",
    ]
    argv += ["--peers", str(peers)] if peers else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_burn(
    completed: ProgramResult,
    *,
    dtypes: Sequence[str],
    seconds: float,
    peers: int = 0,
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """The burn's output, if the load ran completely and as requested.

    `also` holds other parameters that it must have had, such as the GPU's `uuid`.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed when:

    - a format is neither fully measured nor fully reported as absent, or no format is measured;
    - a copy or a peer is missing, or something else or another unit was measured;
    - a table lacks rows of a format;
    - turns are missing, are too short together, or overlap in time;
    - no library is named;
    - wrong results were reported and none counted.
    """
    asked = {"dtypes": list(dtypes), "seconds": seconds, "peers": peers, **(also or {})}
    output = read(completed, "burn", asked)
    absent = {(absence.name, absence.component) for absence in output.absences}
    due = {(name, OWN): unit for name, unit in BURN_OF_GPU.items()}
    for peer in range(1, peers + 1):
        due |= {(name, f"{OWN}->gpu{peer}"): unit for name, unit in BURN_OF_PEER.items()}
    offered, lacked = [], set[ProductKey]()
    for dtype in dtypes:
        own = {(name.format(dtype), OWN): unit for name, unit in BURN_READINGS.items()}
        if own.keys() <= absent:
            lacked |= own.keys()
        else:
            offered.append(dtype)
            due |= own
    if not offered:
        raise _failed("measured no format", output)
    _exactly(output, due, lacked)
    laps = output.parameters.get("laps")
    if type(laps) is not int or laps < LEAST_LAPS:
        raise _failed(f"told of {laps!r} laps, and at least {LEAST_LAPS} are due", output)
    if not isinstance(output.parameters.get("library"), str) or not output.parameters["library"]:
        raise _failed("does not say with which library it ran", output)
    _of_each(_table(output, BURN_LAPS, LAPS), offered, output)
    _in_turn(_table(output, BURN_LAPS, LAPS), output)
    _require_whole(_table(output, BURN_LAPS, LAPS), offered, seconds, output)
    _of_each(_table(output, BURN_DIGESTS, DIGESTS), offered, output)
    digests(output)
    _require_counts(output)
    return output


def digests(output: LoadOutput) -> dict[ProductKey, ProductKey]:
    """Digests of a burn's products, (inputs, result), by format and shape.

    Raises LoadFailed for a missing table, an invalid digest, and a repeated product.
    """
    found: dict[ProductKey, ProductKey] = {}
    for row in _table(output, BURN_DIGESTS, DIGESTS).rows:
        dtype, shape, inputs, result = (str(cell) for cell in row)
        if not (_DIGEST.fullmatch(inputs) and _DIGEST.fullmatch(result)) or (dtype, shape) in found:
            raise _failed(
                f"has no digest of {dtype} {shape} that can be used: {inputs}, {result}", output
            )
        found[dtype, shape] = inputs, result
    return found


def vram_argv(python: str, *, seconds: float, inject: str | None = None) -> tuple[str, ...]:
    """The command line of the memory test of one GPU.

    It makes as many rounds of its patterns as fit into `seconds`, and at least one.
    """
    argv = [python, "-m", "acceptance.loads.vram.load", "--seconds", f"{float(seconds)}"]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_vram(
    completed: ProgramResult, *, seconds: float, also: Mapping[str, Any] | None = None
) -> LoadOutput:
    """The memory test's output, if it ran completely and as requested; `also` as in `read_burn`.

    Raises LoadFailed as `load_output.read` does. It also raises LoadFailed for a missing or unknown
    reading, another unit, a missing pattern, and wrong words that were reported but not counted.
    """
    output = read(
        completed, "vram", {"seconds": seconds, **(also or {})}, least_s=VRAM_LEAST_SHARE * seconds
    )
    _exactly(output, {(name, OWN): unit for name, unit in VRAM_READINGS.items()}, set())
    rows = _table(output, VRAM_PASSES, PASSES).rows
    if missing := [pattern for pattern in PATTERNS if pattern not in {row[0] for row in rows}]:
        raise _failed(f"made no pass of the pattern {', '.join(missing)}", output)
    for pattern, passes, _, wrong in rows:
        if not isinstance(passes, float) or passes < 1:
            raise _failed(f"made no pass of the pattern {pattern}", output)
        if wrong != 0 and not any(
            one.value for one in output.readings if one.name == "vram_miscompares"
        ):
            raise _failed(f"found words of the pattern {pattern} wrong and counted none", output)
    _require_counts(output)
    return output


def _exactly(output: LoadOutput, due: Mapping[ProductKey, str], lacked: set[ProductKey]) -> None:
    """Raise LoadFailed unless the load measured exactly what is due.

    Each reading must have its unit and must not be negative.
    """
    readings = {(one.name, one.component): one for one in output.readings}
    absent = {(one.name, one.component) for one in output.absences}
    if missing := [f"{name} of {where}" for name, where in due if (name, where) not in readings]:
        raise _failed(f"did not measure {', '.join(missing)}", output)
    if strangers := sorted((readings.keys() | absent) - due.keys() - lacked):
        raise _failed(
            f"measured what it was not asked for: {', '.join(name for name, _ in strangers)}",
            output,
        )
    for key, unit in due.items():
        if readings[key].unit != unit or readings[key].value < 0:
            raise _failed(
                (
                    f"measured {key[0]} as {readings[key].value:g} {readings[key].unit}, and "
                    f"{unit} are due"
                ),
                output,
            )


def _table(output: LoadOutput, name: str, columns: tuple[str, ...]) -> LoadTable:
    found = next((one for one in output.tables if one.name == name), None)
    if found is None or found.columns != columns:
        text = (
            "printed no table"
            if found is None
            else f"printed {', '.join(found.columns)} as the table"
        )
        raise _failed(f"{text} {name}", output)
    return found


def _of_each(table: LoadTable, offered: Sequence[str], output: LoadOutput) -> None:
    """Raise LoadFailed unless the table has rows of exactly the measured formats."""
    rows = {str(row[table.columns.index("format")]) for row in table.rows}
    if rows != set(offered):
        text = ", ".join(sorted(rows ^ set(offered)))
        raise _failed(
            f"measured {', '.join(offered)}, and its table {table.name} differs in {text}", output
        )


def _in_turn(laps: LoadTable, output: LoadOutput) -> None:
    """Raise LoadFailed unless each turn takes time and begins after the end of the previous one."""
    ended_s = 0.0
    for lap, dtype, *_, from_s, to_s in laps.rows:
        if not (isinstance(from_s, float) and isinstance(to_s, float) and ended_s <= from_s < to_s):
            raise _failed(
                f"tells of {dtype} in lap {lap} from {from_s} to {to_s} s, after {ended_s} s",
                output,
            )
        ended_s = to_s


def _require_whole(
    laps: LoadTable, offered: Sequence[str], seconds: float, output: LoadOutput
) -> None:
    """Raise LoadFailed unless each format had its turn in each lap and the turns took long enough.

    Of a thinned table, the rows at both ends are checked.
    """
    rounds = int(output.parameters["laps"])
    turns = [(int(lap), str(dtype)) for lap, dtype, *_ in laps.rows if isinstance(lap, float)]
    count, half = rounds * len(offered), LAP_ROWS // 2
    # As ranges, not lists: the load's number of laps may be any number.
    places = [*range(half), *range(count - half, count)] if count > LAP_ROWS else range(count)
    due = [(place // len(offered), offered[place % len(offered)]) for place in places]
    if turns != due:
        raise _failed(
            (
                f"tells of {len(turns)} turns, which are not those of {len(offered)} formats in "
                f"{rounds} laps"
            ),
            output,
        )
    worked_s = sum(spent for _, _, _, _, spent, *_ in laps.rows if isinstance(spent, float))
    share = len(turns) / (rounds * len(offered)) if offered else 0.0
    if worked_s < WORKED * seconds * share:
        raise _failed(
            f"worked for {worked_s:.1f} s of the {seconds * share:g} s that it was to", output
        )


def _require_counts(output: LoadOutput) -> None:
    counts = [one.value for one in output.readings if one.name.endswith("_miscompares")]
    if output.miscompares and not any(counts):
        raise _failed("told of wrong results and counted none", output)


def _failed(trouble: str, output: LoadOutput) -> LoadFailed:
    return LoadFailed(f"the load {output.load} {trouble}", output.miscompares)


# Group of cores -> its cores -> the logical CPUs of each, from `acceptance.loads.cpu.cores`.
Groups = Mapping[str, Sequence[Sequence[int]]]


class LoadFailed(Exception):
    """A load did not run completely, so no measurement of it counts.

    The message is one sentence, followed by the load's last lines. `miscompares` holds the wrong
    results reported until then: they remain evidence against the machine.
    """

    def __init__(self, message: str, miscompares: tuple[WrongResult, ...]) -> None:
        super().__init__(message)
        self.miscompares = miscompares


def read(
    completed: ProgramResult, load: str, asked: Mapping[str, Any], *, least_s: float | None = None
) -> LoadOutput:
    """The output of the load named `load`, if it ran completely and with the parameters `asked`.

    `asked` has at least `seconds`. A `uuid` in it is the GPU on which the load must have run, with
    or without the driver's prefix `GPU-`. The load must have taken `least_s`, by default `seconds`.
    Raises LoadFailed when the load ran out of time, printed too much, ended with another exit code
    than 0 or too early, is another load or had other parameters, had an injected fault, or when its
    output cannot be read up to its end line.
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
            trouble = _other_run(output, load, asked) or _cuda_error(completed)
            if trouble is None and completed.seconds < due_s:
                trouble = f"ended after {completed.seconds:.1f} s and was to work for {due_s:g} s"
    if output is None or trouble is not None:
        last = completed.last_lines()
        message = f"the load {load} {trouble}" + (
            f"; its last lines:\n{last}" if last else "; it printed nothing"
        )
        raise LoadFailed(message, salvage(completed.stdout))
    return output


def _cuda_error(completed: ProgramResult) -> str | None:
    """A CUDA error on standard error beside a complete output, or None."""
    found = cuda_error.find(completed.stderr.splitlines())
    return None if found is None else f"ended with exit code 0, but {found.reason}"


def _other_run(output: LoadOutput, load: str, asked: Mapping[str, Any]) -> str | None:
    """Why this output is not that of the requested run, or None."""
    if output.load != load:
        return f"is not what ran: the output is that of {output.load!r}"
    if output.injected is not None:
        return f"had a fault injected on purpose ({output.injected}): such a run never passes"
    for name, value in asked.items():
        if name == "gpu" and name not in output.parameters:
            continue  # the model; the UUID, which every GPU load reports, is compared anyway
        printed = output.parameters.get(name)
        if not (_same_gpu(printed, value) if name == "uuid" else printed == value):
            return f"ran with {name} = {printed!r}, and {value!r} was asked for"
    return None


def _same_gpu(told: object, wanted: object) -> bool:
    """Whether both name the same GPU: NVML puts `GPU-` before the digits, torch does not.

    An empty name, or a value that is no text, names no GPU.
    """
    if not isinstance(told, str) or not isinstance(wanted, str):
        return False
    one, other = (name.lower().removeprefix("gpu-") for name in (told, wanted))
    return one == other != ""


def cores_argument(groups: Groups) -> str:
    """The cores in the form of a load's `--cores`: `performance=0,1;2,3 efficiency=4;5`."""
    return " ".join(
        f"{name}=" + ";".join(",".join(map(str, core)) for core in cores)
        for name, cores in groups.items()
    )


def cpu_gemm_argv(
    python: str,
    *,
    dtype: str,
    seconds: float,
    groups: Groups,
    size: int | None = None,
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of the CPU matrix load.

    `dtype` is float64 or float32, `seconds` the time under load.
    """
    argv = [
        python,
        "-m",
        "acceptance.loads.cpu.gemm",
        "--dtype",
        dtype,
        "--seconds",
        f"{float(seconds)}",
    ]
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
    """The command line of the memory load.

    `llc_bytes` is the size of all last-level caches of the machine together.
    """
    argv = [python, "-m", "acceptance.loads.cpu.memory_bandwidth", "--seconds", f"{float(seconds)}"]
    argv += ["--cores", cores_argument(groups), "--llc-bytes", str(llc_bytes)]
    argv += [] if megabytes_per_core is None else ["--megabytes-per-core", str(megabytes_per_core)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def gpu_copy_argv(
    python: str, *, seconds: float, mib: int | None = None, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the copy load of one GPU; `seconds` is the copy time of each path.

    Its `gpu0` is the first GPU that it sees.
    """
    argv = [python, "-m", "acceptance.loads.copy.load", "--seconds", f"{float(seconds)}"]
    argv += [] if mib is None else ["--mib", str(mib)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)
