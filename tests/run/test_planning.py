from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpu_machine
import msgspec
import pytest
from cases import each
from machine_tree import NO_DMI, Programs, Tree, completed
from runs import until
from site_box import SiteBox
from worded import worded

from acceptance import resources
from acceptance.core import parts
from acceptance.core.limit import Limit
from acceptance.core.message import Message, SetupError, UserError
from acceptance.core.parts import CPU, MEMORY, Gpu, Pair, Part
from acceptance.core.plan import Due
from acceptance.expect import gpu_limits, gpu_names, measurements, storage_limits
from acceptance.expect.collected import PlanError
from acceptance.expect.limit_book import CLASS_DEFAULT, LimitBook, Override
from acceptance.journal import provenance
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Dimm, EmptySlot, Inventory, Memory, NvmlDevice
from acceptance.machine.machine_file import (
    DeclaredCpu,
    DeclaredDimm,
    DeclaredMemory,
    DeclaredPsu,
    Machine,
)
from acceptance.observe import draft
from acceptance.observe.inventory import observe
from acceptance.observe.sysfs import SysfsError
from acceptance.process import orphans
from acceptance.reports.progress import eta_s
from acceptance.run import planning, scratch
from acceptance.run import profile as run_profile
from acceptance.run.planning import PreparedRun
from acceptance.run.profile import Profile
from acceptance.session import context
from acceptance.station.options import Options
from acceptance.wording import words

GIB = 1 << 30
PYTHON = (sys.executable, "-ISc")
CPU_ONLY = resources.locate("machines") / "cpu-only.toml"


@pytest.fixture(scope="module")
def collected() -> context.Answer:
    """Every check there is, as the product's own session collects it."""
    return planning.collect(Path("/"))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Four cores and 64 GiB."""
    tree = Tree(tmp_path / "root")
    tree.cpus([(core, core + 4) for core in range(4)])
    tree.memory(64)
    return tree


@pytest.fixture
def prepare(
    tree: Tree, tmp_path: Path, collected: context.Answer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PreparedRun]:
    """Prepares a run on the tree's machine; `declared` is the text of a machine file."""
    programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    monkeypatch.setattr(planning, "observe", partial(observe, run=programs, dmidecode="dmidecode"))
    monkeypatch.setattr(
        planning, "start_collection", lambda _root: contextlib.nullcontext(lambda: collected)
    )

    def prepared(declared: str | None = None, **options: object) -> PreparedRun:
        file = None
        if declared is not None:
            file = tmp_path / "box.toml"
            file.write_text(f'schema = 1\nname = "box"\n{declared}')
        return planning.prepare(Options(machine_file=file, root=tree.root, **options))  # type: ignore[arg-type]

    return prepared


@pytest.fixture
def sees(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets NVML know these GPUs."""

    def known(*devices: NvmlDevice) -> None:
        told = msgspec.json.encode(gpu_machine.answer(devices)).decode()
        programs = Programs(nvml=completed(told), dmidecode=completed(*NO_DMI))
        monkeypatch.setattr(
            planning, "observe", partial(observe, run=programs, dmidecode="dmidecode")
        )

    return known


def limits(prepared: PreparedRun, measurement: str) -> list[Limit | None]:
    return [
        one.limit
        for check in prepared.plan.checks
        for one in check.due
        if one.measurement == measurement
    ]


def due(prepared: PreparedRun, measurement: str) -> list[str]:
    return [
        one.component
        for check in prepared.plan.checks
        for one in check.due
        if one.measurement == measurement
    ]


def test_the_products_own_checks_are_collected(collected: context.Answer) -> None:
    assert collected.digest == provenance.package_digest()
    ids = [check.id for check in collected.checks]
    assert {"gpu.present", "cpu.stress_ng", "cpu.gemm[f64]", "cpu.cpuburn", "inventory.cpu"} <= set(
        ids
    )
    assert len(set(ids)) == len(ids)


def test_two_gpus_and_no_machine_file(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2)
    made = prepare(profile="smoke")
    assert (made.machine, made.plan.inventory_declared, made.plan.scope) == (None, False, "full")
    assert due(made, "gpu_answers") == [Gpu(0), Gpu(1)]
    assert (made.plan.gaps, made.plan.gpus) == ((), (Gpu(0), Gpu(1)))
    assert due(made, "cpu_cores") == []  # nothing declares how many there should be
    assert (
        made.profile_summary == run_profile.read(resources.locate("profiles.toml"))["smoke"].summary
    )


@pytest.fixture
def stored(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk of its own."""
    room = SimpleNamespace(f_bavail=500, f_blocks=1000, f_frsize=GIB, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    data = tmp_path / "data"
    data.mkdir()
    tree.disk("sdb", "pci0000:00/0000:00:17.0/ata1/host1")
    tree.link("sys/dev/block/8:16", "sys/devices/pci0000:00/0000:00:17.0/ata1/host1/block/sdb")
    tree.write(
        "proc/self/mountinfo",
        f"27 1 0:20 / / rw - tmpfs tmpfs rw\n28 27 8:16 / {data} rw - ext4 /dev/sdb rw\n",
    )
    return data


def test_where_the_storage_tests_write_is_said_before_the_run(
    prepare: Callable[..., PreparedRun], stored: Path
) -> None:
    made = prepare(f'[[scratch]]\npath = "{stored}"')
    (place,) = made.scratches
    assert (place.path, place.component, place.write_bytes) == (
        str(stored),
        Part("disk", "sdb"),
        8 * GIB,
    )
    (told,) = [words.text(note.text) for note in made.notes if "storage:" in words.text(note.text)]
    start = f"storage: at most 8 GiB (8,589,934,592 bytes) are written below {stored}/"
    assert told.startswith(start)
    assert list(stored.iterdir()) == []
    assert prepare(f'[[scratch]]\npath = "{stored}"', only=("cpu",)).scratches == ()


def test_without_a_declared_folder_the_run_has_its_own(
    prepare: Callable[..., PreparedRun], stored: Path, tmp_path: Path
) -> None:
    assert [place.path for place in prepare(out=stored).scratches] == [str(stored)]
    made = prepare(out=tmp_path / "on-tmpfs")
    assert made.scratches == ()
    (told,) = [one for one in map(words.text, made.plan.not_tested) if "speed of the disks" in one]
    assert (
        "which is no disk of this machine: name a folder on one as path of a scratch table" in told
    )


def test_what_is_not_tested_of_disks_is_said(
    prepare: Callable[..., PreparedRun], stored: Path
) -> None:
    def about_disks(made: PreparedRun) -> list[str]:
        told = map(words.text, made.plan.not_tested)
        return [one for one in told if one.startswith(("writing to", "reading from"))]

    assert about_disks(prepare(out=stored)) == []
    for name in ("smoke", "nightly"):
        writing, reading = about_disks(prepare(out=stored, profile=name))
        assert "this profile writes no data" in writing
        assert "reading from disk:sdb: no file" in reading
    (stored / ".rigproof/kept").mkdir(parents=True, mode=0o700)
    (stored / ".rigproof").chmod(0o700)
    (stored / ".rigproof/kept/sealed").write_bytes(b"x")
    made = prepare(out=stored, profile="nightly")
    assert due(made, "storage_read") == [Part("disk", "sdb")]
    assert len(about_disks(made)) == 1


def test_storage_alone_where_nothing_of_it_is_due_says_why(
    prepare: Callable[..., PreparedRun], stored: Path, tree: Tree
) -> None:
    with pytest.raises(PlanError, match=r"profile smoke; writing to disks.*run `rigproof accept`"):
        prepare("gpus = 0", out=stored, profile="smoke", only=("cpu", "storage.read"))


@pytest.mark.parametrize("name", ["smoke", "nightly"])
def test_a_limit_of_what_another_profile_measures_on_a_disk_is_no_gap(
    prepare: Callable[..., PreparedRun], stored: Path, name: str
) -> None:
    rows = """
gpus = 0
[[limit]]
measurement = "storage_write"
component = "disk:{disk}"
low = 1
unit = "GB/s"
basis = "its sheet"
[[waiver]]
measurement = "storage_write"
component = "disk:{disk}"
worst = 0.5
reason = "worn"
"""
    made = prepare(rows.format(disk="sdb"), out=stored, profile=name)
    assert made.plan.gaps == ()
    assert not [one for one in made.notes if "matches nothing" in words.text(one.text)]
    made = prepare(rows.format(disk="sdx"), out=stored, profile=name)
    assert len(made.plan.gaps) == 1
    assert [one for one in made.notes if "matches nothing" in words.text(one.text)]


def test_the_floor_of_a_disk_that_is_not_read_is_no_gap(
    prepare: Callable[..., PreparedRun], stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor = Limit("GB/s", "its sheet", low=1.0)
    real = storage_limits.floors

    def floors(*given: Any) -> Iterator[Override]:
        read, random = real(*given)
        yield from (replace(read, limit=floor, unlimited=None), random)

    monkeypatch.setattr(storage_limits, "floors", floors)
    assert prepare("gpus = 0", out=stored, profile="nightly").plan.gaps == ()
    made = prepare("gpus = 0", out=stored)
    low = [one.limit for one in _dues(made) if one.measurement == "storage_read"]
    assert low == [floor]


def _dues(made: PreparedRun) -> list[Due]:
    return [one for check in made.plan.checks for one in check.due]


def test_a_declared_folder_on_the_filesystem_of_the_root(
    prepare: Callable[..., PreparedRun], stored: Path, tree: Tree
) -> None:
    def warnings(made: PreparedRun) -> list[str]:
        told = (words.text(note.text) for note in made.notes)
        return [one for one in told if one.startswith("warning: ")]

    table = f'[[scratch]]\npath = "{stored}"'
    assert warnings(prepare(table)) == []
    tree.write("proc/self/mountinfo", "27 1 8:16 / / rw - ext4 /dev/sdb rw\n")
    (told,) = warnings(prepare(table))
    assert f"{stored}, a scratch folder of the machine file, lies on the filesystem of /" in told
    assert warnings(prepare(out=stored)) == [], "the run's folder may lie where it likes"


def test_a_declared_folder_that_cannot_be_used(
    prepare: Callable[..., PreparedRun], stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(stored)
    rows = f'[[scratch]]\npath = "{stored}"\n[[scratch]]\npath = "{tmp_path / "link"}"'
    with pytest.raises(UserError, match=r"box.toml, line 6: scratch \(number 2\).path: "):
        prepare(rows)
    assert list(stored.iterdir()) == []


def test_a_machine_without_gpus(prepare: Callable[..., PreparedRun]) -> None:
    for declared in (None, "gpus = 0", "gpus = 2"):
        made = prepare(declared, profile="smoke")
        (check,) = [check for check in made.plan.checks if check.id == "gpu.present"]
        count = next(one for one in check.due if one.measurement == "gpu_count")
        assert (check.gate, count.limit is not None) == (True, True)
        wanted = {None: 1.0, "gpus = 0": 0.0, "gpus = 2": 2.0}[declared]
        assert count.limit is not None
        assert count.limit.low == wanted
        assert due(made, "gpu_answers") == []  # only the count tells of what is not there
        first, bus = [*map(words.message, made.alarm), "", ""][:2]
        if wanted == 0.0:
            assert made.alarm == ()
            continue
        short = "2 of 2 GPUs are not on the PCI bus"
        none = "no GPU is on the PCI bus, and at least one is due unless a machine file says gpus"
        assert first.startswith(short if wanted == 2.0 else none)
        assert "the verdict will be FAIL; without a GPU only processor, RAM, disks and" in first
        assert bus.startswith("PCI bus: no NVIDIA device")
    with pytest.raises(PlanError) as refused:
        prepare(profile="smoke", only=("compute",))
    assert "nothing is due: no check of this selection applies" in str(refused.value)
    assert f"; {none} = 0: select gpu.present too (--only gpu.present; make: ONLY=" in str(
        refused.value
    )
    with pytest.raises(PlanError, match="applies to this machine; 2 of 2 GPUs are not on the PCI"):
        prepare("gpus = 2", profile="smoke", only=("compute",))


def test_more_gpus_declared_than_seen(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2)
    text = 'gpus = 3\n[[gpu]]\ncount = 3\npci_id = "10de:2684"\n'
    made = prepare(text)
    # Of the missing one nothing is due but the count, and the others are tested all the same.
    assert due(made, "gpu_answers") == [Gpu(0), Gpu(1)]
    assert due(made, "gpu_pci_id_differs") == [Gpu(0), Gpu(1)]
    assert due(made, "gpu_burn_errors_tensor") == [Gpu(0), Gpu(1)]
    assert (made.plan.gaps, made.plan.gpus, made.notes) == ((), (Gpu(0), Gpu(1)), ())
    first, bus, *_ = map(words.message, made.alarm)
    short = "1 of 3 GPUs is not on the PCI bus (the numbers of the others do not tell which)"
    assert first.startswith(f"{short}, so the verdict will be FAIL; the run stops before any load")
    assert bus.startswith("PCI bus: 2 GPUs")
    untested = [words.text(one) for one in made.plan.not_tested]
    assert f"missing GPUs, but for their presence: {short}" in untested
    # whichever of them is asked for
    for asked in ("0", "2"):
        assert words.message(prepare(text, gpus=(asked,)).alarm[0]).startswith(short)
    with pytest.raises(PlanError, match=r"1 of 3 GPUs is not on the PCI bus .*gpu\.present too"):
        prepare(text, only=("compute",), gpus=("2",))


def test_more_gpus_seen_than_declared(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2)
    for declared in (0, 1):
        first, *_ = map(words.message, prepare(f"gpus = {declared}").alarm)
        told = f"2 GPUs are on the PCI bus, and the machine file declares {declared}, so the"
        assert first.startswith(told)
    assert prepare("gpus = 1", only=("cpu.*",)).alarm == ()


def test_a_layer_that_shares_gpus_out_is_no_sure_fail(
    prepare: Callable[..., PreparedRun], sees: Callable[..., None]
) -> None:
    sees(gpu_machine.device(0))
    assert prepare("gpus = 1").alarm == ()  # the check of presence is an error there


def test_how_far_a_run_goes_that_fails_for_sure(
    prepare: Callable[..., PreparedRun], sees: Callable[..., None], tree: Tree
) -> None:
    tree.gpu(1)
    tree.driver(nodes=("nvidia0", "nvidiactl"))
    sees(gpu_machine.device(0))

    def said(**options: object) -> str:
        return words.message(prepare("gpus = 2", **options).alarm[0]).rpartition("FAIL; ")[2]

    assert said() == (
        "everything else is tested all the same (--fail-fast, with make FAIL_FAST=1, stops the run "
        "instead)"
    )
    assert said(fail_fast=True) == (
        "the run stops at the first check that fails (--fail-fast, with make FAIL_FAST=1)"
    )
    sees()
    assert said().startswith("the run stops before any load, because the GPUs that are there are")


def test_what_is_declared_of_single_cards_is_not_held_against_others(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(2)
    cards = [f'[[gpu]]\naddress = "0000:0{number}:00.0"' for number in (1, 2)]
    text = "\n".join([*cards, "[[gpu_pair]]\nbetween = [0, 1]\np2p = true"])
    rows = """
[[limit]]
measurement = "copy_h2d"
component = "gpu0"
low = 25
unit = "GB/s"
basis = "x16 slot"
[[limit]]
measurement = "p2p_write"
component = "gpu0->gpu1"
low = 1
unit = "GB/s"
basis = "x16 slots"
"""
    for where in ("gpu0", "gpu[01]", "gpu1->*", "gpu?", "*", "disk:*"):
        rows += f'[[waiver]]\nskip = "compute"\ncomponent = "{where}"\nreason = "slow"\n'
    text += rows
    made = prepare(text)
    assert due(made, "gpu_answers") == [Gpu(0)]
    assert words.message(made.alarm[0]).startswith("1 of 2 GPUs is not on the PCI bus (0000:01:00")
    assert due(made, "gpu_address_differs") == due(made, "p2p_supported") == []
    copies = limits(made, "copy_h2d")
    assert [one and one.basis for one in copies] != ["x16 slot"]
    waived = [waiver.component for waiver in made.plan.waivers]
    assert waived == ["gpu[01]", "gpu?", "*", "disk:*"], "what means all of them needs no numbers"
    assert made.plan.gaps == ()
    assert any("of single GPUs and of pairs" in words.text(one) for one in made.plan.not_tested)
    slip = text.replace("copy_h2d", "copy_h2f")  # told all the same, in its own line
    line = slip[: slip.index("copy_h2f")].count("\n") + 3
    with pytest.raises(
        UserError,
        match=f"line {line}: limit .number 1..measurement: a limit for copy_h2f, which no",
    ):
        prepare(slip)
    with pytest.raises(UserError, match="a waiver names the check computer, which"):
        prepare(text.replace("compute", "computer", 1))
    tree.gpu(1)
    whole = prepare(text)
    assert due(whole, "gpu_address_differs") == [Gpu(0), Gpu(1)]
    assert "x16 slot" in [one and one.basis for one in limits(whole, "copy_h2d")]
    assert len(whole.plan.waivers) == 6
    assert whole.alarm == ()


def test_the_missing_card_is_named_by_its_address_or_not_at_all(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    for bus in (1, 3, 4):
        tree.gpu(bus)

    def said(*addresses: int | None) -> str:
        tables = [
            f'[[gpu]]\naddress = "0000:0{bus}:00.0"\n' if bus else "[[gpu]]\n" for bus in addresses
        ]
        return words.message(prepare("\n".join(tables)).alarm[0]).partition(", so the")[0]

    assert said(1, 2, 3, 4) == "1 of 4 GPUs is not on the PCI bus (0000:02:00.0)"
    assert said(1, 2, None, 4) == "1 of 4 GPUs is not on the PCI bus (0000:02:00.0)"
    untold = "GPUs {} not on the PCI bus (the numbers of the others do not tell which)"
    assert said(1, None, 3, 4) == f"1 of 4 {untold.format('is')}"
    assert said(1, 2, 5, 4) == f"1 of 4 {untold.format('is')}", "one of two has moved"
    assert said(1, 2, None, None, None) == f"2 of 5 {untold.format('are')}"


@pytest.mark.parametrize("gone", ["from the bus", "dead"])
def test_links_to_a_missing_gpu_are_not_due(
    prepare: Callable[..., PreparedRun], sees: Callable[..., None], tree: Tree, gone: str
) -> None:
    def bridged(index: int) -> NvmlDevice:
        links = tuple(gpu_machine.link(n, active=n < 1, to=1 - index) for n in range(4))
        return gpu_machine.device(index, links=links)

    tree.gpu(1)
    if gone == "dead":
        tree.gpu(2)
        tree.write("sys/bus/pci/devices/0000:02:00.0/revision", "0xff\n")
    sees(bridged(0))
    text = "[[gpu]]\ncount = 2\nnvlink_links = 4\n"
    for asked in ((), ("0",)):
        made = prepare(text, gpus=asked)
        assert (due(made, "nvlink_active"), made.plan.gaps) == ([], ())
        assert due(made, "nvlink_speed") == [Gpu(0)] * 2, "of the links that are up, twice"
        untested = [words.text(one) for one in made.plan.not_tested]
        assert any("how many NVLinks are up is not compared" in one for one in untested)
    if gone == "dead":
        tree.write("sys/bus/pci/devices/0000:02:00.0/revision", "0xa1\n")
    else:
        tree.gpu(2)
    sees(bridged(0), bridged(1))
    assert due(prepare(text), "nvlink_active") == [Gpu(0), Gpu(1)] * 2


def test_a_dead_card_is_not_tested_and_keeps_any_run_of_gpus_from_passing(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    tree.gpu(2)
    tree.write("sys/bus/pci/devices/0000:02:00.0/revision", "0xff\n")
    made = prepare(profile="smoke")
    assert (due(made, "gpu_answers"), made.plan.gpus) == ([Gpu(0), Gpu(1)], (Gpu(0),))
    assert due(made, "burn_filled") == [Gpu(0)]
    assert made.alarm
    alone = prepare(profile="smoke", only=("together.burn",))
    assert (alone.alarm, [note.trouble for note in alone.notes]) == ((), [True])
    assert prepare(profile="smoke", only=("cpu.*",)).notes == ()
    assert prepare(profile="smoke", gpus=("0",)).alarm == ()


def test_power_limits_are_held_against_the_supply(
    prepare: Callable[..., PreparedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare("gpus = 2")
    assert made.notes == ()
    traits = SimpleNamespace(power_limit_w=450.0)
    card = SimpleNamespace(name=Gpu(0), traits=traits)
    monkeypatch.setattr(planning, "gpus", lambda *_: (card,))
    monkeypatch.setattr(planning.components, "gpu_count", lambda *_: 2)

    def note(watts: int, cpu_watts: int | None, limit_w: float | None) -> str:
        declared = Machine(1, "box", psu=DeclaredPsu(watts), cpu=DeclaredCpu(watts=cpu_watts))
        (one,) = planning.power_notes(declared, "box.toml", made.inventory, limit_w)
        assert not one.trouble
        return words.text(one.text)

    assert note(1000, None, 125.0) == (
        "the power limits of gpu0 (450 W), the processors (125 W) add up to 575 W of the 1000 W "
        "that box.toml declares for the power supply; not known and not in the sum: gpu1; board, "
        "RAM, disks and fans draw power too"
    )
    assert note(500, 270, 125.0).startswith(
        "the power limits of gpu0 (450 W), the processors (270 W) add up to 720 W, more than the "
        "500 W that box.toml declares for the power supply; "
    )
    assert "not in the sum: gpu1, the processors; " in note(1000, None, None)
    traits.power_limit_w = None
    assert note(1000, None, None) == (
        "none of the power limits is known (gpu0, gpu1, the processors), so none is compared with "
        "the 1000 W that box.toml declares for the power supply"
    )


@each(
    "model, module, most",
    [
        ("AMD EPYC 9684X", ("DDR5", 4800, 4800), 38.4),
        # Some firmware has the configured rate in MHz, which is half of it.
        ("AMD EPYC 7742", ("DDR4", 3200, 1600), 25.6),
        ("AMD EPYC 7742", ("DDR4", None, 3200), 25.6),
        (None, ("DDR4", 3200, None), 25.6),
        # One entry for many channels, and memory in the processor that is a cache of the modules.
        ("Grace", ("LPDDR5", 6400, 6400), None),
        ("Intel(R) Xeon(R) CPU Max 9480", ("DDR5", 4800, 4800), None),
        ("AMD EPYC 7742", ("DDR4", None, None), None),
    ],
)
def test_modules_set_a_ceiling_where_all_memory_is_in_them(
    model: str | None,
    module: tuple[str, int | None, int | None],
    most: float | None,
    prepare: Callable[..., PreparedRun],
) -> None:
    seen = prepare("").inventory
    dimm = Dimm("A1", 32 * GIB, *module, None, None, None, 64, 64, None)
    known = replace(
        seen,
        cpu=replace(seen.cpu, model=model, virtualised=False),
        memory=replace(seen.memory, dimms=(dimm,), dimms_unread=None),
    )
    held = planning.book(None, None, known, ()).ceiling("memory_copy", MEMORY)
    if most is None:
        assert held == best("memory_copy")
    else:
        assert held is not None
        assert held.high == pytest.approx(1.25 * most)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """One module, and an empty slot on another channel."""
    observed = planning.observe

    def look(root: Path) -> Inventory:
        seen = observed(root)
        one = Dimm("DIMM_A1", 32 * GIB, "DDR5", 5600, 5200, None, None, None, 64, 64, None)
        memory = replace(seen.memory, dimms=(one,), empty_slots=(EmptySlot("DIMM_B1", None),))
        return replace(seen, memory=memory)

    monkeypatch.setattr(planning, "observe", look)


def test_an_empty_channel_is_a_note_or_where_channels_are_declared_a_limit(
    prepare: Callable[..., PreparedRun], request: pytest.FixtureRequest
) -> None:
    untold = prepare("[memory]\nchannels = 2")
    assert due(untold, "memory_channels") == []
    assert "the declared memory channels are not compared" in "".join(
        words.text(one) for one in untold.plan.not_tested
    )
    request.getfixturevalue("modules")
    (note,) = prepare("").notes
    assert words.text(note.text).startswith("memory channels without a module: DIMM_B: ")
    made = prepare("[memory]\nchannels = 2")
    assert made.notes == ()
    limits = {
        one.measurement: (one.limit.low, one.limit.high)
        for check in made.plan.checks
        for one in check.due
        if one.limit and one.measurement.startswith("memory_channels")
    }
    assert limits == {"memory_channels": (2.0, 2.0), "memory_channels_unequal": (None, 0.0)}
    assert not [one for one in made.plan.not_tested if "memory channels" in words.text(one)]


def test_the_declared_supply_is_a_note_of_the_run(prepare: Callable[..., PreparedRun]) -> None:
    (one,) = prepare("gpus = 0\n[psu]\nwatts = 850\n[cpu]\nwatts = 170").notes
    assert "the processors (170 W) add up to 170 W of the 850 W" in words.text(one.text)


IDLE = '[[waiver]]\n{}\nreason = "r"\n'


def test_a_waiver_that_can_match_nothing_here_is_a_note(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    def told(what: str, **options: object) -> list[str]:
        notes = prepare(IDLE.format(what), **options).notes
        assert not any(note.trouble for note in notes)
        return [words.text(note.text) for note in notes]

    tree.gpu(1)
    of_gpu7 = 'measurement = "copy_h2d"\nworst = 10\ncomponent = "gpu7"'
    assert told(of_gpu7) == [
        "box.toml: the waiver of copy_h2d on gpu7 matches nothing on this machine: correct or "
        "remove it"
    ]
    assert told(of_gpu7, only=("gpu.*",)), "whatever is tested"
    assert told(of_gpu7, gpus=("0",)) == [], "another GPU may be there"
    assert told('skip = "inventory.dimms"') == [
        "box.toml: the waiver of inventory.dimms matches nothing on this machine: correct or "
        "remove it"
    ]
    assert told('skip = "cpu.gemm"\ncomponent = "cpu*"') == []
    assert told(of_gpu7.replace("gpu7", "gpu*")) == []
    assert prepare("gpus = 8\n" + IDLE.format(of_gpu7)).notes == (), "it is missing"


def test_ecc_that_is_off_is_a_gap(
    prepare: Callable[..., PreparedRun], tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.gpu(1)
    monkeypatch.setattr(
        gpu_limits, "gaps", lambda _, names, _models: [f"{name}: ECC is off" for name in names]
    )
    assert prepare(profile="smoke").plan.gaps == ("gpu0: ECC is off",)


def test_some_of_the_gpus(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    for bus in (1, 2, 3):
        tree.gpu(bus)
    made = prepare(gpus=("2", "gpu0"))
    assert (made.plan.gpus, made.plan.scope, made.plan.gaps) == ((Gpu(0), Gpu(2)), "partial", ())
    for measurement in ("gpu_answers", "gpu_burn_errors_tensor", "copy_h2d"):
        assert due(made, measurement) == [Gpu(0), Gpu(2)]
    assert due(made, "p2p_gain") == [Pair(Gpu(0), Gpu(2)), Pair(Gpu(2), Gpu(0))]
    assert prepare(gpus=("0", "1", "2")).plan.scope == "partial", (
        "whoever names GPUs asks for a part"
    )
    with pytest.raises(
        UserError, match="--gpus 3: there is no gpu3: this machine has gpu0 to gpu2"
    ):
        prepare(gpus=("3",))
    declared = prepare("gpu = [{count = 4}]", gpus=("3",))
    assert (declared.plan.gpus, due(declared, "gpu_answers")) == ((), [])
    assert declared.alarm


def test_a_slurm_job_tests_the_gpus_that_it_was_given(
    prepare: Callable[..., PreparedRun],
    sees: Callable[..., None],
    tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bus in (1, 2):
        tree.gpu(bus)
    cards = [gpu_machine.device(index) for index in range(2)]
    sees(*cards)
    for name in ("CUDA_VISIBLE_DEVICES", "RIGPROOF_EXCLUSIVE_JOB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    whole = prepare()
    assert (whole.plan.scope, whole.plan.gpus) == ("full", (Gpu(0), Gpu(1)))
    assert not any(check.id.startswith("power.") for check in whole.plan.checks)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", str(cards[1].uuid))
    part = prepare()
    assert (part.plan.scope, part.plan.gpus) == ("partial", (Gpu(1),))
    assert part.options.gpus == ("gpu1",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "4")
    shared = prepare()
    assert (shared.plan.scope, shared.plan.gpus) == ("partial", (Gpu(0), Gpu(1)))
    assert "is not known to have this node to itself" in words.text(shared.notes[-1].text)
    assert prepare(gpus=("0",)).plan.gpus == (Gpu(0),), "what was asked for goes first"


def test_the_limits_of_the_gpus_are_in_the_plan(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    made = prepare(profile="smoke")
    (link,) = [
        one
        for check in made.plan.checks
        for one in check.due
        if one.measurement == "gpu_link_width"
    ]
    assert link.limit is not None
    assert (link.limit.low, words.text(link.origin)) == (16, "derived from card and slot")
    own = prepare(
        'gpu = [{}]\n[[limit]]\nmeasurement = "gpu_link_width"\nunit = "count"\nlow = '
        '8\nbasis = "riser"\n'
    )
    (link,) = [
        one for check in own.plan.checks for one in check.due if one.measurement == "gpu_link_width"
    ]
    assert link.limit is not None
    assert link.limit.low == 8, "the machine file's own goes first"


def test_what_the_machine_file_declares_is_due(prepare: Callable[..., PreparedRun]) -> None:
    made = prepare(
        '[cpu]\ncores = 4\n[memory]\ntotal_gib = 64\n[[memory.dimm]]\nslot = "A1"\nrated_mts '
        "= 5600\n"
    )
    assert due(made, "cpu_cores") == [CPU]
    assert due(made, "memory_total") == [MEMORY]
    assert due(made, "dimm_rated_speed") == [Part("dimm", "A1")]
    assert made.plan.inventory_declared
    (limit,) = [
        one.limit
        for check in made.plan.checks
        for one in check.due
        if one.measurement == "cpu_cores"
    ]
    assert limit is not None
    assert "box.toml declares cpu.cores = 4" in words.text(limit.basis)


def test_cpuburn_is_driven_when_it_is_asked_for(prepare: Callable[..., PreparedRun]) -> None:
    assert "cpu.cpuburn" not in [check.id for check in prepare("").plan.checks]
    made = prepare('[cpu]\ncpuburn = "burnP6"\n')
    assert due(made, "cpuburn_failures") == [CPU]


def test_what_is_not_offered_is_not_tested(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    made = prepare("")
    *offers, memory = map(words.text, made.plan.not_tested)
    assert [line.split(":")[0] for line in offers] == [
        "processor temperature",
        "processor throttling",
        "disk health",
        "network cards",
        "errors that the kernel counts by EDAC",
        "the speed of the disks, and what they give back",
    ]
    assert re.fullmatch(
        r"RAM beyond the 51\.2 GiB that the memory test fills: 80% of the 64\.0 GiB that are free, "
        r"of 64\.0 GiB",
        worded(memory),
    )
    assert due(made, "cpu_temperature") == []
    tree.files("sys/class/hwmon/hwmon0", name="k10temp", temp1_input=40_000)
    made = prepare("")
    assert due(made, "cpu_temperature") == [CPU]
    assert len(made.plan.not_tested) == len(offers)


@pytest.fixture
def data(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is a filesystem of its own, with room, on an NVMe disk of generation 4 x4."""
    port = "pci0000:00/0000:00:01.0"
    function = f"{port}/0000:04:00.0"
    controller = tree.disk("nvme0n1", f"{function}/nvme/nvme0", sectors=3_907_029_168)
    tree.files(controller, model="Samsung SSD 990 PRO 2TB", serial="S1", firmware_rev="1")
    tree.link(f"{controller}/device", f"sys/devices/{function}")
    full: dict[str, Any] = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": 4}
    tree.files(f"sys/devices/{function}", **full)
    tree.files(f"sys/devices/{port}", **full)
    tree.link("sys/dev/block/259:0", f"{controller}/block/nvme0n1")
    folder = tmp_path / "data"
    folder.mkdir()
    lines = (
        "27 1 8:0 / / rw - ext4 /dev/sda rw",
        f"28 27 259:0 / {folder} rw - ext4 /dev/nvme0n1 rw",
    )
    tree.write("proc/self/mountinfo", "\n".join(lines) + "\n")
    room = SimpleNamespace(f_bavail=500, f_blocks=1000, f_frsize=GIB, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    return folder


def of_disk(prepared: PreparedRun, measurement: str) -> Due:
    """What is due of the disk by this measurement, once."""
    (found,) = [
        one
        for check in prepared.plan.checks
        for one in check.due
        if (one.measurement, one.component) == (measurement, parts.part("disk", "nvme0n1"))
    ]
    return found


def best(measurement: str) -> Limit | None:
    """What its family says a value can be at best."""
    return measurements.shipped().by_name[measurement].plausible


def test_a_described_disk_has_floors_and_ceilings(
    prepare: Callable[..., PreparedRun], data: Path
) -> None:
    made = prepare(f'[[scratch]]\npath = "{data}"\n', profile="accept")
    (place,) = made.scratches
    assert (str(place.component), place.write_bytes, place.kept_bytes) == (
        "disk:nvme0n1",
        8 * GIB,
        GIB,
    )
    read, requests = (of_disk(made, f"storage_{one}") for one in ("read", "read_random"))
    link = 16 * 4 * 128 / 130 / 8
    assert read.limit is not None
    assert requests.limit is not None
    assert read.ceiling is not None
    assert requests.ceiling is not None
    # 0.7 x the lesser of 7.45 GB/s and the link; 0.5 x what four jobs request.
    assert read.limit.low == pytest.approx(0.7 * 7.45)
    assert requests.limit.low == 500_000
    assert "Samsung 990 PRO of 2000 GB" in words.text(read.limit.basis)
    assert read.ceiling.high == pytest.approx(link)
    assert requests.ceiling.high == pytest.approx(link * 1e9 / 4096)
    write = of_disk(made, "storage_write")
    assert (write.limit, write.ceiling) == (None, read.ceiling)
    assert write.unlimited is not None
    assert of_disk(made, "storage_write_random").ceiling == requests.ceiling


def test_in_a_virtual_machine_a_link_sets_no_ceiling(
    prepare: Callable[..., PreparedRun], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = planning.observe

    def look(root: Path) -> Inventory:
        seen = observed(root)
        return replace(seen, cpu=replace(seen.cpu, virtualised=True))

    monkeypatch.setattr(planning, "observe", look)
    made = prepare(f'[[scratch]]\npath = "{data}"\n', profile="accept")
    for name in ("storage_read", "storage_read_random"):
        found = of_disk(made, name)
        assert found.limit is not None
        assert found.ceiling == best(name)


def test_a_disk_whose_link_is_not_shown_has_no_limits_and_says_why(
    prepare: Callable[..., PreparedRun], data: Path, tree: Tree
) -> None:
    (tree.root / "sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0/max_link_width").unlink()
    (tree.root / "sys/devices/pci0000:00/0000:00:01.0/max_link_width").unlink()
    made = prepare(f'[[scratch]]\npath = "{data}"\n', profile="accept")
    read = of_disk(made, "storage_read")
    assert (read.limit, read.ceiling) == (None, best("storage_read"))
    assert read.unlimited is not None
    assert "nvme0n1" in words.text(read.unlimited)


def test_a_machine_file_has_the_last_word_on_a_disk(
    prepare: Callable[..., PreparedRun], data: Path
) -> None:
    limit = '[[limit]]\nmeasurement = "storage_read"\nlow = 6.5\nunit = "GB/s"\nbasis = "bought"\n'
    made = prepare(f'[[scratch]]\npath = "{data}"\n{limit}', profile="accept")
    found = of_disk(made, "storage_read").limit
    assert found is not None
    assert found.low == 6.5


def test_a_night_owes_reads_of_the_kept_file_alone(
    prepare: Callable[..., PreparedRun], data: Path
) -> None:
    declared = f'[[scratch]]\npath = "{data}"\n'
    made = prepare(declared, profile="nightly")
    assert not [check.id for check in made.plan.checks if check.id in scratch.CHECKS]
    (data / ".rigproof").mkdir(0o700)
    (data / ".rigproof/kept").mkdir(0o700)
    (data / ".rigproof/kept/sealed").write_bytes(b"s" * 4096)
    made = prepare(declared, profile="nightly")
    found = [check.id for check in made.plan.checks if check.id in scratch.CHECKS]
    assert found == ["storage.kept", "storage.read"]
    assert of_disk(made, "storage_read").limit is not None


def with_memory(*, total_gib: int, free_gib: int) -> Inventory:
    seen = gpu_machine.machine()
    memory = replace(seen.memory, total_bytes=total_gib * GIB, available_bytes=free_gib * GIB)
    return replace(seen, memory=memory)


@each(
    "total_gib, free_gib, profile, said",
    [
        # what 0.8 of the free RAM is, all profiles but the short ones fill
        (128, 100, "accept", "80.0 GiB that the memory test fills: 80% of the 100.0 GiB"),
        # a profile that ends before all of it is filled says who fills it, at 0.3 s a GiB
        (2048, 2000, "accept", "fills 1600.0 GiB, and filling takes about 8 min"),
        (2048, 2000, "smoke", "4.0 GiB that the memory test fills: 0% of the 2000.0 GiB"),
        (2048, 2000, "soak", "1600.0 GiB that the memory test fills: 80% of the 2000.0 GiB"),
        (2048, 2000, "train", None),  # it has no memory test
        (128, 0, "accept", "0.0 GiB that the memory test fills: 0% of the 0.0 GiB"),
    ],
)
def test_the_ram_that_is_not_tested(
    total_gib: int, free_gib: int, profile: str, said: str | None
) -> None:
    chosen = run_profile.choose(run_profile.read(resources.locate("profiles.toml")), profile)
    seen = with_memory(total_gib=total_gib, free_gib=free_gib)
    filled = planning.memory_gib(None, chosen, seen)
    told = worded(planning.memory_untested(filled, None, chosen, seen, 0.3))
    if said is None:
        assert told == []
    else:
        (line,) = told
        assert said in line


def test_accept_fills_what_it_has_time_for_and_soak_the_whole_share() -> None:
    profiles, seen = (
        run_profile.read(resources.locate("profiles.toml")),
        with_memory(total_gib=2048, free_gib=2000),
    )
    filled = {
        name: planning.memory_gib(None, profiles[name], seen)
        for name in ("smoke", "nightly", "accept", "soak")
    }
    assert filled["smoke"] < filled["nightly"] < filled["accept"] < 0.1 * filled["soak"]
    assert filled["soak"] == planning.TEST_SHARE * 2000


@pytest.mark.parametrize(
    ("free_gib", "profile", "gap"),
    [(20, "accept", True), (20, "smoke", False), (400, "accept", False)],
)
def test_memory_that_is_taken_is_a_gap(free_gib: int, profile: str, gap: bool) -> None:
    chosen = run_profile.choose(run_profile.read(resources.locate("profiles.toml")), profile)
    seen = with_memory(total_gib=512, free_gib=free_gib)
    filled = planning.memory_gib(None, chosen, seen)
    told = planning.memory_gap(filled, None, chosen, seen)
    assert worded(told) == (
        [
            (
                "memory: only 16.0 of 512.0 GiB can be filled: end what holds the rest (`free "
                "-h`), or hugepages"
            )
        ]
        if gap
        else []
    )


def test_the_burn_is_stretched(prepare: Callable[..., PreparedRun]) -> None:
    short, long = prepare(profile="smoke"), prepare(profile="smoke", burn_s=600.0)
    assert long.plan.loads_s == {**short.plan.loads_s, "burn": 600.0}
    assert eta_s(long.plan) == pytest.approx(eta_s(short.plan) - short.plan.loads_s["burn"] + 600.0)


@pytest.fixture
def one_gpu(tree: Tree) -> None:
    tree.gpu(1)


SHARE = "[memory]\ntest_share = {}\n"


@each(
    "profile, declared, burn_s, what",
    [
        ("smoke", "", None, []),
        ("smoke", "", 12.0, []),
        ("smoke", "", 600.0, []),
        ("smoke", "", 11.0, ["burn"]),
        ("accept", "", 89.0, ["burn"]),
        ("nightly", "", 44.0, ["burn"]),
        ("train", "", 1.0, []),  # it has no burn, so none is shorter
        ("soak", "", 14399.0, ["burn"]),
        ("smoke", SHARE.format(0.05), None, []),  # 3.2 of 4 GiB
        ("smoke", SHARE.format(0.03), None, ["memory"]),
        ("accept", SHARE.format(0.4), None, []),  # half of the share that is the default
        ("accept", SHARE.format(0.39), None, ["memory"]),
        ("accept", SHARE.format(0.95), None, []),
        ("train", SHARE.format(0.05), None, []),  # it does not test the RAM
        ("accept", SHARE.format(0.1), 89.0, ["burn", "memory"]),
        ("smoke", SHARE.format(0.03), 7.0, ["burn", "memory", "stress_ng", "stressapptest"]),
    ],
)
def test_a_run_of_less_than_its_profile_is_partial(
    prepare: Callable[..., PreparedRun],
    one_gpu: None,
    profile: str,
    declared: str,
    burn_s: float | None,
    what: list[str],
) -> None:
    plan = prepare(declared, profile=profile, burn_s=burn_s).plan
    assert [one.load for one in plan.shortened] == what
    assert (plan.scope, plan.is_whole) == ("partial" if what else "full", True)


@each(
    "profile, burn_s, said", [("train", 60.0, True), ("train", None, False), ("smoke", 60.0, False)]
)
def test_a_burn_of_a_profile_without_one_is_noted(
    prepare: Callable[..., PreparedRun],
    one_gpu: None,
    profile: str,
    burn_s: float | None,
    said: bool,
) -> None:
    notes = [note.text for note in prepare(profile=profile, burn_s=burn_s).notes]
    codes = [one.code for one in notes if isinstance(one, Message)]
    assert ("profile_without_burn" in codes) is said


def test_a_shortened_run_keeps_its_gaps(prepare: Callable[..., PreparedRun]) -> None:
    declared = """
[[limit]]
measurement = "memory_random"
component = "socket9"
unit = "GB/s"
low = 70.0
basis = "a socket that is not there"
"""
    whole = prepare(declared, profile="smoke").plan
    assert whole.gaps
    short = prepare(declared, profile="smoke", burn_s=1.0).plan
    assert (short.scope, short.gaps) == ("partial", whole.gaps)


@each(
    "write_gib, what",
    [(None, []), (4, []), (200, []), (3, ["disk:sdb"])],
)
def test_a_soak_that_may_write_less_than_an_acceptance_is_shortened(
    prepare: Callable[..., PreparedRun], stored: Path, write_gib: int | None, what: list[str]
) -> None:
    more = "" if write_gib is None else f"\nwrite_gib = {write_gib}"
    made = prepare(f'[[scratch]]\npath = "{stored}"{more}', profile="soak")
    assert [one.load for one in made.plan.shortened] == what


@each(
    "threads, share, free_gib, refused",
    [
        (16, 0.01, 64, True),  # 41 MiB a thread
        (16, 0.016, 64, False),  # 66 MiB
        (16, 0.01, 1, False),  # by default 51 MiB a thread: the machine has no more
        (16, 0.8, 1, False),
        (None, 0.01, 64, False),
    ],
)
def test_a_share_that_leaves_too_little_for_each_thread_is_refused(
    threads: int | None, share: float, free_gib: int, refused: bool
) -> None:
    seen = with_memory(total_gib=64, free_gib=free_gib)
    seen = replace(seen, cpu=replace(seen.cpu, threads=threads))
    declared = Machine(1, "box", memory=DeclaredMemory(test_share=share))
    assert (planning.share_problem(declared, seen) is not None) is refused


def test_the_refusal_of_a_share_names_its_line(prepare: Callable[..., PreparedRun]) -> None:
    with pytest.raises(UserError, match=r"line \d+: memory.test_share: 0.0001 leaves"):
        prepare("[memory]\ntest_share = 0.0001\n")


def test_a_part_of_it(prepare: Callable[..., PreparedRun]) -> None:
    made = prepare(only=("cpu.gemm",))
    assert (made.plan.scope, {check.id for check in made.plan.checks}) == (
        "partial",
        {"cpu.gemm[f64]", "cpu.gemm[f32]"},
    )
    with pytest.raises(PlanError, match="--only nothing matches no check"):
        prepare(only=("nothing",))


POWER = ("power.ladder", "power.step", "power.pulses")


def test_what_heats_comes_last_and_has_its_slack(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    plan = prepare(profile="soak").plan
    gpu_loads, loads = plan.share("gpu-load"), plan.share("load")
    burns = [f"burn.gpu_burn[{mode}]" for mode in ("float", "tensor", "double")]
    cool_first = ["gpu.granted", "compute.gemm_together", "vram.patterns"]
    assert [check.id for check in gpu_loads] == [*cool_first, *burns]
    assert gpu_loads[0].gate
    assert [check.slack_s for check in gpu_loads[-3:]] == [150.0] * 3
    assert [check.id for check in loads][-4:] == ["together.burn", *POWER]
    assert loads[-4].slack_s == 600.0


def test_what_loads_only_the_host_runs_beside_what_loads_only_gpus(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    plan = prepare().plan
    beside = plan.share("host-load")
    assert [check.id for check in beside] == ["cpu.stress_ng", "memory.stressapptest"]
    sides_s = [sum(one.seconds for one in side) for side in (beside, plan.share("gpu-load"))]
    whole_s = plan.overhead_s + sum(check.seconds for check in plan.checks)
    assert eta_s(plan) == pytest.approx(whole_s - min(sides_s))


OFF = "[power]\npulses = false"


@each(
    "options, declared, job, due, said",
    [
        ({}, "", None, POWER[1:], None),
        ({"profile": "soak"}, "", None, POWER, None),
        ({"only": ("power",)}, "", None, POWER, None),
        ({"only": ("power", "gpu")}, "", "SLURM_JOB_ID", POWER, None),
        ({"only": ("power*",)}, "", "SLURM_JOB_ID", POWER, None),
        ({"only": ("power.[ps]*",)}, "", None, POWER, None),
        ({"only": ("power*",)}, OFF, None, (), "power_pulses_declared_off"),
        ({"only": ("*",)}, "", "FLUX_JOB_ID", (), "power_pulses_in_job"),
        ({"profile": "smoke"}, "", None, (), None),
        ({"profile": "nightly"}, OFF, "SLURM_JOB_ID", (), None),
        ({}, OFF, None, (), "power_pulses_declared_off"),
        ({"profile": "soak"}, "", "SLURM_JOB_ID", (), "power_pulses_in_job"),
    ],
)
def test_power_steps_are_due_by_profile_machine_file_and_job(
    options: dict[str, Any], declared: str, job: str | None, due: tuple[str, ...], said: str | None
) -> None:
    asked = Options(profile=options.get("profile", "accept"), only=options.get("only", ()))
    machine = msgspec.toml.decode(f'schema = 1\nname = "box"\n{declared}', type=Machine)
    environment = {job: "7"} if job else {}
    seconds, told = planning.power_steps(machine, asked, [Gpu(0), Gpu(1)], environment)
    assert tuple(seconds) == tuple(name.replace(".", "_") for name in due)
    assert [one.code for one in told] == ([said] if said else [])
    assert planning.power_steps(machine, asked, [], environment) == ({}, [])
    if asked.profile == "accept" and not asked.only and due:
        assert sum(seconds.values()) <= 40.0


def test_power_steps_that_were_asked_for_and_are_declared_off_say_so(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    with pytest.raises(PlanError, match="pulses = false in the machine file leaves the power"):
        prepare(OFF, only=("power",))


@pytest.mark.parametrize("name", ["smoke", "accept", "nightly", "train", "soak"])
def test_a_plain_vm_in_every_profile(
    prepare: Callable[..., PreparedRun], tree: Tree, name: str
) -> None:
    made = planning.prepare(Options(machine_file=CPU_ONLY, profile=name, root=tree.root))
    assert made.plan.gaps == ()
    sessions = {check.session for check in made.plan.checks}
    # without a GPU nothing of the profile train is due but the facts around its loads
    loads = {"host-load", "load"} if name != "train" else set()
    assert sessions == {"host-before", "host-after"} | loads
    untold = Message("no_training_without_gpu") in made.plan.not_tested
    assert untold == (name == "train")
    assert made.plan.cannot_detect
    assert made.machine is not None
    assert made.plan.waivers == made.machine.waiver


def test_mistakes_are_told_before_anything_is_looked_at(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.write("proc/meminfo", "")  # looking would raise
    with pytest.raises(UserError, match=r"box\.toml"):
        prepare("gpus = -1")
    with pytest.raises(UserError, match="there is no profile 'quick'"):
        prepare(profile="quick")


# --- how much RAM is filled ---

UNCAPPED = Profile("x", (), {})


@pytest.mark.parametrize(
    ("share", "cap", "expected"),
    [
        (None, None, 0.8 * (64 - 1 / 1024)),
        (0.5, None, 0.5 * (64 - 1 / 1024)),
        (None, 4.0, 4.0),
        (0.05, 4.0, 0.05 * (64 - 1 / 1024)),
    ],
)
def test_memory_to_fill(
    prepare: Callable[..., PreparedRun], share: float | None, cap: float | None, expected: float
) -> None:
    seen = prepare("").inventory
    declared = Machine(1, "box", memory=DeclaredMemory(test_share=share))
    chosen = Profile("x", (), {}, cap)
    assert planning.memory_gib(declared, chosen, seen) == pytest.approx(expected)
    if share is None:
        assert planning.memory_gib(None, chosen, seen) == pytest.approx(expected)


@each(
    "free_gib, count, expected",
    [
        (None, 8, 20.0),  # the kernel does not say
        (100.0, 8, 20.0),
        (24.0, 2, 16.0),
        (24.0, 0, 20.0),
        (20.0, 8, 5.0),  # at least a quarter
    ],
)
def test_memory_to_fill_beside_the_gpus(
    free_gib: float | None, count: int, expected: float
) -> None:
    free = None if free_gib is None else int(free_gib * GIB)
    assert Memory(None, free, None, None, None, None).beside_gpus(20.0, count) == expected


def test_memory_to_fill_where_the_kernel_does_not_say_what_is_free(
    prepare: Callable[..., PreparedRun],
) -> None:
    seen = prepare("").inventory
    unsaid = replace(seen, memory=replace(seen.memory, available_bytes=None))
    assert planning.memory_gib(None, UNCAPPED, unsaid) == pytest.approx(0.8 * 32)
    none = replace(seen, memory=replace(seen.memory, available_bytes=0))
    assert planning.memory_gib(None, UNCAPPED, none) == 0.0


# --- limits ---


def test_bandwidth_is_judged_where_the_rate_is_known(prepare: Callable[..., PreparedRun]) -> None:
    module = Dimm("A1", 32 * GIB, "DDR5", 5600, 5200, None, None, None, 64, 64, None)
    seen = prepare("").inventory
    known = replace(seen, memory=replace(seen.memory, dimms=(module,), dimms_unread=None))

    def floor(made: Machine, inventory: object) -> float | None:
        book: LimitBook = planning.book(made, "box.toml", inventory, ())  # type: ignore[arg-type]
        held = book.find("memory_copy", MEMORY)
        return held.limit.low if held and held.limit else None

    two = Machine(1, "box", memory=DeclaredMemory(channels=2))
    assert floor(two, seen) is None
    assert floor(two, known) == pytest.approx(0.5 * 5200 * 8 * 2 / 1000)
    assert floor(Machine(1, "box"), known) is None
    # What the machine file says goes before what was found; a module named without its rate says
    # nothing.
    named = DeclaredMemory(
        channels=2, dimm=(DeclaredDimm("A1", rated_mts=4800), DeclaredDimm("B1"))
    )
    assert floor(Machine(1, "box", memory=named), known) == pytest.approx(0.5 * 4800 * 8 * 2 / 1000)
    unsaid = DeclaredMemory(channels=2, dimm=(DeclaredDimm("A1"),))
    assert floor(Machine(1, "box", memory=unsaid), known) == pytest.approx(
        0.5 * 5200 * 8 * 2 / 1000
    )


def test_the_machine_files_own_limit_goes_first(prepare: Callable[..., PreparedRun]) -> None:
    text = (
        '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "GFLOP/s"\nlow = 300\nbasis = "its twin"\n'
    )
    made = prepare(text)
    (found,) = [
        one for check in made.plan.checks for one in check.due if one.measurement == "cpu_gemm_f64"
    ]
    assert words.text(found.origin) == "override in box.toml"
    assert found.limit is not None
    assert found.limit.basis == "its twin"
    (default,) = [
        one
        for check in prepare().plan.checks
        for one in check.due
        if one.measurement == "cpu_gemm_f64"
    ]
    assert (default.limit, default.origin) == (None, CLASS_DEFAULT)


# --- collection that fails ---


@pytest.fixture
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No list of checks is there from an earlier start."""
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))


collects = pytest.mark.usefixtures("nothing_kept")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def assert_full(temporary: object, why: str) -> None:
    with pytest.raises(SetupError) as caught:
        planning.collect(Path("/"))
    assert str(caught.value) == (
        f"no temporary file can be written in {temporary} ({why}): "
        "free some space, or set TMPDIR to a folder that has some"
    )


@collects
def test_a_full_temporary_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "context.json")

    monkeypatch.setattr(context, "write", full)
    assert_full(temporary, "No space left on device")


@collects
def test_a_temporary_folder_that_fills_up(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session fails over it in words of pytest's own."""
    monkeypatch.setattr(context, "argv", lambda _: [*PYTHON, "raise SystemExit('INTERNALERROR>')"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (planning.ROOM - 1, hard))
    try:
        assert_full(temporary, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@collects
def test_no_temporary_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    assert_full("any folder", "No usable temporary directory found in ['/nowhere']")


@collects
def test_checks_that_cannot_be_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, told in (
        (
            "raise SystemExit('no module named x')",
            r"could not be collected \(ended with exit code 1 .*\): no module named x",
        ),
        ("pass", r"could not be collected \(ended with exit code 0 .*\): install it again"),
    ):
        monkeypatch.setattr(context, "argv", lambda _, code=code: [*PYTHON, code])
        with pytest.raises(SetupError, match=told):
            planning.collect(Path("/"))


@collects
def test_collecting_does_not_outlive_what_it_was_begun_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", run_id)
    monkeypatch.setattr(context, "argv", lambda _: ["sleep", "600"])

    def beside() -> None:
        with planning.start_collection(Path("/")):
            until(lambda: orphans.find(run_id), "the collection has its environment")
            raise SysfsError("no CPU is shown")

    with pytest.raises(SysfsError):
        beside()
    assert not orphans.find(run_id)


@collects
@pytest.mark.parametrize("answer", ["{}", '{"digest": "x", "checks": [{"id": 1}]}', "\xff"])
def test_an_answer_that_is_none(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    program = f"open('answer.json', 'wb').write({answer.encode('latin-1')!r})"
    monkeypatch.setattr(context, "argv", lambda _: [*PYTHON, program])
    with pytest.raises(SetupError, match="checks are not marked as they should be"):
        planning.collect(Path("/"))


OF_CORE = (
    '[[limit]]\nmeasurement = "cpu_gemm_core_f64"\ncomponent = "{}"\nunit = "GFLOP/s"\nlow = 1\n'
    'basis = "b"\n'
)


@pytest.mark.parametrize(
    "declared",
    [
        OF_CORE.format("core:3"),
        OF_CORE.format("core:9") + "[cpu]\ncores = 5\n",  # it may be the one that is gone
        '[[waiver]]\nskip = "cpu.gemm"\ncomponent = "core:*"\nreason = "r"\n',
        '[[waiver]]\nskip = "cpu.gemm"\ncomponent = "*->*->*"\nreason = "r"\n',
    ],
)
def test_a_core_that_is_there_or_should_be_may_be_named(
    prepare: Callable[..., PreparedRun], declared: str
) -> None:
    assert prepare(declared).plan.checks


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            '[[waiver]]\nskip = "gpu"\nreason = "r"\n[[waiver]]\nreason = "r"\nskip = "cpo"\n',
            r"8: waiver \(number 2\)\.skip: a waiver names the check cpo",
        ),
        (
            '[[waiver]]\nmeasurement = "heat"\ncomponent = "cpu"\nworst = 1\nreason = "r"\n',
            r"4: waiver \(number 1\)\.measurement: a waiver names heat",
        ),
        (
            (
                '[[waiver]]\nmeasurement = "stress_ng_failures"\ncomponent = "cpu"\nworst = '
                '1\nreason = "r"\n'
            ),
            r"4: .*\.measurement: stress_ng_failures cannot be waived",
        ),
        (
            '[[limit]]\nmeasurement = "heat"\nunit = "degC"\nhigh = 1\nbasis = "b"\n',
            r"4: limit \(number 1\)\.measurement: a limit for heat, which no check measures",
        ),
        (
            '[[limit]]\nmeasurement = "memory_copy"\nunit = "GiB"\nlow = 1\nbasis = "b"\n',
            r"5: limit \(number 1\)\.unit: the limit for memory_copy is in GiB",
        ),
        (
            (
                '[[limit]]\nmeasurement = "stress_ng_failures"\nunit = "count"\nhigh = 9\nbasis '
                '= "b"\n'
            ),
            r"4: .*\.measurement: stress_ng_failures takes no limit of the machine's own",
        ),
        (
            OF_CORE.format("core:99"),
            r"5: limit \(number 1\)\.component: there is no core:99: this machine has core:0 to "
            "core:3, each named by its first CPU: correct it",
        ),
        (OF_CORE.format("core:7"), "5: .*no core:7: CPU 7 is a thread of core:3: name that"),
        (
            '[[waiver]]\nskip = "cpu.gemm"\ncomponent = "core:9"\nreason = "r"\n[cpu]\ncores = 4\n',
            r"5: waiver \(number 1\)\.component: there is no core:9",
        ),
    ],
)
def test_what_does_not_fit_the_checks_is_told_with_its_line(
    prepare: Callable[..., PreparedRun], declared: str, told: str
) -> None:
    with pytest.raises(UserError, match=rf"box\.toml, line {told}"):
        prepare(declared)


def test_checks_of_a_sites_own_are_planned_with_their_limits(
    prepare: Callable[..., PreparedRun], tmp_path: Path
) -> None:
    box = SiteBox(tmp_path / "site")
    box.check("mount")
    box.check("card")
    family = box.folder / "card.toml"
    family.write_text(family.read_text().replace('"machine"', '"gpu"'))
    made = prepare("gpus = 0\n", checks=box.folder)
    (check,) = made.plan.share("site")
    assert (check.id, made.plan.checks[-1]) == ("site.mount.fast", check)
    assert [words.text(due.origin) for due in check.due] == ["limit of the site's own"]
    assert made.plan.site is not None
    assert made.plan.scope == "full"
    notes = [words.text(note.text) for note in made.notes]
    assert f"1 check of the site's own is part of this run: {box.folder.resolve()}" in notes
    assert any("site.card.fast" in words.text(one) for one in made.plan.not_tested)
    row = '[[limit]]\nmeasurement = "site_mount"\nunit = "s"\nhigh = 0.1\nbasis = "fast"\n'
    own = prepare(f"gpus = 0\n{row}", checks=box.folder)
    (due,) = own.plan.share("site")[0].due
    assert due.limit is not None
    assert due.limit.high == 0.1
    with pytest.raises(UserError, match="give the folder of its checks with --checks"):
        prepare(f"gpus = 0\n{row}")
    only = prepare("gpus = 0\n", checks=box.folder, only=("site",))
    assert [one.id for one in only.plan.checks] == ["site.mount.fast"]
    family.write_text(family.read_text().replace('"gpu"', '"rack"'))
    with pytest.raises(UserError, match="'rack', which is no class of components"):
        prepare("gpus = 0\n", checks=box.folder)


def test_gpu_models_are_declared_by_the_names_that_people_use(
    prepare: Callable[..., PreparedRun], tree: Tree, sees: Callable[..., None]
) -> None:
    def said(model: str) -> list[str]:
        notes = prepare(f'[[gpu]]\nmodel = "{model}"\ncount = 2').notes
        return [
            note.text.code
            for note in notes
            if isinstance(note.text, Message) and note.text.code.startswith("gpu_model_")
        ]

    tree.gpu(1)
    tree.gpu(2)
    sees(*(gpu_machine.device(one, pci_address=f"0000:0{one + 1}:00.0") for one in range(2)))
    assert said("NVIDIA GeForce RTX 4090") == []
    assert said("GeForce RTX 4090") == [], "as older drivers name the card that is here"
    assert said("4090") == said("RTX4090") == ["gpu_model_read"]
    assert said("4090 Laptop") == ["gpu_model_like"], "once, of two cards"
    with pytest.raises(UserError, match=r"box.toml, line 4: gpu \(number 1\).model: 'H100'"):
        said("H100")
    prepared = prepare("[[gpu]]\ncount = 2")
    assert not [note for note in prepared.notes if "gpu_model" in str(note.text)]


def test_a_draft_is_read_back_without_a_word(
    prepare: Callable[..., PreparedRun], tree: Tree, sees: Callable[..., None], tmp_path: Path
) -> None:
    """And each fact that it declares is one that the machine has: of a card of no sheet too."""
    for bus in (1, 2):
        tree.gpu(bus)
    cards = ("NVIDIA GeForce RTX 4090", "NVIDIA H100"), ("NVIDIA Z9", "RTX Whatever 6000")
    for names in cards:
        sees(
            *(
                gpu_machine.device(one, pci_address=f"0000:0{one + 1}:00.0", name=name)
                for one, name in enumerate(names)
            )
        )
        alone = prepare()
        file = tmp_path / "drafted.toml"
        file.unlink(missing_ok=True)
        draft.write(alone.inventory, file)
        text = file.read_text().partition("\n\n")[2]
        made = prepare(f"gpus = 2\n{text}")
        assert {note.text for note in made.notes} <= {note.text for note in alone.notes}
        assert made.machine is not None
        due_gpus = gpus(made.inventory)
        assert all(
            gpu_names.is_of(declared.model or "", gpu, gpu_limits.sheets())
            for declared, gpu in zip(made.machine.gpu, due_gpus, strict=True)
        )
