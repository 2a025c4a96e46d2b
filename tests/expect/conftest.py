from __future__ import annotations

import fixed_shares
import pytest

from acceptance.expect import limit_book


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derived limits have the numbers of `fixed_shares`: a test of their arithmetic."""
    fixed = fixed_shares.book()
    monkeypatch.setattr(limit_book, "book", lambda: fixed)
