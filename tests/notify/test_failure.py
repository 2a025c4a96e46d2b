from __future__ import annotations

from cases import each

from acceptance.notify.schedule import failure_note
from acceptance.notify.schedule.failure_note import FailureNote
from acceptance.wording import words


def monitor(result: str, code: str = "", status: str = "") -> dict[str, str]:
    return {
        "MONITOR_SERVICE_RESULT": result,
        "MONITOR_EXIT_CODE": code,
        "MONITOR_EXIT_STATUS": status,
    }


TOLD, UNTOLD = FailureNote("a1", "/runs/a", told=True), FailureNote("a1", "/runs/a", told=False)


@each(
    "environment, note, text",
    [
        (monitor("exit-code", "exited", "1"), TOLD, "ended with FAIL"),
        (monitor("exit-code", "exited", "3"), TOLD, "ended with UNJUDGED"),
        (
            monitor("exit-code", "exited", "1"),
            UNTOLD,
            "ended with FAIL, and not everybody was notified",
        ),
        (
            monitor("exit-code", "exited", "3"),
            UNTOLD,
            "ended with UNJUDGED, and not everybody was notified",
        ),
        (monitor("exit-code", "exited", "1"), None, "did not come to a verdict (exit code 1)"),
        (monitor("exit-code", "exited", "3"), None, "did not come to a verdict (exit code 3)"),
        (monitor("exit-code", "exited", "2"), None, "did not come to a verdict (exit code 2)"),
        (monitor("exit-code", "exited", "2"), TOLD, "did not come to a verdict (exit code 2)"),
        (monitor("exit-code", "exited", "203"), None, "did not come to a verdict (exit code 203)"),
        (
            monitor("timeout", "killed", "TERM"),
            None,
            "was ended before its verdict (timeout, signal TERM)",
        ),
        (
            monitor("signal", "killed", "KILL"),
            None,
            "was ended before its verdict (signal, signal KILL)",
        ),
        (
            monitor("oom-kill", "killed", "KILL"),
            None,
            "was ended before its verdict (oom-kill, signal KILL)",
        ),
        (
            monitor("core-dump", "dumped", "1"),
            None,
            "was ended before its verdict (core-dump, signal 1)",
        ),
        (monitor("start-limit-hit"), None, "was ended before its verdict (start-limit-hit)"),
        ({}, None, "did not end with PASS"),
    ],
)
def test_how_a_night_ended(
    environment: dict[str, str], note: FailureNote | None, text: str
) -> None:
    """An exit code alone proves nothing: Python ends with 1, too, where it breaks off."""
    found = failure_note.ending(environment, note, user=False)
    assert found.told is (note is TOLD)
    said = words.message(found.message)
    assert said == f"the nightly run {text}: see `journalctl --unit rigproof-nightly.service`"


def test_of_a_users_own_units() -> None:
    for told in (True, False):
        found = failure_note.ending(
            {
                failure_note.RESULT: "exit-code",
                failure_note.CODE: "exited",
                failure_note.STATUS: "1",
            },
            failure_note.FailureNote("a1", "/run", told, "gpu0 in watch.heat: hot"),
            user=False,
        )
        assert " FAIL: gpu0 in watch.heat: hot" in words.message(found.message)
    assert words.message(failure_note.ending({}, None, user=True).message).endswith(
        "see `journalctl --user --unit rigproof-nightly.service`"
    )


def test_what_the_environment_holds_is_text() -> None:
    found = failure_note.ending(
        monitor("\x1b[31mtimeout\n", "killed", "x" * 5000), None, user=False
    )
    said = words.message(found.message)
    assert said.isprintable()
    assert len(said) < 500
