"""What the command line prints beside its reports, with hostile text in what it was given:
errors, JSON, names of files, the locale.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import hostile
import pytest
import runs
from cases import each
from command import Call, answer
from thoroughness import ALL, some

from acceptance.__main__ import main
from acceptance.cli import image, read
from acceptance.machine import observation
from acceptance.machine.inventory import NetworkLink
from acceptance.observe import draft, inventory
from acceptance.tools import TOOLS

WHOLE = hostile.EVERYTHING.encode("utf-8", errors="replace").decode(
    "utf-8"
)  # as a file can hold it
# A file name holds no slash and no NUL, and at most 255 bytes.
NAMES = [part.replace("/", "-").replace("\0", "") for part in hostile.FRAGMENTS]
NAMES = [name for name in NAMES if name.strip(". ") and not re.search("[\ud800-\udfff]", name)]


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Call:
    """Runs the command line in a folder of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return lambda *arguments: answer(capsys, *arguments)


def assert_harmless(text: str, most: int = 12_000) -> None:
    assert not hostile.HARMFUL.search(text), text
    assert all(len(line) < most for line in text.split("\n"))


def assert_one_sentence(err: str) -> None:
    assert_harmless(err)
    assert err.startswith("rigproof: ")
    assert err.count("\n") == 1
    assert "rigproof's own" not in err


@pytest.mark.parametrize("name", some(NAMES))
def test_a_hostile_folder_is_named_harmlessly(name: str, call: Call, tmp_path: Path) -> None:
    code, out, err = call("judge", f"no/{name}")
    assert (code, out) == (2, "")
    assert_one_sentence(err)
    runs.write_segment(
        tmp_path / name / "journal.jsonl", hostile.run(), runs.machine_root(tmp_path / "root")
    )
    code, out, err = call("report", f"./{name}")
    assert (code, err) == (1, "")
    assert_harmless(out)
    assert re.match(r"FAIL: .*the evidence is incomplete; .*: 1 passed, ", out.split("\n")[-2])
    assert not hostile.HARMFUL.search((tmp_path / name / "junit.xml").read_text())


@pytest.mark.parametrize(
    "text", some([WHOLE, *hostile.FLOODS.values()], 2), ids=lambda text: ascii(text[:6])
)
@pytest.mark.parametrize(
    "form",
    [
        "{} = 1",
        "schema = 1\nname = 'x'\n[[waiver]]\n{} = 1",
        "schema = 1\nname = 'x'\n[[limit]]\nmeasurement = {}\nunit = {}\nbasis = 'b'\nlow = 1",
    ],
)
def test_an_error_quotes_a_machine_file_harmlessly(
    form: str, text: str, call: Call, tmp_path: Path
) -> None:
    quoted = json.dumps(text).replace("\x7f", "\\u007f") if text == WHOLE else f'"{text[:200_000]}"'
    if text == WHOLE:  # TOML writes what is beyond 16 bits in another way than JSON
        quoted = quoted.encode().decode("ascii")
        quoted = re.sub(r"\\ud8..\\ud[c-f]..", "?", quoted)
    (tmp_path / "machine.toml").write_text(form.format(quoted, quoted), encoding="utf-8")
    code, out, err = call("plan", "--machine", "machine.toml")
    assert (code, out) == (2, "")
    assert_one_sentence(err)


@each(
    "arguments",
    [
        ["{}"],
        ["accept", "{}"],
        ["accept", "--burn", "{}"],
        ["accept", "--{}"],
        ["read", "{}", "x"],
        ["read", "topo", "{}"],
        ["plan", "--profile", "{}"],
        ["plan", "--out", "{}", "x"],
    ],
)
def test_a_mistake_in_the_call_is_quoted_harmlessly(arguments: list[str], call: Call) -> None:
    for text in (hostile.EVERYTHING.replace("\0", ""), hostile.FRAGMENTS[0], "x" * 100_000):
        code, out, err = call(*(argument.format(text) for argument in arguments))
        assert (code, out) == (2, "")
        assert_one_sentence(err)


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_what_is_read_is_told_harmlessly(tool: str, call: Call, tmp_path: Path) -> None:
    known = {
        "kernel-log": (
            "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, {} has "
            "fallen off "
            "the bus."
        )
    }
    for text in (
        WHOLE,
        known.get(tool, "{}").format(WHOLE.replace("\n", "").replace("\r", "")),
        *some(list(hostile.FLOODS.values()), 2),
    ):
        (tmp_path / "recording").write_text(text[:20_000], encoding="utf-8")
        code, out, err = call("read", tool, "recording")
        assert code in read.EXIT.values()
        assert err == ""
        assert_harmless(out, most=10**9)
        assert json.loads(out)["tool"] == tool


class Bytes(io.TextIOWrapper):
    """A screen in some encoding, as `_streams` leaves one."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, errors="backslashreplace")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_the_inventory_is_printed_harmlessly(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"links": [{"name": f"eth\udcff{hostile.EVERYTHING}"}], "name": "G\u015b\xae"}
    monkeypatch.setattr(inventory, "observe", lambda: found)
    monkeypatch.setattr(sys, "stdout", Bytes(encoding))
    assert main(["inventory", "--json"]) == 0
    data = sys.stdout.buffer.getvalue()  # type: ignore[attr-defined]
    assert_harmless(data.decode(encoding))
    assert json.loads(data)["name"] == "G\u015b\xae"


def test_a_summary_a_drafted_file_and_a_build_are_told_harmlessly(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = hostile.EVERYTHING
    link = NetworkLink(name, None, name, None, None, True, None, None)
    found = dataclasses.replace(observation.NOTHING, links=(link,))
    monkeypatch.setattr(inventory, "observe", lambda: found)
    monkeypatch.setattr(draft, "write", lambda found, path, filesystems: None)
    file = re.sub("[\0\ud800-\udfff]", "", name)
    for typed, said in ((["inventory"], "network "), (["inventory", "--write", file], "")):
        code, out, err = call(*typed)
        assert (code, err) == (0, "")
        assert_harmless(out)
        assert [line for line in out.splitlines() if line.startswith(said)]
    image._say(name)
    assert_harmless(capsys.readouterr().err)


# From 3.13 on Python loads no library from a path that such a locale cannot name.
@pytest.mark.skipif(not sys.prefix.isascii(), reason="the environment's path is not ASCII")
@each(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii:strict"},
    ][: None if ALL else 1],
)
def test_a_locale_without_our_letters_gets_its_own(locale: dict[str, str], tmp_path: Path) -> None:
    runs.write_segment(
        tmp_path / "journal.jsonl", hostile.attack(WHOLE), runs.machine_root(tmp_path / "root")
    )
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LC_", "LANG", "PYTHON"))
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "acceptance", "judge", str(tmp_path)],
        env={**environment, **locale},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert_harmless(done.stdout.decode("latin-1"))
    assert re.match(
        rb"FAIL: .*the evidence is incomplete; .*: \d+ passed, ", done.stdout.splitlines()[-1]
    )
