"""The texts of data files that reports show, and the template for their catalogues.

    PYTHONPATH=tests/core python tests/reports/data_texts.py TEMPLATE

The key of a text says where it stands; a translation has it as its comment.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from real_checks import collected

import acceptance
from acceptance import resources
from acceptance.baseline import changes
from acceptance.core.advice import Advice
from acceptance.expect import architecture, loosest, measurements
from acceptance.expect.measurements import Measurements
from acceptance.history import noise
from acceptance.observe.event import table
from acceptance.reports import advice

PACKAGE = Path(acceptance.__file__).parent


def texts() -> Iterator[tuple[str, str]]:
    """Key and English of every text; several keys may have the same."""
    families = measurements.shipped()
    for name, one in families.by_name.items():
        if one.advice_of == name:
            yield from _of_advice(name, one.advice)
    yield from _bases(families)
    for event, entry in advice.shipped().by_event.items():
        if event == entry.events[0]:
            yield from _of_advice(event, entry)
    for kind, entry in advice.shipped().by_kind.items():
        if kind == entry.kinds[0]:
            yield from _of_advice(kind, entry)
    yield from _events()
    for rule in changes.read(resources.locate("changes.toml")).change:
        if rule.means != "nothing":
            for fact, words in rule.facts.items():
                yield f"changes.{fact}", words
    for check in collected():
        yield check.id, check.title
    profiles = tomllib.loads(resources.locate("profiles.toml").read_text(encoding="utf-8"))
    for name, profile in profiles.items():
        yield f"profiles.{name}.summary", profile["summary"]
        for number, text in enumerate(profile["cannot_detect"], start=1):
            yield f"profiles.{name}.cannot_detect.{number}", text


def _bases(families: Measurements) -> Iterator[tuple[str, str]]:
    """Where limits, spreads and rules come from, each at the first place that has it.

    The bases of a model's sheet name sources and figures, and stay English.
    """
    found: dict[str, str] = {}
    for name, one in families.by_name.items():
        bases = {
            "limit": one.limit and one.limit.basis,
            "no_limit": one.no_limit,
            "possible": one.plausible and one.plausible.basis,
            "counter": one.counter and one.counter.basis,
            "noise": one.noise and one.noise.basis,
            "noise_in_vm": one.noise_in_vm and one.noise_in_vm.basis,
            "incomparable": one.incomparable,
            "exempt": one.exempt,
        }
        for key, basis in bases.items():
            if isinstance(basis, str):
                found.setdefault(basis, f"{name}.{key}")
    spreads = noise.read(resources.locate("noise.toml")).sheet
    found.setdefault(spreads.repeated.basis, "noise.repeated")
    for row in spreads.unit:
        found.setdefault(row.basis, f"noise.{row.unit}")
    for entry in architecture.shipped():
        found.setdefault(entry.basis, f"architectures.{entry}")
        for dtype, why in entry.unlimited.items():
            found.setdefault(why, f"architectures.{entry}.{dtype}")
    for rule in changes.read(resources.locate("changes.toml")).change:
        if rule.means != "nothing":
            found.setdefault(rule.basis, f"changes.{rule.event}")
    for most in loosest.book().unit:  # also of a site's own measurements
        if most.impossible == "above":
            found.setdefault(most.basis, f"loosest.{most.unit}")
    for text, key in found.items():
        yield key, text


def _of_advice(key: str, said: Advice) -> Iterator[tuple[str, str]]:
    yield f"{key}.symptom", said.symptom
    for number, cause in enumerate(said.causes, start=1):
        yield f"{key}.causes.{number}", cause.what
        yield f"{key}.causes.{number}.tell", cause.tell
        if cause.seen:
            yield f"{key}.causes.{number}.seen", cause.seen
    yield f"{key}.shows", said.shows
    yield f"{key}.vendor", said.vendor
    for other in said.instead:
        yield from _of_advice(f"{key}.{other.kinds[0]}", other)


def _events() -> Iterator[tuple[str, str]]:
    """What events mean and ask for, in the tables of events and in the code."""
    for code, entry in table("xid")["xid"].items():
        yield f"xid.{code}.meaning", entry["meaning"]
        yield f"xid.{code}.action", entry["action"]
    for entry in table("kernel")["message"]:
        yield f"kernel.{entry['kind']}.meaning", entry["meaning"]
        yield f"kernel.{entry['kind']}.action", entry["action"]
    for number, entry in enumerate(table("sxid")["class"], start=1):
        yield f"sxid.class.{number}.meaning", entry["meaning"]
    for code, entry in table("sxid")["sxid"].items():
        yield f"sxid.{code}.meaning", entry["meaning"]
    for name, action in table("sxid")["action"].items():
        yield f"sxid.action.{name}", action
    modules = [
        *sorted((PACKAGE / "observe").glob("*_events.py")),
        PACKAGE / "observe/unknown_line.py",
        PACKAGE / "session/load_events.py",
        PACKAGE / "watch/gpu_sampler.py",
    ]
    for path in modules:
        for text in _sentences(path):
            yield path.relative_to(PACKAGE).as_posix(), text


def _sentences(path: Path) -> Iterator[str]:
    """The whole sentences that a module writes out, its docstrings and patterns aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    aside |= {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in aside else None
        if isinstance(text, str) and re.fullmatch(r"[A-Z]\S* .*\.", text):
            yield text


def main(path: Path) -> None:
    """Write the template."""
    template = Catalog(project="rigproof", version="1")
    for key, text in texts():
        # Repeated for every key of a text: Babel adds the comments up.
        template.add(text, auto_comments=[key])
    with path.open("wb") as file:
        write_po(file, template, width=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
