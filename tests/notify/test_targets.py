from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

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


def test_what_was_asked_for(tmp_path: Path) -> None:
    assert targets.read() == targets.NotificationTargets(None, (), None)
    key = secret(tmp_path, b"0123456789abcdef\n")
    found = targets.read(tmp_path / "x.prom", "sh -c 'exit 0' \"two words\"", URL, key)
    assert found.textfile == tmp_path / "x.prom"
    assert Path(found.on_fail[0]).is_absolute()
    assert found.on_fail[1:] == ("-c", "exit 0", "two words")
    webhook = known(found.webhook)
    assert (webhook.url, webhook.secret) == (URL, b"0123456789abcdef")
    assert webhook.safe_address == "https://hooks.example/..."
    assert not [word for word in ("secret", "password", "01234", "T0") if word in repr(found)]
    file = secret(tmp_path, f"{URL}\n".encode())
    assert known(targets.read(webhook=f"@{file}").webhook).url == URL


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
        ({"textfile": "rigproof.txt"}, "reads files named \\*.prom alone: call it rigproof.prom"),
        ({"textfile": ".prom"}, "call it rigproof.prom"),
        ({"textfile": "nowhere/x.prom"}, "there is no folder nowhere: give the one"),
        ({"on_fail": "mail 'root"}, "is no command \\(No closing quotation\\): close its quotes"),
        ({"on_fail": " "}, "--on-fail is empty: give a command"),
        ({"on_fail": "no-such-program-here x"}, "no-such-program-here is not installed"),
        ({"on_fail": "./secret"}, "is there but may not be run: make it executable"),
        *(
            ({"webhook": url}, "that is no address")
            for url in (
                *("hooks.example/x", "ftp://h/x", "https:///x", "https://h:0/"),
                *("https://h:99999/", "https://[::1/"),
            )
        ),
        *(
            ({"webhook": url}, "holds a space or another letter")
            for url in ("https://h/a b", "https://h/\x1b[31m", "https://h/\n")
        ),
        ({"webhook": "@nowhere"}, "nowhere: cannot be read \\(No such file or directory\\)"),
        ({"secret_file": "x"}, "signs what --webhook posts, which is not given"),
        *(
            ({"content": content, "mode": mode}, words)
            for content, mode, words in (
                (b"0123456789abcdef", 0o644, "everybody may read it or write to it: `chmod 600 "),
                (b"0123456789abcdef", 0o602, "everybody may read it"),
                (b"\n", 0o600, "is empty or has more than 4096 bytes"),
                (b"x" * 5000, 0o600, "is empty or has more than 4096 bytes"),
                (
                    b"short",
                    0o600,
                    "holds 5 bytes, which is too few for a secret: write at least 16",
                ),
            )
        ),
    ],
)
def test_a_mistake_is_one_sentence(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    file = secret(tmp_path, given.get("content", b"x"), given.get("mode", 0o600))
    typed = {name: one for name, one in given.items() if name in ("on_fail", "webhook")}
    typed |= {name: Path(given[name]) for name in ("textfile", "secret_file") if name in given}
    if "content" in given:
        typed = {"webhook": "https://h/", "secret_file": file}
    with contextlib.chdir(tmp_path), pytest.raises(UserError, match=words) as told:
        targets.read(**typed)
    assert "\n" not in str(told.value)
    assert "/x" not in str(told.value) or "webhook" not in given, "an address is not repeated"


def test_a_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, as whom the tests may run, may write everywhere."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="you may not write into"):
        targets.read(tmp_path / "x.prom")
