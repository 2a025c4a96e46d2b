"""A site's own checks are collected before the run, and a mistake in one is told with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from product_session import forked
from site_box import SiteBox

from acceptance.core.message import UserError
from acceptance.core.parts import MACHINE, Component
from acceptance.process import command
from acceptance.run import site_collection, site_folder

ROOT = Path("/")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteBox:
    def run(argv: Any, *, env: Any, cwd: Path, **_: object) -> command.ProgramResult:
        return forked(argv, env, cwd, tmp_path)

    monkeypatch.setattr(command, "run", run)
    return SiteBox(tmp_path / "checks")


def test_a_sound_folder(box: SiteBox) -> None:
    box.check("mount")
    box.check("licence")
    found = site_collection.collect(box.folder, ROOT)
    assert [check.id for check in found.checks] == ["site.licence.fast", "site.mount.fast"]
    (check,) = (one for one in found.checks if one.id == "site.mount.fast")
    assert (check.session, check.seconds) == ("site", 1.0)
    assert check.title == "Something of the site is fast enough."
    assert [one.name for one in check.measures] == ["site_mount"]
    assert found.bound.digest == site_folder.read(box.folder).checks.digest
    classes: dict[str, tuple[Component, ...]] = {"machine": (MACHINE,)}
    site_collection.require_classes(found, classes)
    assert site_collection.not_due(found, classes) == []
    assert len(site_collection.not_due(found, {"machine": ()})) == 2
    with pytest.raises(UserError, match="no class of components"):
        site_collection.require_classes(found, {"cpu": ()})


WRONG = {
    "syntax": ("def test_fast(check):", "def test_fast(check:", r"line 6: is not Python"),
    "imports": ("import pytest", "import pytest, nothere", "line 1: cannot be imported .*nothere"),
    "raises": ("import pytest", "import pytest; 1 / 0", "line 1: cannot be .*ZeroDivisionError"),
    "plugins": ("import pytest\n", "import pytest\npytest_plugins = 'x'\n", "line 2: names plug"),
    "fixture": ("(check)", "(check, programs)", "asks for 'programs'.*did you mean program"),
    "nocheck": ("(check)", "()", "does not take the fixture check"),
    "nocosts": ("@pytest.mark.costs(1)\n", "", "does not say how long it takes"),
    "badcosts": ("costs(1)", "costs(-1)", "costs is costs"),
    "morecosts": ("costs(1)", "costs(1, heats=True)", "costs is costs"),
    "nothing": ('@pytest.mark.measures("site_nothing")\n', "", "measures nothing"),
    "unknown": ('measures("site_unknown")', 'measures("site_unknwn")', "did you mean site_unknown"),
    "twice": (
        'measures("site_twice")',
        'measures("site_twice", "site_twice")',
        "a measurement twice",
    ),
    "undeclared": (
        'check("site_undeclared"',
        'check("site_else"',
        "line 8: test_fast checks 'site_els",
    ),
    "notitle": ('"""Something of the site is fast enough."""', "pass", "has no docstring"),
    "timeout": (
        "@pytest.mark.costs(1)",
        "@pytest.mark.timeout(9)\n@pytest.mark.costs(1)",
        "mark timeout",
    ),
    "xfails": ("@pytest.mark.costs(1)", "@pytest.mark.xfail\n@pytest.mark.costs(1)", "mark xfail"),
    "sessions": ("@pytest.mark.costs(1)", "@pytest.mark.gate\n@pytest.mark.costs(1)", "mark gate"),
    "waits": ("def test_fast", "async def test_fast", "is asynchronous"),
    "empty": ("def test_fast", "def fast", "holds no check"),
    "again": (
        "@pytest.mark.costs(1)",
        "def test_fast():\n    pass\n\n@pytest.mark.costs(1)",
        "defined again",
    ),
    "odd": (
        "@pytest.mark.costs(1)",
        "@pytest.mark.parametrize('a', [1], ids=['a,b'])\n@pytest.mark.costs(1)",
        "hard to name",
    ),
}


def test_every_mistake_is_told_with_file_and_line(box: SiteBox) -> None:
    for stem, (old, new, _) in WRONG.items():
        box.wrong(stem, old, new)
    path = box.folder / "odd.py"
    path.write_text(path.read_text().replace("(check)", "(check, a)"))
    box.check("method")
    path = box.folder / "method.py"
    path.write_text(
        path.read_text() + "\n\nclass TestIt:\n    def test_it(self, check):\n        pass\n"
    )
    found = site_collection._collected(site_folder.read(box.folder), ROOT)
    assert [check.id for check in found.checks] == ["site.again.fast", "site.method.fast"]
    for stem, (_, _, told) in {**WRONG, "method": ("", "", "is a method")}.items():
        (own,) = [one for one in found.mistakes if re.match(rf"{stem}\.py\b", one)]
        assert re.search(told, own), own
        assert stem == "empty" or re.match(rf"{stem}\.py, line \d+: ", own), own
    with pytest.raises(UserError, match=r"22 mistakes, so nothing was started: .*; and 12 more$"):
        site_collection.collect(box.folder, ROOT)


def test_a_wrong_family_is_told(box: SiteBox) -> None:
    box.wrong("mount", "high =", "hihg =", ".toml")
    with pytest.raises(UserError, match=r"a mistake, so nothing was started: mount.toml, line 1"):
        site_collection.collect(box.folder, ROOT)


def test_a_file_that_ends_the_collection(box: SiteBox) -> None:
    for end in ("sys.exit(3)", "os._exit(0)"):
        box.wrong("mount", "import pytest", f"import os, sys; {end}")
        with pytest.raises(UserError, match="the files could not be collected"):
            site_collection.collect(box.folder, ROOT)


def test_torch_is_for_programs(box: SiteBox) -> None:
    box.wrong("mount", "import pytest", "import sys, pytest; sys.modules['torch'] = sys")
    with pytest.raises(UserError, match="torch was loaded by one of these files"):
        site_collection.collect(box.folder, ROOT)
