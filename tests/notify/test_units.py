"""What the units say; that systemd reads them so is in test_by_systemd.py."""

from __future__ import annotations

from datetime import time

import pytest
from schedules import schedule, settings

from acceptance.core.message import UserError
from acceptance.notify.schedule import units


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


def test_nothing_keeps_the_harness_from_the_machine() -> None:
    """What systemd offers and what would break a measurement or a hook:
    docs/nightly.md says each.
    """
    for made in (schedule(), schedule(run_as="lab"), schedule(user=True)):
        found = settings(units.service(made))
        for name in (
            "NoNewPrivileges",
            "PrivateDevices",
            "DevicePolicy",
            "DeviceAllow",
            "PrivateTmp",
            "ProtectHome",
            "PrivateNetwork",
            "ProtectKernelModules",
            "ProtectKernelLogs",
            "ProtectClock",
            "MemoryDenyWriteExecute",
            "CapabilityBoundingSet",
            "RestrictAddressFamilies",
            "SystemCallFilter",
            "AssertPathExists",
            "MemoryMax",
            "CPUQuota",
        ):
            assert name not in found


@pytest.mark.parametrize(
    "name", ["ProtectSystem", "ProtectControlGroups", "ProtectHostname", "LockPersonality"]
)
def test_hardening_is_for_root_alone(name: str) -> None:
    assert name in settings(units.service(schedule()))
    assert name not in settings(units.service(schedule(run_as="lab")))
    assert name not in settings(units.service(schedule(user=True)))


def test_the_timer() -> None:
    found = assert_set(
        units.timer(schedule(at=time(4, 5))),
        OnCalendar="*-*-* 04:05:00",
        Persistent="true",
        WantedBy="timers.target",
    )
    assert {"RandomizedDelaySec", "FixedRandomDelay", "AccuracySec"} <= set(found)


def test_what_is_started_when_a_night_fails() -> None:
    made = schedule("--machine", "x", "--on-fail", "mail root", telling=("--on-fail", "mail root"))
    command = '/opt/rigproof/bin/rigproof schedule failed --on-fail "mail root"'
    found = assert_set(units.failure_unit(made), ExecStart=command, SyslogLevel="err")
    assert "OnFailure" not in found, "it must not start itself"


def test_a_users_own_units() -> None:
    made = units.texts(schedule(user=True))
    assert_set(made[units.FAILED], ExecStart="/opt/rigproof/bin/rigproof schedule failed --user")
    found = assert_set(
        made[units.SERVICE],
        ConditionPathExists="!%t/rigproof-hold",
        EnvironmentFile="-%h/.config/rigproof/environment",
    )
    # A user's systemd does not know the system's services.
    assert not {"User", "After"} & set(found)


def test_who_runs_it() -> None:
    for name in (units.SERVICE, units.FAILED):
        assert_set(units.texts(schedule(run_as="lab"))[name], User="lab")


def test_every_unit_is_known_as_ours() -> None:
    for text in units.texts(schedule()).values():
        assert text.startswith(f"{units.OURS}, ")
        assert text.endswith("\n")


def test_the_line_for_cron() -> None:
    made = schedule("--on-fail", "sh -c 'date +%F'", folder="/srv/my box", at=time(2, 5))
    assert units.cron(made) == (
        "5 2 * * * cd '/srv/my box' && nice -n 10 ionice -c 3 /opt/rigproof/bin/rigproof nightly "
        "--on-fail "
        "'sh -c '\"'\"'date +\\%F'\"'\"''"
    )


@pytest.mark.parametrize("folder", ["/a\nb", "/a ", "/a\\", "/a\x1b", "/\udcff"])
def test_a_folder_that_no_unit_can_hold(folder: str) -> None:
    with pytest.raises(UserError, match="has a name that no unit can hold"):
        units.service(schedule(folder=folder))
