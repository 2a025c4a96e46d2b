from __future__ import annotations

import ast
import functools
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from cases import each
from known import known
from msgspec.structs import replace
from synthetic_machines import collected
from test_every_limit import NAMES, brought

import acceptance
from acceptance import resources
from acceptance.baseline import changes as baseline_changes
from acceptance.core.advice import PLACEHOLDERS, SIDES, Advice, LikelyCause, Symptom, placeholders
from acceptance.core.message import SetupError
from acceptance.core.past import DriftKind
from acceptance.expect import measurements
from acceptance.expect.measurements import Measurements
from acceptance.observe.event import table
from acceptance.reports import advice
from acceptance.reports.advice import AdviceBook

ENTRY = """
[[cause]]
events = ["xid.79", "oom"]
symptom = "It is slow."
causes = [{ what = "one", tell = "look" }, { what = "two; three", tell = "listen" }]
next = "lspci -s {address}"
next_anywhere = "lspci"
shows = "a line"
vendor = "the serial number"
"""
GENERAL = """
[[cause]]
events = ["xid"]
symptom = "s"
causes = [{ what = "w", tell = "t" }, { what = "v", tell = "u" }]
next = "dmesg"
shows = "s"
vendor = "v"
"""
REST = GENERAL.split("\n", 3)[3]
KIND = GENERAL.replace('events = ["xid"]', 'kinds = ["vanished"]')
NOTHING = Measurements({}, ())
FAMILIES = measurements.shipped()


def write(folder: Path, text: str) -> Path:
    path = folder / "xx.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_event_has_the_entry_of_its_code_or_else_of_its_kind(tmp_path: Path) -> None:
    found = advice.read(write(tmp_path, ENTRY + GENERAL), NOTHING)
    told = [found.of_event(event) for event in ("xid.79", "xid.8", "xid", "oom.4711", "aer.dpc")]
    assert [one.symptom if one else None for one in told] == [
        "It is slow.",
        "s",
        "s",
        "It is slow.",
        None,
    ]


def test_a_command_names_the_place_or_is_the_general_one(tmp_path: Path) -> None:
    plain = advice.read(write(tmp_path, GENERAL), NOTHING).by_event["xid"]
    assert plain.command({}) == plain.command({"address": "0000:01:00.0"}) == "dmesg"
    for name in ("address", "slot", "serial", "uuid", "index", "name"):
        text = ENTRY.replace("{address}", f"{{{name}}}")
        entry = advice.read(write(tmp_path, text), NOTHING).by_event["oom"]
        assert entry.command({name: "it", "other": "sda"}) == "lspci -s it"
        assert entry.command({"other": "sda"}) == entry.command({}) == "lspci"


@each(
    "text, told",
    [
        (ENTRY + ENTRY, "the entry of xid.79: xid.79 stands twice"),
        (ENTRY.replace('"oom"', '"xid.79"'), "the entry of xid.79: xid.79 stands twice"),
        (ENTRY + GENERAL + GENERAL, "the entry of xid: xid stands twice"),
        (ENTRY + "worst = 1\n", "the entry of xid.79: Object contains unknown field `worst`"),
        ("language = 'en'\n" + ENTRY, "unknown field `language`"),
        (ENTRY.replace("shows", "looks"), "missing required field `shows`|unknown field `looks`"),
        (ENTRY.replace('["xid.79", "oom"]', "[]"), "entry 1: names no events"),
        (ENTRY.replace('["xid.79", "oom"]', "[1]"), "entry 1: Expected `str`"),
        (KIND + KIND, "the entry of vanished: vanished stands twice"),
        (KIND.replace('"vanished"', '"gone"'), "the entry of gone: Invalid enum value 'gone'"),
        (KIND + "[[cause.instead]]\n" + REST, "instead is of kinds of symptoms"),
        (ENTRY.replace(', { what = "two; three", tell = "listen" }', ""), "length >= 2"),
        (
            ENTRY.replace('{ what = "one"', '{ what = "1", tell = "1" }, ' * 4 + '{ what = "one"'),
            "length <= 5",
        ),
        (ENTRY.replace('"one"', '""'), "matching regex"),
        (ENTRY.replace('"one"', '" one"'), "matching regex"),
        (ENTRY.replace('"one"', '"one\\ntwo"'), "matching regex"),
        (ENTRY.replace('"one"', "1"), "Expected `str`"),
        (ENTRY.replace(', tell = "look"', ""), "missing required field `tell`"),
        (
            ENTRY.replace("{address}", "{adress}"),
            "next has {adress}; the placeholders are address, index, name",
        ),
        (ENTRY.replace("{address}", "{0}"), "{0} is no placeholder"),
        (ENTRY.replace("{address}", "{address!r}"), "{address} is no placeholder"),
        (ENTRY.replace("{address}", "{address:>9}"), "{address} is no placeholder"),
        (ENTRY.replace("{address}", "{address"), "expected '}'"),
        (ENTRY.replace('next_anywhere = "lspci"\n', ""), "such a command needs it"),
        (GENERAL + 'next_anywhere = "lspci"\n', "next_anywhere is for a command with placeholders"),
        ("", "missing required field `cause`"),
        ("[[cause", "at end of document"),
    ],
)
def test_a_wrong_file_names_itself_and_the_entry(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SetupError, match=told.replace("{", r"\{").replace("[", r"\[")) as caught:
        advice.read(write(tmp_path, text), NOTHING)
    assert str(caught.value).startswith("xx.toml")


def test_advice_of_a_measurement_may_be_that_of_an_event(tmp_path: Path) -> None:
    shared = FAMILIES.by_name["gemm_bf16_miscompares"]
    families = Measurements({"a": shared, "b": shared}, ())
    found = advice.read(write(tmp_path, GENERAL), families)
    assert found.of_event("miscompare") == found.measurements["a"] == found.measurements["b"]
    with pytest.raises(SetupError, match="the entry of miscompare: miscompare stands twice"):
        advice.read(write(tmp_path, GENERAL.replace('"xid"', '"miscompare"')), families)


# --- what is shipped ---


@functools.cache
def event_kinds() -> set[str]:
    """Every kind of event that the product's code makes, found in its source, and in the table
    of kernel messages: the first text among the arguments that is no pattern, as in
    `Event(KIND, ...)` and `_event(line, KIND, ...)`.
    """
    found = {entry["kind"] for entry in table("kernel")["message"]} | {"drift", "inventory"}
    for path in Path(acceptance.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not MAKES.search(text):
            continue
        tree = ast.parse(text)
        names = {
            getattr(target, "id", ""): getattr(node.value, "value", None)
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and MAKES.fullmatch(
                ast.unparse(call.func).split(".")[-1]
            ):
                told = [
                    names.get(one.id) if isinstance(one, ast.Name) else getattr(one, "value", None)
                    for one in call.args[:2]
                ]
                kinds = [one for one in told if isinstance(one, str) and KIND_NAME.fullmatch(one)]
                found |= set(kinds[:1])
    return found - {"dpc", "corrected", "unknown"}


MAKES, KIND_NAME = (
    re.compile(r"\b(Event|KernelEvent|_event|_Said)\b"),
    re.compile("[a-z]+(-[a-z]+)*"),
)


def test_every_measurement_of_every_check_has_its_causes_and_nothing_else_has() -> None:
    found = advice.shipped()
    assert all(check.measures for check in collected()), (
        "a check that measures nothing has no causes"
    )
    measured = {measures.name for check in collected() for measures in check.measures}
    assert set(found.measurements) == measured
    limited = {one.measurement for given in map(brought, NAMES) for one in given if one.limit}
    assert limited <= measured


def below(kind: str) -> set[str]:
    """What follows a kind in the names of the events that have advice."""
    events = advice.shipped().by_event
    return {event.partition(".")[2] for event in events if event.startswith(f"{kind}.")}


def test_every_kind_of_event_and_of_symptom_has_its_causes_and_nothing_else_has() -> None:
    found, made = advice.shipped(), event_kinds()
    assert {"xid", "sxid", "gpu-lost", "rm-init", "driver", "aer", "mce", "apei", "edac"} < made
    assert {event.partition(".")[0] for event in found.by_event} == made
    assert {event for event in found.by_event if "." not in event} == made, "of every kind as such"
    assert below("xid") <= set(table("xid")["xid"])
    assert below("drift") == set(get_args(DriftKind))
    book = baseline_changes.read(resources.locate("changes.toml"))
    changes = {rule.event for rule in book.change if rule.means in ("fail", "warn")}
    assert {f"inventory.{one}" for one in below("inventory")} == changes
    assert set(found.by_kind) == set(get_args(Symptom)) - {"low", "high"}


def test_what_is_next_is_a_command_line() -> None:
    known = {
        *("cat", "dpkg", "free", "grep", "head", "ip", "ls", "lsblk", "lscpu", "lspci", "ps"),
        *("nvidia-smi", "ras-mc-ctl", "smartctl", "tail", "uname", "watch", "xargs", "dmesg"),
        *("dmidecode", "journalctl", "apt", "rigproof"),
    }
    for one in advice.shipped().entries():
        assert not placeholders(one.next_anywhere or "")
        for command in filter(None, (one.next, one.next_anywhere)):
            assert placeholders(command) <= PLACEHOLDERS
            first, second, *_ = *shlex.split(command.replace("&&", ";"), posix=True), ""
            assert (second if first == "sudo" else first) in known, command
            assert "sudo apt install" not in command or "&&" in command, "it shows nothing"


# --- each side of a limit, and each kind of symptom, has advice that fits ---


# Words of what is too little, in the symptom of a rate or of a share of one.
TOO_LITTLE = re.compile(
    r"\b(slow(er|ly)?|less|fewer|lower|lost speed|loses|takes longer|did not bear)\b", re.IGNORECASE
)
TOO_MUCH = re.compile(r"\b(hotter|warmer|too (hot|much|many|fast)|better)\b", re.IGNORECASE)


@each("name", lambda: list(FAMILIES.by_name))
def test_each_finding_of_each_measurement_gets_fitting_advice(name: str) -> None:
    """The family's own on the side on which it is worse, and another on the other one; what proves
    nothing has causes of its own.
    """
    found = advice.shipped()
    own, better = found.measurements[name], found.by_kind["better"]
    assert own.side is not None, "neither limit, sense, unit nor its advice tells the usual side"
    for kind in set(get_args(Symptom)) - {"better"}:
        told = known(found.of_value(own, kind))
        if kind == own.side or (own.side == "both" and kind in SIDES):
            assert told is own
        else:
            assert kind in told.kinds or (kind in SIDES and told == better)
            assert kind not in SIDES or told.symptom != own.symptom
        high = kind == "high" and not (told is own and name in SLOW_AND_HIGH)
        assert not (high and own.side != "both" and TOO_LITTLE.search(told.symptom)), told.symptom
        low = kind == "low" and FAMILIES.by_name[name].unit not in ("degC", "count")
        assert not (low and told != better and TOO_MUCH.search(told.symptom)), told.symptom


# A time that is too long slows, heat and a brake slow down, a card short of power draws less.
SLOW_AND_HIGH = {
    name
    for name, one in FAMILIES.by_name.items()
    if one.unit in ("s", "us", "ns") or re.search("slowdown|throttle|cpu_temperature|short$", name)
}


def test_a_measurement_has_another_advice_for_another_kind_or_that_of_all() -> None:
    rule = Advice("s.", (LikelyCause("a", "b"), LikelyCause("c", "d")), "n", "s", "v")
    lost = replace(rule, symptom="lost.", kinds=("vanished",))
    own = replace(rule, side="low", instead=(lost,))
    better, none = replace(rule, kinds=("better",)), AdviceBook({}, {}, {})
    book = AdviceBook({}, {}, {"better": better, "vanished": better})
    assert [book.of_value(own, kind) for kind in ("low", "high", "vanished", None)] == [
        own, better, lost, own,
    ]  # fmt: skip
    assert book.of_value(replace(own, side="both"), "high") is not better
    assert book.of_value(None, "vanished") is better
    assert book.of_value(None, "low") is None
    assert none.of_value(own, "high") is None
    assert none.of_value(None, None) is None
