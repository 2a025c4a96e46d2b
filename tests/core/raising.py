"""Functions that fail, to stand for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def raising(error: BaseException | type[BaseException]) -> Callable[..., NoReturn]:
    """A function that raises this, whatever it is called with."""

    def act(*_: object, **__: object) -> NoReturn:
        raise error

    return act
