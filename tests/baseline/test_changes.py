"""A machine held against what it was: each kind of change gives exactly its finding, and what
comes and goes gives none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import journals
import machine_facts
import msgspec
from cases import each
from machine_facts import DAY, born, brief, dimm, disk, function, gpu, link, machine, ruled

from acceptance.baseline import changes
from acceptance.baseline.changes import MachineChange, machine_changes
from acceptance.core import parts
from acceptance.core.machine_facts import KnownChange, MachineFacts
from acceptance.core.message import Listed, Term
from acceptance.core.parts import CPU, ITSELF, MEMORY, Gpu, Part
from acceptance.core.plan import Plan
from acceptance.core.verdict import BaselineChanges
from acceptance.wording import words

BORN = msgspec.structs.replace(journals.plan(), baseline=ruled(born(machine())))
WHEN = f"when the baseline was recorded ({DAY})"
RUNS = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"
Plain = dict[str, Any]


def of_gpu(**more: Any) -> Change:
    return lambda plain: plain["nvml"]["devices"][1].update(more)


def of_traits(**more: Any) -> Change:
    return lambda plain: plain["nvml"]["devices"][1]["traits"].update(more)


def of(table: str, **more: Any) -> Change:
    return lambda plain: plain[table].update(more)


def of_first(table: str, **more: Any) -> Change:
    return lambda plain: (plain["memory"]["dimms"] if table == "dimms" else plain[table])[0].update(
        more
    )


def of_machine(**more: Any) -> Change:
    return lambda plain: plain.update(more)


Change = Callable[[Plain], object]


def changed(*changes: Change, gpus: int = 2) -> Plain:
    """A machine on which something was changed."""
    plain = machine(gpus)
    for change in changes:
        change(plain)
    return plain


def found(change: Change, gpus: int = 2) -> tuple[MachineChange, ...]:
    """What is told of a machine on which something was changed."""
    return between(machine(gpus), changed(change, gpus=gpus))


def between(before: Plain, after: Plain) -> tuple[MachineChange, ...]:
    return machine_changes(ruled(born(before)), born(after))


# --- parts ---


def gone(plain: Plain) -> None:
    plain["pci"].pop()


def test_a_gpu_in_the_middle_is_missing_and_the_others_are_not_taken_for_moved() -> None:
    """gpu1 is the name of another card tonight."""
    told = found(lambda plain: plain["pci"].pop(1), gpus=4)
    assert brief(told) == [("fail", "inventory.missing", None)]


def swapped(plain: Plain) -> None:
    one, two = plain["nvml"]["devices"]
    one["pci_address"], two["pci_address"] = two["pci_address"], one["pci_address"]


OUTSIDE = [
    disk("sdb", transport="usb"),
    disk("mmcblk0", transport="mmc"),
    disk("nvme2n1", transport="nvme-tcp"),
    disk("sdc", transport=None),
    disk("vdb", transport="virtio", kind="virtual"),
    disk("nvme3n1", kind="virtual"),
]
NO_CARDS = [
    link("docker0", bus=None, pci_address=None),
    link("enx001122", bus="usb", pci_address="0000:00:14.0"),
    link("eth7", bus="virtio", pci_address="0000:00:03.0"),
    link("eth0v1", is_virtual_function=True, pci_address="0000:41:00.2"),
    link("wlan0", kind="wireless", pci_address="0000:42:00.0"),
]


@each(
    "table, other",
    [
        *(("disks", one) for one in OUTSIDE),
        *(("links", {**one, "mac": "b8:00:00:00:00:07"}) for one in NO_CARDS),
    ],
)
def test_disks_and_links_that_come_and_go(table: str, other: Plain) -> None:
    more = changed(lambda plain: plain[table].append(other))
    assert (between(machine(), more), between(more, machine())) == ((), ())


# --- facts ---


@each(
    "change, kind, event, component, text",
    [
        (
            of_gpu(vbios="97.00"),
            "warn",
            "firmware",
            Gpu(1),
            f"VBIOS of gpu1: 96.00 {WHEN}, 97.00 now; basis: ",
        ),
        (
            of_gpu(memory_bytes=140_000_000_000),
            "fail",
            "less",
            Gpu(1),
            "memory of gpu1: 139.7 GiB when",
        ),
        (
            of_gpu(links=[{"active": True}, {"active": False}]),
            "fail",
            "nvlink",
            Gpu(1),
            "active NVLinks of gpu1: 2 when",
        ),
        (of_gpu(links=[]), "fail", "nvlink", Gpu(1), "active NVLinks of gpu1: 2 when the"),
        (of_gpu(links=[{"active": True}] * 3), "note", "added", Gpu(1), "active NVLinks"),
        (of_traits(cuda_cores=10000), "fail", "less", Gpu(1), "CUDA cores of gpu1: 16896 when"),
        (
            of_traits(max_link_gen_here=4),
            "fail",
            "link",
            Gpu(1),
            "highest PCIe generation (card and slot) of gpu1: 5 when",
        ),
        (
            of_traits(max_link_width_here=8),
            "fail",
            "link",
            Gpu(1),
            "most PCIe lanes (card and slot) of gpu1: 16 when",
        ),
        (
            of_traits(power_limit_w=600.0),
            "warn",
            "setting",
            Gpu(1),
            f"power limit (W) of gpu1: 700 {WHEN}, 600 now",
        ),
        (of_traits(power_limit_w=750.0), "warn", "setting", Gpu(1), "power limit"),
        (
            of_traits(ecc_enabled=False),
            "fail",
            "setting",
            Gpu(1),
            f"ECC of gpu1: on {WHEN}, off now",
        ),
        (of_traits(mig_enabled=True), "warn", "setting", Gpu(1), "MIG of gpu1: off when"),
        (of("board", bios_version="1.10"), "warn", "firmware", None, f"BIOS: 1.1 {WHEN}, 1.10 now"),
        (of("board", nvidia_driver="590.1"), "warn", "software", None, "NVIDIA driver: 580.1 when"),
        (of("board", kernel="6.13"), "warn", "software", None, "kernel: 6.12 when"),
        (of("board", os="Debian 14"), "note", "software", None, "operating system: Debian 13 when"),
        (of("board", name="H13"), "fail", "replaced", None, "board: X13 when"),
        (
            of("board", serial="B-2"),
            "fail",
            "replaced",
            None,
            "serial number of the board: B-1 when",
        ),
        (of("cpu", model="Xeon"), "fail", "replaced", CPU, "model of cpu: EPYC when"),
        (of("cpu", cores=127), "fail", "less", CPU, "cores of cpu: 128 when"),
        (of("cpu", threads=128), "warn", "setting", CPU, "threads of cpu"),
        (of("cpu", governor="powersave"), "note", "setting", CPU, "frequency governor of cpu"),
        (
            of("memory", total_bytes=1 << 39),
            "fail",
            "less",
            MEMORY,
            "RAM of memory: 1024 GiB when",
        ),
        (of("memory", total_bytes=1 << 41), "note", "added", MEMORY, "RAM of memory"),
        (
            of("memory", ecc="None"),
            "warn",
            "setting",
            MEMORY,
            "error correction of the RAM of memory",
        ),
        (
            of_first("dimms", configured_mts=4400),
            "fail",
            "link",
            Part("dimm", "A1"),
            "speed (MT/s) of dimm:A1: 4800 when",
        ),
        (
            of_first("dimms", configured_mts=5200),
            "warn",
            "setting",
            Part("dimm", "A1"),
            "speed (MT/s)",
        ),
        (
            of_first("dimms", size_bytes=1 << 34),
            "fail",
            "less",
            Part("dimm", "A1"),
            "size of dimm:A1: 32 GiB when",
        ),
        (
            of_first("dimms", part_number="OTHER"),
            "fail",
            "replaced",
            Part("dimm", "A1"),
            "part number of dimm:A1",
        ),
        (
            of_first("disks", firmware="2.0"),
            "warn",
            "firmware",
            Part("disk", "nvme0n1"),
            "firmware of disk:nvme0n1: 1.0 when",
        ),
        (
            of_first("disks", size_bytes=10**11),
            "fail",
            "less",
            Part("disk", "nvme0n1"),
            "size of disk:nvme0n1",
        ),
        (
            of_first("links", speed_mbps=10_000),
            "fail",
            "network",
            Part("net", "eth0"),
            "speed (Mbit/s) of net:eth0: 100000 when",
        ),
        (
            of_first("links", pcie_width=8),
            "fail",
            "link",
            Part("net", "eth0"),
            "PCIe lanes of net:eth0: 16 when",
        ),
        (
            of_first("links", pcie_speed_gts=8.0),
            "fail",
            "link",
            Part("net", "eth0"),
            f"PCIe speed (GT/s) of net:eth0: 16 {WHEN}, 8 now",
        ),
        (
            of_first("links", pcie_speed_gts=32.0),
            "note",
            "added",
            Part("net", "eth0"),
            "PCIe speed",
        ),
        (
            of_first("links", driver="other"),
            "note",
            "software",
            Part("net", "eth0"),
            "driver of net:eth0",
        ),
    ],
)
def test_each_fact(
    change: Callable[[Plain], None], kind: str, event: str, component: str | None, text: str
) -> None:
    told = found(change)
    assert brief(told) == [(kind, f"inventory.{event}", component)]
    assert words.message(told[0].message).startswith(text)
    assert "; basis: " in words.message(told[0].message)


@each(
    "then, now, kind",
    [
        ({"gpu_link_gen": 5.0}, {"gpu_link_gen": 4.0}, "fail"),
        ({"gpu_link_width": 16.0}, {"gpu_link_width": 8.0}, "fail"),
        ({"nvlink_speed": 26.562}, {"nvlink_speed": 25.0}, "fail"),
        ({"nvlink_active": 2.0}, {"nvlink_active": 1.0}, "fail"),
        ({"gpu_link_gen": 4.0}, {"gpu_link_gen": 5.0}, "note"),
        ({"gpu_link_gen": 5.0}, {}, "note"),
        ({"gpu_link_gen": 5.0}, {"gpu_link_gen": float("nan")}, "note"),
    ],
)
def test_links_under_load(then: dict[str, float], now: dict[str, float], kind: str) -> None:
    (told,) = machine_changes(ruled(born(machine(), **then)), born(machine(), **now))
    assert told.kind == kind


def test_what_is_no_number_any_more_is_taken_for_less() -> None:
    then = born(machine())
    for text in ("many", "nan"):
        facts = tuple(
            (part, name, text if (part, name) == (CPU, "cores") else was)
            for part, name, was in then.facts
        )
        told = machine_changes(ruled(then), msgspec.structs.replace(then, facts=facts))
        assert brief(told) == [("fail", "inventory.less", CPU)]


@each(
    "names, named, left_out",
    [
        (("serial", "os"), 1, 0),  # what a change of would be a note is not missed
        (("serial", "vendor", "name", "bios_version", "kernel"), 5, 0),
        (("serial", "vendor", "name", "bios_version", "kernel", "nvidia_driver"), 5, 1),
    ],
)
def test_of_what_is_not_told_five_are_named(
    names: tuple[str, ...], named: int, left_out: int
) -> None:
    (told,) = found(of("board", **dict.fromkeys(names)))
    facts = told.message.values["facts"]
    assert isinstance(facts, Listed)
    assert (told.kind, len(facts.items), facts.left_out) == ("note", named, left_out)


PORTS = [link(f"mlx5_0/{number}", kind="infiniband", mac=None) for number in (1, 2)]
TWINS = [dimm("A1", serial="00000000"), dimm("B1", serial="00000000")]
SLOTS = [{"slot": "A1"}, {"slot": "B1"}]


def in_slot(address: str, slot: str | None) -> Change:
    """One GPU at this address, in a slot of this name."""

    def change(plain: Plain) -> None:
        plain["pci"] = [{**function(0, slot), "address": address}]
        plain["nvml"]["devices"] = [{**plain["nvml"]["devices"][0], "pci_address": address}]

    return change


def disks(*transports: str) -> Change:
    """Two disks of one serial number, as some USB adapters tell it."""
    names = zip(("sda", "sdb"), transports, strict=True)
    return of_machine(disks=[disk(name, serial="S", transport=one) for name, one in names])


@each(
    "before, after, told, text",
    [
        (of("memory", dimms=TWINS), of("memory", dimms=TWINS), [], ""),
        (
            of("memory", dimms=TWINS),
            of("memory", dimms=TWINS[:1]),
            [("fail", "inventory.missing", Part("dimm", "B1"))],
            "dimm:B1 ",
        ),
        (
            of("memory", dimms=SLOTS),
            of("memory", dimms=SLOTS[:1]),
            [("fail", "inventory.missing", Part("dimm", "B1"))],
            f"dimm:B1 is missing: it was there {WHEN}; ",
        ),
        # the disk inside is told by its own, whatever names both have
        (disks("sata", "usb"), disks("usb", "sata"), [], ""),
        (
            of_machine(links=PORTS),
            of_machine(links=[{**PORTS[0], "speed_mbps": 200}, PORTS[1]]),
            [("fail", "inventory.network", Part("net", "mlx5_0/1"))],
            "",
        ),
        (
            of_machine(links=[link(mac=None, pci_address=None)]),
            of_machine(links=[link(mac=None, pci_address=None, pcie_width=8)]),
            [("fail", "inventory.link", Part("net", "eth0"))],
            "",
        ),
        (of_gpu(links=[]), of_machine(), [("note", "inventory.added", Gpu(1))], ""),
        (of("board", serial=None, bios_version=None), of_machine(), [], ""),
        (of("memory", dimms=None), of_machine(), [], ""),
        (of("memory", total_bytes=100), of("memory", total_bytes=99), [], ""),
        (
            of("memory", total_bytes=100),
            of("memory", total_bytes=98),
            [("fail", "inventory.less", MEMORY)],
            "",
        ),
        (
            of_traits(ecc_enabled=False),
            of_machine(),
            [("warn", "inventory.setting", Gpu(1))],
            f"ECC of gpu1: off {WHEN}, on now; ",
        ),
        # the name of a slot goes before bus numbers
        (in_slot("0000:01:00.0", "PCIE1"), in_slot("0000:61:00.0", "PCIE1"), [], ""),
        (
            in_slot("0000:01:00.0", "PCIE1"),
            in_slot("0000:61:00.0", "PCIE3"),
            [("warn", "inventory.moved", Gpu(0))],
            f"gpu0 (GPU-0): at 0000:01:00.0 in slot PCIE1 {WHEN}, at 0000:61:00.0 in slot PCIE3 "
            "now; ",
        ),
        (
            in_slot("0000:01:00.0", "PCIE1"),
            in_slot("0000:61:00.0", None),
            [("warn", "inventory.moved", Gpu(0))],
            "",
        ),
    ],
    told=[
        "two modules of one serial number",
        "one of them is missing: they are told by their slots",
        "a module of which nothing is told but its slot",
        "a disk outside with the serial number of one inside",
        "two ports of one card keep apart",
        "a card of which nobody tells its place is known by name",
        "from no NVLinks to some",
        "what the board did not tell then is no change",
        "modules that were not read then are no change",
        "exactly what is allowed means nothing",
        "less than what is allowed",
        "ECC that was off and is on",
        "another bus number in the same slot",
        "another slot",
        "a slot that has no name any more",
    ],
)
def test_what_is_told_between_two_machines(
    before: Change, after: Change, told: list[tuple[str, str, object]], text: str
) -> None:
    changes = between(changed(before), changed(after))
    assert brief(changes) == told
    assert not text or words.message(changes[0].message).startswith(text)


OTHER_GPU = gpu(1, uuid="GPU-9", serial="169", vbios="97.00", memory_bytes=80_000_000_000)
OTHER_MAC = "b8:00:00:00:00:99"


@each(
    "change, told, text",
    [
        (lambda _: None, [], ""),
        (
            gone,
            [("fail", "inventory.missing", Gpu(1))],
            f"gpu1 (NVIDIA H200, GPU-1, 0000:02:00.0) is missing: it was there {WHEN}; basis: ",
        ),
        (
            of_gpu(**OTHER_GPU),
            [("fail", "inventory.replaced", Gpu(1))],
            f"gpu1 is another part: GPU-1 {WHEN}, GPU-9 now; basis: ",
        ),
        (
            swapped,
            [("warn", "inventory.moved", Gpu(1)), ("warn", "inventory.moved", Gpu(0))],
            f"gpu1 (GPU-0): at 0000:01:00.0 {WHEN}, at 0000:02:00.0 now; basis: ",
        ),
        (
            lambda plain: plain["nvml"]["devices"].pop(),
            [("note", "inventory.untold", None)],
            "",
        ),
        (of_first("pci", slot="as root reads it"), [], ""),
        (of_first("pci", link_speed_gts=2.5, link_width=1), [], ""),
        (
            of("memory", dimms=[dimm("A1", serial="D-B1"), dimm("B1", serial="D-A1")]),
            [
                ("warn", "inventory.moved", Part("dimm", "B1")),
                ("warn", "inventory.moved", Part("dimm", "A1")),
            ],
            f"dimm:A1 (HMCG, D-A1) {WHEN} is dimm:B1 now; basis: ",
        ),
        (
            of("memory", dimms=[dimm("A1"), dimm("C1")]),
            [
                ("fail", "inventory.missing", Part("dimm", "B1")),
                ("note", "inventory.added", Part("dimm", "C1")),
            ],
            "dimm:B1 ",
        ),
        (
            of("memory", dimms=None),
            [("warn", "inventory.untold", None)],
            f"the parts of kind dimm could not be read in this run, and could {WHEN}; basis: ",
        ),
        (
            of_machine(
                disks=[
                    disk("nvme0n1", serial="S-nvme1n1"),
                    disk("nvme1n1", serial="S-nvme0n1", model="SSD"),
                ]
            ),
            [],
            "",
        ),
        (
            lambda plain: plain["disks"][1].update(
                disk("nvme1n1", serial="S-9", model="other", firmware="2")
            ),
            [("fail", "inventory.replaced", Part("disk", "nvme1n1"))],
            "disk:nvme1n1 ",
        ),
        (
            lambda plain: plain["disks"].pop(0),
            [("fail", "inventory.missing", Part("disk", "nvme0n1"))],
            "disk:nvme0n1 ",
        ),
        (
            lambda plain: plain["disks"].append(disk("sda", transport="sata")),
            [("note", "inventory.added", Part("disk", "sda"))],
            f"disk:sda (SSD, S-sda) was not there {WHEN}; basis: ",
        ),
        (of_machine(links=[link("enp65s0")]), [], ""),
        (of_machine(links=[link("enp66s0", pci_address="0000:42:00.0")]), [], ""),
        (of("board", hostname="another"), [], ""),
        (
            of_machine(links=[link("eth0", mac="ba:00:00:00:00:01")]),
            [("note", "inventory.untold", None)],
            f"not reported in this run, so not compared with the baseline ({DAY}): MAC address of "
            "net:eth0",
        ),
        (
            of_machine(links=[link("eth5", mac=OTHER_MAC)]),
            [("warn", "inventory.replaced", Part("net", "eth5"))],
            f"MAC address of net:eth5: b8:00:00:00:00:01 {WHEN}, {OTHER_MAC} now; basis: ",
        ),
        (
            of_machine(links=[link(mac=OTHER_MAC, pci_address="0000:61:00.0")]),
            [("warn", "inventory.replaced", Part("net", "eth0"))],
            f"MAC address of net:eth0: b8:00:00:00:00:01 {WHEN}, {OTHER_MAC} now; basis: ",
        ),
        (
            of_machine(links=[]),
            [("fail", "inventory.missing", Part("net", "eth0"))],
            "net:eth0 (b8:00:00:00:00:01, 0000:41:00.0) is missing",
        ),
        (
            of_first("links", up=False, speed_mbps=None),
            [
                ("warn", "inventory.network", Part("net", "eth0")),
                ("note", "inventory.untold", None),
            ],
            "",
        ),
        (of_gpu(memory_bytes=150_000_000_000 - 10**9, serial="other"), [], ""),
        (
            of_traits(power_limit_w=700.1, persistence=False, compute_mode="exclusive-process"),
            [],
            "",
        ),
        (of_traits(power_limit_w=700), [], ""),
        (of("memory", total_bytes=(1 << 40) - (1 << 32), available_bytes=1), [], ""),
        (
            lambda plain: (gone(plain), plain["board"].update(os="Debian 14", kernel="6.13")),
            [
                ("fail", "inventory.missing", Gpu(1)),
                ("warn", "inventory.software", None),
                ("note", "inventory.software", None),
            ],
            "gpu1 ",
        ),
    ],
    told=[
        "the same machine",
        "the last GPU is missing",
        "another GPU in its place is one finding",
        "two GPUs that changed places are moved",
        "a GPU that tells no identity any more is not called another",
        "a slot that got another name is no move",
        "the state of an idle link is not looked at",
        "modules that changed places",
        "a module is missing and one in another slot was added",
        "modules that cannot be read any more are not missing",
        "disks are told by their serial numbers, not by the kernel's names",
        "a disk is replaced",
        "a disk is missing",
        "a disk that was added",
        "a port that got another name",
        "a port that got another bus number",
        "a host that is called otherwise",
        "an address that is not the card's own is no other card",
        "another card in the same place",
        "another card in another place under the same name",
        "a card is missing",
        "a link that went down",
        "less memory by what the driver takes",
        "modes",
        "a number written otherwise",
        "less RAM by what the kernel takes",
        "failures stand first",
    ],
)
def test_each_change_gives_exactly_its_findings(
    change: Change, told: list[tuple[str, str, object]], text: str
) -> None:
    changes = found(change)
    assert brief(changes) == told
    assert not text or words.message(changes[0].message).startswith(text)


# --- as the fold sees it ---


def test_findings_and_notes_of_a_run_and_what_the_next_night_is_to_know() -> None:
    after = changed(of("board", kernel="6.13", os="Debian 14"), gone)
    held = changes.compare(BORN.baseline, machine_facts.run(after))
    assert [(one.kind, one.check, one.component, one.event) for one in held.findings] == [
        ("fail", "run", Gpu(1), "inventory.missing"),
        ("warn", "run", None, "inventory.software"),
    ]
    assert [note.values["fact"] for note in held.notes] == [Term("operating system")]
    assert held.known == (KnownChange(ITSELF, "kernel", "6.13", DAY),)


def test_a_run_without_an_inventory_is_an_error_and_tells_the_next_night_nothing() -> None:
    held = changes.compare(BORN.baseline, [])
    (finding,) = held.findings
    assert (finding.kind, finding.check, finding.code) == ("error", "run", "no_inventory")
    assert (held.notes, held.known) == ((), None)
    assert changes.compare(None, []) == BaselineChanges()
    assert machine_changes(born(machine()), born(machine(1))) == (), "without rules"


def test_facts_in_a_journal_are_those_that_were_written() -> None:
    stored = msgspec.json.decode(
        msgspec.json.encode(BORN, enc_hook=parts.encode),
        type=Plan,
        dec_hook=parts.decode,
    )
    assert stored == BORN


# --- on the second night ---


@each(
    "change, known",
    [
        (of("board", kernel="6.13"), [(ITSELF, "kernel", "6.13")]),
        (of("board", bios_version="1.2"), [(ITSELF, "bios_version", "1.2")]),
        (of_gpu(vbios="97.00"), [(Gpu(1), "vbios", "97.00")]),
        (
            of_first("links", mac="b8:00:00:00:00:02"),
            [(Part("net", "eth0"), "mac", "b8:00:00:00:00:02")],
        ),
        (swapped, [(Gpu(0), "moved", "0000:02:00.0"), (Gpu(1), "moved", "0000:01:00.0")]),
    ],
)
def test_what_was_told_is_a_note_from_the_second_night_on(
    change: Change, known: list[tuple[str, str, str]]
) -> None:
    after = changed(change)
    first = between(machine(), after)
    assert [(one.kind, one.known) for one in first] == [
        ("warn", KnownChange(*one, DAY)) for one in known
    ]
    birth = msgspec.structs.replace(
        ruled(born(machine())), known=tuple(KnownChange(*one, "2025-12-24") for one in known)
    )
    second = machine_changes(birth, born(after))  # since then, whatever the day is
    assert [(one.kind, one.known) for one in second] == [("note", one) for one in birth.known]
    assert brief(second) == [("note", event, where) for _, event, where in brief(first)]
    assert all("reported since 2025-12-24" in words.message(one.message) for one in second)


SECOND = (KnownChange(ITSELF, "kernel", "6.13", DAY),)
MOVED = [dimm("A1"), dimm("C1", serial="D-B1")]


@each(
    "known, change, told",
    [
        (
            SECOND,
            of("board", kernel="6.14"),
            [("warn", KnownChange(ITSELF, "kernel", "6.14", DAY))],
        ),
        (SECOND, of_machine(), []),
        (
            (),
            of("memory", dimms=MOVED),
            [("warn", KnownChange(Part("dimm", "B1"), "moved", "dimm:C1", DAY))],
        ),
    ],
    told=["a third kernel", "again as it was", "a module is known by its new slot"],
)
def test_what_is_known_of_a_change(
    known: tuple[KnownChange, ...], change: Change, told: list[tuple[str, KnownChange]]
) -> None:
    birth = msgspec.structs.replace(ruled(born(machine())), known=known)
    assert [(one.kind, one.known) for one in machine_changes(birth, born(changed(change)))] == told


@each(
    "change, kind, what, now",
    [
        (of_first("links", up=False), "warn", (Part("net", "eth0"), "up"), "off"),
        (of("memory", ecc="None"), "warn", ("memory", "ecc"), "None"),
        (of("memory", dimms=None), "warn", ("dimm", "unread"), ""),
        (gone, "fail", (Gpu(1), "missing"), ""),
        (of_gpu(uuid="GPU-9"), "fail", (Gpu(1), "replaced"), ""),
        (of_first("links", pcie_width=8), "fail", (Part("net", "eth0"), "pcie_width"), "8"),
        (of("board", serial="B-2"), "fail", (ITSELF, "board_serial"), "B-2"),
    ],
)
def test_what_may_be_damage_is_told_every_night(
    change: Change, kind: str, what: tuple[str, str], now: str
) -> None:
    after = born(changed(change))
    birth = msgspec.structs.replace(ruled(born(machine())), known=(KnownChange(*what, now, DAY),))
    first, second = (machine_changes(one, after) for one in (ruled(born(machine())), birth))
    assert first == second
    assert {(one.kind, one.known) for one in first} == {(kind, None)}


def test_a_plan_of_rules_before_there_were_notes_afterwards_warns_as_it_did() -> None:
    plain = msgspec.to_builtins(ruled(born(machine())), enc_hook=parts.encode)
    del plain["known"]
    for rule in plain["book"]["change"]:
        del rule["afterwards"]
    birth = msgspec.json.decode(
        msgspec.json.encode(plain), type=MachineFacts, dec_hook=parts.decode
    )
    told = machine_changes(birth, born(changed(of("board", kernel="6.13"))))
    assert [(one.kind, one.known) for one in told] == [("warn", None)]


# --- bits of a training run ---

VERSIONS = "libraries torch 2.10.0+cu128, CUDA 12.8, driver 580.1"


def trained(
    bits: str = "00 11 22",
    versions: str | None = VERSIONS,
    gpu: int = 1,
    then: MachineFacts | None = None,
) -> MachineFacts:
    """What a run tells of a machine whose GPU trained to these bits."""
    found = born(machine()) if then is None else then
    told = [(Gpu(gpu), "train_bits_bf16", bits)]
    told += [] if versions is None else [(Gpu(gpu), "train_versions", versions)]
    return msgspec.structs.replace(found, facts=(*found.facts, *told))


def test_other_bits_with_equal_versions_fail_every_night_and_say_since_when() -> None:
    assert machine_changes(ruled(trained()), trained()) == ()
    (told,) = machine_changes(ruled(trained()), trained("00 11 23"))
    assert (told.kind, told.event, told.component) == ("fail", "inventory.bits", Gpu(1))
    assert told.known == KnownChange(Gpu(1), "train_bits_bf16", "00 11 23", DAY)
    since = KnownChange(Gpu(1), "train_bits_bf16", "00 11 23", "2026-02-03")
    then = msgspec.structs.replace(ruled(trained()), known=(since,))
    (again,) = machine_changes(then, trained("00 11 23"))
    assert (again.kind, again.known) == ("fail", since)


OTHER = VERSIONS.replace("580.1", "590.2")


@each(
    "before, after, code",
    [
        (VERSIONS, OTHER, "facts_incomparable"),
        (None, VERSIONS, "facts_incomparable"),
        (VERSIONS, None, "facts_incomparable"),
        (None, None, "facts_incomparable"),
    ],
)
def test_bits_of_other_versions_are_not_compared_and_it_is_said(
    before: str | None, after: str | None, code: str
) -> None:
    (told,) = machine_changes(ruled(trained(versions=before)), trained("33", after))
    assert (told.kind, told.event, told.component) == ("note", "inventory.untold", None)
    assert told.message.code == code
    assert machine_changes(ruled(trained()), trained(versions=OTHER)) == ()


def test_many_bits_of_other_versions_are_one_note() -> None:
    before, after = born(machine(8)), born(machine(8))
    for index in range(8):
        before = trained(gpu=index, then=before)
        after = trained("33", "other", gpu=index, then=after)
    (told,) = machine_changes(ruled(before), after)
    facts = told.message.values["facts"]
    assert isinstance(facts, Listed)
    assert (len(facts.items), facts.left_out) == (5, 3)


def test_bits_follow_the_gpu_into_another_slot() -> None:
    then = born(changed(swapped))
    told = machine_changes(ruled(trained()), trained(gpu=0, then=then))
    assert [one.event for one in told] == ["inventory.moved"] * 2
    (first, *_) = machine_changes(ruled(trained()), trained("33", gpu=0, then=then))
    assert (first.kind, first.component) == ("fail", Gpu(0))
