from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from raising import raising
from runs import until

from acceptance.station import container_owner

BOOT = "boot-1"


def test_who_holds_it_lives() -> None:
    own = container_owner.name(BOOT)
    assert own.split("/")[0] == BOOT
    assert own.split("/")[2] == str(os.getpid())
    assert container_owner.name(BOOT, os.getpid()) == own
    assert container_owner.lives(own, BOOT) is True


def test_a_process_that_has_ended_does_not_live_before_its_parent_has_looked_either() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        held = container_owner.name(BOOT, process.pid)
        assert container_owner.lives(held, BOOT) is True
        process.kill()
        stat = Path(f"/proc/{process.pid}/stat")
        until(lambda: ") Z " in stat.read_text(), "it is a zombie")
        assert container_owner.lives(held, BOOT) is False
        with pytest.raises(ProcessLookupError):
            container_owner.name(BOOT, process.pid)
    assert container_owner.lives(held, BOOT) is False


def test_another_process_of_the_same_number_is_not_it() -> None:
    boot, space, number, began = container_owner.name(BOOT).split("/")
    assert container_owner.lives(f"{boot}/{space}/{number}/{int(began) + 1}", BOOT) is False
    assert container_owner.lives(f"{boot}/{space}/0/{began}", BOOT) is False
    assert container_owner.lives(f"{boot}/{space}/99999999999999999999/{began}", BOOT) is False


def test_another_boot_and_another_namespace_cannot_be_told_of() -> None:
    _, space, number, began = container_owner.name(BOOT).split("/")
    assert container_owner.lives(f"boot-0/{space}/{number}/{began}", BOOT) is None
    assert container_owner.lives(f"{BOOT}/pid:[7]/{number}/{began}", BOOT) is None


def test_a_process_that_proc_does_not_show_may_live(monkeypatch: pytest.MonkeyPatch) -> None:
    _, space, _, began = container_owner.name(BOOT).split("/")

    monkeypatch.setattr(os, "kill", raising(PermissionError))
    assert container_owner.lives(f"{BOOT}/{space}/99999999/{began}", BOOT) is None


@pytest.mark.parametrize(
    "text", ["", "x", "a/b/c", "a/b/c/d", "a/b/²/d", "a/b/7/d/e", "a/b/-7/d", "a/b//d"]
)
def test_what_cannot_be_read_is_taken_for_living(text: str) -> None:
    assert container_owner.lives(text, BOOT) is True
