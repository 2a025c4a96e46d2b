"""A site's own checks in a plan: where they came from, and what binds them. Pure."""

from __future__ import annotations

import msgspec


class FamilyFile(msgspec.Struct, frozen=True):
    """A TOML file of the site: its name, and its text as the run had it."""

    name: str
    text: str


class SiteChecks(msgspec.Struct, frozen=True):
    """The site's own checks of a run.

    `folder` is where they were, `digest` the `folder_digest` of its files. `families` are its TOML
    files: what a report says of a measurement of theirs must come from the run itself.
    """

    folder: str
    digest: str
    families: tuple[FamilyFile, ...]
