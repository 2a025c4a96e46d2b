from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_on_cpu import Built, shared

from acceptance.loads.card import FOLDER

FAKE = Path(__file__).parent / "fake_torch"


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The kernels of the test's file, which it names KERNELS, built for the processor."""
    return shared(FOLDER / f"{request.module.KERNELS}.cu", tmp_path_factory)


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
