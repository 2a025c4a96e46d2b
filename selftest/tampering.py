"""Evidence that is turned: every attack is tried on a copy of a run, which is then judged again.

Three runs are made for it: one passes, one fails by an Xid, one by a wrong product.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from reseal import anew

from acceptance.reports.text import one_line
from selftest import trial
from selftest.aftermath import trouble_in
from selftest.catalogue import TROUBLE, Say, Theatre, corner
from selftest.fault import Fault, Named, NvmlEdit
from selftest.row import Row

FAMILY = "evidence"
_LOAD = "burn.gpu_burn[tensor]"
_CHECKS = f"gpu.present,gpu.ready,gpu.granted,{_LOAD},kernel_log.during_run,watch.sampled"
_JUDGE_S = 60.0
PASSED = Fault(
    "nothing",
    (),
    0,
    machine="2x4090",
    only=_CHECKS,
    burn=2.0,
    profile="accept",
    station="host",
)
RUNS = {
    "passed": PASSED,
    "xid": replace(
        PASSED,
        code=1,
        timeline_from=_LOAD,
        nvml=(NvmlEdit(gpu=0, after_s=0.5, xid=48),),
        also=(".*",),
    ),
    "wrong": replace(PASSED, code=1, tools={"gpu-burn": "is FAULTY"}, also=(".*",)),
}
# The run whose segments are laid into another.
_OTHER = {"passed": "xid", "xid": "passed", "wrong": "passed"}

Turn = Callable[[Path, Path], None]


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to turn evidence.

    `turn` gets a copy of the run that `run` names, and the folder of another one. `says` is a
    regular expression over what `command` prints, and `code` its exit status.
    """

    what: str
    turn: Turn
    says: str
    run: str = "passed"
    code: int = 3
    command: tuple[str, ...] = ("judge",)


def _named(run: Path, pattern: str) -> Path:
    """The first file of this pattern; a segment that holds an Xid is `XID`."""
    if pattern == "XID":
        return next(path for path in run.glob("journal-*.jsonl") if b'"xid"' in path.read_bytes())
    return min(run.glob(pattern))


def _removed(pattern: str) -> Turn:
    return lambda run, _: _named(run, pattern).unlink()


def _cut(pattern: str) -> Turn:
    """The file without its last line."""

    def turn(run: Path, _: Path) -> None:
        path = _named(run, pattern)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    return turn


def _changed(pattern: str, old: str, new: str, *, sealed: bool = False) -> Turn:
    """The first text like `old` in the file is `new`; `sealed`: and the run is sealed again."""

    def turn(run: Path, _: Path) -> None:
        path = _named(run, pattern)
        text = path.read_text(encoding="utf-8")
        changed = re.sub(old, new, text, count=1)
        assert changed != text, f"{path.name} holds nothing like {old}"
        path.write_text(changed, encoding="utf-8")
        if sealed:
            anew(run)

    return turn


def _laid_in(name: str, *, renamed: bool = False) -> Turn:
    """The other run's segment in place of this one's, and the run sealed again.

    `renamed`: with the name of this run in its head.
    """

    def turn(run: Path, other: Path) -> None:
        text = (other / name).read_text(encoding="utf-8")
        if renamed:
            text = text.replace(other.name, run.name)
        (run / name).write_text(text, encoding="utf-8")
        anew(run)

    return turn


def _copied(name: str, more: str) -> Turn:
    """A copy of a file under another name."""

    def turn(run: Path, _: Path) -> None:
        shutil.copy(run / name, run / more)

    return turn


def _junk(name: str) -> Turn:
    def turn(run: Path, _: Path) -> None:
        (run / name).write_text("junk\n", encoding="utf-8")

    return turn


def _made_old(run: Path, _: Path) -> None:
    """The segment with the Xid and the seal are gone, and no head of the journal tells of them."""
    _named(run, "XID").unlink()
    _cut("journal.jsonl")(run, run)
    for path in run.glob("journal*.jsonl"):
        text = re.sub(r',"run_id":"[^"]*"', "", path.read_text(encoding="utf-8"), count=1)
        path.write_text(text.replace('"rigproof_journal":3', '"rigproof_journal":2', 1), "utf-8")


def _measured_again(run: Path, _: Path) -> None:
    """A second value of one figure in the load segment, and the run sealed again."""
    path = run / "journal-gpu-load.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    place = next(n for n, line in enumerate(lines) if '"measured"' in line)
    again = re.sub(r'"value":[^,]+', '"value":1.0', lines[place])
    seq = int(re.findall(r'"seq":(\d+)', lines[-1])[0])
    # The last record ends the segment's clock; a value of that moment runs back nowhere.
    for key in ("boot_s", "utc"):
        last = re.search(rf'"{key}":("[^"]*"|[^,]+)', lines[-1])
        assert last is not None
        again = re.sub(rf'"{key}":("[^"]*"|[^,]+)', last[0], again, count=1)
    again = re.sub(r'"seq":\d+', f'"seq":{seq + 1}', again, count=1)
    path.write_text("".join(f"{line}\n" for line in (*lines, again)), encoding="utf-8")
    anew(run)


ATTACKS = (
    Attack("the segment that holds an Xid is removed", _removed("XID"), r"jsonl is missing", "xid"),
    Attack("its last record is removed", _cut("XID"), r"was changed after the seal", "xid"),
    Attack("the GPU's telemetry is removed", _removed("telemetry-gpu.jsonl"), r"is missing"),
    Attack("the telemetry is cut", _cut("telemetry.jsonl"), r"was changed after the seal"),
    Attack("a program's output is removed", _removed("logs/*.log"), r"\.log is missing"),
    Attack("a program's output is cut", _cut("logs/*.log"), r"was changed after the seal"),
    Attack(
        "a program's output is removed from a run that failed",
        _removed("logs/*.log"),
        r"\.log is missing",
        run="wrong",
        code=1,
    ),
    Attack(
        "a segment of a run that failed is overwritten",
        _junk("journal-gpu.jsonl"),
        r"journal-gpu\.jsonl, line 1: is not the head",
        run="wrong",
        code=1,
    ),
    Attack(
        "a run with an Xid is made one of a version without seals",
        _made_old,
        r"segments of a newer rigproof lie in a run of an older one: telemetry",
        run="xid",
    ),
    Attack("the seal is removed", _cut("journal.jsonl"), r"the run has no seal"),
    Attack(
        "a value is changed",
        _changed("journal-gpu-load.jsonl", r'"value":(\d)', r'"value":1\1'),
        r"journal-gpu-load\.jsonl was changed after the seal",
    ),
    Attack(
        "a partial run is a whole one by a word in its plan",
        _changed("journal.jsonl", r'"scope":"partial"', r'"scope":"full"'),
        r"journal\.jsonl was changed after the seal",
    ),
    Attack(
        "and is accepted as a baseline",
        _changed("journal.jsonl", r'"scope":"partial"', r'"scope":"full"'),
        r"UNJUDGED",
        code=2,
        command=("baseline", "accept"),
    ),
    Attack(
        "a segment is named like evidence",
        _copied("journal-gpu.jsonl", "journal-more.jsonl"),
        r"is not of this run",
    ),
    Attack(
        "the load segment of a healthy run, sealed again",
        _laid_in("journal-gpu-load.jsonl"),
        r"journal-gpu-load\.jsonl is of another run",
        run="wrong",
    ),
    Attack(
        "the same under this run's name",
        _laid_in("journal-gpu-load.jsonl", renamed=True),
        r"the records of journal-gpu-load\.jsonl do not lie within its session",
        run="wrong",
    ),
    Attack(
        "the telemetry of a healthy run, sealed again",
        _laid_in("telemetry-gpu.jsonl", renamed=True),
        r"the records of telemetry-gpu\.jsonl do not lie within the time of the run",
        run="xid",
        code=1,
    ),
    Attack(
        "a segment of another machine, sealed again",
        _changed(
            "journal-gpu-load.jsonl", r'"machine_id":"\w{4}', r'"machine_id":"0000', sealed=True
        ),
        r"journal-gpu-load\.jsonl is of another run, machine",
    ),
    Attack(
        "a segment of another boot, sealed again",
        _changed("journal-gpu-load.jsonl", r'"boot_id":"\w{4}', r'"boot_id":"0000', sealed=True),
        r"journal-gpu-load\.jsonl is of another boot",
    ),
    Attack(
        "a session of another build, sealed again",
        _changed("journal-gpu-load.jsonl", r'"digest":"\w{4}', r'"digest":"0000', sealed=True),
        r"session gpu-load",
    ),
    Attack(
        "a GPU of another serial, sealed again",
        _changed(
            "journal-gpu-load.jsonl", r'"serial":"GPU-\w{4}', r'"serial":"GPU-0000', sealed=True
        ),
        r"tells of another gpu",
    ),
    Attack(
        "times that run backwards, sealed again",
        _changed(
            "journal-gpu-load.jsonl", r'"seq":9,"boot_s":\d+', '"seq":9,"boot_s":1', sealed=True
        ),
        r"run backwards",
    ),
    Attack("two values of one figure, sealed again", _measured_again, r"was measured 2 times"),
)


def attacks(theatre: Theatre, say: Say) -> Iterator[Row]:
    """A row for each attack.

    Raises AssertionError where the runs are not what the attacks need, and where what is laid
    beside one changes its verdict.
    """
    runs = {name: _made(theatre, name, fault) for name, fault in RUNS.items()}
    for name in ("rack.png", "logs/notes"):
        (runs["passed"] / name).write_text("laid beside", encoding="utf-8")
    for name, folder in runs.items():
        done = _call(theatre, "judge", str(folder))
        assert done.returncode == RUNS[name].code, f"{name} is judged otherwise: {done.stdout}"
    for attack in ATTACKS:
        row = _tried(theatre, attack, runs[attack.run], runs[_OTHER[attack.run]])
        say(f"{FAMILY}: {attack.what}: {row.message if row.caught else f'MISSED: {row.wrong}'}")
        yield row


def _made(theatre: Theatre, name: str, fault: Fault) -> Path:
    """A whole run; its folder."""
    with corner(theatre, Named(FAMILY, name, fault)) as stage:
        run, _ = stage.play()
        wrong = trial.whole(fault, run)
    assert not wrong, f"the run that {name}: {wrong}"
    return run.path


def _tried(theatre: Theatre, attack: Attack, own: Path, other: Path) -> Row:
    home = theatre.home / FAMILY / re.sub(r"\W+", "-", attack.what)
    copy, wrong, message = home / own.name, "", ""
    began = time.monotonic()
    try:
        shutil.copytree(own, copy)
        attack.turn(copy, other)
        done = _call(theatre, *attack.command, str(copy))
        printed = done.stdout + done.stderr
        line = next((one for one in printed.splitlines() if re.search(attack.says, one)), "")
        message = one_line(line)
        wrong = next(trouble_in(printed), "")
        if done.returncode != attack.code:
            wrong = f"exit status {done.returncode}, and not {attack.code}: {one_line(printed)}"
        elif not line:
            wrong = f"says nothing like {attack.says!r}: {one_line(printed)}"
    except TROUBLE as error:
        wrong = f"it could not be tried: {type(error).__name__}: {error}"[:400]
    journal = str((copy / "journal.jsonl").relative_to(theatre.home))
    return Row(
        FAMILY,
        attack.what,
        "files of a run",
        not wrong,
        by=" ".join(attack.command),
        message=message,
        seconds=round(time.monotonic() - began, 1),
        run_id=own.name,
        journal=journal,
        wrong=wrong,
    )


def _call(theatre: Theatre, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*theatre.rigproof, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=_JUDGE_S)
