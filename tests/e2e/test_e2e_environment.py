"""What stands about in the user's environment and working directory changes no verdict."""

from __future__ import annotations

import sys
from pathlib import Path

import fakes
import pytest
from rig import Rig
from run_left import Run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

ONLY = "cpu.stress_ng,gpu"
STARTS = {
    "rigproof": [str(Path(sys.executable).with_name("rigproof"))],
    "python -m": [sys.executable, "-m", "acceptance"],
}
# Modules that would be taken in the place of the real ones; each leaves a mark where it was
# imported.
EVIL = (
    "import pathlib, os\npathlib.Path({mark!r}).open('a').write('{name} was "
    "imported\\n')\nos._exit(0)\n"
)


def spoil(rig: Rig, folder: Path) -> Path:
    """Put everything into the folder that could steer pytest or Python; returns the file that
    tells who was taken in.
    """
    mark = rig.home / "taken-in"
    for name in ("pytest", "msgspec", "evil", "conftest", "_pytest", "numpy", "pluggy"):
        (folder / f"{name}.py").write_text(EVIL.format(mark=str(mark), name=name), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -k nothing -p evil\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        '[tool.pytest]\naddopts = ["-k", "nothing"]\n', encoding="utf-8"
    )
    return mark


def strange(rig: Rig, start: list[str], tool: str) -> Run:
    fakes.write(rig.fakes, "stress-ng", tool)
    mark = spoil(rig, rig.work)
    elsewhere = rig.home / "elsewhere"
    elsewhere.mkdir()
    spoil(rig, elsewhere)
    (elsewhere / "sitecustomize.py").write_text(
        "import os\nos.environ['PYTEST_ADDOPTS'] = '-k nothing'\n", encoding="utf-8"
    )
    variables = {
        "PYTEST_ADDOPTS": "-k nothing",
        "PYTEST_PLUGINS": "evil",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "",
        "PYTHONPATH": str(elsewhere),
        "PYTHONOPTIMIZE": "2",
        "PYTHONWARNINGS": "error",
        "PYTHONSTARTUP": str(elsewhere / "evil.py"),
        "LC_ALL": "C",
        "PYTHONIOENCODING": "ascii",
        "COLUMNS": "20",
    }
    run = rig.run(rig.argv(only=ONLY), variables=variables, program=start)
    run.assert_agrees()
    assert not mark.exists(), mark.read_text(encoding="utf-8")
    assert set(run.ended()) == {"cpu.stress_ng", "gpu.present"}
    return run


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("tool", "code"), [("healthy", 0), ("failing text, exit 0", 1)])
def test_a_good_machine_stays_good_and_a_bad_one_bad(
    rig: Rig, start: str, tool: str, code: int
) -> None:
    assert strange(rig, STARTS[start], tool).code == code


def test_sessions_are_not_those_of_another_package(rig: Rig) -> None:
    """Nobody can keep a first `import acceptance` from being PYTHONPATH's; what rigproof itself
    starts must be rigproof.
    """
    fakes.write(rig.fakes, "stress-ng", "failing text, exit 0")
    evil = rig.home / "evil" / "acceptance"
    evil.mkdir(parents=True)
    mark = rig.home / "taken-in"
    for name in ("__init__", "plugin", "__main__"):
        (evil / f"{name}.py").write_text(
            EVIL.format(mark=str(mark), name=f"acceptance {name}"), encoding="utf-8"
        )
    run = rig.run(
        rig.argv(only=ONLY),
        variables={"PYTHONPATH": str(evil.parent)},
        program=[sys.executable, "-I", "-m", "acceptance"],
    )
    run.assert_agrees()
    assert not mark.exists()
    assert run.verdict["verdict"] == "FAIL"
