"""What the mutations came to: counts, the score, and each that nobody noticed.

Pure but for reading a record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result:
    """One mutation: who noticed it (empty: nobody), and the reviewed reason for which nobody
    can, where there is one.
    """

    path: str
    line: int
    text: str
    rule: str
    change: str
    by: str
    why: str | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}   [{self.rule}; {self.text}]"


@dataclass(frozen=True, slots=True)
class Score:
    """All results."""

    results: tuple[Result, ...]

    @property
    def missed(self) -> list[Result]:
        """What nobody noticed, and no reviewed reason excuses."""
        return sorted(
            (one for one in self.results if not one.by and one.why is None),
            key=lambda one: (one.path, one.line),
        )

    @property
    def wrong(self) -> list[Result]:
        """What the list calls equivalent, and a test noticed."""
        return [one for one in self.results if one.by and one.why is not None]

    def counts(self, prefix: str) -> tuple[int, int, int, int]:
        """Mutations, noticed, equivalent and not noticed, of the modules whose path begins so."""
        own = [one for one in self.results if one.path.startswith(prefix)]
        noticed = sum(bool(one.by) for one in own)
        equivalent = sum(not one.by and one.why is not None for one in own)
        return len(own), noticed, equivalent, len(own) - noticed - equivalent

    def lines(self) -> Iterator[str]:
        """The table: one line a module, one a folder, those that got by, the score."""
        yield (
            f"{'module':44} {'mutants':>8} {'noticed':>8} {'equivalent':>10} {'not':>5} "
            f"{'score':>8}"
        )
        paths = sorted({one.path for one in self.results})
        folders = sorted({path.rpartition("/")[0] + "/" for path in paths})
        for name in (*paths, *folders, ""):
            mutants, noticed, equivalent, missed = self.counts(name)
            share = share_of(noticed, mutants - equivalent)
            yield (
                f"{name or 'all':44} {mutants:8} {noticed:8} {equivalent:10} {missed:5} {share:>8}"
            )
        for one in self.wrong:
            yield f"not equivalent: {one.path}:{one.line}: {one.change}: noticed by {one.by}"
        yield from (f"NOT noticed: {one}" for one in self.missed)

    def to_json_object(self) -> dict[str, object]:
        """Everything, for those who read it by program."""
        return {"results": [asdict(one) for one in self.results]}


def missed_before(record: Path) -> set[tuple[str, str, str]]:
    """Path, line's text and change of what nobody noticed, by the record of an earlier campaign."""
    found = json.loads(record.read_text(encoding="utf-8"))["results"]
    return {(one["path"], one["text"], one["change"]) for one in found if not one["by"]}


def share_of(noticed: int, of: int) -> str:
    """A share in percent that never says 100 for less than all."""
    if not of:
        return "-"
    return "100 %" if noticed == of else f"{min(100 * noticed / of, 99.9):.1f} %"


def sample(found: Sequence[T], count: int, key: Callable[[T], tuple[str, ...]]) -> list[T]:
    """So many of them in their order, drawn by the digest of their own keys: what is drawn does not
    change with the code of other modules.
    """

    def lot(one: T) -> bytes:
        return hashlib.sha256("\0".join(key(one)).encode()).digest()

    drawn = sorted(range(len(found)), key=lambda place: lot(found[place]))[:count]
    return [found[place] for place in sorted(drawn)]
