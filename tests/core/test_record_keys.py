"""Whether a record can be a key does not depend on what it holds.

A dict in it that is seldom there (the message of a GPU that NVML refuses) made a key of it fail on
faulty machines alone. A record hashes whatever it holds, or never: then the first test sees it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import importlib
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

import journals
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import acceptance
from acceptance import resources
from acceptance.baseline import changes
from acceptance.core.finding import Finding
from acceptance.core.fold import fold
from acceptance.core.message import Listed, Message, Text
from acceptance.core.parts import Gpu
from acceptance.expect import architecture, gpu_limits, measurements
from acceptance.journal.segment import SegmentLine
from acceptance.reports import advice
from acceptance.session.context import SessionContext
from acceptance.station import docker

Hashes = Literal["always", "sometimes", "never"]
# What a module imports for its annotations alone is not there at run time.
NAMES: dict[str, Any] = {"Text": Text, "docker": docker, "np": np, "NDArray": NDArray}
_MAPPINGS = (collections.abc.Mapping, collections.abc.MutableMapping)


def test_messages_and_findings_are_keys_whatever_they_hold() -> None:
    inner = Message("nvml_says", {"error": "lost", "gpus": Listed(("gpu0", Message("none")))})
    one = Message("with_cure", {"why": inner, "places": (inner, 1.0)})
    same = msgspec.json.decode(msgspec.json.encode(one), type=Message)
    assert {one: 1}[same] == 1
    assert one not in {Message("with_cure", {"why": inner}), Message("cure", one.values)}
    found = Finding("fail", "gpu.present", "x", {"why": one}, component=Gpu(1), note=inner)
    assert {found, msgspec.structs.replace(found)} == {found}


def records() -> Iterator[type]:
    """Every frozen record of the package that can be imported without torch."""
    found = set()
    for one in pkgutil.walk_packages(acceptance.__path__, "acceptance."):
        if one.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(one.name)
        except (ModuleNotFoundError, pytest.fail.Exception) as error:
            # pytest alone imports a suite, with the marks of its own configuration
            if "torch" in str(error) or "markers" in str(error):
                continue
            raise
        found |= {value for value in vars(module).values() if inspect.isclass(value)}
    for kind in found:
        if kind.__module__.startswith("acceptance.") and fields(kind) is not None:
            yield kind


def fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a frozen record that its hash covers; None of anything else.

    Empty where the record has a hash of its own, or none but its identity.
    """
    if dataclasses.is_dataclass(kind):
        settings = kind.__dataclass_params__  # type: ignore[attr-defined]
        if not settings.frozen:
            return None
        own = kind.__hash__.__code__.co_filename != "<string>" if settings.eq else True
        covered = (
            one.name
            for one in dataclasses.fields(kind)
            if (one.compare if one.hash is None else one.hash)
        )
        return () if own else tuple(covered)
    if issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen:
        return () if "__hash__" in vars(kind) else kind.__struct_fields__
    return None


def hashes(kind: Any, known: dict[type, Hashes]) -> Hashes:
    """Whether values of this type can be keys."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return joined([hashes(one, known) for one in inner])
    if origin is typing.Annotated:
        return hashes(inner[0], known)
    if origin is tuple:
        each = [hashes(one, known) for one in inner if one is not Ellipsis]
        if set(each) <= {"always"}:
            return "always"
        return "sometimes" if Ellipsis in inner or "never" not in each else "never"
    plain = origin or kind
    if (aliased := getattr(plain, "__value__", None)) is not None:  # as numpy's are from 3.12 on
        plain = typing.get_origin(aliased) or aliased
    if plain in _MAPPINGS:
        return "never"
    if plain is np.ndarray:
        return "never"
    if not inspect.isclass(plain):
        return "always"
    if plain.__hash__ is None:
        return "never"
    return of_record(plain, known) if fields(plain) is not None else "always"


def joined(each: list[Hashes]) -> Hashes:
    return each[0] if len(set(each)) == 1 else "sometimes"


def of_record(kind: type, known: dict[type, Hashes]) -> Hashes:
    if kind not in known:
        known[kind] = "always"  # of a record that holds its like
        # names that a module imports for its annotations alone
        names = NAMES | vars(sys.modules[kind.__module__])
        hints = typing.get_type_hints(kind, localns=names)
        each = [hashes(hints[name], known) for name in fields(kind) or ()]
        known[kind] = (
            "never" if "never" in each else "sometimes" if "sometimes" in each else "always"
        )
    return known[kind]


def test_no_record_is_a_key_only_while_it_holds_no_dict() -> None:
    every, known = list(records()), dict[type, Hashes]()
    NAMES.update({kind.__name__: kind for kind in every})
    wrong = [kind.__qualname__ for kind in every if of_record(kind, known) == "sometimes"]
    assert len(known) > 300
    assert sorted(wrong) == []


def test_a_record_with_a_hash_of_its_own_is_a_key() -> None:
    entries = journals.entries(journals.bodies(journals.plan()))
    book = changes.read(resources.locate("changes.toml"))
    every: list[object] = [
        entries[0],
        fold(entries),
        SegmentLine(0, 1.0, "", entries[0].body),
        SessionContext("collect", "/"),
        *gpu_limits.sheets()[:1],
        *architecture.shipped()[:1],
        *book.change[:1],
        measurements.Sheet("title", "is not", ({"names": ["x"]},)),
        advice._Sheet(({"event": "x"},)),
    ]
    for one in every:
        assert one in {one}
