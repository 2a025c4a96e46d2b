"""`rigproof fleet report`: the terminal, the page, JUnit, CSV and metrics of made-up fleets."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fleet_reports
import hostile
import jenkins_schema
import numpy as np
import pages
import pytest
from cases import each
from command import assert_refused, printed
from fleet_verdicts import RATE, Call, ago, place, rows, verdict
from junitparser import JUnitXml
from known import known
from prometheus_client.parser import text_string_to_metric_families

from acceptance.__main__ import main
from acceptance.core.language import ENGLISH
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import report
from acceptance.fleet.common_cause import Causes
from acceptance.fleet.comparison import Comparison
from acceptance.fleet.night import NightTable, Row
from acceptance.fleet.report import FleetReport
from acceptance.fleet.views import sentences, table
from acceptance.reports import verdict_json
from acceptance.reports.page import report_page
from acceptance.reports.report import Line
from acceptance.wording import words

MODEL, DRIVER = "NVIDIA H200", "580.95"
CHECK = "gemm.rate[bf16]"


@pytest.fixture
def call(fleet: Call) -> Call:
    return lambda *arguments, verb="report": fleet(verb, *arguments)


def machine(
    folder: Path, name: str, word: VerdictWord = "PASS", hours: float = 3.0, **more: Any
) -> None:
    """A machine with a run that began some hours ago, in a folder of its own."""
    run, at = ago(hours)
    facts = {
        "gpu_model": MODEL,
        "nvidia_driver": more.pop("driver", DRIVER),
        "machine_id": name,
        **more.pop("facts", {}),
    }
    values = more.pop("values", (700.0, 701.0))
    made = verdict(word, run, values, serial=f"GPU-{name}", provenance=facts, **more)
    place(folder, name, made, under=run, written=at + timedelta(minutes=30))


def fleet(folder: Path) -> None:
    """Four machines, two nights each; one of them is FAIL, UNJUDGED or slow tonight."""
    for name, word, rate in (
        ("a", "PASS", 700.0),
        ("b", "FAIL", 702.0),
        ("c", "UNJUDGED", 698.0),
        ("slow", "PASS", 560.0),
        ("e", "PASS", 699.0),
        ("f", "PASS", 701.0),
    ):
        machine(folder, name, hours=27.0, values=(rate, rate + 1), driver="570.10")
        machine(folder, name, word, values=(rate, rate + 1))  # type: ignore[arg-type]
    (folder / "gone").mkdir()


def suites(path: Path) -> dict[str, dict[str, str]]:
    """What came of each testcase, by its suite; "" of one that passed."""
    return {
        suite.name: {
            case.name: type(case.result[0]).__name__ if case.result else "" for case in suite
        }
        for suite in JUnitXml.fromfile(str(path))
    }


def metric(text: str, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


# --- the whole through the command ---


FILES = {"--page": "p.html", "--junit": "j.xml", "--csv": "c.csv", "--textfile": "m.prom"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The report of a night in every form: the folder of its files, and its lines."""
    folder = tmp_path_factory.mktemp("night")
    fleet(folder / "fleet")
    (folder / "fleet/b c").mkdir()
    (folder / "due").write_text("a\nb\nc\nslow\ne\nf\ngone\nnever\n")
    given = [word for option in FILES.items() for word in option]
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(io.StringIO()) as out:
        patched.chdir(folder)
        patched.setattr(sys, "path", list(sys.path))
        assert main(["fleet", "report", "fleet", "--due", "due", *given]) == 1
    return folder, out.getvalue().splitlines()


def test_a_night_on_the_terminal(told: tuple[Path, list[str]]) -> None:
    out = told[1]
    assert out[:4] == [*FILES.values()]
    place_ = {line.split(" (")[0]: number for number, line in enumerate(out)}
    assert place_["without a fresh verdict"] < place_["FAIL"] < place_["UNJUDGED"]
    assert "  never: there is no verdict" in out
    assert "  gone: fleet/gone holds no run with a verdict" in out
    assert any(line.startswith(f"  b: {CHECK}: measured 1, limit >= 600 (20") for line in out)
    assert f"  {CHECK}: 1 fail, 1 error: b, c" in out
    assert any(line.startswith("  slow is slower than its equals") for line in out)
    assert "  PASS -> FAIL (1): b" in out
    assert "  PASS -> UNJUDGED (1): c" in out
    assert "  nvidia_driver 570.10 -> 580.95 (6): a, b, c, e, f, slow" in out
    assert out[-1] == (
        "FAIL: 8 machines due: 4 PASS, 1 FAIL, 3 UNJUDGED (2 without a fresh verdict)"
    )


def test_long_lists_are_cut_and_counted(call: Call, tmp_path: Path) -> None:
    for number in range(25):
        machine(tmp_path / "fleet", f"n{number:02d}", "FAIL")
    machine(tmp_path / "fleet", "old", hours=100)
    machine(tmp_path / "fleet", "stranger")
    machine(tmp_path / "fleet", "visitor")
    (tmp_path / "due").write_text("old\n" + "".join(f"n{number:02d}\n" for number in range(25)))
    _, out, _ = call("fleet", "--due", "due")
    first = out.index("FAIL (25)")
    assert out[first + 20].startswith("  n19: ")
    assert out[first + 21] == "  and 5 more"
    assert f"  {CHECK}: 25 fail: n00, n01, n02, n03, n04, n05, n06, n07 and 17 more" in out
    assert "not due: stranger, visitor" in out
    assert out[out.index("Oldest verdicts") + 3] == "  old: 4 days"
    # The night of the old run is no night to compare 25 machines with.
    assert not any(line.startswith("Changed") for line in out)


def test_a_file_that_cannot_be_written_does_not_hide_the_verdicts(
    call: Call, tmp_path: Path
) -> None:
    machine(tmp_path / "fleet", "a", "FAIL")
    code, out, err = call("fleet", "--page", "nowhere/p.html")
    assert (code, err.count("\n")) == (3, 1)
    assert "nowhere/p.html" in err
    assert out[-1].startswith("FAIL: 1 machine due")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give the FOLDER"),
        (["fleet", "--nights", "n"], "give the FOLDER"),
        (["--nights", "n", "--signer", "n/key"], "--signer"),
        (["--nights", "n"], "n holds no night"),
        (["fleet", "--textfile", "m.txt"], "*.prom"),
    ],
)
def test_usage_errors_are_one_sentence(
    call: Call, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/key").write_text("ssh-ed25519 AAAA")
    assert_refused(call(*arguments), 2, said)


# --- JUnit ---


def test_junit_has_a_suite_a_machine_and_errors_for_the_missing_first(
    told: tuple[Path, list[str]],
) -> None:
    found = suites(told[0] / "j.xml")
    assert list(found) == ["the whole fleet", "gone", "never", "b", "c", "a", "e", "f", "slow"]
    assert found["the whole fleet"] == {"the whole fleet": "Error"}  # `b c` is no name
    assert found["never"] == {"never: verdict": "Error"}
    assert found["b"] == {"b: verdict": "Failure", f"b: {CHECK}": "Failure"}
    assert found["c"] == {"c: verdict": "Error", f"c: {CHECK}": "Error"}
    assert found["a"] == {"a: verdict": ""}
    assert jenkins_schema.faults((told[0] / "j.xml").read_bytes()) == []


def test_junit_of_no_machine_is_an_error(call: Call, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    assert call("fleet", "--junit", "j.xml")[0] == 3
    assert suites(tmp_path / "j.xml") == {"the whole fleet": {"the whole fleet": "Error"}}


# --- CSV ---


def test_csv_has_a_row_a_machine(told: tuple[Path, list[str]]) -> None:
    found = rows(told[0] / "c.csv")
    assert [row["machine"] for row in found] == ["gone", "never", "b", "c", "a", "e", "f", "slow"]
    slow, gone = found[-1], found[0]
    assert slow["verdict"] == "PASS"
    assert slow["gpu_serials"] == "GPU-slow-gpu0 GPU-slow-gpu1"
    assert (slow["gpu_model"], slow["nvidia_driver"]) == (MODEL, DRIVER)
    assert slow["gemm_bf16 (TFLOP/s)"] == "560"  # the lower of its two
    assert (gone["verdict"], gone["run_id"], gone["gemm_bf16 (TFLOP/s)"]) == ("UNJUDGED", "", "")
    assert "copy_h2d (GB/s)" not in slow  # nobody measured it


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "＝", "＠"])  # noqa: RUF001
def test_no_cell_is_a_formula(call: Call, tmp_path: Path, first: str) -> None:
    evil = f'{first}cmd|"x"!A1'
    machine(
        tmp_path / "fleet",
        f"{first}1+1",
        "FAIL",
        violations=(verdict_json.Row(evil, evil, "x", {}),),
        driver=evil,
        facts={"gpu_model": f"\t {evil}", "kernel": f"a\n{evil}"},
    )
    call("fleet", "--csv", "c.csv")
    (row,) = rows(tmp_path / "c.csv")
    assert row["machine"] == f"'{first}1+1"
    assert row["nvidia_driver"] == row["gpu_model"] == f"'{evil}"
    assert not any(cell.strip().startswith(first) for cell in row.values())


# --- metrics ---


def test_metrics_are_reduced(told: tuple[Path, list[str]]) -> None:
    assert (told[0] / "m.prom").stat().st_mode & 0o777 == 0o644
    text = (told[0] / "m.prom").read_text()
    assert metric(text, "rigproof_fleet_machines") == {
        ("PASS",): 4.0,
        ("FAIL",): 1.0,
        ("UNJUDGED",): 3.0,
    }
    assert metric(text, "rigproof_fleet_machine_verdict")["b", "FAIL"] == 1.0
    assert metric(text, "rigproof_fleet_machine_missing")["gone",] == 1.0
    started = metric(text, "rigproof_fleet_machine_run_started_timestamp_seconds")
    assert ("gone",) not in started
    assert started["a",] == pytest.approx(datetime.now(UTC).timestamp() - 3 * 3600, abs=120)
    assert metric(text, "rigproof_fleet_rate")["slow", RATE, "TFLOP/s"] == 560.0
    drops = metric(text, "rigproof_fleet_outlier_drop")
    assert {labels[0] for labels in drops} == {"slow"}
    assert metric(text, "rigproof_fleet_gpu_info")["a", "GPU-a-gpu0"] == 1.0
    assert metric(text, "rigproof_fleet_troubles") == {(): 2.0}


# --- the page ---

_TAGS = {
    "code",
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "nav"),
    *("h1", "h2", "h3", "p", "ul", "li", "a", "div", "span", "table", "thead", "tbody", "tfoot"),
    *("tr", "th", "td", "svg", "path", "details", "summary"),
}
_ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "role"),
    *("aria-label", "aria-labelledby", "tabindex", "scope", "viewbox", "preserveaspectratio"),
    *("d", "open"),
}


def test_the_page_has_its_parts(told: tuple[Path, list[str]]) -> None:
    text = (told[0] / "p.html").read_text(encoding="utf-8")
    pages.assert_inert(text, _TAGS, _ATTRIBUTES)
    seen = pages.page(text)
    words_ = pages.words(seen)
    heads = [pages.words(one) for one in seen.xpath("//h2")]
    assert heads[:3] == ["without a fresh verdict (2)", "FAIL (1)", "UNJUDGED (1)"]
    assert {"Machines by check", "Distributions", "Oldest verdicts"} < set(heads)
    cells = {
        row.xpath("th")[0].text: [cell.text or "" for cell in row.xpath("td")]
        for row in seen.xpath("//table[@class='fleet-checks']/tbody/tr")
    }
    assert cells == {"b": ["F"], "c": ["U"]}
    (spread,) = seen.xpath(f"//table[@class='spread']//tr[starts-with(th, '{RATE}')]")
    assert "slow gpu0" in pages.words(spread)
    assert spread.xpath(".//path[@class='x']")
    assert "PASS -> FAIL (1): b" in words_


def test_what_is_the_same_everywhere_is_folded_up(call: Call, tmp_path: Path) -> None:
    for number in range(3):
        machine(tmp_path / "fleet", f"n{number}", values={"equal": 1.0, "other": 1.0 + number})
    call("fleet", "--page", "p.html")
    seen = pages.page((tmp_path / "p.html").read_text(encoding="utf-8"))
    heads = [pages.words(one) for one in seen.xpath("//table[@class='spread']/tbody/tr/th")]
    assert [head.split()[0] for head in heads] == ["other"]
    (folded,) = seen.xpath("//section[h2 = 'Distributions']/details")
    assert pages.words(folded).endswith("equal")


def test_the_page_speaks_chinese(call: Call, tmp_path: Path) -> None:
    fleet(tmp_path / "fleet")
    _, out, _ = call("fleet", "--page", "p.html", "--lang", "zh-CN")
    assert out[-1].startswith("FAIL\uff1a7 台应测机器")
    words_ = pages.words(pages.page((tmp_path / "p.html").read_text(encoding="utf-8")))
    assert "最旧的结论" in words_


# A verdict is UTF-8, so that half a letter cannot be in it.
EVERYTHING = hostile.EVERYTHING.encode("utf-8", errors="ignore").decode("utf-8")
NAMES = ("<b>&amp;", "a;b|c", "$(x)`y`")


@pytest.mark.parametrize("text", [EVERYTHING, "x" * 5_000], ids=["everything", "a long word"])
def test_hostile_text_stays_text(call: Call, tmp_path: Path, text: str) -> None:
    for number, name in enumerate(NAMES):
        machine(
            tmp_path / "fleet",
            name,
            "FAIL",
            violations=(verdict_json.Row(text, text, "x", {}),),
            values={text: 1.0 + number},
            driver=f"{text}{number}",
            facts={"gpu_model": text, "kernel": text},
        )
    files = ("--page", "p.html", "--junit", "j.xml", "--csv", "c.csv", "--textfile", "m.prom")
    out = printed(call("fleet", *files), 1)
    assert not any(hostile.HARMFUL.search(line) for line in out)
    seen = pages.page((tmp_path / "p.html").read_text(encoding="utf-8"))
    for element in seen.iter():
        assert element.tag in _TAGS
        assert set(element.attrib) <= _ATTRIBUTES
        assert element.get("href", "#")[0] == "#"
    assert seen.xpath("//table[@class='fleet-checks']")
    assert seen.xpath("//table[@class='spread']")
    junit = (tmp_path / "j.xml").read_bytes()
    assert jenkins_schema.faults(junit) == []
    assert b"[[ATTACHMENT" not in junit
    assert len(suites(tmp_path / "j.xml")) == 4
    assert len(rows(tmp_path / "c.csv")) == 3
    cells = [cell for row in rows(tmp_path / "c.csv") for cell in row.values()]
    assert not any(hostile.HARMFUL.search(cell) for cell in cells)
    verdicts_ = metric(
        (tmp_path / "m.prom").read_text(encoding="utf-8"), "rigproof_fleet_machine_verdict"
    )
    assert set(verdicts_) == {(name, "FAIL") for name in NAMES}


def test_a_page_of_ten_thousand_machines_is_small_and_leaves_no_machine_out() -> None:
    found = sentences.report(fleet_reports.many(10_000), page=True)
    text = report_page.render(found, ENGLISH, "acceptance.fleet.views")
    assert len(text) < 1_000_000
    seen = pages.page(text)
    assert len(seen.xpath("//tr")) < 1_000
    words_ = pages.words(seen)
    assert "FAIL (1000)" in words_
    assert "and 800 more" in words_
    assert "gpu-00001 gpu0: 560 (20.0 % worse)" in words_
    assert table.render(fleet_reports.many(10_000)).count(b"\n") == 10_001


def page_of(*machines: Row) -> list[str]:
    """The words of each paragraph and list item of the page of a kept night."""
    night_ = {"2026-11-25": kept(**{one.machine: one for one in machines})}
    made = sentences.report(report.of_nights(night_, None, NOW, FRESH), page=True)
    seen = pages.page(report_page.render(made, ENGLISH, "acceptance.fleet.views"))
    return [pages.words(one) for one in seen.xpath("//p | //li")]


def test_checks_without_a_column_have_their_machines_on_the_page() -> None:
    failed = tuple((f"gemm.rate[{number:02d}]", "fail") for number in range(sentences.CHECKS + 2))
    told = page_of(row("a", "FAIL", not_passed=failed), row("b", "FAIL", not_passed=failed))
    further = [f"gemm.rate[{number}]: 2 fail: a, b" for number in (30, 31)]
    assert told[told.index("Further checks:") + 1 :][:2] == further


@each("count, page, cut", [(20, False, 0), (21, False, 1), (200, True, 0), (201, True, 1)])
def test_where_all_machines_are_is_said_where_a_list_is_cut(
    count: int, page: bool, cut: int
) -> None:
    failed = {f"n{number:03d}": row(f"n{number:03d}", "FAIL") for number in range(count)}
    found = report.of_nights({"2026-11-25": kept(**failed)}, None, NOW, FRESH)
    made = sentences.report(found, page=page)
    lines = [
        one.text for section in made.sections for one in section.parts if isinstance(one, Line)
    ]
    assert lines.count("--csv and --junit write all machines") == cut
    shown = report_page.render(made, ENGLISH, "acceptance.fleet.views")
    assert not page or ("and 1 more" in shown) == bool(cut)


# --- kept nights ---


def kept(**rows_: Row) -> NightTable:
    made = tuple(sorted(rows_.values(), key=lambda row: row.machine))
    return NightTable(made, (), np.empty((len(made), 0)), {})


NOW = datetime(2026, 11, 26, 7, 0, tzinfo=UTC)
FRESH = timedelta(hours=30)


def row(name: str, word: VerdictWord = "PASS", hours: float = 6.0, **more: Any) -> Row:
    return Row(name, word, None, "run-1", NOW - timedelta(hours=hours), **more)


def standings(found: FleetReport) -> Mapping[str, tuple[str, bool]]:
    return {one.machine: (one.verdict, one.missing) for one in found.due}


def test_nights_that_were_kept_are_reported(call: Call, tmp_path: Path) -> None:
    fleet(tmp_path / "fleet")
    assert call("fleet", "--out", "nights", verb="collect")[0] == 1
    out = printed(call("--nights", "nights", "--page", "p.html"), 1)
    assert f"  {CHECK}: 1 fail, 1 error: b, c" in out
    assert out[-1].startswith("FAIL: 7 machines due: 4 PASS, 1 FAIL, 2 UNJUDGED")
    code, out, _ = call("--nights", "nights", "--fresh", "1")
    assert code == 1, "a FAIL does not expire"
    assert out[-1].startswith("FAIL: 7 machines due: 0 PASS, 1 FAIL, 6 UNJUDGED (6 without")


def test_a_kept_night_says_what_could_not_be_read(call: Call, tmp_path: Path) -> None:
    machine(tmp_path / "fleet", "a")
    (tmp_path / "fleet/b c").mkdir()
    (tmp_path / "fleet/torn").mkdir()
    (tmp_path / "fleet/torn/verdict.json").write_text("{")
    (tmp_path / "due").write_text("a\n")
    arguments = ("fleet", "--due", "due", "--out", "nights")
    assert call(*arguments, verb="collect")[0] == 3
    out = printed(call("--nights", "nights", "--due", "due"), 3)
    assert out[out.index("What could not be read") + 1].startswith("  fleet/b c is no name")
    assert sum("fleet/torn/verdict.json" in line for line in out) == 1, "it is said once"
    assert call("--nights", "nights", "--due", "due", "--fail-on", "1")[0] == 3
    (tmp_path / "fleet/b c").rmdir()
    shutil.rmtree(tmp_path / "fleet/torn")
    assert call(*arguments, verb="collect")[0] == 0
    assert call("--nights", "nights", "--due", "due")[0] == 0


def test_a_night_that_does_not_say_what_could_not_be_read_is_no_pass() -> None:
    silent = replace(kept(a=row("a")), troubles=None)
    found = report.of_nights({"2026-11-24": kept(), "2026-11-25": silent}, None, NOW, FRESH)
    assert (found.verdict, standings(found)["a"]) == ("UNJUDGED", ("PASS", False))
    (text,) = (words.text(one) for one in found.other_troubles)
    assert text.startswith("the night of 2026-11-25 does not say what could not be read")
    again = report.of_nights({"2026-11-24": silent, "2026-11-25": kept()}, None, NOW, FRESH)
    assert again.other_troubles == []


@pytest.mark.parametrize(("newer", "older"), [("PASS", "UNJUDGED"), ("UNJUDGED", "FAIL")])
def test_a_machine_with_two_names_in_kept_nights_counts_once(
    newer: VerdictWord, older: VerdictWord
) -> None:
    facts: dict[str, Any] = {"parts": ("GPU-1",), "groups": (("machine_id", "x"),)}
    nights = {
        "2026-11-24": kept(a=row("a", "FAIL" if older == "FAIL" else "PASS", 29, **facts)),
        "2026-11-25": kept(b=replace(row("b", newer, **facts), run_id="run-2")),
    }
    found = report.of_nights(nights, None, NOW, FRESH)
    assert standings(found) == {"a": (older, False), "b": (newer, False)}
    assert "under the name b" in words.text(found.reasons["a"])


def test_a_machine_id_that_is_on_several_machines_is_a_remark(call: Call, tmp_path: Path) -> None:
    for name in "ab":
        machine(tmp_path / "fleet", name, facts={"machine_id": "x"})
    out = printed(call("fleet", "--junit", "j.xml"))
    (line,) = (line for line in out if "machine id x is on several machines (a, b)" in line)
    assert out.index(line) > out.index("Comparison of machines")
    assert "machine id x is on several" in (tmp_path / "j.xml").read_text()


ENDED = {
    "2026-11-20": kept(a=row("a", "FAIL", 130), b=row("b", "FAIL", 130)),
    "2026-11-21": kept(a=row("a", hours=106), b=row("b", hours=106, ended=("run-1",))),
    "2026-11-25": kept(b=row("b", "UNJUDGED")),
}
MISSING = {
    "2026-11-24": kept(a=row("a", hours=30), b=row("b", "FAIL", hours=29)),
    "2026-11-25": kept(a=row("a"), b=row("b", "FAIL")),
    "2026-11-26": kept(c=Row("c", "UNJUDGED", missing=True)),
}


@each(
    "nights, due, standing, verdict, night_, others",
    [
        (
            {"2026-11-20": kept(a=row("a", hours=130))},
            None,
            {"a": ("UNJUDGED", True)},
            "UNJUDGED",
            "2026-11-20",
            [],
        ),
        (
            {"2026-11-25": kept(a=Row("a", "PASS"))},
            None,
            {"a": ("UNJUDGED", False)},
            "UNJUDGED",
            "2026-11-25",
            [],
        ),
        (
            ENDED,
            None,
            {"a": ("FAIL", True), "b": ("UNJUDGED", False)},
            "FAIL",
            "2026-11-25",
            [],
        ),
        (
            MISSING,
            None,
            {"a": ("PASS", False), "b": ("FAIL", False), "c": ("UNJUDGED", True)},
            "FAIL",
            "2026-11-25",
            [],
        ),
        (
            {"2026-11-25": kept(a=row("a"), b=row("b"))},
            ["a", "z"],
            {"z": ("UNJUDGED", True), "a": ("PASS", False)},
            "UNJUDGED",
            "2026-11-25",
            ["b"],
        ),
    ],
    told=[
        *("an old night is no PASS", "a row without a run is no PASS"),
        "a FAIL stands until a run that ended it",
        "a night of missing machines alone does not hide the others",
        "machines that are due and not kept are missing",
    ],
)
def test_what_kept_nights_say(
    nights: dict[str, NightTable],
    due: list[str] | None,
    standing: dict[str, tuple[str, bool]],
    verdict: str,
    night_: str,
    others: list[str],
) -> None:
    found = report.of_nights(nights, due, NOW, FRESH)
    assert (standings(found), found.verdict) == (standing, verdict)
    assert (found.night, [one.machine for one in found.others]) == (night_, others)
    titles = [title for title, _ in sentences.groups(found, ENGLISH)]
    assert "FAIL" in titles if verdict == "FAIL" else "FAIL" not in titles
    assert not {one.machine for one in found.values.rows} & set(others)


def test_a_night_of_missing_machines_alone_is_none_with_runs() -> None:
    assert sorted(report.with_runs(MISSING)) == ["2026-11-24", "2026-11-25"]


# --- what changed ---


def test_changes_since_the_night_before() -> None:
    before = kept(
        a=row("a", parts=("GPU-1", "GPU-2"), groups=(("kernel", "6.1"),)),
        b=row("b", "FAIL"),
        c=row("c"),
    )
    now = kept(
        a=row(
            "a", "FAIL", parts=("GPU-1", "GPU-3"), groups=(("board_serial", "S"), ("kernel", "6.8"))
        ),
        b=row("b"),
        d=row("d"),
    )
    found = report.of_nights({"2026-11-25": now}, None, NOW, FRESH)
    compared = Comparison((), 0, 0, 0, (), (), (), Causes((), ()), ())
    found = report.with_earlier(found, {"2026-11-24": before, "2026-11-25": now}, compared)
    turns = known(report.changes(found))
    assert [(one.was, one.now, one.machines) for one in turns.verdicts] == [
        ("PASS", "FAIL", ("a",)),
        ("FAIL", "PASS", ("b",)),
    ]
    assert [(one.what, one.was, one.now, one.machines) for one in turns.facts] == [
        ("GPUs", "GPU-2", "GPU-3", ("a",)),
        ("kernel", "6.1", "6.8", ("a",)),
    ]
    assert (turns.new, turns.gone) == (("d",), ("c",))


def test_nothing_is_compared_without_a_night_before() -> None:
    found = report.of_nights({"2026-11-25": kept(a=row("a"))}, None, NOW, FRESH)
    assert report.changes(found) is None


def test_other_limits_are_told_of_kept_nights_too() -> None:
    def by(version: str) -> tuple[tuple[str, str], ...]:
        return (("limits", version), ("limits_digest", version[-1] * 64))

    nights = {
        "2026-11-25": kept(
            a=row("a", groups=by("v.1")), b=row("b", groups=by("v.1")), c=row("c", groups=by("v.2"))
        )
    }
    (told,) = report.of_nights(nights, None, NOW, FRESH).remarks
    assert words.message(told).startswith("c: judged by the limits v.2 222222222222, and 2 of")
    assert report.of_nights(nights, ["a", "b"], NOW, FRESH).remarks == ()
