from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cases import each
from gpu_machine import TRAITS, device, link, machine, pairs
from hypothesis import given
from hypothesis import strategies as st
from machine_tree import NO_DMI, Programs, Tree, completed
from refusal import raised

from acceptance.core.finding import Waiver
from acceptance.core.message import UserError
from acceptance.expect.declaration import declared_limits
from acceptance.machine import inventory as machine_inventory
from acceptance.machine import machine_file
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.inventory import Dimm, Disk, Inventory, NetworkLink
from acceptance.observe import draft
from acceptance.observe.inventory import observe
from acceptance.process.deadline import Deadline

GIB = 1 << 30
HOSTILE = (
    'a "quoted"\\ \ttab\nline\r\x00\x1b[31m\x7f\x85 \N{SNOWMAN} \U0001f600 [x] # = \'\'\' """ ü'
)


def look(tree: Tree) -> Inventory:
    programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    return observe(tree.root, deadline=Deadline.after(9), run=programs, dmidecode="dmidecode")


def vm(folder: Path) -> Inventory:
    tree = Tree(folder)
    tree.cpus([(0,), (1,)], model="Intel(R) Xeon(R) Processor", flags="fpu hypervisor")
    tree.memory(24)
    tree.disk("vda", "pci0000:00/0000:00:02.0/virtio1")
    return look(tree)


def tower(folder: Path) -> Inventory:
    tree = Tree(folder)
    tree.cpus([(core, core + 16) for core in range(16)])
    tree.memory(128)
    for bus in (0x41, 0x01):
        tree.gpu(bus)
    tree.driver()
    tree.nic("enp5s0")
    tree.nic("enp6s0", operstate="down")
    tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    tree.disk("nvme1n1", "pci0000:00/0000:05:00.0/nvme/nvme1")
    tree.files("sys/class/dmi/id", board_name="Pro WS", bios_version="1.2")
    tree.write("proc/sys/kernel/hostname", "box\n")
    for disk in ("0000:04:00.0/nvme/nvme0", "0000:05:00.0/nvme/nvme1"):
        tree.files(f"sys/devices/pci0000:00/{disk}", model="Samsung SSD 990", serial=disk[5:7])
    return look(tree)


def with_a_card_that_has_fallen_off(folder: Path) -> Inventory:
    tree = Tree(folder)
    tree.cpus([(0, 1)])
    tree.memory()
    tree.gpu(1)
    tree.gpu(2, dead=True, driver=None)
    return look(tree)


def bare(folder: Path) -> Inventory:
    """As little as a machine can show."""
    tree = Tree(folder)
    tree.write("proc/cpuinfo", "processor : 0\n")
    tree.write("proc/meminfo", "MemTotal: 1 kB\n")
    return look(tree)


def dimm(slot: str, size_gib: float | None = 32) -> Dimm:
    size = None if size_gib is None else int(size_gib * GIB)
    return Dimm(slot, size, "DDR5", 5600, 5200, "Maker", f"part of {slot}", "1", 64, 80, None)


def with_modules(seen: Inventory, *modules: Dimm) -> Inventory:
    return replace(
        seen, memory=replace(seen.memory, dimms=modules, dimms_unread=None, slots_total=8)
    )


def back(seen: Inventory, folder: Path) -> machine_file.Machine:
    file = folder / "draft.toml"
    draft.write(seen, file)
    return machine_file.read(file)


@each("build", [vm, tower, with_a_card_that_has_fallen_off, bare])
def test_every_draft_reads_back(tmp_path: Path, build: Callable[[Path], Inventory]) -> None:
    seen = build(tmp_path / "root")
    found = back(seen, tmp_path)
    cards = len([function for function in seen.pci if function.is_display])
    assert found.gpus == (cards or None), "a draft never says that no GPU is due"
    assert ("Put in the number that you bought" in draft.render(seen)) == (cards == 0)
    assert list(declared_limits(found, "draft.toml"))


def test_a_tower_is_drafted_as_it_is(tmp_path: Path) -> None:
    found = back(with_modules(tower(tmp_path / "root"), dimm("A1"), dimm("B1")), tmp_path)
    assert (found.name, found.gpus) == ("box", 2)
    assert (found.cpu.model, found.cpu.cores, found.cpu.threads, found.cpu.governor) == (
        "AMD Ryzen",
        16,
        32,
        "performance",
    )
    assert (found.memory.total_gib, found.memory.dimms, found.memory.channels) == (64, 2, None)
    assert [(one.slot, one.part_number) for one in found.memory.dimm] == [
        ("A1", "part of A1"),
        ("B1", "part of B1"),
    ]
    assert [(one.size_gib, one.rated_mts, one.configured_mts) for one in found.memory.dimm] == [
        (32, 5600, 5200)
    ] * 2
    assert [(gpu.address, gpu.pci_id, gpu.link_width) for gpu in found.gpu] == [
        ("0000:01:00.0", "10de:2684", 16),
        ("0000:41:00.0", "10de:2684", 16),
    ]
    assert [(disk.model, disk.count, disk.size_gb) for disk in found.disk] == [
        ("Samsung SSD 990", 2, 512)
    ]
    assert [(link.name, link.speed_mbps) for link in found.network] == [("enp5s0", 2500)]
    assert (found.system.board, found.system.bios_version, found.system.driver) == (
        "Pro WS",
        "1.2",
        "570.86.15",
    )


def test_what_the_machine_file_cannot_say_is_left_out(tmp_path: Path) -> None:
    odd = with_modules(tower(tmp_path / "root"), dimm("A1", 0.5), dimm("B1", None), dimm("C1", 1.5))
    cpu = replace(
        odd.cpu, sockets=0, cores=None, governor="mixed: performance, powersave", model=""
    )
    pci = tuple(replace(function, max_link_width=12, device_id="10de:2684") for function in odd.pci)
    disks = (
        Disk("sda", None, None, 10**12, "ssd", "sata", None),
        Disk("sdb", "Tiny", None, 5, "ssd", "usb", None),
    )
    found = back(replace(odd, cpu=cpu, pci=pci, disks=disks), tmp_path)
    assert (found.cpu.sockets, found.cpu.cores, found.cpu.governor, found.cpu.model) == (
        None,
        None,
        None,
        None,
    )
    assert (found.memory.total_gib, found.memory.dimms) == (None, 3)
    assert [one.size_gib for one in found.memory.dimm] == [None, None, None]
    assert [gpu.link_width for gpu in found.gpu] == [None, None]
    assert [(disk.model, disk.size_gb) for disk in found.disk] == [("Tiny", None)]


@each(
    "seen, drafted",
    [
        (machine(device(0), device(1), found=pairs(2, "not-supported", "not-supported")), ()),
        (machine(device(0), device(1)), (((0, 1), "PHB", True),)),
        (machine(device(0), device(1), found=pairs(2, path="INTERNAL")), (((0, 1), None, True),)),
        (
            machine(
                *(
                    device(one, links=tuple(link(n, to=1 - one) for n in range(4)))
                    for one in range(2)
                )
            ),
            (((0, 1), "NV4", True),),
        ),
    ],
)
def test_links_between_gpus_are_drafted_as_due(
    tmp_path: Path, seen: Inventory, drafted: tuple[object, ...]
) -> None:
    due = back(seen, tmp_path).gpu_pair
    assert tuple((one.between, one.path, one.p2p) for one in due) == drafted


GPU_KEYS = {"model", "link_width", "link_gen"}
DATA = Filesystem("/data", "ext4", "/dev/sdb1", False, "8:17", "sdb1", 1, 1, ("sdb",), ())


def uncommented(text: str, *tables: str) -> str:
    """A draft with the `#` before these tables and their keys removed, as somebody would."""
    made, inside = [], False
    for line in text.splitlines():
        if line.startswith("# ["):
            inside = any(line.startswith(f"# [[{table}]]") for table in tables)
        inside = inside and line.startswith("# ")
        made.append(line.removeprefix("# ") if inside else line)
    return "\n".join(made)


def test_the_tables_of_gpus_are_there_where_no_gpu_is(tmp_path: Path) -> None:
    text = draft.render(bare(tmp_path / "root"))
    assert (machine_file_of(tmp_path, text).gpu, machine_file_of(tmp_path, text).scratch) == (
        (),
        (),
    )
    meant = machine_file_of(
        tmp_path,
        uncommented(text, "gpu", "gpu_pair", "scratch").replace("[[gpu]]", "[[gpu]]\ncount = 2"),
    )
    assert [set(msgspec.to_builtins(one)) >= GPU_KEYS for one in meant.gpu] == [True]
    assert None not in (meant.gpu[0].model, meant.gpu[0].link_width, meant.gpu[0].link_gen)
    assert [(one.between, one.p2p, one.path is None) for one in meant.gpu_pair] == [
        ((0, 1), False, False)
    ]
    assert len(meant.scratch) == 1


def test_the_link_of_a_slot_that_is_not_shown_is_no_fact(tmp_path: Path) -> None:
    """In a VM the card alone would be declared, and its slot may be less."""
    own = machine_file_of(tmp_path, draft.render(machine(device(0)))).gpu[0]
    assert None not in (own.link_width, own.link_gen)
    text = draft.render(machine(device(0, traits=replace(TRAITS, virtualised=True))))
    unknown = machine_file_of(tmp_path, text).gpu[0]
    assert (unknown.link_width, unknown.link_gen) == (None, None)
    assert "# link_width = 16  # of the card" in text
    assert "# link_gen = 4  # of the card" in text


def test_a_pair_is_shown_where_two_gpus_have_no_link(tmp_path: Path) -> None:
    alone = machine(device(0))
    assert "gpu_pair" not in draft.render(alone), "one GPU has no pair"
    apart = machine(device(0), device(1), found=pairs(2, "not-supported", "not-supported"))
    meant = machine_file_of(tmp_path, uncommented(draft.render(apart), "gpu_pair"))
    assert len(meant.gpu_pair) == 1
    assert "# [[gpu" not in draft.render(machine(device(0), device(1)))


def test_the_folders_on_disks_are_there_to_be_uncommented(tmp_path: Path) -> None:
    other = replace(DATA, mount='/mnt/"x"', disks=("sda", "sdc"))
    text = draft.render(bare(tmp_path / "root"), (DATA, other))
    assert machine_file_of(tmp_path, text).scratch == ()
    meant = machine_file_of(tmp_path, uncommented(text, "scratch"))
    assert [one.path for one in meant.scratch] == ["/data", '/mnt/"x"']


def test_modules_that_were_not_read_are_told(tmp_path: Path) -> None:
    seen = vm(tmp_path / "root")
    for told in ("run it as root\nand again\x1b[31m", None):
        memory = replace(seen.memory, dimms=None if told else (), dimms_unread=told)
        text = draft.render(replace(seen, memory=memory))
        assert tomllib.loads(text)["memory"] == {"total_gib": 24}
        assert (
            "# modules were not read: "
            f"{'run it as root and again?[31m' if told else 'none listed'}\n"
        ) in text


def hostile(seen: Inventory, text: str) -> Inventory:
    module = replace(dimm("A1"), slot=text or "A1", part_number=text)
    link = NetworkLink(text or "x", "ethernet", None, 1000, None, True, False, None)
    board = replace(seen.board, hostname=text, name=text, bios_version=text, nvidia_driver=text)
    return replace(
        with_modules(seen, module),
        cpu=replace(seen.cpu, model=text, governor=text),
        board=board,
        disks=(Disk("sda", text, text, 10**12, "ssd", "sata", text),),
        links=(link,),
        nvml=machine_inventory.NvmlAnswer(
            None,
            None,
            (
                machine_inventory.NvmlDevice(
                    0, text, text, "0000:01:00.0", text, text, 1, None, None
                ),
            ),
            None,
            None,
        ),
    )


def test_strings_arrive_as_they_are(tmp_path: Path) -> None:
    found = back(hostile(tower(tmp_path / "root"), HOSTILE), tmp_path)
    assert (found.name, found.cpu.model, found.cpu.governor, found.system.board) == (HOSTILE,) * 4
    assert (found.memory.dimm[0].slot, found.memory.dimm[0].part_number) == (HOSTILE, HOSTILE)
    assert (found.disk[0].model, found.network[0].name, found.gpu[0].model) == (HOSTILE,) * 3


@pytest.fixture(scope="module")
def some_tower(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    return tower(tmp_path_factory.mktemp("tower"))


@given(text=st.text())
def test_no_string_makes_an_invalid_file(some_tower: Inventory, text: str) -> None:
    found = tomllib.loads(draft.render(hostile(some_tower, text)))
    assert found["name"] == (text or "machine")
    assert found["network"][0]["name"] == (text or "x")


def test_bytes_that_are_no_text(some_tower: Inventory, tmp_path: Path) -> None:
    found = back(hostile(some_tower, b"eth\xff".decode("utf-8", "surrogateescape")), tmp_path)
    assert found.network[0].name == "eth?"


def test_a_waiver_that_this_machine_needs_is_there_to_be_uncommented(tmp_path: Path) -> None:
    text = draft.render(vm(tmp_path / "root"))
    assert machine_file_of(tmp_path, text).waiver == ()
    assert "which is usual for a virtual machine\n" in text, "no check of modules is due"
    head, _, waiver = text.rpartition("# [[waiver]]\n")
    meant = head + "[[waiver]]\n" + waiver.replace("# ", "")
    reason = "a virtual disk has no SMART report"
    assert machine_file_of(tmp_path, meant).waiver == (
        Waiver(reason, skip="storage.smart_health", component="disk:vda"),
    )
    assert "[[waiver]]" not in draft.render(tower(tmp_path / "tower"))


def machine_file_of(folder: Path, text: str) -> machine_file.Machine:
    file = folder / "meant.toml"
    file.write_text(text, encoding="utf-8")
    return machine_file.read(file)


def test_somebody_elses_file_is_not_overwritten(some_tower: Inventory, tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    file.write_text("mine")
    assert "machine.toml: is there already and is not overwritten: give another name" in raised(
        UserError, draft.write, some_tower, file
    )
    assert file.read_text() == "mine"
    assert "cannot be written (No such file or directory): give another place" in raised(
        UserError, draft.write, some_tower, tmp_path / "nowhere/machine.toml"
    )
