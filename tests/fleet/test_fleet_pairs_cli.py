"""`rigproof fleet pairs` with programs that stand for the load: what is started, what is named."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pair_outputs
import pytest
from cases import each
from executable import executable
from msgspec import structs
from pair_outputs import PYTHONPATH

from acceptance import resources
from acceptance.__main__ import main
from acceptance.fleet import pair_tests
from acceptance.process import command
from acceptance.process.command import ProgramResult

LOAD = Path(pair_outputs.__file__)
TEST = re.compile(r"test=\w+,\w+,[0-9a-f]{16} ")


@dataclass
class Site:
    """Nodes n1, n2 and so on, and what is wrong with some."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    @property
    def launch(self) -> str:
        load = [sys.executable, str(LOAD), str(self.folder)]
        return f"{shlex.join(['env', f'PYTHONPATH={PYTHONPATH}', *load])} {{node}}"

    def node(self, name: str, **how: Any) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(how))

    def run(self, *more: str, count: int = 0, launch: Sequence[str] | None = None) -> int:
        names = self.folder / "nodes.txt"
        names.write_text("".join(f"n{number}\n" for number in range(1, count + 1)))
        argv = ["fleet", "pairs", *([str(names)] if count else [])]
        code = main([*argv, *(launch or ("--launch", self.launch)), *more])
        self.out, self.err = self.capsys.readouterr()
        return code

    def file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "pairs.json").read_text())
        return found

    def started(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()


class Played:
    """The program of a node, played in this process."""

    def __init__(self, argv: Sequence[str], **_: object) -> None:
        folder, node, *rest = argv[argv.index(str(LOAD)) + 1 :]
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = pair_outputs.main(Path(folder), node, rest)
        self.done = ProgramResult(tuple(argv), code, out.getvalue(), err.getvalue(), 0.1)

    def wait(self) -> ProgramResult:
        return self.done


@pytest.fixture
def real() -> None:
    """The programs are started as those of a site."""


@pytest.fixture(autouse=True)
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real" not in request.fixturenames:
        monkeypatch.setattr(command, "start", Played)


@pytest.fixture
def site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Site:
    return Site(tmp_path, capsys)


@pytest.mark.usefixtures("real")
def test_sound_nodes_pass_in_one_round(site: Site) -> None:
    assert site.run("--out", str(site.folder), "--backend", "gloo", "--within", "60", count=6) == 0
    assert site.out.splitlines()[:2] == ["round 1: 3 pairs", "PASS: 6 nodes, 3 tests"]
    found = site.file()
    assert found["verdict"] == "PASS"
    assert [one["nodes"] for one in found["tests"]] == [["n1", "n2"], ["n3", "n4"], ["n5", "n6"]]
    assert found["tests"][0]["rates"] == dict.fromkeys(
        ("all_reduce", "all_gather", "first->second", "second->first"), 10.0
    )
    assert all(limit["basis"] for limit in found["limits"].values())
    started = [(*TEST.split(line), *TEST.findall(line)) for line in sorted(site.started())]
    rest = "address=n1 within=60.0 port=29500 gpu=0 most=16777216 turns=5 grace=45.0"
    load = "python3 -m acceptance.loads collective_pair backend=gloo"
    test = started[0][2]
    assert started[:2] == [
        (f"n1 {load} rank=0 ", rest, test),
        (f"n2 {load} rank=1 ", rest, test),
    ]
    assert test.startswith("test=n1,n2,")
    assert len({test for *_, test in started}) == 3


GOOD: dict[str, Any] = {"bad_nodes": [], "bad_links": []}
BAD = {**GOOD, "bad_nodes": ["n4"]}
NAMED = "bad node: n4\nFAIL: 8 nodes, 6 tests\n"


@each(
    "nodes, count, code, kept, said",
    [
        ({"n4": {"wrong": 2}}, 8, 1, BAD, ["n4: 2 wrong elements", NAMED]),
        (
            {"n4": {"slow": 0.5}},
            *(8, 1, BAD),
            ["all_reduce: 5 GB/s, 50 % below the other pairs (10 GB/s)", NAMED],
        ),
        ({"n4": {"dies": 1}}, 8, 1, BAD, ["n4: its program ended with exit code 9", NAMED]),
        (
            {"n4": {"absent": 1}},
            *(8, 3, {**GOOD, "not_reached": ["n4"]}),
            [
                "n4: its program ended with exit code 255",
                "not judged: n4: its program never reached another node's",
                "8 nodes, 6 tests\n",
            ],
        ),
        (
            {"n4": {"inject": "wrong"}},
            *(8, 1, BAD),
            ["n4: its program had a fault injected on purpose (wrong)", NAMED],
        ),
        # a link is named where both its nodes are good
        (
            {"n4": {"slow": 0.5, "with": "n3"}},
            *(8, 1, {**GOOD, "bad_links": [["n3", "n4"]]}),
            ["bad link: n3 - n4\nFAIL: 8 nodes, 6 tests\n"],
        ),
        # it is in both of the tests that would do for nodes that are alike
        (
            {"n2": {"slow": 0.5}},
            *(3, 3, {**GOOD, "verdict": "UNJUDGED"}),
            [
                "50 % below the other pairs (10 GB/s); limit 20 %",
                "n1 and n2 are slower than another pair",
                "UNJUDGED: 3 nodes, 3 tests\n",
            ],
        ),
        (
            *({}, 2, 0, {**GOOD, "verdict": "PASS"}),
            ["no other pair to compare rates with: only the results were verified"],
        ),
    ],
)
def test_what_is_bad_is_named_in_two_more_tests(
    nodes: dict[str, dict[str, Any]],
    count: int,
    code: int,
    kept: dict[str, Any],
    said: list[str],
    tmp_path_factory: Any,
    capsys: Any,
) -> None:
    site = Site(tmp_path_factory.mktemp("site"), capsys)
    for name, how in nodes.items():
        site.node(name, **how)
    assert site.run("--out", str(site.folder), count=count) == code
    assert site.file().items() >= kept.items()
    for text in said:
        assert text in site.out


@pytest.mark.usefixtures("real")
def test_a_program_that_hangs_is_ended_at_its_deadline(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acceptance.cli.fleet_pairs._END_S", 0.5)
    site.node("n2", hangs=1)
    assert site.run("--within", "2", count=2) == 3
    assert "n1 or n2 or their link is bad" in site.out
    assert "n2: its program did not end within 2 s" in site.out or "n2: its program" in site.out


def test_pairs_that_differ_too_much_are_no_pass(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight nodes, whose spread counts as that of 64 does."""
    limits = pair_tests.read_limits(resources.locate("pairs.toml"))
    few = structs.replace(limits.few, below=3)
    monkeypatch.setattr(pair_tests, "read_limits", lambda _path: structs.replace(limits, few=few))
    for number, rate in enumerate((0.7, 0.85, 1.0, 1.15)):
        site.node(f"n{2 * number + 1}", slow=rate)
    assert site.run("--out", str(site.folder), count=8) == 3
    assert "all_reduce: the pairs differ too much to judge it: limit by their spread " in site.out
    assert site.file()["too_wide"].keys() == pair_tests.RATES.keys()
    assert site.file()["verdict"] == "UNJUDGED"


def test_nodes_are_reached_at_their_addresses_and_so_many_at_once(site: Site) -> None:
    table = site.folder / "addresses.csv"
    table.write_text("machine,address\nn1,10.0.0.1\n")
    more = ("--locations", str(table), "--at-once", "1", "--port", "4000", "--gpu", "3")
    assert site.run(*more, "--most", "32768", "--python", "/opt/python", count=4) == 0
    started = site.started()
    assert {line.split()[0] for line in started[:2]} == {"n1", "n2"}  # one pair after the other
    assert {TEST.sub("", line).partition(" address=")[2] for line in started} == {
        f"{address} within=180.0 port=4000 gpu=3 most=32768 turns=5 grace=45.0"
        for address in ("10.0.0.1", "n3")
    }
    assert all(line.split()[1] == "/opt/python" for line in started)


def test_in_chinese(site: Site) -> None:
    site.node("n4", wrong=1)
    assert site.run("--lang", "zh-CN", count=6) == 1
    assert "坏节点" in site.out
    assert "5 次测试" in site.out
    assert "bad" not in site.out


@pytest.mark.usefixtures("real")
def test_an_allocation_of_slurm_is_tested_by_srun(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("scontrol", '[ "$*" = "show hostnames n[1-2]" ] && printf "n1\\nn2\\n"'),
        (
            "srun",
            f'echo "$*" >>{site.folder}/asked; shift 4; node=${{1#--nodelist=}}; shift; '
            f'exec {site.launch.replace("{node}", "$node")} "$@"',
        ),
    ):
        executable(site.folder / name, f"#!/bin/sh\n{text}\n")
    monkeypatch.setenv("PATH", f"{site.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    assert site.run(launch=["--slurm"]) == 0
    asked = sorted((site.folder / "asked").read_text().splitlines())
    options = "--quiet --overlap --nodes=1 --ntasks=1 --nodelist=n1 python3 -m "
    assert asked[0].startswith(options)


@each(
    "more, count, said",
    [
        (["--launch", "ssh n1"], 2, "write {node} where the node's name belongs"),
        (["--launch", "ssh '{node}"], 2, "No closing quotation"),
        (["--launch", ""], 2, "write {node}"),
        (["--launch", "env {node}"], 0, "name the nodes"),
        (["--launch", "env {node}", "--out", "/dev/null/x"], 2, "/dev/null/x cannot be made"),
        (["--launch", "env {node}"], 1, "n1 is the only node: a pair needs two"),
        (["--slurm"], 2, "--slurm needs an allocation: salloc"),
        (["--launch", "env {node}", "--most", "5"], 2, "'5' is none of 8, 64"),
        (["--launch", "env {node}", "--port", "99999"], 2, "'99999' is no port from 1 to 65535"),
        (["--launch", "env {node}", "--port", "-1"], 2, "'-1' is no port"),
        ([], 2, "one of the arguments --launch --slurm is required"),
    ],
)
def test_what_cannot_be_used_says_so_before_anything_starts(
    more: list[str], count: int, said: str, tmp_path_factory: Any, capsys: Any
) -> None:
    site = Site(tmp_path_factory.mktemp("site"), capsys)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SLURM_JOB_NODELIST", raising=False)
        patch.setattr(command, "find", lambda name, _package=None: name)
        try:
            code = site.run(count=count, launch=more or ["--lang", "en"])
        except SystemExit as error:
            code = int(str(error.code))
            site.err = capsys.readouterr().err
    assert (code, said in site.err) == (2, True), site.err


@each("table", ["machine,rack\nn1,r1\nn2,r1\n", "machine,address\nn1.site,10.0.0.1\nn2,\n"])
def test_a_table_without_an_address_of_a_node_is_refused(table: str, site: Site) -> None:
    path = site.folder / "places.csv"
    path.write_text(table)
    assert site.run("--locations", str(path), count=2) == 2
    assert f"--locations {path} has no address of a node: give the columns 'machine'" in site.err
    assert not (site.folder / "log").exists()


@each(
    "rows, said",
    [
        (["n1,10.0.0.1", "n3,10.0.0.2", "n4,10.0.0.1"], "n1 and n4 have one address: 10.0.0.1"),
        (["n1,n2"], "n1 and n2 have one address: n2"),
    ],
)
def test_two_nodes_at_one_address_are_refused(rows: list[str], said: str, site: Site) -> None:
    path = site.folder / "places.csv"
    path.write_text("\n".join(("machine,address", *rows)))
    assert site.run("--locations", str(path), count=4) == 2
    assert said in site.err
    assert not (site.folder / "log").exists()


@each("says", [{"host": "boot"}, {"gpu": "GPU-1"}])
def test_two_names_of_one_machine_are_a_usage_error(
    says: dict[str, str], tmp_path_factory: Any, capsys: Any
) -> None:
    """They are in two pairs, which both pass."""
    site = Site(tmp_path_factory.mktemp("site"), capsys)
    site.node("n1", **says)
    site.node("n4", **says)
    assert site.run("--out", str(site.folder), count=4) == 2
    (said,) = says.values()
    assert f"n1 and n4 are one machine ({said}): name each machine once" in site.err
    assert site.file()["verdict"] == "UNJUDGED"


def test_a_launcher_that_is_missing_is_named(site: Site) -> None:
    assert site.run("--out", str(site.folder), count=2, launch=["--launch", "no-ssh {node}"]) == 3
    assert "no-ssh" in site.err


@pytest.mark.usefixtures("real")
def test_what_was_started_is_ended_where_a_program_cannot_start(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[Any] = []
    real: Callable[..., Any] = command.start

    def start(*given: Any, **more: Any) -> Any:
        if len(running) == 3:
            raise command.CommandError("program_not_started", program="ssh", why="no memory")
        running.append(real(*given, **more))
        return running[-1]

    monkeypatch.setattr(command, "start", start)
    for number in range(1, 5):
        site.node(f"n{number}", hangs=1)
    assert site.run("--out", str(site.folder), count=4) == 3
    assert "no memory" in site.err
    assert all(one.poll() for one in running)
    assert site.file()["verdict"] == "UNJUDGED"
