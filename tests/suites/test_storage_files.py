"""What our own loads say of a disk's files, as the storage checks journal it."""

from __future__ import annotations

from collections.abc import Mapping

from load_texts import printed
from suite_box import Said, ask
from test_components import DISK_1 as ONE
from test_components import DISK_2 as TWO
from test_storage_ratios import planned

from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.record import Measured
from acceptance.loads.miscompare import FailedFile, WrongFile
from acceptance.loads.protocol import parse
from acceptance.loads.storage.contract import LEAST, Checkpoint
from acceptance.session.loads import LoadFailed, Place, Results
from acceptance.suites import storage

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


CHECK = "storage.checkpoint"
WRITE, READ, COUNT = (f"storage_checkpoint_{name}" for name in ("write", "read", "miscompares"))


def journalled(failed: Mapping[Component, LoadFailed]) -> Said:
    """What the check says, with a load that ran whole on each other disk."""
    asked = {one: Checkpoint(folder="/d", component=str(one), bytes=LEAST) for one in (ONE, TWO)}
    outputs = {one: parse(printed(asked[one], {})) for one in asked if one not in failed}
    results = Results((Place(ONE), Place(TWO)), outputs, failed)
    return ask(planned(CHECK), CHECK, storage.test_checkpoint, run_on_disks=lambda *_words: results)


def died(*wrong: FailedFile | WrongFile) -> LoadFailed:
    return LoadFailed("load_failed_silently", wrong, load="storage_checkpoint", why="it died")


def test_what_the_disk_failed_is_no_wrong_result() -> None:
    found = journalled({ONE: died(FAILED)})
    assert found.outcome == "fail"
    assert [found.measured(name) for name in (WRITE, COUNT, "storage_failed")] == [
        {TWO: 1.0},
        {TWO: 0.0},
        {TWO: 0.0, ONE: 1.0},
    ]
    (note,) = [one.note for one in found.written if isinstance(one, Measured) and one.note]
    assert isinstance(note, Message)
    assert (note.code, note.values["offset"]) == ("storage_disk_failed", 4096)
    assert found.skipped() == {(name, ONE) for name in (WRITE, READ, COUNT)}


def test_wrong_results_before_that_are_counted() -> None:
    found = journalled({ONE: died(WRONG, FAILED), TWO: died(FAILED)})
    assert found.outcome == "fail"
    assert [found.measured(name) for name in (WRITE, COUNT, "storage_failed")] == [
        {},
        {ONE: 1.0},
        {ONE: 1.0, TWO: 1.0},
    ]
    assert found.skipped() == {(name, ONE) for name in (WRITE, READ)} | {
        (name, TWO) for name in (WRITE, READ, COUNT)
    }


def test_a_load_that_died_by_itself_is_an_error() -> None:
    found = journalled({ONE: died(WRONG)})
    assert (found.outcome, found.skipped()) == ("error", set())
    assert str(ONE) in found.message
    assert found.measured(COUNT) == {ONE: 1.0, TWO: 0.0}
    assert found.measured("storage_failed") == {TWO: 0.0}
