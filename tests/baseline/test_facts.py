"""What a run tells of its machine: parts, identities, facts, and links as they were under load."""

from __future__ import annotations

from typing import Any

import journals
import machine_facts
from cases import each
from known import known
from machine_facts import born, disk, gpu, link, machine

from acceptance.baseline import facts
from acceptance.baseline.facts import circumstances
from acceptance.core.evidence import Table
from acceptance.core.machine_facts import CountedParts, MachineFacts
from acceptance.core.parts import CPU, ITSELF, MEMORY, Gpu, Part
from acceptance.loads.train.digest_contract import COLUMNS, VERSION_COLUMNS
from acceptance.machine.observation import decode


def test_the_parts_and_what_is_printed_on_them() -> None:
    found = born(machine())
    assert found.parts == (
        Gpu(0),
        Gpu(1),
        Part("disk", "nvme0n1"),
        Part("disk", "nvme1n1"),
        Part("dimm", "A1"),
        Part("dimm", "B1"),
        Part("net", "eth0"),
    )
    assert found.identities == {
        Gpu(0): "GPU-0",
        Gpu(1): "GPU-1",
        Part("disk", "nvme0n1"): "S-nvme0n1",
        Part("disk", "nvme1n1"): "S-nvme1n1",
        Part("dimm", "A1"): "D-A1",
        Part("dimm", "B1"): "D-B1",
    }
    assert (found.run_id, found.utc, found.looked) == (
        "run-1",
        "2026-01-01T00:00:00.000Z",
        ("gpu", "disk", "net", "dimm"),
    )
    assert found.book is None


def with_first(**of_gpu: Any) -> dict[str, Any]:
    """A machine whose first GPU is so."""
    plain = machine()
    plain["nvml"]["devices"][0] = gpu(0, **of_gpu)
    return plain


def with_links(*links: dict[str, Any]) -> dict[str, Any]:
    return {**machine(), "links": list(links)}


NET = Part("net", "eth0")
NOT_ITS_OWN = (
    "ba:00:00:00:00:02",  # given by an administrator
    "b9:00:00:00:00:02",  # of a group
    "00:00:10:87:fe:80:00:00:00:00:00:00:b8:00:00:03:00:00:00:02",  # IP over InfiniBand
    "",
    None,
    17,
)
UNDER_LOAD = {
    "gpu_link_gen": 4.0,
    "gpu_link_width": 8.0,
    "nvlink_speed": 26.562,
    "nvlink_active": 1.0,
}


@each(
    "plain, measured, told, absent",
    [
        (
            machine(),
            {},
            {
                (ITSELF, "board_serial"): "B-1",
                (ITSELF, "nvidia_driver"): "580.1",
                (MEMORY, "total_bytes"): str(1 << 40),
                (MEMORY, "ecc"): "Multi-bit ECC",
                (Gpu(1), "pci_address"): "0000:02:00.0",
                (Gpu(0), "memory_bytes"): "150000000000",
                (Gpu(0), "max_link_width_here"): "16",
                (Gpu(0), "nvlinks"): "2",
                (Gpu(0), "ecc_enabled"): "on",
                (Gpu(0), "serial"): "160",
                (NET, "mac"): "b8:00:00:00:00:01",
                (NET, "pcie_width"): "16",
                (Part("disk", "nvme0n1"), "transport"): "nvme",
            },
            {(MEMORY, "GiB"), (Gpu(0), "slot"), (Gpu(0), "link_gen")},
        ),
        (
            machine(),
            UNDER_LOAD,
            {
                (Gpu(0), "link_gen"): "4",
                (Gpu(0), "link_width"): "8",
                (Gpu(0), "nvlink_speed"): "26.562",
                (Gpu(0), "nvlinks"): "1",
                (Gpu(1), "nvlinks"): "2",
            },
            set(),
        ),
        # what is no number was not told, and is as the inventory has it
        *(
            (
                machine(),
                {"gpu_link_gen": value, "nvlink_active": value},
                {(Gpu(0), "nvlinks"): "2"},
                {(Gpu(0), "link_gen")},
            )
            for value in (float("nan"), float("inf"), None)
        ),
        # a GPU that does not answer tells nothing of its links
        (
            with_first(links=[], error="lost", error_code=15),
            {},
            {(Gpu(1), "nvlinks"): "2"},
            {(Gpu(0), "nvlinks")},
        ),
        (
            with_first(links=[], traits=None),
            {},
            {(Gpu(1), "nvlinks"): "2"},
            {(Gpu(0), "nvlinks")},
        ),
        (with_first(links=[]), {}, {(Gpu(0), "nvlinks"): "0"}, set()),
        # an address that the card was made with
        (
            with_links(link(mac="b8:00:00:00:00:02")),
            {},
            {(NET, "mac"): "b8:00:00:00:00:02"},
            set(),
        ),
        *((with_links(link(mac=mac)), {}, {}, {(NET, "mac")}) for mac in NOT_ITS_OWN),
        # that of a bond is no card's
        (
            with_links(link(), link("eth1")),
            {},
            {},
            {(NET, "mac"), (Part("net", "eth1"), "mac")},
        ),
    ],
)
def test_facts(
    plain: dict[str, Any],
    measured: dict[str, Any],
    told: dict[tuple[object, str], str],
    absent: set[tuple[object, str]],
) -> None:
    found = born(plain, **measured).by_name()
    assert found.items() >= told.items()
    assert not absent & found.keys()


def test_the_least_that_was_measured_counts() -> None:
    entries = machine_facts.run(machine(), nvlink_active=1.0)
    more = machine_facts.run(machine(), nvlink_active=2.0)[-1]
    for order in ([*entries, more], [*entries[:-1], more, entries[-1]]):
        assert known(facts.facts_of(order)).by_name()[Gpu(0), "nvlinks"] == "1"


def test_a_gpu_that_the_driver_does_not_know_is_a_part_with_a_place() -> None:
    plain = machine(1)
    plain["nvml"] = {"devices": []}
    found = born(plain)
    assert found.parts[0] == Gpu(0)
    assert "gpu0" not in found.identities
    assert {name: text for (part, name), text in found.by_name().items() if part == Gpu(0)} == {
        "pci_address": "0000:01:00.0"
    }


@each(
    "more, identity",
    [
        ({}, "b8:00:00:00:00:01"),
        ({"mac": "b8:00:00:00:00:02"}, "0000:41:00.0/"),
        ({"mac": None}, "0000:41:00.0/"),
        ({"mac": None, "pci_address": None}, None),
    ],
)
def test_what_identifies_a_link(more: dict[str, Any], identity: str | None) -> None:
    plain = machine()
    plain["links"] = [link(**more)]
    part = Part("net", "eth0")
    told = facts.Parts(born(plain), CountedParts((), ("ethernet",), "cards"))
    assert told.links(frozenset({"b8:00:00:00:00:01"})).get(part, "none") == (identity or "none")


def test_dimms_that_could_not_be_read_were_not_looked_for() -> None:
    plain = machine()
    plain["memory"]["dimms"] = None
    found = born(plain)
    assert not [part for part in (*found.parts, *found.looked) if str(part).startswith("dimm")]
    plain["memory"]["dimms"] = []
    assert "dimm" in born(plain).looked
    assert born({"disks": [disk()]}).looked == ("disk",)
    assert born({"links": []}).looked == ("net",)


def test_a_journal_without_beginning_or_inventory_tells_of_no_machine() -> None:
    assert facts.facts_of(journals.entries(journals.bodies(journals.plan()))) is None
    assert facts.facts_of(machine_facts.run(machine())[1:]) is None
    assert facts.facts_of(machine_facts.run({"cpu": None, "pci": 3})) is None
    assert facts.facts_of([]) is None


SEEN: dict[str, Any] = {
    "cpu": {"model": "EPYC", "governor": "performance", "flags": "x", "sockets": 2, "cores": 64,
            "threads": 128},
    "memory": {"total_bytes": 64 << 30, "dimms": [
        {"slot": "A1", "size_bytes": 1, "kind": "DDR5", "configured_mts": 4800, "part_number": "P",
         "rank": 1}]},
    "disks": [{"name": "sda", "model": "SSD", "size_bytes": 2, "firmware": "1.0", "used": "x"}],
    "links": [{"name": "eth0", "speed_mbps": 10000, "driver": "mlx5"}],
    "board": {"vendor": "V", "name": "N", "bios_version": "F2", "kernel": "6.12", "os": "Debian",
              "nvidia_driver": "580", "date": "x"},
    "pci": [{"address": "0000:01:00.0", "is_display": True, "is_virtual_function": False}],
    "nvml": {"devices": [
        {"pci_address": "0000:01:00.0", "name": "H200", "vbios": "96", "temperature": "x",
         "traits": {"ecc_enabled": True, "mig_enabled": False, "persistence": True,
                    "power_limit_w": 700.0, "compute_mode": "default", "fan": "x"}},
        {"pci_address": "0000:02:00.0", "vbios": "97"},
    ]},
}  # fmt: skip


def test_all_that_may_explain_a_difference_is_a_fact_and_nothing_else() -> None:
    names = ("host", "boot_id", "selftest", "order_number", "asset_tag", "psu_watts")
    run = {**dict.fromkeys(names, "one"), "kernel": "6.12", "rigproof": "1.0"}
    assert circumstances(run, decode(SEEN), profile="smoke", scope=None) == {
        (ITSELF, "profile"): "smoke",
        (ITSELF, "rigproof"): "1.0",
        (ITSELF, "kernel"): "6.12",
        (ITSELF, "vendor"): "V",
        (ITSELF, "name"): "N",
        (ITSELF, "os"): "Debian",
        (ITSELF, "bios_version"): "F2",
        (ITSELF, "nvidia_driver"): "580",
        (CPU, "model"): "EPYC",
        (CPU, "governor"): "performance",
        (CPU, "sockets"): "2",
        (CPU, "cores"): "64",
        (CPU, "threads"): "128",
        (MEMORY, "GiB"): "64",
        (Part("dimm", "A1"), "size_bytes"): "1",
        (Part("dimm", "A1"), "kind"): "DDR5",
        (Part("dimm", "A1"), "configured_mts"): "4800",
        (Part("dimm", "A1"), "part_number"): "P",
        (Part("disk", "sda"), "model"): "SSD",
        (Part("disk", "sda"), "size_bytes"): "2",
        (Part("disk", "sda"), "firmware"): "1.0",
        (Part("net", "eth0"), "speed_mbps"): "10000",
        (Part("net", "eth0"), "driver"): "mlx5",
        (Gpu(0), "name"): "H200",
        (Gpu(0), "pci_address"): "0000:01:00.0",
        (Gpu(0), "vbios"): "96",
        (Gpu(0), "power_limit_w"): "700.0",
        (Gpu(0), "ecc_enabled"): "on",
        (Gpu(0), "mig_enabled"): "off",
        (Gpu(0), "persistence"): "on",
        (Gpu(0), "compute_mode"): "default",
    }


@each(
    "inventory",
    [
        {},
        {"cpu": {"cores": None}, "memory": {"dimms": None}, "nvml": None},
        {"disks": ["sda"], "board": 3, "links": {}, "cpu": None, "pci": 3},
    ],
    told=["nothing", "nothing known", "another shape"],
)
def test_what_an_inventory_does_not_hold_is_absent(inventory: dict[str, Any]) -> None:
    assert circumstances({}, decode(inventory)) == {}


DIGESTS = ("bf16", 20, 12, "00", "11", "22", 0.5)


def trained(*tables: Table) -> MachineFacts:
    """The facts of a run with these tables."""
    return known(facts.facts_of([*machine_facts.run(machine()), *journals.entries(list(tables))]))


def table_of(name: str, columns: tuple[str, ...], *rows: tuple[float | str, ...]) -> Table:
    return Table("train.digest", Gpu(1), name, columns, rows)


def test_the_bits_of_a_training_run_and_what_they_depend_on() -> None:
    bits = table_of("train_digests", COLUMNS, DIGESTS)
    versions = table_of(
        "train_versions", VERSION_COLUMNS, ("libraries", "torch 2.10"), ("driver", "580.1")
    )
    told = trained(bits, versions).by_name()
    assert told[Gpu(1), "train_bits_bf16"] == "00 11 22"
    assert told[Gpu(1), "train_versions"] == "libraries torch 2.10, driver 580.1"
    assert (Gpu(0), "train_versions") not in told
    other = table_of("train_digests", COLUMNS, ("bf16", 20, 2, "00", "11", "23", 0.5))
    told = trained(bits, other, bits).by_name()
    assert told[Gpu(1), "train_bits_bf16"] == "00 11 22; 00 11 23"
    strange = (
        table_of("train_digests", ("format", "digest"), ("bf16", "00")),
        table_of("train_versions", ("what",), ("torch",)),
        table_of("another", COLUMNS, DIGESTS),
    )
    assert trained(*strange).facts == born(machine()).facts
