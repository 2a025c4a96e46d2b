"""Kills at random moments: of the harness, of the container, of the load, and of everything at
once, as a restart does it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import Rig, processes, wait_for
from run_left import Run

from acceptance.core.record import CheckEnded, SessionEnded
from acceptance.process import orphans
from selftest import power
from selftest.aftermath import Cut, agrees, segments, trouble_in
from selftest.points import Point, moment, spread
from selftest.row import Row
from selftest.scene import Scene, Started, StationName, why_no_pass
from selftest.victim import Victim

Say = Callable[[str], None]
KINDS = {
    "host": ("harness", "load", "reboot"),
    "docker": ("harness", "container", "load", "reboot"),
}
# Words of the command lines of a load's processes, by check; of a shell script that stands in for a
# tool only the first is the load.
LOADS = {
    "host": {"cpu.stress_ng": "fakes/stress-ng", "cpu.gemm[f64]": '"load":"cpu_gemm"'},
    "docker": {"cpu.stress_ng": "stress-ng"},
}
GONE_S = 30.0  # a busy engine takes its time; that all of it ends is what counts
QUOTED = 300
SLACK = 0.9  # of how long something lasted in the clean run: it may be a little quicker in another


@dataclass
class _Kills:
    scene: Scene
    seed: int
    points: int
    clean: Run
    marks: dict[
        str, float
    ]  # files in the order in which the clean run wrote them, and after how many seconds
    pending: list[Victim] = field(default_factory=list)

    # --- one start: it closes what was cut off before it, and is disturbed itself ---

    def disturb(self, point: Point) -> None:
        """Start, wait for the moment, kill, and look what is left."""
        started = self.scene.start(self.scene.argv())
        victim = Victim(point, "")
        try:
            if point.kind in ("harness", "reboot"):
                self._await(started, victim)
                self._cut_off(started, victim)
            else:
                self._part_of_it(started, victim)
        except AssertionError as error:
            victim.wrong.append(str(error))
            started.process.kill()
            self._hear(*started.process.communicate())
        victim.seconds = time.monotonic() - started.began
        self.pending.append(victim)
        if point.kind == "reboot":
            self._restart()

    def _await(self, started: Started, victim: Victim) -> None:
        """Wait for the point's moment: a file that the run makes, and some time from there."""
        names = list(self.marks)
        number, seconds = moment(victim.point.part, list(self.marks.values()))
        victim.when = f"{seconds:.2f} s after {names[number]}"

        def reached() -> bool:
            made = any(
                (folder / names[number]).exists()
                for folder in self.scene.rig.runs() - started.before
            )
            return number == 0 or made or started.process.poll() is not None

        wait_for(reached, 100.0)
        time.sleep(seconds)

    def _restart(self) -> None:
        """The next start is in another boot; of containers it makes none, because one shows the
        kernel's own boot id.
        """
        self.scene.restart()
        if self.scene.station == "docker":
            run = self.scene.run(self.scene.argv("kernel_log.during_run"))
            self._hear(run.out, run.err)
            self.scene.same_boot()

    def _hear(self, out: str, err: str) -> None:
        """What a start said is for all those that wait for a word."""
        for victim in self.pending:
            victim.told += out + err
        if self.pending:
            self.pending[-1].wrong += trouble_in(out + err)

    def _cut_off(self, started: Started, victim: Victim) -> None:
        ended = started.process.poll() is not None  # it was quicker than the clean run
        containers = [
            one
            for made in self.scene.rig.runs() - started.before
            for one in self.scene.running(made.name)
        ]
        victim.container = containers[0].short_id if containers else ""
        if victim.point.kind == "reboot":
            power.off(started.process.pid, started.left, containers)
        started.process.kill()
        out, err = started.process.communicate()
        self._hear(out, err)
        victim.wrong += trouble_in(out + err)
        folder = next(iter(self.scene.rig.runs() - started.before), None)
        wait_for(lambda: not self._left(started, folder), GONE_S)
        if folder is not None:
            if victim.point.kind == "reboot" and not ended:
                power.lose(folder, victim.point.choice(self.seed))
            victim.cut = Cut(folder, segments(folder))
            victim.ended = victim.cut.closed
            victim.wrong += victim.cut.before_the_next_start()

    def _left(self, started: Started, folder: Path | None) -> bool:
        """Whether anything of it runs: the kernel tells every program that its harness has died,
        the engine a container.
        """
        return bool(
            started.left()
            or (folder and (orphans.find(folder.name) or self.scene.running(folder.name)))
        )

    def finish(self) -> Run:
        """A last start, which nobody disturbs."""
        return self.scene.undisturbed(self._hear)

    # --- kills that the harness outlives ---

    def _part_of_it(self, started: Started, victim: Victim) -> None:
        chance = victim.point.choice(self.seed)
        folder = wait_for(lambda: next(iter(self.scene.rig.runs() - started.before), None), 100.0)
        awaited = (self._container if victim.point.kind == "container" else self._load)(
            folder, victim, chance
        )
        run = self.scene.finish(started)
        self._hear(run.out, run.err)
        victim.cut, victim.ended = Cut(folder, segments(folder)), True
        victim.wrong += trouble_in(run.out + run.err)
        wait_for(lambda: not self._left(started, folder), GONE_S)
        if self.scene.containers(folder.name):
            victim.wrong.append("its container is left")
        victim.wrong += agrees(run)
        victim.wrong += victim.cut.before_the_next_start()
        if awaited and (run.code, run.verdict["verdict"]) != (3, "UNJUDGED"):
            victim.wrong.append(f"the verdict is {run.verdict['verdict']} (exit code {run.code})")
        lines = f"{run.texts('violations')}\n{run.texts('unjudged')}".strip().splitlines()
        found = [line for line in lines if awaited in line]
        victim.message = (found or lines or ["nothing was cut off: the run is whole, and passes"])[
            0
        ][:QUOTED]
        if awaited and not found:
            victim.wrong.append(f"nothing says {awaited!r}: {lines}")

    def _container(self, folder: Path, victim: Victim, _chance: random.Random) -> str:
        """Kill it; what has to be told, empty where it had ended by itself."""

        def there() -> list[Any]:
            return self.scene.running(folder.name)

        (made,) = wait_for(there, 100.0)
        victim.container = made.short_id
        (lasted,) = (
            one.seconds for one in self.clean.bodies(SessionEnded) if one.session == "host-load"
        )
        after_s = victim.point.part * lasted * SLACK
        victim.when = f"{after_s:.2f} s of its {lasted:.2f} s"
        time.sleep(after_s)
        if not there():
            victim.when += ", when it had ended"
            return ""
        made.kill()
        return "session host-load ended with exit code 137"

    def _load(self, folder: Path, victim: Victim, chance: random.Random) -> str:
        """Kill one of its processes; what has to be told, empty where it had ended by itself."""
        loads = LOADS[self.scene.station]
        check = chance.choice(sorted(loads))

        def family() -> list[int]:
            return processes(folder.name, loads[check])

        wait_for(family, 100.0)
        (lasted,) = (one.seconds for one in self.clean.bodies(CheckEnded) if one.check == check)
        after_s = victim.point.part * lasted * SLACK
        victim.when = f"{check}, {after_s:.2f} s of its {lasted:.2f} s"
        time.sleep(after_s)
        found = family()
        if not found:
            victim.when += ", when it had ended"
            return ""
        one = found[0] if loads[check].startswith("fakes/") else chance.choice(found)
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
            victim.when += f", process {found.index(one) + 1} of {len(found)}"
            return f"{check}: "
        victim.when += ", when it had ended"
        return ""

    # --- rows ---

    def settled(self, *, last: bool = False) -> Iterator[Row]:
        """The rows of those that a later start has dealt with; of all that are
        left after the last one.
        """
        for victim in list(self.pending):
            cut = victim.cut
            if last or cut is None or (cut.closed and not self.scene.containers(cut.folder.name)):
                self.pending.remove(victim)
                yield victim.row(self.scene, self.points)


def landmarks(clean: Run, began: float) -> dict[str, float]:
    """When the clean run wrote what a run writes once, in seconds from its
    beginning; and its end.
    """
    files = [*clean.path.glob("session-*.json"), clean.path / "junit.xml"]
    written = sorted((file.stat().st_mtime - began, file.name) for file in files)
    return {
        "its start": 0.0,
        **{name: seconds for seconds, name in written},
        "its end": clean.seconds,
    }


def kills(
    rig: Rig, points: int, seed: int, *, station: StationName, say: Say, library: Path | None = None
) -> Generator[Row, None, None]:
    """A row for each of so many moments; the rig is used by nothing else.

    Raises AssertionError where a run without a kill is no pass.

    Each start closes what was cut off before it, and is cut off itself, so that a row comes when a
    later start has spoken.
    """
    scene = Scene(rig, station, library=library)
    try:
        clean = scene.undisturbed()
        began = time.time() - clean.seconds
        assert clean.code == 0, f"a run that nobody disturbs does not pass: {why_no_pass(clean)}"
        say(
            f"a clean run takes {clean.seconds:.1f} s; {points} kills are spread over it "
            f"(seed {seed})"
        )
        course = _Kills(scene, seed, points, clean, landmarks(clean, began))
        for point in spread(KINDS[station], points, seed):
            course.disturb(point)
            yield from course.settled()
        final = course.finish()
        yield from course.settled(last=True)
        assert final.code == 0, f"the run after all kills does not pass: {why_no_pass(final)}"
    finally:
        scene.clear()
