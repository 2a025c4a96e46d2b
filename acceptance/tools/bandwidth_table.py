"""One table of bandwidthTest: what was copied how, by how many devices, and the rate at each size."""

from __future__ import annotations

from dataclasses import dataclass, field

# What its megabyte is, is a matter of the version; the unit that the text states is taken at its word.
_PER_GB = {"GB": 1.0, "MB": 1000.0}
# The last size of shmoo mode is the first one past this, in bytes: 64e6, and 2**26 in the versions that print MB/s.
_SHMOO_END = {"GB": 64_000_000, "MB": 1 << 26}


@dataclass(slots=True)
class Table:
    """`kind` is h2d, d2h or d2d; `pageable` None until the text says; `rates` are in `unit`/s by size in bytes.

    `csv`: it came as lines of `--csv`, which name no host memory for d2d.
    """

    kind: str
    devices: int
    line: str
    pageable: bool | None = None
    combined: bool = False
    unit: str | None = None
    csv: bool = False
    rates: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The reading's name; other host memory than plain pinned memory is another measurement."""
        return f"bandwidth_test_{self.kind}{'_pageable' * bool(self.pageable)}{'_wc' * self.combined}"

    def rate(self) -> float:
        """GB/s at the largest size."""
        assert self.unit is not None
        return self.rates[max(self.rates)] / _PER_GB[self.unit]

    def worthless(self, mode: str | None, old: bool) -> str | None:
        """Why the table proves nothing, or None.

        `mode` is Quick, Shmoo or Range, None where the text does not say. `old`: a version that names the host memory in the title.
        """
        title = self.name.removeprefix("bandwidth_test_")
        if self.unit is None or not self.rates:
            return f"the text is cut: the table {title} has no row"
        if self.pageable is None and not (self.kind == "d2d" and (self.csv or old)):
            return f"the text is cut: the table {title} does not say PINNED or PAGEABLE"
        if min(self.rates.values()) == 0:
            return f"the table {title} says 0 {self.unit}/s, so nothing was measured"
        if mode == "Quick" and len(self.rates) > 1:
            return f"the table {title} has {len(self.rates)} sizes, which quick mode has not"
        if mode == "Shmoo" and max(self.rates) <= _SHMOO_END[self.unit]:
            return f"the text is cut: the table {title} ends at {max(self.rates)} bytes"
        return None
