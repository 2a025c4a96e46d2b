"""Components: what a number belongs to. The only place that joins and splits their names.

Files and screens have names, `gpu0`, `gpu0->gpu1`, `disk:vda`; everything between reads them once
with `parse`, and prints them with `str`. As custom types of msgspec they need its two hooks:
`encode` and `decode`.
"""

from __future__ import annotations

import copyreg
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, NoReturn, cast, get_args

PartKind = Literal["disk", "declared-disk", "dimm", "net"]
WholeName = Literal["", "machine", "system", "cpu", "memory", "gpus"]

_DIGITS = re.compile(r"[0-9]+")
WAY = "->"  # between the two ends of a path
_NUMBERED = re.compile(r"(gpu|socket|core:)(0|[1-9][0-9]{0,8})", re.ASCII)
_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Component:
    """What a number belongs to, by its name.

    It is equal to a component of the same kind and name, and no more changes than a text does.
    Components are in the order of their names, with numbers by their value: gpu2 before gpu10.
    """

    __slots__ = ("_hash", "_name")

    _name: str
    _hash: int

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_hash", hash(name))

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and str(self) == str(other))

    def __lt__(self, other: Component) -> bool:
        return _order(str(self)) < _order(str(other))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a component does not change: {self} keeps its {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a component does not change: {self} keeps its {name}")

    @property
    def ends(self) -> tuple[Component, ...]:
        """The two ends of a path; of any other component, itself."""
        return (self,)

    def holds(self, part: Component) -> bool:
        """Whether it is this part, ends at it, or has it among its own."""
        return part in self.ends

    def matches(self, pattern: str) -> bool:
        """Whether it has this name, or its name fits this shell pattern (`disk:*`)."""
        return pattern == self._name or fnmatch.fnmatchcase(self._name, pattern)


@lru_cache(maxsize=4096)
def _order(name: str) -> tuple[str, str]:
    """The name with its numbers filled up with zeros; itself, where names differ in zeros alone."""
    return _DIGITS.sub(lambda number: number[0].zfill(40), name), name


class _Numbered(Component):
    __slots__ = ("number",)

    number: int
    _prefix = ""

    def __init__(self, number: int) -> None:
        if number < 0:
            raise ValueError(f"'{self._prefix}{number}' is no component: it is counted from 0")
        super().__init__(f"{self._prefix}{number}")
        object.__setattr__(self, "number", number)


class Gpu(_Numbered):
    """A GPU by its number in address order, or by a program's own number: `gpu0`."""

    __slots__ = ()
    _prefix = "gpu"


class Socket(_Numbered):
    """A processor package, and the memory at it: `socket0`."""

    __slots__ = ()
    _prefix = "socket"


class Core(_Numbered):
    """A physical core, by the number of its first logical CPU: `core:3`."""

    __slots__ = ()
    _prefix = "core:"


class Pair(Component):
    """The path from one component to another: `gpu0->gpu1`."""

    __slots__ = ("first", "second")

    first: Component
    second: Component

    def __init__(self, first: Component, second: Component) -> None:
        for end in (first, second):
            if isinstance(end, Pair) or WAY in str(end) or not str(end):
                raise ValueError(f"'{end}' is no end of a path: it needs one name")
        super().__init__(f"{first}{WAY}{second}")
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)

    @property
    def ends(self) -> tuple[Component, Component]:
        """The two ends."""
        return self.first, self.second


class Whole(Component):
    """The machine, or all its parts of one kind together: `machine`, `memory`, `gpus`."""

    __slots__ = ()

    def __init__(self, name: WholeName) -> None:
        super().__init__(name)

    def holds(self, part: Component) -> bool:
        """Whether it is this part, or all of its kind."""
        return super().holds(part) or (self == GPUS and isinstance(part, Gpu))


MACHINE: Component = Whole("machine")
SYSTEM: Component = Whole("system")  # its firmware and software
CPU: Component = Whole("cpu")
MEMORY: Component = Whole("memory")
GPUS: Component = Whole("gpus")  # all GPUs of the test, for programs that use them together
# The machine in its own facts: files have an empty name for it.
ITSELF: Component = Whole("")


class Part(Component):
    """A part with a name of its own: `disk:nvme0n1`, `dimm:A1`, `net:eth0`.

    `declared-disk:1` is the first row of disks in the machine file.
    """

    __slots__ = ("kind", "name")

    kind: PartKind
    name: str

    def __init__(self, kind: PartKind, name: str) -> None:
        if not name:
            raise ValueError(f"'{kind}:' is no component: the name of the part is missing")
        super().__init__(f"{kind}:{name}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "name", name)


class Function(Component):
    """A PCI function by its address, as the kernel's messages name it: `0000:01:00.0`."""

    __slots__ = ()


class Named(Component):
    """Something that another program names, of no kind known here.

    The kernel's messages name `sda`, `cpu3`, `mc0` and the zones of thermometers, stress-ng its
    stressors; a machine file may name what no machine has. What an older journal names so is read
    as it stands.
    """

    __slots__ = ()


def part(kind: PartKind, name: str) -> Component:
    """The part of this name; one that shows no name is named by its kind alone."""
    return Part(kind, name) if name else Named(kind)


class Renamed(Component):
    """A part of a later run whose own name is that of another part in the first run: `gpu0'`."""

    __slots__ = ("other",)

    other: Component

    def __init__(self, other: Component) -> None:
        super().__init__(f"{other}'")
        object.__setattr__(self, "other", other)


_KINDS: Mapping[str, Callable[[int], Component]] = {"gpu": Gpu, "socket": Socket, "core:": Core}
_WHOLES = {str(one): one for one in (MACHINE, SYSTEM, CPU, MEMORY, GPUS, ITSELF)}
_PARTS: tuple[PartKind, ...] = get_args(PartKind)


@lru_cache(maxsize=65536)
def parse(text: str) -> Component:
    """The component of this name.

    Raises ValueError, in one sentence, for what no component has: a path with an end missing or
    with more than two, a part without a name.
    """
    if text in _WHOLES:
        return _WHOLES[text]
    if match := _NUMBERED.fullmatch(text):
        return _KINDS[match[1]](int(match[2]))
    for kind in _PARTS:
        if text.startswith(f"{kind}:"):
            return Part(kind, text.removeprefix(f"{kind}:"))
    if WAY in text:
        ends = text.split(WAY)
        if len(ends) != 2:
            raise ValueError(f"'{text}' is no component: a path has two ends")
        return Pair(parse(ends[0]), parse(ends[1]))
    return Function(text) if _FUNCTION.fullmatch(text) else Named(text)


def _again(component: Component) -> tuple[Callable[[str], Component], tuple[str]]:
    return parse, (str(component),)


# A copy, and what another process receives, is made by its name.
for _kind in (Gpu, Socket, Core, Pair, Whole, Part, Function, Named, Renamed):
    copyreg.pickle(_kind, _again)


def renamed(component: Component, names: Callable[[Component], Component]) -> Component:
    """The component under another name: a path by its two ends, any other by itself."""
    return (
        Pair(names(component.first), names(component.second))
        if isinstance(component, Pair)
        else names(component)
    )


def listed(components: Iterable[Component]) -> str:
    """Their names, with commas between them."""
    return ", ".join(map(str, components))


def _decoded(kind: type[Any], value: Any) -> Any:
    """A component from its name in a file: the `dec_hook` of msgspec.

    msgspec's `convert` does not ask it for texts that are keys of a mapping: there components must
    be keys already.

    Raises NotImplementedError for another type, ValueError for what is no name of a component.
    """
    if not issubclass(kind, Component):
        raise NotImplementedError(f"no values of {kind} are read here")
    if not isinstance(value, str | Component):
        raise ValueError(f"the name of a component is a text, not {value!r}")
    found = parse(value) if isinstance(value, str) else value
    if not isinstance(found, kind):
        raise ValueError(f"'{value}' is no {kind.__name__.lower()}")
    return found


# cached as a whole: a journal has millions of names, and few that differ
decode = cast("Callable[[type[Any], Any], Any]", lru_cache(maxsize=65536)(_decoded))


def encode(value: object) -> str:
    """A component's name, for a file: the `enc_hook` of msgspec.

    Raises NotImplementedError for a value of another type.
    """
    if not isinstance(value, Component):
        raise NotImplementedError(f"no values of {type(value)} are written here")
    return value._name
