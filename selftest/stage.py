"""Where one fault is played: files, programs and a kernel log of its own around a real rigproof, in
a mount namespace of its own.

Nothing outside of it changes, and the lock is its own too: faults are played side by side, none of
them with this machine's load.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import fake_driver
import fakes
import gpu_box
import msgspec
from machine_root import sysfs_tree
from rig import Rig, processes, still_proc, wait_for
from run_left import Run

from acceptance.core import notes
from acceptance.core.message import Message
from acceptance.core.record import CheckEnded, CheckStarted
from acceptance.journal import clock, reader
from acceptance.process import orphans
from acceptance.run import unfinished
from acceptance.wording import words
from selftest import fault_baseline, network_card, nvme_drive, power, scratch_folder, wrong_disk
from selftest.edits import Document, edited
from selftest.fault import Born, Fault, KernelLog, Reboot
from selftest.images import Images

ENDS_S = 400.0  # that a run may last; a machine with much else to do takes long to make an image
# $1: the described root. `kept` has what the overlay of /dev hides; `binds` lists single files
# under /proc.
MOUNTS = """
set -e
root=$1; shift
mkdir -p "$root/kept" "$root/lock"
mount --rbind /dev "$root/kept"
mount -t overlay described -o "lowerdir=$root/sys:/sys" /sys
mount -t overlay described -o "lowerdir=$root/dev:/dev" /dev
for folder in shm pts; do mount --rbind "$root/kept/$folder" "/dev/$folder"; done
mount --bind "$root/kmsg" /dev/kmsg
mount --bind "$root/lock" /run/lock
while read -r file; do mount --bind "$root/$file" "/$file"; done <"$root/binds"
. "$root/scratch"
[ ! -f "$root/boot_id" ] || mount --bind "$root/boot_id" /proc/sys/kernel/random/boot_id
exec "$@"
"""


class StageError(Exception):
    """A fault cannot be played as its file asks; the message is one sentence."""


class EndedBefore(StageError):
    """The run ended before the moment at which its fault is put in: it shows nothing of it."""


@dataclass
class Stage:
    """One fault's corner.

    `library` is the folder of the fake NVML library, `rigproof` how the command line of rigproof
    begins.
    """

    home: Path
    fault: Fault
    library: Path
    rigproof: Sequence[str]
    images: Images | None
    _records: int = 0
    rig: Rig = field(init=False)
    root: Path = field(init=False)
    _scratch: list[str] = field(init=False, default_factory=list)
    image: str | None = None

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        self.rig = Rig(self.home)
        self.root = self.home / "root"
        for name in ("sys", "dev", "proc/driver"):
            (self.root / name).mkdir(parents=True)
        if self.fault.pipe:
            self.rig.machine.unlink(missing_ok=True)
            os.mkfifo(self.rig.machine)
        elif self.fault.declared is not None:
            declared = self.fault.declared.replace("SCRATCH", str(self.home / "scratch"))
            self.rig.machine.write_text(declared, encoding="utf-8")
        self._machine()
        self._disk()
        self.programs(self.rig.fakes)
        self._files()
        self._kmsg()
        if self.fault.born is not None:
            self._accepted(self.fault.born)

    def _accepted(self, as_it_was: Born) -> None:
        """Lay a baseline beside the runs: of the same machine without the fault, which rigproof
        looks at in a corner of its own.
        """
        whole = msgspec.structs.replace(
            self.fault,
            nvml=(),
            programs=as_it_was.programs,
            files=as_it_was.files,
            timeline_from=None,
            born=None,
        )
        before = Stage(self.home / "born", whole, self.library, self.rigproof, None)
        try:
            started = before.rig.start(["inventory", "--json"], program=before.inside, wait=False)
            shown, trouble = started.communicate(timeout=ENDS_S)
            if started.returncode != 0:
                raise StageError(
                    f"the machine without the fault could not be looked at: {trouble.strip()}"
                )
            fault_baseline.lay(self.rig.out, json.loads(shown))
        finally:
            before.clear()
            shutil.rmtree(before.home, ignore_errors=True)

    @property
    def inside(self) -> list[str]:
        """How the command line of rigproof begins in this corner."""
        return ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", str(self.root), *self.rigproof]

    # --- what is laid out ---

    def _machine(self) -> None:
        if self.fault.machine is None:
            (self.root / "sys/bus/pci/devices").mkdir(parents=True)
        else:
            path = self.home / "described.json"
            path.write_text(json.dumps(self.described(inside=False)), encoding="utf-8")
            sysfs_tree(self.root, path)
            self._nodes()
            gpu_box.install(self.rig.fakes, sys.executable, self.fault.tools)
            self.rig.variables |= fake_driver.environment(self.library, path)
            if self.fault.timeline_from is not None:
                self.rig.variables["RIGPROOF_FAKE_NVML_EPOCH"] = str(self._epoch)
        gpu_box.hide_real_gpus(self.root)

    def _disk(self) -> None:
        """The folder that is to be tested, the disk under it, and what that does wrong."""
        if self.fault.wrong_disk is not None:
            library = wrong_disk.build(self.library)
            self.rig.variables |= wrong_disk.environment(library, self.fault.wrong_disk, self.home)
        if self.fault.nvme is not None:
            nvme_drive.lay(self.root, self.home, self.fault.nvme)
        for number, card in enumerate(self.fault.cards):
            network_card.lay(self.root, number, card)
        mounts = ""
        if self.fault.scratch is not None:
            mounts = scratch_folder.lay(self.home / "scratch", self.fault.scratch)
            self._scratch = scratch_folder.listing(self.home / "scratch")
        (self.root / "scratch").write_text(mounts, encoding="utf-8")

    def _nodes(self) -> None:
        """Device nodes where the tree has plain files: of those nobody may write in an overlay
        without an upper layer.
        """
        for node in (self.root / "dev").iterdir():
            node.unlink()
            os.mknod(node, 0o020666, os.makedev(1, 3))
            node.chmod(0o666)

    def described(self, *, inside: bool) -> Document:
        """The described machine, as the host or the container is to see it."""
        assert self.fault.machine is not None
        return edited(gpu_box.document(self.fault.machine), self.fault.nvml, inside=inside)

    def programs(self, folder: Path) -> None:
        """Put the fault's own programs into a folder, of the host or of its image."""
        for name, told in self.fault.programs.items():
            text = folder / f"{name}.TEXT"
            text.write_text(told.text, encoding="utf-8", newline="")
            # The script finds its text beside itself, on the host and in the container.
            fakes.program(folder, name, told.script.replace("TEXT", f'"${{0%/*}}/{name}.TEXT"'))

    def _files(self) -> None:
        binds = [*still_proc(self.root)]
        if any((self.root / "proc/driver").iterdir()):
            binds.append("proc/driver")
        for file in self.fault.files:
            path = self.root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.text is None:
                path.unlink(missing_ok=True)
                if Path("/", file.path).exists():
                    os.mknod(path, 0o020000, os.makedev(0, 0))  # an overlay's whiteout
            else:
                path.write_text(file.text, encoding="utf-8")
                if file.path.startswith("proc/") and not file.path.startswith("proc/driver"):
                    binds.append(file.path)
        (self.root / "binds").write_text("".join(f"{one}\n" for one in binds), encoding="utf-8")

    def _kmsg(self) -> None:
        (self.root / "kmsg").write_text("", encoding="utf-8")
        if not Path("/dev/kmsg").exists():
            raise StageError(
                "this machine has no /dev/kmsg to lay a kernel log over: run the self-test "
                "on the host itself"
            )
        self.log(KernelLog(("Linux version 6.12.0 (rigproof self-test)",), level=6))
        if self.fault.kernel_log is not None and self.fault.kernel_log.during is None:
            self.log(self.fault.kernel_log)

    def log(self, said: KernelLog) -> None:
        """The kernel says something now."""
        self._records += said.lost
        with (self.root / "kmsg").open("a", encoding="utf-8") as file:
            for line in said.lines:
                file.write(f"{said.level},{self._records},{int(time.monotonic() * 1e6)},-;{line}\n")
                self._records += 1

    # --- how it is played ---

    def play(self) -> tuple[Run, float]:
        """The run to its end, and the boot-time clock at its beginning.

        Raises StageError where the fault could not be put in, EndedBefore where its moment had
        passed before.
        """
        argv = [
            *self.rig.argv(only=self.fault.only, burn=None, machine=self._declares),
            *self._arguments(),
        ]
        program = self.inside
        before, began, boot_s = self.rig.runs(), time.monotonic(), clock.boot_s()
        started = self.rig.start(argv, program=program, wait=False)
        if self.fault.reboot is not None:
            run, told = self._restarted(started, before, self.fault.reboot)
            awaited = [one.says for one in self.fault.expect if one.check == "run"]
            if not all(re.search(says, told) for says in awaited):
                raise StageError(f"the next start said otherwise: {told}")
            return replace(run, seconds=time.monotonic() - began), boot_s
        during = self._during(started, before)
        run = self.rig.finish(started, before, began, ENDS_S)
        if during is not None and run.folder is not None:
            require_running(run.folder, *during)
        if self.fault.scratch is not None:
            left = scratch_folder.listing(self.home / "scratch")
            if left != self._scratch:
                raise StageError(f"the run left {left} in its scratch, not {self._scratch}")
        return run, boot_s

    def _restarted(
        self, started: subprocess.Popen[str], before: set[Path], reboot: Reboot
    ) -> tuple[Run, str]:
        """The run in which the machine goes down, as the next start, in another boot, has closed
        it; and what that start said.
        """
        awaited = reboot.step or " and ".join(reboot.during)
        folder = self._run_folder(started, before, awaited)
        wait_for(lambda: began_s(folder, reboot) is not None or started.poll() is not None, ENDS_S)
        # From when it began, not from when it was noticed: a step lasts for seconds.
        left_s = (began_s(folder, reboot) or 0.0) + reboot.after_s - clock.boot_s()
        time.sleep(max(0.0, left_s))
        if started.poll() is not None:
            raise EndedBefore(f"the run ended before {awaited!r}: {started.communicate()[0]}")
        containers = [] if self.images is None else self.images.running(folder.name)
        power.off(started.pid, lambda: orphans.find(folder.name), containers)
        started.communicate()
        if began_s(folder, reboot) is None:
            raise EndedBefore(f"{awaited!r} was over before the machine went down")
        wait_for(lambda: not orphans.find(folder.name), ENDS_S)
        power.lose(folder, random.Random(self.fault.what))
        (self.root / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        shortest = self.rig.argv(only="gpu.present", burn=None, machine=self._declares)
        told = self._start(shortest)
        shown = self._start(["report", str(folder)])
        return replace(shown, folder=folder), told.out + told.err

    def _start(self, arguments: Sequence[str]) -> Run:
        """Another start of rigproof in this corner, to its end."""
        began, before = time.monotonic(), self.rig.runs()
        started = self.rig.start(arguments, program=self.inside, wait=False)
        return self.rig.finish(started, before, began, ENDS_S)

    @property
    def _epoch(self) -> Path:
        """The file that says when the described machine's timeline began."""
        return self.home / "epoch"

    @property
    def _declares(self) -> bool:
        """Whether a machine file is named: a described machine has none unless
        the fault gives it one.
        """
        return self.fault.machine is None or self.fault.declared is not None

    def _arguments(self) -> list[str]:
        found = [
            "--profile",
            self.fault.profile,
            "--station",
            self.fault.station,
            "--burn",
            f"{self.fault.burn:g}",
        ]
        if self.fault.station == "docker":
            if self.images is None:
                raise StageError(
                    "it is played in a container, and no engine was found: run `make engine` "
                    "as root"
                )
            if self.fault.machine is not None:
                self._on_the_host()
            described = None if self.fault.machine is None else self.described(inside=True)
            self.image = self.images.of(self.home, self.fault, described, self.programs)
            found += ["--image", self.image]
        return [*found, *self.fault.arguments]

    def _on_the_host(self) -> None:
        """Beside a container: tools of the host that must not be what runs, and an ldconfig that
        knows the driver's two libraries.
        """
        for tool in gpu_box.PROGRAMS:
            if tool not in self.fault.programs:
                fakes.program(self.rig.fakes, tool, "exit 99")
        (self.home / "libcuda.so.1").write_bytes(b"")
        there = {"libcuda.so.1": self.home, "libnvidia-ml.so.1": self.library}
        word = {"x86_64": "x86-64", "aarch64": "AArch64"}[os.uname().machine]
        listing = "".join(
            f"\t{name} (libc6,{word}) => {folder}/{name}\n" for name, folder in there.items()
        )
        (self.home / "ldconfig.txt").write_text(listing, encoding="utf-8")
        fakes.program(self.rig.fakes, "ldconfig", f"cat '{self.home}/ldconfig.txt'")

    def _during(
        self, started: subprocess.Popen[str], before: set[Path]
    ) -> tuple[tuple[str, ...], float] | None:
        """What happens while checks run: these, which are not to have ended by that time of the
        boot-time clock; None where nothing does, or it may go on after them.
        """
        kill, said = self.fault.kill, self.fault.kernel_log
        check = (
            kill.during
            if kill
            else said.during
            if said and said.during
            else self.fault.timeline_from or self.fault.cards_during
        )
        if check is None:
            return None
        folder = self._run_folder(started, before, check)
        try:
            self.rig.reached(folder, check, ENDS_S)
        except AssertionError:
            if started.poll() is None:
                raise
            told = "".join(started.communicate())[-300:].strip()
            raise EndedBefore(f"the run ended before {check}: {told}") from None
        put_in: tuple[tuple[str, ...], float] | None = None
        if self.fault.cards_during is not None:
            for card in self.fault.cards:
                network_card.change(self.root, card)
            for file in self.fault.files:
                if file.then is not None:
                    (self.root / file.path).write_text(file.then, encoding="utf-8")
        if said is not None and said.during is not None:
            if said.beside:
                both = {said.during, said.beside}
                wait_for(
                    lambda: both <= set(now_running(folder)) or started.poll() is not None, ENDS_S
                )
            put_in = tuple(filter(None, (said.during, said.beside))), clock.boot_s()
            self.log(said)
            if said.again:
                require_running(folder, *put_in)
                self.rig.reached(folder, said.again, ENDS_S)
                put_in = (said.again,), clock.boot_s()
                self.log(said)
        if self.fault.timeline_from is not None:
            part = self.home / "epoch.part"
            part.write_text(repr(clock.boot_s()), encoding="utf-8")
            part.replace(self._epoch)
        if kill is not None:
            time.sleep(kill.after_s)
            put_in = (kill.during,), clock.boot_s()
            try:
                self._kill(folder)
            except AssertionError:  # what was to be killed is not there
                require_running(folder, *put_in)
                raise
        return put_in

    def _run_folder(self, started: subprocess.Popen[str], before: set[Path], awaited: str) -> Path:
        """The folder of the run that begins now. Raises StageError where none is made."""
        folder = wait_for(
            lambda: next(iter(self.rig.runs() - before), None) or started.poll() is not None, ENDS_S
        )
        if not isinstance(folder, Path):
            why = started.communicate()[1].strip()
            raise StageError(f"no run was made in which {awaited} could begin: {why}")
        return folder

    def _kill(self, folder: Path) -> None:
        kill = self.fault.kill
        assert kill is not None
        number = signal.Signals[f"SIG{kill.signal}"]
        if kill.what == "container":
            assert self.images is not None
            self.images.kill(folder.name)
            return
        words = kill.what.split()
        found = wait_for(lambda: processes(folder.name, *words) or beside(folder, words), 10.0)
        os.kill(found[-1], number)

    def clear(self) -> None:
        """End what was left running, and remove the image."""
        self.rig.clear()
        if self.image is not None and self.images is not None:
            self.images.remove(self.image)


def began_s(folder: Path, reboot: Reboot) -> float | None:
    """When the step, which is the last that the journal announces, or the last of the checks,
    which are running, began by the boot-time clock; None where that is not so.
    """
    if not (folder / reader.SUPERVISOR).exists():
        return None
    found = reader.read(folder).entries
    if not reboot.step:
        began = {one.body.check: one.boot_s for one in found if isinstance(one.body, CheckStarted)}
        running = set(unfinished.running_checks(found))
        return max(began[one] for one in reboot.during) if running >= set(reboot.during) else None
    spans = [span for steps in notes.steps_by_check(found) for span in steps]
    last = spans[-1].step if spans else None
    is_it = isinstance(last, Message) and reboot.step in words.message(last)
    return spans[-1].began_s if is_it else None


def require_running(folder: Path, checks: Sequence[str], moment_s: float) -> None:
    """Raise EndedBefore where one of these checks had ended at that moment, by the journal."""
    for entry in reader.read(folder).entries:
        body = entry.body
        if isinstance(body, CheckEnded) and body.check in checks and entry.boot_s < moment_s:
            late_s = moment_s - entry.boot_s
            raise EndedBefore(f"{body.check} ended {late_s:.1f} s before its fault came")


def now_running(folder: Path) -> tuple[str, ...]:
    """The checks that run at this moment, by the journal."""
    if not (folder / reader.SUPERVISOR).exists():
        return ()
    return unfinished.running_checks(reader.read(folder).entries)


def beside(folder: Path, words: Sequence[str]) -> list[int]:
    """Processes of the run itself and no session's (its watch, say): by their command lines,
    which name its folder.
    """
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (place / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if all(word in line for word in (str(folder), *words)) and "reaper.py" not in line:
                found.append(int(place.name))
    return sorted(found)
