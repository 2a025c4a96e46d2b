"""What events weigh: the tables that the product reads held against their sources, as far as
`severities.toml` has them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

BOOK = Path(__file__).with_name("severities.toml")


def problems(folder: Path) -> Iterator[str]:
    """Every weight in the tables of a folder that its source knows otherwise, not
    at all, or alone.
    """
    book = _read(BOOK)
    xid, sxid, kernel = (_read(folder / f"{name}.toml") for name in ("xid", "sxid", "kernel"))
    yield from _differing("Xid", _weights(xid["xid"]), _xids(xid["xid"], book))
    by_text = {int(code) for code, entry in xid["xid"].items() if entry.get("by_text")}
    if by_text != set(book["xid"]["by_text"]):
        yield f"Xids that the line itself weighs: {sorted(by_text)}"
    actions = {int(code): word for code, word in xid["recovery_action"].items()}
    yield from _differing("recovery action", actions, _listed(book["recovery_action"]))
    found: dict[int, str] = {}
    for group in sxid["class"]:
        found |= dict.fromkeys(group["codes"], group["severity"])
    yield from _differing("SXid", found | _weights(sxid["sxid"]), _listed(book["sxid"]))
    if kernel["storm"] != book["storm"]:
        yield f"a storm of corrected errors is {kernel['storm']}"
    yield from _messages(kernel["message"], book["kernel"])


def _read(file: Path) -> dict[str, Any]:
    return _parsed(file.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _xids(table: Mapping[str, Mapping[str, Any]], book: Mapping[str, Any]) -> dict[int, Any]:
    """What each code of the catalog weighs, which has no gaps."""
    by_bucket = _listed(book["bucket"])
    own = _listed(book["xid"], but=("by_text",))
    buckets = {code: table.get(f"{code}", {}).get("immediate") for code in range(1, 1 + max(own))}
    return {code: by_bucket.get(bucket, "listed") for code, bucket in buckets.items()} | own


def _weights(table: Mapping[str, Mapping[str, Any]]) -> dict[int, str]:
    return {int(code): entry["severity"] for code, entry in table.items()}


def _listed(table: Mapping[str, list[Any]], but: tuple[str, ...] = ()) -> dict[Any, str]:
    return {code: word for word, codes in table.items() if word not in but for code in codes}


def _differing(what: str, found: Mapping[int, str], booked: Mapping[int, str]) -> Iterator[str]:
    for code in sorted(found.keys() | booked.keys()):
        if found.get(code) != booked.get(code):
            yield f"{what} {code}: {found.get(code)} in the table, {booked.get(code)} by its source"


def _messages(messages: list[dict[str, Any]], lines: list[dict[str, Any]]) -> Iterator[str]:
    """The first pattern that matches a line weighs it, as in the product; and
    each pattern has a line.
    """
    met = set()
    for line in lines:
        first = next(
            (n for n, one in enumerate(messages) if re.search(one["pattern"], line["line"])), None
        )
        if first is None:
            yield f"nothing knows {line['line']!r}"
            continue
        met.add(first)
        names = ("severity", "elsewhere", "hardware")
        weight = tuple(messages[first].get(name) for name in names)
        if weight != tuple(line.get(name) for name in names):
            yield f"{line['line']!r} is {weight}"
    yield from (
        f"no line here meets {one['pattern']!r}" for n, one in enumerate(messages) if n not in met
    )
