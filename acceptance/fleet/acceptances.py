"""FAILs that somebody has accepted, each in a file of its own beside the machine's runs.

A file is written once and never changed. It names the runs that it accepts: a later FAIL counts.
"""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from acceptance.core import plain_text, regular_file
from acceptance.core.message import Message, english
from acceptance.journal import run_folder
from acceptance.run import signature
from acceptance.wording.errors import WordedUserError

FILE = re.compile(r"accepted-20\d\d-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{8}\.json", re.ASCII)
Text = Annotated[str, Meta(min_length=1)]


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True):
    """Who accepted which FAILs of a machine, when and why."""

    schema: Literal[1]
    machine: Text
    runs: Annotated[tuple[Text, ...], Meta(min_length=1)]
    reason: Text
    by: Text
    at: datetime

    def of(self, run: str) -> Message:
        """In a sentence, of one of its runs."""
        values = {"run": run, "by": self.by, "at": f"{self.at:%Y-%m-%d %H:%M}"}
        return Message(
            english(
                "fleet_accepted", "the FAIL of {run} was accepted by {by} on {at} UTC: {reason}"
            ),
            {**values, "reason": self.reason},
        )


_DECODER = msgspec.json.Decoder(Acceptance)


def read(path: Path, signers: Path | None) -> Acceptance:
    """An acceptance. With `signers`, it must be signed by one of them.

    Raises WordedUserError, SignatureError, OSError, and CommandError without ssh-keygen.
    """
    content = regular_file.read(path, regular_file.SMALL_RECORD)
    signed = path.with_name(f"{path.name}.sig").exists()
    if signers is not None and not signed:
        raise WordedUserError(english("acceptance_unsigned", "it is not signed"))
    if signed:
        signature.verify_file(path, signers)
    try:
        found = _DECODER.decode(content)
    except ValueError as error:
        raise WordedUserError(
            english(
                "acceptance_unread",
                "it is no acceptance as `rigproof fleet accept` writes it ({why})",
            ),
            why=str(error),
        ) from error
    if not _says_something(found.reason):
        raise WordedUserError(
            english(
                "acceptance_no_reason",
                "an acceptance needs a reason: say with --reason why the FAIL does not count any "
                "more",
            )
        )
    return found


def write(
    folder: Path, machine: str, runs: Sequence[str], reason: str, key: Path | None
) -> tuple[Path, Acceptance]:
    """Accept the FAILs of these runs in the machine's folder; `key` signs that.

    Raises WordedUserError without a reason, SignatureError, CommandError without ssh-keygen, and
    JournalError where it cannot be written.
    """
    told = plain_text.quote(" ".join(reason.split()), 1000)
    if not _says_something(told):
        raise WordedUserError("acceptance_no_reason")
    now = datetime.now(UTC).replace(microsecond=0)
    made = Acceptance(1, machine, tuple(runs), told, _user(), now)
    content = msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"
    path = folder / f"accepted-{now:%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(4)}.json"
    signed = None if key is None else signature.sign_text(content, key)
    if signed is not None:
        # First: without its file a signature means nothing.
        beside = path.with_name(f"{path.name}.sig")
        run_folder.write_whole(
            beside, signed, then=Message(english("accept_again", "accept it again")), mode=0o444
        )
    run_folder.write_whole(path, content, then=Message("accept_again"), mode=0o444)
    return path, made


def _says_something(reason: str) -> bool:
    return any(letter.isalnum() for letter in reason)


def _user() -> str:
    """Who types this, and where."""
    name = os.environ.get("SUDO_USER") or str(os.getuid())
    with contextlib.suppress(KeyError):  # a user that no list of users has
        name = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    return plain_text.quote(f"{name}@{platform.node()}")
