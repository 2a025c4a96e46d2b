from __future__ import annotations

import html
import io
import os
import pty
import re
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import journals
import pyte
import pytest
import samples
from cases import each
from msgspec.structs import replace
from rich.console import Console
from test_junit import HOSTILE
from thoroughness import some

from acceptance.core.finding import Finding
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text
from acceptance.core.parts import CPU, MACHINE, MEMORY, Component, Core, Gpu, Pair, Part
from acceptance.core.plan import Reduction
from acceptance.core.record import Body, CheckEnded, CheckStarted, Event, Measured, Skipped
from acceptance.core.unmeasured import Unmeasured
from acceptance.core.waiver import Waiver
from acceptance.expect.limit_book import NO_ARCHITECTURE, NO_SHEET
from acceptance.journal.run import Run
from acceptance.reports import explanation, headline, junit, languages, summary
from acceptance.reports.locations import NO_LOCATIONS
from acceptance.reports.page import render
from acceptance.reports.safe_output import SafeOutput
from acceptance.reports.terminal import Terminal


class Watched(io.StringIO):
    """A terminal as far as programs ask."""

    def isatty(self) -> bool:
        return True


def piped() -> tuple[Terminal, io.StringIO]:
    out = io.StringIO()
    return Terminal(Console(file=out, highlight=False)), out


def watched(width: int) -> tuple[Terminal, io.StringIO]:
    out = Watched()
    environment = {"TERM": "xterm-256color", "COLUMNS": str(width)}
    return Terminal(
        Console(file=out, highlight=False, width=width, _environ=environment, force_terminal=True)
    ), out


COUNTS = "2 passed, 2 failed, 2 errors, 1 skipped, 1 waived; 1 subject waived whole: storage"


def shown(verdict: Run) -> list[str]:
    terminal, out = piped()
    terminal.verdict(verdict, ["/runs/run-1/report.html"])
    return out.getvalue().splitlines()


def test_violations_first_the_verdict_last() -> None:
    verdict = samples.mixed()
    lines = shown(verdict)
    assert (
        lines[0] == "FAIL gpu.present: gpu_count on machine: measured 0, limit = 1; basis: declared"
    )
    assert lines[1:3] == ["    " + line for line in samples.LOOKED.splitlines()]
    labels = [line.strip().partition(":")[0] for line in lines[3:]]
    causes = [f"likely cause {number}" for number in range(1, 6)]
    assert labels[:9] == ["what it means", *causes, "next", "what it shows", "for the vendor"]
    assert "    next: lspci -D -nn -d 10de:" in lines
    assert lines[12:14] == ["", "FAIL cpu.burn: xid 79 on gpu0: the GPU has fallen off the bus"]
    assert lines[15] == "    what to do: reseat it"
    assert lines[16].startswith("    likely cause 1: its power broke off: ")
    assert "UNJUDGED cpu.burn: stress-ng was ended by signal 11" in lines
    assert "UNJUDGED cpu.last, kernel_log.during_run: never ran: stopped by SIGINT" in lines
    assert [
        line
        for line in lines
        if line.startswith(("waived storage.health: ", "warning memory.bandwidth: "))
    ]
    assert "stale waiver, not needed in this run: bandwidth on memory: never needed" in lines
    assert "recorded without a limit: gemm ('rigproof plan' says why)" in lines
    assert lines[-2] == "/runs/run-1/report.html"
    first = headline.of_run(verdict)
    assert first is not None
    assert lines[-1] == f"FAIL: {first.text} (1 more failure): {COUNTS}"


def test_neighbours_with_the_same_causes_get_them_once() -> None:
    dues = [journals.due("gpu_pcie_replays", Gpu(n)) for n in (0, 1, 2)]
    other = journals.due("memory_triad", MEMORY)
    made = journals.plan(journals.check("link.copy", *dues, other))
    low = {(one.measurement, one.component): 1.0 for one in (*dues, other)}
    run = samples.run(journals.bodies(made, low))
    replays = "gpu_pcie_replays on gpu0 to gpu2"
    heads = [f"gpu_pcie_replays on gpu{n}" for n in (0, 1, 2)]
    told = [
        line.split(":")[0]
        for line in summary.finding_lines(run.verdict.of_kind("fail"), NO_LOCATIONS)
    ]
    assert [line for line in told if " on " in line or line == "next"] == [
        *heads,
        "next",
        "memory_triad on memory",
        "next",
    ]
    lines = [line.removeprefix("FAIL link.copy: ").lstrip() for line in shown(run)]
    assert [line.split(":")[0] for line in lines if line][: len(told) - 2] == [replays, *told[3:]]


def test_what_a_pass_does_not_cover_is_in_its_line() -> None:
    made = journals.plan(declared=False)
    verdict = samples.run(journals.bodies(made))
    assert shown(verdict)[-1] == "PASS (inventory not declared): 1 passed"


LESS = (
    Reduction("burn", 1.0, 12.0, "s"),
    Reduction("memory", 0.125, 4.0, "GiB"),
    Reduction("vram", 1.0, 5.0, "s"),
    Reduction("cpuburn", 1.0, 8.0, "s"),
)


def test_a_shortened_run_says_what_was_less_in_every_view() -> None:
    made = replace(journals.plan(), scope="partial", shortened=LESS)
    done = samples.run(journals.bodies(made))
    told = "burn 1 of 12 s, memory 0.12 of 4 GiB, vram 1 of 5 s and 1 more"
    whole = f"partial (shortened), no acceptance of the machine: {told}"
    assert shown(done)[-1] == f"PASS ({whole}): 1 passed"
    properties = {
        one.get("name"): one.get("value")
        for one in ElementTree.fromstring(junit.render(done))[0][0]
    }
    assert (properties["scope"], properties["shortened"]) == ("partial (shortened)", told)
    assert properties["closing_line"] == f"PASS ({whole}): 1 passed"
    header, _, rest = render.render(done).partition("<main>")
    assert whole in header
    assert told in rest
    terminal, out = piped()
    terminal.plan(made, "a minute", details=False)
    assert f"\n{whole}\n" in out.getvalue()


@each(
    "high, found, told",
    [
        (0.0, 0.0, "PASS (no GPU declared): 2 passed"),
        (2.0, 2.0, "PASS: 2 passed"),
        (0.0, 1.0, "FAIL"),
    ],
)
def test_a_pass_of_a_machine_without_gpus_says_so(high: float, found: float, told: str) -> None:
    due = journals.due("gpu_count", MACHINE, "count", Limit("count", "declared", high, high))
    made = journals.plan(journals.check("gpu.present", due), journals.check())
    done = samples.run(journals.bodies(made, {("gpu_count", MACHINE): found}))
    line = shown(done)[-1]
    assert line == told or (told == "FAIL" and line.endswith(": 1 passed, 1 failed"))
    header = render.render(done).partition("<main>")[0]
    assert all(one in header for one in summary.reservations(done))
    assert summary.counts(done.verdict) in header
    properties = {
        one.get("name"): one.get("value")
        for one in ElementTree.fromstring(junit.render(done))[0][0]
    }
    assert properties["closing_line"] == line


def test_reservations_and_a_partial_plan_have_the_punctuation_of_their_language() -> None:
    chinese = languages.language("zh-CN")
    due = journals.due("gpu_count", MACHINE, "count", Limit("count", "declared", 0.0, 0.0))
    made = replace(journals.plan(journals.check("gpu.present", due)), scope="partial")
    done = samples.run(journals.bodies(made, {("gpu_count", MACHINE): 0.0}))
    reservations = summary.reservations(done, chinese)
    assert len(reservations) > 1
    assert chinese("; ") != "; "
    assert chinese("; ").join(reservations) in render.render(done, language=chinese)
    out = io.StringIO()
    Terminal(Console(file=out, width=100), chinese).plan(made, "a minute", details=False)
    assert chinese("{plan} (partial)", plan="") + "\n" in out.getvalue()
    assert "(" not in out.getvalue().splitlines()[1]


@each(
    "check, measurement, component, why, reason",
    [
        (
            "storage.smart_health",
            "disk_faults",
            Part("disk", "vda"),
            Message("health_unread", {"why": "x" * 90}),
            "this disk has no SMART report",
        ),
        (
            "inventory.dimms",
            "dimm_present",
            Part("dimm", "A1"),
            Message("dmi_no_tables"),
            "a virtual machine has no firmware tables",
        ),
    ],
)
def test_a_recommended_waiver_is_printed_on_terminal_page_and_junit(
    check: str, measurement: str, component: Component, why: Message, reason: str
) -> None:
    planned = journals.check(check, journals.due(measurement, component, "count"))
    records = journals.bodies(journals.plan(planned))
    at = next(place for place, body in enumerate(records) if isinstance(body, Measured))
    records[at] = Skipped(planned.id, why, measurement, component, why=Unmeasured.NOT_OFFERED)
    done = samples.run(records)
    lines = [
        "[[waiver]]",
        f'skip = "{check}"',
        f'component = "{component}"',
        f'reason = "{reason}"',
    ]
    told = [line.strip() for line in shown(done)]
    at = told.index("To waive this, add to the machine file:")
    assert told[at + 1 : at + 5] == lines
    assert "\n".join(lines) in html.unescape(render.render(done))
    assert "\n".join(lines) in html.unescape(junit.render(done).decode())


def test_a_waived_count_of_gpus_is_no_declaration() -> None:
    due = journals.due("gpu_count", MACHINE, "count", Limit("count", "declared", 1.0, 1.0))
    waiver = Waiver(reason="on its way", measurement="gpu_count", component="machine", worst=0.0)
    made = journals.plan(journals.check("gpu.present", due), waivers=[waiver])
    done = samples.run(journals.bodies(made, {("gpu_count", MACHINE): 0.0}))
    assert shown(done)[-1].startswith("PASS: 1 passed, 1 waived")


def test_the_plan_is_told_before_anything_is_heated() -> None:
    terminal, out = piped()
    terminal.plan(samples.mixed_plan(), "a minute", details=True)
    text = out.getvalue()
    assert (
        "profile smoke: a minute\nplan: 7 checks, 9 measurements, about 7 s, calculated\n" in text
    )
    assert "cannot detect: faults that need heat" in text
    assert "      bandwidth on memory >= 10 GB/s: half of the peak (class default)" in text
    assert "      gemm on core:0, core:1, core:2 recorded, not judged: no limit can be" in text
    terminal, out = piped()
    terminal.plan(journals.plan(gaps=["gpu7: nothing loads it"]), "a minute", details=False)
    assert "plan: 1 check, 1 measurement, about 1 s, calculated\n" in out.getvalue()
    assert "gap: gpu7: nothing loads it" in out.getvalue()


def test_a_table_is_shown_as_it_is_and_not_without_end() -> None:
    terminal, out = piped()
    terminal.table("a  b\n\x1b[2Jc\td\n")
    assert out.getvalue() == "a  b\nc d\n"
    terminal, out = piped()
    terminal.table("row\n" * 2_003)
    assert out.getvalue() == "row\n" * 2_000 + "... (3 more lines)\n"


def test_a_note_without_end_is_cut_and_said() -> None:
    finding = Finding("fail", "gpu.present", "text", note="line\n" * 52)
    assert explanation.note_lines(finding) == (*["line"] * 50, "... (2 more lines)")


def told(*bodies: Body) -> str:
    terminal, out = piped()
    terminal.start(samples.mixed_plan())
    for body in bodies:
        terminal.entry(samples.entry(body))
    terminal.stop()
    return out.getvalue()


GEMM, PRESENT, HEALTH = "cpu.gemm[f64]", "gpu.present", "storage.health"
TOO_FEW = "gpu_count on machine: measured 0, limit = 1; basis: declared"
XID = Event("xid", "fatal", "NVRM: Xid 79", "fell off the bus", "reseat it")
WRONG = Event("miscompare", "fatal", "{}", "gpu0 gave a wrong result", "look", "bf16", Gpu(0))


@each(
    "bodies, line",
    [
        (
            [
                CheckStarted(GEMM),
                *(Measured(GEMM, "gemm", Core(n), "GFLOP/s", 30.0 + n) for n in range(3)),
                Measured(GEMM, "total", CPU, "GFLOP/s", 93.0),
                Measured(GEMM, "wrong", CPU, "count", 0.0),
                CheckEnded(GEMM, "pass", "", 4.25),
            ],
            "pass   cpu.gemm[f64]                  4.2 s  gemm 30 .. 32 GFLOP/s, total 93 GFLOP/s",
        ),
        (
            [
                CheckStarted(PRESENT),
                Measured(PRESENT, "gpu_count", MACHINE, "count", 0.0, note=samples.LOOKED),
                CheckEnded(PRESENT, "fail", f"{TOO_FEW}\nanother", 0.1),
            ],
            f"fail   gpu.present                    0.1 s  {TOO_FEW}",
        ),
        (
            [
                CheckStarted(HEALTH),
                Skipped(HEALTH, "no rights", "a", "b"),
                CheckEnded(HEALTH, "pass", "", 0.1),
            ],
            "skip   storage.health                 0.1 s  no rights",
        ),
        ([XID], "kernel: fatal: fell off the bus: NVRM: Xid 79"),
        *(
            (
                [replace(WRONG, source=source)],
                f"{word}: fatal: gpu0 gave a wrong result: {{}}",
            )
            for source, word in (("nvml", "NVML"), ("load", "load"), ("kernel-log", "kernel"))
        ),
    ],
    told=[
        "a check with its first figures",
        "a failing check with its first fault, without the long note",
        "a check that measured nothing is a skip",
        "the kernel speaks at once",
        "NVML is named",
        "a load is named",
        "the kernel is named",
    ],
)
def test_what_happens_is_one_line(bodies: list[Body], line: str) -> None:
    assert told(*bodies) == f"{line}\n"


@each("text", some(HOSTILE, 4))
def test_hostile_text_is_harmless(text: str) -> None:
    terminal, out = piped()
    found = samples.hostile(text)
    for entry in found.entries:
        terminal.entry(entry)
    terminal.verdict(found, [])
    printed = out.getvalue()
    assert "\x1b" not in printed
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", printed)
    assert printed.splitlines()[-1].startswith("FAIL: ")


@each("text", ["[red]not red[/red]", "[/]", "[link=http://x]y[/link]"])
def test_markup_is_text(text: str) -> None:
    terminal, out = piped()
    terminal.say(text)
    assert out.getvalue() == f"{text}\n"


def test_colour_only_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = samples.mixed()
    assert "\x1b" not in "\n".join(shown(verdict))
    terminal, out = watched(100)
    terminal.verdict(verdict, [])
    assert "\x1b[1;31mFAIL: gpu0" in out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Watched()
    Terminal(Console(file=out, width=100, force_terminal=True)).verdict(verdict, [])
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", out.getvalue()), "no colour; bold is none"


@each("width", [40, 52, 60, 80, 132])
def test_a_narrow_terminal_breaks_no_word(width: int) -> None:
    verdict = samples.mixed()
    terminal, out = watched(width)
    terminal.plan(samples.mixed_plan(), "a minute", details=False)
    terminal.verdict(verdict, [])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    # A command is there to be copied: the terminal's edge breaks it, and no line end of ours.
    broken = [line.rstrip() for line in plain.splitlines() if not line.startswith("    next: ")]
    assert max(len(line) for line in broken) <= width
    assert "    next: lspci -D -nn -d 10de:" in plain
    words = set("\n".join(shown(verdict)[:-2]).split())
    closing = plain[plain.rindex("FAIL:") :].split()
    assert " ".join(closing) == shown(verdict)[-1]
    if width >= 52:
        assert words <= set(plain.split())


def test_a_pipe_gets_one_line_a_sentence() -> None:
    terminal, out = piped()
    terminal.say("word " * 200)
    terminal.path("/" + "x" * 300)
    assert len(out.getvalue().splitlines()) == 2


@contextmanager
def pseudo_terminal() -> Iterator[tuple[int, TextIO]]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield ours, stream
    os.close(ours)


def test_progress_on_a_terminal_names_the_check_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "20")
    with pseudo_terminal() as (ours, stream):
        terminal = Terminal(Console(file=stream, highlight=False))
        terminal.start(samples.mixed_plan(), frames=20.0)
        terminal.entry(samples.entry(CheckStarted("cpu.gemm[f64]")))
        end, text = time.monotonic() + 10.0, ""
        while not ("cpu.gemm[f64]" in text and re.search(r"about \d s left", text)):
            assert time.monotonic() < end
            text += os.read(ours, 65536).decode()
        terminal.stop()


class Window(io.StringIO):
    """A terminal that takes what is written."""

    def isatty(self) -> bool:
        return True


def test_no_line_ends_up_in_a_frame_of_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the view is drawn as often as it can be, 300 lines are printed."""
    for name, value in (("TERM", "xterm"), ("COLUMNS", "60"), ("LINES", "400")):
        monkeypatch.setenv(name, value)
    window, before = Window(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        terminal = Terminal(Console(file=window, highlight=False))
        terminal.start(samples.mixed_plan(), frames=1e5)
        for number in range(300):
            terminal.say(f"line {number}")
        terminal.stop()
    finally:
        sys.setswitchinterval(before)
    screen = pyte.Screen(60, 400)
    pyte.Stream(screen).feed(window.getvalue().replace("\n", "\r\n"))
    shown = [line.rstrip() for line in screen.display if line.strip()]
    assert shown == [f"line {number}" for number in range(300)]


def test_no_progress_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build server that asks for colour is no terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = io.StringIO()
    terminal = Terminal(Console(file=out))
    terminal.start(samples.mixed_plan())
    terminal.entry(samples.entry(CheckStarted("cpu.burn")))
    terminal.stop()
    assert out.getvalue() == ""


def test_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal.on_stdout()
    terminal.say("a word")
    assert capsys.readouterr().out == "a word\n"
    assert terminal.failure is None
    assert piped()[0].failure is None


def test_a_stream_that_fails_is_remembered() -> None:
    with Path("/dev/full").open("w", encoding="ascii", errors="backslashreplace") as full:
        screen = SafeOutput(full)
        terminal = Terminal(Console(file=screen))  # type: ignore[arg-type]
        terminal.say("once \u2014")
        terminal.say("twice")
        assert terminal.failure is not None
        assert terminal.failure.strerror == "No space left on device"
        assert (screen.encoding, screen.isatty(), screen.writable()) == ("ascii", False, True)
        assert screen.fileno() == full.fileno()


def test_a_stream_that_fails_at_once() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as pipe:
        screen = SafeOutput(pipe)
        assert screen.write("a\n") == 2
        assert isinstance(screen.failure, BrokenPipeError)
        assert screen.write("b\n") == 2
        screen.flush()


def test_a_stream_is_its_owners_to_close(tmp_path: Path) -> None:
    with (tmp_path / "told").open("w", encoding="utf-8") as stream:
        screen = SafeOutput(stream)
        screen.close()
        assert not stream.closed
        assert screen.write("a word") == 6
    screen.close()  # as Python does where it lets go of it, whatever became of the stream by then
    assert (tmp_path / "told").read_text(encoding="utf-8") == "a word"


@each(
    "unjudged, told",
    [
        ((), None),
        ((("gpu_power", Gpu(0), "class default"),), None),
        ((("nvlink_active", Gpu(0), "sheet of GeForce RTX 3090"),), None),
        (
            (("gpu_sm_count", Gpu(0), NO_SHEET),),
            "1 figure of gpu0 not judged: no model sheet gives a limit",
        ),
        (
            (
                ("gpu_sm_count", Gpu(0), NO_SHEET),
                ("gemm_f16", Gpu(1), NO_ARCHITECTURE),
                ("copy_local", Gpu(2), "x"),
            ),
            "2 figures of gpu0, gpu1 not judged: no model sheet gives a limit",
        ),
        (
            (("p2p_supported", Pair(Gpu(0), Gpu(1)), NO_SHEET),),
            "1 figure of gpu0, gpu1 not judged: no model sheet",
        ),
        (
            tuple(("gpu_sm_count", Gpu(n), NO_SHEET) for n in range(4)),
            "4 figures of 4 GPUs not judged: no model sheet",
        ),
    ],
)
def test_a_pass_says_what_could_not_be_judged(
    unjudged: tuple[tuple[str, str, Text], ...], told: str | None
) -> None:
    dues = [
        replace(journals.due(name, component, limit=None), origin=origin)
        for name, component, origin in unjudged
    ]
    found = samples.passing(journals.check("gpu.figures", journals.due(), *dues))
    assert found.verdict.verdict == "PASS"
    line = summary.closing_line(found)
    assert line.startswith(f"PASS ({told}" if told else "PASS: 1 passed")
    header = render.render(found).partition("<main>")[0]
    assert all(
        one in header for one in (*summary.reservations(found), summary.counts(found.verdict))
    )


def test_a_figure_that_was_not_taken_is_not_called_unjudged_and_only_a_pass_says_so() -> None:
    due = replace(journals.due("gpu_sm_count", limit=None), origin=NO_SHEET)
    made = journals.plan(journals.check("gpu.figures", journals.due(), due))
    records = journals.bodies(made, {("copy", Gpu(0)): 1.0})
    failed = samples.run(records)
    assert failed.verdict.verdict == "FAIL"
    assert summary.not_judged(failed.verdict) is not None
    assert "not judged" not in summary.closing_line(failed)
    kept = [body for body in records if not isinstance(body, Measured)]
    assert summary.not_judged(fold(journals.entries(kept))) is None
