"""Every message is in docs/messages.md, and nobody adds or changes one without its being read there."""

from __future__ import annotations

import difflib

import messages
import pytest

from acceptance.verbs import errors


def test_every_message_is_listed() -> None:
    listed, made = messages.LIST.read_text(encoding="utf-8"), messages.render()
    changed = "\n".join(
        difflib.unified_diff(listed.splitlines(), made.splitlines(), "listed", "said", lineterm="", n=0)
    )
    assert not changed, f"read these as the person at the bench would, then run `python tests/messages.py`:\n{changed}"


@pytest.mark.parametrize("error", [*errors.USER_ERRORS, *errors.TROUBLE], ids=lambda error: error.__name__)
def test_the_errors_that_end_a_verb_are_read(error: type[BaseException]) -> None:
    assert error.__name__ in messages.errors(messages.read())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("acceptance/supervisor.py", "{out}: no run can be written there ({strerror}): give another folder with --out"),
        ("acceptance/arguments/shared.py", "folder in which each run gets a folder of its own (default: reports)"),
        ("acceptance/arguments/values.py", "name at least one GPU by its index or UUID"),
        ("acceptance/judge/judgement.py", "{measurement} on {component} was not measured: {reason}"),
        ("acceptance/gpu_watch.py", "nobody listened for Xid errors of {name}: {cure}; {said}"),
        ("acceptance/suites/kernel_log.py", "the kernel log could not be read when the run began"),
        ("acceptance/tools/gpu_burn.py", "the text holds no line of gpu-burn"),
        ("acceptance/unfinished.py", "an earlier run ({name}) was never finished: {detail}"),
        ("acceptance/watch.py", "the watch over sensors and kernel log stopped: {error}"),
        ("acceptance/reports/terminal.py", "warning"),
    ],
)
def test_a_message_of_every_way_to_say_one_is_found(module: str, message: str) -> None:
    assert message in messages.collect()[module]
