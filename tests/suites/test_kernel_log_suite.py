"""What the kernel logged before a run warns where the same message under load is a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from acceptance.core.message import Message
from acceptance.core.parts import SYSTEM
from acceptance.core.record import Event
from acceptance.observe.event import PartKind
from acceptance.session.check import Check
from acceptance.suites import kernel_log

BAR = "pci 0000:01:00.0: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign"
ASSIGNED = "pci 0000:01:00.0: BAR 1 [mem 0x80000000-0x8fffffff 64bit pref]: assigned"
REFUSED = (
    "DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x0 [fault reason 0x05] PTE"
)
FIRMWARE = "mpt3sas_cm0: fault_state(0x2622)!"
TESTED: Mapping[str, PartKind] = {"0000:01:00.0": "gpu"}


class Readings(Check):
    """Takes the place of the check: what it was given."""

    def __init__(self) -> None:
        self.count = -1.0
        self.note: Any = None

    def __call__(
        self, name: str, values: Mapping[Any, float], *, notes: Mapping[Any, Any], **_: object
    ) -> None:
        self.count, self.note = values[SYSTEM], notes[SYSTEM]

    @property
    def told(self) -> tuple[Any, ...]:
        """The sentences of the note."""
        assert isinstance(self.note, Message)
        return cast("tuple[Any, ...]", self.note.values["text"])


def logged(root: Path, *texts: str) -> Path:
    """A root whose kernel log has these messages."""
    (root / "dev").mkdir()
    lines: Iterator[str] = (f"3,{number},{number},-;{text}\n" for number, text in enumerate(texts))
    (root / "dev/kmsg").write_text("".join(lines))
    return root


def before(root: Path, tested: Mapping[str, PartKind]) -> tuple[Readings, list[Event]]:
    readings, events = Readings(), list[Event]()
    kernel_log.test_since_boot(root, tested, events.append, readings)
    return readings, events


def during(root: Path, tested: Mapping[str, PartKind]) -> float:
    readings = Readings()
    kernel_log.test_during_run(root, 0, tested, readings)
    return readings.count


def test_a_fault_of_firmware_counts_before_the_run_too(tmp_path: Path) -> None:
    root = logged(tmp_path, "Linux", FIRMWARE, REFUSED)
    assert before(root, TESTED)[0].count == 1


def test_what_sound_machines_print_is_noted_before_the_run(tmp_path: Path) -> None:
    root = logged(tmp_path, "Linux", REFUSED, BAR, ASSIGNED)
    found, events = before(root, {})
    assert (found.count, events) == (0, [])
    since, *noted = found.told
    assert since.code == "messages_since"
    assert noted == [Message("kernel_fault", {"event": "iommu dmar", "text": REFUSED})]


def test_of_a_part_under_test_it_warns_once(tmp_path: Path) -> None:
    root = logged(tmp_path, "Linux", REFUSED, BAR, ASSIGNED, REFUSED)
    found, events = before(root, TESTED)
    assert found.count == 0
    assert len(found.told) == 1
    assert [(one.kind, str(one.component), one.severity, one.boot_s) for one in events] == [
        ("iommu", "0000:01:00.0", "warning", None)
    ]


def test_it_counts_in_the_run_for_a_part_under_test(tmp_path: Path) -> None:
    root = logged(tmp_path, "Linux", REFUSED, BAR, ASSIGNED)
    assert during(root, TESTED) == 2
    assert during(root, {}) == 0
