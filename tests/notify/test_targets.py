from __future__ import annotations

import os
from pathlib import Path

import pytest
from cases import each
from known import known

from acceptance.core.message import UserError
from acceptance.notify import targets

URL = "https://someone:password@hooks.example/services/T0/secret?key=secret"


def secret(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_nothing_asked_for_is_nothing_told() -> None:
    assert targets.read() == targets.NotificationTargets(None, (), None)


def test_what_was_asked_for(tmp_path: Path) -> None:
    found = targets.read(
        tmp_path / "rigproof.prom",
        "sh -c 'exit 0' \"two words\"",
        URL,
        secret(tmp_path, b"0123456789abcdef\n"),
    )
    assert found.textfile == tmp_path / "rigproof.prom"
    assert Path(found.on_fail[0]).is_absolute()
    assert found.on_fail[1:] == ("-c", "exit 0", "two words")
    assert (known(found.webhook).url, known(found.webhook).secret) == (URL, b"0123456789abcdef")


def test_an_address_may_stand_in_a_file(tmp_path: Path) -> None:
    file = secret(tmp_path, f"{URL}\n".encode())
    assert known(targets.read(webhook=f"@{file}").webhook).url == URL


def test_what_is_secret_is_not_shown(tmp_path: Path) -> None:
    found = targets.read(webhook=URL, secret_file=secret(tmp_path, b"0123456789abcdef"))
    assert known(found.webhook).safe_address == "https://hooks.example/..."
    for word in ("secret", "password", "0123456789abcdef", "T0"):
        assert word not in repr(found)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h/", "http://h/"),
        ("http://h", "http://h/"),
        ("https://h:8443/?k=1", "https://h:8443/..."),
        ("http://[::1]:80/x", "http://[::1]:80/..."),
    ],
)
def test_what_may_be_shown_of_an_address(url: str, shown: str) -> None:
    assert known(targets.read(webhook=url).webhook).safe_address == shown


@each(
    "given, words",
    [
        (
            {"textfile": Path("rigproof.txt")},
            "reads files named \\*.prom alone: call it rigproof.prom",
        ),
        ({"textfile": Path(".prom")}, "call it rigproof.prom"),
        ({"textfile": Path("nowhere/x.prom")}, "there is no folder nowhere: give the one"),
        ({"on_fail": "mail 'root"}, "is no command \\(No closing quotation\\): close its quotes"),
        ({"on_fail": " "}, "--on-fail is empty: give a command"),
        (
            {"on_fail": "no-such-program-here x"},
            "--on-fail: no-such-program-here is not installed: put it on PATH",
        ),
        ({"webhook": "hooks.example/x"}, "that is no address: give https://HOST/..., or @FILE"),
        ({"webhook": "ftp://h/x"}, "that is no address"),
        ({"webhook": "https:///x"}, "that is no address"),
        ({"webhook": "https://h:0/"}, "that is no address"),
        ({"webhook": "https://h:99999/"}, "that is no address"),
        ({"webhook": "https://[::1/"}, "that is no address"),
        ({"webhook": "https://h/a b"}, "holds a space or another letter"),
        ({"webhook": "https://h/\x1b[31m"}, "holds a space or another letter"),
        ({"webhook": "https://h/\n"}, "holds a space or another letter"),
        (
            {"webhook": "@nowhere"},
            "--webhook nowhere: cannot be read \\(No such file or directory\\)",
        ),
        ({"secret_file": Path("x")}, "signs what --webhook posts, which is not given"),
    ],
)
def test_a_mistake_is_one_sentence(given: dict[str, object], words: str, tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with pytest.raises(UserError, match=words) as told:
            targets.read(**given)  # type: ignore[arg-type]  # one of its arguments
    finally:
        os.chdir(before)
    assert "\n" not in str(told.value)
    assert "/x" not in str(told.value) or "webhook" not in given, "an address is not repeated"


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"0123456789abcdef", 0o644, "everybody may read it or write to it: `chmod 600 "),
        (b"0123456789abcdef", 0o602, "everybody may read it"),
        (b"\n", 0o600, "is empty or has more than 4096 bytes"),
        (b"x" * 5000, 0o600, "is empty or has more than 4096 bytes"),
        (b"short", 0o600, "holds 5 bytes, which is too few for a secret: write at least 16"),
    ],
)
def test_a_secret_that_is_none(content: bytes, mode: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        targets.read(webhook="https://h/", secret_file=secret(tmp_path, content, mode))


def test_a_command_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("#!/bin/sh\n")
    with pytest.raises(UserError, match="is there but may not be run: make it executable"):
        targets.read(on_fail=str(tmp_path / "hook"))


def test_a_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "access", lambda *_: False
    )  # root, as whom the tests may run, may write everywhere
    with pytest.raises(UserError, match="you may not write into"):
        targets.read(tmp_path / "x.prom")
