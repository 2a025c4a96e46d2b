"""`rigproof schedule` as it is typed."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import journals
import pytest
from cases import each
from command import answer, assert_refused
from executable import executable
from runs import write_views

from acceptance.cli import schedule
from acceptance.cli.parser import parser
from acceptance.core.parts import Gpu
from acceptance.journal import reader, segment
from acceptance.notify.schedule import default_time, failure_note, installation, units
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
    monkeypatch.setattr(default_time, "skipped_on", lambda *_: None)
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
    for name in (units.SERVICE, units.TIMER, units.FAILED):
        assert str(folder / name) in out
    assert "systemctl daemon-reload && systemctl enable --now rigproof-nightly.timer" in out
    service = (folder / units.SERVICE).read_text()
    assert f"WorkingDirectory={here}\n" in service
    assert " nightly --machine box.toml --sheets none --on-fail \"sh -c 'exit 0'\"\n" in service
    assert "OnCalendar=*-*-* 05:07:00\n" in (folder / units.TIMER).read_text()
    assert (
        " schedule failed --out reports --on-fail \"sh -c 'exit 0'\"\n"
        in (folder / units.FAILED).read_text()
    )
    again = printed(here, capsys, *typed)
    assert "the schedule is already installed as requested" in again
    removed = "the schedule is removed; the reports and the history of past nights stay"
    assert removed in printed(here, capsys, "uninstall")
    assert [path for path in (here / "root").rglob("*") if path.is_file()] == []
    assert printed(here, capsys, "uninstall") == "there was no schedule to remove\n"


def test_where_systemd_runs_the_next_night_can_be_looked_up(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(installation, "_systemctl", lambda _place, *words: asked.append(words[0]))
    (here / "root/run/systemd/system").mkdir(parents=True)
    out = printed(here, capsys, "install", "--at", "05:07")
    assert "every night at 05:07; when next:\nsystemctl list-timers rigproof-nightly.timer\n" in out
    assert asked == ["daemon-reload", "enable", "restart"]


def test_the_program_of_the_units_is_this_one(here: Path) -> None:
    assert run(here, "install") == 0
    service = (UnitLocation.system(here / "root").folder / units.SERVICE).read_text()
    started = next(line for line in service.splitlines() if line.startswith("ExecStart="))
    program, verb = shlex.split(started.removeprefix("ExecStart=").replace("%%", "%"))
    assert (Path(program).parent, verb) == (Path(sys.executable).parent, "nightly")


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


def test_a_user_is_told_of_lingering(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(here, capsys, "install", "--user")
    assert "loginctl enable-linger" in out
    assert "systemctl --user enable --now" in out
    assert (here / ".config/systemd/user" / units.TIMER).is_file()


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
    assert list(here.iterdir()) == []


def test_what_no_crontab_can_hold_is_said_beside_the_units(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(here, capsys, "show", "--", "--out", "two\nlines")
    assert ' --out "two\\x0alines"\n' in out
    assert "holds a character that no crontab can hold" in out


@pytest.mark.parametrize("whose", [["--user"], ["--run-as", "root"]])
def test_only_roots_own_units_protect_the_system(here: Path, whose: list[str]) -> None:
    assert run(here, "show", *whose, "--", "--out", "/usr/local/reports") == 0


def test_a_language(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "没有" in printed(here, capsys, "uninstall", "--lang", "zh-CN")


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


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            [],
            "--run-as nobody: that user may not write into {here}: give another folder with --out",
        ),
        (["--out", "made/new"], "that user may not write into {here}/made: give"),
        (
            ["--out", "/var/tmp/new", "--machine", "box.toml"],
            "--machine box.toml: whoever runs the night may not read it",
        ),
        (
            ["--out", "/var/tmp/new", "--machine", "shut/box.toml"],
            "--machine shut/box.toml: whoever runs the night may not",
        ),
        (
            ["--out", "/var/tmp/new", "--textfile", "made/x.prom"],
            "--textfile made/x.prom: you may not write into made",
        ),
        (
            ["--out", "/var/tmp/new", "--webhook", "@box.toml"],
            "--webhook box.toml: cannot be read (Permission denied)",
        ),
        (["--out", "/var/tmp/new", "--on-fail", "./hook"], "hook"),
        (["--out", "shut/new"], "that user may not write into {here}/shut"),
    ],
)
def test_what_the_night_is_given_is_looked_at_with_its_users_rights(
    everybodys: Path, capsys: pytest.CaptureFixture[str], typed: list[str], words: str
) -> None:
    for folder, mode in (("made", 0o755), ("shut", 0o700)):
        (everybodys / folder).mkdir(mode=mode)
    for file in ("box.toml", "shut/box.toml", "hook"):
        (everybodys / file).write_text("")
        (everybodys / file).chmod(0o700)
    said = sentence(capsys, "show", "--run-as", "nobody", "--", *typed)
    assert words.format(here=everybodys) in said
    assert (os.getuid(), os.geteuid(), os.getgid(), os.getegid()) == (0, 0, 0, 0)


def test_a_user_who_may_do_all_of_it_is_given_the_night(
    everybodys: Path, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    (everybodys / "box.toml").write_text("")
    groups = os.getgroups()
    assert (
        run(
            here,
            "show",
            "--run-as",
            "nobody",
            "--",
            "--out",
            "/var/tmp/new",
            "--machine",
            "box.toml",
        )
        == 0
    )
    assert "User=nobody\n" in capsys.readouterr().out
    assert os.getgroups() == groups


@pytest.mark.parametrize(
    ("what", "words"), [("program", "may not start"), ("folder", "may not enter")]
)
def test_a_program_or_a_folder_of_roots(
    everybodys: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    words: str,
) -> None:
    (everybodys / "own").mkdir(mode=0o700)
    if what == "folder":
        monkeypatch.chdir(everybodys / "own")
    else:
        (everybodys / "own/rigproof").write_text("")
        monkeypatch.setattr(schedule, "_program", lambda: (str(everybodys / "own/rigproof"),))
    assert f"that user {words} {everybodys}/own" in sentence(capsys, "show", "--run-as", "nobody")


def refuse(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def unmapped(*_: object) -> None:
    """Of a user without a number in this container's user namespace (setresuid(2))."""
    raise OSError(22, "Invalid argument")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("geteuid", lambda: 1000),
        ("setgroups", refuse),
        ("setresuid", refuse),
        ("setresgid", unmapped),
        ("setresuid", unmapped),
    ],
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
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    import time

    time.tzset()
    try:
        said = sentence(capsys, "show", "--at", "02:30")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (
        "the clocks here are put on over it, and systemd would skip that night: give another "
        "time, such as 04:30"
    ) in said


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
    (here / "reports/a/logs").mkdir(parents=True)
    made = journals.plan()
    with segment.Writer(here / "reports/a" / reader.SUPERVISOR) as writer:
        for body in journals.bodies(made, {("copy", Gpu(0)): 1.0}):
            writer.write(body)
    write_views(here / "reports/a")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if left is not None:
        failure_note.write_note(
            here / "reports", {"INVOCATION_ID": "a1"}, here / "reports/a", told=left
        )
        monkeypatch.setenv("MONITOR_INVOCATION_ID", "a1")
    assert run(here, "failed", "--on-fail", "./hook", "--textfile", "x.prom") == 0
    assert capsys.readouterr().out.startswith("the nightly run ")
    assert (here / "called").exists() is (called is not None)
    assert (here / "x.prom").exists() is (called is not None)
    if called:
        assert (
            here / "called"
        ).read_text() == f"{called} {here / 'reports/a' if left is False else 'no run'}\n"
        assert f'verdict="{called}"}} 1' in (here / "x.prom").read_text()
        assert stat.S_IMODE((here / "x.prom").stat().st_mode) == 0o644


def test_who_could_not_be_told_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(here, "failed", "--on-fail", "false") == 3
    assert (
        f"the command of --on-fail, {_which('false')}, ended with exit code 1"
        in capsys.readouterr().out
    )


def test_a_setting_that_cannot_be_used_keeps_no_other_from_telling(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of node-exporter's that is gone ends the night before it begins: the failure unit
    is all that is left to tell.
    """
    executable(here / "hook", HOOK)
    assert (
        run(
            here,
            "failed",
            "--on-fail",
            "./hook",
            "--textfile",
            "gone/x.prom",
            "--webhook",
            "nowhere",
        )
        == 3
    )
    assert (here / "called").read_text() == "UNJUDGED no run\n"
    out = capsys.readouterr().out
    assert "--textfile gone/x.prom: there is no folder gone" in out
    assert "--webhook: that is no address" in out


def _which(name: str) -> str:
    return next(
        str(Path(folder) / name)
        for folder in os.environ["PATH"].split(":")
        if (Path(folder) / name).is_file()
    )
