"""The units as systemd itself reads them: it must have nothing against them, and start the very
words that were given.
"""

from __future__ import annotations

import re
import time as clock
from datetime import date, time, timedelta
from pathlib import Path

import pytest
from executable import executable
from schedules import schedule

from acceptance.notify.schedule import units
from acceptance.notify.schedule.units import Schedule
from acceptance.process import command
from acceptance.process.deadline import Deadline

pytestmark = pytest.mark.tools

HARD = (
    "plain",
    "two words",
    "",
    'say "x"',
    "it's",
    "back\\slash",
    "\\n",
    "50%",
    "%h %n %%",
    "$HOME ${HOME} $$",
    ";",
    "&&",
    "#",
    "-",
    "@x",
    "a\nb",
    "\x1b[31m",
    "中文",
    "é",
    "trailing ",
    "\ttab",
)


def analyze(*arguments: str, **environment: str) -> command.ProgramResult:
    argv = [command.find("systemd-analyze", "systemd"), *arguments]
    return command.run(argv, deadline=Deadline.after(60.0), env=environment)


def written(folder: Path, made: Schedule) -> list[str]:
    """The paths of its units; the program that they start is there."""
    executable(Path(made.program[0]), "#!/bin/sh\n")
    paths = []
    for name, text in units.texts(made).items():
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(str(folder / name))
    return paths


def words(line: str) -> list[str]:
    """A command line as systemd's dump writes it."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)
    escapes = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

    def plain(match: re.Match[str]) -> str:
        return chr(int(match[1], 8)) if match[1] else escapes.get(match[2], match[2])

    return [
        re.sub(r"\\(?:([0-7]{3})|(.))", plain, quoted or bare, flags=re.DOTALL)
        for quoted, bare in found
    ]


@pytest.mark.parametrize("kind", ["root", "another user", "own units"])
@pytest.mark.parametrize("folder", ["/var/lib/rigproof", '/srv/a "b" it\'s 50%h $x'])
def test_systemd_has_nothing_against_them(tmp_path: Path, kind: str, folder: str) -> None:
    user, run_as = kind == "own units", "daemon" if kind == "another user" else None
    program = str(tmp_path / "a b 50%h $x {} é" / "rigproof")
    made = schedule(
        *HARD,
        program=program,
        folder=folder,
        user=user,
        run_as=run_as,
        telling=("--on-fail", "a b"),
    )
    paths = written(tmp_path, made)
    own = ["--user"] if user else []
    done = analyze("verify", "--man=no", *own, *paths, XDG_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_starts_what_was_given(tmp_path: Path) -> None:
    program, folder = str(tmp_path / "a b 50%h $x é" / "rigproof"), '/srv/a "b" it\'s 50%h $x'
    made = schedule(*HARD, program=program, folder=folder, telling=HARD)
    paths = written(tmp_path, made)
    dump = analyze("verify", "--man=no", *paths, SYSTEMD_LOG_LEVEL="debug").stdout
    started = [
        line.partition("Command Line: ")[2]
        for line in dump.splitlines()
        if "Command Line: " in line
    ]
    # What is left to the moment of the start is the dollar sign (systemd.service(5)); in the
    # program's path it is none.
    told = {tuple(word.replace("$$", "$") for word in words(line)) for line in started}
    assert {made.nightly, made.failure} <= told
    assert f"WorkingDirectory: {folder}" in dump


def test_systemd_sees_a_mistake(tmp_path: Path) -> None:
    """What the test above asks is answered."""
    made = schedule(program=str(tmp_path / "rigproof"))
    (path, *_) = written(tmp_path, made)
    (tmp_path / "rigproof").unlink()
    done = analyze("verify", "--man=no", path)
    assert done.returncode != 0
    assert "rigproof is not executable" in done.stderr


@pytest.mark.parametrize("sign", ["'", '"', "\\"])
def test_systemd_starts_no_program_with_quotes_in_its_name(tmp_path: Path, sign: str) -> None:
    """Why such a one is refused when the units are made."""
    path = executable(tmp_path / f"a{sign}b", "#!/bin/sh\n")
    (tmp_path / "x.service").write_text(
        f"[Service]\nType=oneshot\nExecStart={units.quote_word(str(path))}\n"
    )
    done = analyze("verify", "--man=no", str(tmp_path / "x.service"))
    assert "Executable name contains special characters" in done.stderr


def moments(at: time, zone: str, after: str, nights: int) -> list[str]:
    """When the timer is due after a moment, by the clocks of that zone."""
    calendar = next(
        line.partition("=")[2]
        for line in units.timer(schedule(at=at)).splitlines()
        if line.startswith("OnCalendar=")
    )
    done = analyze("calendar", f"--base-time={after}", f"--iterations={nights}", calendar, TZ=zone)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"(?:Next elapse|Iter\. #\d+): \S+ (\S+ \S+) (\S+)", done.stdout)
    assert len(found) == nights
    return [moment for moment, _ in found]


CHANGES = (
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("Europe/Helsinki", date(2026, 3, 29)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    ("America/Havana", date(2026, 3, 8)),
    ("Asia/Shanghai", date(2026, 3, 29)),
    ("Australia/Sydney", date(2026, 4, 5)),
)


@pytest.mark.parametrize(("zone", "day"), CHANGES)
@pytest.mark.parametrize("at", [units.DEFAULT_TIME, time(0, 30), time(2, 30), time(3, 30)])
def test_one_night_is_one_run_when_clocks_are_changed(
    zone: str, day: date, at: time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No night twice; and none is lost but the one for which such a time is refused."""
    monkeypatch.setenv("TZ", zone)
    clock.tzset()
    try:
        lost = units.skipped_on(at, day)
    finally:
        monkeypatch.undo()
        clock.tzset()
    nights = [day + timedelta(days=ahead) for ahead in range(4)]
    due = [f"{night} {at:%H:%M}:00" for night in nights if night != lost]
    assert moments(at, zone, f"{day - timedelta(days=1)} 12:00:00", 3) == due[:3]
    assert lost is None or at != units.DEFAULT_TIME
