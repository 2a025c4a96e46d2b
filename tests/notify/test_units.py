"""What the units say, and how their words are quoted; that systemd reads them so is in
test_by_systemd.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import time

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from schedules import schedule, settings

from acceptance.core.message import UserError
from acceptance.notify.schedule import units
from acceptance.notify.schedule.units import Schedule


def assert_set(text: str, **due: str) -> dict[str, list[str]]:
    """These settings stand in a unit, once each; all of its settings."""
    found = settings(text)
    assert {name: found.get(name) for name in due} == {name: [one] for name, one in due.items()}
    return found


def test_the_night() -> None:
    text = units.service(schedule("--machine", "box.toml", folder="/srv/box"))
    assert text.startswith(units.OURS)
    found = assert_set(
        text,
        ExecStart="/opt/rigproof/bin/rigproof nightly --machine box.toml",
        WorkingDirectory="/srv/box",
        Type="oneshot",
        OnFailure=units.FAILED,
        SuccessExitStatus="4",  # a night on which the machine was in use is no failure
        ConditionACPower="true",
        ConditionPathExists="!/run/rigproof-hold",
        Nice="10",
        IOSchedulingClass="idle",
        KillMode="mixed",
        User="root",  # without a name of a user there is no HOME
    )
    assert {"TimeoutStartSec", "TimeoutStopSec"} <= set(found)


HARMFUL = {
    *("NoNewPrivileges", "PrivateDevices", "DevicePolicy", "DeviceAllow", "PrivateTmp"),
    *("ProtectHome", "PrivateNetwork", "ProtectKernelModules", "ProtectKernelLogs"),
    *("ProtectClock", "MemoryDenyWriteExecute", "CapabilityBoundingSet"),
    *("RestrictAddressFamilies", "SystemCallFilter", "AssertPathExists", "MemoryMax", "CPUQuota"),
}
FOR_ROOT = {"ProtectSystem", "ProtectControlGroups", "ProtectHostname", "LockPersonality"}


@each(
    "made, hardened",
    [(schedule(), FOR_ROOT), (schedule(run_as="lab"), set()), (schedule(user=True), set())],
    told=["root", "another user", "own units"],
)
def test_nothing_keeps_the_harness_from_the_machine(made: Schedule, hardened: set[str]) -> None:
    """What systemd offers and what would break a measurement or a hook:
    docs/nightly.md says each.
    """
    found = set(settings(units.service(made)))
    assert (found & HARMFUL, found & FOR_ROOT) == (set(), hardened)
    for text in units.texts(made).values():
        assert text.startswith(f"{units.OURS}, ")
        assert text.endswith("\n")
    for name in (units.SERVICE, units.FAILED) if made.run_as else ():
        assert_set(units.texts(made)[name], User="lab")


def test_the_timer() -> None:
    found = assert_set(
        units.timer(schedule(at=time(4, 5))),
        OnCalendar="*-*-* 04:05:00",
        Persistent="true",
        WantedBy="timers.target",
    )
    assert {"RandomizedDelaySec", "FixedRandomDelay", "AccuracySec"} <= set(found)


def test_a_users_own_units_and_what_is_started_when_a_night_fails() -> None:
    made = units.texts(schedule(user=True))
    assert_set(made[units.FAILED], ExecStart="/opt/rigproof/bin/rigproof schedule failed --user")
    found = assert_set(
        made[units.SERVICE],
        ConditionPathExists="!%t/rigproof-hold",
        EnvironmentFile="-%h/.config/rigproof/environment",
    )
    # A user's systemd does not know the system's services.
    assert not {"User", "After"} & set(found)
    told = schedule("--machine", "x", "--on-fail", "mail root", telling=("--on-fail", "mail root"))
    command = '/opt/rigproof/bin/rigproof schedule failed --on-fail "mail root"'
    found = assert_set(units.failure_unit(told), ExecStart=command, SyslogLevel="err")
    assert "OnFailure" not in found, "it must not start itself"


def test_the_line_for_cron() -> None:
    made = schedule("--on-fail", "sh -c 'date +%F'", folder="/srv/my box", at=time(2, 5))
    assert units.cron(made) == (
        "5 2 * * * cd '/srv/my box' && nice -n 10 ionice -c 3 /opt/rigproof/bin/rigproof nightly "
        "--on-fail "
        "'sh -c '\"'\"'date +\\%F'\"'\"''"
    )


# --- quoting ---

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@each(
    "text, quoted",
    [
        ("/usr/bin/rigproof", "/usr/bin/rigproof"),
        ("--out=/a-b_c@d:e,f+g", "--out=/a-b_c@d:e,f+g"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$$HOME"'),
        (";", '";"'),
        ("it's", '"it\'s"'),
        ("two\nlines\t\x1b", '"two\\x0alines\\x09\\x1b"'),
        ("中文", '"中文"'),
    ],
)
def test_an_argument(text: str, quoted: str) -> None:
    assert units.quote_word(text) == quoted


@given(text=texts)
def test_whatever_an_argument_holds_the_unit_stays_a_line(text: str) -> None:
    quoted = units.quote_word(text)
    assert len(quoted.split("\n")) == 1
    if quoted.startswith('"'):
        # Read as systemd.syntax(7) says: escapes, then doubled signs.
        inner = re.sub(
            r"\\x(..)|\\(.)",
            lambda m: chr(int(m[1], 16)) if m[1] else m[2],
            quoted[1:-1],
            flags=re.DOTALL,
        )
        assert inner.replace("$$", "$").replace("%%", "%") == text
    else:
        assert quoted == text
        assert not set("$%\\\"'; ") & set(text)


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12), min_size=1, max_size=4
    )
)
def test_cron_hands_on_what_the_shell_is_to_read(words: list[str]) -> None:
    line = units.cron_words(words)
    # crontab(5): a percent sign that is not escaped ends the command; of one that is the backslash
    # goes.
    assert not re.search(r"(?<!\\)%", line)
    assert shlex.split(line.replace(r"\%", "%")) == words


@each(
    "quote, texts",
    [
        (units.quote_word, ["a\0b", "\udcff"]),
        (units.quote_program, ["/a'b", '/a"b', "/a\\b", "/a\nb", "/\udcff", "/a\0b"]),
        (lambda text: units.cron_words(["echo", text]), ["a\nb", "\x1b", "\udcff"]),
        (
            lambda folder: units.service(schedule(folder=folder)),
            ["/a\nb", "/a ", "/a\\", "/a\x1b", "/\udcff"],
        ),
    ],
    told=["a word", "a program", "a crontab", "a folder"],
)
def test_what_cannot_be_held(quote: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(UserError):
            quote(text)
    assert units.quote_program("/a $b/50%") == '"/a $b/50%%"', "no variable is replaced"
