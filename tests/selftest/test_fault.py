"""The catalogue of faults: what is in it, and what a file that is wrong is told."""

from __future__ import annotations

from pathlib import Path

import fake_driver
import pytest
from cases import each
from synthetic_machines import collected

from selftest.fault import CatalogueError, read

GOOD = """\
what = "a fault"
only = "cpu.stress_ng"
code = 1
[[expect]]
check = "cpu.stress_ng"
says = "measured 1"
"""


def test_every_fault_names_machines_and_checks_that_there_are() -> None:
    described = {path.stem for path in fake_driver.DESCRIPTIONS.glob("*.json")}
    ids = {one.id for one in collected()}
    for named in read():
        assert named.fault.machine is None or named.fault.machine in described, named.name
        for expect in named.fault.expect:
            assert expect.check in {"run", "start"} or expect.check in ids, (
                named.name,
                expect.check,
            )


def test_the_code_fits_what_is_expected() -> None:
    for named in read():
        outcomes = {one.outcome for one in named.fault.expect}
        due = 1 if "fail" in outcomes else named.fault.code if "refused" in outcomes else 3
        due = 0 if outcomes == {"partial"} else due
        assert named.fault.code == due, named.name
        assert ("refused" in outcomes) == any(one.check == "start" for one in named.fault.expect), (
            named.name
        )


def laid(folder: Path, text: str, family: str = "links") -> Path:
    (folder / family).mkdir(exist_ok=True)
    (folder / family / "one.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_file_is_read(tmp_path: Path) -> None:
    (one,) = read(laid(tmp_path, GOOD, "lying-set-up"))
    assert (one.family, one.name, one.fault.seam) == ("lying set-up", "one", "machine")


@each(
    "text, said",
    [
        ("what = ", "one.toml"),
        (GOOD.replace("code = 1", "code = 0"), "code"),
        (GOOD + "colour = 1\n", "colour"),
        (GOOD + "[scratch]\n", "take station = host"),
        (GOOD.replace('says = "measured 1"', 'says = "."'), "would be found in any text"),
        (GOOD.replace('says = "measured 1"', 'says = "(measured 1"'), "no regular expression"),
        (GOOD[: GOOD.index("[[")] + "expect = []\n", "says nothing of what must be said"),
        (GOOD + GOOD[GOOD.index("[[") :], "two [[expect]] of one name"),
        (GOOD + 'outcome = "partial"\ncause = "heat"\n', "which has no finding"),
        (
            GOOD.replace("code = 1", 'code = 1\ntools = { gpu-burn = "is FAULTY" }'),
            "names no machine",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CatalogueError) as error:
        read(laid(tmp_path, text))
    assert "links/one.toml: " in str(error.value)
    assert said in str(error.value)


def test_a_family_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogueError,
        match="there is no family 'gremlins' of faults: choose one of wrong results,",
    ):
        read(laid(tmp_path, GOOD, "gremlins"))
