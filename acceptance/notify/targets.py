"""Notification targets from the command line, checked before anything is heated."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from acceptance.core import regular_file
from acceptance.core.message import UserError
from acceptance.process import command
from acceptance.reports.text import one_line

SUFFIX = ".prom"  # the textfile collector reads only files with this suffix
SHORTEST_SECRET = 16  # bytes; a shorter one could be guessed from one signature
MOST_BYTES = 4096  # of an address or a secret; a larger file is the wrong file


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address that a verdict is posted to, and the secret that signs it.

    Both may be secret: neither is ever printed.
    """

    url: str = field(repr=False)
    secret: bytes | None = field(default=None, repr=False)

    @property
    def safe_address(self) -> str:
        """The part of the address that is safe to print.

        An address's path, query and user name are often its key.
        """
        return _safe_address(urlsplit(self.url))


@dataclass(frozen=True, slots=True)
class NotificationTargets:
    """The notification targets of a run.

    `textfile` is the file for node-exporter, `on_fail` the argv of the command for FAIL and
    UNJUDGED, `webhook` the address for every verdict.
    """

    textfile: Path | None = None
    on_fail: tuple[str, ...] = ()
    webhook: Webhook | None = None


def read(
    textfile: Path | None = None,
    on_fail: str | None = None,
    webhook: str | None = None,
    secret_file: Path | None = None,
) -> NotificationTargets:
    """Check the settings as they were typed. Raises UserError."""
    if secret_file is not None and webhook is None:
        raise UserError(
            "--webhook-secret-file signs what --webhook posts, which is not given: give both "
            "or neither"
        )
    return NotificationTargets(
        textfile=_textfile(textfile) if textfile is not None else None,
        on_fail=_command(on_fail) if on_fail is not None else (),
        webhook=_webhook(webhook, secret_file) if webhook is not None else None,
    )


def usable(
    textfile: Path | None = None,
    on_fail: str | None = None,
    webhook: str | None = None,
    secret_file: Path | None = None,
) -> tuple[NotificationTargets, tuple[str, ...]]:
    """The settings that can be used, and one sentence about each that cannot.

    For the failure unit, the last chance to notify anyone: one wrong setting must not disable the
    others.
    """
    wrong: list[str] = []

    def one(**given: Any) -> NotificationTargets:
        try:
            return read(**given)
        except UserError as error:
            wrong.append(str(error))
            return NotificationTargets()

    file, command_ = one(textfile=textfile), one(on_fail=on_fail)
    hook = one(webhook=webhook, secret_file=secret_file)
    return NotificationTargets(file.textfile, command_.on_fail, hook.webhook), tuple(wrong)


def _textfile(path: Path) -> Path:
    if path.suffix != SUFFIX or path.name == SUFFIX:
        raise UserError(
            f"--textfile {path}: node-exporter reads files named *{SUFFIX} alone: call it "
            f"rigproof{SUFFIX}"
        )
    if not path.parent.is_dir():
        raise UserError(
            f"--textfile {path}: there is no folder {path.parent}: give the one that "
            "node-exporter was started with "
            "(--collector.textfile.directory)"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UserError(
            f"--textfile {path}: you may not write into {path.parent}: let its owner allow "
            "it, or run as root"
        )
    return path


def _command(text: str) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(text))
    except ValueError as error:
        raise UserError(f"--on-fail {text!r} is no command ({error}): close its quotes") from error
    if not argv:
        raise UserError(
            "--on-fail is empty: give a command, such as --on-fail 'mail -s rigproof root'"
        )
    try:
        return (command.find(argv[0]), *argv[1:])
    except command.ProgramMissing as error:
        raise UserError(f"--on-fail: {error} (a command is started without a shell)") from error


def _webhook(text: str, secret_file: Path | None) -> Webhook:
    url = (
        _content(Path(text[1:]), "--webhook").decode("utf-8", "replace")
        if text.startswith("@")
        else text
    )
    if not url.isascii() or not url.isprintable() or " " in url:
        raise UserError(
            "--webhook: the address holds a space or another letter that none may hold: copy "
            "it again, whole"
        )
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, or a bracket that is not closed
        known = False
    if not known:
        raise UserError(
            "--webhook: that is no address: give https://HOST/..., or @FILE for a file that "
            "holds it"
        )
    secret = _content(secret_file, "--webhook-secret-file") if secret_file is not None else None
    if secret is not None and len(secret) < SHORTEST_SECRET:
        raise UserError(
            f"--webhook-secret-file {secret_file}: holds {len(secret)} bytes, which is too few "
            "for a secret: "
            f"write at least {SHORTEST_SECRET}, such as `openssl rand -hex 32` prints"
        )
    return Webhook(url, secret)


def _content(path: Path, option: str) -> bytes:
    """The content of a file that other users cannot access, without surrounding white space.

    Raises UserError, also for an empty file or one larger than MOST_BYTES.
    """
    try:
        with regular_file.open_read(path, regular_file.MACHINE_FILE) as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MOST_BYTES + 1).strip()
    except OSError as error:
        raise UserError(
            f"{option} {path}: cannot be read ({error.strerror}): give the file that holds it"
        ) from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise UserError(
            f"{option} {path}: everybody may read it or write to it: "
            f"`chmod 600 {shlex.quote(str(path))}` first"
        )
    if not content or len(content) > MOST_BYTES:
        raise UserError(
            f"{option} {path}: is empty or has more than {MOST_BYTES} bytes: write the one "
            "line into it"
        )
    return content


def _safe_address(parts: SplitResult) -> str:
    host = one_line(parts.hostname or "", 100)
    port = f":{parts.port}" if parts.port is not None else ""
    rest = "/..." if parts.path.strip("/") or parts.query else "/"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{rest}"
