"""Unknown kernel messages of a run: which are news, and of what; and whom an Xid suspects."""

from __future__ import annotations

import pytest
from cases import each

from acceptance.core.message import Message
from acceptance.core.parts import Component, Function, Gpu
from acceptance.core.record import Note, Suspicion
from acceptance.observe import kmsg
from acceptance.observe.event import KernelEvent
from acceptance.observe.kernel_line import KernelLine
from acceptance.observe.part_names import PartNames
from acceptance.watch import host
from acceptance.watch.event_log import suspicion
from acceptance.watch.host import UnknownLines
from acceptance.watch.targets import WatchTarget

GPU, OTHER = Function("0000:01:00.0"), Function("0000:41:00.0")
ODD = "nvidia 0000:01:00.0: state {} is odd"


@pytest.fixture
def lines() -> UnknownLines:
    return UnknownLines(PartNames({GPU: ["0000:01:00.0"], OTHER: ["0000:41:00.0"]}))


def line(text: str, level: int | None = 3, *, foreign: bool = False) -> KernelLine:
    return KernelLine(text, 12.0, stamped=True, foreign=foreign, level=level)


def test_an_error_of_a_part(lines: UnknownLines) -> None:
    found = lines.read(line(ODD.format(7)))
    assert isinstance(found, KernelEvent)
    assert (found.kind, found.severity, found.hardware) == ("unknown", "error", False)
    assert (found.component, found.text, found.time) == (GPU, ODD.format(7), 12.0)


@each(
    "one",
    [
        line(ODD.format(7), 4),
        line(ODD.format(7), None),
        line(ODD.format(7), foreign=True),
        line("nvidia 0000:01:00.0: enabling device (0140 -> 0142)"),
    ],
)
def test_what_is_no_error_or_harmless(one: KernelLine) -> None:
    assert UnknownLines(PartNames({GPU: ["0000:01:00.0"]})).read(one) is None


def test_a_program_may_write_to_the_kernels_log_too(lines: UnknownLines) -> None:
    text = "systemd[1]: dev-disk-0000:01:00.0.device: job timed out"
    program, kernel = kmsg.as_lines(kmsg.parse_records(f"27,1,9,-;{text}\n3,2,9,-;{text}\n"))
    assert lines.read(program) is None
    assert isinstance(lines.read(kernel), KernelEvent)


def test_a_message_that_came_before_the_run_is_no_news(lines: UnknownLines) -> None:
    lines.before([line(ODD.format(7)), line("odd 1"), line("nvidia 0000:41:00.0: odd", 6)])
    assert lines.read(line(ODD.format(1234))) is None
    assert lines.read(line("odd 2")) is None
    assert lines.read(line(ODD.format(7).replace(":01:", ":41:"))) is not None
    assert lines.read(line("nvidia 0000:41:00.0: odd")) is not None


def test_one_that_names_no_part_is_noted_once(
    lines: UnknownLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lines.read(line("odd 1")) == Note(Message("unknown_line", {"text": "odd 1"}))
    assert lines.read(line("odd 2")) is None
    monkeypatch.setattr(host, "MOST_NOTES", 1)
    assert lines.read(line("even odder")) is None


TARGETS = (
    WatchTarget(Gpu(0), None, "0000:01:00.0"),
    WatchTarget(Gpu(1), None, "00000000:41:00.0"),
)


@each(
    "code, where, text, expected",
    [
        (31, OTHER, "31, pid=4121, name=gpu_burn, Ch 1", Suspicion(Gpu(1), 4121, "gpu_burn")),
        (31, GPU, "31, pid='<unknown>', name=<unknown>, Ch 1", Suspicion(Gpu(0))),
        (31, GPU, "31, pid='77', name=x y, Ch 1", Suspicion(Gpu(0), 77, "x y")),
        (31, GPU, "31, pid=77, Ch 1", Suspicion(Gpu(0), 77)),
        (45, GPU, "45", Suspicion(Gpu(0), consequence=True)),
        (79, GPU, "79, pid=4121, name=gpu_burn", None),
        (31, Function("0000:81:00.0"), "31", None),
        (31, None, "31", None),
    ],
)
def test_whom_an_xid_suspects(
    code: int, where: Component | None, text: str, expected: Suspicion | None
) -> None:
    assert suspicion("xid", code, where, text, TARGETS) == expected
