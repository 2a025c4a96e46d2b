"""Samples in compact form: a run of days has hundreds of thousands, too many for a dict each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping


class PackedReadings(Mapping[str, float]):
    """Readings by name, like a dict; samples with the same names share one copy of the names."""

    __slots__ = ("_numbers", "_places")

    def __init__(self, places: dict[str, int], numbers: array[float]) -> None:
        self._places = places
        self._numbers = numbers

    def __getitem__(self, name: str) -> float:
        return self._numbers[self._places[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"Readings({dict(self)!r})"


class Packer:
    """Packs readings, and keeps each set of names once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[str, int]] = {}

    def pack(self, values: Mapping[str, float]) -> PackedReadings:
        """The same readings, packed."""
        names = tuple(values)
        places = self._known.get(names)
        if places is None:
            places = self._known[names] = {name: place for place, name in enumerate(names)}
        return PackedReadings(places, array("d", values.values()))
