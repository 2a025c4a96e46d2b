from __future__ import annotations

import re
import time
from pathlib import Path

from runs import machine_root

from acceptance.journal import clock


def test_two_clocks() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock.boot_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", clock.utc())


def test_which_boot_of_which_machine(tmp_path: Path) -> None:
    root = machine_root(tmp_path, boot="8f2b", machine="c0ffee")
    assert (clock.boot_id(root), clock.machine_id(root)) == ("8f2b", "c0ffee")


def test_a_machine_without_an_id_goes_by_its_name(tmp_path: Path) -> None:
    root = machine_root(tmp_path, machine="")
    assert clock.machine_id(root) == "box"
    (root / "etc/machine-id").unlink()
    assert clock.machine_id(root) == "box"


def test_this_machine() -> None:
    assert clock.boot_id()
    assert clock.machine_id()
