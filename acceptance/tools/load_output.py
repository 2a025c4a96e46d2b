"""The command lines of our own loads, and the check of their output, for the suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from acceptance.core.component import Component
from acceptance.core.message import Listed, Message, Text, Value
from acceptance.loads import protocol
from acceptance.loads.miscompare import WrongResult
from acceptance.loads.protocol import LoadOutput, LoadTable, ProtocolError, Waits, parse, salvage
from acceptance.process.command import ProgramResult
from acceptance.tools import cuda_error
from acceptance.wording.errors import WordedError

ReadingKey = tuple[str, Component]  # a reading's name and component


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


def _stray(names: Sequence[str]) -> Message:
    return Message("load_stray", {"names": Listed(tuple(names))})


def _early(completed: ProgramResult, due_s: float) -> Message:
    values = {"ran": f"{completed.seconds:.1f}", "due": f"{due_s:g}"}
    return Message("load_ended_early", values)


def failed(why: Message, output: LoadOutput) -> LoadFailed:
    """The error for an output that proves nothing, with the wrong results in it."""
    return LoadFailed("load_failed", output.miscompares, load=output.load, why=why)


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
