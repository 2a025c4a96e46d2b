"""Base of the tables of our own TOML files, and of the lines of loads: every key must be known."""

from __future__ import annotations

from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1)]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table or a line in which every key must be known."""
