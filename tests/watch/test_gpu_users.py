"""Who uses the GPUs beside the run: told from its own programs in one namespace and in two, with
and without numbers.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fake_nvml import LOST, FakeNvml, Refusal
from worded import worded

from acceptance.core.record import Body, ForeignProcess, GpuUser, Note
from acceptance.journal import clock
from acceptance.watch import gpu_users
from acceptance.watch.gpu_users import CUDA_NODE, GROWN_BYTES, MAX_RECORDS, GpuUsers

RUN = "2026-01-01T00-00-00Z-abcd"
MARK = f"RIGPROOF_RUN={RUN}"
LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3")
MIB = 1 << 20


class Scene:
    """A machine with two GPUs, a /proc of its own, and a clock that is set by hand."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.now = root, 1000.0
        (root / "proc").mkdir()
        monkeypatch.setattr(clock, "boot_s", lambda: self.now)
        self.nvml = FakeNvml(2, {one: [] for one in LISTS})
        self.use(0, 0)
        self.use(1, 0)
        self.told: list[Body] = []
        self.users_seen: list[GpuUser] = []
        self.users = GpuUsers(self.nvml, RUN, root, self.told.append)
        self.pool = ThreadPoolExecutor(2)

    def process(
        self,
        pid: int,
        *environment: str,
        parent: int = 1,
        name: str = "python3",
        size: int = 4096,
        cuda: bool = False,
    ) -> None:
        """A process of this namespace; one without `size` is about to end, and has no
        environment any more.
        """
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        fields = ["S", str(parent), *["0"] * 18, str(size), *["0"] * 20]
        (folder / "stat").write_text(f"{pid} ({name}) (x) {' '.join(fields)}\n")
        (folder / "statm").write_text(f"{size} 0 0 0 0 0 0\n")
        (folder / "environ").write_bytes(
            b"" if not size else "\0".join(["HOME=/", *environment]).encode()
        )
        (folder / "cmdline").write_bytes(name.encode())
        (folder / "comm").write_text(f"{name}\n")
        if cuda:
            (folder / "fd" / "7").symlink_to(CUDA_NODE)

    def end(self, pid: int) -> None:
        folder = self.root / "proc" / str(pid)
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()

    def list(
        self, gpu: int, *pids: int, memory: int | None = 512 * MIB, graphics: bool = False
    ) -> None:
        said = [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid in pids]
        self.nvml.answers[LISTS[graphics], gpu] = said

    def use(self, gpu: int, used: int) -> None:
        self.nvml.answers["nvmlDeviceGetMemoryInfo", gpu] = SimpleNamespace(
            total=1 << 40, used=used
        )

    def look(self, *moments: float) -> list[Body]:
        """What is told at these moments."""
        before = len(self.told)
        for moment in moments or (self.now + 1.0,):
            self.now = moment
            self.users.poll({"gpu0": 0, "gpu1": 1}, self.pool)
        self.users_seen += [one for one in self.told[before:] if isinstance(one, GpuUser)]
        return [one for one in self.told[before:] if not isinstance(one, GpuUser)]

    def pids(self, count: int = 1) -> list[int | None]:
        """The processes that are told of within so many looks."""
        return [getattr(one, "pid", None) for one in self.seconds(count)]

    def seconds(self, count: int) -> list[Body]:
        """What is told within so many looks, a second apart."""
        return self.look(*(self.now + 1.0 + step for step in range(count)))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path, monkeypatch)
    yield made
    made.pool.shutdown()


def test_a_foreign_process_is_told_at_once_and_when_it_has_gone(scene: Scene) -> None:
    scene.process(42, "RIGPROOF_RUN=another-run", f"X={MARK}")
    assert scene.look(1000.0) == []
    scene.list(1, 42)
    assert scene.look(1025.0) == [ForeignProcess("gpu1", 1025.0, 42, "python3", 512 * MIB)]
    assert scene.seconds(5) == []
    scene.list(1)
    assert scene.look(1040.0) == [ForeignProcess("gpu1", 1025.0, 42, "python3", 512 * MIB, 1040.0)]


def test_programs_of_the_run_are_its_own_and_so_are_their_children(scene: Scene) -> None:
    scene.process(50, MARK, name="gpu-burn")
    scene.process(51, parent=50, name="sh")
    scene.process(52, parent=51, name="worker")
    scene.list(0, 50, 52)
    assert scene.seconds(30) == []
    began_s = 1001.0
    assert scene.users_seen == [
        GpuUser("gpu0", began_s, 50, "gpu-burn", own=True),
        GpuUser("gpu0", began_s, 52, "worker", own=True),
    ]


def test_who_only_draws_is_recorded_when_it_comes_and_goes(scene: Scene) -> None:
    scene.process(70, name="Xorg")
    scene.process(50, MARK)
    scene.list(1, 50, 70, graphics=True)
    assert scene.seconds(3) == []
    scene.list(1, 50, graphics=True)
    assert scene.look(1040.0) == []
    came = GpuUser("gpu1", 1001.0, 70, "Xorg", own=False)
    assert scene.users_seen == [came, msgspec.structs.replace(came, until_s=1040.0)]


def test_users_are_not_recorded_without_end(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_users, "MAX_USERS", 2)
    for pid in (70, 71, 72):
        scene.process(pid, name="Xorg")
    scene.list(0, 70, 71, 72, graphics=True)
    scene.look()
    assert [one.pid for one in scene.users_seen] == [70, 71]


Step = Callable[[Scene], object]
OURS: Step = lambda scene: scene.process(50, MARK, cuda=True)  # noqa: E731


def never_told(scene: Scene) -> None:
    scene.nvml.answers.update(dict.fromkeys(LISTS, Refusal(3)))


def closed(scene: Scene) -> None:
    """Another user's process. Root may read whatever has no rights."""
    scene.process(70)
    (scene.root / "proc/70/environ").unlink()
    (scene.root / "proc/70/environ").mkdir()


# What happens, and after it within so many looks: the processes that are told of.
SCENES: dict[str, list[tuple[list[Step], int, list[int | None]]]] = {
    # The driver lists it until its memory is free; the kernel has thrown its environment away.
    "a program that is about to end is nobody else's": [
        ([lambda scene: scene.process(60, size=0), lambda scene: scene.list(0, 60)], 15, []),
        ([lambda scene: scene.list(0)], 3, []),
    ],
    "one that never ends counts": [
        ([lambda scene: scene.process(60, size=0), lambda scene: scene.list(0, 60)], 25, [60])
    ],
    "a foreign process that is about to end stays foreign": [
        ([lambda scene: scene.process(61), lambda scene: scene.list(0, 61)], 1, [61]),
        ([lambda scene: scene.process(61, size=0)], 5, []),
        ([lambda scene: scene.list(0)], 1, [61]),
    ],
    "an environment that may not be read is another user's": [
        ([closed, lambda scene: scene.list(0, 70)], 5, [70])
    ],
    "the desktop is no user and a program beside it is": [
        (
            [
                lambda scene: scene.nvml.answers.update(nvmlDeviceGetDisplayActive=1),
                lambda scene: scene.process(80, name="gnome-shell"),
                lambda scene: scene.process(81, name="train"),
                lambda scene: scene.list(0, 80),
                lambda scene: scene.list(0, 80, graphics=True),
            ],
            *(3, []),
        ),
        ([lambda scene: scene.list(0, 80, 81)], 1, [81]),
        ([lambda scene: scene.nvml.answers.update(nvmlDeviceGetDisplayActive=0)], 1, [80]),
    ],
    # A pod in which NVML gives the host's numbers; the driver lists a program for some seconds
    # after its end.
    "as many of them as programs of the run are its own": [
        (
            [
                *(lambda scene, pid=pid: scene.process(pid, MARK, cuda=True) for pid in (50, 51)),
                *(lambda scene, gpu=gpu: scene.list(gpu, 9001, 9002) for gpu in (0, 1)),
            ],
            *(60, []),
        ),
        ([lambda scene: scene.end(51)], 10, []),
        ([lambda scene: scene.list(0, 9001), lambda scene: scene.list(1, 9001)], 60, []),
    ],
    "it outlives the programs of the run": [
        (
            [
                lambda scene: scene.process(49, MARK, name="pytest"),
                *(OURS, lambda scene: scene.list(0, 9001)),
            ],
            *(10, []),
        ),
        ([lambda scene: scene.end(50)], 40, [9001]),
    ],
    # The loads are in a container beside the harness's own.
    "where nothing of the run can be seen nobody can tell": [
        ([lambda scene: scene.list(0, 9001), lambda scene: scene.use(0, 100 << 30)], 60, [])
    ],
    # /proc that shows only one's own processes (hidepid).
    "programs that are listed here leave no room for one that is hidden": [
        ([OURS, lambda scene: scene.list(0, 50, 9001)], 5, [9001])
    ],
    # Two programs that share memory are listed with it both.
    "memory that is listed twice is no growth when it is free again": [
        ([lambda scene: scene.process(50, MARK), lambda scene: scene.use(0, 2 << 30)], 1, []),
        (
            [lambda s: s.list(0, 50, memory=100 << 30), lambda scene: scene.use(0, 60 << 30)],
            *(10, []),
        ),
        ([lambda scene: scene.list(0), lambda scene: scene.use(0, 2 << 30)], 30, []),
    ],
    **{
        f"memory that programs of the run may hold is no growth, {len(listed)} listed": [
            ([OURS], 1, []),
            ([*listed, lambda scene: scene.use(0, 100 << 30)], 60, []),
        ]
        for listed in ([], [lambda scene: scene.list(0, 50, memory=None)])
    },
    "a driver that never told them was remarked before the run": [([never_told], 10, [])],
}


@pytest.mark.parametrize("course", SCENES.values(), ids=SCENES)
def test_whose_the_processes_are(
    scene: Scene, course: list[tuple[list[Step], int, list[int | None]]]
) -> None:
    for steps, looks, told in course:
        for step in steps:
            step(scene)
        assert scene.pids(looks) == told


def test_in_the_real_proc() -> None:
    own = subprocess.Popen(["sleep", "60"], env={"RIGPROOF_RUN": RUN})
    bare = subprocess.Popen(["sleep", "60"], env={})
    try:
        # A program has its own name a moment after it was started.
        for one in (own, bare):
            while Path(f"/proc/{one.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.001)
        nvml = FakeNvml(1, {one: [] for one in LISTS})
        listed = [SimpleNamespace(pid=one.pid, usedGpuMemory=1) for one in (own, bare)]
        nvml.answers[LISTS[0]] = listed
        told: list[Body] = []
        users = GpuUsers(nvml, RUN, Path("/"), told.append)
        with ThreadPoolExecutor(1) as pool:
            users.poll({"gpu0": 0}, pool)
        assert [(one.pid, one.command) for one in told if isinstance(one, ForeignProcess)] == [
            (bare.pid, "sleep")
        ]
    finally:
        for one in (own, bare):
            one.kill()
            one.wait()


# --- another process namespace ---


def test_a_process_of_another_namespace_while_no_program_of_the_run_computes(scene: Scene) -> None:
    scene.process(50, MARK, name="pytest")
    scene.list(0, 9999)
    scene.nvml.answers["nvmlSystemGetProcessName"] = b"train.py"
    began = scene.now + 1.0
    assert scene.seconds(5) == [ForeignProcess("gpu0", began, 9999, "train.py", 512 * MIB)]


def test_one_more_than_programs_of_the_run_is_somebody_elses(scene: Scene) -> None:
    scene.process(50, MARK, cuda=True)
    scene.list(0, 9001)
    assert scene.seconds(10) == []
    scene.list(0, 9001, 9500)
    began = scene.now + 1.0
    (told,) = scene.seconds(40)
    assert isinstance(told, ForeignProcess)
    assert (told.since_s, told.who) == (
        began,
        "one of the processes 9001, 9500 of another namespace",
    )


# --- memory that nobody is listed for ---


def test_memory_counts_by_its_growth_and_only_when_it_stays(scene: Scene) -> None:
    scene.process(50, MARK)
    scene.use(0, 3 << 30)
    assert scene.seconds(30) == []
    scene.use(0, (3 << 30) + GROWN_BYTES)
    assert scene.seconds(5) == []
    scene.use(0, 3 << 30)
    assert scene.seconds(5) == []
    free = scene.now
    scene.use(0, 5 << 30)
    assert scene.seconds(20) == [ForeignProcess("gpu0", free, None, None, 2 << 30)]
    scene.use(0, 3 << 30)
    assert [getattr(one, "until_s", None) is not None for one in scene.seconds(3)] == [True]


def test_what_a_listed_program_holds_is_its_own(scene: Scene) -> None:
    scene.process(50, MARK, cuda=True)
    scene.look()
    scene.list(0, 50, memory=100 << 30)
    scene.use(0, (100 << 30) + 600 * MIB)
    assert scene.seconds(60) == []
    scene.use(0, 104 << 30)
    (told,) = scene.seconds(15)
    assert isinstance(told, ForeignProcess)
    assert worded(told.who) == "4.0 GiB of its memory that no listed process holds"


# --- what is not told ---


@pytest.mark.parametrize("refusal", [3, 4, 999])
def test_processes_that_are_not_told_any_more(scene: Scene, refusal: int) -> None:
    scene.look()
    scene.nvml.answers[LISTS[0], 0] = Refusal(refusal)
    scene.nvml.answers["nvmlDeviceGetComputeRunningProcesses_v2", 0] = Refusal(refusal)
    (told,) = scene.seconds(10)
    assert isinstance(told, Note)
    assert told.trouble
    assert worded(told.text).startswith(
        "gpu0: the driver no longer tells which processes compute on it"
    )


def test_a_lost_gpu_is_told_by_others_and_the_next_is_looked_at(scene: Scene) -> None:
    scene.nvml.answers[LISTS[0], 0] = Refusal(LOST)
    scene.process(42)
    scene.list(1, 42)
    assert [getattr(one, "component", None) for one in scene.look()] == ["gpu1"]


def test_who_starts_a_process_each_second_fills_no_disk(scene: Scene) -> None:
    scene.process(42)
    for _ in range(MAX_RECORDS):
        scene.list(0, 42)
        scene.look()
        scene.list(0)
        scene.look()
    assert len(scene.told) == MAX_RECORDS + 1
    assert isinstance(scene.told[-1], Note)
    assert scene.told[-1].trouble


def test_proc_is_searched_only_where_it_must_be(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    find: Callable[..., Any] = lambda run_id, root: searched.append(run_id) or {}  # noqa: E731
    monkeypatch.setattr("acceptance.process.orphans.find", find)
    scene.process(50, MARK)
    scene.list(0, 50)
    scene.seconds(5)
    assert searched == []
    scene.list(0, 50, 9001)
    scene.look()
    assert searched == [RUN]
