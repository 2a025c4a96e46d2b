"""The parts of the page that are reckoned before anything is drawn: matrices, bars, peaks, the
picture of the machine, the story.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from pathlib import Path

import journals
import pages
import pytest
import runs
import sample_machines
import sample_runs
from cases import each
from known import known
from lxml import html as lxml_html
from msgspec.structs import replace
from runs import write_views

from acceptance.core.finding import Finding, Within
from acceptance.core.fold import fold
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import Gpu, Pair
from acceptance.core.plan import Due
from acceptance.core.record import RunClosed, RunStarted
from acceptance.core.verdict import Judgement
from acceptance.expect import gpu_limits
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.machine.inventory import Inventory
from acceptance.machine.observation import NOTHING, decode
from acceptance.machine.topology import build
from acceptance.reports.languages import language
from acceptance.reports.locations import find_locations
from acceptance.reports.page import bars, cards, heat, render, run_log, topology
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


def cells(found: heat.HeatMatrix | None) -> dict[tuple[str, str], heat.HeatCell]:
    matrix = known(found)
    return {
        (row, column): cell
        for row, line in matrix.rows
        for column, cell in zip(matrix.head, line, strict=True)
    }


def test_pairs_are_a_matrix_coloured_by_their_share_of_the_largest() -> None:
    found = cells(
        heat.pairs(
            [
                judged(Pair(Gpu(0), Gpu(1)), 400.0),
                judged(Pair(Gpu(1), Gpu(0)), 90.0, kind="fail"),
                judged(Pair(Gpu(2), Gpu(10)), None, kind="error"),
            ]
        )
    )
    assert [row for row, column in found if column == "gpu0"] == ["gpu0", "gpu1", "gpu2", "gpu10"]
    assert {key: (one.text, one.level, one.bad) for key, one in found.items() if one.level} == {
        ("gpu0", "gpu1"): ("400", 5, False),
        ("gpu1", "gpu0"): ("90", 1, True),
    }
    assert (found["gpu2", "gpu10"].text, found["gpu2", "gpu10"].bad) == ("-", True)
    assert (found["gpu0", "gpu0"].text, found["gpu2", "gpu0"].text) == ("", "-")


def test_fewer_nvlinks_than_others_have_stand_out() -> None:
    dead, sound = (
        [pair for pair, cell in cells(heat.way_matrix(observed(name)[1])).items() if cell.bad]
        for name in ("8xh200-dead-link", "8xh200")
    )
    assert (len(dead), sound) == (14, [])
    assert all("gpu5" in pair for pair in dead)
    assert heat.way_matrix(()) is None


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


# --- bars ---


def group(*siblings: Judgement, known: bars.Peaks | None = None) -> bars.Group:
    check = journals.check("link.copy", *(one.due for one in siblings))
    verdict = fold(journals.entries(journals.bodies(journals.plan(check))))
    (found,) = bars.groups(
        replace(verdict.checks[0], judged=siblings), known or {}, frozenset(), ENGLISH
    )
    return found


def test_siblings_share_a_scale_that_holds_value_limit_and_peak() -> None:
    top = bars.Peak(200.0, "sheet")
    known_ = {("copy", gpu): top for gpu in (Gpu(0), Gpu(1))}
    found = group(judged(Gpu(0), 150.0), judged(Gpu(1), 50.0, kind="fail"), known=known_)
    assert [(row.bar, row.mark) for row in found.rows] == [
        (bars.Bar(75.0, 50.0, None, 100.0), ""),
        (bars.Bar(25.0, 50.0, None, 100.0), "fail"),
    ]
    assert (found.limit, found.peak) == (">= 100 GB/s", top)
    assert found.bases == (("", "a basis (class default)"),)


@each(
    "one, bar",
    [
        (judged(Gpu(0), 150.0), bars.Bar(100.0, 66.7, None, None)),
        (judged(Gpu(0), 50.0, kind="fail"), bars.Bar(50.0, 100.0, None, None)),
        (judged(Gpu(0), 50.0, None), bars.Bar(100.0, None, None, None)),
    ],
)
def test_without_a_peak_the_larger_of_value_and_limit_is_the_whole(
    one: Judgement, bar: bars.Bar
) -> None:
    assert group(one).rows[0].bar == bar


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
    found = bars.peaks(observed("8xh200")[0], gpu_limits.sheets(), ENGLISH)
    assert found["gemm_bf16", Gpu(7)] == bars.Peak(989.4, "sheet of H200 SXM 141GB")
    assert {
        name: round(found[name, Gpu(0)].value, 1) for name in ("burn_f64", "copy_h2d", "gpu_power")
    } == {"burn_f64": 66.9, "copy_h2d": 63.0, "gpu_power": 700.0}
    assert ("copy_local", Gpu(0)) not in found
    unknown = decode({"pci": [{"address": "x", "device_id": "10de:ffff", "is_display": True}]})
    for seen in (unknown, NOTHING):
        assert bars.peaks(seen, gpu_limits.sheets(), ENGLISH) == {}


# --- the picture ---


def test_the_picture_shows_switches_nodes_and_a_rail_of_nvlinks() -> None:
    found = known(topology.picture(*observed("8xh200-dead-link"), ENGLISH))
    kinds = Counter(box.kind for box in found.boxes)
    assert kinds == {"node": 2, "bridge": 4, "gpu": 8, "card": 5}
    wires = [(wire.kind, wire.text) for wire in found.wires if wire.kind in ("short", "nvlink")]
    assert [text for kind, text in wires if kind == "short"] == ["17"]
    assert [text for kind, text in wires if kind == "nvlink"] == ["NVLink", *["18"] * 7]
    assert "gpu5 at 0000:06:00.0 on processor, NUMA node 1, PCIe switch 0000:31:00.0" in found.told
    assert "gpu4 and gpu5: 17 NVLinks" in found.told
    assert all(0 <= box.y < found.height for box in found.boxes)
    seen, matrix = observed("2x3090ti")
    bridged = known(topology.picture(seen, matrix, ENGLISH))
    assert [wire.text for wire in bridged.wires if wire.kind == "nvlink"] == ["4 NVLinks"]
    for bare in (NOTHING, dataclasses.replace(seen, pci=())):
        assert topology.picture(bare, (), ENGLISH) is None


# --- the story ---


@each(
    "lang, told",
    [
        ("en", ("1 of 2 faults caught", "restarted", "disk health: no disk was found")),
        ("zh-CN", ("2 个故障查出 1 个", "重启", "没有找到硬盘")),
    ],
)
def test_what_a_run_says_in_codes_is_worded_on_its_page(lang: str, told: tuple[str, ...]) -> None:
    """Who wrote the run, and what it leaves out, as the supervisor and a later start write them."""
    start, *bodies, end = journals.bodies(journals.plan())
    assert isinstance(start, RunStarted)
    score = {"utc": "2026-11-22", "kind": "short", "caught": 1, "faults": 2, "alarms": 0}
    plan = replace(start.plan, not_tested=(Message("no_disk"),))
    selftest = Message("selftest_score", {**score, "clean": 3})
    closed = RunClosed(None, True, {}, Message("restarted"))
    first = replace(start, plan=plan, selftest=selftest)
    run = runs.judged(journals.entries([first, *bodies, closed]))
    page = render.render(run, (), language(lang))
    assert [text for text in told if text not in page] == []
    assert "Message(" not in page
    assert known(run_log.interruption(run.entries)).detail == closed.detail
    assert run_log.interruption(journals.entries([start, *bodies, end])) is None
    for utc, moment in (
        ("2026-11-20T18:05:43.177Z", "2026-11-20 18:05:43 UTC"),
        ("2026-11-20T18:05:43", "2026-11-20 18:05:43 UTC"),
        ("now", None),
    ):
        assert run_log.moment(utc) == moment


# --- cards ---


def shown(found: Run, *kinds: str) -> list[cards.FindingCard]:
    verdict, where = found.verdict, find_locations(found)
    return list(cards.cards(verdict.of_kind(*kinds), cards.by_key(verdict), where, ENGLISH))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_runs.write("2x4090-slow-card", tmp_path_factory.mktemp("runs") / "slow")


@pytest.fixture(scope="module")
def reboot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_runs.write("reboot", tmp_path_factory.mktemp("runs") / "reboot")


def test_faults_of_one_card_with_one_lesson_are_one_card(slow: Path, reboot: Path) -> None:
    found = journal_run.read(slow)
    told, failures = shown(found, "fail"), found.verdict.of_kind("fail")
    assert len(told) < 10 < len(failures)
    assert sum(len(card.faults) + len(card.texts) for card in told) == len(failures)
    narrow = next(card for card in told if card.checks == ("watch.pcie_link",))
    assert (narrow.component, dict(narrow.where)["PCI address"]) == (Gpu(1), "0000:02:00.0")
    (fault,) = narrow.faults
    assert (fault.measurement, fault.measured, fault.limit, fault.margin) == (
        "gpu_link_width",
        "8",
        ">= 16",
        "8 too low (-50.0 %)",
    )
    assert "0000:02:00.0" in known(known(narrow.teaching).next)
    # so are checks that could not be judged for one reason
    told = shown(journal_run.read(reboot), "error", "skip")
    assert len(next(card for card in told if card.texts == ("never ran",)).checks) > 3
    cut = [card.checks for card in told if card.texts == ("did not finish",)]
    assert cut == [("together.burn",)]


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


def page(run: Path) -> lxml_html.HtmlElement:
    write_views(run)
    text = (run / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    return pages.page(text)


def test_a_restart_is_told_where_the_lines_end(reboot: Path) -> None:
    tree = page(reboot)
    telemetry, events = (
        pages.words(tree.get_element_by_id(name).getparent()) for name in ("telemetry", "events")
    )
    assert "The run broke off." in pages.words(tree.find("body/header"))
    assert "The lines end where the machine was restarted." in telemetry
    assert len(tree.find_class("end")) == 2 * 3
    assert "xid 94" in events


def test_the_recorded_h200_is_shown_with_its_telemetry_tables_and_logs(tmp_path: Path) -> None:
    tree = page(sample_runs.write("h200", tmp_path / "h200"))
    (figure,) = tree.iter("figure")
    metrics = {pages.words(one).partition(":")[0] for one in figure.find_class("what")}
    assert metrics == {"temperature", "power", "clock"}
    assert "peak 989.4 TFLOP/s, sheet of H200 SXM 141GB" in pages.words(tree)
    assert "bf16 TFLOP/s" in pages.words(tree.get_element_by_id("tables").getparent())
    assert "logs/compute.gemm_together-1.log" in tree.xpath("//a/@href")


def test_what_is_slowed_by_heat_is_shaded(slow: Path) -> None:
    cool, hot = page(slow).iter("figure")
    shaded = [(bool(one.find_class("slow")), bool(one.find_class("cap"))) for one in (cool, hot)]
    assert (shaded[0], shaded[1][0]) == ((False, True), True)
