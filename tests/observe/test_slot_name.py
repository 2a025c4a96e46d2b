from __future__ import annotations

from pathlib import Path

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.observe import pci


def structure(
    name: str = "PCIEX16_1",
    bus: int = 0x01,
    function: int = 0,
    segment: int = 0,
    *,
    number: int = 1,
    length: int = 0x11,
) -> bytes:
    """A System Slots structure as /sys/firmware/dmi shows it."""
    head = bytes([9, length, 0x24, 0, number, 0xB6, 0x0D, 4, 4, 1, 0, 0x0C, 1])
    formatted = (
        head + segment.to_bytes(2, "little") + bytes([bus, function]) + bytes(max(0, length - 0x11))
    )
    return formatted + name.encode() + b"\0\0"


@each(
    "raw, found",
    [
        (structure(), ("0000:01:00.0", "PCIEX16_1")),
        (
            structure("CPU SLOT7 PCI-E 5.0 X16", 0xC1, 0),
            ("0000:c1:00.0", "CPU SLOT7 PCI-E 5.0 X16"),
        ),
        (structure(bus=0, function=0b00001_010), ("0000:00:01.2", "PCIEX16_1")),
        (structure(segment=0x10), ("0010:01:00.0", "PCIEX16_1")),
        (structure(length=0x18), ("0000:01:00.0", "PCIEX16_1")),
        (structure("A\0B", number=2), ("0000:01:00.0", "B")),
        (structure(" J6B2 "), ("0000:01:00.0", "J6B2")),
        (structure(bus=0xFF, function=0xFF), None),
        (structure(number=0), None),
        (structure(number=9), None),
        (structure(""), None),
        (structure(length=0x0D), None),
        (b"", None),
        (structure()[:0x11], None),
        (bytes([17]) + structure()[1:], None),
        (structure()[:1] + b"\xff" + structure()[2:], None),
    ],
)
def test_a_structure(raw: bytes, found: tuple[str, str] | None) -> None:
    assert pci.parse_slots(raw) == found


@given(st.binary(max_size=80))
def test_no_bytes_are_too_much(raw: bytes) -> None:
    for given_raw in (raw, b"\x09" + raw, structure()[:17] + raw):
        found = pci.parse_slots(given_raw)
        assert found is None or all(found)


def test_the_firmwares_name_goes_before_the_kernels(tmp_path: Path) -> None:
    for name, address in (("1", "0000:01:00"), ("7", "0000:41"), ("9", "")):
        (tmp_path / "sys/bus/pci/slots" / name).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/slots" / name / "address").write_text(f"{address}\n")
    tables = {
        "9-0": structure(),
        "9-1": structure("PCIEX16_2", 0, 0b00001_001),
        "17-0": structure("no slot", 5),
        "9-2": b"",
    }
    for name, raw in tables.items():
        (tmp_path / "sys/firmware/dmi/entries" / name).mkdir(parents=True)
        (tmp_path / "sys/firmware/dmi/entries" / name / "raw").write_bytes(raw)
    named = pci.read_slots(tmp_path)
    assert pci.slot_of("0000:01:00.0", "0000:00:01.0", named) == "PCIEX16_1"
    assert pci.slot_of("0000:01:00.1", "0000:00:01.0", named) == "PCIEX16_1", (
        "the card's other function"
    )
    assert pci.slot_of("0000:21:00.0", "0000:00:01.1", named) == "PCIEX16_2", (
        "told of the port above"
    )
    assert pci.slot_of("0000:41:00.0", "0000:00:01.3", named) == "7"
    assert pci.slot_of("0000:05:00.0", "0000:00:01.4", named) is None


def test_a_machine_that_shows_neither(tmp_path: Path) -> None:
    assert pci.read_slots(tmp_path) == {}
