"""What our own loads say of a disk's files, as the storage checks journal it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from acceptance.core.component import Component
from acceptance.core.message import Text
from acceptance.core.parts import Part
from acceptance.core.unmeasured import Gap
from acceptance.loads.miscompare import FailedFile, WrongFile
from acceptance.loads.protocol import LoadOutput, LoadReading
from acceptance.suites import storage
from acceptance.suites.fixtures.storage import StorageLoads
from acceptance.tools.load_output import LoadFailed
from acceptance.wording import words

ONE: Component = Part("disk", "nvme0n1")
OTHER: Component = Part("disk", "nvme1n1")
FAILED = FailedFile(
    component=ONE, check="file", operation="write", file="shard-0.tmp", error="EIO", offset=4096
)
WRONG = WrongFile(
    component=ONE,
    check="checkpoint",
    file="shard-0",
    number=0,
    block=1,
    offset=4096,
    words=1,
    unwritten=0,
    want="00",
    got="01",
    xor="01",
)


class Journal:
    """Stands for `check`: keeps what it is given, by measurement."""

    def __init__(self) -> None:
        self.values: dict[str, dict[Component, float]] = {}
        self.skipped: dict[str, dict[Component, str]] = {}
        self.notes: dict[str, dict[Component, str]] = {}

    def __call__(
        self,
        name: str,
        values: Mapping[Component, float],
        *,
        skipped: Mapping[Component, Gap] | None = None,
        notes: Mapping[Component, Text | None] | None = None,
    ) -> None:
        self.values[name] = dict(values)
        self.skipped[name] = {one: words.text(gap.reason) for one, gap in (skipped or {}).items()}
        self.notes[name] = {one: words.text(why) for one, why in (notes or {}).items() if why}


def journalled(loads: StorageLoads) -> Journal:
    check: Any = Journal()
    storage._files(loads, ("rate",), "wrong", lambda *_: None, check)
    found: Journal = check
    return found


def whole(component: Component) -> LoadOutput:
    readings = (
        LoadReading("rate", "s", component, 2.0),
        LoadReading("wrong", "count", component, 0.0),
    )
    return LoadOutput("storage_checkpoint", {}, readings, (), ())


def died(*wrong: FailedFile | WrongFile) -> LoadFailed:
    return LoadFailed("load_failed_silently", wrong, load="storage_checkpoint", why="it died")


def test_what_the_disk_failed_is_no_wrong_result() -> None:
    found = journalled(StorageLoads({OTHER: whole(OTHER)}, {ONE: died(FAILED)}))
    assert found.values == {
        "rate": {OTHER: 2.0},
        "wrong": {OTHER: 0.0},
        "storage_failed": {OTHER: 0.0, ONE: 1.0},
    }
    told = "the disk failed: write of shard-0.tmp ended with EIO at byte 4096"
    assert found.notes["storage_failed"][ONE].startswith(told)
    assert set(found.skipped["rate"]) == set(found.skipped["wrong"]) == {ONE}


def test_wrong_results_before_that_are_counted() -> None:
    found = journalled(StorageLoads({}, {ONE: died(WRONG, FAILED)}))
    assert found.values == {"rate": {}, "wrong": {ONE: 1.0}, "storage_failed": {ONE: 1.0}}
    assert (found.skipped["wrong"], list(found.notes["wrong"])) == ({}, [ONE])


def test_a_load_that_died_by_itself_is_an_error() -> None:
    with pytest.raises(LoadFailed) as caught:
        journalled(StorageLoads({}, {ONE: died(WRONG)}))
    assert caught.value.miscompares == (WRONG,)
    assert str(ONE) in str(caught.value)
