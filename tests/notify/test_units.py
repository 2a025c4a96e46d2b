"""What the units say; that systemd reads them so is in test_by_systemd.py."""

from __future__ import annotations

from datetime import time

import pytest
from schedules import schedule, settings

from acceptance.notify.schedule import units


def test_the_night() -> None:
    text = units.service(schedule("--machine", "box.toml", folder="/srv/box"))
    found = settings(text)
    assert text.startswith(units.OURS)
    assert found["ExecStart"] == ["/opt/rigproof/bin/rigproof nightly --machine box.toml"]
    assert found["WorkingDirectory"] == ["/srv/box"]
    assert found["Type"] == ["oneshot"]
    assert found["OnFailure"] == [units.FAILED]
    assert found["SuccessExitStatus"] == ["4"], (
        "a night on which the machine was in use is no failure"
    )
    assert found["ConditionACPower"] == ["true"]
    assert found["ConditionPathExists"] == ["!/run/rigproof-hold"]
    assert (found["Nice"], found["IOSchedulingClass"], found["KillMode"]) == (
        ["10"],
        ["idle"],
        ["mixed"],
    )
    assert {"TimeoutStartSec", "TimeoutStopSec"} <= set(found)
    assert found["User"] == ["root"], "without a name of a user there is no HOME"


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
    found = settings(units.timer(schedule(at=time(4, 5))))
    assert found["OnCalendar"] == ["*-*-* 04:05:00"]
    assert found["Persistent"] == ["true"]
    assert {"RandomizedDelaySec", "FixedRandomDelay", "AccuracySec"} <= set(found)
    assert found["WantedBy"] == ["timers.target"]


def test_what_is_started_when_a_night_fails() -> None:
    made = schedule("--machine", "x", "--on-fail", "mail root", telling=("--on-fail", "mail root"))
    found = settings(units.failure_unit(made))
    assert found["ExecStart"] == [
        '/opt/rigproof/bin/rigproof schedule failed --on-fail "mail root"'
    ]
    assert found["SyslogLevel"] == ["err"]
    assert "OnFailure" not in found, "it must not start itself"


def test_a_users_own_units() -> None:
    made = units.texts(schedule(user=True))
    assert settings(made[units.FAILED])["ExecStart"] == [
        "/opt/rigproof/bin/rigproof schedule failed --user"
    ]
    found = settings(made[units.SERVICE])
    assert "User" not in found
    assert "After" not in found, "a user's systemd does not know the system's services"
    assert found["ConditionPathExists"] == ["!%t/rigproof-hold"]
    assert found["EnvironmentFile"] == ["-%h/.config/rigproof/environment"]


def test_who_runs_it() -> None:
    for name in (units.SERVICE, units.FAILED):
        assert settings(units.texts(schedule(run_as="lab"))[name])["User"] == ["lab"]


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
    with pytest.raises(units.Unquotable, match="has a name that no unit can hold"):
        units.service(schedule(folder=folder))
