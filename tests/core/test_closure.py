"""What the fold imports: the rules of a verdict, and nothing that only others need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# With the kinds of components, and what a plan holds of the accepted run.
LINES = 3_360
_COUNT = """
import sys, acceptance.core.fold
found = {name: module.__file__ for name, module in sys.modules.items()
         if name.partition(".")[0] == "acceptance"}
for name in sorted(found):
    with open(found[name], encoding="utf-8") as file:
        print(name, sum(1 for _ in file))
"""


def test_the_fold_stands_on_few_lines_of_core_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert [name for name in lines if not name.startswith("acceptance.core")] == ["acceptance"]
    assert sum(lines.values()) < LINES, lines
