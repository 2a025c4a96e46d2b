"""A component: what a number belongs to. `acceptance.core.parts` has its kinds and their names."""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from typing import NoReturn

_DIGITS = re.compile(r"[0-9]+")


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
