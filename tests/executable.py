"""Scripts that stand for programs."""

from __future__ import annotations

from pathlib import Path


def executable(path: Path, text: str) -> Path:
    """A file that everybody may run, in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
