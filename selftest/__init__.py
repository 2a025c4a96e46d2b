"""The proof of the tester: a catalogue of faulty machines driven through the real harness, and what
it says of each.

It is played with what the tests play with: described machines, a fake NVML library, replayed tools.
They lie in `tests/` and are imported from there by their own names, as pytest does (`pythonpath` in
tox.ini).
"""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1] / "tests"
for _folder in (
    "",
    "core",
    "expect",
    "loads",
    "history",
    "loads",
    "machine",
    "diagnosis",
    "observe",
    "reports",
    "e2e",
    "nvml",
    "station",
    "tools",
):
    if (_place := str(_TESTS / _folder)) not in sys.path:
        sys.path.append(_place)
