"""Disks that are full at random points: of what a run writes in all only a part finds room, or
its files find no inode.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rig import Rig, wait_for
from run_left import Run

from selftest.aftermath import Cut, agrees, segments, trouble_in
from selftest.interruption import Say
from selftest.points import Point, spread
from selftest.row import Row
from selftest.scene import Scene, StationName, why_no_pass

# Room for all but the reports is a point of its own: there the run is whole, and only its views are
# missing.
KINDS = ("space", "reports", "space", "inodes")
WHAT = {
    "space": "the disk is full after a part of what a run writes",
    "reports": "the disk is full when the reports are written",
    "inodes": "the disk has no room for another file after a part of them",
}
# Of the watch what a run of seconds can tell: links are looked at under longer load.
ONLY = {
    "host": (
        "gpu.present,watch.sampled,watch.heat,watch.counters,cpu.stress_ng,kernel_log.during_run"
    ),
    "docker": "cpu.stress_ng,kernel_log.during_run",
}
REPORTS = ("junit.xml", "report.html", "verdict.json")
PAGE = 4096  # what the file system gives room in
ROOMY = (64 << 20, 4096)
CURES = ("make room", "give another folder with --out")


class Disk:
    """A small file system at a folder, which is as large as it is told.

    Making one needs root; a container sees it, too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Disk:
        self._folder.mkdir()
        self._mount(ROOMY, "mount", "-t", "tmpfs", "rigproof-selftest", str(self._folder), "-o")
        # A size of 0 would be one without a limit: with something on it, it can be full.
        (self._folder / ".taken").write_bytes(b"x")
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", "--lazy", str(self._folder))

    def _mount(self, size: tuple[int, int], *argv: str, before: str = "") -> None:
        options = f"{before}size={size[0]},nr_inodes={size[1]},mode=755"
        done = _run(*argv, options)
        assert done.returncode == 0, f"{argv} {options}: {done.stderr.strip()}"

    def used(self) -> tuple[int, int]:
        """Pages and inodes in use."""
        found = os.statvfs(self._folder)
        return (
            found.f_blocks - found.f_bfree
        ) * found.f_frsize // PAGE, found.f_files - found.f_ffree

    def leave(self, pages: int | None = None, inodes: int | None = None) -> None:
        """Make it so full that there is room for so many pages or inodes, and
        plenty of what is not given.
        """
        used = self.used()
        size = ROOMY[0] if pages is None else (used[0] + pages) * PAGE
        files = ROOMY[1] if inodes is None else used[1] + inodes
        self._mount((size, files), "mount", str(self._folder), "-o", before="remount,")

    def make_room(self) -> None:
        """Nothing is short any more."""
        self.leave()


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    """A short program; disks are filled in threads, and `command` is for the main one alone."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=30.0)


@dataclass
class _Full:
    """One run that found no room, until a later start has dealt with it."""

    point: Point
    left: str
    before: tuple[int, int]  # pages and inodes in use when the room was taken
    run: Run
    cut: Cut | None
    wrong: list[str] = field(default_factory=list)


@dataclass
class _Disks:
    scene: Scene
    disk: Disk
    points: int
    pages: int
    inodes: int
    reports: int
    files: set[str]  # that a clean run leaves

    def fill(self, point: Point) -> str:
        """Leave as much room as the point says; returns it in words."""
        if point.kind == "inodes":
            count = int(point.part * (self.inodes - 1))
            self.disk.leave(inodes=count)
            return f"room for {count} of {self.inodes} files"
        # Two pages less than a clean run took: another one may take one less.
        first = self.pages - self.reports - 1 if point.kind == "reports" else 0
        last = self.pages - 2
        count = first + int(point.part * max(1, last - first))
        self.disk.leave(pages=count)
        return f"room for {count * 4} of {self.pages * 4} KiB"

    def start(self, point: Point, earlier: _Full | None) -> tuple[_Full, str]:
        """A start that closes the earlier run, and finds no more room from then
        on; and what it said.

        The clean run may have written more, for it took longer beside other faults. A run that was
        whole because it needed less than the room that it had is made once more, by what it wrote.
        """
        full, told = self._start(point, earlier)
        if wrote := self.found_room(full):
            self.pages, self.inodes = wrote
            full, more = self._start(point, None)
            told += more
        return full, told

    def found_room(self, full: _Full) -> tuple[int, int] | None:
        """The pages and inodes that a run wrote which lacks nothing of a clean one; else None."""
        run = full.run
        whole = run.code == 0 and not self.files - {one.name for one in run.path.iterdir()}
        if not whole or next(agrees(run), None) is not None:
            return None
        pages, inodes = (
            now - then for now, then in zip(self.disk.used(), full.before, strict=True)
        )
        return pages, inodes

    def _start(self, point: Point, earlier: _Full | None) -> tuple[_Full, str]:
        self.disk.make_room()
        before = self.disk.used()
        if earlier is None:
            left = self.fill(point)
        started = self.scene.start(self.scene.argv())
        if earlier is not None:
            closed = earlier.cut
            wait_for(
                lambda: closed is None or closed.closed or started.process.poll() is not None, 100.0
            )
            before = self.disk.used()
            left = self.fill(point)
        run = self.scene.finish(started)
        cut = Cut(run.folder, segments(run.folder)) if run.folder else None
        full = _Full(point, left, before, run, cut)
        full.wrong += refused(run)
        if full.cut is not None:
            full.wrong += full.cut.before_the_next_start()
        if started.left():
            full.wrong.append(f"processes are left: {started.left()}")
        return full, run.out + run.err

    def row(self, full: _Full, told: str) -> Row:
        """What is known when a later start, with room, has spoken."""
        run, cut = full.run, full.cut
        full.wrong += trouble_in(told)
        if cut is not None:
            full.wrong += cut.after_the_next_start(told)
            if cut.begun:
                judged = self.scene.run(["judge", str(cut.folder)])
                full.wrong += cut.judged_again(judged.code, judged.out + judged.err)
        wrong = "; ".join(dict.fromkeys(full.wrong))
        return Row(
            family="interruption",
            fault=(
                f"{WHAT[full.point.kind]} (point {full.point.number} of {self.points}, {full.left})"
            ),
            seam="file system",
            caught=not wrong,
            by="run" if run.folder else "start",
            message=run.err.strip(),
            seconds=run.seconds,
            run_id=run.folder.name if run.folder else "",
            journal=str((cut.folder / "journal.jsonl").relative_to(self.scene.rig.home))
            if cut and cut.begun
            else "",
            wrong=wrong,
        )


def refused(run: Run) -> Iterator[str]:
    """What is not as it must be of a run that found no room: it says so in one line, with what
    to do, and no file says PASS.
    """
    yield from trouble_in(run.out + run.err)
    if run.code not in (2, 3):
        yield f"the exit code is {run.code}"
    if (
        run.err.count("\n") != 1
        or "No space left on device" not in run.err
        or not any(one in run.err for one in CURES)
    ):
        yield f"it does not say in one line that there is no room, and what to do: {run.err!r}"
    if "rigproof report" in run.err and not (run.path / "journal.jsonl").is_file():
        yield f"what it says to do cannot be done, because there is no journal: {run.err!r}"
    if any(line.startswith("PASS") for line in run.out.splitlines()):
        yield "it says PASS"
    if (
        run.folder is not None
        and (run.folder / "verdict.json").is_file()
        and run.verdict["verdict"] == "PASS"
    ):
        yield "verdict.json says PASS"


def full_disks(
    rig: Rig, points: int, seed: int, *, station: StationName, say: Say, library: Path | None = None
) -> Generator[Row, None, None]:
    """A row for each of so many full disks; the rig is used by nothing else.

    Raises AssertionError where a run with room is no pass.
    """
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(Disk(rig.out))
        scene = Scene(rig, station, only=ONLY[station], library=library)
        stack.callback(scene.clear)
        # The first run makes the history as well, which those after it find there.
        for _ in range(2):
            before = disk.used()
            clean = scene.run(scene.argv())
            assert clean.code == 0, f"a run with room does not pass: {why_no_pass(clean)}"
        pages, inodes = (now - then for now, then in zip(disk.used(), before, strict=True))
        reports = sum(-(-(clean.path / name).stat().st_size // PAGE) for name in REPORTS)
        say(
            f"a clean run takes {clean.seconds:.1f} s and writes {pages * 4} KiB in {inodes} "
            f"files (seed {seed})"
        )
        files = {one.name for one in clean.path.iterdir()}
        course = _Disks(scene, disk, points, pages, inodes, reports, files)
        earlier: _Full | None = None
        for point in spread(KINDS, points, seed):
            full, told = course.start(point, earlier)
            if earlier is not None:
                yield course.row(earlier, told)
            earlier = full
        disk.make_room()
        final = scene.run(scene.argv())
        assert final.code == 0, f"the run after all does not pass: {why_no_pass(final)}"
        if earlier is not None:
            yield course.row(earlier, final.out + final.err)
