"""Files and calls that are refused, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acceptance.core.message import Message


def refusal(read: Callable[[Path], object], path: Path, text: str, error: type[Exception]) -> str:
    """Why a file with this text is not read; its name comes first."""
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    with pytest.raises(error) as refused:
        read(path)
    assert str(refused.value).startswith(path.name)
    return str(refused.value)


def raised(error: type[Exception], call: Callable[..., object], *given: Any, **named: Any) -> str:
    """What the error says that a call must end with."""
    with pytest.raises(error) as caught:
        call(*given, **named)
    return str(caught.value)


def assert_raises(
    error: type[Exception],
    call: Callable[..., object],
    *given: Any,
    match: str | None = None,
    **named: Any,
) -> None:
    """A call must end with this error, and its words match."""
    with pytest.raises(error, match=match):
        call(*given, **named)


def refused(
    kind: type[Exception], call: Callable[..., object], *given: object, **named: object
) -> Message:
    """The message of the error that a call ends with."""
    with pytest.raises(kind) as error:
        call(*given, **named)
    message = getattr(error.value, "message", None)
    assert isinstance(message, Message)
    return message
