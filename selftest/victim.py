"""One start that was killed, or whose container or load was: what is known of it, and its row
once a later start has spoken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from selftest.aftermath import Cut
from selftest.points import Point
from selftest.row import Row
from selftest.scene import Scene

WHAT = {
    "harness": "the harness is killed",
    "container": "the container is killed",
    "load": "the load is killed",
    "reboot": "everything is killed at once, and the machine has another boot id",
}
SEAM = {
    "harness": "SIGKILL",
    "container": "the engine",
    "load": "SIGKILL",
    "reboot": "boot id under the root directory",
}


@dataclass
class Victim:
    """A start that was disturbed, and what is known of it until its row is written."""

    point: Point
    when: str
    cut: Cut | None = None
    container: str = ""
    told: str = ""
    message: str = ""
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ended: bool = False  # by itself, with its reports, so that a later start has nothing to tell

    def row(self, scene: Scene, points: int) -> Row:
        """What became of it: a later start has dealt with it, or will not."""
        cut, point = self.cut, self.point
        if cut is not None:
            rebooted = True if point.kind == "reboot" else None
            self.wrong += cut.after_the_next_start(self.told, ended=self.ended, rebooted=rebooted)
            self.wrong += (
                ["its container is still there"] if scene.containers(cut.folder.name) else []
            )
            if cut.begun:
                judged = scene.run(["judge", str(cut.folder)])
                self.wrong += cut.judged_again(judged.code, judged.out + judged.err)
        wrong = "; ".join(dict.fromkeys(self.wrong))
        return Row(
            family="interruption",
            fault=(
                f"{WHAT[point.kind]} ({scene.station}, point {point.number} of {points}, "
                f"{self.when})"
            ),
            seam=SEAM[point.kind],
            caught=not wrong,
            by="" if cut is None else "run" if self.message else "start",
            message=self._message(),
            seconds=self.seconds,
            run_id=cut.folder.name if cut else "",
            container=self.container,
            journal=str((cut.folder / "journal.jsonl").relative_to(scene.rig.home))
            if cut and cut.begun
            else "",
            wrong=wrong,
        )

    def _message(self) -> str:
        if self.cut is None:
            return "no run had been begun, and nothing was left"
        if not self.cut.begun:
            return "its folder was made and nothing recorded: there is nothing to close"
        if self.message:
            return self.message
        if self.ended:
            return "everything had been measured and reported: the run is whole, and passes"
        line = self.cut.sentence(self.told)
        return (
            f"{line} (everything had been measured: it passes)"
            if "without its reports" in line
            else line
        )
