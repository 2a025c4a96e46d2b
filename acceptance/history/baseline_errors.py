"""What can be wrong with a baseline, each as one sentence with its cure."""

from __future__ import annotations


class BaselineRefused(Exception):
    """What was asked for cannot be: a run that is no whole PASS of this machine, a baseline that is there already, or none."""


class BaselineUnsound(Exception):
    """The baseline cannot be read, believed or written. A run that should have been held against it is unjudged for this reason."""
