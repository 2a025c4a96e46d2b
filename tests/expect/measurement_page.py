"""docs/measurements.md as far as it follows from the families: their tables, and the sections of
families that have none yet. What else a section says is written by hand.

    python tests/expect/measurement_page.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from acceptance.expect.measurements import Family, Measurements, shipped

PAGE = Path(__file__).resolve().parents[2] / "docs/measurements.md"
_TABLE = re.compile(r"^\| name \| unit \|.*\n(?:\|.*\n)*", re.MULTILINE)
# How the page writes a component of a class that is not its own name.
_COMPONENTS = (
    (r"gpu-(pair|peers)(-.*)?", "`gpuA->gpuB`"),
    (r"gpus(-.*)?", "`gpus`"),
    (r"gpu(-.*)?", "`gpuN`"),
    (r"core(-.*)?", "`core:<n>`"),
    (r"socket-pair", "`socketA->socketB`"),
    (r"socket", "`socketN`"),
    (r"disk(-.*)?", "`disk:<name>`"),
    (r"declared-disk", "`declared-disk:<n>`"),
    (r"declared-link|network-(card|port)(-.*)?", "`net:<name>`"),
    (r"dimm", "`dimm:<slot>`"),
    (r"cpu(-.*)?", "`cpu`"),
    (r"(\w+)", r"`\1`"),
)


def component(per: str) -> str:
    """A component of this class, as people read it in a report."""
    pattern, told = next(one for one in _COMPONENTS if re.fullmatch(one[0], per))
    return re.sub(pattern, told, per)


def table(family: str, families: Measurements) -> str:
    """The table of a family: a row for each thing that is said."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in families.by_name.values():
        if one.family == family:
            where = ", ".join(dict.fromkeys(map(component, (one.per, *one.per_in.values()))))
            rows.setdefault((one.unit, where, one.what), []).append(f"`{one.name}`")
    return "".join(
        [
            "| name | unit | component | what it is |\n",
            "|---|---|---|---|\n",
            *(f"| {', '.join(names)} | {' | '.join(said)} |\n" for said, names in rows.items()),
        ]
    )


def sections(text: str) -> dict[str, str]:
    """The sections of the page by their titles, each from its title to the next one."""
    return {
        one.partition("\n")[0].removeprefix("## "): one
        for one in re.split(r"(?m)^(?=## )", text)[1:]
    }


def current(text: str, families: Measurements) -> str:
    """The page with the tables as they are to be, and with a section for every family."""
    known = sections(text)
    for family in families.families:
        own = table(family.name, families)
        section = known.get(family.title)
        if section is None:
            text += f"\n{_section(family, own)}"
        else:
            text = text.replace(section, _TABLE.sub(lambda _, own=own: own, section, count=1))
    return text


def _section(family: Family, own: str) -> str:
    said = textwrap.fill(f"What it is not: {family.is_not}.", 100, break_on_hyphens=False)
    return f"## {family.title}\n\n{own}\n{said}\n"


def main() -> None:
    """Bring the page up to date."""
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8"), shipped()), encoding="utf-8")


if __name__ == "__main__":
    main()
