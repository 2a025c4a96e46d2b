"""`rigproof fleet submit --slurm` with programs that stand for Slurm's: what it asks of them, and
what it makes of their answers. Their lines are those of Slurm 22.05.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import fleet_verdicts
import pytest
from cases import each
from command import assert_one_sentence, assert_refused, printed
from executable import executable
from fleet_verdicts import Call
from raising import raising

from acceptance import resources
from acceptance.cli import fleet_slurm
from acceptance.core.message import SetupError
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import slurm
from acceptance.fleet.slurm import Job, Node, Queued
from acceptance.history import folder
from acceptance.process import command
from acceptance.wording.errors import WordedUserError

RESERVED = (
    "ReservationName=repair StartTime={start} EndTime=2026-11-27T06:03:47 Duration=02:00:00 "
    "Nodes=n[1,3] NodeCnt=2 CoreCnt=2 Features=(null) PartitionName=(null) "
    "Flags={flags} TRES=cpu=2 Users=root Groups=(null) Accounts=(null) "
    "Licenses=(null) State={state} BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
)
LICENCE = "LicenseName=rigproof Total=2 Used=0 Free=2 Reserved=0 Remote=no\n"


def row(name: str, state: str, reason: str = "none") -> str:
    """A line of sinfo."""
    return f"{name:128}{state:128}{reason:256}\n"


def test_nodes_as_sinfo_lists_them() -> None:
    ours = 'rigproof FAIL: gpu3 | odd "q" $(id)'
    text = row("n1", "idle+drain", ours) + row("n2", "ALLOCATED") + row("n1", "idle+drain", ours)
    assert slurm.parse_nodes(text) == (
        Node("n1", "idle", frozenset({"drain"}), ours),
        Node("n2", "allocated", frozenset(), "none"),
    )


@each(
    "line",
    [
        *("n1 idle none", "slurm", row("n[1-3]", "idle"), row("n1", "idle*"), row("", "idle")),
        *(row("n" * 128, "idle"), row("n1", "idle+" + "a" * 123)),  # cut
    ],
)
def test_a_line_of_sinfo_that_is_not_known_is_quoted(line: str) -> None:
    with pytest.raises(WordedUserError, match="sinfo printed a line that is not known here: "):
        slurm.parse_nodes(row("n0", "idle") + line)


@each(
    "state, takes, within",
    [
        ("idle", True, True),
        ("mixed+planned", True, True),
        ("allocated+completing", True, True),
        ("idle+reserved", False, True),
        ("idle+maintenance+reserved", False, True),
        ("idle+drain", False, False),
        ("allocated+drain", False, False),
        ("down+not_responding", False, False),
        ("unknown", False, False),
        ("idle+fail", False, False),
        ("idle+a_state_of_the_future", False, False),
    ],
)
def test_which_nodes_take_jobs(state: str, takes: bool, within: bool) -> None:
    (node,) = slurm.parse_nodes(row("n1", state))
    assert node.takes_jobs() is takes
    assert node.takes_jobs(reserved=True) is within


def test_only_a_reason_of_ours_is_ours() -> None:
    for state, why, ours in (
        ("idle+drain", "rigproof FAIL: gpu3", True),
        ("idle+drain", "not rigproof FAIL: gpu3", False),
        ("idle+drain", "Prolog error", False),
        ("idle", "rigproof FAIL: gpu3", False),
    ):
        assert slurm.parse_nodes(row("n1", state, why))[0].ours is ours


def test_licences() -> None:
    assert slurm.parse_licences(LICENCE) == {"rigproof": 2}
    assert slurm.parse_licences("No licenses configured in Slurm.\n") == {}
    assert slurm.parse_licences("") == {}
    with pytest.raises(WordedUserError, match=r"scontrol show licenses printed .*: rigproof 2"):
        slurm.parse_licences("rigproof 2\n")


def test_a_reservation() -> None:
    text = RESERVED.format(start="2026-11-27T04:03:47", flags="MAINT,SPEC_NODES", state="ACTIVE")
    at = datetime(2026, 11, 27, 4, 3, 47).astimezone(UTC)
    flags = frozenset({"MAINT", "SPEC_NODES"})
    assert slurm.parse_reservation(text) == ("repair", at, "n[1,3]", flags, True)
    ended = text.replace("State=ACTIVE", "State=INACTIVE").rstrip() + " Comment=was State=ACTIVE \n"
    assert slurm.parse_reservation(ended)[-1] is False
    bad = text.replace("2026-11-27T", "2026-13-27T")
    for broken in ("", text + text, bad, text.replace("StartTime=2026-11-27T", "StartTime=")):
        with pytest.raises(WordedUserError, match="scontrol show reservation printed a line"):
            slurm.parse_reservation(broken)


def test_our_jobs() -> None:
    text = "3|PENDING|n1|Licenses\n2|RUNNING|n2|None\n4|COMPLETING|n3|None\n"
    waits, runs = Queued("3", True, "n1", "Licenses"), Queued("2", False, "n2", "None")
    assert slurm.parse_jobs(text) == (waits, runs)
    with pytest.raises(WordedUserError, match="squeue printed a line that is not known here: 3_1"):
        slurm.parse_jobs("3_1|PENDING|n1|None\n")


@each(
    "component, reason",
    [
        ("gpu3", "rigproof FAIL: gpu3 gemm.rate[bf16] RUN"),
        (None, "rigproof FAIL: gemm.rate[bf16] RUN"),
        ("gpu0->gpu1", "rigproof FAIL: gpu0->gpu1 gemm.rate[bf16] RUN"),
        ("x'\n\"$(id)\x1b|=\u00e9", "rigproof FAIL: x_____id_____ gemm.rate[bf16] RUN"),
    ],
)
def test_the_reason_of_a_drain(component: str | None, reason: str) -> None:
    """Who can write to the shared folder has written its parts: only plain letters stay."""
    assert slurm.reason(component, "gemm.rate[bf16]", "RUN") == reason


def test_the_first_20_letters_of_a_reason_name_the_gpu() -> None:
    """`sinfo -R` shows no more."""
    assert slurm.reason("gpu3", "gemm.rate[bf16]", "RUN")[:20] == "rigproof FAIL: gpu3 "
    assert len(slurm.reason("x" * 9999, "c", "r")) < 300


def test_one_exclusive_job_is_pinned_to_a_node() -> None:
    job = Job(Path("/d/job"), Path("/s"), Path("/o"), 90, ("rigproof", "accept"))
    assert job.argv("n1") == (
        *("--parsable", "--job-name=rigproof", "--nodes=1", "--nodelist=n1", "--exclusive"),
        *("--mem=0", "--time=90", "--no-requeue", "--chdir=/", "--output=/s/.jobs/n1.log"),
        *("--open-mode=truncate", "/d/job", "/s", "/o", "host", "", "rigproof", "accept"),
    )
    more = Job(
        *(Path("/d/job"), Path("/s"), Path("/o"), 90, ("rigproof",), "pyxis", "img"),
        *("lic", "gpu", "repair"),
    )
    argv = more.argv("n2")
    assert argv[-6:] == ("/d/job", "/s", "/o", "pyxis", "img", "rigproof")
    assert {"--licenses=lic", "--partition=gpu", "--reservation=repair"} <= set(argv)


def test_the_job_is_there_in_a_checkout() -> None:
    assert resources.deployment("slurm/job").read_text().startswith("#!/bin/sh\n")
    with pytest.raises(SetupError, match="install rigproof again"):
        resources.deployment("slurm/nothing")


# What each program prints lies in a file of its name beside it, or of its name and first words.
FAKE = r"""#!/bin/sh
here=${0%/*} name=${0##*/}
echo "$name $*" >>"$here/calls"
for words in "$1 $2" "$1"; do
    file="$here/$name $words"
    if [ -f "$file" ]; then
        cat "$file"
        read -r code <"$file.code"
        exit "$code"
    fi
done
"""


class Slurm:
    """Programs that stand for Slurm's, and a shared folder."""

    def __init__(self, home: Path) -> None:
        self.bin, self.shared = home / "bin", home / "shared"
        self.bin.mkdir()
        self.shared.mkdir()
        for name in ("sinfo", "squeue", "scontrol", "sbatch"):
            executable(self.bin / name, FAKE)
        self.says("sinfo -N", row("n1", "idle") + row("n2", "idle"))
        self.says("sbatch --parsable", "7\n")
        self.says("scontrol show licenses", LICENCE)

    def says(self, call: str, text: str, code: int = 0) -> None:
        name = f"{call} -h" if call == "sinfo -N" else call
        name = f"{call} --me" if call == "squeue -h" else name
        (self.bin / name).write_text(text)
        (self.bin / f"{name}.code").write_text(f"{code}\n")

    def hold(self, node: str, word: VerdictWord, hours: float = 1.0) -> str:
        return fleet_verdicts.hold(self.shared, node, word, hours)

    def die(self, node: str, hours: float) -> None:
        """A run of a node that began and left no verdict."""
        (self.shared / node / fleet_verdicts.ago(hours)[0]).mkdir()

    def calls(self, program: str) -> list[str]:
        log = self.bin / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith(program)]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    found = Slurm(tmp_path)
    monkeypatch.setenv("PATH", str(found.bin), prepend=":")
    # The scripts leave nothing running, and a reaper costs ten times what a script does.
    monkeypatch.setattr(command, "under_reaper", list)
    return found


@pytest.fixture
def call(fleet: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("COLUMNS", "400")
    return partial(fleet, "submit", "--slurm", str(site.shared))


def test_each_node_without_a_fresh_verdict_is_submitted(call: Call, site: Slurm) -> None:
    site.hold("n1", "FAIL")
    site.hold("n2", "PASS", hours=40)
    out = printed(call("--licence", "rigproof", "--", "--profile", "nightly"))
    assert out == ["fresh verdict, not tested again: n1", "submitted: n2 (7)"]
    (sent,) = site.calls("sbatch")
    assert "--nodelist=n2 --exclusive" in sent
    assert "--licenses=rigproof" in sent
    command = "rigproof accept --station host --out /var/lib/rigproof --profile nightly"
    assert sent.endswith(f"/slurm/job {site.shared} /var/lib/rigproof host  {command}")
    assert site.calls("scontrol update") == []


def reserve(site: Slurm, hours: float = 1.0, **values: str) -> None:
    start = datetime.now().astimezone() - timedelta(hours=hours)
    more = {"flags": "MAINT,IGNORE_JOBS", "state": "ACTIVE", **values}
    text = RESERVED.format(start=f"{start:%Y-%m-%dT%H:%M:%S}", **more)
    site.says("scontrol show reservation", text)


def show(site: Slurm, *names: str) -> None:
    site.says("scontrol show hostnames", "".join(f"{name}\n" for name in names))


LIMITED = ("--licence", "rigproof")
REPAIR = (*LIMITED, "--reservation", "repair")
IDLE, BOTH = ("idle",), "maintenance+reserved"
OURS = "rigproof FAIL: gpu3"
DRAIN = "scontrol update NodeName={0} State=DRAIN Reason=rigproof FAIL: gemm.rate[bf16] {{{0}}}"
DRAINED = "{0}: drained (rigproof FAIL: gemm.rate[bf16] {{{0}}})"
RESUME = "scontrol update NodeName={} State=RESUME"
REFUSED = {"sbatch --parsable": ("sbatch: error: invalid account\n", 1)}
Held = tuple[str, VerdictWord | None, float]
# Nodes, what they hold (no word: a run without a verdict), what Slurm says, and the arguments; then
# the exit code, the lines, what is changed in Slurm, and what is submitted.
SCENES: dict[str, tuple[Any, ...]] = {
    # An UNJUDGED machine has not been proved, and a FAIL that stands is tested again some day.
    "only a fresh PASS or FAIL spares a node its test": (
        dict.fromkeys(("failed", "lately", "old", "passed", "unjudged"), IDLE),
        [
            *(("failed", "FAIL", 5), ("failed", "UNJUDGED", 1), ("lately", "FAIL", 50)),
            *(("lately", "UNJUDGED", 1), ("old", "FAIL", 50), ("passed", "PASS", 1)),
            ("unjudged", "UNJUDGED", 1),
        ],
        *({}, LIMITED, 0),
        [
            "fresh verdict, not tested again: failed, passed (nightly)",
            "submitted: lately (7), old (7), unjudged (7)",
        ],
        *([], "--nodelist=old"),
    ),
    # The node died in its retest, or its clock is ahead: it does not pass for tested.
    **{
        f"a FAIL in doubt is tested again{' and drained for' * len(drain)}": (
            {"n1": IDLE, "n2": IDLE},
            [("n1", "FAIL", 5), ("n1", None, 2), ("n2", "FAIL", -5)],
            *({}, (*LIMITED, *drain), 0),
            [
                *(DRAINED.format(one) for one in ("n1", "n2") if drain),
                *(["submitted: n1 (7), n2 (7)"] * (not drain)),
            ],
            [DRAIN.format("n1"), DRAIN.format("n2")] * len(drain),
            "--nodelist=n2",
        )
        for drain in ((), ("--drain",))
    },
    "nothing limits without a licence": (
        *({"n1": IDLE, "n2": IDLE}, [], {}, (), 0),
        ["no licence limits how many nodes are tested at once", "submitted: n1 (7), n2 (7)"],
        *([], "--nodelist=n1"),
    ),
    "nodes that take no job are named": (
        {
            "n1": ("down+not_responding", "Not responding"),
            "n2": ("idle+reserved",),
            "n3": IDLE,
        },
        [],
        {"squeue -h": ("3|PENDING|n3|PartitionTimeLimit\n", 0)},
        *(LIMITED, 3),
        [
            "n1: down+not_responding (Not responding): not submitted",
            "n2: idle+reserved: not submitted",
            "a job waits or runs already: n3 (PartitionTimeLimit)",
        ],
        *([], ""),
    ),
    "a node that Slurm refuses hinders no other": (
        *({"n1": IDLE, "n2": IDLE}, [], REFUSED, LIMITED, 3),
        [f"{one}: sbatch refused: sbatch: error: invalid account" for one in ("n1", "n2")],
        *([], "--nodelist=n2"),
    ),
    **{
        f"{'drains and resumes only what is ours' if drain else 'drains only when asked'}": (
            {
                "n1": ("allocated",),
                "n2": ("idle+drain", OURS),
                "n3": ("idle+drain", "somebody's"),
            },
            [("n1", "FAIL", 1), ("n2", "PASS", 1), ("n3", "PASS", 1)],
            *({}, (*LIMITED, *drain), 0),
            [DRAINED.format("n1"), "n2: resumed, it passed"] * len(drain),
            [DRAIN.format("n1"), RESUME.format("n2")] * len(drain),
            "",
        )
        for drain in ((), ("--drain",))
    },
    # A verdict from before the repair does not count, a FAIL within it is drained again.
    "a reservation is tested anew and what passes is released": (
        {
            "n1": (f"idle+drain+{BOTH}", OURS),
            "n2": (f"idle+{BOTH}",),
            "n3": (f"idle+{BOTH}",),
            "n4": (f"idle+drain+{BOTH}", "somebody's"),
        },
        [("n1", "FAIL", 5), ("n2", "PASS", 0.5), ("n3", "FAIL", 0.5)],
        *({}, REPAIR, 3),
        [DRAINED.format("n3")],
        [
            DRAIN.format("n3"),
            "scontrol update ReservationName=repair Nodes=n1,n3,n4",
            RESUME.format("n1"),
        ],
        "--reservation=repair",
    ),
    # The node failed in the reservation and was cut off since; its new job is in the queue.
    "a FAIL in doubt is not drained for while its retest waits": (
        {"n1": (f"idle+{BOTH}",)},
        [("n1", "FAIL", 0.5), ("n1", None, 0.2)],
        {"squeue -h": ("3|PENDING|n1|None\n", 0)},
        *(REPAIR, 0),
        ["a job waits or runs already: n1 (None)"],
        *([], ""),
    ),
    "and is when it has ended": (
        {"n1": (f"idle+{BOTH}",)},
        [("n1", "FAIL", 0.5), ("n1", None, 0.2)],
        *({}, REPAIR, 0, [DRAINED.format("n1")], [DRAIN.format("n1")], "--nodelist=n1"),
    ),
    "the reason of a node that is down is kept": (
        {"n1": ("down", "bad PSU, ticket 12")},
        [("n1", "FAIL", 0.5)],
        *({}, (*LIMITED, "--drain"), 0, ["fresh verdict, not tested again: n1"], [], ""),
    ),
    "a node whose job is refused stays drained": (
        {"n1": (f"idle+drain+{BOTH}", OURS)},
        *(
            [],
            REFUSED,
            REPAIR,
            3,
            ["n1: sbatch refused: sbatch: error: invalid account"],
            [],
            "--nodelist=n1",
        ),
    ),
    "a repaired node that gave no verdict is drained again": (
        {"n1": (f"idle+drain+{BOTH}", OURS)},
        *([], {}, (*REPAIR, "--wait"), 3, ["submitted: n1 (7)"]),
        [RESUME.format("n1"), f"scontrol update NodeName=n1 State=DRAIN Reason={OURS}"],
        "--nodelist=n1",
    ),
    "a reservation ends with its last node": (
        {"n1": (f"idle+{BOTH}",)},
        [("n1", "PASS", 0.5)],
        *({}, REPAIR, 0, ["released from the reservation repair: n1"]),
        *(["scontrol delete ReservationName=repair"], ""),
    ),
}


@pytest.mark.parametrize(
    ("nodes", "held", "says", "arguments", "code", "lines", "changes", "sent"),
    SCENES.values(),
    ids=SCENES,
)
def test_what_is_submitted_drained_and_resumed(
    call: Call,
    site: Slurm,
    nodes: dict[str, tuple[str, ...]],
    held: list[Held],
    says: dict[str, tuple[str, int]],
    arguments: tuple[str, ...],
    code: int,
    lines: list[str],
    changes: list[str],
    sent: str,
) -> None:
    reserve(site)
    show(site, *nodes)
    site.says("sinfo -N", "".join(row(name, *more) for name, more in nodes.items()))
    runs = {}
    for name, word, hours in held:
        if word is None:
            site.die(name, hours)
        else:
            runs[name] = site.hold(name, word, hours)
    for words, (text, ends) in says.items():
        site.says(words, text, ends)
    found, out, _ = call(*arguments)
    assert (found, out[: len(lines)]) == (code, [one.format(**runs) for one in lines])
    made = [*site.calls("scontrol update"), *site.calls("scontrol delete")]
    assert made == [one.format(**runs) for one in changes]
    submitted = " ".join(site.calls("sbatch"))
    assert sent in submitted if sent else not submitted


@pytest.mark.parametrize("values", [{"flags": "SPEC_NODES"}, {"state": "INACTIVE"}])
def test_only_a_maintenance_reservation_in_force(
    call: Call, site: Slurm, values: dict[str, str]
) -> None:
    reserve(site, **values)
    code, out, err = call("--licence", "rigproof", "--reservation", "repair")
    assert (code, out) == (2, [])
    assert "repair is no maintenance reservation in force: create it with 'scontrol create" in err


def test_a_wait_ends_where_what_is_left_waits_for_a_node_that_is_away(
    call: Call, site: Slurm
) -> None:
    site.hold("n1", "PASS")
    away = row("n2", "down+not_responding", "Not responding")
    site.says("sinfo -N", row("n1", "idle") + away)
    site.says("squeue -h", "3|PENDING|n2|None\n4|RUNNING|somewhere|None\n")
    out = printed(call("--licence", "rigproof", "--wait"), 3)
    assert "n2: its job cannot start (None): end the cause, or 'scancel 3'" in out
    assert "UNJUDGED n2: there is no verdict" in out
    assert out[-1].startswith("UNJUDGED: 2 machines due: 1 PASS, 0 FAIL, 1 UNJUDGED")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--licence", "burnin"], "Slurm knows no licence burnin: have the site define it"),
        (["--runtime", "pyxis"], "--runtime pyxis needs an image: give it with --image REF"),
        (["--nodes", "n9"], "--nodes n9: not among the nodes that Slurm lists: see 'sinfo -N'"),
        (["--minutes", "0"], "no number from 1 to 9999"),
        (["--runtime", "docker"], "invalid choice"),
        (["--kubernetes", "x"], "not allowed with"),
        (["--taint"], "--taint is an option of --kubernetes: leave it out with --slurm"),
        (["--dry-run"], "--dry-run is an option of --kubernetes: leave it out with --slurm"),
        (["--image", "x"], "--image is of no use with --runtime host: name the runtime"),
        (["--wait-minutes", "5"], "--wait-minutes is the limit of --wait: give that too"),
        (["--wait", "--wait-minutes", "0"], "no whole number from 1 to 1000000"),
    ],
)
def test_mistakes_are_one_sentence(
    call: Call, site: Slurm, arguments: list[str], said: str
) -> None:
    show(site, "n9")
    code, _, err = call(*arguments)
    assert code == 2
    assert_one_sentence(err, said)
    assert site.calls("sbatch") == []


def test_a_controller_that_does_not_answer(call: Call, site: Slurm) -> None:
    site.says("sinfo -N", "slurm_load_partitions: Unable to contact slurm controller\n", code=1)
    assert_refused(
        call("--licence", "rigproof"),
        2,
        "sinfo refused: slurm_load_partitions: Unable to contact slurm controller",
    )
    site.says("sinfo -N", "")
    code, _, err = call("--partition", "gpu")
    assert (code, err) == (2, "rigproof: Slurm lists no nodes in the partition gpu: see 'sinfo'\n")


def test_a_shared_folder_that_is_not_there(site: Slurm, call: Call) -> None:
    site.shared.rmdir()
    code, _, err = call()
    assert code == 2
    assert "cannot be written (No such file or directory): give a folder that every node" in err


class Clock:
    """Stands for `time` of a wait: a pause takes no time, and `slept` says how long it was."""

    def __init__(self, wake: Callable[[float], None]) -> None:
        self.slept = 0.0
        self.pauses: list[float] = []
        self.wake = wake

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.pauses.append(seconds)
        self.wake(self.slept)

    def monotonic(self) -> float:
        return self.slept


def wait_by(monkeypatch: pytest.MonkeyPatch, wake: Callable[[float], None]) -> Clock:
    clock = Clock(wake)
    monkeypatch.setattr(fleet_slurm, "time", clock)
    return clock


def test_a_refused_call_is_tried_again_while_waiting(
    call: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller restarts, and the jobs have ended when it is back."""

    def wake(slept: float) -> None:
        if slept > 1.0:
            site.says("squeue -h", "slurm_load_jobs error: Unable to contact\n", code=1)
        if slept > 60.0:
            site.says("squeue -h", "")
            site.hold("n1", "PASS", hours=0.0)
            site.hold("n2", "PASS", hours=0.0)

    site.says("squeue -h", "7|RUNNING|n1|None\n8|RUNNING|n2|None\n")
    clock = wait_by(monkeypatch, wake)
    out = printed(call("--licence", "rigproof", "--wait"))
    assert out[-1].startswith("PASS: 2 machines due: 2 PASS")
    assert clock.pauses[-5:] == [2.0, 5.0, 10.0, 20.0, 40.0]


def test_a_controller_that_stays_away_ends_a_wait(
    call: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is still submitted is named."""

    def wake(_: float) -> None:
        site.says("squeue -h", "slurm_load_jobs error: Unable to contact\n", code=1)

    clock = wait_by(monkeypatch, wake)
    site.says("squeue -h", "3|RUNNING|n1|None\n")
    code, out, err = call("--licence", "rigproof", "--wait")
    assert (code, err) == (
        3,
        "rigproof: Slurm refused 8 times in a row (squeue refused: slurm_load_jobs error: Unable "
        "to contact); these jobs stay submitted: n1 (3): call again with --wait when it answers\n",
    )
    assert out == ["a job waits or runs already: n1", "submitted: n2 (7)"]
    assert 180 < clock.slept < 300


NEVER = (
    *("PartitionNodeLimit", "PartitionTimeLimit", "QOSMaxWallDurationPerJobLimit"),
    *("AssocMaxGRESPerJob", "JobHeldUser", "InvalidQOS", "launch failed requeued held"),
)
PASSING = ("None", "Priority", "Licenses", "Resources", "Reservation", "BeginTime")


@each("reason", [*NEVER, *PASSING])
def test_reasons_that_do_not_pass(reason: str) -> None:
    assert Queued("1", True, "n1", reason).never_starts is (reason in NEVER)
    assert not Queued("1", False, "n1", reason).never_starts


def test_a_job_that_never_starts_is_named_and_not_waited_for(
    call: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reason has to stay for some minutes: one of before the node was resumed goes."""

    def wake(slept: float) -> None:
        reason = "PartitionNodeLimit" if slept > 30.0 else "Resources"
        site.says("squeue -h", f"3|PENDING|n1|PartitionNodeLimit\n4|PENDING|n2|{reason}\n")

    clock = wait_by(monkeypatch, wake)
    wake(0.0)
    out = printed(call("--licence", "rigproof", "--wait"), 3)
    assert [one for one in out if "cannot start" in one] == [
        f"n{n}: its job cannot start (PartitionNodeLimit): end the cause, or 'scancel {n + 2}'"
        for n in (1, 2)
    ]
    assert 180 <= clock.slept < 220


@pytest.mark.parametrize(
    ("arguments", "minutes"),
    [
        (["--licence", "rigproof", "--minutes", "2"], 6),  # 3 jobs, 2 at once
        (["--minutes", "2"], 4),
        (["--wait-minutes", "3"], 3),
    ],
)
def test_a_wait_has_a_limit(
    call: Call,
    site: Slurm,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    minutes: int,
) -> None:
    clock = wait_by(monkeypatch, lambda _: None)
    site.says("sinfo -N", "".join(row(f"n{n}", "idle") for n in (1, 2, 3)))
    site.says("squeue -h", "3|PENDING|n1|Licenses\n4|RUNNING|n2|None\n5|PENDING|n3|Priority\n")
    out = printed(call("--wait", *arguments), 3)
    jobs = "n1 (3: Licenses), n2 (4: running), n3 (5: Priority)"
    assert f"not tested after {minutes} min, their jobs stay in the queue: {jobs}" in out
    assert clock.slept == pytest.approx(minutes * 60)


def test_a_call_that_submits_for_long_is_named(
    call: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "_LOCK_S", 0.0)
    (site.shared / ".jobs").mkdir()
    with slurm.submitting(site.shared):
        code, out, err = call("--licence", "rigproof")
    assert (code, out, err.count("\n")) == (3, [], 1)
    holder = f"process {os.getpid()}, since 20"
    assert f"another call submits for {site.shared} at this moment (" in err
    assert holder in err
    assert site.calls("sbatch") == []
    assert call("--licence", "rigproof")[0] == 0


def test_a_call_waits_for_the_one_before_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    order: list[str] = []

    def second() -> None:
        with folder.hold(path, 60.0):
            order.append("second")

    waiting = threading.Thread(target=second)
    with folder.hold(path, 0.0):
        waiting.start()
        with pytest.raises(folder.Locked, match="process"), folder.hold(path, 0.2):
            pass
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOLCK, "cannot be locked (No locks available), and two calls at once could test a"),
        (errno.EACCES, "cannot be written (Permission denied): give a folder that every node and"),
    ],
)
def test_a_folder_without_locks_is_refused(
    call: Call, site: Slurm, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    """Some shared file systems have none: then nothing keeps two calls apart."""

    monkeypatch.setattr(folder.fcntl, "flock", raising(OSError(number, os.strerror(number))))
    assert_refused(call("--licence", "rigproof"), 2, f"/.jobs/.submit.lock {said}")
    assert site.calls("sbatch") == []
