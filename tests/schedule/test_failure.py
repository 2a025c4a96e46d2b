from __future__ import annotations

import pytest

from acceptance.schedule import failure


def monitor(result: str, code: str = "", status: str = "") -> dict[str, str]:
    return {"MONITOR_SERVICE_RESULT": result, "MONITOR_EXIT_CODE": code, "MONITOR_EXIT_STATUS": status}


@pytest.mark.parametrize(
    ("environment", "told", "text"),
    [
        (monitor("exit-code", "exited", "1"), True, "ended with FAIL"),
        (monitor("exit-code", "exited", "3"), True, "ended with UNJUDGED"),
        (monitor("exit-code", "exited", "2"), False, "did not come to a verdict (exit code 2)"),
        (monitor("exit-code", "exited", "203"), False, "did not come to a verdict (exit code 203)"),
        (monitor("timeout", "killed", "TERM"), False, "was ended before its verdict (timeout, signal TERM)"),
        (monitor("signal", "killed", "KILL"), False, "was ended before its verdict (signal, signal KILL)"),
        (monitor("oom-kill", "killed", "KILL"), False, "was ended before its verdict (oom-kill, signal KILL)"),
        (monitor("core-dump", "dumped", "1"), False, "was ended before its verdict (core-dump, signal 1)"),
        (monitor("start-limit-hit"), False, "was ended before its verdict (start-limit-hit)"),
        ({}, False, "did not end with PASS"),
    ],
)
def test_how_a_night_ended(environment: dict[str, str], told: bool, text: str) -> None:
    found = failure.ending(environment, user=False)
    assert found.told is told
    assert found.text == f"the nightly run {text}: see `journalctl --unit rigproof-nightly.service`"


def test_of_a_users_own_units() -> None:
    assert failure.ending({}, user=True).text.endswith("see `journalctl --user --unit rigproof-nightly.service`")


def test_what_the_environment_holds_is_text() -> None:
    found = failure.ending(monitor("\x1b[31mtimeout\n", "killed", "x" * 5000), user=False)
    assert found.text.isprintable()
    assert len(found.text) < 500
