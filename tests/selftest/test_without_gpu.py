"""What needs a GPU says so where there is none, and begins nothing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from selftest import beside_on_gpu, minutes_on_gpu, nights_on_gpu, on_gpu


@pytest.mark.parametrize("module", [beside_on_gpu, minutes_on_gpu, nights_on_gpu, on_gpu])
def test_without_a_gpu_nothing_is_run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    module: ModuleType,
) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    machine = ["--machine", "machine.toml"] if module is nights_on_gpu else []
    assert module.main(["--out", str(tmp_path / "runs"), *machine]) == 2
    assert "no GPU" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
