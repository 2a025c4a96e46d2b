"""The contract of a load: what its program is asked, and what its whole output must hold. Pure.

The `contract.py` of a load derives its `Ask` from the one here, and knows everything about the
program that others need; argv, command line, reader and replay follow from it. It imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from acceptance.core.message import Coded, Listed, Message, Values, english
from acceptance.core.parts import Component, Gpu
from acceptance.loads.protocol import LoadOutput, LoadTable

ReadingKey = tuple[str, Component]  # a reading's name, and its component
Units = Mapping[ReadingKey, str]  # what is measured, with its unit

Seconds = Annotated[float, Meta(gt=0, le=30 * 86400)]
OWN = Gpu(0)  # a load's name for its own GPU


class Unproved(Coded):
    """An output is not the whole answer to what was asked, so nothing in it counts."""


@dataclass(frozen=True, slots=True)
class Due:
    """What the whole output of a load holds: no more and no less.

    `absences` are reported as absent; of `choices` each is measured whole, or reported as absent
    whole. `tables` have these columns; `more_tables` may be there. `logs` are by name and
    component.
    """

    readings: Units = field(default_factory=dict)
    absences: frozenset[ReadingKey] = frozenset()
    choices: Sequence[Units] = ()
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    more_tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    logs: frozenset[ReadingKey] = frozenset()

    def measured(self, output: LoadOutput) -> list[Units]:
        """The choices that are not reported as absent."""
        absent = {(one.name, one.component) for one in output.absences}
        return [one for one in self.choices if not one.keys() <= absent]


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="load"):
    """What a program of ours is asked to do; the tag is the name of its load.

    `inject` is a fault on purpose, to prove that it is found; such a run never passes.
    """

    inject: str | None = None

    # Fields that the first line of the output does not repeat as they were asked.
    UNREPEATED: ClassVar[frozenset[str]] = frozenset()
    # Environment variables that would change what is measured: the program removes them.
    CLEARED: ClassVar[frozenset[str]] = frozenset()

    @property
    def load(self) -> str:
        """The name of the load."""
        return str(self.__struct_config__.tag)

    def parameters(self) -> dict[str, Any]:
        """What the first line of the output repeats."""
        fields = msgspec.json.decode(msgspec.json.encode(self))  # lists, as a reader has them
        silent = {"load", *self.UNREPEATED}
        given = {name: value for name, value in fields.items() if name not in silent}
        return {name: value for name, value in given.items() if value is not None}

    def due(self, output: LoadOutput) -> Due:
        """What the output must hold on the hardware that its first line names."""
        return Due()

    def least_s(self, output: LoadOutput) -> float:
        """The least seconds that the program takes for this output."""
        return 0.0

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved where figures of the output contradict each other."""


def require_each_once(name: str, values: Sequence[object]) -> None:
    """Raise ValueError for a value that comes twice."""
    if len(set(values)) != len(values):
        raise ValueError(f"{name} names one of its values twice")


def prove(ask: Ask, output: LoadOutput, about: Mapping[str, Any], ran_s: float) -> None:
    """Raise Unproved unless this is the whole answer to `ask`, after a run of `ran_s` seconds.

    `about` are other parameters that the load must have had: a GPU's `uuid` and `gpu`, its model,
    or the `uuids` of all. That an injected fault was asked for makes no proof of it.
    """
    if output.load != ask.load:
        raise Unproved(
            english("load_of_another", "is not what ran: the output is that of {other}"),
            other=repr(output.load),
        )
    if output.injected is not None:
        raise Unproved(
            english(
                "load_fault_injected",
                "had a fault injected on purpose ({fault}): such a run never passes",
            ),
            fault=str(output.injected),
        )
    for name, value in {**ask.parameters(), **about}.items():
        if name == "gpu" and name not in output.parameters:
            continue  # the model; the UUID, which every GPU load reports, is compared anyway
        printed = output.parameters.get(name)
        if not _same(name, printed, value):
            raise Unproved(
                english("load_parameter", "ran with {name} = {told}, and {asked} was asked for"),
                name=name,
                told=repr(printed),
                asked=repr(value),
            )
    due = ask.due(output)
    _require_readings(output, due)
    _require_tables(output, due)
    _require_logs(output, due)
    counts = [one.value for one in output.readings if one.unit == "count"]
    if output.miscompares and not any(counts):
        raise Unproved(english("load_uncounted", "told of wrong results and counted none"))
    ask.prove(output)
    least_s = ask.least_s(output)
    if ran_s < least_s:
        raise Unproved(
            english("load_ended_early", "ended after {ran} s and was to work for {due} s"),
            ran=f"{ran_s:.1f}",
            due=f"{least_s:g}",
        )


def _same(name: str, printed: object, value: object) -> bool:
    if name == "uuid":
        return same_gpu(printed, value)
    return (
        len(printed) == len(value) and all(map(same_gpu, printed, value))
        if name == "uuids" and isinstance(printed, list) and isinstance(value, Sequence)
        else printed == value
    )


def same_gpu(one: object, other: object) -> bool:
    """Whether both name the same GPU: NVML puts `GPU-` before the digits, torch does not.

    An empty name, or a value that is no text, names no GPU.
    """
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    first, second = (name.lower().removeprefix("gpu-") for name in (one, other))
    return first == second != ""


def _require_readings(output: LoadOutput, due: Due) -> None:
    """Raise Unproved unless exactly the due readings are there, in their units and not below 0."""
    readings = {(one.name, one.component): one for one in output.readings}
    absent = {(one.name, one.component) for one in output.absences}
    if silent := sorted(due.absences - absent):
        names = Listed(tuple(name for name, _ in silent))
        raise Unproved(
            english(
                "load_absence_untold",
                "did not report as absent exactly what this GPU does not measure: {names}",
            ),
            names=names,
        )
    measured = due.measured(output)
    lacked = {key for one in due.choices if one not in measured for key in one} | due.absences
    units = {key: unit for one in (due.readings, *measured) for key, unit in one.items()}
    missing = [
        Message(
            english("measurement_of", "{name} of {component}"),
            {"name": name, "component": str(component)},
        )
        for name, component in units
        if (name, component) not in readings
    ]
    if missing:
        raise Unproved(
            english("load_unmeasured", "did not measure {names}"), names=Listed(tuple(missing))
        )
    if unasked := sorted((readings.keys() | absent) - units.keys() - lacked):
        raise Unproved(
            english("load_stray", "measured what it was not asked for: {names}"),
            names=Listed(tuple(name for name, _ in unasked)),
        )
    for key, unit in units.items():
        one = readings[key]
        if one.unit != unit or one.value < 0:
            values: Values = {"value": f"{one.value:g}", "unit": one.unit, "due": unit}
            raise Unproved(
                english("load_unit", "measured {name} as {value} {unit}, and {due} are due"),
                name=one.name,
                **values,
            )


def _require_tables(output: LoadOutput, due: Due) -> None:
    """Raise Unproved unless exactly the due tables are there, with their columns."""
    for name in due.tables:
        table(output, name)
    known = {**due.more_tables, **due.tables}
    for one in output.tables:
        if one.name not in known:
            raise Unproved("load_stray", names=one.name)
        if one.columns != known[one.name]:
            raise Unproved(
                english("load_columns", "printed {columns} as the table {table}"),
                columns=", ".join(one.columns),
                table=one.name,
            )


def _require_logs(output: LoadOutput, due: Due) -> None:
    """Raise Unproved unless exactly the due logs are there."""
    logs = {(one.name, one.component) for one in output.logs}
    if missing := sorted(due.logs - logs):
        raise Unproved(
            english("load_without_log", "NCCL left no log of {component}"),
            component=str(missing[0][1]),
        )
    if unasked := sorted(logs - due.logs):
        raise Unproved("load_stray", names=Listed(tuple(name for name, _ in unasked)))


def table(output: LoadOutput, name: str) -> LoadTable:
    """The table of this name. Raises Unproved where there is none."""
    found = next((one for one in output.tables if one.name == name), None)
    if found is None:
        raise Unproved(english("load_without_table", "printed no table {table}"), table=name)
    return found
