"""Memory slots of the board and their modules, from the firmware's tables (dmidecode)."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from acceptance.core.message import Message, Unmeasured, english
from acceptance.core.plain_text import lines
from acceptance.machine.inventory import Dimm, EmptySlot
from acceptance.process.unreadable import UnreadableOutput
from acceptance.wording.errors import NotMeasurable

PROGRAM = PACKAGE = "dmidecode"
ARRAY, DEVICE = 16, 17  # SMBIOS structure types: Physical Memory Array, Memory Device

_HANDLE = re.compile(r"Handle (0x[0-9A-Fa-f]+), DMI type (\d{1,3}), (\d{1,3}) bytes\.?")
# The name must not end in a blank: if a long run of blanks could belong to the name or not, the
# match would take very long.
_FIELD = re.compile(r"([A-Z](?:[A-Za-z0-9()/ -]*[A-Za-z0-9()/-])?)\s*:(?:\s+(.*))?")
_HEAD = re.compile(r"^# dmidecode \d", re.MULTILINE)
_BROKEN = "DMI table is broken"
_SIZE = re.compile(r"(\d{1,15}) (bytes|[kKMGT]i?B)")
_SPEED = re.compile(r"(\d{1,9}) (?:MT/s|MHz)(?: \([\d.]+ ns\))?")
_WIDTH = re.compile(r"(\d{1,9}) bits?")
# SMBIOS: a speed and a width have 16 bits (the extended speed is for more than 65534 MT/s, and no
# memory is so fast yet), an extended size has 31 bits of megabytes.
_MOST_NUMBER, _MOST_BYTES = 0xFFFF, 1 << (31 + 20)
_BINARY = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

# `Size` of an empty slot.
_EMPTY = ("No Module Installed", "Not Installed")
# What firmware writes or dmidecode prints for a missing value.
_ABSENT = re.compile(
    r"|unknown|not (?:specified|provided|available)|none|no dimm|n/?a|undefined|\[?empty\]?|--"
    r"|to be filled by o\.e\.m\.|default string|<.*>",
    re.IGNORECASE,
)
# Memory on the board that holds firmware: it is no DIMM and has no slot.
_FIRMWARE_KINDS = frozenset({"Flash", "ROM", "EEPROM", "FEPROM", "EPROM"})
_TITLES = {"Physical Memory Array": ARRAY, "Memory Device": DEVICE}
_PARTS = ("Size", "Locator", "Type")
_ARRAY_PARTS = ("Use", "Error Correction Type")
_LISTED = "Number Of Devices"


@dataclass(frozen=True, slots=True)
class MemoryTables:
    """Modules and empty slots in table order, number of both, and error correction.

    `ecc` is in the firmware's words.
    """

    dimms: tuple[Dimm, ...]
    slots_total: int
    ecc: str | None
    empty_slots: tuple[EmptySlot, ...] = ()


@dataclass(slots=True)
class _Structure:
    handle: str
    kind: int
    length: int
    fields: dict[str, str] = field(default_factory=dict)
    title: str | None = None
    open: bool = True


def argv(program: str = PROGRAM) -> tuple[str, ...]:
    """The command line that prints the memory tables; it needs root."""
    return (program, "-t", "memory")


def parse(text: str, returncode: int = 0) -> MemoryTables:
    """Parse the output of `dmidecode -t memory` or of a whole `dmidecode`.

    Standard error may be appended to it.

    Raises NotMeasurable when dmidecode could not read the tables or they list no module. Raises
    UnreadableOutput for an unknown line and for truncated text.
    """
    runs = len(_HEAD.findall("\n".join(lines(text))))
    if runs > 1:  # each module would be counted twice
        raise _unknown(
            Message(
                english(
                    "outputs_several", "the text holds {count} outputs: give one run at a time"
                ),
                {"count": runs},
            )
        )
    structures = _structures(text)
    if returncode != 0 or not any(structure.kind == DEVICE for structure in structures):
        raise _unread(text, returncode)
    if broken := next((line for line in lines(text) if _BROKEN in line), None):
        raise NotMeasurable(
            english("dmi_broken", "the board's DMI tables are broken ({line}): update the BIOS"),
            Unmeasured.NO_ANSWER,
            line=repr(broken.strip()),
        )
    arrays = {structure.handle: structure for structure in structures if structure.kind == ARRAY}
    devices = [structure for structure in structures if structure.kind == DEVICE]
    _require_whole(arrays, devices)
    devices = [device for device in devices if _is_ram(device, arrays)]
    names = unique_slots(
        [_name(device) for device in devices], [_text(device, "Bank Locator") for device in devices]
    )
    dimms = tuple(
        _dimm(device, name)
        for device, name in zip(devices, names, strict=True)
        if not _is_empty(device)
    )
    if not dimms:  # the machine runs, so it has memory, and the tables are wrong
        raise NotMeasurable(
            english(
                "dmi_slots_empty",
                "the DIMMs could not be read because the firmware's tables show {slots} slots, "
                "all empty: update the BIOS",
            ),
            Unmeasured.NO_ANSWER,
            slots=len(devices),
        )
    empty = tuple(
        EmptySlot(name, _text(device, "Bank Locator"))
        for device, name in zip(devices, names, strict=True)
        if _is_empty(device)
    )
    return MemoryTables(dimms, len(devices), _ecc(arrays.values()), empty)


def _structures(text: str) -> list[_Structure]:
    found: list[_Structure] = []
    last_key = ""
    for raw in lines(text):
        line = raw.strip()
        current = found[-1] if found else None
        if handle := _HANDLE.fullmatch(line):
            found.append(_Structure(handle[1].lower(), int(handle[2]), int(handle[3])))
        elif line in _TITLES and (
            current is None or current.title is not None or current.kind != _TITLES[line]
        ):
            raise _unknown(
                Message(
                    english(
                        "dmi_handle_lost",
                        "a structure '{title}' has lost its handle: the text is cut short",
                    ),
                    {"title": line},
                )
            )
        elif current is None or current.kind not in (ARRAY, DEVICE) or not current.open:
            continue  # preamble, a structure of another type, or text after the last structure
        elif not line:
            current.open = not current.fields
        elif current.title is None:
            current.title = line
        elif match := _FIELD.fullmatch(line):
            last_key = match[1]
            current.fields[last_key] = (match[2] or "").strip()
        # the only field of these structures that is a list
        elif last_key != "Memory Operating Mode Capability":
            raise _unknown(
                Message(
                    english("dmi_line_unknown", "a line of a memory structure is not `name: value`")
                ),
                line,
            )
    return found


def _unread(text: str, returncode: int) -> NotMeasurable:
    if re.search(r"permission denied|operation not permitted", text, re.IGNORECASE):
        return NotMeasurable(
            english(
                "dmidecode_needs_root",
                "the DIMMs could not be read because dmidecode needs root: run rigproof with sudo",
            ),
            Unmeasured.NOT_PERMITTED,
        )
    if _HANDLE.search(text):
        if returncode:
            return NotMeasurable(
                english(
                    "dmidecode_failed",
                    "the DIMMs could not be read because dmidecode ended with exit code {code}: "
                    "look at `sudo dmidecode -t memory`",
                ),
                Unmeasured.NO_ANSWER,
                code=returncode,
            )
        return NotMeasurable(
            english(
                "dmi_no_memory_device",
                "the DIMMs could not be read because the tables name no memory device: look at "
                "`sudo dmidecode -t memory`",
            ),
            Unmeasured.NOT_OFFERED,
        )
    if text.strip() and not re.search(
        r"# dmidecode|No SMBIOS nor DMI entry point|Scanning /dev/mem|/dev/mem:", text
    ):
        raise _unknown(
            Message(english("dmi_text_foreign", "this is not what dmidecode prints")),
            text.strip().splitlines()[0],
        )
    return NotMeasurable(
        english(
            "dmi_no_tables",
            "the DIMMs could not be read because this machine shows no DMI tables, which is usual "
            "for a virtual machine",
        ),
        Unmeasured.NOT_OFFERED,
    )


def _require_whole(arrays: dict[str, _Structure], devices: Sequence[_Structure]) -> None:
    """Raise UnreadableOutput for text that is truncated between two structures or within one."""
    listed_in = Counter(device.fields.get("Array Handle", "").lower() for device in devices)
    for array in arrays.values():
        for part in _ARRAY_PARTS:
            if part not in array.fields:
                raise _unknown(_lacking(array, part))
        promised = array.fields.get(_LISTED, "")
        if not re.fullmatch(r"\d{1,5}", promised):
            raise _unknown(_lacking(array, _LISTED))
        # Some firmware promises fewer devices than it lists (only the occupied ones, or none), so
        # only too few is an error.
        listed = listed_in[array.handle]
        if listed < int(promised):
            values = {"handle": array.handle, "promised": promised, "listed": str(listed)}
            raise _unknown(
                Message(
                    english(
                        "dmi_devices_lost",
                        "the memory array {handle} promises {promised} devices and {listed} are "
                        "listed: the text is cut short",
                    ),
                    values,
                )
            )
    fullest: dict[int, set[str]] = {}
    for device in devices:
        for part in _PARTS:
            if part not in device.fields:
                raise _unknown(_lacking(device, part))
        if not _is_empty(device):  # newer versions omit the details of an empty slot
            fullest.setdefault(device.length, set()).update(device.fields)
    for device in devices:
        if not _is_empty(device) and (
            missing := sorted(fullest[device.length] - set(device.fields))
        ):
            raise _unknown(_lacking(device, missing[0]))


def _lacking(structure: _Structure, part: str) -> Message:
    values = {"handle": structure.handle, "part": part}
    return Message(
        english("dmi_array_cut", "the memory array {handle} has no `{part}`: the text is cut short")
        if structure.kind == ARRAY
        else english(
            "dmi_device_cut", "the memory device {handle} has no `{part}`: the text is cut short"
        ),
        values,
    )


def _unknown(why: Message, line: str = "") -> UnreadableOutput:
    return UnreadableOutput(PROGRAM, line, why)


def _is_ram(device: _Structure, arrays: dict[str, _Structure]) -> bool:
    array = arrays.get(device.fields.get("Array Handle", "").lower())
    use = array.fields.get("Use", "System Memory") if array else "System Memory"
    return use == "System Memory" and device.fields["Type"] not in _FIRMWARE_KINDS


def _is_empty(device: _Structure) -> bool:
    return device.fields["Size"] in _EMPTY or _size(device) == 0


def _dimm(device: _Structure, slot: str) -> Dimm:
    # Before dmidecode 3.2 the configured speed was called a clock and printed in MHz; the number is
    # the same.
    configured = (
        "Configured Memory Speed"
        if "Configured Memory Speed" in device.fields
        else "Configured Clock Speed"
    )
    return Dimm(
        slot=slot,
        size_bytes=_size(device),
        kind=_text(device, "Type"),
        rated_mts=_number(device, "Speed", _SPEED),
        configured_mts=_number(device, configured, _SPEED),
        manufacturer=_text(device, "Manufacturer"),
        part_number=_text(device, "Part Number"),
        serial=_text(device, "Serial Number"),
        data_width_bits=_number(device, "Data Width", _WIDTH),
        total_width_bits=_number(device, "Total Width", _WIDTH),
        bank=_text(device, "Bank Locator"),
    )


def _text(device: _Structure, key: str) -> str | None:
    value = device.fields.get(key, "")
    return None if _ABSENT.fullmatch(value) else value


def _number(device: _Structure, key: str, pattern: re.Pattern[str]) -> int | None:
    value = _text(device, key)
    if value is None:
        return None
    match = pattern.fullmatch(value)
    if match is None or int(match[1]) > _MOST_NUMBER:
        raise _unknown(
            Message(english("dmi_value_unknown", "this is not a value of that field")),
            f"{key}: {value}",
        )
    return int(match[1]) or None  # 0 means unknown in SMBIOS


def _size(device: _Structure) -> int | None:
    value = _text(device, "Size")
    if value is None:
        return None
    match = _SIZE.fullmatch(value)
    size = int(match[1]) * _BINARY[match[2][0].lower()] if match else None
    if size is None or size > _MOST_BYTES:
        raise _unknown(Message(english("dmi_size_unknown", "this is not a size")), f"Size: {value}")
    return size


def _name(device: _Structure) -> str:
    return _text(device, "Locator") or _text(device, "Bank Locator") or f"handle {device.handle}"


def _ecc(arrays: Iterable[_Structure]) -> str | None:
    ram = [array for array in arrays if array.fields.get("Use") == "System Memory"]
    # "None" is a value here: the memory has no error correction.
    kinds = sorted(
        {array.fields.get("Error Correction Type", "Unknown") for array in ram}
        - {"Unknown", "<OUT OF SPEC>"}
    )
    return f"mixed: {', '.join(kinds)}" if len(kinds) > 1 else next(iter(kinds), None)


def unique_slots(names: Sequence[str], banks: Sequence[str | None]) -> list[str]:
    """Slot names that occur only once, in the same order.

    A repeated name gets its bank in front. If it is still repeated, it gets a number in table
    order.
    """
    count = Counter(names)
    named = [
        f"{bank} {name}" if count[name] > 1 and bank else name
        for name, bank in zip(names, banks, strict=True)
    ]
    count = Counter(named)
    taken, unique = {name for name in named if count[name] == 1}, list[str]()
    # Each name continues from its last number: counting from 1 for every slot would take hours for
    # thousands of slots with one name.
    numbers = {name: itertools.count(1) for name in count}
    for name in named:
        if count[name] > 1:
            numbered = (f"{name} #{number}" for number in numbers[name])
            name = next(candidate for candidate in numbered if candidate not in taken)  # noqa: PLW2901
            taken.add(name)
        unique.append(name)
    return unique
