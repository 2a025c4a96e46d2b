"""`rigproof baseline`, as it is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import journals
import machine_facts
import pytest
from command import Call, assert_refused, printed
from test_baseline_file import COPY, MACHINE, run

from acceptance.journal import clock

RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"
FILE = f"reports/history/{MACHINE}/baseline.json"


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of runs, on the machine that made them."""
    monkeypatch.setattr(clock, "machine_id", lambda _root=None: MACHINE)
    for name, value in (("one", 120.0), ("two", 130.0), ("bad", 50.0)):
        run(tmp_path / "reports", name, value)
    (tmp_path / "reports/latest").symlink_to("two")
    return tmp_path / "reports"


def test_accept_says_what_it_did_and_where(call: Call, out: Path) -> None:
    lines = printed(call("baseline", "accept", "reports/one")).splitlines()
    assert lines[0] == "run one is the baseline of this machine (parts: 7, measurements: 1)"
    assert lines[-1].endswith(FILE)
    assert (out.parent / FILE).is_file()


def test_accept_again_and_replace(call: Call, out: Path) -> None:
    call("baseline", "accept", "reports/one")
    told = printed(call("baseline", "accept", "reports/one"))
    assert told.startswith("this run has been the baseline since 2")
    assert_refused(
        call("baseline", "accept", "reports/latest"),
        2,
        "run one is the baseline since",
        "add --replace",
    )
    told = printed(call("baseline", "accept", "reports/latest", "--replace"))
    assert "the one before it is kept:" in told
    assert f"{MACHINE}/baselines/one.json" in told


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["accept", "reports/bad"],
            2,
            ["reports/bad: is FAIL", "copy_h2d on gpu0: measured 50 GB/s", "rigproof accept"],
        ),
        (["accept", "nowhere"], 2, ["nowhere: holds no run"]),
        (["accept"], 2, ["RUN", "'rigproof baseline accept --help'"]),
        (
            ["show"],
            2,
            [
                "reports/history",
                "there is no baseline of this machine",
                "rigproof baseline accept RUN",
            ],
        ),
        ([], 2, ["WHAT"]),
        (["forget"], 2, ["'forget'"]),
    ],
    ids=[
        "a run that failed",
        "no run",
        "nothing given",
        "nothing to show",
        "nothing said",
        "unknown",
    ],
)
def test_mistakes(call: Call, out: Path, arguments: list[str], code: int, words: list[str]) -> None:
    assert_refused(call("baseline", *arguments), code, *words)
    assert not (out / "history").exists()


def test_a_baseline_that_was_changed_is_3(call: Call, out: Path) -> None:
    call("baseline", "accept", "reports/one")
    file = out.parent / FILE
    file.write_text(file.read_text().replace("120.0", "90.0"))
    for arguments in (["show"], ["show", "--json"], ["accept", "reports/two"]):
        assert_refused(
            call("baseline", *arguments),
            3,
            "baseline.json: is not what was sealed",
            "put a copy of it back",
            "--replace",
        )


def test_show(call: Call, out: Path) -> None:
    call("baseline", "accept", "reports/one")
    call("baseline", "accept", "reports/two", "--replace")
    told = printed(call("baseline", "show"))
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert f"machine {MACHINE}" in lines
    assert any(line.startswith("before it: run one, accepted 2") for line in lines)
    assert "gpu0 identity GPU-0" in lines
    assert "vbios 96.00" in lines
    assert "board_serial B-1" in lines
    assert "copy_h2d gpu0 130 GB/s 3.9" in lines


def test_show_as_json(call: Call, out: Path) -> None:
    call("baseline", "accept", "reports/one")
    code, told, _ = call("baseline", "show", "--json", "--out", str(out))
    found = json.loads(told)
    assert code == 0
    assert found["sha256"] == json.loads((out.parent / FILE).read_text())["sha256"]
    assert found["certificate"]["birth"]["run_id"] == "one"


def test_text_from_outside_reaches_the_screen_tame(call: Call, out: Path) -> None:
    hostile = "\x1b[31mH200[/]\u202e"
    seen = json.dumps(machine_facts.machine()).replace("NVIDIA H200", json.dumps(hostile)[1:-1])
    run(out, "strange", seen=json.loads(seen))
    call("baseline", "accept", "reports/strange")
    for arguments in (["show"], ["show", "--json"]):
        told = call("baseline", *arguments)[1]
        assert "H200" in told
        assert "\x1b[31m" not in told
        assert "\u202e" not in told


def test_in_chinese(call: Call, out: Path) -> None:
    assert "基线" in call("baseline", "accept", "reports/one", "--lang", "zh-CN")[1]
    assert "机器由什么组成" in call("baseline", "show", "--lang", "zh-CN")[1]


def test_recorded_runs(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "machine_id", lambda _root=None: "vm")
    for folder in RUNS.iterdir():
        if folder.is_dir():
            shutil.copytree(folder, tmp_path / "reports" / folder.name)
    for name, words in (
        ("1xh200-host-smoke", "tested a part of the machine"),
        (
            "1xh200-container-accept",
            (
                "is UNJUDGED, and only a run that passed can be the baseline (the loads ran in "
                "an image"
            ),
        ),
        ("1xh200-host-accept", "did not seal its evidence"),
    ):
        assert_refused(call("baseline", "accept", f"reports/{name}"), 2, words)


def test_without_a_machine_file_it_says_so(call: Call, out: Path) -> None:
    run(out, "undeclared", plan=journals.plan(*COPY.checks, declared=False))
    told = call("baseline", "accept", "reports/undeclared")[1]
    assert "no machine file said what should be in it" in told
