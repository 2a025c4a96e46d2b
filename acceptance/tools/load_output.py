"""The command lines of our own loads, and the check of their output, for the suites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from acceptance.core.component import Component
from acceptance.core.message import Listed, Message, Text, Value, Values
from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.loads import protocol
from acceptance.loads.miscompare import CollectiveArm, WrongResult
from acceptance.loads.names import (
    BURN_DIGESTS,
    BURN_LAPS,
    BURN_OF_GPU,
    BURN_OF_PEER,
    BURN_READINGS,
    COLLECTIVE_ARMS,
    COLLECTIVE_COLUMNS,
    COLLECTIVE_OF_GROUP,
    COLLECTIVE_OF_PATH,
    COLLECTIVE_OF_RANK,
    COLLECTIVES,
    DIGESTS,
    LAP_ROWS,
    LAPS,
    NCCL_LOG,
    OWN,
    of_arm,
)
from acceptance.loads.protocol import LoadOutput, LoadTable, ProtocolError, Waits, parse, salvage
from acceptance.process.command import ProgramResult
from acceptance.tools import cuda_error
from acceptance.wording.errors import WordedError

WORKED = 0.95  # least share of the requested time that the turns take together
LEAST_LAPS = 2  # rates and digests are compared with those of an earlier lap

ReadingKey = tuple[str, Component]  # a reading's name and component
ProductKey = tuple[str, str]  # a product's format and shape
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
    due: dict[ReadingKey, str] = {(name, OWN): unit for name, unit in BURN_OF_GPU.items()}
    for peer in range(1, peers + 1):
        due |= {(name, Pair(OWN, Gpu(peer))): unit for name, unit in BURN_OF_PEER.items()}
    offered, lacked = [], set[ReadingKey]()
    for dtype in dtypes:
        own: dict[ReadingKey, str] = {
            (name.format(dtype), OWN): unit for name, unit in BURN_READINGS.items()
        }
        if own.keys() <= absent:
            lacked |= own.keys()
        else:
            offered.append(dtype)
            due |= own
    if not offered:
        raise failed(Message("load_without_format"), output)
    exactly(output, due, lacked)
    laps = output.parameters.get("laps")
    if type(laps) is not int or laps < LEAST_LAPS:
        values: Values = {"laps": repr(laps), "least": LEAST_LAPS}
        raise failed(Message("load_laps", values), output)
    if not isinstance(output.parameters.get("library"), str) or not output.parameters["library"]:
        raise failed(Message("load_library_untold"), output)
    _of_each(table_of(output, BURN_LAPS, LAPS), offered, output)
    _in_turn(table_of(output, BURN_LAPS, LAPS), output)
    _require_whole(table_of(output, BURN_LAPS, LAPS), offered, seconds, output)
    _of_each(table_of(output, BURN_DIGESTS, DIGESTS), offered, output)
    digests(output)
    _require_counts(output)
    return output


def digests(output: LoadOutput) -> dict[ProductKey, ProductKey]:
    """Digests of a burn's products, (inputs, result), by format and shape.

    Raises LoadFailed for a missing table, an invalid digest, and a repeated product.
    """
    found: dict[ProductKey, ProductKey] = {}
    for row in table_of(output, BURN_DIGESTS, DIGESTS).rows:
        dtype, shape, inputs, result = (str(cell) for cell in row)
        if not (_DIGEST.fullmatch(inputs) and _DIGEST.fullmatch(result)) or (dtype, shape) in found:
            values = {"format": dtype, "shape": shape, "inputs": inputs, "result": result}
            raise failed(Message("load_digest", values), output)
        found[dtype, shape] = inputs, result
    return found


def collective_argv(
    python: str,
    *,
    ranks: int,
    seconds: float,
    arms: Sequence[CollectiveArm] = COLLECTIVE_ARMS,
    inject: str | None = None,
) -> tuple[str, ...]:
    """The command line of the load of collectives; `seconds` is the time of each arm."""
    argv = [python, "-m", "acceptance.loads.collective.load", "--backend", "nccl"]
    argv += ["--ranks", str(ranks), "--seconds", f"{float(seconds)}"]
    argv += [word for arm in arms if arms != COLLECTIVE_ARMS for word in ("--arm", arm)]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_collective(
    completed: ProgramResult,
    *,
    uuids: Sequence[str],
    seconds: float | None,
    arms: Sequence[CollectiveArm] = COLLECTIVE_ARMS,
) -> LoadOutput:
    """The output of the load of collectives on these GPUs, if it ran completely and as requested.

    `seconds` is not compared where it is None. It ends when it has measured all, so no time is due.

    Raises LoadFailed as `read` does. It also raises LoadFailed for other GPUs than these, a missing
    or unknown reading, another unit, a rate that is not in its table, a rank without NCCL's log,
    and wrong results that were reported but not counted.
    """
    ranks = len(uuids)
    asked: dict[str, Any] = {"backend": "nccl", "ranks": ranks, "arms": list(arms)}
    asked |= {} if seconds is None else {"seconds": seconds}
    output = read(completed, "collective", asked, least_s=0.0)
    told = output.parameters.get("uuids")
    if not isinstance(told, list) or len(told) != ranks or not all(map(same_gpu, told, uuids)):
        values = {"name": "uuids", "told": repr(told), "asked": repr(list(uuids))}
        raise failed(Message("load_parameter", values), output)
    due: dict[ReadingKey, str] = {}
    for arm in arms:
        group = {(of_arm(name, arm), GPUS): unit for name, unit in COLLECTIVE_OF_GROUP.items()}
        due |= group
        for first in range(ranks):
            for name, unit in COLLECTIVE_OF_RANK.items():
                due[of_arm(name, arm), Gpu(first)] = unit
            for second in set(range(ranks)) - {first} if arm != "multicast" else ():
                for name, unit in COLLECTIVE_OF_PATH.items():
                    due[of_arm(name, arm), Pair(Gpu(first), Gpu(second))] = unit
    exactly(output, due, set())
    _require_rates(table_of(output, COLLECTIVES, COLLECTIVE_COLUMNS), arms, output)
    logs = {(one.name, one.component) for one in output.logs}
    for arm in arms:
        for rank in map(Gpu, range(ranks)):
            if (of_arm(NCCL_LOG, arm), rank) not in logs:
                raise failed(Message("load_without_log", {"component": str(rank)}), output)
    counted = any(
        one.value
        for one in output.readings
        if "_miscompares" in one.name or "_disagreements" in one.name
    )
    if output.miscompares and not counted:
        raise failed(Message("load_uncounted"), output)
    return output


def exactly(output: LoadOutput, due: Mapping[ReadingKey, str], lacked: set[ReadingKey]) -> None:
    """Raise LoadFailed unless the load measured exactly what is due.

    Each reading must have its unit and must not be negative.
    """
    readings = {(one.name, one.component): one for one in output.readings}
    absent = {(one.name, one.component) for one in output.absences}
    if missing := [
        Message("measurement_of", {"name": name, "component": str(where)})
        for name, where in due
        if (name, where) not in readings
    ]:
        raise failed(Message("load_unmeasured", {"names": Listed(tuple(missing))}), output)
    if strangers := sorted((readings.keys() | absent) - due.keys() - lacked):
        raise failed(_stray([name for name, _ in strangers]), output)
    for key, unit in due.items():
        if readings[key].unit != unit or readings[key].value < 0:
            values = {"value": f"{readings[key].value:g}", "unit": readings[key].unit, "due": unit}
            raise failed(Message("load_unit", {"name": key[0], **values}), output)


def table_of(output: LoadOutput, name: str, columns: tuple[str, ...]) -> LoadTable:
    """The table of this name. Raises LoadFailed where there is none with these columns."""
    found = next((one for one in output.tables if one.name == name), None)
    if found is None or found.columns != columns:
        why = (
            Message("load_without_table", {"table": name})
            if found is None
            else Message("load_columns", {"columns": ", ".join(found.columns), "table": name})
        )
        raise failed(why, output)
    return found


def _require_rates(table: LoadTable, arms: Sequence[CollectiveArm], output: LoadOutput) -> None:
    """Raise LoadFailed unless each rate of collectives stands in its arm's rows of the table."""
    told = {
        (of_arm(f"collective_{operation}", arm), component, rate)
        for arm in arms
        for of_row, operation, component, dtype, *_, rate in table.rows
        if (of_row, dtype) == (arm, "f32")
    }
    for one in output.readings:
        component = str(one.component)
        if one.unit == "GB/s" and (one.name, component, round(one.value, 3)) not in told:
            values: Values = {"name": one.name, "component": component, "table": table.name}
            raise failed(Message("load_rate_untold", values), output)


def _of_each(table: LoadTable, offered: Sequence[str], output: LoadOutput) -> None:
    """Raise LoadFailed unless the table has rows of exactly the measured formats."""
    rows = {str(row[table.columns.index("format")]) for row in table.rows}
    if rows != set(offered):
        values: Values = {
            "formats": Listed(tuple(offered)),
            "table": table.name,
            "others": Listed(tuple(sorted(rows ^ set(offered)))),
        }
        raise failed(Message("load_table_differs", values), output)


def _in_turn(laps: LoadTable, output: LoadOutput) -> None:
    """Raise LoadFailed unless each turn takes time and begins after the end of the previous one."""
    ended_s = 0.0
    for lap, dtype, *_, from_s, to_s in laps.rows:
        if not (isinstance(from_s, float) and isinstance(to_s, float) and ended_s <= from_s < to_s):
            times = {"start": str(from_s), "end": str(to_s), "before": str(ended_s)}
            values = {"format": str(dtype), "lap": str(lap), **times}
            raise failed(Message("load_turn", values), output)
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
        counts: Values = {"turns": len(turns), "formats": len(offered), "laps": str(rounds)}
        raise failed(Message("load_turns", counts), output)
    worked_s = sum(spent for _, _, _, _, spent, *_ in laps.rows if isinstance(spent, float))
    share = len(turns) / (rounds * len(offered)) if offered else 0.0
    if worked_s < WORKED * seconds * share:
        times = {"worked": f"{worked_s:.1f}", "due": f"{seconds * share:g}"}
        raise failed(Message("load_worked", times), output)


def _require_counts(output: LoadOutput) -> None:
    counts = [one.value for one in output.readings if one.name.endswith("_miscompares")]
    if output.miscompares and not any(counts):
        raise failed(Message("load_uncounted"), output)


def _stray(names: Sequence[str]) -> Message:
    return Message("load_stray", {"names": Listed(tuple(names))})


def _early(completed: ProgramResult, due_s: float) -> Message:
    values = {"ran": f"{completed.seconds:.1f}", "due": f"{due_s:g}"}
    return Message("load_ended_early", values)


def failed(why: Message, output: LoadOutput) -> LoadFailed:
    """The error for an output that proves nothing, with the wrong results in it."""
    return LoadFailed("load_failed", output.miscompares, load=output.load, why=why)


# Group of cores -> its cores -> the logical CPUs of each, from `acceptance.loads.cpu.cores`.
Groups = Mapping[str, Sequence[Sequence[int]]]


class LoadFailed(WordedError):
    """A load did not run completely, so no measurement of it counts.

    The message is one sentence, followed by the load's last lines. `miscompares` holds the wrong
    results reported until then: they remain evidence against the machine.
    """

    def __init__(
        self, code: str, miscompares: tuple[WrongResult, ...], /, **values: Value | None
    ) -> None:
        super().__init__(code, **values)
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
    trouble: Message | None = None
    output: LoadOutput | None = None
    if completed.timed_out or completed.returncode != 0:
        said = None if completed.timed_out else protocol.trouble(completed.stdout)
        trouble = completed.describe() if said is None else Message("load_trouble", {"why": said})
    elif completed.truncated:
        trouble = Message("load_output_lost")
    else:
        try:
            output = parse(completed.stdout)
        except ProtocolError as error:
            trouble = Message("load_output_unread", {"text": error.message})
        else:
            trouble = _other_run(output, load, asked) or _cuda_error(completed)
            if trouble is None and completed.seconds < due_s:
                trouble = _early(completed, due_s)
    if output is None or trouble is not None:
        wrong = salvage(completed.stdout)
        if not completed.stdout.strip() and not completed.stderr.strip():
            raise LoadFailed("load_failed_silently", wrong, load=load, why=trouble)
        last = _last_told(completed)
        raise LoadFailed("load_failed", wrong, load=load, why=trouble, last=last)
    return output


def _last_told(completed: ProgramResult) -> Text | None:
    """The last lines it printed in words: the records of the loads' own format are in its log.

    Without any, the turn that it waited for, where a record says so last.
    """
    lines = completed.stdout.splitlines()
    words = "\n".join(line for line in lines if not line.startswith("{"))
    if told := replace(completed, stdout=words).last_lines():
        return told
    try:
        said = protocol.decode(lines[-1]) if lines else None
    except ProtocolError:
        return None
    return Message("load_waited", {"turn": said.turn}) if isinstance(said, Waits) else None


def _cuda_error(completed: ProgramResult) -> Message | None:
    """A CUDA error on standard error beside a complete output, or None."""
    found = cuda_error.find(completed.stderr.splitlines())
    return None if found is None else Message("load_cuda_error", {"why": found.reason})


def _other_run(output: LoadOutput, load: str, asked: Mapping[str, Any]) -> Message | None:
    """Why this output is not that of the requested run, or None."""
    if output.load != load:
        return Message("load_of_another", {"other": repr(output.load)})
    if output.injected is not None:
        return Message("load_fault_injected", {"fault": str(output.injected)})
    for name, value in asked.items():
        if name == "gpu" and name not in output.parameters:
            continue  # the model; the UUID, which every GPU load reports, is compared anyway
        printed = output.parameters.get(name)
        if not (same_gpu(printed, value) if name == "uuid" else printed == value):
            values = {"name": name, "told": repr(printed), "asked": repr(value)}
            return Message("load_parameter", values)
    return None


def same_gpu(told: object, wanted: object) -> bool:
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


def cpu_argv(
    python: str, load: str, *, seconds: float, groups: Groups, **options: str | float | None
) -> tuple[str, ...]:
    """The command line of a load of `loads/cpu` on these cores; None leaves an option out."""
    module = f"acceptance.loads.cpu.{load.removeprefix('cpu_')}"
    argv = [python, "-m", module, "--seconds", f"{float(seconds)}"]
    argv += ["--cores", cores_argument(groups)]
    for name, value in options.items():
        argv += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return tuple(argv)
