"""The two shell scripts of deploy/kubernetes: the pod's first process, and the verdict's reader."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from executable import executable
from fleet_verdicts import verdict
from kustomized import DEPLOY, build, one

from acceptance.core.verdict import VerdictWord
from acceptance.fleet import night, verdicts
from acceptance.reports import plain_json
from acceptance.reports.verdict_json import File, Head, Row

ACCEPT = DEPLOY / "base" / "accept"
PLUGIN = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
components: [{component}]
"""
Read = Callable[..., tuple[int, str]]
RUN_ID = "2026-11-27T01-00-00Z-0001"
# A run that writes its files when it ends, or is told to end.
RUN = """\
#!/bin/sh
[ "$1" != fleet ] || {{ echo "$*" >>"$FOLDER/calls"; exit 0; }}
while [ "$1" != --run-dir-file ]; do shift; done
run=${{2%/*}}/{run} named=$2
code={code}
finish() {{
    mkdir -p "$run" && echo "$code" >"$run/verdict.json" && {more}
    echo "$run" >"$named"
    exit "$code"
}}
trap 'code=3; kill $!; finish' TERM
echo started >"{out}/started"
[ -z "{wait}" ] || {{ sleep 60 & wait $!; }}
finish
"""


def run_script(
    tmp_path: Path, code: int = 0, more: str = ":", wait: bool = False, run: str = RUN_ID
) -> list[str]:
    """The script's command line, with a made-up rigproof on PATH."""
    out, bin_folder = tmp_path / "out", tmp_path / "bin"
    for folder in (out, bin_folder, tmp_path / "verdicts"):
        folder.mkdir(exist_ok=True)
    executable(
        bin_folder / "rigproof",
        RUN.format(code=code, more=more, out=out, run=run, wait="yes" if wait else ""),
    )
    return ["/bin/sh", str(ACCEPT), "--profile", "smoke"]


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]),
        "NODE": "gpu-1",
        "FOLDER": str(tmp_path / "verdicts"),
        "OUT": str(tmp_path / "out"),
    }


def accept(tmp_path: Path, argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, env=environment(tmp_path), capture_output=True, text=True, timeout=30, check=False
    )


def content(tmp_path: Path) -> dict[str, str]:
    """What lies in the node's folder by its path, drafts included; of an empty folder `empty`."""
    folder = tmp_path / "verdicts" / "gpu-1"
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8").strip()
        if path.is_file()
        else "empty"
        for path in folder.rglob("*")
        if path.is_file() or not list(path.iterdir())
    }


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_verdict_comes_into_the_shared_folder(tmp_path: Path, code: int) -> None:
    done = accept(tmp_path, run_script(tmp_path, code))
    assert (done.returncode, done.stderr) == (code, "")
    assert content(tmp_path) == {f"{RUN_ID}/verdict.json": str(code)}
    told = (tmp_path / "verdicts/calls").read_text(encoding="utf-8")
    assert told == f"fleet failures {tmp_path}/verdicts/gpu-1\n", "the reader is told what it ended"


def test_a_signed_verdict_comes_with_its_evidence_and_beside_no_other(tmp_path: Path) -> None:
    signed = 'echo evidence >"$run/evidence.txt" && echo sig >"$run/evidence.txt.sig"'
    accept(tmp_path, run_script(tmp_path, 0, signed))
    first = {
        f"{RUN_ID}/verdict.json": "0",
        f"{RUN_ID}/evidence.txt": "evidence",
        f"{RUN_ID}/evidence.txt.sig": "sig",
    }
    assert content(tmp_path) == first
    shutil.rmtree(tmp_path / "out")  # the next pod has a folder of its own, and does not sign
    accept(tmp_path, run_script(tmp_path, 1, run=RUN_ID.replace("0001", "0002")))
    assert content(tmp_path) == {
        **first,
        f"{RUN_ID.replace('0001', '0002')}/verdict.json": "1",
    }


def test_a_run_that_never_began_changes_nothing(tmp_path: Path) -> None:
    accept(tmp_path, run_script(tmp_path, 1))
    argv = run_script(tmp_path)
    (tmp_path / "bin" / "rigproof").write_text("#!/bin/sh\nexit 2\n", encoding="utf-8")
    done = accept(tmp_path, argv)
    assert done.returncode == 2
    assert "no run was started" in done.stderr
    assert content(tmp_path) == {f"{RUN_ID}/verdict.json": "1"}


@pytest.mark.parametrize("code", [0, 1])
def test_a_pass_that_is_not_kept_is_no_success(tmp_path: Path, code: int) -> None:
    home = tmp_path / "verdicts" / "gpu-1"
    in_the_way = f'rm -rf "{home}" && echo "a file in the way" >"{home}"'
    done = accept(tmp_path, run_script(tmp_path, code, in_the_way))
    assert done.returncode == (code or 3)
    assert "the verdict is not in" in done.stderr


def test_nothing_heats_where_no_verdict_could_be_kept(tmp_path: Path) -> None:
    argv = run_script(tmp_path)
    (tmp_path / "verdicts" / "gpu-1").write_text("a file in the way", encoding="utf-8")
    done = accept(tmp_path, argv)
    assert done.returncode == 3
    assert "no run was started, since" in done.stderr
    assert not (tmp_path / "out" / "started").exists()


def word_of(folder: Path) -> str:
    """What `fleet collect` says of the node."""
    now, age = datetime.now(UTC), timedelta(hours=30)
    return night.judge(verdicts.collect([folder], now, now - age), None, now, age).due[0].verdict


def test_a_run_without_a_verdict_leaves_no_pass(tmp_path: Path, read: Read) -> None:
    folder = tmp_path / "verdicts"
    path = lay(folder, made("PASS", 3))
    assert word_of(folder) == "PASS"
    done = accept(tmp_path, run_script(tmp_path, more='rm "$run/verdict.json"'))
    assert done.returncode == 3
    assert "ended with code 0 and no verdict" in done.stderr
    assert word_of(folder) == "UNJUDGED"
    assert read(folder)[0] == 2
    path.write_bytes(plain_json.render(made("FAIL", 3)))
    assert word_of(folder) == "FAIL"


def test_a_node_that_loses_power_in_its_run_leaves_no_pass(tmp_path: Path, read: Read) -> None:
    """Everything of the pod is gone at once: what it wrote before is all that speaks of its run."""
    folder = tmp_path / "verdicts"
    lay(folder, made("PASS", 3))
    argv = run_script(tmp_path, wait=True)
    with subprocess.Popen(argv, env=environment(tmp_path), start_new_session=True) as started:
        wait_for((tmp_path / "out" / "started").exists)
        os.killpg(started.pid, signal.SIGKILL)
    assert word_of(folder) == "UNJUDGED"
    assert read(folder)[0] == 2
    (begun,) = (folder / "gpu-1").glob("*-0")
    begun.rename(folder / "gpu-1" / f"{made('PASS', 2).run_id[:-4]}0")  # as if two hours ago
    assert (word_of(folder), read(folder)[0]) == ("UNJUDGED", 2)
    lay(folder, made("PASS", 1))
    assert (word_of(folder), read(folder)[0]) == ("PASS", 0)


def test_a_run_that_was_killed_is_no_fail(tmp_path: Path) -> None:
    argv = run_script(tmp_path)
    (tmp_path / "bin" / "rigproof").write_text("#!/bin/sh\nkill -KILL $$\n", encoding="utf-8")
    assert accept(tmp_path, argv).returncode == 3


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_termination_notice_reaches_the_run_and_its_verdict_is_kept(tmp_path: Path) -> None:
    argv = run_script(tmp_path, wait=True)
    with subprocess.Popen(argv, env=environment(tmp_path)) as started:
        wait_for((tmp_path / "out" / "started").exists)
        started.send_signal(signal.SIGTERM)
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 3
    assert content(tmp_path) == {f"{RUN_ID}/verdict.json": "3"}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin's program as node-problem-detector has it: beside the ConfigMap's other files."""
    home = tmp_path_factory.mktemp("plugin")
    (home / "kustomization.yaml").write_text(
        PLUGIN.format(component=os.path.relpath(DEPLOY / "node-problem-detector", home.resolve())),
        encoding="utf-8",
    )
    for name, text in one(build(home), "ConfigMap")["data"].items():
        (home / name).write_text(text, encoding="utf-8")
        (home / name).chmod(0o555)
    return home / "read-verdict"


@pytest.fixture
def read(plugin: Path) -> Read:
    """Ask the plugin of a folder: its exit code and the one line that it prints."""
    return partial(ask, plugin)


def ask(program: Path, folder: Path, node: str = "gpu-1", hours: str = "30") -> tuple[int, str]:
    done = subprocess.run(
        [str(program), str(folder), hours],
        env={"PATH": os.environ["PATH"], "NODE_NAME": node},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    (line,) = done.stdout.splitlines()
    assert done.stderr == ""
    assert len(line) <= 80
    return done.returncode, line


def shown_time(file: File) -> str:
    """When a run began, as the reader tells it."""
    began = datetime.strptime(file.run_id[:20], "%Y-%m-%dT%H-%M-%SZ")
    return f"{began:%Y-%m-%d %H:%M} UTC"


def made(word: VerdictWord, hours: float, **more: object) -> File:
    began = datetime.now(UTC) - timedelta(hours=hours, minutes=1)
    return verdict(word, f"{began:%Y-%m-%dT%H-%M-%SZ}-5f2a", **more)


def lay(folder: Path, file: File) -> Path:
    """Write a verdict of the node as rigproof writes it."""
    path = folder / "gpu-1" / file.run_id / "verdict.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(plain_json.render(file))
    return path


def headline(check: str, part: str) -> Head:
    return Head("x", "y", check, "z", 2, part)


def finding(check: str, text: str) -> tuple[Row, ...]:
    return (Row(check, text, "below_limit", {}),)


LIE = '  "verdict": "PASS",'


@pytest.mark.parametrize(
    ("word", "hours", "more", "code", "line"),
    [
        ("PASS", 29, {}, 0, "PASS, TIME: nightly - -"),
        ("PASS", 31, {}, 2, "stale: no test since TIME"),
        *(("FAIL", hours, {}, 1, "FAIL, TIME: gemm.rate[bf16]") for hours in (3, 300, -30)),
        ("UNJUDGED", 3, {}, 2, "UNJUDGED, TIME: gemm.rate[bf16]"),
        ("UNJUDGED", 31, {}, 2, "stale: no test since TIME"),
        (
            "PASS",
            1,
            {"scope": "partial"},
            2,
            "the newest run, TIME, is of a part of the node, or shortened",
        ),
        (
            "FAIL",
            1,
            {"headline": headline("together.burn", "gpu3")},
            1,
            "FAIL, TIME: gpu3 together.burn",
        ),
        (
            "UNJUDGED",
            1,
            {"headline": headline("together.burn", "gpu3")},
            2,
            "UNJUDGED, TIME: gpu3 together.burn",
        ),
        (
            "FAIL",
            1,
            {"headline": headline("$(reboot)", "gpu3\n  }")},
            1,
            "FAIL, TIME: gemm.rate[bf16]",
        ),
        (
            "FAIL",
            1,
            {"violations": finding("x" * 200, "measured 1")},
            1,
            f"FAIL, TIME: {'x' * 80}",
        ),
        # A check or a note may quote anything.
        (
            "FAIL",
            1,
            {"violations": finding(LIE, LIE), "notes": (LIE, "verdict")},
            1,
            "FAIL, TIME: see PATH",
        ),
    ],
)
def test_what_the_reader_says_of_a_verdict(
    tmp_path: Path,
    read: Read,
    word: VerdictWord,
    hours: float,
    more: dict[str, object],
    code: int,
    line: str,
) -> None:
    file = made(word, hours, **more)
    path = str(lay(tmp_path, file))
    due = line.replace("TIME", shown_time(file)).replace("PATH", path)
    assert read(tmp_path) == (code, due[:80])


def test_what_cannot_be_read_is_unknown(tmp_path: Path, read: Read) -> None:
    code, line = read(tmp_path)
    assert (code, line.partition(": ")[0]) == (2, "no verdict")
    assert [read(tmp_path, node)[0] for node in ("", "../gpu-1")] == [2, 2]
    assert read(tmp_path, hours="many") == (2, "read-verdict: HOURS is no number")
    lay(tmp_path, made("PASS", 1)).write_text("{")
    assert read(tmp_path)[0] == 2


def test_a_plugin_without_its_reader_is_unknown(tmp_path: Path, plugin: Path) -> None:
    lay(tmp_path, made("PASS", 1))
    program = Path(shutil.copytree(plugin.parent, tmp_path / ".plugin")) / plugin.name
    (program.parent / "verdict").unlink()
    assert ask(program, tmp_path) == (2, "read-verdict: the reader `verdict` does not answer")
