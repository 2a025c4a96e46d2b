"""Text that means harm, and the means to put it into every place of a run that holds text from
outside.

The places are found from the types of the records, so that a field that is added tomorrow is
attacked tomorrow.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import samples
from hypothesis import strategies as st
from msgspec import inspect

from acceptance.core import parts
from acceptance.core.evidence import (
    AnyBody,
    Observed,
    PartBegan,
    Refused,
    Sample,
    Scratch,
    Sealed,
    SealedFile,
    Table,
)
from acceptance.core.finding import Plausible, Siblings
from acceptance.core.limit import Limit
from acceptance.core.machine_facts import (
    ChangeBook,
    ChangeRule,
    CountedParts,
    KnownChange,
    MachineFacts,
)
from acceptance.core.message import Message, Unmeasured
from acceptance.core.parts import CPU, ITSELF, MEMORY, Gpu, Part, parse
from acceptance.core.past import CounterReference, Past
from acceptance.core.plan import (
    FamilyFile,
    LimitSet,
    LooserLimit,
    PlannedCheck,
    Reduction,
    SiteChecks,
    SiteSheet,
)
from acceptance.core.record import (
    Body,
    CheckEnded,
    Declared,
    Event,
    ForeignProcess,
    GpuUser,
    Measured,
    Note,
    OwnLimit,
    Postponed,
    RunClosed,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
    Stopped,
    Suspicion,
)

# What each is to do to whom: a terminal (colour, title, clipboard, link, cursor, 8-bit controls), a
# reader's eyes (direction, invisible letters), XML, HTML, a template, rich's markup, a format
# string, the line structure of a journal, CI's attachments.
FRAGMENTS = (
    "\x1b[31m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1bP1$r0m\x1b\\",
    "\x1b_apc\x1b\\",
    "\x1bc",
    "\x1b(0",
    "\x1b[",
    "\x1b",
    "\x9b31m",
    "\x9d0;title\x9c",
    "\x90dcs\x9c",
    "\x85",
    "\x00",
    "\x07\x08\x0b\x0c\x0e\x1f\x7f",
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\u2028",
    "\u2029",
    "\u202eexe",
    "\u2066\u2069",
    "\u200e\u200f\u061c",
    "\u200b\u2060\ufeff",
    "\u00ad",
    "\U000e0041\U000e007f",
    "\ufff9",
    "\ud800",
    "\udcff",
    "\udfff\ud83d",
    "\ufffe\uffff",
    "\ufdd0",
    "\U0001fffe",
    "\U0001d558\U0001f525",
    "e\u0301\u0337",
    "\uff21",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?xml ?>",
    "&amp;&#0;&#x1b;&lol;",
    "<script>alert(1)</script>",
    "</style></title>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "javascript:alert(1)",
    "<a href=http://evil>",
    "</testcase><testcase name='x'/>",
    "{{ 7*7 }}",
    "{% raw %}",
    "{0.__class__}",
    "%s%n%(x)s",
    "[bold red]x[/]",
    "[link=http://evil]x[/link]",
    "[/]",
    ":fire:",
    "[[ATTACHMENT|/etc/passwd]]",
    "::error::x",
    "\\",
    "\\n",
    "'",
    '"',
    "`",
    "  ",
    "*",
    "[!a]",
    "../../etc/passwd",
)
EVERYTHING = "".join(FRAGMENTS)
ATTACKS = int(os.environ.get("RIGPROOF_ATTACKS", "1"))
# As the text of every place of a small report.
TEXTS = (EVERYTHING, "x" * 300_000, "\x1b" * 100_000, "one\r\ntwo\nthree\rfour")
FLOODS = {
    "letters": "x" * 3_000_000,
    "lines": "a\n" * 1_500_000,
    "escapes": "\x1b[0m" * 750_000,
    "hidden": "\u200b" * 3_000_000,
    "marks": '"<&' * 1_000_000,
}
# Marks each hostile text, so that it is never empty and never a part of anything else by chance.
MARK = "attack"

# Nothing of this may reach a reader: control characters but the line end, marks of direction,
# letters that nobody sees.
HARMFUL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)

Change = Callable[[str, str], str]


def twin(text: str) -> str:
    """A harmless text of as many lines: what it does to a report, the hostile one must do too,
    and nothing else.
    """
    return "\n".join("plain" if line.strip() else "" for line in text.splitlines())


fragments = st.sampled_from(FRAGMENTS)
# No record holds a component of more than two ends, so that no text may make one.
texts = (
    st.lists(
        fragments | st.text(st.characters(exclude_categories=[]), max_size=8),
        min_size=1,
        max_size=12,
    )
    .map("".join)
    .filter(lambda text: text.count(parts.WAY) < 2)
)


# --- the places ---

_OWN = {"observed.inventory"}  # a mapping whose keys are our own words


def _member(kind: inspect.UnionType, value: object) -> inspect.Type:
    """That member of a union which the value is of."""
    tags = ("record", "criterion", "is")
    told = (value[tag] for tag in tags if tag in value) if isinstance(value, dict) else iter(())
    tag = next(told, None)
    if tag is not None:
        return next(
            one for one in kind.types if isinstance(one, inspect.StructType) and one.tag == tag
        )
    wanted: tuple[type[inspect.Type], ...] = {
        str: (inspect.StrType, inspect.CustomType, inspect.LiteralType, inspect.EnumType),
        int: (inspect.IntType,),
        float: (inspect.FloatType,),
        dict: (inspect.DictType, inspect.StructType, inspect.DataclassType),
    }.get(type(value), (inspect.NoneType,))
    return next((one for one in kind.types if isinstance(one, wanted)), inspect.NoneType())


def _swapped(value: Any, kind: inspect.Type, place: str, change: Change) -> Any:
    if isinstance(kind, inspect.UnionType):
        kind = _member(kind, value)
    if isinstance(kind, inspect.LiteralType | inspect.EnumType):
        return value
    if isinstance(kind, inspect.StrType | inspect.CustomType):
        return change(place, value)
    if isinstance(kind, inspect.StructType) and kind.cls is Message:
        return value | {"values": _texts(value.get("values", {}), place, change)}
    if isinstance(kind, inspect.StructType | inspect.DataclassType):
        types = {field.encode_name: field.type for field in kind.fields}
        return {
            name: _swapped(one, types[name], f"{place}.{name}", change) if name in types else one
            for name, one in value.items()
        }
    if isinstance(kind, inspect.VarTupleType):
        return [_swapped(one, kind.item_type, f"{place}[]", change) for one in value]
    if isinstance(kind, inspect.DictType) and place not in _OWN:
        return {
            change(f"{place}.key", key): _swapped(one, kind.value_type, f"{place}.value", change)
            for key, one in value.items()
        }
    return _anything(value, place, change)


def _texts(value: Any, place: str, change: Change) -> Any:
    """The values of a message: all texts but tags, codes and units are from outside."""
    if isinstance(value, str):
        return change(place, value)
    if isinstance(value, dict):
        return {
            key: one if key in ("is", "code", "unit") else _texts(one, place, change)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_texts(one, place, change) for one in value]
    return value


def _anything(value: Any, place: str, change: Change) -> Any:
    """Of what no type is known every text is one from outside, and no key is."""
    if isinstance(value, str):
        return change(place, value)
    if isinstance(value, dict):
        return {key: _anything(one, f"{place}.{key}", change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_anything(one, f"{place}[]", change) for one in value]
    return value


@functools.cache
def _body() -> inspect.Type:
    return inspect.type_info(AnyBody)


def changed(bodies: Sequence[Body], change: Change) -> list[Body]:
    """The records with every text from outside put through `change`, which gets its place and the
    text.

    Raises msgspec.ValidationError for what no record can hold.
    """
    kind = _body()
    plain = [msgspec.to_builtins(body, enc_hook=parts.encode) for body in bodies]
    swapped = [_swapped(one, kind, one["record"], change) for one in plain]
    return [_with_keys(msgspec.convert(one, AnyBody, dec_hook=parts.decode)) for one in swapped]  # type: ignore[arg-type]  # a union is a type to msgspec


def _with_keys(body: Body) -> Body:
    """The record with components as keys, which msgspec's `convert` leaves as texts."""
    if not isinstance(body, RunStarted) or body.plan.baseline is None:
        return body
    facts = body.plan.baseline
    named = {parse(str(name)): one for name, one in facts.identities.items()}
    facts = msgspec.structs.replace(facts, identities=named)
    return msgspec.structs.replace(body, plan=msgspec.structs.replace(body.plan, baseline=facts))


def attacked(bodies: Sequence[Body], text: str, place: str | None = None) -> list[Body]:
    """The records with the text in that place of each, or in every place that can hold it.

    What was equal stays equal: names still meet.
    """

    def change(where: str, old: str) -> str:
        return (
            f"{text}{MARK}{old}"
            if where == place or (place is None and where not in _APART)
            else old
        )

    return changed(bodies, change)


def places(bodies: Sequence[Body]) -> list[str]:
    """Every place of these records that holds a text."""
    found: dict[str, None] = {}

    def note(place: str, text: str) -> str:
        found[place] = None
        return text

    changed(bodies, note)
    return list(found)


def places_by_type() -> set[str]:
    """Every place that any record can have."""

    def walk(kind: inspect.Type, place: str) -> Iterator[str]:
        if isinstance(kind, inspect.StrType | inspect.CustomType):
            yield place
        elif isinstance(kind, inspect.UnionType):
            if any(getattr(one, "cls", None) is Message for one in kind.types):
                yield place  # a text, or the texts among the values of a message
                return
            for one in kind.types:
                yield from walk(one, place)
        elif isinstance(kind, inspect.StructType | inspect.DataclassType):
            place = place or str(getattr(kind, "tag", ""))
            for field in kind.fields:
                yield from walk(field.type, f"{place}.{field.encode_name}")
        elif isinstance(kind, inspect.VarTupleType):
            yield from walk(kind.item_type, f"{place}[]")
        elif isinstance(kind, inspect.DictType) and place not in _OWN:
            yield f"{place}.key"
            yield from walk(kind.value_type, f"{place}.value")

    return set(walk(_body(), ""))


# --- a run with something in every place ---


def _inventory() -> dict[str, Any]:
    """The machine of the samples, with every name told."""
    found = dict(samples.INVENTORY)
    found["disks"] = [{**disk, "model": "a model"} for disk in found["disks"]]
    found["board"] = {key: value or "told" for key, value in found["board"].items()}
    found["pci"] = [
        {**function, "driver": "nvidia", "slot": "PCIEX16_1"} for function in found["pci"]
    ]
    # A card beside the GPU on one switch: both stand in the picture of what hangs where.
    found["links"] = [{**found["links"][0], "pci_address": "0000:05:00.0"}, *found["links"][1:]]
    found["places"] = {
        address: {
            "address": address,
            "host_bridge": "pci0000:00",
            "bridges": ["0000:00:01.0"],
            "numa_node": 0,
            "cpus": None,
        }
        for address in ("0000:01:00.0", "0000:05:00.0")
    }
    return found


def _born() -> MachineFacts:
    """A machine that accepted another card, and had another driver and kernel; of the kernel a
    night before has told.
    """
    rules = (
        ChangeRule(
            of=("gpu",),
            change="missing",
            means="fail",
            event="inventory.missing",
            basis="a part is gone",
        ),
        ChangeRule(
            of=("gpu",),
            change="replaced",
            means="fail",
            event="inventory.replaced",
            basis="another part",
        ),
        ChangeRule(
            of=("machine",),
            change="differs",
            means="warn",
            event="inventory.software",
            basis="what was tested then",
            facts={"nvidia_driver": "the driver"},
        ),
        ChangeRule(
            of=("machine",),
            change="differs",
            means="warn",
            afterwards="note",
            event="inventory.software",
            basis="what was tested then",
            facts={"kernel": "the kernel"},
        ),
        ChangeRule(
            of=("gpu",),
            change="differs",
            means="fail",
            dated=True,
            given="train_versions",
            event="inventory.bits",
            basis="equal versions, equal bits",
            facts={"train_bits_bf16": "the bits of a training run"},
        ),
    )
    return MachineFacts(
        "run-0",
        "2026-01-01T00:00:00.000Z",
        (Gpu(0), Gpu(9)),
        {Gpu(0): "GPU-of-then", Gpu(9): "GPU-gone"},
        ((ITSELF, "nvidia_driver", "550.1"), (ITSELF, "kernel", "5.10")),
        ("gpu",),
        ChangeBook(CountedParts(("nvme",), ("ethernet",), "what is part of a machine"), rules),
        (KnownChange(ITSELF, "kernel", str(samples.INVENTORY["board"]["kernel"]), "2025-12-24"),),
    )


def _remembered(checks: tuple[PlannedCheck, ...]) -> tuple[PlannedCheck, ...]:
    """The checks, with a past for the first of what they owe."""
    first, *others = checks
    counter = Past(
        True, 3, 14, counter=CounterReference(0.0, 1.0, 0.5, "a count that grows slowly")
    )
    owed = (
        first.due[0].against(
            Plausible(Limit("GB/s", "the most that is possible", high=1e9)),
            counter,
            Siblings("rate", ("memory", "cpu")),
        ),
        *first.due[1:],
    )
    return (msgspec.structs.replace(first, due=owed, verifies=(MEMORY,)), *others)


def run() -> list[Body]:
    """The run with every outcome, and beside it a record for every place that it leaves empty."""
    bodies = samples.mixed_bodies()
    start, *rest = bodies
    plan = msgspec.structs.replace(
        start.plan,  # type: ignore[union-attr]  # it is the beginning of the run
        loads_s={"cpu": 4.0},
        not_tested=("what nobody offers", Message("no_disk")),
        gaps=("gpu7: no check of this plan loads it",),
        gpus=(Gpu(0),),
        shortened=(Reduction("burn", 1.0, 90.0, "s"),),
        gpu_functions=(parse("0000:01:00.0"),),
        checks=_remembered(start.plan.checks),  # type: ignore[union-attr]
        baseline=_born(),
        site=SiteChecks("/etc/checks", "abc", (FamilyFile("mount.toml", 'title = "mounts"'),)),
    )
    check = "memory.bandwidth"
    more: list[Body] = [
        SessionStarted("site", "abc", (), "def"),
        Observed(_inventory(), (("", "gpu0"), ("gpu0", "X"))),
        Table(check, MEMORY, "rates_by_size", ("size", "format"), ((1.0, "fast"), ("large", 2.0))),
        Measured(check, "extra", MEMORY, "count", 1.0, serial="SN2", note="seen"),
        Skipped(
            check,
            "not read",
            "extra",
            MEMORY,
            follows="storage.smart_health",
            why=Unmeasured.NOT_OFFERED,
        ),
        PartBegan(check, MEMORY, "logs/memory.bandwidth-1.log"),
        Scratch(
            path="/data",
            component=Part("disk", "md0"),
            mount="/",
            kind="xfs",
            source="/dev/md0",
            disks=("nvme0n1", "nvme1n1"),
            layers=("raid1",),
            free_bytes=1 << 40,
            write_bytes=8 << 30,
            kept_bytes=1 << 30,
            keep=True,
            sealed_bytes=1 << 30,
        ),
        ForeignProcess(Gpu(0), 60.0, 4242, "python3 train.py", 1 << 30, 61.0),
        GpuUser(Gpu(0), 60.0, 4242, "Xorg", own=False, until_s=61.0),
        Stopped(check, "gpu-load", ended=True, component=MEMORY),
        Event(
            "xid",
            "warning",
            "said",
            "meaning",
            "action",
            code=45,
            component=Gpu(0),
            suspicion=Suspicion(Gpu(0), 7, "gpu_burn", consequence=True),
        ),
        Event(
            "mce",
            "error",
            "said",
            "meaning",
            "action",
            code="bank 4",
            component=CPU,
            source="load",
            hardware=False,
            catalog=("RESET_GPU",),
            counts=("burn_bf16_miscompares",),
        ),
        Event(
            "aer",
            "warning",
            "said so",
            "a corrected error",
            "look",
            component=Gpu(0),
            source="kernel-log",
        ),
        Refused(Gpu(0), {"power_w": "Unknown Error"}),
        Sample({"power_w": 1.0}, low={"power_w": 1.0}, high={"power_w": 1.0}, component=Gpu(0)),
        Note("a word that keeps the run from passing", trouble=True),
        Postponed(("gpu0: somebody computes on it",), 1, 7),
    ]
    closed = [
        RunClosed(running, True, {"power_w": 1.0}, "closed by a later start")
        for running in ((check,), check)  # the second is that of an older rigproof
    ]
    seal = Sealed("abc", (SealedFile("journal.jsonl", 3, "def"),))
    told = [
        msgspec.structs.replace(body, container="0123abcd")
        if isinstance(body, SessionEnded)
        else msgspec.structs.replace(body, codes=("outside_limit",))
        if isinstance(body, CheckEnded)
        else body
        for body in rest
    ]
    floor = Limit("GB/s", "a sheet", low=10.0)
    sheet = SiteSheet("models/x.toml", "X", "1" * 64, 'name = "X"', replaces=True)
    loose = LooserLimit("bandwidth", MEMORY, "limit", floor, floor)
    limits = LimitSet("2026-11-27.1", "2" * 64, "/etc/rigproof/sheets", (sheet,), (loose,))
    start = msgspec.structs.replace(
        start,
        plan=plan,
        selftest="82 of 84 faults caught",
        limits=limits,
        declared=Declared(
            {"system.board": "X13"}, (OwnLimit("memory_copy", "GB/s", "memory", low=10.0),)
        ),
    )
    return [start, *more, *told, *closed, seal]


PLACES = tuple(places(run()))
# A unit is one of a closed set, a bound has no text: no record with another one can be read.
REFUSED = frozenset(
    place
    for place in PLACES
    if place.endswith((".limit.unit", ".own.unit", ".book.change[].event"))
)
FREE = tuple(place for place in PLACES if place not in REFUSED)
# A waiver's component is a pattern: with `*` or `[` in it, it would cover another component than
# its twin. It is attacked alone.
_APART = REFUSED | {"run-started.plan.waivers[].component"}


def attack(text: str, place: str | None = None) -> list[Body]:
    """That run with the text in one place, or in all of them that can hold it."""
    return attacked(_run(), text, place)


_run = functools.cache(run)
