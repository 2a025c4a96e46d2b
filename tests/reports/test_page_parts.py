"""The parts of the page that are reckoned before anything is drawn: matrices, bars, peaks, the
picture of the machine, the story.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import journals
import pytest
import runs
import sample_machines
import sample_runs
from cases import each
from lxml import html as lxml_html
from msgspec.structs import replace
from runs import write_views

from acceptance.core.criterion import Within
from acceptance.core.finding import Finding
from acceptance.core.fold import fold
from acceptance.core.judgement import Judgement
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Due
from acceptance.core.record import RunClosed, RunStarted
from acceptance.expect import gpu_limits
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.machine.inventory import Inventory
from acceptance.machine.observation import NOTHING, decode
from acceptance.machine.topology import build
from acceptance.reports.languages import language
from acceptance.reports.locations import find_locations
from acceptance.reports.page import bars, cards, heat, peaks, render, run_log, topology
from selftest import drawn_runs

FLOOR = Limit("GB/s", "a basis", low=100.0)


def judged(
    component: str, value: float | None, limit: Limit | None = FLOOR, kind: str | None = None
) -> Judgement:
    due = Due(
        "copy",
        component,
        "GB/s",
        (Within(limit),) if limit else (),
        "class default",
        None if limit else "no limit can be",
    )
    findings = (Finding(kind, "link.copy", "never_ran"),) if kind else ()  # type: ignore[arg-type]  # one of its kinds
    return Judgement(due, value, None, None, findings)


@functools.cache
def observed(name: str) -> tuple[Inventory, tuple[tuple[str, ...], ...]]:
    made = sample_runs.MADE[name]
    seen = sample_machines.inventory(drawn_runs.named(made.machine), made.dead_links)
    return seen, build(seen, seen.places).rows()


# --- matrices ---


def test_pairs_are_a_matrix_coloured_by_their_share_of_the_largest() -> None:
    found = heat.pairs(
        [
            judged(Pair(Gpu(0), Gpu(1)), 400.0),
            judged(Pair(Gpu(1), Gpu(0)), 90.0, kind="fail"),
            judged(Pair(Gpu(2), Gpu(10)), None, kind="error"),
        ]
    )
    assert found is not None
    assert found.head == ("gpu0", "gpu1", "gpu2", "gpu10")
    cells = {
        (row, column): cell
        for row, line in found.rows
        for column, cell in zip(found.head, line, strict=True)
    }
    assert (cells["gpu0", "gpu1"].text, cells["gpu0", "gpu1"].level, cells["gpu0", "gpu1"].bad) == (
        "400",
        5,
        False,
    )
    assert (cells["gpu1", "gpu0"].text, cells["gpu1", "gpu0"].level, cells["gpu1", "gpu0"].bad) == (
        "90",
        1,
        True,
    )
    assert (cells["gpu2", "gpu10"].text, cells["gpu2", "gpu10"].bad) == ("-", True)
    assert (cells["gpu0", "gpu0"].text, cells["gpu2", "gpu0"].text) == ("", "-")


@each(
    "names",
    [
        (Gpu(0), Gpu(1)),
        (Pair(Gpu(0), Gpu(1)), "cpu"),
        (Pair(Gpu(0), Gpu(1)),),
        ("gpu0-->gpu1", "x->y"),
    ],
)
def test_what_is_no_set_of_pairs_is_no_matrix(names: tuple[str, ...]) -> None:
    assert heat.pairs([judged(name, 1.0) for name in names]) is None


def test_fewer_nvlinks_than_others_have_stand_out() -> None:
    found = heat.way_matrix(observed("8xh200-dead-link")[1])
    assert found is not None
    bad = {
        (row, column)
        for row, line in found.rows
        for column, cell in zip(found.head, line, strict=True)
        if cell.bad
    }
    assert len(bad) == 14
    assert all("gpu5" in pair for pair in bad)
    sound = heat.way_matrix(observed("8xh200")[1])
    assert sound is not None
    assert not any(cell.bad for _, line in sound.rows for cell in line)
    assert heat.way_matrix(()) is None


# --- bars ---


def group(*siblings: Judgement, known: peaks.Peaks | None = None) -> bars.Group:
    check = journals.check("link.copy", *(one.due for one in siblings))
    verdict = fold(journals.entries(journals.bodies(journals.plan(check))))
    (found,) = bars.groups(
        replace(verdict.checks[0], judged=siblings), known or {}, frozenset(), ENGLISH
    )
    return found


def test_siblings_share_a_scale_that_holds_value_limit_and_peak() -> None:
    known = {("copy", gpu): peaks.Peak(200.0, "sheet") for gpu in (Gpu(0), Gpu(1))}
    found = group(judged(Gpu(0), 150.0), judged(Gpu(1), 50.0, kind="fail"), known=known)
    assert [row.bar for row in found.rows] == [
        bars.Bar(75.0, 50.0, None, 100.0),
        bars.Bar(25.0, 50.0, None, 100.0),
    ]
    assert [row.mark for row in found.rows] == ["", "fail"]
    assert (found.limit, found.peak) == (">= 100 GB/s", peaks.Peak(200.0, "sheet"))
    assert found.bases == (("", "a basis (class default)"),)


def test_without_a_peak_the_larger_of_value_and_limit_is_the_whole() -> None:
    assert group(judged(Gpu(0), 150.0)).rows[0].bar == bars.Bar(100.0, 66.7, None, None)
    assert group(judged(Gpu(0), 50.0, kind="fail")).rows[0].bar == bars.Bar(50.0, 100.0, None, None)
    assert group(judged(Gpu(0), 50.0, None)).rows[0].bar == bars.Bar(100.0, None, None, None)


@pytest.mark.parametrize("value", [None, -5.0])
def test_what_cannot_be_drawn_has_no_bar(value: float | None) -> None:
    found = group(judged(Gpu(0), value, Limit("GB/s", "a basis", low=-10.0)))
    assert found.flat
    assert found.rows[0].value == ("not measured" if value is None else "-5 GB/s")


def test_siblings_that_say_the_same_are_one_row_and_limits_of_their_own_are_told() -> None:
    same = group(*(judged(Gpu(n), 150.0) for n in range(12)))
    assert [row.names for row in same.rows] == [("gpu0 … gpu11 (12)",)]
    own = group(judged(Gpu(0), 150.0), judged(Gpu(1), 150.0, Limit("GB/s", "another", low=10.0)))
    assert (own.limit, [row.limit for row in own.rows]) == (None, [">= 100 GB/s", ">= 10 GB/s"])
    assert own.bases == (("gpu0", "a basis (class default)"), ("gpu1", "another (class default)"))
    told = (Message("component_says", {"component": f"gpu{n}", "why": "so"}) for n in range(12))
    alike = group(
        *(judged(Gpu(n), 150.0, Limit("GB/s", one, low=1.0)) for n, one in enumerate(told))
    )
    assert alike.bases == (("", "gpu0: so (class default); and so for the others"),)


# --- peaks ---


def test_peaks_are_those_of_the_sheet_and_of_the_link() -> None:
    found = peaks.peaks(observed("8xh200")[0], gpu_limits.sheets(), ENGLISH)
    assert found["gemm_bf16", Gpu(7)] == peaks.Peak(989.4, "sheet of H200 SXM 141GB")
    assert found["burn_f64", Gpu(0)].value == 66.9
    assert found["copy_h2d", Gpu(0)].value == pytest.approx(63.0, abs=0.1)
    assert found["gpu_power", Gpu(3)].value == 700.0
    assert ("copy_local", Gpu(0)) not in found


def test_of_an_unknown_model_no_peak_is_guessed() -> None:
    pci = [{"address": "x", "device_id": "10de:ffff", "is_display": True}]
    assert peaks.peaks(decode({"pci": pci}), gpu_limits.sheets(), ENGLISH) == {}
    assert peaks.peaks(NOTHING, gpu_limits.sheets(), ENGLISH) == {}


# --- the picture ---


def test_the_picture_shows_switches_nodes_and_a_rail_of_nvlinks() -> None:
    seen, matrix = observed("8xh200-dead-link")
    found = topology.picture(seen, matrix, ENGLISH)
    assert found is not None
    kinds = [box.kind for box in found.boxes]
    assert (
        kinds.count("node"),
        kinds.count("bridge"),
        kinds.count("gpu"),
        kinds.count("card"),
    ) == (2, 4, 8, 5)
    assert [wire.text for wire in found.wires if wire.kind == "short"] == ["17"]
    assert [wire.text for wire in found.wires if wire.kind == "nvlink"] == ["NVLink", *["18"] * 7]
    assert "gpu5 at 0000:06:00.0 on processor, NUMA node 1, PCIe switch 0000:31:00.0" in found.told
    assert "gpu4 and gpu5: 17 NVLinks" in found.told
    assert all(0 <= box.y < found.height for box in found.boxes)


def test_a_bridge_of_two_is_an_arc_and_a_machine_without_gpus_has_no_picture() -> None:
    seen, matrix = observed("2x3090ti")
    found = topology.picture(seen, matrix, ENGLISH)
    assert found is not None
    assert [wire.text for wire in found.wires if wire.kind == "nvlink"] == ["4 NVLinks"]
    assert topology.picture(NOTHING, (), ENGLISH) is None
    assert topology.picture(dataclasses.replace(seen, pci=()), (), ENGLISH) is None


# --- the story ---


def test_how_a_run_broke_off_is_told_where_it_did_not_end() -> None:
    *bodies, end = journals.bodies(journals.plan())
    closed = run_log.interruption(
        journals.entries([*bodies, RunClosed("link.copy", True, {}, "restarted")])
    )
    assert closed is not None
    assert closed.detail == "restarted"
    assert run_log.interruption(journals.entries([*bodies, end])) is None


@each(
    "lang, told",
    [
        ("en", ("1 of 2 faults caught", "restarted", "disk health: no disk was found")),
        ("zh-CN", ("2 个故障查出 1 个", "重启", "没有找到硬盘")),
    ],
)
def test_what_a_run_says_in_codes_is_worded_on_its_page(lang: str, told: tuple[str, ...]) -> None:
    """Who wrote the run, and what it leaves out, as the supervisor and a later start write them."""
    start, *bodies, _ = journals.bodies(journals.plan())
    assert isinstance(start, RunStarted)
    score = {"utc": "2026-11-22", "kind": "short", "caught": 1, "faults": 2, "alarms": 0}
    plan = replace(start.plan, not_tested=(Message("no_disk"),))
    selftest = Message("selftest_score", {**score, "clean": 3})
    closed = RunClosed(None, True, {}, Message("restarted"))
    first = replace(start, plan=plan, selftest=selftest)
    page = render.render(
        runs.judged(journals.entries([first, *bodies, closed])), (), language(lang)
    )
    assert "Message(" not in page
    for text in told:
        assert text in page, text


@each(
    "utc, told",
    [
        ("2026-11-20T18:05:43.177Z", "2026-11-20 18:05:43 UTC"),
        ("2026-11-20T18:05:43", "2026-11-20 18:05:43 UTC"),
        ("now", None),
    ],
)
def test_a_moment_is_told_as_people_read_it(utc: str, told: str | None) -> None:
    assert run_log.moment(utc) == told


# --- cards ---


def shown(found: Run, *kinds: str) -> list[cards.FindingCard]:
    verdict, where = found.verdict, find_locations(found)
    return list(cards.cards(verdict.of_kind(*kinds), cards.by_key(verdict), where, ENGLISH))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_runs.write("2x4090-slow-card", tmp_path_factory.mktemp("runs") / "slow")


def test_faults_of_one_card_with_one_lesson_are_one_card(slow: Path) -> None:
    found = journal_run.read(slow)
    told, verdict = shown(found, "fail"), found.verdict
    assert len(told) < 10 < len(verdict.of_kind("fail"))
    assert sum(len(card.faults) + len(card.texts) for card in told) == len(verdict.of_kind("fail"))
    narrow = next(card for card in told if card.checks == ("watch.pcie_link",))
    assert (narrow.component, dict(narrow.where)["PCI address"]) == (Gpu(1), "0000:02:00.0")
    (fault,) = narrow.faults
    assert (fault.measurement, fault.measured, fault.limit, fault.margin) == (
        "gpu_link_width",
        "8",
        ">= 16",
        "8 too low (-50.0 %)",
    )
    assert narrow.teaching is not None
    assert narrow.teaching.next is not None
    assert "0000:02:00.0" in narrow.teaching.next


def test_checks_that_could_not_be_judged_for_one_reason_are_one_card(tmp_path: Path) -> None:
    told = shown(journal_run.read(sample_runs.write("reboot", tmp_path / "run")), "error", "skip")
    assert len(next(card for card in told if card.texts == ("never ran",)).checks) > 3
    assert [card.checks for card in told if card.texts == ("did not finish",)] == [
        ("together.burn",)
    ]


@each(
    "limit, value, told",
    [
        (Limit("GB/s", "b", low=100.0), 85.0, "15 GB/s too low (-15.0 %)"),
        (Limit("degC", "b", high=80.0), 90.0, "10 degC too high"),
        (Limit("count", "b", high=0.0), 3.0, "3 too high"),
        (Limit("GB/s", "b", low=100.0, warn_low=110.0), 105.0, "5 GB/s too low (-4.5 %)"),
        (Limit("W", "b", high=100.0, warn_high=90.0), 95.0, "5 W too high (+5.6 %)"),
        (Limit("GB/s", "b", low=100.0), 100.0, None),
    ],
)
def test_a_margin_is_told_in_the_unit_and_as_a_share(
    limit: Limit, value: float, told: str | None
) -> None:
    assert cards.margin(limit, value, ENGLISH) == told


# --- whole pages of the sample runs ---


def page(name: str, folder: Path) -> lxml_html.HtmlElement:
    run = sample_runs.write(name, folder / name)
    write_views(run)
    text = (run / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    return lxml_html.document_fromstring(text)


def words(element: lxml_html.HtmlElement) -> str:
    return " ".join(element.text_content().split())


def test_a_restart_is_told_where_the_lines_end(tmp_path: Path) -> None:
    tree = page("reboot", tmp_path)
    assert "The run broke off. the machine was restarted before it came to its end" in words(
        tree.find("body/header")
    )
    assert "The lines end where the machine was restarted." in words(
        tree.get_element_by_id("telemetry").getparent()
    )
    assert len(tree.find_class("end")) == 2 * 3
    assert "xid 94" in words(tree.get_element_by_id("events").getparent())


def test_the_recorded_h200_is_shown_with_its_telemetry_tables_and_logs(tmp_path: Path) -> None:
    tree = page("h200", tmp_path)
    (figure,) = tree.iter("figure")
    assert {words(one).partition(":")[0] for one in figure.find_class("what")} == {
        "temperature",
        "power",
        "clock",
    }
    assert "peak 989.4 TFLOP/s, sheet of H200 SXM 141GB" in words(tree)
    assert "bf16 TFLOP/s" in words(tree.get_element_by_id("tables").getparent())
    assert "logs/compute.gemm_together-1.log" in tree.xpath("//a/@href")


def test_what_is_slowed_by_heat_is_shaded(slow: Path) -> None:
    write_views(slow)
    tree = lxml_html.document_fromstring((slow / "report.html").read_text(encoding="utf-8"))
    cool, hot = tree.iter("figure")
    assert not cool.find_class("slow")
    assert hot.find_class("slow")
    assert cool.find_class("cap")
