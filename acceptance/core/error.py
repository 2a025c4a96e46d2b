"""Errors of one sentence for the user, by the exit code that they end a verb with."""

from __future__ import annotations


class UserError(Exception):
    """A mistake in the user's arguments or files: exit code 2."""


class SetupError(Exception):
    """What rigproof runs on is not as it must be, its own files included: exit code 3."""
