"""The catalogue: one file a fault, `fixtures/faults/<family>/<name>.toml`.

What is broken, at which seam, and what must be said of it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from acceptance.loads.asks import ASKS
from selftest.row import FAMILIES

FAULTS = Path(__file__).resolve().parents[1] / "fixtures" / "faults"


class CatalogueError(Exception):
    """A file of the catalogue is wrong; the message is one sentence that names it."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class NvmlEdit(_Strict, frozen=True):
    """What the described machine (`fixtures/nvml`) says instead.

    `set` changes keys of a GPU, of all without `gpu`, of the document with `machine`, or of a link
    of it; `after_s` makes a step of the timeline of it, in seconds since a program first asked,
    with `grow` and `xid` as fixtures/nvml/README.md has them. `inside` changes only what is seen in
    the container.
    """

    gpu: int | None = None
    link: int | None = None
    pair: str | None = None
    machine: bool = False
    inside: bool = False
    remove_gpus: tuple[int, ...] = ()
    set: dict[str, Any] = {}
    grow: dict[str, Any] = {}
    xid: int | None = None
    after_s: float | None = None


class Program(_Strict, frozen=True):
    """A program on PATH that is a shell script; `text` lies beside it as a file that `TEXT` in
    the script names.
    """

    script: str
    text: str = ""


class File(_Strict, frozen=True):
    """A file of the described root directory (`sys/...`, `proc/driver/...`, `dev/...`): its
    text, or that it is not there.

    `then` is what a file of sys holds once the fault's `cards_during` runs.
    """

    path: str
    text: str | None = None
    then: str | None = None


class Scratch(_Strict, frozen=True):
    """What lies at `SCRATCH`, which stands for its path in `declared`; the run must leave it as it
    was.

    `other` is a folder in which `.rigproof` belongs to another user. `sealed_mib` makes the file
    that an accepting run keeps, of that size, and `rot` turns one bit at this byte of it.
    """

    kind: Literal[
        "folder", "link", "file", "pipe", "tmpfs", "read-only", "missing", "other", "occupied"
    ] = "folder"
    sealed_mib: int = 0
    rot: int | None = None


class WrongDisk(_Strict, frozen=True):
    """What the preloaded library (`wrong_disk.c`) does to rigproof's files on the disk.

    `number` is a byte of the file; of `pace` MB/s; of errors the bytes after which they come.
    """

    kind: Literal["rest", "flight", "lost", "pace", "EIO", "ENODEV", "ENOSPC", "EROFS"]
    number: Annotated[int, msgspec.Meta(ge=0)]


class NvmeDrive(_Strict, frozen=True):
    """The disk under the self-test's files is shown as an NVMe drive of PCI Express.

    Speeds and lanes as sysfs writes them; `slot_*` are the most of the port above it.
    """

    model: str
    size_bytes: int = 1_024_209_543_168  # what Samsung calls 1 TB
    speed: str = "16.0 GT/s PCIe"
    max_speed: str = "16.0 GT/s PCIe"
    slot_max_speed: str = "16.0 GT/s PCIe"
    width: int = 4
    max_width: int = 4
    slot_max_width: int = 4


class NetworkCard(_Strict, frozen=True):
    """A network card of PCI Express with a port that is up: `ens7` or, of InfiniBand, `mlx7_0/1`.

    The slot has sixteen lanes. `below` is a folder of sys/devices for its PCI function, by default
    one of its own. `then` are files of the port, with what they hold once the fault's
    `cards_during` runs.
    """

    name: str
    speed_mbps: int = 400_000
    width: int = 16
    below: str = ""
    then: dict[str, str] = {}


class Load(_Strict, frozen=True):
    """How a load of ours comes out: `fault` names what the GPU does wrong, `gpu` which, `share`
    what is left of its rate.
    """

    fault: str = ""
    gpu: int = 0
    share: float = 1.0
    dtype: str = ""


class KernelLog(_Strict, frozen=True):
    """Lines of the kernel, in dmesg's words without time; `level` is syslog's.

    They come when the check begins, or lie there before; with `beside`, when that check of the
    other session runs too. With `again` they come once more when that later check begins.

    `lost` is how many messages were overwritten before them.
    """

    lines: tuple[str, ...]
    during: str | None = None
    beside: str | None = None
    again: str | None = None
    level: int = 3
    lost: int = 0


class Kill(_Strict, frozen=True):
    """A process that is ended or stopped while a check runs: the words that its command line
    holds, or `container`, or `harness`.
    """

    what: str
    during: str
    signal: Literal["KILL", "STOP", "SEGV", "TERM"] = "KILL"
    after_s: float = 0.5


class Reboot(_Strict, frozen=True):
    """The machine goes down in the middle of a power step, or while checks run, and the next start
    is in another boot.

    `step` are words of the step as the journal announces it ("2 Hz on 2 GPUs"), `during` are the
    checks that must all be running; everything ends `after_s` seconds after that, and what had not
    been brought to the disk is lost.
    """

    step: str = ""
    during: tuple[str, ...] = ()
    after_s: float = 3.0


class Born(_Strict, frozen=True):
    """The machine as it was when it was accepted: as described, without what the fault changes, and
    with these programs and files instead.

    A baseline of it lies beside the runs when the fault is played.
    """

    programs: dict[str, Program] = {}
    files: tuple[File, ...] = ()


class Expect(_Strict, frozen=True):
    """What must be said: by which check (`run` for the run as a whole, `start` where no run is
    made), with what outcome and words.

    `says` is a regular expression over the JUnit text of that check, or over the closing line of a
    run that passes and is partial, which is no acceptance. `name` tells rows of one file
    apart.

    `cause` is the `what` of the likely cause that must be shown first for the finding that `says`
    is found in; "" where none may be shown, because the run excludes them all.
    """

    check: str
    says: str
    outcome: Literal["fail", "error", "skip", "refused", "partial"] = "fail"
    name: str = ""
    cause: str | None = None


class Fault(_Strict, frozen=True):
    """One fault.

    `machine` is a description of fixtures/nvml; without it this machine is taken, without GPUs.

    `also` are checks that may speak too, as regular expressions of their ids: every other check of
    the run must pass. `fails` is how many failures the verdict lists, each fault once. `code` is
    rigproof's exit status. `station` is where the load session runs.
    `timeline_from` is the check with whose beginning the timeline of the described machine begins,
    for all programs of the host. `cards_during` is the check with whose beginning network cards and
    files change. `pipe` makes the machine file a named pipe that nobody writes to.
    """

    what: str
    expect: tuple[Expect, ...]
    code: Literal[0, 1, 2, 3]
    machine: str | None = None
    only: str | None = None
    burn: float = 1.0
    profile: str = "smoke"
    station: Literal["docker", "host"] = "docker"
    nvml: tuple[NvmlEdit, ...] = ()
    timeline_from: str | None = None
    tools: dict[str, str] = {}
    programs: dict[str, Program] = {}
    loads: dict[str, Load] = {}
    files: tuple[File, ...] = ()
    scratch: Scratch | None = None
    wrong_disk: WrongDisk | None = None
    nvme: NvmeDrive | None = None
    cards: tuple[NetworkCard, ...] = ()
    cards_during: str | None = None
    kernel_log: KernelLog | None = None
    kill: Kill | None = None
    reboot: Reboot | None = None
    declared: str | None = None
    pipe: bool = False
    born: Born | None = None
    arguments: tuple[str, ...] = ()
    image_steps: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    fails: Annotated[int, msgspec.Meta(ge=1)] | None = None
    long: bool = False
    within_s: Annotated[float, msgspec.Meta(gt=0)] = 90.0

    @property
    def seam(self) -> str:
        """Where the fault goes in, in DESIGN's words."""
        parts = [
            ("NVML", bool(self.nvml)),
            ("program", bool(self.tools or self.programs)),
            ("load", bool(self.loads)),
            ("files", bool(self.files or self.scratch or self.nvme or self.cards)),
            ("preloaded library", self.wrong_disk is not None),
            ("kernel log", self.kernel_log is not None),
            ("process", self.kill is not None),
            ("power and boot id", self.reboot is not None),
            ("baseline", self.born is not None),
            ("machine file", self.declared is not None),
            ("arguments", bool(self.arguments)),
            ("image", bool(self.image_steps)),
        ]
        return ", ".join(name for name, there in parts if there) or "machine"


class Named(_Strict, frozen=True):
    """A fault with its place in the catalogue."""

    family: str
    name: str
    fault: Fault


def read(folder: Path = FAULTS) -> tuple[Named, ...]:
    """The whole catalogue, in order of family and name. Raises CatalogueError."""
    found = tuple(_read(path) for path in sorted(folder.glob("*/*.toml")))
    order = list(FAMILIES)
    return tuple(sorted(found, key=lambda one: (order.index(one.family), one.name)))


def _read(path: Path) -> Named:
    family = path.parent.name.replace("-", " ").replace("set up", "set-up")
    if family not in FAMILIES:
        raise CatalogueError(
            f"{path}: there is no family {family!r} of faults: choose one of {', '.join(FAMILIES)}"
        )
    try:
        fault = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Fault)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path}: {error}") from error
    if trouble := next(_troubles(fault), None):
        raise CatalogueError(f"{path}: {trouble}")
    return Named(family, path.stem, fault)


def _troubles(fault: Fault) -> Iterator[str]:
    if not fault.expect:
        yield "says nothing of what must be said: give an [[expect]]"
    if unknown := sorted(set(fault.loads) - set(ASKS)):
        yield f"changes the load {unknown[0]!r}, which is none: choose one of {', '.join(ASKS)}"
    names = [one.name for one in fault.expect]
    if len(set(names)) != len(names):
        yield "has two [[expect]] of one name: name them apart"
    for one in fault.expect:
        if len(one.says) < 8:
            yield (
                f"`says = {one.says!r}` would be found in any text: quote the words that must "
                "be "
                "said"
            )
        if one.cause is not None and one.outcome in ("refused", "partial"):
            yield (
                f"has a `cause` for what is {one.outcome}, which has no finding: take it away, or "
                "name the outcome of a finding (fail, error or skip)"
            )
        try:
            re.compile(one.says)
        except re.error as error:
            yield f"`says = {one.says!r}` is no regular expression ({error})"
    said = fault.kernel_log
    if said is not None and (said.beside or said.again) and not said.during:
        yield "has lines of the kernel beside a check, and during none: give kernel_log `during`"
    if fault.reboot is not None and bool(fault.reboot.step) == bool(fault.reboot.during):
        yield "restarts the machine at no moment, or at two: give its reboot `step` or `during`"
    if fault.code == 0 and any(one.outcome != "partial" for one in fault.expect):
        yield (
            "ends with code 0, which is a pass: a fault that is caught ends with 1, 2 or 3, or is "
            "partial"
        )
    changes = any(card.then for card in fault.cards)
    changes = changes or any(file.then is not None for file in fault.files)
    if changes and fault.cards_during is None:
        yield "changes network cards or files at no moment: give `cards_during`, a check"
    if (fault.scratch or fault.wrong_disk or fault.nvme) and fault.station == "docker":
        yield "puts a fault below files of the host, and tests in a container: take station = host"
    if fault.machine is None and (fault.nvml or fault.tools):
        yield "changes GPUs, and names no machine that has any"
