"""The rules of what a change means: the file is read strictly, and nothing is left undecided."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from known import known

from acceptance.baseline import changes
from acceptance.core.message import SetupError

PARTS = """
[counted]
disks = ["sata"]
links = ["ethernet"]
basis = "b"
[[change]]
of = ["gpu", "dimm", "disk", "net"]
change = "missing"
means = "fail"
event = "inventory.missing"
basis = "b"
[[change]]
of = ["gpu", "dimm", "disk", "net"]
change = "added"
means = "note"
event = "inventory.added"
basis = "b"
[[change]]
of = ["gpu", "dimm", "disk", "net"]
change = "unread"
means = "warn"
event = "inventory.untold"
basis = "b"
"""
FACT = """
[[change]]
of = ["gpu"]
facts = { vbios = "VBIOS" }
change = "differs"
means = "warn"
event = "inventory.firmware"
basis = "why"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "changes.toml"
    path.write_text(text)
    return path


def test_the_first_rule_that_fits(tmp_path: Path) -> None:
    book = changes.read(written(tmp_path, PARTS + FACT + FACT.replace("warn", "fail")))
    assert known(book.of_fact("gpu", "vbios", "differs", "lower")).means == "warn"
    assert book.of_fact("gpu", "vbios", "lower") is None
    assert book.of_fact("disk", "vbios", "differs") is None
    assert book.of_fact("gpu", "model", "differs") is None
    assert known(book.of_part("disk", "missing")).means == "fail"
    assert book.of_part("disk", "moved") is None
    assert book.of_part("cpu", "missing") is None


@each(
    "old, new, words",
    [
        ('"differs"', '"lower"', ["vbios of gpu needs a rule for `differs`", "one for `higher`"]),
        ('"differs"', '"higher"', ["vbios of gpu needs a rule"]),
        ('"differs"', '"missing"', ["a rule for what is missing names facts (why)"]),
        ('"differs"', '"other"', ["other"]),
        ('facts = { vbios = "VBIOS" }', "", ["a rule for what is differs names no fact (why)"]),
        (
            'basis = "why"',
            'basis = "why"\nwithin = 0.1',
            ["within is for what is lower or higher (why)"],
        ),
        ('basis = "why"', 'basis = "why"\nwithin = 1.0', ["within"]),
        ('basis = "why"', 'basis = ""', ["basis"]),
        ('basis = "why"', 'basis = "why"\nbases = "why"', ["bases"]),
        ('means = "warn"', 'means = "worry"', ["worry"]),
        (
            'means = "warn"',
            'means = "fail"\nafterwards = "note"',
            ["afterwards is for a warning about a fact"],
        ),
        ('means = "warn"', 'means = "warn"\nafterwards = "nothing"', ["afterwards"]),
        ("inventory.firmware", "firmware", ["event"]),
        ('of = ["gpu"]', "of = []", ["of"]),
        ('of = ["gpu"]', 'of = ["fan"]', ["fan"]),
        (
            'basis = "why"',
            'basis = "why"\ngiven = "version"',
            ["version, on which facts of gpu depend, needs a rule (why)"],
        ),
        (
            '"differs"',
            '"lower"\ngiven = "vbios"',
            ["vbios of gpu needs a rule", "one for `higher`"],
        ),
        ('basis = "why"', 'basis = "why"\ngiven = ""', ["given"]),
        (
            'VBIOS" }',
            'VBIOS" }\nafterwards = "note"\ndated = true',
            ["dated is for a fact that is told in the same way every night (why)"],
        ),
        (
            'of = ["gpu", "dimm", "disk", "net"]\nchange = "missing"',
            'of = ["gpu", "dimm", "disk", "net"]\ndated = true\nchange = "missing"',
            ["dated is for a fact"],
        ),
        ('change = "added"', 'change = "moved"', ["gpu needs a rule", "was added"]),
        ('change = "missing"', 'change = "moved"', ["gpu needs a rule", "is missing"]),
        ('change = "unread"', 'change = "moved"', ["gpu needs a rule", "are unread"]),
        *(
            (
                'facts = { vbios = "VBIOS" }\nchange = "differs"\nmeans = "warn"',
                f'change = "{change}"\nmeans = "warn"\nafterwards = "note"',
                ["afterwards is for a warning about a fact"],
            )
            for change in ("missing", "added", "replaced", "unread")
        ),
        ('disks = ["sata"]', "disks = []", ["disks", "length >= 1"]),
        ("[counted]", "[accounted]", ["accounted"]),
        ("[counted]", "[counted", ["changes.toml"]),
    ],
)
def test_what_is_not_right_is_named(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    text = (PARTS + FACT).replace(old, new)
    assert text != PARTS + FACT
    with pytest.raises(SetupError) as caught:
        changes.read(written(tmp_path, text))
    for word in ["changes.toml: ", *words]:
        assert word in str(caught.value)


@each("kind", ["gpu", "dimm", "disk", "net"])
@each("change", ["missing", "added", "unread"])
def test_parts_of_every_kind_need_every_rule(tmp_path: Path, kind: str, change: str) -> None:
    others = [f'"{other}"' for other in ("gpu", "dimm", "disk", "net") if other != kind]
    old = f'of = ["gpu", "dimm", "disk", "net"]\nchange = "{change}"'
    text = PARTS.replace(old, f'of = [{", ".join(others)}]\nchange = "{change}"')
    assert text != PARTS
    with pytest.raises(SetupError, match=f"{kind} needs a rule for a part that is missing"):
        changes.read(written(tmp_path, text))


def test_a_part_of_a_direction_may_stand_in_two_rules(tmp_path: Path) -> None:
    lower = FACT.replace('"differs"', '"lower"\nwithin = 0.5')
    higher = FACT.replace('"differs"', '"higher"')
    assert changes.read(written(tmp_path, PARTS + lower + higher)).change[-2].within == 0.5


def test_what_depends_on_another_fact_is_what_differs(tmp_path: Path) -> None:
    lower = FACT.replace('"differs"', '"lower"').replace("VBIOS", "V")
    higher = FACT.replace('"differs"', '"higher"\ngiven = "version"')
    version = FACT.replace('vbios = "VBIOS"', 'version = "v"')
    text = PARTS + lower + higher + version
    with pytest.raises(SetupError, match=r"given is for what differs \(why\)"):
        changes.read(written(tmp_path, text))
    right = (
        PARTS + FACT.replace('"differs"', '"differs"\ngiven = "version"\ndated = true') + version
    )
    (rule, _) = changes.read(written(tmp_path, right)).change[-2:]
    assert (rule.given, rule.dated) == ("version", True)
