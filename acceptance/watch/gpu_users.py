"""GpuUsers: looks once a second for foreign processes on the GPUs under test.

A process belongs to the run when it or one of its ancestors has the run's id in its environment, as
RIGPROOF_RUN. That includes loads in a container: the host sees them under the process ids that NVML
reports. A process that NVML lists and /proc does not show is in another process namespace. Such
processes can only be counted: as many of them may be ours as programs of ours hold CUDA open
without being listed themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from acceptance.core.evidence import AnyBody
from acceptance.core.limit import GIB
from acceptance.core.message import Message, english
from acceptance.core.parts import Component
from acceptance.core.record import ForeignProcess, GpuUser, Note
from acceptance.journal import clock
from acceptance.machine.inventory import GpuProcess, Users
from acceptance.observe import gpu_traits, readiness
from acceptance.observe.nvml_call import ask_or_none
from acceptance.process import orphans

if TYPE_CHECKING:  # not at run time: whatever starts a run imports this and needs no thread pool
    from concurrent.futures import Executor

UserKind = Literal["ours", "foreign", "unreadable", "ending", "elsewhere"]

# The device node that a program must open to compute; a program that only asks NVML does not.
CUDA_NODE = "/dev/nvidia-uvm"
# Time until a doubtful process is judged again: it may have just begun or be about to end.
AGAIN_S = 2.5
# A driver takes some seconds to free the memory of a program that has ended, and lists it until
# then.
LINGER_S = 20.0
# Growth of the memory that no listed process holds. The driver's own share changes by some MiB with
# each context. A CUDA context with its data takes more than a GiB on a current GPU, so growth by
# one GiB for ten seconds without a break belongs to a process.
GROWN_BYTES = GIB
HELD_S = 10.0
# Limit of records, so that someone who starts a process each second does not fill the disk.
MAX_RECORDS = 200
# The same for users that disturb nothing: a run starts some hundred programs on each GPU.
MAX_USERS = 10_000
_ANCESTORS = 64


@dataclass(slots=True)
class _Seen:
    """A user of a GPU since it was first seen.

    `early`: at that time no program of ours held CUDA open.
    """

    since_s: float
    early: bool = True
    excess_s: float | None = None
    told: ForeignProcess | None = None


@dataclass(slots=True)
class _Gpu:
    """Users of one GPU by pid, and its memory in bytes. Pid None: a user without a known pid."""

    seen: dict[int | None, _Seen] = field(default_factory=dict)
    listed_s: float | None = None
    told_unlisted: bool = False
    start_bytes: int | None = None
    free_s: float = 0.0
    grown_s: float | None = None
    own: set[int] = field(default_factory=set)
    drawing: dict[int, GpuUser] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Own:
    """Visible programs of this run.

    `visible`: there are any. `unlisted`: how many hold CUDA open and are not listed by NVML.
    """

    visible: bool
    unlisted: int


class GpuUsers:
    """Finds foreign processes on the GPUs and records when each comes and goes.

    `root` is where /proc is read. `write` takes the records; its errors propagate out of `poll`.
    """

    def __init__(
        self, nvml: Any, run_id: str, root: Path, write: Callable[[AnyBody], None]
    ) -> None:
        self._nvml = nvml
        self._run_id = run_id
        self._root = root
        self._proc = root / "proc"
        self._write = write
        self._gpus: dict[Component, _Gpu] = {}
        self._written = 0
        self._users = 0
        self._own: _Own | None = None

    def poll(self, handles: Mapping[Component, Any], pool: Executor) -> None:
        """Check the users of these GPUs once, all GPUs in parallel. The keys are GPU names.

        A GPU that does not answer is skipped here: others report it.
        """
        now, self._own = clock.boot_s(), None
        answers = dict(zip(handles, pool.map(self._read_users, handles.values()), strict=True))
        listed = {one.pid for found, _ in answers.values() if found for one in found.listed()}
        for name, (users, used_bytes) in answers.items():
            gpu = self._gpus.setdefault(name, _Gpu(free_s=now))
            if users is None or users.compute_processes is None:
                self._report_unknown(name, gpu, now)
                continue
            gpu.listed_s, gpu.told_unlisted = now, False
            computing = readiness.compute_processes_of(users)
            present: set[int | None] = set(self._classify(name, gpu, computing, now, listed))
            self._drawing(name, gpu, users, computing, now)
            present |= set(self._memory(name, gpu, users, used_bytes, now, listed))
            for pid in [pid for pid in gpu.seen if pid not in present]:
                self._report_ended(gpu.seen.pop(pid), now)

    def _read_users(self, handle: Any) -> tuple[Users | None, int | None]:
        """Users of a GPU and its used memory in bytes; each is None if NVML does not report it."""
        try:
            memory = ask_or_none(self._nvml, "nvmlDeviceGetMemoryInfo", handle)
            used = getattr(memory, "used", None)
            return gpu_traits.users(self._nvml, handle, self._proc), None if used is None else int(
                used
            )
        except self._nvml.NVMLError:  # the GPU is lost
            return None, None

    # --- processes that are listed ---

    def _classify(
        self,
        name: Component,
        gpu: _Gpu,
        computing: tuple[GpuProcess, ...],
        now: float,
        listed: set[int],
    ) -> Iterator[int | None]:
        """Judge each compute process; yields the process ids to follow."""
        elsewhere: list[GpuProcess] = []
        for one in computing:
            kin = self._kin(one.pid)
            if kin == "ours":
                if one.pid not in gpu.own:
                    gpu.own.add(one.pid)
                    self._user(GpuUser(name, now, one.pid, one.name, own=True))
                continue
            yield one.pid
            seen = gpu.seen.get(one.pid)
            if seen is None:
                early = kin != "elsewhere" or self._programs(listed) == _Own(
                    visible=True, unlisted=0
                )
                seen = gpu.seen[one.pid] = _Seen(now, early)
            if kin == "elsewhere":
                elsewhere.append(one)
            wait_s = {
                "foreign": 0.0,
                "unreadable": AGAIN_S,
                "ending": LINGER_S,
                "elsewhere": float("inf"),
            }[kin]
            if now - seen.since_s >= wait_s:
                self._foreign(name, seen, one.pid, one.name, one.memory_bytes)
        self._count(name, gpu, elsewhere, now, listed)

    def _drawing(
        self,
        name: Component,
        gpu: _Gpu,
        users: Users,
        computing: tuple[GpuProcess, ...],
        now: float,
    ) -> None:
        """Record the processes that only draw: they disturb nothing, and may cause an Xid."""
        counted = {one.pid for one in computing}
        drawing = {one.pid: one for one in users.listed() if one.pid not in counted}
        for pid in [pid for pid in gpu.drawing if pid not in drawing]:
            gone = gpu.drawing.pop(pid)
            self._user(GpuUser(name, gone.since_s, pid, gone.command, own=False, until_s=now))
        for pid, one in drawing.items():
            if pid not in gpu.drawing and self._kin(pid) != "ours":
                gpu.drawing[pid] = GpuUser(name, now, pid, one.name, own=False)
                self._user(gpu.drawing[pid])

    def _user(self, record: GpuUser) -> None:
        self._users += 1
        if self._users <= MAX_USERS:
            self._write(record)

    def _count(
        self, name: Component, gpu: _Gpu, elsewhere: list[GpuProcess], now: float, listed: set[int]
    ) -> None:
        """Judge whether more processes of another namespace use a GPU than ours can account for.

        This cannot be known if no process of the run is visible from here.
        """
        own = self._programs(listed) if elsewhere else _Own(visible=False, unlisted=0)
        if not own.visible or len(elsewhere) <= own.unlisted:
            for one in elsewhere:
                gpu.seen[one.pid].excess_s = None
            return
        for one in elsewhere:
            seen = gpu.seen[one.pid]
            seen.excess_s = now if seen.excess_s is None else seen.excess_s
        wait_s = AGAIN_S if all(gpu.seen[one.pid].early for one in elsewhere) else LINGER_S
        held = [one for one in elsewhere if now - (gpu.seen[one.pid].excess_s or now) >= wait_s]
        if len(held) <= own.unlisted:
            return
        if own.unlisted == 0:
            for one in held:
                self._foreign(name, gpu.seen[one.pid], one.pid, one.name, one.memory_bytes)
        elif not any(gpu.seen[one.pid].told for one in held):
            numbers = ", ".join(str(one.pid) for one in held)
            last = max((gpu.seen[one.pid] for one in held), key=lambda seen: seen.since_s)
            self._foreign(
                name, last, None, f"one of the processes {numbers} of another namespace", None
            )

    def _kin(self, pid: int) -> UserKind:
        """To whom a process belongs.

        "ending": it has no memory any more, so its environment is gone too.
        """
        entry = orphans.entry(pid, self._root)
        if entry is None:
            return "elsewhere"
        mark = f"RIGPROOF_RUN={self._run_id}".encode()
        readable, one, line = True, pid, entry
        for _ in range(_ANCESTORS):
            try:
                if mark in (self._proc / str(one) / "environ").read_bytes().split(b"\0"):
                    return "ours"
            except OSError:
                readable = readable and one != pid
            above = orphans.entry(line.parent, self._root) if line.parent > 0 else None
            if above is None:
                break
            one, line = line.parent, above
        if entry.memory_bytes == 0:
            return "ending"
        return "foreign" if readable else "unreadable"

    def _programs(self, listed: set[int]) -> _Own:
        """The run's own programs, read at most once a round and only when they are needed."""
        if self._own is None:
            family = orphans.find(self._run_id, self._root)
            self._own = _Own(
                bool(family), sum(pid not in listed and self._holds_cuda(pid) for pid in family)
            )
        return self._own

    def _holds_cuda(self, pid: int) -> bool:
        """Whether a process of ours holds CUDA's device node open; true if that is unreadable."""
        try:
            return any(
                str(link.readlink()) == CUDA_NODE
                for link in (self._proc / str(pid) / "fd").iterdir()
            )
        except FileNotFoundError:  # the process ended or closed the file meanwhile
            return False
        except OSError:
            return True

    # --- memory that no listed process holds ---

    def _memory(
        self,
        name: Component,
        gpu: _Gpu,
        users: Users,
        used_bytes: int | None,
        now: float,
        listed: set[int],
    ) -> Iterator[None]:
        """Compare the memory that no listed process holds with its size at the start.

        Yields None while a foreign process holds it. Draws no conclusion while an unlisted program
        of ours may hold it, or while a process is listed without its memory.
        """
        held = {one.pid: one.memory_bytes for one in users.listed()}
        known = [bytes_ for bytes_ in held.values() if bytes_ is not None]
        if used_bytes is None or len(known) < len(held):
            gpu.grown_s = None
        else:
            # memory that two programs share is listed for both, so the sum may be too large
            free = max(0, used_bytes - sum(known))
            gpu.start_bytes = free if gpu.start_bytes is None else gpu.start_bytes
            grown = free - gpu.start_bytes
            if grown < GROWN_BYTES:
                gpu.grown_s, gpu.free_s = None, now
                return
            own = self._programs(listed)
            if own.unlisted or not own.visible:
                gpu.grown_s = None
            else:
                gpu.grown_s = now if gpu.grown_s is None else gpu.grown_s
                if now - gpu.grown_s >= HELD_S:
                    seen = gpu.seen.setdefault(None, _Seen(gpu.free_s))
                    self._foreign(name, seen, None, None, grown)
        if None in gpu.seen:
            yield None

    # --- records ---

    def _foreign(
        self,
        gpu: Component,
        seen: _Seen,
        pid: int | None,
        command: str | None,
        memory_bytes: int | None,
    ) -> None:
        if seen.told is None:
            seen.told = ForeignProcess(gpu, seen.since_s, pid, command, memory_bytes)
            self._record(seen.told)

    def _report_ended(self, seen: _Seen, now: float) -> None:
        if (one := seen.told) is not None:
            self._record(
                ForeignProcess(
                    one.component, one.since_s, one.pid, one.command, one.memory_bytes, now
                )
            )

    def _record(self, record: ForeignProcess) -> None:
        if self._written == MAX_RECORDS:
            text = Message(
                english(
                    "processes_left_out",
                    "other processes came and went on the GPUs more than {most} times: further "
                    "ones are left out",
                ),
                {"most": MAX_RECORDS // 2},
            )
            self._write(Note(text, trouble=True))
        elif self._written < MAX_RECORDS:
            self._write(record)
        self._written += 1

    def _report_unknown(self, name: Component, gpu: _Gpu, now: float) -> None:
        """Note a GPU whose driver no longer lists its processes.

        A GPU whose driver never listed any is reported before the run.
        """
        if gpu.listed_s is not None and now - gpu.listed_s >= AGAIN_S and not gpu.told_unlisted:
            gpu.told_unlisted = True
            self._write(
                Note(
                    Message(
                        english(
                            "processes_unlisted",
                            "{gpu}: the driver no longer tells which processes compute on it, so "
                            "whether it was used alone is not known: run again; if it comes back, "
                            "reboot",
                        ),
                        {"gpu": str(name)},
                    ),
                    trouble=True,
                )
            )
