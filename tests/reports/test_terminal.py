from __future__ import annotations

import html
import io
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import journals
import pyte
import pytest
import samples
from cases import each
from drawn import Watched, piped, watched
from known import known
from msgspec.structs import replace
from rich.console import Console
from runs import until

from acceptance.core.finding import Waiver
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Message, Text, Unmeasured
from acceptance.core.parts import CPU, MACHINE, MEMORY, Component, Core, Gpu, Pair, Part
from acceptance.core.plan import Plan, PlannedCheck, Reduction
from acceptance.core.record import Body, CheckEnded, CheckStarted, Event, Measured, Skipped
from acceptance.expect.limit_book import NO_ARCHITECTURE, NO_SHEET
from acceptance.journal.run import Run
from acceptance.reports import explanation, junit, languages, summary
from acceptance.reports.lines import SafeOutput
from acceptance.reports.locations import Locations
from acceptance.reports.page import render
from acceptance.reports.terminal import Terminal
from acceptance.wording import words

COUNTS = "2 passed, 2 failed, 2 errors, 1 skipped, 1 waived; 1 subject waived whole: storage"


def shown(verdict: Run) -> list[str]:
    terminal, out = piped()
    terminal.verdict(verdict, ["/runs/run-1/report.html"])
    return out.getvalue().splitlines()


def test_violations_first_the_verdict_last() -> None:
    verdict = samples.mixed()
    lines, (present, burn) = shown(verdict), verdict.verdict.of_kind("fail")
    assert lines[0] == f"FAIL gpu.present: {words.of(present)}"
    assert lines[1:3] == ["    " + line for line in samples.LOOKED.splitlines()]
    labels = [line.strip().partition(":")[0] for line in lines[3:]]
    causes = [f"likely cause {number}" for number in range(1, 6)]
    assert labels[:9] == ["what it means", *causes, "next", "what it shows", "for the vendor"]
    assert "    next: lspci -D -nn -d 10de:" in lines
    assert lines[12:14] == ["", f"FAIL cpu.burn: {words.of(burn)}"]
    assert lines[15] == "    what to do: reseat it"
    assert lines[16].startswith("    likely cause 1: ")
    starts = (
        *("UNJUDGED cpu.burn: ", "UNJUDGED cpu.last, kernel_log.during_run: never ran"),
        *("waived storage.health: ", "warning memory.bandwidth: ", "stale waiver, "),
        "recorded without a limit: gemm ",
    )
    for start in starts:
        assert [line for line in lines if line.startswith(start)], start
    assert lines[-2] == "/runs/run-1/report.html"
    first = known(explanation.of_run(verdict))
    assert lines[-1] == f"FAIL: {first.text} (1 more failure): {COUNTS}"


def test_neighbours_with_the_same_causes_get_them_once() -> None:
    dues = [journals.due("gpu_pcie_replays", Gpu(n)) for n in (0, 1, 2)]
    other = journals.due("memory_triad", MEMORY)
    made = journals.plan(journals.check("link.copy", *dues, other))
    run = samples.run(
        journals.bodies(made, {(one.measurement, one.component): 1.0 for one in (*dues, other)})
    )
    lines = summary.finding_lines(run.verdict.of_kind("fail"), Locations())
    told = [line.split(":")[0] for line in lines]
    heads = [f"gpu_pcie_replays on gpu{n}" for n in (0, 1, 2)]
    shortened = [line for line in told if " on " in line or line == "next"]
    assert shortened == [*heads, "next", "memory_triad on memory", "next"]
    said = [line.removeprefix("FAIL link.copy: ").lstrip() for line in shown(run)]
    together = ["gpu_pcie_replays on gpu0 to gpu2", *told[3:]]
    assert [line.split(":")[0] for line in said if line][: len(together)] == together


LESS = (
    Reduction("burn", 1.0, 12.0, "s"),
    Reduction("memory", 0.125, 4.0, "GiB"),
    Reduction("vram", 1.0, 5.0, "s"),
    Reduction("cpuburn", 1.0, 8.0, "s"),
)


def properties(run: Run) -> dict[str | None, str | None]:
    """Those of the suite in the JUnit file."""
    found = ElementTree.fromstring(junit.render(run))[0][0]
    return {one.get("name"): one.get("value") for one in found}


def test_a_shortened_run_says_what_was_less_in_every_view() -> None:
    made = replace(journals.plan(), scope="partial", shortened=LESS)
    done = samples.run(journals.bodies(made))
    told = "burn 1 of 12 s, memory 0.12 of 4 GiB, vram 1 of 5 s and 1 more"
    whole = f"partial (shortened), no acceptance of the machine: {told}"
    closing = f"PASS ({whole}): 1 passed"
    assert shown(done)[-1] == closing
    assert (
        properties(done).items()
        >= {
            "scope": "partial (shortened)",
            "shortened": told,
            "closing_line": closing,
        }.items()
    )
    header, _, rest = render.render(done).partition("<main>")
    assert (whole in header, told in rest) == (True, True)
    terminal, out = piped()
    terminal.plan(made, "a minute", details=False)
    assert f"\n{whole}\n" in out.getvalue()


def declared(low: float, high: float, *more: PlannedCheck, found: float, **about: Any) -> Run:
    """A run of a machine that declares so many GPUs."""
    due = journals.due("gpu_count", MACHINE, "count", Limit("count", "declared", low, high))
    made = journals.plan(journals.check("gpu.present", due), *more, **about)
    return samples.run(journals.bodies(made, {("gpu_count", MACHINE): found}))


def unjudged(*figures: tuple[str, Component, Text]) -> Run:
    """A pass in which these figures had no limit, for that reason."""
    dues = [
        replace(journals.due(name, component, limit=None), origin=origin)
        for name, component, origin in figures
    ]
    return samples.passing(journals.check("gpu.figures", journals.due(), *dues))


ON_ITS_WAY = Waiver(reason="on its way", measurement="gpu_count", component="machine", worst=0.0)
SMS, LOCAL = ("gpu_sm_count", Gpu(0), NO_SHEET), ("copy_local", Gpu(2), "x")
F16 = ("gemm_f16", Gpu(1), NO_ARCHITECTURE)
OF_PAIR = ("p2p_supported", Pair(Gpu(0), Gpu(1)), NO_SHEET)
OF_FOUR = [("gpu_sm_count", Gpu(n), NO_SHEET) for n in range(4)]
NO_LIMIT = "not judged: no model sheet gives a limit"


@each(
    "done, line",
    [
        (
            samples.run(journals.bodies(journals.plan(declared=False))),
            "PASS (inventory not declared): 1 passed",
        ),
        (declared(0.0, 0.0, journals.check(), found=0.0), "PASS (no GPU declared): 2 passed"),
        (declared(2.0, 2.0, journals.check(), found=2.0), "PASS: 2 passed"),
        (declared(0.0, 0.0, journals.check(), found=1.0), "FAIL: "),
        (declared(1.0, 1.0, found=0.0, waivers=[ON_ITS_WAY]), "PASS: 1 passed, 1 waived"),
        (unjudged(), "PASS: 1 passed"),
        (unjudged(("gpu_power", Gpu(0), "class default")), "PASS: 1 passed"),
        (unjudged(("nvlink_active", Gpu(0), "sheet of GeForce RTX 3090")), "PASS: 1 passed"),
        (unjudged(SMS), f"PASS (1 figure of gpu0 {NO_LIMIT}): 1 passed"),
        (unjudged(SMS, F16, LOCAL), f"PASS (2 figures of gpu0, gpu1 {NO_LIMIT}): 1 passed"),
        (unjudged(OF_PAIR), f"PASS (1 figure of gpu0, gpu1 {NO_LIMIT}): 1 passed"),
        (unjudged(*OF_FOUR), f"PASS (4 figures of 4 GPUs {NO_LIMIT}): 1 passed"),
    ],
)
def test_a_pass_says_what_it_does_not_cover(done: Run, line: str) -> None:
    told = shown(done)[-1]
    assert told == summary.closing_line(done) == properties(done)["closing_line"]
    assert told.startswith(line)
    header = render.render(done).partition("<main>")[0]
    for text in (*summary.reservations(done), summary.counts(done.verdict)):
        assert text in header


def test_reservations_and_a_partial_plan_have_the_punctuation_of_their_language() -> None:
    chinese = languages.language("zh-CN")
    part = declared(0.0, 0.0, found=0.0).plan
    done = samples.run(
        journals.bodies(replace(part, scope="partial"), {("gpu_count", MACHINE): 0.0})
    )
    reservations = summary.reservations(done, chinese)
    assert len(reservations) > 1
    assert chinese("; ") != "; "
    assert chinese("; ").join(reservations) in render.render(done, language=chinese)
    terminal, out = piped(chinese)
    terminal.plan(done.plan, "a minute", details=False)
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


def planned(plan: Plan, *, details: bool) -> str:
    terminal, out = piped()
    terminal.plan(plan, "a minute", details=details)
    return out.getvalue()


def test_the_plan_is_told_before_anything_is_heated() -> None:
    text = planned(samples.mixed_plan(), details=True)
    plan = "profile smoke: a minute\nplan: 7 checks, 9 measurements, about 7 s, calculated\n"
    for told in (
        plan,
        "cannot detect: faults that need heat",
        "      bandwidth on memory >= 10 GB/s: half of the peak (class default)",
        "      gemm on core:0, core:1, core:2 recorded, not judged: no limit can be",
    ):
        assert told in text
    text = planned(journals.plan(gaps=["gpu7: nothing loads it"]), details=False)
    assert "plan: 1 check, 1 measurement, about 1 s, calculated\n" in text
    assert "gap: gpu7: nothing loads it" in text


@each(
    "say, text",
    [
        (lambda terminal: terminal.table("a  b\n\x1b[2Jc\td\n"), "a  b\nc d\n"),
        (
            lambda terminal: terminal.table("row\n" * 2_003),
            "row\n" * 2_000 + "... (3 more lines)\n",
        ),
        *(
            (lambda terminal, text=text: terminal.say(text), f"{text}\n")
            for text in ("[red]not red[/red]", "[/]", "[link=http://x]y[/link]", "a word" * 200)
        ),
        (lambda terminal: terminal.path("/" + "x" * 300), f"/{'x' * 300}\n"),
    ],
)
def test_a_table_and_a_sentence_are_shown_as_they_are_and_not_without_end(
    say: Callable[[Terminal], None], text: str
) -> None:
    terminal, out = piped()
    say(terminal)
    assert out.getvalue() == text


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


def test_colour_and_progress_only_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build server that asks for colour is no terminal."""
    verdict = samples.mixed()
    assert "\x1b" not in "\n".join(shown(verdict))
    terminal, out = watched(100)
    terminal.verdict(verdict, [])
    assert "\x1b[1;31mFAIL: gpu0" in out.getvalue()
    with monkeypatch.context() as patched:
        patched.setenv("NO_COLOR", "1")
        out = Watched()
        Terminal(Console(file=out, width=100, force_terminal=True)).verdict(verdict, [])
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", out.getvalue()), "no colour; bold is none"
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = io.StringIO()
    terminal = Terminal(Console(file=out))
    terminal.start(samples.mixed_plan())
    terminal.entry(samples.entry(CheckStarted("cpu.burn")))
    terminal.stop()
    assert out.getvalue() == ""


@each("width", [40, 52, 132])
def test_a_narrow_terminal_breaks_no_word(width: int) -> None:
    """A command is there to be copied: the terminal's edge breaks it, and no line end of ours."""
    verdict, (terminal, out) = samples.mixed(), watched(width)
    terminal.plan(samples.mixed_plan(), "a minute", details=False)
    terminal.verdict(verdict, [])
    plain, whole = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()), shown(verdict)
    broken = [line.rstrip() for line in plain.splitlines() if not line.startswith("    next: ")]
    assert max(len(line) for line in broken) <= width
    assert "    next: lspci -D -nn -d 10de:" in plain
    assert " ".join(plain[plain.rindex("FAIL:") :].split()) == whole[-1]
    assert width < 52 or set("\n".join(whole[:-2]).split()) <= set(plain.split())


def test_progress_on_a_terminal_names_the_check_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100"), ("LINES", "20")):
        monkeypatch.setenv(name, value)
    out = Watched()
    terminal = Terminal(Console(file=out, highlight=False))
    terminal.start(samples.mixed_plan(), frames=20.0)
    terminal.entry(samples.entry(CheckStarted("cpu.gemm[f64]")))
    until(
        lambda: "cpu.gemm[f64]" in out.getvalue() and re.search(r"about \d s left", out.getvalue()),
        "the name and the time",
    )
    terminal.stop()


def test_no_line_ends_up_in_a_frame_of_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the view is drawn as often as it can be, 300 lines are printed."""
    for name, value in (("TERM", "xterm"), ("COLUMNS", "60"), ("LINES", "400")):
        monkeypatch.setenv(name, value)
    window, before = Watched(), sys.getswitchinterval()
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


def test_a_stream_that_fails_is_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal.on_stdout()
    terminal.say("a word")
    assert (capsys.readouterr().out, terminal.failure) == ("a word\n", None)
    with Path("/dev/full").open("w", encoding="ascii", errors="backslashreplace") as full:
        screen = SafeOutput(full)
        terminal = Terminal(Console(file=screen))  # type: ignore[arg-type]
        for text in ("once \u2014", "twice"):
            terminal.say(text)
        assert known(terminal.failure).strerror == "No space left on device"
        assert (screen.encoding, screen.isatty(), screen.writable()) == ("ascii", False, True)
        assert screen.fileno() == full.fileno()
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as pipe:  # one that fails at once
        screen = SafeOutput(pipe)
        assert screen.write("a\n") == 2
        assert isinstance(screen.failure, BrokenPipeError)
        assert screen.write("b\n") == 2
        screen.flush()
    with (tmp_path / "told").open("w", encoding="utf-8") as stream:  # its owner's to close
        screen = SafeOutput(stream)
        screen.close()
        assert (stream.closed, screen.write("a word")) == (False, 6)
    screen.close()  # as Python does where it lets go of it, whatever became of the stream by then
    assert (tmp_path / "told").read_text(encoding="utf-8") == "a word"


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
