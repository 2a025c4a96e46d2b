"""The languages: which one is spoken, and that every sentence of ours has its Chinese."""

from __future__ import annotations

import ast
import functools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from cases import each
from test_every_limit import collected

import acceptance
from acceptance import resources
from acceptance.core.advice import placeholders
from acceptance.core.language import ENGLISH
from acceptance.history import change_rules
from acceptance.observe.event import table
from acceptance.reports import languages
from acceptance.reports.languages import CODES, UnknownLanguage

PACKAGE = Path(acceptance.__file__).parent
OTHERS = [code for code in CODES if code != ENGLISH.code]
CHINESE = languages.catalogue("zh-CN")
COMMANDS = re.compile(r"`[^`]*`")


# --- which language ---


@each("given", ["zh-CN", "zh_CN", "zh", "ZH-cn"])
def test_chinese_by_any_of_its_names(given: str) -> None:
    assert languages.choose(given, {"LANG": "C"}).code == "zh-CN"


def test_what_is_asked_for_goes_before_the_locale() -> None:
    assert languages.choose("en", {"LC_ALL": "zh_CN.UTF-8"}) is ENGLISH


@each("given", ["de", "zh-TW", "", "zh_CN.UTF-8", "../en"])
def test_an_unknown_language_names_those_there_are(given: str) -> None:
    with pytest.raises(
        UnknownLanguage, match=r"there is no such language; there are en and zh-CN$"
    ):
        languages.choose(given, {})


@each(
    "environ, code",
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "zh_SG.GB18030"}, "zh-CN"),
        ({"LANG": "zh_CN@pinyin"}, "zh-CN"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({"LANG": "zh_HK.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}, "zh-CN"),
    ],
)
def test_without_a_word_the_locale_decides(environ: dict[str, str], code: str) -> None:
    assert languages.choose(None, environ).code == code


def test_a_file_for_every_language_and_none_besides() -> None:
    assert sorted(file.stem for file in resources.locate("causes").glob("*.toml")) == sorted(CODES)


# --- what is said in it ---


def literals_of(path: Path) -> Iterator[str]:
    """The sentences that a module gives to a Language: `language("...")`,
    `self._language("...")`, `_("...")`.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name.lstrip("_") in ("language", "") and (name or isinstance(node.func, ast.Name)):
            parts = (
                ast.walk(node.args[0]) if isinstance(node.args[0], ast.IfExp) else [node.args[0]]
            )
            yield from (
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def literals_in(path: Path) -> Iterator[str]:
    """The same of a template."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    for call in environment.parse(path.read_text(encoding="utf-8")).find_all(jinja2.nodes.Call):
        if (
            isinstance(call.node, jinja2.nodes.Name)
            and call.node.name in ("_", "language")
            and call.args
        ):
            for part in [call.args[0], *call.args[0].find_all(jinja2.nodes.Const)]:
                if isinstance(part, jinja2.nodes.Const) and isinstance(part.value, str):
                    yield part.value


def tables_in(path: Path) -> Iterator[str]:
    """Sentences that a module keeps in a constant whose name says so: `_WORDS = {...}` holds
    what is given to a Language later.
    """
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(
            isinstance(target, ast.Name) and target.id.strip("_").endswith("WORDS")
            for target in targets
        ):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            value = node.value
            parts = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
            yield from (
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def modules() -> list[Path]:
    """Those that speak to a reader in the reader's language."""
    folders = (PACKAGE / name for name in ("reports", "cli", "notify/schedule"))
    return [
        *(path for folder in folders for path in folder.rglob("*.py")),
        PACKAGE / "run/outputs.py",
    ]


@functools.cache
def said() -> frozenset[str]:
    """Every sentence that reports say in the language of their reader."""
    templates = (PACKAGE / "reports").rglob("*.j2")
    found = {text for path in modules() for text in (*literals_of(path), *tables_in(path))}
    rules = change_rules.read(resources.locate("changes.toml")).change
    facts = {name for rule in rules if rule.means != "nothing" for name in rule.facts.values()}
    return frozenset(found | facts | {text for path in templates for text in literals_in(path)})


def test_the_sentences_are_found() -> None:
    assert {"next", "what it means", "{cause}. How to tell: {tell}"} <= said()


def test_every_sentence_has_its_chinese() -> None:
    missing = sorted(said() - set(CHINESE.words) - set(CHINESE.titles))
    ready = "\n".join(f'{json.dumps(text, ensure_ascii=False)} = ""' for text in missing)
    assert not missing, (
        f"missing in [words] of fixtures/causes/zh-CN.toml, ready to paste:\n{ready}"
    )


def test_no_sentence_is_left_over() -> None:
    """A word of a table that is handed to a Language later counts as said, wherever it stands."""
    nodes = (
        node for path in modules() for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    anywhere = {node.value for node in nodes if isinstance(node, ast.Constant)}
    unused = sorted(set(CHINESE.words) - said() - anywhere)
    listed = "\n".join(unused)
    assert not unused, (
        "nobody says these any more; take them out of [words] of "
        f"fixtures/causes/zh-CN.toml:\n{listed}"
    )


@each("name", ["words", "titles", "events", "profiles"])
def test_a_sentence_keeps_its_placeholders_and_its_commands(name: str) -> None:
    for text, told in getattr(CHINESE, name).items():
        assert COMMANDS.findall(told) == COMMANDS.findall(text), text
        if name == "words":
            assert placeholders(told) == placeholders(text), text


def test_every_check_has_its_title() -> None:
    assert set(CHINESE.titles) == {check.title for check in collected()}


def test_every_profile_is_told_of() -> None:
    profiles = tomllib.loads(resources.locate("profiles.toml").read_text(encoding="utf-8")).values()
    assert set(CHINESE.profiles) == {
        text for one in profiles for text in (one["summary"], *one["cannot_detect"])
    }


def sentences_of(path: Path) -> Iterator[str]:
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


def test_every_event_has_its_meaning_and_what_it_asks_for() -> None:
    tables = [*table("xid")["xid"].values(), *table("kernel")["message"]]
    told = {entry[key] for entry in tables for key in ("meaning", "action")}
    told |= {
        entry["meaning"] for entry in (*table("sxid")["class"], *table("sxid")["sxid"].values())
    }
    told |= set(table("sxid")["action"].values())
    modules = [
        *(PACKAGE / "observe").glob("*_events.py"),
        PACKAGE / "session/load_events.py",
        PACKAGE / "watch/gpu_sampler.py",
    ]
    told |= {text for path in modules for text in sentences_of(path)}
    assert set(CHINESE.events) == told


def test_the_same_entries_with_the_same_commands() -> None:
    english = languages.catalogue("en")
    for mine, theirs in (
        (CHINESE.measurements, english.measurements),
        (CHINESE.by_event, english.by_event),
    ):
        assert mine.keys() == theirs.keys()
        for name, one in mine.items():
            other = theirs[name]
            assert (one.next, one.next_anywhere) == (other.next, other.next_anywhere), name
            assert one.events == other.events
            assert len(one.causes) == len(other.causes), name


def test_chinese_is_chinese() -> None:
    """Every text of the entries that is more than a line of a command has Chinese in it."""
    for one in {
        *CHINESE.measurements.values(),
        *CHINESE.by_event.values(),
    }:
        for text in (
            one.symptom,
            one.shows,
            one.vendor,
            *(part for cause in one.causes for part in (cause.what, cause.tell)),
        ):
            if COMMANDS.sub("", text).strip(" .,;"):
                assert re.search("[\u4e00-\u9fff]", text), text
            assert text.count("`") % 2 == 0, text
