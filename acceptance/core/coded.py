"""The base of errors that say a code: a program that words nothing raises them too."""

from __future__ import annotations

from acceptance.core.message import Message, Value, known


class Coded(Exception):
    """An error that says a code with the values that are known."""

    def __init__(self, code: str, /, **values: Value | None) -> None:
        super().__init__(code)
        self.message = Message(code, known(**values))

    def __str__(self) -> str:
        return ": ".join([self.message.code, *map(str, self.message.values.values())])
