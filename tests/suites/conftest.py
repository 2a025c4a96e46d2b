"""The marks of the product's own checks, which the tests import as functions."""

from __future__ import annotations

import pytest

from acceptance.session.plugin import MARKS


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
