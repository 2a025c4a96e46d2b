"""`rigproof schedule` as it is typed."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import journals
import pytest
from cases import each
from command import answer, assert_refused
from executable import executable
from raising import raising
from runs import write_views

from acceptance.cli import schedule
from acceptance.cli.parser import parser
from acceptance.core.parts import Gpu
from acceptance.journal import reader, segment
from acceptance.notify.schedule import installation, units
from acceptance.notify.schedule.installation import UnitLocation


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, in which a machine's units would be written, and which no
    systemd watches.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("LC_ALL", "LANG", "LC_MESSAGES", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(units, "skipped_on", lambda *_: None)
    return tmp_path


def run(here: Path, *typed: str) -> int:
    return schedule.run(parser(["schedule"]).parse_args(["schedule", *typed]), here / "root")


def printed(here: Path, capsys: pytest.CaptureFixture[str], *typed: str) -> str:
    """What it prints where all is well."""
    assert run(here, *typed) == 0
    return capsys.readouterr().out


def sentence(capsys: pytest.CaptureFixture[str], *typed: str) -> str:
    """What a mistake is answered with."""
    answered = answer(capsys, "schedule", *typed)
    assert_refused(answered, 2)
    return answered[2]


def test_install_and_uninstall(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "box.toml").write_text("")
    folder = UnitLocation.system(here / "root").folder
    typed = ["install", "--at", "5:07", "--", "--machine", "box.toml", "--sheets", "none"]
    typed += ["--on-fail", "sh -c 'exit 0'"]
    out = printed(here, capsys, *typed)
    assert "systemctl daemon-reload && systemctl enable --now rigproof-nightly.timer" in out
    for name, text in (
        (units.SERVICE, f"WorkingDirectory={here}"),
        (units.SERVICE, " nightly --machine box.toml --sheets none --on-fail \"sh -c 'exit 0'\""),
        (units.TIMER, "OnCalendar=*-*-* 05:07:00"),
        (units.FAILED, " schedule failed --out reports --on-fail \"sh -c 'exit 0'\""),
    ):
        assert str(folder / name) in out
        assert f"{text}\n" in (folder / name).read_text()
    service = (folder / units.SERVICE).read_text()
    started = next(line for line in service.splitlines() if line.startswith("ExecStart="))
    program, verb, *_ = shlex.split(started.removeprefix("ExecStart=").replace("%%", "%"))
    assert (Path(program).parent, verb) == (Path(sys.executable).parent, "nightly")
    for verb, *said in (
        (*typed, "already installed"),
        ("uninstall", "the schedule is removed"),
        ("uninstall", "there was no schedule"),
        ("uninstall", "--lang", "zh-CN", "\u6ca1\u6709"),
    ):
        assert said[-1] in printed(here, capsys, verb, *said[:-1])
    assert [path for path in (here / "root").rglob("*") if path.is_file()] == []


def test_where_systemd_runs_the_next_night_can_be_looked_up(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(installation, "_systemctl", lambda _place, *words: asked.append(words[0]))
    (here / "root/run/systemd/system").mkdir(parents=True)
    out = printed(here, capsys, "install", "--at", "05:07")
    assert "every night at 05:07; when next:\nsystemctl list-timers rigproof-nightly.timer\n" in out
    assert asked == ["daemon-reload", "enable", "restart"]


@pytest.mark.parametrize(
    ("environment", "made", "lasting"),
    [
        (".cache/uv/archive-v0/AbC", ".cache/uv/CACHEDIR.TAG", False),
        ("mnt/uv/environments-v2/rigproof-1f", "mnt/uv/CACHEDIR.TAG", False),
        (".cache/pipx/12ab", ".cache/pipx/12ab/pipx_metadata.json", False),
        ("pipx/.cache/12ab", "pipx/.cache/12ab/pipx_metadata.json", False),
        ("share/pipx/venvs/rigproof", "share/pipx/venvs/rigproof/pipx_metadata.json", True),
        ("share/uv/tools/rigproof", "share/uv/tools/.lock", True),
        (".cache/rigproof/.venv", ".cache/CACHEDIR.TAG", True),
        ("archive-v2/rigproof/.venv", "archive-v2/rigproof/.venv/CACHEDIR.TAG", True),
        ("archive-v2/.venv", "archive-v2/.venv/CACHEDIR.TAG", True),
    ],
)
def test_a_cache_is_no_place_to_run_every_night_from(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    made: str,
    lasting: bool,
) -> None:
    """Where uvx and pipx run a package, which they empty as they like; a clone below a folder
    of such a name stays.
    """
    monkeypatch.setattr(sys, "prefix", str(here / environment))
    (here / environment).mkdir(parents=True)
    (here / made).write_text("")
    if lasting:
        assert run(here, "install") == 0
    else:
        assert "'uv tool install rigproof'" in sentence(capsys, "install")
    assert (UnitLocation.system(here / "root").folder / units.SERVICE).exists() is lasting


def test_show_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(here, capsys, "show", "--", "--out", "/var/lib/rigproof")
    for name, text in (
        (units.SERVICE, " nightly --out /var/lib/rigproof"),
        (units.TIMER, "OnCalendar=*-*-* 04:30:00"),
        (units.FAILED, " schedule failed --out /var/lib/rigproof"),
    ):
        assert f"/etc/systemd/system/{name}" in out
        assert f"{text}\n" in out
    assert out.splitlines()[-1].startswith("30 4 * * * cd ")
    out = printed(here, capsys, "show", "--", "--out", "two\nlines")
    assert ' --out "two\\x0alines"\n' in out
    assert "no crontab can hold" in out
    for whose in (["--user"], ["--run-as", "root"]):  # only root's own units protect the system
        assert run(here, "show", *whose, "--", "--out", "/usr/local/reports") == 0
    assert list(here.iterdir()) == []
    out = printed(here, capsys, "install", "--user")
    assert "loginctl enable-linger" in out
    assert "systemctl --user enable --now" in out
    assert (here / ".config/systemd/user" / units.TIMER).is_file()


@each(
    "typed, words",
    [
        ([], "WHAT"),
        (["begin"], "'begin'"),
        (
            ["install", "--at", "24:00"],
            "'24:00' is no time of day: give hours and minutes, such as 03:30",
        ),
        (["install", "--at", "3"], "'3' is no time of day"),
        (["install", "--", "--burn", "soon"], "'soon' is no number of seconds"),
        (["install", "--", "--most-skipped", "0"], "'0' is no number from 1 to 9999"),
        (
            ["show", "--", "--no-such"],
            "unrecognized arguments: --no-such: see 'rigproof nightly --help'",
        ),
        (["show", "--", "stray"], "unrecognized arguments: stray"),
        (["show", "--user", "--run-as", "root"], "give one of them"),
        (["show", "--run-as", "nobody-here"], "there is no such user here"),
        (["show", "--", "--machine", "none.toml"], "--machine none.toml: there is no such file"),
        (["show", "--", "--sheets", "none-here"], "none-here: cannot be read"),
        (
            ["show", "--", "--checks", "none-here"],
            "none-here: cannot be read (No such file",
        ),
        (["show", "--", "--webhook", "https://h/secret"], "everybody may read a unit"),
        (["show", "--", "--webhook", "@none"], "--webhook none: cannot be read"),
        (["show", "--", "--on-fail", "no-such-program"], "no-such-program is not installed"),
        (["show", "--", "--textfile", "x.txt"], "reads files named *.prom alone"),
        (["show", "--", "--out", "\udcff"], "is not UTF-8"),
        (
            ["show", "--", "--out", "/usr/local/reports"],
            "the units may not write below /usr: give a path in /var/lib",
        ),
        (["show", "--", "--out", "/usr"], "--out /usr: the units may not write below /usr"),
        (
            ["show", "--", "--textfile", "/etc/x.prom"],
            "--textfile /etc/x.prom: the units may not write below /etc",
        ),
        (["uninstall", "--at", "03:00"], "--at"),
    ],
)
def test_a_mistake_is_found_by_day(
    here: Path, capsys: pytest.CaptureFixture[str], typed: list[str], words: str
) -> None:
    said = sentence(capsys, *typed)
    assert words in said
    assert "secret" not in said.replace("--webhook-secret-file", "")
    assert list(here.iterdir()) == []


@pytest.fixture
def everybodys(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may enter, to stand in, with a program that every user may start."""
    if os.geteuid() != 0:
        pytest.skip("only root can take another user's rights")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(schedule, "_program", lambda: ("/bin/sh",))
        monkeypatch.setattr(sys, "executable", "/bin/sh")
        yield folder


ELSEWHERE = ["--out", "/var/tmp/new"]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ([], "nobody: that user may not write into {here}: give another folder with --out"),
        (["--out", "made/new"], "that user may not write into {here}/made: give"),
        (["--out", "shut/new"], "that user may not write into {here}/shut"),
        ([*ELSEWHERE, "--machine", "box.toml"], "box.toml: whoever runs the night may not read it"),
        ([*ELSEWHERE, "--machine", "shut/box.toml"], "shut/box.toml: whoever runs the night may"),
        ([*ELSEWHERE, "--textfile", "made/x.prom"], "x.prom: you may not write into made"),
        ([*ELSEWHERE, "--webhook", "@box.toml"], "box.toml: cannot be read (Permission denied)"),
        ([*ELSEWHERE, "--on-fail", "./hook"], "hook"),
        ([*ELSEWHERE, "--machine", "open.toml"], None),
        (["program"], "that user may not start {here}/shut"),
        (["folder"], "that user may not enter {here}/shut"),
    ],
)
def test_what_the_night_is_given_is_looked_at_with_its_users_rights(
    everybodys: Path,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    typed: list[str],
    words: str | None,
) -> None:
    for folder, mode in (("made", 0o755), ("shut", 0o700)):
        (everybodys / folder).mkdir(mode=mode)
    for file in ("box.toml", "shut/box.toml", "hook", "shut/rigproof"):
        (everybodys / file).write_text("")
        (everybodys / file).chmod(0o700)
    (everybodys / "open.toml").write_text("")
    if typed == ["program"]:
        monkeypatch.setattr(schedule, "_program", lambda: (str(everybodys / "shut/rigproof"),))
    if typed == ["folder"]:
        monkeypatch.chdir(everybodys / "shut")
    groups, given = os.getgroups(), typed if len(typed) != 1 else []
    asked = ["show", "--run-as", "nobody", "--", *given]
    if words is None:
        assert "User=nobody\n" in printed(here, capsys, *asked)
    else:
        assert words.format(here=everybodys) in sentence(capsys, *asked)
    assert (os.getuid(), os.geteuid(), os.getgid(), os.getegid()) == (0, 0, 0, 0)
    assert os.getgroups() == groups


REFUSED = raising(PermissionError(1, "Operation not permitted"))
# of a user without a number in this container's user namespace (setresuid(2))
UNMAPPED = raising(OSError(22, "Invalid argument"))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("geteuid", lambda: 1000),
        ("setgroups", REFUSED),
        ("setresuid", REFUSED),
        ("setresgid", UNMAPPED),
        ("setresuid", UNMAPPED),
    ],
    ids=["not root", "groups", "user", "group without a number", "user without a number"],
)
def test_who_may_not_take_another_users_rights_asks_with_his_own(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str, instead: Callable[..., object]
) -> None:
    before = (os.getresuid(), os.getresgid(), os.getgroups())
    with monkeypatch.context() as without:
        without.setattr(os, name, instead)
        assert run(here, "show", "--run-as", "nobody") == 0
    assert (os.getresuid(), os.getresgid(), os.getgroups()) == before


def test_a_time_that_one_night_does_not_have(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What systemd would skip is refused with another time."""
    monkeypatch.setattr(units, "skipped_on", lambda *_: date(2026, 3, 29))
    said = sentence(capsys, "show", "--at", "02:30")
    assert ("04:30" in said, list(here.iterdir())) == (True, [])


HOOK = '#!/bin/sh\necho "$RIGPROOF_VERDICT ${RIGPROOF_RUN_DIR-no run}" >>called\n'


FAILED = {
    "MONITOR_SERVICE_RESULT": "exit-code",
    "MONITOR_EXIT_CODE": "exited",
    "MONITOR_EXIT_STATUS": "1",
}
KILLED = {
    "MONITOR_SERVICE_RESULT": "timeout",
    "MONITOR_EXIT_CODE": "killed",
    "MONITOR_EXIT_STATUS": "TERM",
}


@pytest.mark.parametrize(
    ("environment", "left", "called"),
    [
        (FAILED, True, None),
        (FAILED, False, "FAIL"),
        (FAILED, None, "UNJUDGED"),
        (KILLED, None, "UNJUDGED"),
        ({}, None, "UNJUDGED"),
    ],
)
def test_a_night_that_failed_is_told_once(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    left: bool | None,
    called: str | None,
) -> None:
    """`left` is what the night has left: that everybody was told, that not everybody was, or
    nothing, as a Python that broke off.
    """
    executable(here / "hook", HOOK)
    run_dir, metrics = here / "reports/a", here / "x.prom"
    (run_dir / "logs").mkdir(parents=True)
    with segment.Writer(run_dir / reader.SUPERVISOR) as writer:
        for body in journals.bodies(journals.plan(), {("copy", Gpu(0)): 1.0}):
            writer.write(body)
    write_views(run_dir)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if left is not None:
        installation.write_note(run_dir.parent, {"INVOCATION_ID": "a1"}, run_dir, told=left)
        monkeypatch.setenv("MONITOR_INVOCATION_ID", "a1")
    assert run(here, "failed", "--on-fail", "./hook", "--textfile", "x.prom") == 0
    assert capsys.readouterr().out.startswith("the nightly run ")
    assert ((here / "called").exists(), metrics.exists()) == (called is not None,) * 2
    if called:
        about = run_dir if left is False else "no run"
        assert (here / "called").read_text() == f"{called} {about}\n"
        assert f'verdict="{called}"}} 1' in metrics.read_text()
        assert stat.S_IMODE(metrics.stat().st_mode) == 0o644


def test_a_setting_that_cannot_be_used_keeps_no_other_from_telling(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of node-exporter's that is gone ends the night before it begins: the failure unit
    is all that is left to tell.
    """
    executable(here / "hook", HOOK)
    typed = ["--on-fail", "./hook", "--textfile", "gone/x.prom", "--webhook", "nowhere"]
    assert run(here, "failed", *typed) == 3
    assert (here / "called").read_text() == "UNJUDGED no run\n"
    out = capsys.readouterr().out
    assert "--textfile gone/x.prom: there is no folder gone" in out
    assert "--webhook: that is no address" in out
    assert run(here, "failed", "--on-fail", "false") == 3
    assert f"{shutil.which('false')}, ended with exit code 1" in capsys.readouterr().out
