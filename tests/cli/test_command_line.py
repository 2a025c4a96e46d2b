"""What the user types: every mistake gets one sentence on standard error, with its cure, and an
exit code that is no verdict.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import journals
import msgspec
import product_session
import pytest
from cases import each
from command import Call, assert_one_sentence, assert_refused, printed
from raising import raising
from runs import write_segment, write_views

from acceptance import __main__, resources
from acceptance.cli import judge, parser
from acceptance.core.message import UserError
from acceptance.core.parts import Gpu
from acceptance.core.record import Body, RunClosed, RunStarted
from acceptance.journal import clock, reader, run_folder
from acceptance.observe import inventory
from acceptance.reports import advice, languages
from acceptance.run import lock, signals

RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures" / "recordings"


# --- the call itself ---


def test_a_verb_is_a_file_and_a_line() -> None:
    files = Path(parser.__file__).parent.glob("*.py")
    assert set(parser.VERBS) == {file.stem for file in files if "\ndef run(" in file.read_text()}


def test_help_agrees_with_what_there_is(call: Call) -> None:
    out = printed(call("--help"))
    for verb in parser.VERBS:
        assert re.search(rf"^ +{verb}\s", out, re.MULTILINE)
        assert call(verb, "--help")[0] == 0
    assert "0 PASS, 1 FAIL, 3 UNJUDGED" in " ".join(out.split())
    accepted, planned = (call(verb, "--help")[1] for verb in ("accept", "plan"))
    for option in (
        "--machine FILE",
        "--profile NAME",
        "--station",
        "--out DIR",
        "--only EXPR",
        "--gpus LIST",
        "--burn SECONDS",
    ):
        assert option in accepted
        assert option in planned


UNNEEDED = {
    "acceptance.__main__": {"msgspec", "rich", "psutil"},
    "acceptance.cli.read": {"rich", "psutil"},
    "acceptance.cli.judge": {"acceptance.process.command"},
    "acceptance.cli.accept": {"concurrent.futures", "importlib.metadata"},
}


def test_what_a_verb_does_not_need_is_not_loaded() -> None:
    """Pages are made at the end, a container's engine is not everywhere, and checks are another
    process's.

    One process loads verb after verb: what is not there after the last of several is needed by none
    of them.
    """
    never = {"jinja2", "junitparser", "docker", "pytest", "numpy", "sqlite3"}
    code = (
        f"import importlib, sys\nfor name in {list(UNNEEDED)}:\n    "
        "importlib.import_module(name)\n    print(*sys.modules)"
    )
    unmeasured = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=unmeasured, capture_output=True, text=True, check=True)
    wrong = []
    for (module, unneeded), loaded in zip(UNNEEDED.items(), done.stdout.splitlines(), strict=True):
        found = set(loaded.split())
        assert module in found
        wrong += [f"{module}: {name} is loaded" for name in sorted(found & (never | unneeded))]
    assert not wrong, "\n".join(wrong)


@each(
    "arguments, words",
    [
        ([], ["VERB", "'rigproof --help'"]),
        (["acept"], ["'acept'", "accept", "'rigproof --help'"]),
        (
            ["accept", "--burn", "soon"],
            ["--burn", "'soon'", "1 to 2592000", "'rigproof accept --help'"],
        ),
        (["accept", "--burn", "0"], ["--burn", "'0'"]),
        (["accept", "--burn", "-5"], ["--burn"]),
        (["accept", "--burn", "nan"], ["'nan'"]),
        (["accept", "--burn", "inf"], ["'inf'"]),
        (["accept", "--burn", "1e9"], ["'1e9'"]),
        (["accept", "--burn", "\u00b2"], ["--burn", "no number of seconds"]),
        (["accept", "--burn", "99999999"], ["'99999999'", "30 days"]),
        (["accept", "--only", " , "], ["--only", "at least one"]),
        (["accept", "--gpus", ", "], ["--gpus", "at least one GPU by its index or UUID"]),
        (["accept", "--gpus"], ["--gpus", "argument"]),
        (["accept", "--station", "moon"], ["--station", "'moon'", "host"]),
        (["accept", "--mach", "x"], ["--mach x", "rigproof accept --help"]),
        (["fleet", "collect", "x", "--dew"], ["--dew", "rigproof fleet collect --help"]),
        (["accept", "--checks", ""], ["--checks", "is empty"]),
        (["accept", "--machine", "\udcff.toml"], ["--machine", "is not UTF-8"]),
        (["accept", "--out"], ["--out", "argument"]),
        (["accept", "stray"], ["stray"]),
        (["accept", "--lang", "de"], ["--lang de", "there are en and zh-CN"]),
        (["plan", "--lang", "zh-TW"], ["--lang zh-TW", "there are en and zh-CN"]),
        (["judge", "run", "--lang", ""], ["--lang", "there are en and zh-CN"]),
        (["report", "run", "--lang", "\x1b[31m"], ["--lang", "there are en and zh-CN"]),
        (["inventory", "--lang", "de"], ["--lang de", "there are en and zh-CN"]),
        (["inventory", "--json", "--write", "x.toml"], ["--write", "not allowed with", "--json"]),
        (["judge"], ["RUN"]),
        (["read", "gpu-burner", "x"], ["'gpu-burner'", "did you mean gpu-burn?"]),
        (["read", "radeontop", "x"], ["'radeontop'", "choose from", "stress-ng"]),
        (["acept", "--machine", "x"], ["'acept'", "did you mean accept?", "'rigproof --help'"]),
        (["xyzzy"], ["'xyzzy'", "choose from accept, nightly"]),
        (["--versoin"], ["did you mean --version?"]),
        (["fleet", "colect", "x"], ["did you mean collect?", "'rigproof fleet --help'"]),
        (["accept", "--machin", "x"], ["--machin x: did you mean --machine?"]),
        (["accept", "-machine", "x"], ["did you mean --machine?"]),
        (["accept", "--profil=smoke"], ["--profil=smoke: did you mean --profile?"]),
        (["fleet", "submit", "--slurmm", "x"], ["--slurm", "did you mean --slurm?"]),
        (["plan", "--station", "dokcer"], ["'dokcer'", "did you mean docker?"]),
        (["schedule", "show", "--", "--on-fial", "x"], ["did you mean --on-fail?"]),
        (["read", "stress-ng"], ["FILE"]),
    ],
)
def test_a_wrong_call(call: Call, arguments: list[str], words: list[str]) -> None:
    assert_refused(call(*arguments), 2, *words)


def test_a_missing_station_and_profile(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert_refused(
        call("plan", "--station", "docker"),
        2,
        "DOCKER_HOST=unix:///nowhere/docker.sock does not answer",
        "STATION=host",
    )
    assert_refused(
        call("plan", "--profile", "nightmare"),
        2,
        "'nightmare'",
        "smoke, accept, nightly, train, soak",
    )


def test_a_check_that_does_not_exist(call: Call) -> None:
    code, _, err = call("plan", "--only", "cpu,gpus")
    assert code == 2
    assert_one_sentence(err, "--only gpus matches no check", "did you mean gpu", "subjects are ")
    assert len(err) < 500


def test_a_gpu_that_does_not_exist(call: Call) -> None:
    assert_refused(
        call("plan", "--gpus", "0,99"), 2, "--gpus ", "there is no gpu", "this machine has "
    )


@pytest.mark.parametrize("verb", ["plan", "accept"])
def test_gpus_that_are_hidden_from_outside(
    call: Call, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert_refused(
        call(verb), 2, "CUDA_VISIBLE_DEVICES=1 hides GPUs from CUDA: unset it", "GPUS=0,1"
    )
    assert list(Path().iterdir()) == [], "nothing was begun"


@pytest.mark.parametrize(
    "typed",
    [
        ["--profile", "acept"],
        ["--machine", "none.toml"],
        ["--only", "gpus"],
        ["--only", "link.collectives"],
        ["--gpus", "0,99"],
        ["--station", "docker"],
        ["--image", "none:here", "--station", "docker"],
        ["--sheets", "nowhere"],
        ["--checks", "nowhere"],
        ["--lang", "tlh"],
        ["--sign", "no-key"],
        ["--burn", "0"],
        ["--only", ","],
        ["--machin", "x"],
    ],
)
def test_a_bad_call_leaves_nothing_behind(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: list[str]
) -> None:
    monkeypatch.setattr(lock, "NAME", str(tmp_path / "lock"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for verb in ("accept", "nightly", "plan"):
        if verb != "accept" and "--sign" in typed:
            continue
        named = [] if verb == "plan" else ["--run-dir-file", "run-dir"]
        (tmp_path / "run-dir").write_text("of an earlier run")
        code, _, err = call(verb, "--out", "some/where/reports", *typed, *named)
        assert code == 2 or verb == "plan", (verb, err)
        if verb == "plan":
            (tmp_path / "run-dir").unlink()
        assert list(tmp_path.iterdir()) == [], verb


def test_a_bad_call_leaves_the_latest_run(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Not the lock of this machine, which may be testing.
    monkeypatch.setattr(lock, "NAME", str(tmp_path / "lock"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    (tmp_path / "reports/2026").mkdir(parents=True)
    (tmp_path / "reports/latest").symlink_to("2026")
    for typed in (
        ["--profile", "nightmare"],
        ["--machine", "none.toml"],
        ["--only", "gpus"],
        ["--gpus", "0,99"],
        ["--station", "docker"],
        ["--image", "none:here", "--station", "docker"],
        ["--lang", "tlh"],
    ):
        assert call("accept", *typed)[0] == 2, typed
        assert (tmp_path / "reports/latest").readlink() == Path("2026"), typed
    assert {path.name for path in (tmp_path / "reports").iterdir()} == {"2026", "latest"}


# --- machine files ---

HEAD = 'schema = 1\nname = "m"\n'


@each(
    "text, words",
    [
        ("schema = 1\n", ["name is missing"]),
        ("schema = 7\n", ["line 1", "newer", "install a newer rigproof"]),
        (HEAD + "gpus = -1\n", ["line 3", "gpus"]),
        (HEAD + "gpus = true\n", ["line 3", "gpus"]),
        (HEAD + 'gpus = "two"\n', ["line 3", "gpus"]),
        (HEAD + "gpu_count = 2\n", ["line 3", "gpu_count"]),
        (HEAD + "[cpu]\ncores = 2.5\n", ["line 4", "cpu.cores"]),
        (HEAD + "[memory]\ntest_share = 2.0\n", ["line 4", "memory.test_share"]),
        (HEAD + "[cpu\ncores = 2\n", ["line 3"]),
        (
            HEAD + '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "TB/h"\nbasis = "b"\nlow = 1\n',
            ["TB/h", "cpu_gemm_f64"],
        ),
        (
            HEAD
            + '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "GFLOP/s"\nbasis = "b"\nlow = nan\n',
            ["nan", "finite"],
        ),
        (
            HEAD
            + '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "GFLOP/s"\nbasis = " "\nlow = 1\n',
            ["basis", "empty"],
        ),
        (
            HEAD + '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "GFLOP/s"\nlow = 1\n',
            ["basis", "missing"],
        ),
        (
            HEAD + '[[waiver]]\nmeasurement = "cpu_gemm_f64"\ncomponent = "cpu"\nworst = 1\n',
            ["reason", "missing"],
        ),
        (
            HEAD + '[[waiver]]\nmeasurement = "cpu_gemm_f64"\ncomponent = "cpu"\nreason = "r"\n',
            ["worst", "bound"],
        ),
        (HEAD + '[[waiver]]\nskip = "storage"\nreason = ""\n', ["reason"]),
    ],
)
def test_a_wrong_machine_file(call: Call, text: str, words: list[str]) -> None:
    Path("box.toml").write_text(text, encoding="utf-8")
    assert_refused(call("plan", "--machine", "box.toml"), 2, "box.toml", *words)


def test_a_machine_file_that_cannot_be_read(call: Call) -> None:
    Path("latin.toml").write_bytes(b'name = "M\xfcller"\n')
    for file, words in (
        ("none.toml", ["No such file", "--machine"]),
        (".", ["it is a folder, not a file"]),
        ("latin.toml", ["not UTF-8"]),
    ):
        assert_refused(call("plan", "--machine", file), 2, file, *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[limit]]\nmeasurement = "cpu_gemm_f99"\nunit = "GFLOP/s"\nbasis = "b"\nlow = 1\n',
            ["cpu_gemm_f99", "no check measures"],
        ),
        (
            (
                '[[waiver]]\nmeasurement = "stress_ng_failures"\ncomponent = "cpu"\nworst = '
                '1\nreason = "r"\n'
            ),
            ["cannot be waived"],
        ),
    ],
)
def test_a_machine_file_that_contradicts_the_checks(
    call: Call, text: str, words: list[str]
) -> None:
    Path("box.toml").write_text(HEAD + text, encoding="utf-8")
    assert_refused(call("plan", "--machine", "box.toml"), 2, "box.toml", *words)


def test_a_plan_with_every_limit(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    Path("box.toml").write_text(HEAD + "gpus = 0\n", encoding="utf-8")
    out = printed(call("plan", "--machine", "box.toml", "--profile", "smoke", "--station", "host"))
    assert "gpu_count on machine = 0: box.toml declares 0 GPUs (declared in box.toml)" in out
    assert "cannot detect: " in out


# --- recorded runs ---


def record(folder: Path, bodies: list[Body] | None = None) -> Path:
    """A run folder with one segment; by default of a run that passed."""
    told = bodies if bodies is not None else journals.bodies(journals.plan())
    return write_segment(folder / reader.SUPERVISOR, told, Path("/"), seals=True).parent


def test_judge_and_report_agree(call: Call, tmp_path: Path) -> None:
    run = record(tmp_path / "run")
    out = printed(call("judge", "run"))
    assert out.startswith("evidence: ")
    assert out.splitlines()[1:] == ["PASS: 1 passed"]
    assert not (run / "verdict.json").exists()
    out = printed(call("report", "run"))
    assert out.splitlines()[-1] == "PASS: 1 passed"
    for name in (run_folder.PAGE, run_folder.JUNIT, run_folder.VERDICT):
        assert str(Path("run") / name) in out
        assert (run / name).is_file()


def test_a_run_is_written_as_ocp_output_where_asked(call: Call, tmp_path: Path) -> None:
    record(tmp_path / "run")
    assert call("report", "run", "--ocp", "run.jsonl")[0] == 0
    assert b'"result":"PASS"' in (tmp_path / "run.jsonl").read_bytes().splitlines()[-1]
    code, out, err = call("report", "run", "--ocp", "none/run.jsonl")
    assert (code, out.splitlines()[-1]) == (3, "PASS: 1 passed")
    assert err.startswith("rigproof: none/run.jsonl: cannot be written (")
    assert "rebuild it with 'rigproof report RUN --ocp FILE'" in err


def test_a_run_is_told_in_the_language_that_is_asked_for(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = journals.plan(journals.check("watch.pcie_link", journals.due("gpu_link_width", Gpu(0))))
    run = record(tmp_path / "run", journals.bodies(made, {("gpu_link_width", Gpu(0)): 8.0}))
    english = advice.shipped().measurements["gpu_link_width"].symptom
    chinese = languages.language("zh-CN").text(english)
    assert chinese != english
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert english in call("judge", "run")[1]
    assert chinese in call("judge", "run", "--lang", "zh_CN")[1]
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    out = printed(call("report", "run"), 1)
    assert chinese in out
    page = (run / run_folder.PAGE).read_text(encoding="utf-8")
    assert '<html lang="zh-CN"' in page
    assert chinese in page
    assert chinese not in out.replace(chinese, "", 1), "it is told once"
    for name in (run_folder.JUNIT, run_folder.VERDICT):  # programs read them
        text = (run / name).read_text(encoding="utf-8")
        assert english in text
        assert chinese not in text
    assert english in call("judge", "run", "--lang", "en")[1]


@pytest.mark.parametrize("verb", ["judge", "report", "plan", "accept"])
def test_a_catalogue_that_is_wrong_is_told_before_anything(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    record(tmp_path / "run")
    (tmp_path / "causes.toml").write_text("[[cause]]\nevents = ['xid']\n", encoding="utf-8")
    real = resources.locate
    monkeypatch.setattr(
        resources, "locate", lambda name: tmp_path / name if name == "causes.toml" else real(name)
    )
    advice.shipped.cache_clear()
    try:
        code, out, err = call(verb, *(["run"] if verb in ("judge", "report") else []))
    finally:
        advice.shipped.cache_clear()
    assert (code, out) == (3, "")
    assert_one_sentence(err, "causes.toml, the entry of xid: ", "missing required field 'symptom'")


def test_a_bad_run_has_its_own_exit_codes(call: Call, tmp_path: Path) -> None:
    made = journals.plan()
    record(tmp_path / "bad", journals.bodies(made, {("copy", Gpu(0)): 1.0}))
    record(
        tmp_path / "partial",
        [body for body in journals.bodies(made) if not isinstance(body, journals.SessionEnded)],
    )
    assert call("judge", "bad")[0] == 1
    assert call("judge", "partial")[0] == 3


def test_a_run_that_never_ended_is_closed_by_its_report(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "NAME", str(tmp_path / "lock"))
    monkeypatch.setattr(lock, "_SETTLED_S", 0.0)
    start, *more = journals.bodies(journals.plan())[:3]
    assert isinstance(start, RunStarted)
    start = msgspec.structs.replace(start, run_id="cut", machine_id=clock.machine_id())
    run = tmp_path / "cut"
    write_segment(run / reader.SUPERVISOR, [start, *more], Path("/"))
    with lock.MachineLock():
        code, _, err = call("report", "cut")
    assert code == 2
    assert_one_sentence(err, "another rigproof run has this machine")
    out = printed(call("report", "cut"), 3)
    assert "an earlier run (cut) was never finished: the harness was killed" in out
    assert "link.copy was running" in out
    last = out.splitlines()[-1]
    assert last.startswith("UNJUDGED: the harness was killed")
    assert last.endswith("): 0 passed, 1 error")
    assert [
        entry.body.running
        for entry in reader.read(run).entries
        if isinstance(entry.body, RunClosed)
    ] == [("link.copy",)]
    assert "never finished" not in call("report", "cut")[1].splitlines()[0]


@pytest.mark.parametrize("verb", ["judge", "report"])
def test_runs_that_cannot_be_read(call: Call, tmp_path: Path, verb: str) -> None:
    (tmp_path / "empty").mkdir()
    newer, damaged, other = (
        record(tmp_path / name) / reader.SUPERVISOR for name in ("newer", "damaged", "other")
    )
    newer.write_bytes(
        newer.read_bytes().replace(b'"rigproof_journal":3', b'"rigproof_journal":99', 1)
    )
    lines = damaged.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(b"".join([*lines[:3], b'{"seq":2,"boot_s"', b"\n", *lines[4:]]))
    other.write_bytes(b"PNG\x00\xff\n" * 4)
    for name, code, words in (
        ("nowhere", 2, ["holds no run", "the newest here: other, newer, damaged"]),
        ("empty", 2, ["holds no run"]),
        ("newer", 3, ["journal.jsonl", "line 1", "newer", "install"]),
        ("damaged", 3, ["journal.jsonl", "line 4"]),
        ("other", 3, ["journal.jsonl", "line 1"]),
    ):
        found, out, err = call(verb, name)
        assert (found, out) == (code, ""), name
        assert_one_sentence(err, name, *words)


# --- read ---


@each(
    "tool, file, code",
    [
        ("stress-ng", "stress-ng/cpu_0.15.06.txt", 0),
        ("stress-ng", "stress-ng/cpu_verify_failed_0.18.txt", 1),
        ("stress-ng", "stress-ng/killed_0.15.06.txt", 3),
        ("stressapptest", "stressapptest/injected_error_1.0.6.txt", 1),
        ("stressapptest", "stress-ng/cpu_0.15.06.txt", 3),
        ("fio", "fio/verify_3.33.txt", 0),
        ("fio", "fio/verify_flipped_bits_exit_0_3.33.txt", 1),
        ("fio", "fio/no_space_tmpfs_3.33.txt", 3),
        ("kernel-log", "kernel-log/vm_boot_excerpt.txt", 0),
        ("kernel-log", "kernel-log/xid_48_63_154_raw_kmsg.txt", 1),
        ("gpu-burn", "h200/gpu-burn-float.txt", 0),
        ("gpu-burn", "h200/gpu-burn-short.txt", 3),
        ("deviceQuery", "h200/deviceQuery.txt", 0),
        ("deviceQuery", "h200/deviceQuery-no-device.txt", 3),
        ("bandwidthTest", "h200/bandwidthTest.txt", 0),
        ("p2pBandwidthLatencyTest", "h200/p2pBandwidthLatencyTest.txt", 0),
        ("nvbandwidth", "h200/nvbandwidth-json.txt", 0),
        ("nvbandwidth", "h200/nvbandwidth-text.txt", 0),
        ("nvbandwidth", "h200/nvbandwidth-unknown.txt", 3),
        ("topo", "h200/topo-m.txt", 0),
    ],
)
def test_read_a_recording(call: Call, tool: str, file: str, code: int) -> None:
    said = json.loads(printed(call("read", tool, str(RECORDINGS / file)), code))
    assert list(said) == ["tool", "outcome", "reason", "readings", "events"]
    assert said["tool"] == tool
    assert said["outcome"] == {0: "pass", 1: "fail", 3: "error"}[code]
    assert said["reason"]


@each("data", [b"", b"\n", b"\xff\xfe\x00" * 5000, b"\x7fELF" + bytes(5000), b"hello\n"])
@each("tool", ["stress-ng", "stressapptest", "fio"])
def test_read_what_is_no_recording(call: Call, tool: str, data: bytes) -> None:
    Path("file").write_bytes(data)
    assert json.loads(printed(call("read", tool, "file"), 3))["outcome"] == "error"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_read_what_another_system_wrote(call: Call, tmp_path: Path, encoding: str) -> None:
    text = (RECORDINGS / "h200/deviceQuery.txt").read_text()
    (tmp_path / "text").write_bytes(text.encode(encoding))
    code, out, _ = call("read", "deviceQuery", str(tmp_path / "text"))
    assert (code, json.loads(out)["outcome"]) == (0, "pass")


def test_read_a_file_that_is_not_there(call: Call) -> None:
    for file, why in (("nowhere.txt", "No such file"), (".", "it is a folder, not a file")):
        assert_refused(
            call("read", "stress-ng", file),
            2,
            file,
            why,
            "give the file that holds what stress-ng printed",
        )
        assert_refused(call("read", "sheet", file), 2, file, why, "give the sheet's file, or -")


def test_read_standard_input(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (RECORDINGS / "stress-ng/cpu_0.15.06.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert call("read", "stress-ng", "-")[0] == 0


# --- inventory ---


def test_inventory(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "observe", product_session.observed)
    out = printed(call("inventory"))
    rows = [line.split("  ")[0] for line in out.splitlines()]
    assert {"processor", "memory", "GPUs"} <= set(rows)
    assert "next: rigproof inventory --write FILE" in rows
    assert "处理器" in call("inventory", "--lang", "zh-CN")[1]
    out = printed(call("inventory", "--json"))
    assert {"cpu", "memory", "disks", "board"} <= set(json.loads(out))
    out = printed(call("inventory", "--write", "box.toml"))
    assert "correct it by hand" in out
    assert "schema = 1" in Path("box.toml").read_text(encoding="utf-8")
    assert_refused(call("inventory", "--write", "box.toml"), 2, "box.toml", "is there already")
    code, out, _ = call("inventory", "--write", "a b $(x).toml", "--lang", "zh-CN")
    assert (code, "请手工改正" in out) == (0, True)
    assert out.endswith("\"rigproof accept --machine 'a b $(x).toml'\"\n")


# --- whatever else happens ---


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 3, "stopped"),
        (signals.UserInterrupt("stopped by SIGTERM"), 3, "stopped by SIGTERM"),
        (
            ZeroDivisionError("oh\nno"),
            3,
            "an error of rigproof's own in raising.py, line",
        ),
        (
            PermissionError(13, "Permission denied", "/some/where"),
            3,
            "/some/where: cannot be read or written (Permission denied)",
        ),
        (
            OSError(28, "No space left on device"),
            3,
            "a file: cannot be read or written (No space left on device)",
        ),
        (UserError("x: y"), 2, "x: y"),
        (BrokenPipeError(), 3, None),
    ],
)
def test_no_trouble_looks_like_a_verdict(
    call: Call, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, said: str | None
) -> None:

    monkeypatch.setattr(judge, "run", raising(raised))
    found, out, err = call("judge", "x")
    assert (found, out) == (code, "")
    if said is None:
        assert err == ""
    else:
        assert_one_sentence(err, said)


RIGPROOF = [sys.executable, "-m", "acceptance"]


def test_output_that_nobody_takes_is_no_success() -> None:
    """`read`, `plan` and `inventory` exist for what they print."""
    recording = RECORDINGS / "stress-ng/cpu_0.15.06.txt"
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*RIGPROOF, "read", "stress-ng", recording],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_locale_without_our_letters(tmp_path: Path) -> None:
    run = record(
        tmp_path / "r\u00fcn", journals.bodies(journals.plan(gaps=["\u00bb\U0001f525\u00ab"]))
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*RIGPROOF, "report", str(run)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == b""
    assert done.stdout.isascii()
    assert done.stdout.splitlines()[-1].startswith(b"UNJUDGED")


def test_stray_modules_are_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/stray", str(tmp_path / "b")]))
    monkeypatch.setattr(sys, "path", ["", "/stray", str(tmp_path / "b"), "/usr/lib/python3"])
    __main__._import_own()
    assert sys.path == ["/usr/lib/python3"]


def test_the_drafted_words_are_what_the_journal_holds(tmp_path: Path) -> None:
    """verdict.json is plain JSON: any reader takes it."""
    run = record(tmp_path / "run")
    write_views(run)
    assert msgspec.json.decode((run / "verdict.json").read_bytes())["verdict"] == "PASS"
