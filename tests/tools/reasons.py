"""What a parser's reason says in English."""

from __future__ import annotations

from typing import Protocol

from acceptance.core.message import Text
from acceptance.wording import words


class _Judged(Protocol):
    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> Text: ...


def why_of(output: _Judged) -> str:
    """The reason in words."""
    return words.text(output.reason)


def require(output: _Judged, outcome: str, reason: str = "") -> None:
    """The outcome, with this in its reason."""
    assert (output.outcome, reason in why_of(output)) == (outcome, True), why_of(output)
