"""The languages: which one is spoken, and that every sentence of ours has its Chinese."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from babel.messages.pofile import read_po
from cases import each
from test_every_limit import collected

import acceptance
from acceptance import resources
from acceptance.core.advice import placeholders
from acceptance.core.language import ENGLISH
from acceptance.machine import change_rules
from acceptance.observe.event import table
from acceptance.reports import languages, po_file
from acceptance.reports.languages import CODES, UnknownLanguage

PACKAGE = Path(acceptance.__file__).parent
OTHERS = [code for code in CODES if code != ENGLISH.code]
CHINESE = languages.catalogue("zh-CN")
LOCALE = resources.locate("locale")
CATALOGUES = {
    path: read_po(io.BytesIO(path.read_bytes()))
    for path in LOCALE.glob("*/LC_MESSAGES/rigproof.po")
}
TEMPLATES = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
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
    assert sorted(one.name.replace("_", "-") for one in LOCALE.iterdir()) == sorted(OTHERS)


# --- what is said in it ---


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """The calls that translate a sentence, by the name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
            known = name in ("language", "_language", "_", "ngettext", "pgettext", "N_")
            if known and ast.unparse(node.func) != "options.language":  # that adds --lang
                yield name, node


def literals_of(path: Path) -> Iterator[str | None]:
    """The sentences of a module; None for one that is no literal."""
    for name, call in calls(ast.parse(path.read_text(encoding="utf-8"))):
        sentences = {"ngettext": call.args[:2], "pgettext": call.args[1:2]}
        for argument in sentences.get(name, call.args[:1]):
            yield argument.value if isinstance(argument, ast.Constant) else None


def literals_in(path: Path) -> Iterator[str | None]:
    """The same of a template."""
    for call in TEMPLATES.parse(path.read_text(encoding="utf-8")).find_all(jinja2.nodes.Call):
        name = getattr(call.node, "name", "")
        if name in ("_", "ngettext"):
            for argument in call.args[: 2 if name == "ngettext" else 1]:
                yield argument.value if isinstance(argument, jinja2.nodes.Const) else None


def modules() -> Iterator[Path]:
    """Those that speak to a reader in the reader's language."""
    for name in ("reports", "cli", "notify", "run"):
        yield from (PACKAGE / name).rglob("*.py")


def test_every_sentence_is_a_literal() -> None:
    """So that text from outside cannot be a format, and so that Babel finds it."""
    others = {
        path.relative_to(PACKAGE).as_posix(): sum(one is None for one in literals_of(path))
        for path in modules()
    }
    assert {path: number for path, number in others.items() if number} == {
        "reports/drift_words.py": 1,  # of a table of literals
        "reports/languages.py": 2,  # a function of its own
    }
    assert None not in {
        one for path in (PACKAGE / "reports").rglob("*.j2") for one in literals_in(path)
    }


def test_babel_finds_every_sentence() -> None:
    templates = (PACKAGE / "reports").rglob("*.j2")
    spoken = [path for path in modules() if path.name != "junit.py"]
    said = {one for path in spoken for one in literals_of(path)}
    said |= {one for path in templates for one in literals_in(path)}
    assert {"next", "likely cause {number}", "{n} nights", "basis: {told}"} <= said
    for catalogue in CATALOGUES.values():
        for entry in catalogue:
            said -= {entry.id} if isinstance(entry.id, str) else set(entry.id)
    assert said == {None}, "not in the catalogue: `make messages` does not find them there"


def test_the_catalogues_are_what_make_messages_makes_of_the_code() -> None:
    """Every sentence of the code is in each, and no other."""
    script = PACKAGE.parent / "scripts/messages"
    done = subprocess.run(
        [script, "--check"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"type `make messages`, then translate: {done.stderr[-200:]}"


def test_every_sentence_is_translated_whole() -> None:
    """With all plural forms, and with the placeholders and the commands of the English sentence."""
    for path, catalogue in CATALOGUES.items():
        for entry in filter(lambda entry: entry.id, catalogue):
            plural = not isinstance(entry.id, str)
            sentences, forms = (entry.id, entry.string) if plural else ([entry.id], [entry.string])
            assert all(forms), f"{path} has no translation: {entry.id}"
            assert not entry.fuzzy, f"{path} has a guess: {entry.id}"
            assert len(forms) == (catalogue.num_plurals if plural else 1), (path, entry.id)
            for text in (*sentences, *forms):
                assert placeholders(text) == placeholders(sentences[-1]), (path, text)
                assert COMMANDS.findall(text) == COMMANDS.findall(sentences[-1]), (path, text)


def test_english_reads_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(po_file, "read", pytest.fail)
    assert languages.choose("en", {}) is ENGLISH


def test_every_fact_has_its_name() -> None:
    rules = change_rules.read(resources.locate("changes.toml")).change
    assert set(CHINESE.facts) == {
        name for rule in rules if rule.means != "nothing" for name in rule.facts.values()
    }


@each("name", ["facts", "titles", "events", "profiles"])
def test_a_text_keeps_its_commands(name: str) -> None:
    for text, told in getattr(CHINESE, name).items():
        assert COMMANDS.findall(told) == COMMANDS.findall(text), text


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
