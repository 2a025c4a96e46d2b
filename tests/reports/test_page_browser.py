"""The sample runs' pages in a real browser: no word on its console, nothing wider than a phone but
what scrolls, nothing that acts.

Needs Chromium: `apt-get install chromium`, then `pytest -m browser`.
"""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compared_samples
import fleet_reports
import hostile
import pytest
import sample_runs
import samples
import trend_reports
from cases import each
from runs import write_views

from acceptance.core.language import ENGLISH
from acceptance.fleet.views import sentences
from acceptance.reports import comparison_report, trend_report
from acceptance.reports.page import render, report_page
from acceptance.reports.report import Report

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
PHONE, DESK = 390, 1280
# The page itself may run no script: another one looks at it from outside, in a frame as wide as a
# screen.
PROBE = """<!doctype html><meta charset="utf-8"><iframe src="report.html" style="width:{width}px;height:800px;border:0"></iframe><pre></pre>
<script>
document.querySelector("iframe").onload = event => {{
  const page = event.target.contentDocument, wide = [];
  for (const one of page.body.querySelectorAll("*"))
    if (!one.closest(".scroll, svg, .hidden") && one.getBoundingClientRect().right > {width} + 0.5) wide.push(one.outerHTML.slice(0, 200));
  document.querySelector("pre").textContent = JSON.stringify({{
    width: page.documentElement.scrollWidth, wide: wide, figures: page.querySelectorAll("figure").length,
    acting: page.querySelectorAll("script, img, iframe, object, embed, link, form, base").length,
    handlers: [...page.querySelectorAll("*")].filter(one => [...one.attributes].some(name => name.name.startsWith("on"))).length,
    verdict: page.querySelector("h1").textContent, title: page.title,
  }});
}};
</script>"""  # noqa: E501


def browser() -> str:
    found = next(
        (
            path
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (path := shutil.which(name))
        ),
        None,
    )
    assert found, "no Chromium is installed: `apt-get install chromium`"
    return found


def shown(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """One run of the browser on the folder's probe. A browser that crashed (died by a signal)
    showed nothing, which proves nothing of the page: it is started again, twice at most, each
    time with a profile of its own. A page that crashes it each time fails.
    """
    for start in range(3):
        done = subprocess.run(
            [
                *argv,
                f"--user-data-dir={folder / f'profile-{start}'}",
                (folder / "probe.html").as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode >= 0:
            break
        print(f"the browser crashed by signal {-done.returncode} at start {start + 1}")
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done


def seen(folder: Path, width: int) -> tuple[dict[str, Any], list[str]]:
    """What a browser makes of the folder's page on a screen of that width, and all that it says
    on its console.
    """
    (folder / "probe.html").write_text(PROBE.format(width=width))
    argv = [
        browser(),
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        "--dump-dom",
    ]
    argv += [
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=20000",
    ]
    argv += ["--no-sandbox"] if os.geteuid() == 0 else []
    done = shown(argv, folder)
    told = re.search(r"<pre>(.+?)</pre>", done.stdout, re.DOTALL)
    assert told, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(told[1])), console


@each("name", sample_runs.NAMES)
def test_a_page_fits_a_phone_and_a_desk_and_says_nothing_on_the_console(
    name: str, tmp_path: Path
) -> None:
    folder = sample_runs.write(name, tmp_path / "run")
    verdict = write_views(folder).verdict
    for width in (PHONE, DESK):
        found, console = seen(folder, width)
        assert console == []
        assert found["verdict"] == verdict.verdict
        assert found["wide"] == []
        assert found["width"] == width
        assert found["figures"] > 0
        assert (found["acting"], found["handlers"]) == (0, 0)


@pytest.mark.parametrize(
    "text", [hostile.EVERYTHING, "x" * 5_000], ids=["everything", "a word without end"]
)
def test_hostile_text_does_nothing_in_a_browser(text: str, tmp_path: Path) -> None:
    found = samples.run(hostile.attack(text))
    shown = render.render(samples.with_samples(found))
    (tmp_path / "report.html").write_text(shown, encoding="utf-8")
    told, console = seen(tmp_path, PHONE)
    assert console == []
    assert (told["acting"], told["handlers"]) == (0, 0)
    assert told["wide"] == []
    assert told["title"].startswith("FAIL: ")


def nights(text: str | None) -> Report:
    made = trend_reports.machine(("fedc9876",)) if text is None else trend_reports.hostile(text)
    return trend_report.report(made)


def comparison(text: str | None) -> Report:
    made = compared_samples.one_machine() if text is None else compared_samples.hostile(text)
    return comparison_report.report(made)


def fleet(text: str | None) -> Report:
    found = fleet_reports.many(200)
    due = tuple(
        dataclasses.replace(row, not_passed=((text or "short", "fail"), *row.not_passed))
        for row in found.due
    )
    reasons = dict.fromkeys(found.reasons, text or "short")
    return sentences.report(dataclasses.replace(found, due=due, reasons=reasons), page=True)


@each("width", [PHONE, DESK])
@each("text", [None, hostile.EVERYTHING, "x" * 5_000])
@pytest.mark.parametrize("made", [nights, comparison, fleet])
def test_a_report_fits_and_says_nothing(
    made: Callable[[str | None], Report], text: str | None, width: int, tmp_path: Path
) -> None:
    report = made(text)
    shown = report_page.render(report, ENGLISH, "acceptance.fleet.views")
    (tmp_path / "report.html").write_text(shown, encoding="utf-8")
    found, console = seen(tmp_path, width)
    assert (console, found["wide"], found["acting"], found["handlers"]) == ([], [], 0, 0)
    assert found["width"] == width
    heading = report.closing.text if report.closing else report.title
    assert text or found["verdict"] == heading
