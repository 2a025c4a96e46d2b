"""A machine file drafted from what was found, to be corrected by hand: it captures a defect as readily as a virtue."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from acceptance.observe.inventory import Inventory, gpus

GIB = 1 << 30


class DraftError(Exception):
    """The draft cannot be written; the message is one sentence."""


def _text(text: str) -> str:
    """A TOML basic string. JSON's escapes are TOML's, but for the DEL character, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(inventory: Inventory) -> Iterator[str]:
    cpu, memory, board = inventory.cpu, inventory.memory, inventory.board
    yield "# Drafted by `rigproof inventory` from what the machine shows now. Correct it by hand: what is missing or slow today is drafted"
    yield "# as if it were meant to be so. Compare each line with what you bought, and remove what you do not want checked."
    yield "schema = 1"
    yield f"name = {_text(board.hostname or 'machine')}"
    yield f"gpus = {len(gpus(inventory))}"
    yield ""
    yield "[cpu]"
    if cpu.model is not None:
        yield f"model = {_text(cpu.model)}"
    for key, value in (("sockets", cpu.sockets), ("cores", cpu.cores), ("threads", cpu.threads)):
        if value is not None:
            yield f"{key} = {value}"
    if cpu.governor is not None and not cpu.governor.startswith("mixed"):
        yield f"governor = {_text(cpu.governor)}"
    yield ""
    yield "[memory]"
    if memory.dimms:
        sizes = [dimm.size_bytes for dimm in memory.dimms]
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes):
            yield f"total_gib = {sum(known) // GIB}"
        yield f"dimms = {len(memory.dimms)}"
        yield "# channels = 2  # how many memory channels the modules fill: with it, memory bandwidth is judged"
    else:
        yield f"total_gib = {-(-memory.total_bytes // GIB)}  # what the kernel manages, rounded up; put in what you bought"
        yield f"# modules were not read: {' '.join((memory.dimms_unread or 'none listed').split())}"
    for dimm in memory.dimms or ():
        yield ""
        yield "[[memory.dimm]]"
        yield f"slot = {_text(dimm.slot)}"
        if dimm.size_bytes is not None and dimm.size_bytes % GIB == 0:
            yield f"size_gib = {dimm.size_bytes // GIB}"
        for key, value in (("rated_mts", dimm.rated_mts), ("configured_mts", dimm.configured_mts)):
            if value is not None:
                yield f"{key} = {value}"
        if dimm.part_number is not None:
            yield f"part_number = {_text(dimm.part_number)}"
    yield from _system(inventory)
    yield from _devices(inventory)


def _system(inventory: Inventory) -> Iterator[str]:
    board = inventory.board
    rows = [("board", board.name), ("bios_version", board.bios_version), ("driver", board.nvidia_driver)]
    known = [(key, text) for key, text in rows if text is not None]
    if known:
        yield ""
        yield "[system]"
        yield from (f"{key} = {_text(text)}" for key, text in known)


def _devices(inventory: Inventory) -> Iterator[str]:
    functions = {function.address: function for function in inventory.pci}
    for gpu in gpus(inventory):
        function = functions[gpu.pci_address]
        yield ""
        yield "[[gpu]]"
        if gpu.model is not None:
            yield f"model = {_text(gpu.model)}"
        yield f"pci_id = {_text(gpu.device_id)}"
        yield f"address = {_text(gpu.pci_address)}"
        widths = [width for width in (function.max_link_width, function.slot_max_link_width) if width is not None]
        if widths:
            yield f"link_width = {min(widths)}"
    models = Counter(
        (disk.model, int(disk.size_bytes // 10**9))
        for disk in inventory.disks
        if disk.model is not None and disk.size_bytes >= 10**9
    )
    for (model, size), count in models.items():
        yield ""
        yield "[[disk]]"
        yield f"model = {_text(model or '')}"
        yield f"count = {count}"
        yield f"size_gb = {size}"
    for link in inventory.links:
        if link.up and link.kind != "wireless":
            yield ""
            yield "[[network]]"
            yield f"name = {_text(link.name)}"
            if link.speed_mbps is not None:
                yield f"speed_mbps = {link.speed_mbps}"


def render(inventory: Inventory) -> str:
    """The draft's text."""
    return "\n".join(_lines(inventory)) + "\n"


def write(inventory: Inventory, file: Path) -> None:
    """Write the draft. Raises DraftError when the file is there already: a machine file is somebody's work."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(render(inventory))
    except FileExistsError as error:
        raise DraftError(f"{file}: is there already and is not overwritten: give another name") from error
    except OSError as error:
        raise DraftError(f"{file}: cannot be written ({error.strerror}): give another place") from error
