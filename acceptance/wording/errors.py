"""The base of errors whose message every language words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acceptance.core.message import Coded, Gap, Message, Text, Unmeasured, UserError, Value
from acceptance.wording import words


class WordedError(Coded):
    """An error that is told to the user; its text is the English wording.

    One that ends a verb ends it with exit code 3, but for a mistake of the user.
    """

    def __str__(self) -> str:
        return words.message(self.message)


class WordedUserError(WordedError, UserError):
    """A mistake in the user's arguments or files, as a message: exit code 2."""


class NotMeasurable(WordedError):
    """What was asked for could not be read; it says which of the three it is.

    This error never means that the part is sound.
    """

    def __init__(self, code: str, why: Unmeasured, /, **values: Value | None) -> None:
        super().__init__(code, **values)
        self.why = why

    @property
    def gap(self) -> Gap:
        """The gap that it leaves."""
        return Gap(self.why, self.message)


def said(error: Exception) -> Text:
    """What an error says: its message, or the words of somebody else."""
    return error.message if isinstance(error, Coded) else str(error)


def behind(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, each once, from whichever attribute; the nearest first."""
    found: list[BaseException] = []
    queue: list[object] = [error]
    while queue:
        one = queue.pop(0)
        if isinstance(one, BaseException) and not any(one is other for other in found):
            found.append(one)
            queue += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
            yield one


def each_once(told: Iterable[Message]) -> tuple[Message, ...]:
    """The messages in their order, without those that say the same again."""
    found: list[Message] = []
    for one in told:
        if one not in found:
            found.append(one)
    return tuple(found)
