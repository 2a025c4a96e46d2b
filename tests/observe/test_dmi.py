from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.machine.inventory import Dimm, EmptySlot
from acceptance.observe import dmi
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable

GIB = 1 << 30
RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/dmidecode"
HEAD = "# dmidecode 3.5\nGetting SMBIOS data from sysfs.\nSMBIOS 3.5.0 present.\n\n"
MODULE = {
    "Total Width": "72 bits",
    "Data Width": "64 bits",
    "Size": "64 GB",
    "Form Factor": "DIMM",
    "Locator": "DIMM_A1",
    "Bank Locator": "BANK 0",
    "Type": "DDR4",
    "Type Detail": "Synchronous Registered (Buffered)",
    "Speed": "3200 MT/s",
    "Manufacturer": "Samsung",
    "Serial Number": "0123ABCD",
    "Part Number": "M393A8G40AB2-CWE   ",
    "Configured Memory Speed": "2933 MT/s",
}
EMPTY = {
    "Size": "No Module Installed",
    "Total Width": "Unknown",
    "Data Width": "Unknown",
    "Type": "Unknown",
}


def array(
    number: int, count: int | str, ecc: str = "Multi-bit ECC", use: str = "System Memory"
) -> str:
    return (
        f"Handle 0x{number:04X}, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System "
        "Board Or Motherboard\n"
        f"\tUse: {use}\n\tError Correction Type: {ecc}\n\tNumber Of Devices: {count}\n\n"
    )


def module(number: int, in_array: int = 0x10, length: int = 84, **changes: str | None) -> str:
    fields = {**MODULE, **{key.replace("_", " "): value for key, value in changes.items()}}
    lines = "".join(f"\t{key}: {value}\n" for key, value in fields.items() if value is not None)
    return (
        f"Handle 0x{number:04X}, DMI type 17, {length} bytes\nMemory Device\n\tArray Handle: "
        f"0x{in_array:04X}\n{lines}\n"
    )


def empty(number: int, locator: str, in_array: int = 0x10, **changes: str) -> str:
    return module(
        number,
        in_array,
        **{key.replace(" ", "_"): value for key, value in EMPTY.items()},
        Locator=locator,
        **changes,
    )


def test_the_command_line() -> None:
    assert dmi.argv() == ("dmidecode", "-t", "memory")
    assert dmi.argv("/usr/sbin/dmidecode")[0] == "/usr/sbin/dmidecode"


def test_modules_and_empty_slots() -> None:
    tables = dmi.parse(HEAD + array(0x10, 2) + module(0x11) + empty(0x12, "DIMM_A2"))
    assert tables.dimms == (
        Dimm(
            slot="DIMM_A1",
            size_bytes=64 * GIB,
            kind="DDR4",
            rated_mts=3200,
            configured_mts=2933,
            manufacturer="Samsung",
            part_number="M393A8G40AB2-CWE",
            serial="0123ABCD",
            data_width_bits=64,
            total_width_bits=72,
            bank="BANK 0",
        ),
    )
    assert (tables.slots_total, tables.ecc) == (2, "Multi-bit ECC")
    assert tables.empty_slots == (EmptySlot("DIMM_A2", "BANK 0"),)


@each(
    "text, size_bytes",
    [
        ("16384 MB", 16 * GIB),
        ("16 GB", 16 * GIB),
        ("32 GiB", 32 * GIB),
        ("1 TB", 1024 * GIB),
        ("512 kB", 512 << 10),
        ("4096 bytes", 4096),
        ("Unknown", None),
    ],
)
def test_sizes(text: str, size_bytes: int | None) -> None:
    (dimm,) = dmi.parse(HEAD + module(0x11, Size=text)).dimms
    assert dimm.size_bytes == size_bytes


def two_arrays(first: str, second: str) -> str:
    """A module in each of two arrays with their error correction."""
    arrays = array(0x10, 1, ecc=first) + array(0x20, 1, ecc=second)
    return arrays + module(0x11) + module(0x21, 0x20, Locator="B1")


PROCESSOR = (
    "Handle 0x0004, DMI type 4, 48 bytes\nProcessor Information\n\tFlags:\n\t\tFPU "
    "(Floating-point unit on-chip)\n\n"
)
END = "Handle 0x0015, DMI type 127, 4 bytes\nEnd Of Table\n\n"
NAMELESS = {"Locator": "Not Specified"}


@each(
    "text, slots, total, ecc",
    [
        *(
            (module(0x11) + module(0x12, Size=size, Locator="DIMM_A2"), ["DIMM_A1"], 2, None)
            for size in ("No Module Installed", "Not Installed", "0 MB")
        ),
        (
            array(0x10, 4)
            + empty(0x11, "DIMM 0", Bank_Locator="P0 CHANNEL A")
            + module(0x12, Locator="DIMM 1", Bank_Locator="P0 CHANNEL A")
            + empty(0x13, "DIMM 0", Bank_Locator="P0 CHANNEL B")
            + module(0x14, Locator="DIMM 1", Bank_Locator="P0 CHANNEL B"),
            ["P0 CHANNEL A DIMM 1", "P0 CHANNEL B DIMM 1"],
            4,
            "Multi-bit ECC",
        ),
        (
            array(0x10, 1)
            + array(0x20, 2)
            + module(0x11)
            + module(0x21, 0x20)
            + module(0x22, 0x20, Locator="B1"),
            ["BANK 0 DIMM_A1 #1", "BANK 0 DIMM_A1 #2", "B1"],
            3,
            "Multi-bit ECC",
        ),
        (module(0x11, **NAMELESS), ["BANK 0"], 1, None),
        (module(0x1A, **NAMELESS, Bank_Locator="Not Specified"), ["handle 0x001a"], 1, None),
        (
            array(0x10, 2)
            + array(0x20, 1, ecc="None", use="Flash Memory")
            + module(0x11)
            + module(0x12, Locator="SPI ROM", Type="Flash", Size="16 MB")
            + module(0x21, 0x20, Locator="BIOS", Size="4 MB"),
            ["DIMM_A1"],
            1,
            "Multi-bit ECC",
        ),
        (two_arrays("None", "None"), ["DIMM_A1", "B1"], 2, "None"),
        (
            two_arrays("None", "Multi-bit ECC"),
            ["DIMM_A1", "B1"],
            2,
            "mixed: Multi-bit ECC, None",
        ),
        (two_arrays("Unknown", "Unknown"), ["DIMM_A1", "B1"], 2, None),
        (PROCESSOR + array(0x10, 1) + module(0x11) + END, ["DIMM_A1"], 1, "Multi-bit ECC"),
        (array(0x10, 0) + module(0x11), ["DIMM_A1"], 1, "Multi-bit ECC"),
        (
            array(0x10, 2) + module(0x11) + empty(0x12, "DIMM_B1", Note="reserved"),
            ["DIMM_A1"],
            2,
            "Multi-bit ECC",
        ),
    ],
    told=[
        "an empty slot is counted but is no module",
        "in other words",
        "by its size",
        "equal locators are told apart by their bank",
        "equal locators and banks on two sockets are numbered",
        "a slot without a name has that of its bank",
        "or that of its handle",
        "firmware chips and other arrays are no slots",
        "no error correction",
        "error correction in one of two arrays",
        "error correction that is not known",
        "a whole dmidecode is read too",
        "firmware that promises fewer than it lists is believed",
        "what only an empty slot says is not missed of a module",
    ],
)
def test_slots_and_error_correction(
    text: str, slots: list[str], total: int, ecc: str | None
) -> None:
    tables = dmi.parse(HEAD + text)
    assert [dimm.slot for dimm in tables.dimms] == slots
    assert (tables.slots_total, tables.ecc) == (total, ecc)


@each(
    "text, mts",
    [
        ("2400 MHz", 2400),
        ("667 MHz (1.5 ns)", 667),
        ("4800 MT/s", 4800),
        ("65535 MT/s", 65535),  # the most that the field holds
        ("Unknown", None),
        ("0 MT/s", None),
    ],
)
def test_speeds_in_old_and_new_words(text: str, mts: int | None) -> None:
    old = module(0x11, Speed=text, Configured_Memory_Speed=None) + ""
    old = old.replace("\tPart Number", f"\tConfigured Clock Speed: {text}\n\tPart Number")
    (dimm,) = dmi.parse(HEAD + old).dimms
    assert (dimm.rated_mts, dimm.configured_mts) == (mts, mts)


@each(
    "text", ["", "Unknown", "Not Specified", "NO DIMM", "<OUT OF SPEC>", "To Be Filled By O.E.M."]
)
def test_what_the_firmware_did_not_fill_in_is_absent(text: str) -> None:
    (dimm,) = dmi.parse(
        HEAD + module(0x11, Manufacturer=text, Serial_Number=text, Part_Number=text)
    ).dimms
    assert (dimm.manufacturer, dimm.serial, dimm.part_number) == (None, None, None)


def test_old_firmware_has_no_configured_speed() -> None:
    (dimm,) = dmi.parse(HEAD + module(0x11, Configured_Memory_Speed=None)).dimms
    assert dimm.configured_mts is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["A", "B", "A #1", "X A"]), st.sampled_from(["X", "Y", "Unknown"])
        ),
        min_size=1,
    )
)
def test_slot_names_are_unique(names: list[tuple[str, str]]) -> None:
    text = "".join(
        module(at, Locator=name, Bank_Locator=bank) for at, (name, bank) in enumerate(names)
    )
    slots = [dimm.slot for dimm in dmi.parse(HEAD + text).dimms]
    assert len(set(slots)) == len(slots) == len(names)


def test_a_number_is_not_taken_by_names_that_are_numbered_themselves() -> None:
    assert dmi.unique_slots(["A", "A", "A #1"], [None] * 3) == ["A #2", "A #3", "A #1"]
    assert dmi.unique_slots(["A", "A", "A #1", "A #1"], [None] * 4) == [
        "A #1",
        "A #2",
        "A #1 #1",
        "A #1 #2",
    ]


def test_persistent_memory_is_a_module_and_its_list_is_read_over() -> None:
    stick = module(0x12, Locator="DIMM_A2", Type="Logical non-volatile device").rstrip("\n")
    stick += (
        "\n\tMemory Operating Mode Capability: Volatile memory\n\t\tByte-accessible "
        "persistent "
        "memory\n\tCache Size: None\n\n"
    )
    plain = (
        module(0x11).rstrip("\n")
        + "\n\tMemory Operating Mode Capability: Volatile memory\n\tCache Size: None\n\n"
    )
    kinds = [dimm.kind for dimm in dmi.parse(HEAD + plain + stick).dimms]
    assert kinds == ["DDR4", "Logical non-volatile device"]


WEATHER = {
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "no indentation": lambda text: text.replace("\t", ""),
    "spaces": lambda text: text.replace("\t", "        "),
    "quoted deeper": lambda text: "".join(f"    {line}\n" for line in text.split("\n")),
    "more blank lines": lambda text: text.replace("\n\n", "\n\n\n"),
    "colours": lambda text: f"\x1b[1m{text}\x1b[0m",
    "trimmed": lambda text: text.rstrip(),
}


@each("weather", WEATHER)
def test_weather(weather: str) -> None:
    text = HEAD + array(0x10, 2) + module(0x11) + empty(0x12, "DIMM_A2")
    assert dmi.parse(WEATHER[weather](text)) == dmi.parse(text)


@given(st.data())
def test_a_text_that_is_cut_short_never_loses_a_module(data: st.DataObject) -> None:
    text = (
        HEAD
        + array(0x10, 3)
        + module(0x11)
        + module(0x12, Locator="DIMM_A2")
        + module(0x13, Locator="DIMM_A3")
    )
    whole = dmi.parse(text)
    cut = data.draw(st.integers(0, len(text)))
    try:
        seen = dmi.parse(text[:cut])
    except (NotMeasurable, UnreadableOutput):
        return
    assert [dimm.slot for dimm in seen.dimms] == [dimm.slot for dimm in whole.dimms]


@each(
    "text, returncode, why",
    [
        ("", 0, "no DMI tables"),
        ("# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n", 0, "no DMI tables"),
        (
            (
                "# dmidecode 3.4\nScanning /dev/mem for entry point.\n\n/dev/mem: No such file "
                "or directory\n"
            ),
            1,
            "no DMI tables",
        ),
        (
            "# dmidecode 3.4\n\n/sys/firmware/dmi/tables/smbios_entry_point: Permission denied\n",
            1,
            "needs root",
        ),
        ("/dev/mem: Operation not permitted\n", 1, "needs root"),
        (HEAD + array(0x10, 0), 0, "name no memory device"),
        (HEAD + array(0x10, 1) + module(0x11), 2, "exit code 2"),
        (
            HEAD + module(0x11) + "Invalid entry length (0). DMI table is broken! Stop.\n",
            0,
            "DMI tables are broken",
        ),
        (HEAD + empty(0x11, "A1") + empty(0x12, "A2"), 0, "2 slots, all empty"),
        ((RECORDINGS / "vm_no_tables_3.4.txt").read_text(), 1, "no DMI tables"),
    ],
)
def test_tables_that_cannot_be_read_are_never_no_modules(
    text: str, returncode: int, why: str
) -> None:
    with pytest.raises(NotMeasurable, match=why):
        dmi.parse(text, returncode)


WHOLE = HEAD + array(0x10, 1) + module(0x11)


def without(part: str) -> str:
    """The whole text, less the lines of a part."""
    lines = WHOLE.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(part))


NOT_WHOLE = "the memory array 0x0010 has no"


@each(
    "text, why",
    [
        (WHOLE + WHOLE, "2 outputs"),
        (HEAD + module(0x11, Size="4194304 GB"), "this is not a"),
        (HEAD + module(0x11, Speed="999999999 MT/s"), "this is not a"),
        (HEAD + module(0x11, Configured_Memory_Speed="65536 MT/s"), "this is not a"),
        (HEAD + module(0x11, Total_Width="65536 bits"), "this is not a"),
        (HEAD + array(0x10, 2) + module(0x11), "promises 2 devices and 1 are listed"),
        (HEAD + array(0x10, "") + module(0x11), "has no `Number Of Devices`"),
        (without("\tUse:"), f"{NOT_WHOLE} `Use`"),
        (without("\tError Correction Type:"), f"{NOT_WHOLE} `Error Correction Type`"),
        (without("Handle 0x0010"), "lost its handle"),
        (without("Handle 0x0011"), "lost its handle"),
        (without("\tLocator:"), "the memory device 0x0011 has no `Locator`"),
        (HEAD + module(0x11) + module(0x12, Part_Number=None, Locator="B"), "has no `Part Number`"),
        (HEAD + module(0x11, Size="a lot"), "'Size: a lot'"),
        (HEAD + module(0x11, Speed="fast"), "'Speed: fast'"),
        (HEAD + module(0x11, Data_Width="wide"), "'Data Width: wide'"),
        (HEAD + module(0x11).replace("\tType:", "\t???\n\tType:"), r"\?\?\?"),
        ("\tSize: 8192 MB\n\tSize: No Module Installed\n", "Size: 8192 MB"),
    ],
)
def test_what_is_not_whole_or_not_known_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        dmi.parse(text)


@pytest.mark.timeout(60)
def test_long_lines_and_many_slots_of_one_name_take_no_time() -> None:
    with pytest.raises(UnreadableOutput, match="is not `name: value`"):
        dmi.parse(module(0x11).rstrip("\n") + "\n\tA" + " " * 200_000 + "!\n")
    assert dmi.parse("x" * 200_000 + "\n" + module(0x11)).slots_total == 1
    slots = dmi.parse(module(0x11) * 5000).dimms
    assert (slots[0].slot, slots[-1].slot) == ("BANK 0 DIMM_A1 #1", "BANK 0 DIMM_A1 #5000")
