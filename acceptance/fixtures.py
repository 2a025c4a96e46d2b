"""Where the data files are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


class FixtureMissing(Exception):
    """A data file of rigproof's own is not where it should be: the installation is incomplete."""


def locate(name: str) -> Path:
    """The path of `name` ("models", "machines", "profiles.toml", ...), in a wheel and in a checkout alike.

    Raises FixtureMissing when it is in neither.
    """
    for root in (_PACKAGE / "_fixtures", _PACKAGE.parent / "fixtures"):
        if (root / name).exists():
            return root / name
    raise FixtureMissing(f"rigproof's own data file {name!r} is missing: install rigproof again")
