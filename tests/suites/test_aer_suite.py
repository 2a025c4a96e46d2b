"""Errors of PCI Express by the kernel's own counters (AER): their files are read strictly, and
their growth in a run is judged by the suite's check on described files.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import journals
import pytest
from cases import each
from gpu_machine import device, machine
from machine_tree import Tree
from suite_box import Said, ask, planned

from acceptance.core.fold import fold
from acceptance.core.message import Unmeasured
from acceptance.core.parts import GPUS, Component, Function, Gpu
from acceptance.core.record import CheckStarted, Event, Skipped
from acceptance.expect import components
from acceptance.journal.duplicates import mark
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import PciPlace
from acceptance.observe import kernel_counters
from acceptance.observe.sysfs import SysfsError
from acceptance.suites import link

NAMES = tuple(map(Gpu, range(3)))
ROOT, PORT = "0000:00:01.0", "0000:10:00.0"  # above all GPUs, and above the first alone
CARDS = tuple(gpu.pci_address for gpu in gpus(machine(*map(device, range(3)))))
TOTALS = {
    "aer_dev_correctable": "TOTAL_ERR_COR",
    "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL",
    "aer_dev_fatal": "TOTAL_ERR_FATAL",
}
# Names with blanks are those of older kernels; a bit without a name shows once it was counted.
HEALTHY = "Receiver Error 0\nBad TLP 0\n{total} 0\n"


class Box:
    """Three equal GPUs below one root port, whose kernel counts at these functions."""

    def __init__(self, folder: Path, *counting: str) -> None:
        self.root, self.tree = folder, Tree(folder)
        for address in (ROOT, PORT, *CARDS):
            self.tree.write(f"sys/bus/pci/devices/{address}/config", b"\xde\x10" + bytes(62))
            for file, total in TOTALS.items() if address in counting else ():
                self.count(address, file, HEALTHY.format(total=total))
        places = {
            address: PciPlace(address, "pci0000:00", bridges, None, None)
            for address, bridges in zip(CARDS, ((ROOT, PORT), (ROOT,), (ROOT,)), strict=True)
        }
        bare = replace(machine(*map(device, range(3))), places=places)
        self.inventory = replace(bare, counters=kernel_counters.read(bare, folder))

    def count(self, address: str, file: str, text: str) -> None:
        self.tree.write(f"sys/bus/pci/devices/{address}/{file}", text)

    def gone(self, address: str) -> None:
        shutil.rmtree(self.root / f"sys/bus/pci/devices/{address}")

    def ask(self) -> Said:
        return ask(
            planned(self.inventory, NAMES, ("link.aer",), "d"),
            "link.aer",
            link.test_aer,
            inventory=self.inventory,
            due_gpus=gpus(self.inventory),
            machine=None,
            root=self.root,
        )


def test_each_error_that_was_counted_and_the_totals(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert kernel_counters.read_aer(tmp_path) == {}
    tree.write("aer_dev_correctable", "RxErr 2\nBad TLP 1\nTimeout 0\nTOTAL_ERR_COR 2\n")
    tree.write("aer_dev_fatal", "DLP 0\naer_dev_fatal_bit[31] 1\nTOTAL_ERR_FATAL 3\n")
    assert kernel_counters.read_aer(tmp_path) == {
        "aer_dev_correctable RxErr": 2,
        "aer_dev_correctable Bad TLP": 1,
        "aer_dev_correctable TOTAL_ERR_COR": 2,
        "aer_dev_fatal aer_dev_fatal_bit[31]": 1,
        "aer_dev_fatal TOTAL_ERR_FATAL": 3,
    }


@each(
    "text, quoted",
    [
        ("DLP 0\nTOTAL_ERR_FATAL\n", "'TOTAL_ERR_FATAL'"),
        ("DLP -1\nTOTAL_ERR_FATAL 0\n", "'DLP -1'"),
        ("DLP many\nTOTAL_ERR_FATAL 0\n", "'DLP many'"),
        ("DLP 0\n\nTOTAL_ERR_FATAL 0\n", "''"),
        ("7\nTOTAL_ERR_FATAL 7\n", "'7'"),
        ("DLP 0\nDLP 0\nTOTAL_ERR_FATAL 0\n", "'DLP 0'"),
        ("DLP 0\nTLP 0\n", "'TLP 0'"),  # cut short
        ("DLP 0\nTOTAL_ERR_COR 0\n", "'TOTAL_ERR_COR 0'"),
        ("DLP 3\nTOTAL_ERR_FATAL 2\n", "'TOTAL_ERR_FATAL 2'"),
    ],
)
def test_a_line_that_is_no_count_and_a_total_that_is_none(
    tmp_path: Path, text: str, quoted: str
) -> None:
    Tree(tmp_path).write("aer_dev_fatal", text)
    with pytest.raises(SysfsError) as caught:
        kernel_counters.read_aer(tmp_path)
    assert caught.value.message.code == "no_counter_in_file"
    assert caught.value.message.values["value"] == quoted


def test_nothing_grew(tmp_path: Path) -> None:
    said = Box(tmp_path, ROOT, PORT, *CARDS).ask()
    assert said.outcome == "pass"
    for measurement in ("aer_uncorrected", "aer_corrected", "aer_doubts"):
        assert said.measured(measurement) == dict.fromkeys((*NAMES, GPUS), 0.0)


@each(
    "address, file, text, measurement, part, value",
    [
        (CARDS[1], "aer_dev_fatal", "DLP 1\n{} 1\n", "aer_uncorrected", Gpu(1), 1.0),
        (CARDS[2], "aer_dev_nonfatal", "DLP 2\nTLP 2\n{} 3\n", "aer_uncorrected", Gpu(2), 3.0),
        (PORT, "aer_dev_fatal", "DLP 1\n{} 1\n", "aer_uncorrected", Gpu(0), 1.0),
        (ROOT, "aer_dev_fatal", "DLP 1\n{} 1\n", "aer_uncorrected", GPUS, 1.0),
        (ROOT, "aer_dev_correctable", "BadTLP 9\n{} 9\n", "aer_corrected", GPUS, 9.0),
    ],
)
def test_growth_belongs_to_one_part_and_names_the_function(
    tmp_path: Path,
    address: str,
    file: str,
    text: str,
    measurement: str,
    part: Component,
    value: float,
) -> None:
    box = Box(tmp_path, ROOT, PORT, *CARDS)
    healthy = HEALTHY.format(total=TOTALS[file]).splitlines()[:2]
    box.count(address, file, "\n".join([*healthy, text.format(TOTALS[file])]))
    said = box.ask()
    assert said.outcome == ("pass" if measurement == "aer_corrected" else "fail")
    values = {one: 0.0 for one in (*NAMES, GPUS)}
    assert said.measured(measurement) == values | {part: value}
    assert f"{address} {file} {TOTALS[file]} +{value:.0f}" in said.notes(measurement)[str(part)]
    assert said.measured("aer_doubts") == values


@each(
    "corrected, doubted",
    [((5, 0, 0), {Gpu(0)}), ((5, 4, 0), set()), ((5, 4, 6), set()), ((0, 1, 0), {Gpu(1)})],
)
def test_corrected_errors_of_one_gpu_alone_are_a_doubt(
    tmp_path: Path, corrected: tuple[int, ...], doubted: set[Component]
) -> None:
    box = Box(tmp_path, *CARDS)
    for address, n in zip(CARDS, corrected, strict=True):
        text = f"Receiver Error {n}\nBad TLP 0\nTOTAL_ERR_COR {n}\n"
        box.count(address, "aer_dev_correctable", text)
    said = box.ask()
    assert said.outcome == "pass"  # a doubt warns
    assert said.measured("aer_corrected") == dict(zip(NAMES, map(float, corrected), strict=True))
    assert {one for one, value in said.measured("aer_doubts").items() if value} == doubted


def test_a_machine_without_the_counters_owes_nothing_and_is_told_so(tmp_path: Path) -> None:
    box = Box(tmp_path)
    checks = [one.id for one in planned(box.inventory, NAMES, ("link",), "d").checks]
    assert "link.paths" in checks
    assert "link.aer" not in checks
    found = components.resolve(None, box.inventory, frozenset(), NAMES)
    assert found[kernel_counters.AER] == ()
    sources = [
        one.values["source"]
        for one in components.not_offered(found)
        if one.code == "kernel_counts_none"
    ]
    assert "AER" in sources
    some = components.resolve(None, Box(tmp_path / "some", CARDS[1]).inventory, frozenset(), NAMES)
    assert some[kernel_counters.AER] == (Gpu(1),)


@each("after", [None, "Receiver Error 0\nBad TLP 0\nTOTAL_ERR_FATAL 1\n"])
def test_counters_that_are_gone_or_were_set_back_prove_nothing(
    tmp_path: Path, after: str | None
) -> None:
    box = Box(tmp_path, *CARDS)
    box.count(CARDS[1], "aer_dev_fatal", "Receiver Error 2\nBad TLP 0\nTOTAL_ERR_FATAL 2\n")
    box.inventory = replace(box.inventory, counters=kernel_counters.read(box.inventory, box.root))
    (tmp_path / f"sys/bus/pci/devices/{CARDS[1]}/aer_dev_fatal").unlink()
    if after is not None:
        box.count(CARDS[1], "aer_dev_fatal", after)
    said = box.ask()
    assert said.outcome == "error"
    assert f"{CARDS[1]} aer_dev_fatal TOTAL_ERR_FATAL" in said.message
    assert said.measured("aer_uncorrected") == {Gpu(0): 0.0, Gpu(2): 0.0}
    assert said.measured("aer_corrected") == dict.fromkeys(NAMES, 0.0)


def test_errors_that_were_counted_before_all_else_was_lost_still_fail(tmp_path: Path) -> None:
    box = Box(tmp_path, *CARDS)
    (tmp_path / f"sys/bus/pci/devices/{CARDS[0]}/aer_dev_correctable").unlink()
    box.count(CARDS[0], "aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1\n")
    assert box.ask().measured("aer_uncorrected")[Gpu(0)] == 1.0


def test_a_gpu_that_fell_off_the_bus_is_left_to_the_checks_that_tell_it(tmp_path: Path) -> None:
    box = Box(tmp_path, ROOT, *CARDS)
    box.gone(CARDS[2])
    said = box.ask()
    (first, *_) = left = [one for one in said.written if isinstance(one, Skipped)]
    assert {(one.component, one.why) for one in left} == {(Gpu(2), Unmeasured.AFTER_FAULT)}
    assert first.measurement == "aer_uncorrected"
    assert said.measured("aer_uncorrected") == {Gpu(0): 0.0, Gpu(1): 0.0, GPUS: 0.0}


@each(
    "part, function, counted, code, failures",
    [
        (Gpu(0), CARDS[0], 1.0, "fatal", 1),
        (Gpu(0), PORT, 1.0, "non-fatal", 1),
        (GPUS, ROOT, 1.0, "fatal", 1),
        (GPUS, CARDS[0], 1.0, "fatal", 2),
        (Gpu(1), CARDS[0], 1.0, "fatal", 2),
        (Gpu(0), CARDS[0], 2.0, "fatal", 2),  # more than the log told of
    ],
)
def test_what_the_kernel_logged_and_counted_is_one_fault(
    part: Component, function: str, counted: float, code: str, failures: int
) -> None:
    plan = journals.plan(
        journals.check("together.burn"),
        journals.check(
            "link.aer",
            journals.due("aer_uncorrected", part, "count", journals.NONE_ALLOWED),
            session="host-after",
        ),
    )
    event = Event("aer", "fatal", "pcieport: AER", "It failed", "a", code, Function(function), None)
    bodies = []
    for body in journals.bodies(plan, {("aer_uncorrected", part): counted}):
        bodies += [body, event] if body == CheckStarted("together.burn") else [body]
    functions: dict[Component, Component] = {
        Function(ROOT): GPUS,
        Function(PORT): Gpu(0),
        Function(CARDS[0]): Gpu(0),
    }
    verdict = mark(fold(journals.entries(bodies)), [event], functions)
    assert len(verdict.of_kind("fail")) == failures
