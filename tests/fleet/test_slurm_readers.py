"""The readers of a verdict on a Slurm node: prolog, health check, NHC's check."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest
from cases import each
from executable import executable
from fleet_verdicts import LESS, ago, verdict
from hypothesis import HealthCheck, given, strategies
from thoroughness import examples

from acceptance import resources
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import acceptances, night, reader_file, verdicts
from acceptance.reports import plain_json
from acceptance.reports.summary import Caveat
from acceptance.reports.verdict_json import SCHEMA

Gate = Callable[..., tuple[int, list[str]]]


def hold(
    folder: Path, word: VerdictWord = "PASS", hours: float = 1.0, tail: str = "0a1f", **more: object
) -> tuple[str, Path]:
    """Write a verdict as a run does; returns the run's id and the file."""
    run, _ = ago(hours, tail)
    file = folder / run / "verdict.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(plain_json.render(verdict(word, run, **more)))
    return run, file


@pytest.fixture
def readers(tmp_path: Path) -> Path:
    """The readers as they are installed, for the runs in tmp_path/runs."""
    place = tmp_path / "readers"
    shutil.copytree(resources.deployment("slurm"), place)
    (place / "settings").write_text(f"folder={tmp_path}/runs\n")
    (tmp_path / "runs").mkdir()
    return place


def start(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment}
    return subprocess.run(
        [program, *arguments], env=env, capture_output=True, text=True, timeout=20
    )


def read(readers: Path, folder: Path) -> list[str]:
    """Word, age and run."""
    return whole(readers, folder)[:3]


def whole(readers: Path, folder: Path) -> list[str]:
    """All words: of a PASS its profile, machine file and caveats too."""
    done = start(readers / "verdict", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    words = done.stdout.split()
    assert done.stdout == " ".join(words) + "\n"
    assert len(words) == (6 if words[0] == "PASS" else 3)
    return words


def test_the_newest_verdict_counts(readers: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    hold(runs, "UNJUDGED", hours=3.0)
    run, _ = hold(runs, "PASS", hours=2.0)
    (runs / ".2099-01-01T00-00-00Z-0001").mkdir()
    (runs / "latest").symlink_to(run)
    assert read(readers, runs)[::2] == ["PASS", run]


# The words of a machine's runs, the newest last: `-` has no verdict, `torn` a part of one; `part`
# is of a part of the machine, `less` of one that declares no GPU, `old` of another format, `cut`
# half of a file, `packed` by gzip, and `broken` has another checksum than gzip wrote.
RUNS = (
    *("PASS", "FAIL", "UNJUDGED", "PASS/part", "FAIL/part", "UNJUDGED/part", "-", "torn"),
    *("PASS/less", "PASS/old", "FAIL/old", "UNJUDGED/old", "PASS/cut", "FAIL/cut", "UNJUDGED/cut"),
    *("PASS/packed", "FAIL/packed", "UNJUDGED/packed", "PASS/broken", "FAIL/broken"),
)


def hold_all(folder: Path, history: Sequence[str], hours: float) -> None:
    """Runs of a machine, the newest begun some hours ago, and one each hour before."""
    folder.mkdir(parents=True)
    for number, kind in enumerate(reversed(history)):
        word, _, part = kind.partition("/")
        known = word if word in ("PASS", "FAIL", "UNJUDGED") else "PASS"
        scope = "partial" if part == "part" else "full"
        more = {"declared": LESS} if part == "less" else {}
        _, file = hold(folder, known, hours + number, scope=scope, **more)  # type: ignore[arg-type]
        if kind == "-":
            file.unlink()
        elif kind == "torn":
            file.write_bytes(file.read_bytes()[:-3])
        elif part == "old":
            file.write_bytes(file.read_bytes().replace(b'"schema": %d' % SCHEMA, b'"schema": 4'))
        elif part == "cut":
            file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2])
        elif part in ("packed", "broken"):
            packed = gzip.compress(file.read_bytes())
            damaged = packed[:-8] + b"12345678" if part == "broken" else packed
            file.with_name("verdict.json.gz").write_bytes(damaged)
            file.unlink()


@each(
    "history, said",
    [
        *((word, word) for word in ("PASS", "FAIL", "UNJUDGED")),
        *((f"{word}/part", "PARTIAL") for word in ("PASS", "UNJUDGED")),
        ("FAIL/part", "FAIL"),
        ("PASS -", "TORN"),
        ("FAIL -", "FAIL"),
        ("FAIL UNJUDGED", "FAIL"),
        ("FAIL PASS/part", "FAIL"),
        ("FAIL torn", "FAIL"),
        ("FAIL - UNJUDGED - torn", "FAIL"),
        ("FAIL PASS", "PASS"),
        ("FAIL PASS UNJUDGED", "UNJUDGED"),
        ("FAIL PASS/part UNJUDGED/part", "FAIL"),
        ("FAIL/part UNJUDGED", "FAIL"),
        ("FAIL PASS -", "TORN"),
        ("FAIL PASS torn", "TORN"),
        ("PASS FAIL PASS", "PASS"),
        ("- torn PASS", "PASS"),
        ("PASS PASS/part", "PARTIAL"),
        ("PASS torn UNJUDGED", "UNJUDGED"),
        ("-", "TORN"),
        ("FAIL/packed UNJUDGED", "FAIL"),
        ("FAIL/packed UNJUDGED/packed", "FAIL"),
        ("FAIL PASS/packed", "PASS"),
        ("PASS FAIL/broken UNJUDGED", "FAIL"),
        ("PASS/broken", "TORN"),
        ("FAIL PASS/broken", "FAIL"),
        ("FAIL/old UNJUDGED", "FAIL"),
        ("FAIL/old", "FAIL"),
        ("FAIL/old PASS", "FAIL"),
        ("FAIL PASS/less", "FAIL"),
        ("FAIL PASS/less PASS", "PASS"),
        ("FAIL PASS PASS/less", "PASS"),
        ("FAIL PASS FAIL PASS/less", "FAIL"),
        ("FAIL PASS/old", "FAIL"),
        ("PASS/old", "TORN"),
        ("PASS FAIL/cut UNJUDGED", "FAIL"),
        ("PASS/cut", "TORN"),
    ],
)
def test_a_fail_stands_until_a_pass_that_ends_it(
    readers: Path, tmp_path: Path, history: str, said: str
) -> None:
    folder = tmp_path / history.replace("/", "_")
    hold_all(folder, history.split(), 1.0)
    reader_file.write_machine(folder, datetime.now(UTC))
    assert read(readers, folder)[0] == said


def test_the_readers_end_no_fail_themselves(readers: Path, tmp_path: Path) -> None:
    """Only by the file `ended`, and while what ended the FAIL is there."""
    runs = tmp_path / "runs"
    failed, _ = hold(runs, "FAIL", hours=3.0)
    passed, _ = hold(runs, hours=2.0)
    for wrong in (
        b"",
        b"\xff\x00",
        f"{failed}\n".encode(),
        f"{failed} gone\n".encode(),
        f"{failed} {passed} more\n".encode(),
        f"{failed} ../runs/{passed}\n".encode(),
        f"{passed} {failed}\n".encode(),
        f"$(touch here) {passed}\n".encode(),
    ):
        (runs / "ended").write_bytes(wrong)
        assert read(readers, runs)[::2] == ["FAIL", failed], wrong
    (runs / "ended").write_text(f"2020-01-01T00-00-00Z-1 x\n{failed} {passed}\n")
    assert read(readers, runs)[::2] == ["PASS", passed]
    shutil.rmtree(runs / passed)
    assert read(readers, runs)[::2] == ["FAIL", failed]
    assert not [path for path in tmp_path.rglob("here")]


def test_a_pass_says_what_it_was_given_by(readers: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    caveats = (Caveat("no_gpu_declared", "no GPU declared"), Caveat("not_sealed", "not sealed"))
    hold(
        runs, hours=3.0, caveats=caveats, provenance={"machine_file": "/etc/r/x y$(z)/8x h200.toml"}
    )
    assert whole(readers, runs)[3:] == ["nightly", "8x?h200.toml", "no_gpu_declared,not_sealed"]
    hold(runs, hours=2.0, profile="accept")
    assert whole(readers, runs)[3:] == ["accept", "-", "-"]
    _, file = hold(runs, hours=1.0)
    content = json.loads(file.read_bytes())
    del content["caveats"]
    file.write_text(json.dumps(content, indent=2) + "\n")
    assert whole(readers, runs)[3:] == ["nightly", "-", "not_told"]
    (readers / "settings").write_text(f"folder={runs}\n")
    assert start(readers / "gate").stdout.split()[-3:] == ["nightly", "-", "not_told"]


def test_an_accepted_fail_is_unjudged_until_a_pass(readers: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    failed, _ = hold(runs, "FAIL", hours=3.0)
    acceptances.write(runs, "n1", [failed], "sold with one GPU less", None)
    assert read(readers, runs)[0] == "FAIL", "nobody has said so yet"
    reader_file.write_machine(runs, datetime.now(UTC))
    assert read(readers, runs)[::2] == ["UNJUDGED", failed]
    hold(runs, hours=2.0, declared=LESS)
    assert read(readers, runs)[0] == "PASS"
    newer, _ = hold(runs, "FAIL", hours=1.0)
    reader_file.write_machine(runs, datetime.now(UTC))
    assert read(readers, runs)[::2] == ["FAIL", newer]


def test_an_older_fail_has_its_own_age_and_run(readers: Path, tmp_path: Path) -> None:
    run, _ = hold(tmp_path / "runs", "FAIL", hours=50.0)
    hold(tmp_path / "runs", "UNJUDGED")
    word, age, named = read(readers, tmp_path / "runs")
    assert (word, named) == ("FAIL", run)
    assert 180000 <= int(age) < 180100


def test_a_thousand_runs_without_a_word_are_passed_over(readers: Path, tmp_path: Path) -> None:
    """By reading three lines of each: the reader of a prolog has five seconds."""
    runs = tmp_path / "runs"
    run, _ = hold(runs, "FAIL", hours=3000.0)
    _, file = hold(runs, "UNJUDGED", hours=2000.5)
    for hours in range(1, 1000):
        other = runs / ago(hours, "0a1f")[0]
        other.mkdir()
        (other / "verdict.json").hardlink_to(file)
    assert read(readers, runs)[::2] == ["FAIL", run]


@hypothesis.settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    history=strategies.lists(strategies.sampled_from(RUNS), min_size=1, max_size=6),
    newest=strategies.sampled_from(RUNS),
    hours=strategies.sampled_from([1.0, 28.0, 40.0]),
)
def test_the_rule_is_one_in_shell_and_in_python(
    readers: Path, history: list[str], newest: str, hours: float
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hold_all(folder / "n1", [*history, newest], hours)
        reader_file.write_machine(folder / "n1", datetime.now(UTC))
        done = start(readers / "verdict", str(folder / "n1"), "108000")
        now, fresh = datetime.now(UTC), timedelta(hours=30)
        found = verdicts.collect([folder], now, now - fresh)
        judged = night.judge(found, ["n1"], now, fresh).due[0].verdict
    said = done.stdout.split()[0]
    assert judged == (said if said in ("PASS", "FAIL") else "UNJUDGED")


def test_no_verdict(readers: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "runs", tmp_path / "gone"):
        assert read(readers, folder) == ["MISSING", "-", "-"]


BREAKS = {
    "cut": lambda text: text[: len(text) // 2],
    "one letter short": lambda text: text[:-3],
    "empty": lambda _: b"",
    "twice": lambda text: text + text,
    "of another schema": lambda text: text.replace(b'"schema": %d' % SCHEMA, b'"schema": 99'),
    "no word": lambda text: text.replace(b'"PASS"', b'"PASS$(touch x)"', 1),
    "another run": lambda text: text.replace(b'"run_id": "20', b'"run_id": "21'),
    "on one line": lambda text: text.replace(b"\n", b" "),
    "nul": lambda text: text.replace(b'  "verdict"', b'\0 "verdict"'),
    "two words": lambda text: text.replace(
        b'  "verdict": "PASS",', b'  "verdict": "FAIL",\n  "verdict": "PASS",'
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_no_whole_verdict_is_torn(readers: Path, tmp_path: Path, name: str) -> None:
    _, file = hold(tmp_path / "runs")
    file.write_bytes(BREAKS[name](file.read_bytes()))
    assert read(readers, tmp_path / "runs") == ["TORN", "-", "-"]


def test_text_of_a_verdict_is_never_executed(readers: Path, tmp_path: Path) -> None:
    evil = '$(touch here); `touch here`\n  "verdict": "PASS",\x1b[31m \' " | & > here'
    run, _ = hold(tmp_path / "runs", "FAIL", notes=(evil,), provenance={evil: evil})
    before = sorted(tmp_path.rglob("*"))
    assert read(readers, tmp_path / "runs")[::2] == ["FAIL", run]
    folder = tmp_path / "runs" / "2099-01-01T$(touch here)Z-;touch here"
    folder.mkdir()
    shutil.copy(tmp_path / "runs" / run / "verdict.json", folder)
    assert read(readers, tmp_path / "runs")[::2] == ["FAIL", run]
    shutil.rmtree(tmp_path / "runs" / run)
    assert read(readers, tmp_path / "runs") == ["TORN", "-", "-"]
    assert not [path for path in tmp_path.rglob("here")], before


def test_a_verdict_of_the_future_is_not_trusted(readers: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    hold(runs, hours=-1.0)
    assert read(readers, runs)[0] == "TORN"
    run, _ = hold(runs, "FAIL", hours=1.0)
    assert read(readers, runs)[::2] == ["FAIL", run], "it ends no FAIL"
    run, _ = hold(runs, "FAIL", hours=-2.0)
    assert read(readers, runs) == ["FAIL", "0", run], "a FAIL stays"


@each(
    "word, hours, block, code",
    [
        ("PASS", 1.0, "missing stale torn unjudged partial", 0),
        ("FAIL", 1.0, "", 1),
        ("FAIL", 31.0, "", 1),
        ("FAIL", -1.0, "", 1),
        ("UNJUDGED", 31.0, "unjudged", 0),
        ("PASS", 31.0, "torn stale", 1),
        ("UNJUDGED", 1.0, "", 0),
        ("UNJUDGED", 1.0, "unjudged", 1),
        (None, 1.0, "", 0),
        (None, 1.0, "missing", 1),
        (None, 1.0, "stale", 0),
    ],
)
def test_what_blocks(
    readers: Path, tmp_path: Path, word: VerdictWord | None, hours: float, block: str, code: int
) -> None:
    folder = tmp_path / f"{word}-{hours}"
    if word is not None and not folder.exists():
        hold(folder, word, hours)
    (readers / "settings").write_text(f"# a comment\n\nfolder={folder}\nblock={block}\n")
    assert start(readers / "gate").returncode == code
    done = start(readers / "prolog", SLURM_JOB_USER="bob", SLURM_JOB_UID="1000", SLURM_JOB_ID="7")
    assert done.returncode == code
    assert ("rigproof" in done.stdout) == bool(code)
    assert start(readers / "healthcheck").returncode == 0


def test_the_prolog_admits_the_jobs_of_owners(readers: Path, tmp_path: Path) -> None:
    hold(tmp_path / "runs", "FAIL")
    prolog = readers / "prolog"
    assert start(prolog, SLURM_JOB_USER="root", SLURM_JOB_UID="0").returncode == 0
    assert start(prolog, SLURM_JOB_USER="bob", SLURM_JOB_NAME="rigproof").returncode == 1
    assert start(prolog).returncode == 1
    with (readers / "settings").open("a") as file:
        file.write("owners=tester 1001\n")
    assert start(prolog, SLURM_JOB_USER="root", SLURM_JOB_UID="0").returncode == 1
    assert start(prolog, SLURM_JOB_USER="", SLURM_JOB_UID="1001").returncode == 0


def test_settings_that_are_wrong_block_nothing(readers: Path, tmp_path: Path) -> None:
    """They are read, never executed."""
    hold(tmp_path / "runs", hours=31.0)
    wrong = "fresh=a day\nblok=stale\n$(touch here)\ntouch here\nowners=* $(touch here)\n"
    (readers / "settings").write_text(f"folder={tmp_path}/runs\n{wrong}")
    done = start(readers / "gate", "bob", "1000")
    assert (done.returncode, "fresh=a day is no number" in done.stderr) == (0, True)
    assert "blok is no setting" in done.stderr
    assert not [path for path in tmp_path.rglob("here")]
    (readers / "settings").unlink()
    assert start(readers / "prolog", SLURM_JOB_USER="bob").returncode == 0
    (readers / "verdict").unlink()
    assert start(readers / "prolog", SLURM_JOB_USER="bob").returncode == 0
    assert start(readers / "healthcheck").returncode == 0


@pytest.fixture(params=["dash", "bash --posix"])
def gate(request: pytest.FixtureRequest, readers: Path) -> Gate:
    """Write the settings and ask the gate: exit code, and what is wrong with the settings."""
    shell, *options = request.param.split()
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")

    def ask(settings: bytes, *user: str) -> tuple[int, list[str]]:
        (readers / "settings").write_bytes(settings)
        done = start(Path(program), *options, str(readers / "gate"), *user)
        return done.returncode, done.stderr.splitlines()

    return ask


def test_forms_of_settings_that_are_no_mistakes(gate: Gate, tmp_path: Path) -> None:
    """Line ends of Windows, blanks, and no end of the last line."""
    hold(tmp_path / "runs", hours=2.0)
    folder = f"folder={tmp_path}/runs".encode()
    for settings in (
        folder + b"\r\n\r\n# a comment\r\nfresh=60\r\nblock=torn stale\r\n",
        b"fresh=60\nblock=stale\n" + folder,
        b" fresh = 60 \n\tblock = \tstale\t\n" + folder + b" \n",
        folder + b"\nblock=stale\nfresh=60",
        folder + b"\nfresh=60\nblock=stale",
    ):
        assert gate(settings) == (1, []), settings
        assert gate(settings + b"\r\nowners=bob\\x a.b-c_d@e 7", "7")[0] == 0, settings
        assert gate(settings.replace(b"stale", b"torn"))[0] == 0, settings


@pytest.mark.parametrize(
    ("wrong", "said", "code"),
    [
        ("fresh=30h", "fresh=30h is no number of seconds: 108000 is taken", 0),
        ("fresh=", "fresh= is no number of seconds: 108000 is taken", 0),
        ("fresh=9999999999", "fresh=9999999999 is no number of seconds: 108000 is taken", 0),
        ('folder="{runs}"', 'folder="{runs}" is no absolute path: {runs} is read', 0),
        ("folder=runs", "folder=runs is no absolute path: {runs} is read", 0),
        ("block=stale,torn", "block: stale,torn blocks nothing: missing, stale, torn, unj", 0),
        ("block=STALE missing", "block: STALE blocks nothing: missing, stale, torn, unjudged", 0),
        ("block=stale often", "block: often blocks nothing: missing, stale, torn, unjudged", 1),
        ("owners=root,rigproof", "owners=root,rigproof are no users with blanks between", 1),
        ("owners=*", "owners=* are no users with blanks between: root rigproof are taken", 1),
        ("blok=stale", "blok is no setting: folder, fresh, owners and block are", 0),
        ("FOLDER={runs}", "FOLDER is no setting: folder, fresh, owners and block are", 0),
        ("export block=", "export block is no setting: folder, fresh, owners and block are", 0),
        ("block", "'block' is no setting: write name=value", 0),
        ("\x1b[31m", "'?[31m' is no setting: write name=value", 0),
        ("fresh=108000\nfresh=108000", "fresh stands twice: the last one counts", 1),
    ],
)
def test_mistakes_in_settings_are_named(
    gate: Gate, tmp_path: Path, wrong: str, said: str, code: int
) -> None:
    """A stale verdict, which blocks by `block=stale` unless the mistake is what decides it."""
    runs = tmp_path / "runs"
    hold(runs, hours=31.0)
    settings = f"folder={runs}\nblock=stale\n" + wrong.format(runs=runs)
    found, lines = gate(settings.encode(), "bob", "1000")
    number = 4 if "\n" in wrong else 3
    assert found == code, lines
    assert all("stands twice: the last one counts" in one for one in lines[:-1])
    assert lines[-1].startswith(f"settings, line {number}: {said.format(runs=runs)}")


def test_readers_that_are_started_by_a_link(readers: Path, tmp_path: Path) -> None:
    hold(tmp_path / "runs", "FAIL")
    (readers / "settings").write_text(f"folder={tmp_path}/runs\n")
    (tmp_path / "prolog.d").mkdir()
    link = tmp_path / "prolog.d/50-rigproof"
    link.symlink_to(readers / "prolog")
    assert start(link, SLURM_JOB_USER="bob").returncode == 1


def test_a_fail_blocks_whatever_is_wrong_with_the_settings(gate: Gate, tmp_path: Path) -> None:
    hold(tmp_path / "runs", "FAIL")
    code, lines = gate(f"folder={tmp_path}/runs\nfresh=1d\nblock=x\n".encode())
    assert (code, len(lines)) == (1, 2)


def test_settings_that_cannot_be_read(gate: Gate, readers: Path) -> None:
    assert gate(b"")[1] == [
        "settings, line 0: the file is missing, empty or cannot be read: its defaults are taken"
    ]
    (readers / "read-settings").unlink()
    assert gate(b"")[0] == 2, "no block"


def test_mistakes_in_settings_are_logged(readers: Path, tmp_path: Path) -> None:
    """By the health check and the prolog, beside what they say of the verdict."""
    logger = executable(
        tmp_path / "bin/logger",
        f'#!/bin/sh\nif [ $# -gt 2 ]; then echo "$3"; else cat; fi >>{tmp_path}/log',
    )
    own = {"PATH": f"{logger.parent}:/usr/bin:/bin", "SLURM_JOB_USER": "bob", "SLURM_JOB_ID": "7"}

    def logged(program: str) -> tuple[int, str, str]:
        (tmp_path / "log").write_text("")
        done = start(readers / program, **own)
        return done.returncode, done.stdout, (tmp_path / "log").read_text()

    assert logged("healthcheck") == (0, "", "")
    assert logged("prolog") == (0, "", "")
    with (readers / "settings").open("a") as file:
        file.write("blok=stale")
    wrong = "settings, line 2: blok is no setting: folder, fresh, owners and block are\n"
    assert logged("healthcheck") == (0, "", wrong)
    assert logged("prolog") == (0, "", wrong)
    run, _ = hold(tmp_path / "runs", "FAIL")
    failed = f"rigproof FAIL: {run} gemm.rate[bf16]\n"
    assert logged("healthcheck") == (0, "", wrong + failed)
    assert logged("prolog") == (1, failed, f"{wrong}job 7 not admitted: {failed}")
    (readers / "gate").unlink()
    code, _, text = logged("healthcheck")
    assert (code, "gate" in text) == (0, True)


def test_the_check_of_nhc(readers: Path, tmp_path: Path) -> None:
    """NHC is bash, sources its checks, and brings `die`."""
    nhc = 'die() { shift; echo "die: $*"; }; . "$0"; check_rigproof "$1"'
    argv = ["bash", "-c", nhc, str(readers / "rigproof.nhc"), str(readers)]

    def checked() -> tuple[int, str]:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
        return done.returncode, done.stdout

    assert checked() == (0, "")
    run, _ = hold(tmp_path / "runs", "FAIL")
    assert checked() == (1, f"die: check_rigproof: rigproof FAIL: {run} gemm.rate[bf16]\n")


# The job itself, without Slurm.
COMMAND = r"""#!/bin/sh
echo "$*" >"$0.argv"
while [ $# -gt 1 ]; do [ "$1" != --run-dir-file ] || told=$2; shift; done
[ -d "$0.run" ] || exit 2
echo "$0.run/2026-11-27T00-00-00Z-0001" >"$told"
exit 1
"""


def job(tmp_path: Path, readers: Path, *runtime: str) -> subprocess.CompletedProcess[str]:
    command = executable(tmp_path / "command", COMMAND)
    own = {"SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "7", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    shared, out = str(tmp_path / "shared"), str(tmp_path / "out")
    return start(readers / "job", shared, out, *runtime, str(command), "accept", **own)


def test_a_job_copies_what_the_fleet_reads(readers: Path, tmp_path: Path) -> None:
    run = tmp_path / "command.run/2026-11-27T00-00-00Z-0001"
    run.mkdir(parents=True)
    for name in ("verdict.json", "evidence.txt", "evidence.txt.sig", "telemetry.jsonl"):
        (run / name).write_text(name)
    done = job(tmp_path, readers, "host", "")
    assert (done.returncode, done.stderr) == (1, ""), "the code of rigproof"
    kept = tmp_path / "shared/n1/2026-11-27T00-00-00Z-0001"
    names = {path.name: path.read_text() for path in kept.iterdir()}
    assert names == {one: one for one in ("verdict.json", "evidence.txt", "evidence.txt.sig")}
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert list((tmp_path / "out").iterdir()) == [], "the file with the run's path is removed"


def test_a_job_without_a_verdict_says_so(readers: Path, tmp_path: Path) -> None:
    done = job(tmp_path, readers, "host", "")
    assert done.returncode == 2
    assert "rigproof job on n1: ended with code 2 and no verdict" in done.stderr
    assert list((tmp_path / "shared/n1").iterdir()) == [], "no run was started"


def test_a_job_that_dies_in_its_run_leaves_no_pass(readers: Path, tmp_path: Path) -> None:
    """Its folder is begun before the run, and stays where the node can say no more."""
    node = tmp_path / "shared/n1"
    hold(node, "PASS", hours=2.0)
    assert read(readers, node)[0] == "PASS"
    (tmp_path / "command.run").mkdir()
    assert job(tmp_path, readers, "host", "").returncode == 1
    assert read(readers, node)[0] == "TORN"
    assert len(list(node.iterdir())) == 2


def test_a_job_whose_folder_cannot_be_made_starts_nothing(readers: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("a file in the way")
    done = job(tmp_path, readers, "host", "")
    assert done.returncode == 3
    assert "cannot be made" in done.stderr
    assert not (tmp_path / "command.argv").exists()


@pytest.mark.parametrize(
    ("runtime", "program", "given"),
    [
        (
            "pyxis",
            "srun",
            "--ntasks=1 --container-image=a b --container-mounts={out}:{out} {command} accept",
        ),
        ("apptainer", "apptainer", "exec --nv --bind {out}:{out} a b {command} accept"),
    ],
)
def test_a_job_in_the_runtime_of_the_site(
    readers: Path, tmp_path: Path, runtime: str, program: str, given: str
) -> None:
    executable(tmp_path / program, '#!/bin/sh\necho "$*" >"$0.argv"\n')
    done = job(tmp_path, readers, runtime, "a b")
    assert done.returncode == 3, "it ended well and left no verdict"
    told = (tmp_path / f"{program}.argv").read_text()
    assert told.startswith(given.format(out=tmp_path / "out", command=tmp_path / "command"))
    assert " --run-dir-file " in told
