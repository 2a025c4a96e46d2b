"""Where in a TOML text a key stands, and what is wrong with it: the standard parser gives values without their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}
_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line on which the key at `path` (("limit", 1, "unit")) stands, or the line of its table; None when neither is found."""
    table: list[str | int] = []
    seen: dict[str, int] = {}
    best: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            names = [part.strip().strip("\"'") for part in header[1].split(".")]
            table = list(names)
            if line.lstrip().startswith("[["):
                key = ".".join(names)
                seen[key] = seen.get(key, -1) + 1
                table.append(seen[key])
            if table == list(path)[: len(table)]:
                best = number
        elif "=" in line and not line.lstrip().startswith("#"):
            key_path = [*table, *(part.strip().strip("\"'") for part in line.partition("=")[0].strip().split("."))]
            if key_path == list(path)[: len(key_path)]:
                best = number
                if key_path == list(path):
                    return number
    return best


def _path(pointer: str) -> list[str | int]:
    """The keys of one of msgspec's paths, `$.limit[1].unit`."""
    return [int(index) if index else name for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", pointer)]


def spell(path: Sequence[str | int]) -> str:
    """A key as people count: `limit 2, unit` reads better than `limit[1].unit`, and the file's own order is what they see."""
    return "".join(f" (number {part + 1})" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def explain(message: str, text: str) -> tuple[str, int | None]:
    """What is wrong with a table that msgspec refused, as one sentence for the user, and the line it concerns.

    `message` is msgspec's own; `text` is the TOML text.
    """
    what, _, pointer = message.partition(" - at `")
    path = _path(pointer.rstrip("`"))
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what)
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    expected = re.fullmatch(r"Expected `(.*)`, got `(.*)`", what)
    if unknown:
        path.append(unknown[1])
        sentence = (
            f"{spell(path)} is no key that rigproof knows: correct its spelling or remove it (README, “Machine files”)"
        )
    elif missing:
        path.append(missing[1])
        sentence = f"{spell(path)} is missing: add it"
    elif expected:
        wanted = " or ".join(_TYPES.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null")
        sentence = f"{spell(path)} must be {wanted}, not {_TYPES.get(expected[2], expected[2])}"
    else:
        sentence = f"{spell(path) or 'the file'}: {what[0].lower()}{what[1:]}"
    return sentence, line_of(text, path)
