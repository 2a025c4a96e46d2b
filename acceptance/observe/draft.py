"""Drafts a machine file from the inventory, to be corrected by hand.

The draft describes the machine as it is, with its defects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from acceptance.core.limit import GIB
from acceptance.core.message import UserError
from acceptance.machine import network_card, topology
from acceptance.machine.channels import channels
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory, NetworkLink, known
from acceptance.machine.waiver_lines import VIRTUAL_DISK, of_skip, toml_text
from acceptance.wording import words

_HEAD = """\
# Drafted by `rigproof inventory` from what the machine shows now. Correct it by hand:
# what is missing or slow today is drafted as if it were meant to be so. Compare each
# line with what you bought, and remove what you do not want checked.
schema = 1"""
_NO_GPU = """\
# No GPU was found. Put in the number that you bought and remove the #; 0 declares a
# machine without GPUs. Without this line at least one is due.
# gpus = 1"""
_ORDER = """
# [order]  # the reports name both
# number = "..."
# asset_tag = "..."
# [psu]
# watts = 1600  # held against the power limits of GPUs and processors before a run

[cpu]"""
_NO_CARD = """
# [[gpu]]  # one table for each card; or count = 2 in one for two equal cards
# model = "NVIDIA GeForce RTX 4090"
# link_width = 16  # lanes of card and slot
# link_gen = 4"""
_NO_PAIR = """
# [[gpu_pair]]  # one table for each two GPUs whose way to each other is due
# between = [0, 1]
# path = "PHB"  # as `nvidia-smi topo -m` prints it; NV4 is four NVLinks
# p2p = false"""
_FOLDERS = """
# Folders on disks to test, one for each disk; without any, the disk of the reports is
# tested. The tests write some GiB there, and remove them again."""
_NO_FOLDER = """\
# [[scratch]]
# path = "/data\""""
# Allowed values of `link_width` in a machine file; PCI Express also has x12 and x32.
_WIDTHS = (1, 2, 4, 8, 16)
# Allowed values of `path` beside those of NVLinks; two GPUs on one board have another.
_PATHS = ("PIX", "PXB", "PHB", "NODE", "SYS")


def _comment(text: str) -> str:
    """Text as one line of a TOML comment, which must not contain control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _pairs(**values: str | int | None) -> Iterator[str]:
    """`key = value` for every known value; an empty text or 0 is not allowed in a machine file."""
    for key, value in values.items():
        if value:
            yield f"{key} = {toml_text(value) if isinstance(value, str) else value}"


def _lines(inventory: Inventory, filesystems: Sequence[Filesystem]) -> Iterator[str]:
    cpu, board = inventory.cpu, inventory.board
    governor = None if cpu.governor is None or cpu.governor.startswith("mixed") else cpu.governor
    yield _HEAD
    yield f"name = {toml_text(board.hostname or 'machine')}"
    # Left out where none was found, so that the draft cannot pass as it is.
    count = len(gpus(inventory))
    yield f"gpus = {count}" if count else _NO_GPU
    yield _ORDER
    yield from _pairs(
        model=cpu.model,
        sockets=cpu.sockets,
        cores=cpu.cores,
        threads=cpu.threads,
        governor=governor,
    )
    yield from _memory(inventory)
    system = list(
        _pairs(board=board.name, bios_version=board.bios_version, driver=board.nvidia_driver)
    )
    if system:
        yield "\n[system]"
        yield from system
    yield from _gpus(inventory)
    yield from _devices(inventory)
    yield from _scratches(filesystems)
    yield from _waivers(inventory)


def _memory(inventory: Inventory) -> Iterator[str]:
    memory, found = inventory.memory, channels(inventory)
    yield "\n[memory]"
    if not memory.dimms:
        total = known(memory.total_bytes)
        yield (
            f"total_gib = {-(-total // GIB)}  # what the kernel manages, rounded "
            "up; put in what you bought"
        )
        why = words.text(memory.dimms_unread or "none listed")
        yield f"# modules were not read: {_comment(why)}"
        return
    sizes = [dimm.size_bytes for dimm in memory.dimms]
    told = [size for size in sizes if size is not None]
    if len(told) == len(sizes):
        yield from _pairs(total_gib=sum(told) // GIB)
    yield f"dimms = {len(memory.dimms)}"
    yield (
        f"# channels = {len(found.filled) if found else 2}  # how many memory channels the modules "
        "fill, all alike: with it, they are counted and memory bandwidth is judged"
    )
    for dimm in memory.dimms:
        whole = dimm.size_bytes is not None and dimm.size_bytes % GIB == 0
        yield f"\n[[memory.dimm]]\nslot = {toml_text(dimm.slot)}"
        yield from _pairs(
            size_gib=dimm.size_bytes // GIB if whole and dimm.size_bytes else None,
            rated_mts=dimm.rated_mts,
            configured_mts=dimm.configured_mts,
            part_number=dimm.part_number,
        )


def _gpus(inventory: Inventory) -> Iterator[str]:
    """A table for each card and for each link between two; as comments where there is none."""
    due = gpus(inventory)
    if not due:
        yield _NO_CARD
    for gpu in due:
        yield "\n[[gpu]]"
        yield from _pairs(model=gpu.model, pci_id=gpu.device_id, address=gpu.pci_address)
        yield from _link(gpu)
        yield from _pairs(nvlink_links=gpu.active_links or None)
    pairs = list(_gpu_pairs(inventory))
    yield from pairs
    if not pairs and len(due) != 1:
        yield _NO_PAIR


def _link(gpu: Gpu) -> Iterator[str]:
    """The widest and fastest link of card and slot.

    As comments where the slot is not shown, as in a VM: the card alone may be more than its slot.
    """
    generation, lanes = gpu.slot_link
    width = gpu.link_width if gpu.link_width in _WIDTHS else None
    for line, slot in (
        *((line, lanes) for line in _pairs(link_width=width)),
        *((line, generation) for line in _pairs(link_gen=gpu.link_generation)),
    ):
        yield line if slot else f"# {line}  # of the card; what its slot has is not shown"


def _devices(inventory: Inventory) -> Iterator[str]:
    models = Counter(
        (disk.model, known(disk.size_bytes) // 10**9)
        for disk in known(inventory.disks)
        if disk.model
    )
    for (model, size), count in models.items():
        yield "\n[[disk]]"
        yield from _pairs(model=model, count=count, size_gb=size)
    for link in known(inventory.links):
        if link.up and link.kind != "wireless":
            yield "\n[[network]]"
            yield from _pairs(name=link.name, speed_mbps=link.speed_mbps)
            if near := _near(inventory, link):
                yield f"gpus = {near}"


def _scratches(filesystems: Sequence[Filesystem]) -> Iterator[str]:
    """A table for each disk with a filesystem, as comments: what is tested there is written."""
    yield _FOLDERS
    for one in filesystems:
        disks = _comment(", ".join(one.disks))
        yield f"# [[scratch]]\n# path = {toml_text(one.mount)}  # on {disks}"
    if not filesystems:
        yield _NO_FOLDER


def _waivers(inventory: Inventory) -> Iterator[str]:
    """The waivers that a machine with virtual disks needs, as comments."""
    virtual = [disk for disk in known(inventory.disks) if disk.kind == "virtual"]
    if virtual:
        yield "\n# No run passes without these, unless the disks do report their health."
    for disk in virtual:
        lines = of_skip("storage.smart_health", disk.component, VIRTUAL_DISK)
        yield from (f"# {line}" for line in lines)


def _near(inventory: Inventory, link: NetworkLink) -> list[int]:
    """The numbers of the GPUs to which a link's card is the nearest, or one of the nearest.

    Left out are GPUs to which every card is equally near.
    """
    cards = network_card.cards(known(inventory.links))
    numbers = []
    for number, gpu in enumerate(gpus(inventory)):
        found = network_card.nearest(inventory, gpu)
        near = [port.pci_address for port in found[1]] if found is not None else []
        if link.pci_address in near and len(near) < len(cards):
            numbers.append(number)
    return numbers


def _gpu_pairs(inventory: Inventory) -> Iterator[str]:
    """The links that are due: pairs of GPUs with NVLinks or with peer access both ways."""
    due = gpus(inventory)
    numbers = {gpu.name: number for number, gpu in enumerate(due)}
    told = {(a.name, b.name): pair for a, b, pair in topology.pairs(inventory, due)}
    cells = topology.build(inventory, inventory.places).cells
    for a, b in combinations(due, 2):
        ways = [told.get((a.name, b.name)), told.get((b.name, a.name))]
        offered = all(way is not None and way.p2p_read == way.p2p_write == "ok" for way in ways)
        if not offered and not topology.nvlinks(a, b):
            continue
        path = cells.get((str(a.name), str(b.name)))
        yield "\n[[gpu_pair]]"
        yield f"between = [{numbers[a.name]}, {numbers[b.name]}]"
        yield from _pairs(path=path if path in _PATHS or _is_nvlink(path) else None)
        yield f"p2p = {str(offered).lower()}"


def _is_nvlink(path: str | None) -> bool:
    return path is not None and path.startswith("NV")


def render(inventory: Inventory, filesystems: Sequence[Filesystem] = ()) -> str:
    """The text of the draft; `filesystems` are those that storage tests may be pointed at."""
    return "\n".join(_lines(inventory, filesystems)) + "\n"


def write(inventory: Inventory, file: Path, filesystems: Sequence[Filesystem] = ()) -> None:
    """Write the draft.

    Raises UserError when the file exists, because it may hold somebody's work.
    """
    text = render(inventory, filesystems)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise UserError(
            f"{file}: is there already and is not overwritten: give another name"
        ) from error
    except OSError as error:
        raise UserError(
            f"{file}: cannot be written ({error.strerror}): give another place"
        ) from error
