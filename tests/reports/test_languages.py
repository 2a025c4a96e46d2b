"""The languages: which one is spoken, and that every sentence of ours has its Chinese."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import data_texts
import jinja2
import pytest
from babel.messages.pofile import read_po
from cases import each
from thoroughness import ALL

import acceptance
from acceptance import resources
from acceptance.core.language import ENGLISH
from acceptance.core.message import SetupError, UserError
from acceptance.expect import gpu_limits
from acceptance.machine import machine_file
from acceptance.reports import languages
from acceptance.reports.languages import CODES
from selftest import drawn_runs

PACKAGE = Path(acceptance.__file__).parent
OTHERS = [code for code in CODES if code != ENGLISH.code]
LOCALE = resources.locate("locale")
SENTENCES, TEXTS = (
    {
        path: read_po(io.BytesIO(path.read_bytes()))
        for path in LOCALE.glob(f"*/LC_MESSAGES/{domain}.po")
    }
    for domain in ("rigproof", "data")
)
TEMPLATES = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
COMMANDS = re.compile(r"`[^`]*`")


# --- which language ---


@each(
    "given, environ, code",
    [
        *((name, {}, None) for name in ("de", "zh-TW", "", "zh_CN.UTF-8", "../en")),
        *((name, {"LANG": "C"}, "zh-CN") for name in ("zh-CN", "zh_CN", "zh", "ZH-cn")),
        ("en", {"LC_ALL": "zh_CN.UTF-8"}, "en"),
        (None, {}, "en"),
        *(
            (None, {"LANG": name}, "zh-CN")
            for name in ("zh_CN.UTF-8", "zh_SG.GB18030", "zh_CN@pinyin")
        ),
        *(
            (None, {"LANG": name}, "en")
            for name in ("zh_TW.UTF-8", "zh_HK.UTF-8", "C.UTF-8", "de_DE.UTF-8")
        ),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        (None, {"LANG": "en_GB.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh-CN"),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": ""}, "zh-CN"),
    ],
)
def test_what_is_asked_for_decides_and_without_it_the_locale(
    given: str | None, environ: dict[str, str], code: str | None
) -> None:
    if code is None:
        with pytest.raises(UserError, match=r"en and zh-CN$"):
            languages.choose(given, environ)
        return
    assert languages.choose(given, environ).code == code
    assert code in [one.name.replace("_", "-") for one in LOCALE.iterdir()]


# --- what is said in it ---


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """The calls that translate a sentence, by the name of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
            known = name in ("language", "_language", "_", "ngettext", "pgettext")
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


def test_every_sentence_is_a_literal_and_babel_finds_it() -> None:
    """So that text from outside cannot be a format."""
    said, others = set(), set()
    for path in modules():
        found = list(literals_of(path))
        said |= set(found) if path.name != "junit.py" else set()
        others |= {path.relative_to(PACKAGE).as_posix()} if None in found else set()
    assert others == {"reports/languages.py"}  # a function of its own
    templates = {one for path in (PACKAGE / "reports").rglob("*.j2") for one in literals_in(path)}
    assert None not in templates
    said |= templates
    assert {"next", "likely cause {number}", "{n} nights"} <= said
    for catalogue in SENTENCES.values():
        for entry in catalogue:
            said -= {entry.id} if isinstance(entry.id, str) else set(entry.id)
    assert said == {None}, "not in the catalogue: `make messages` does not find them there"


def test_the_catalogues_are_what_make_messages_makes_of_the_code() -> None:
    """Every sentence of the code, and every text of data files, is in each, and no other."""
    script = PACKAGE.parent / "scripts/messages"
    done = subprocess.run(
        [script, "--check"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"type `make messages`, then translate: {done.stderr[-200:]}"


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_sentence_is_translated_whole() -> None:
    """With all plural forms, and with the placeholders and the commands of the English sentence."""
    for path, catalogue in SENTENCES.items():
        for entry in filter(lambda entry: entry.id, catalogue):
            plural = not isinstance(entry.id, str)
            sentences, forms = (entry.id, entry.string) if plural else ([entry.id], [entry.string])
            assert all(forms), f"{path} has no translation: {entry.id}"
            assert not entry.fuzzy, f"{path} has a guess: {entry.id}"
            assert len(forms) == (catalogue.num_plurals if plural else 1), (path, entry.id)
            for text in (*sentences, *forms):
                assert names(text) == names(sentences[-1]), (path, text)
                assert COMMANDS.findall(text) == COMMANDS.findall(sentences[-1]), (path, text)


def test_english_reads_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "_read", pytest.fail)
    assert languages.choose("en", {}) is ENGLISH


@pytest.mark.parametrize("text", ["\xff", "msgid", None])
def test_a_broken_catalogue_is_named(
    tmp_path: Path, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "locale/zh_CN/LC_MESSAGES"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "rigproof.po").write_bytes(text.encode("latin-1"))
    monkeypatch.setattr(resources, "locate", lambda name: tmp_path / name)
    with pytest.raises(SetupError, match=r"^rigproof\.po: "):
        languages.language("zh-CN")


def test_every_text_of_a_data_file_is_translated() -> None:
    """One without a translation is named, and a translation of what is said no longer; a text
    keeps its commands, and all that is more than a command or an abbreviation has Chinese in it.
    """
    due = {text: key for key, text in data_texts.texts()}
    assert len(TEXTS) == len(OTHERS)
    for path, catalogue in TEXTS.items():
        found = {entry.id: entry for entry in catalogue if entry.id}
        stale = {text: entry.auto_comments for text, entry in found.items() if text not in due}
        assert not stale, f"{path} translates what no data file says: {stale}"
        missing = {key: text for text, key in due.items() if text not in found}
        missing |= {due[text]: text for text, entry in found.items() if not entry.string}
        assert not missing, f"{path} has no translation: {missing}"
        for text, entry in found.items():
            kept = [sorted(COMMANDS.findall(one)) for one in (text, entry.string)]
            assert (entry.fuzzy, kept[0]) == (False, kept[1]), (path, text)
            words = re.search("[a-z]", COMMANDS.sub("", entry.string))
            assert not words or re.search("[\u4e00-\u9fff]", entry.string), (path, text)


@each("machine", drawn_runs.NAMES if ALL else ("2x4090", drawn_runs.WITHOUT_GPUS))
def test_no_basis_and_no_reason_of_ours_is_english_in_a_chinese_report(machine: str) -> None:
    """But for what somebody else published, or said: sources of a model sheet, and the machine
    file's own words.
    """
    chinese, plan = languages.language("zh-CN"), drawn_runs.named(machine).plan
    sheets = [
        row for one in gpu_limits.sheets() for row in (*one.limit, *one.collective, *one.share)
    ]
    file = machine_file.read(resources.locate("machines") / f"{machine}.toml")
    stay = {row.basis for row in (*sheets, *file.limit)}
    due = [one for check in plan.checks for one in check.due]
    told = {one.origin for one in due} | {one.unlimited for one in due if one.unlimited}
    told |= {limit.basis for one in due for limit in (one.limit, one.ceiling) if limit is not None}
    told |= {*plan.gaps, *plan.not_tested}
    assert told
    for text in told - stay:
        assert re.search("[\u4e00-\u9fff]", languages.said(text, chinese)), text
