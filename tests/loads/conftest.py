from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAKE = Path(__file__).parent / "fake_torch"


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put the fake in torch's place, with what a test asks of it."""

    def put(**asked: str) -> None:
        for name, value in asked.items():
            monkeypatch.setenv(f"FAKE_TORCH_{name.upper()}", value)
        monkeypatch.syspath_prepend(str(FAKE))
        for name in ("torch", "torch.cuda"):
            monkeypatch.delitem(sys.modules, name, raising=False)

    return put
