from __future__ import annotations

from cases import each
from site_box import family

from acceptance.core.parts import Component, Gpu, Pair, Part, parse
from acceptance.core.plan import FamilyFile, SiteChecks
from acceptance.machine.observation import decode
from acceptance.reports.locations import Location, Locations, kernel_names, locate

INVENTORY = {
    "memory": {"dimms": [{"slot": "DIMM_A1", "serial": "S1"}], "dimms_unread": None},
    "disks": [{"name": "nvme0n1", "serial": "D1"}, {"name": "sda", "serial": None}],
    "links": [
        {"name": "eth0", "pci_address": "0000:05:00.0"},
        {"name": "eth1", "pci_address": None},
    ],
    "pci": [
        {"address": "0000:01:00.0", "is_display": True, "is_virtual_function": False},
        {"address": "0000:01:00.1", "is_display": False, "is_virtual_function": False},
        {"address": "0000:02:00.0", "is_display": True, "is_virtual_function": True},
        {"address": "0000:81:00.0", "is_display": True, "is_virtual_function": False, "slot": "7"},
    ],
    "nvml": {
        "devices": [{"index": 0, "uuid": "GPU-9", "serial": "77", "pci_address": "0000:81:00.0"}]
    },
}


FIRST, SECOND = "0000:01:00.0", "0000:81:00.0"
UNREAD = {
    "memory": {"dimms": None},
    "pci": [{"address": FIRST, "device_id": "10de:2684"}],
}
BRIDGE = "0000:00:01.1"


@each(
    "found, component, place",
    [
        *(
            (locate(decode(INVENTORY)), one, place)
            for names, place in (
                ((Gpu(0), parse(FIRST)), Location(address=FIRST)),
                (
                    (Gpu(1), parse(SECOND)),
                    Location(address=SECOND, slot="7", serial="77", uuid="GPU-9", index="0"),
                ),
                (
                    (Part("disk", "nvme0n1"), parse("nvme0n1")),
                    Location(name="nvme0n1", serial="D1"),
                ),
                ((Part("disk", "sda"),), Location(name="sda")),
                ((Part("net", "eth0"),), Location(name="eth0", address="0000:05:00.0")),
                ((Part("dimm", "DIMM_A1"),), Location(slot="DIMM_A1", serial="S1")),
                ((Gpu(2), Pair(Gpu(0), Gpu(1)), "cpu", "machine", None), Location()),
            )
            for one in names
        ),
        *(
            (locate(decode(inventory)), one, Location())
            for inventory in ({}, UNREAD)
            for one in (Gpu(0), Part("dimm", "A1"), Part("disk", "sda"))
        ),
        (Locations(), parse(BRIDGE), Location(address=BRIDGE)),
        (Locations(), parse(f"{BRIDGE}; reboot"), Location()),
        (Locations(), parse(f"{BRIDGE}\n"), Location()),
    ],
)
def test_each_component_has_its_place(
    found: Locations, component: Component | None, place: Location
) -> None:
    assert found.of(component) == place


@each(
    "text",
    [
        "$(reboot)",
        "`reboot`",
        "a;b",
        "a'b",
        'a"b',
        "a\nb",
        "-rf",
        "a|b",
        "a>b",
        "",
        "a\u202eb",
        "x" * 81,
        "a&b",
        "{0}",
        "a\\b",
    ],
)
def test_what_a_shell_would_take_apart_stands_in_no_command(text: str) -> None:
    assert Location(name=text, serial="S1").values() == {"serial": "S1"}


def test_the_advice_of_a_sites_own_measurements_is_the_runs() -> None:
    own = SiteChecks("/etc/checks", "abc", (FamilyFile("mount.toml", family("site_mount")),))
    found = locate(decode(INVENTORY), own)
    assert found.advice["site_mount"].next == "ping -c 3 example.org"
    assert found.nowhere().advice == found.advice
    assert not found.nowhere().found
    unread = SiteChecks("/etc/checks", "abc", (FamilyFile("mount.toml", "title = 7"),))
    assert not locate(decode(INVENTORY), unread).advice


def test_the_kernels_names_of_parts_lead_to_them() -> None:
    def laid(*above: tuple[str, ...]) -> dict[str, object]:
        names = ("0000:01:00.0", "0000:81:00.0")
        return {
            name: {
                "address": name,
                "host_bridge": "pci0000:00",
                "bridges": list(bridges),
                "numa_node": None,
                "cpus": None,
            }
            for name, bridges in zip(names, above, strict=True)
        }

    port, switch, below = "0000:00:01.1", "0000:00:02.0", "0000:80:01.1"
    alone = decode({**INVENTORY, "places": laid((port,), (switch, below))})
    both = decode({**INVENTORY, "places": laid((port,), (switch, port))})
    names = kernel_names(alone)
    for name, part in {
        "0000:01:00.0": "gpu0",
        "0000:00:01.1": "gpu0",
        "0000:80:01.1": "gpu1",
        "nvme0n1": "disk:nvme0n1",
        "nvme0": "disk:nvme0n1",
        "sda": "disk:sda",
        "eth0": "net:eth0",
        "0000:05:00.0": "net:eth0",
    }.items():
        assert names[parse(name)] == parse(part)
    assert parse("0000:00:01.1") not in kernel_names(both)
