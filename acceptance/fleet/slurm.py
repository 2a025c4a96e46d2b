"""Slurm: its nodes, reservations, licences and our jobs, by its commands; and what we ask of it.

Slurm's --json is not read: sinfo 22.05 without a controller prints an empty list of nodes and exits
with 0. Every line of the outputs must match.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acceptance.core import plain_text
from acceptance.core.message import Text, english
from acceptance.fleet import due
from acceptance.history import folder as history_folder
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError, WordedUserError

JOB = "rigproof"  # the name of our jobs
OURS = "rigproof FAIL: "  # begins each reason that is ours
RUNTIMES = ("host", "pyxis", "apptainer")
_PACKAGE = "slurm-client"
_SECONDS = 60.0
_LOCK_S = 60.0  # another call submits some dozens of nodes a second
_NAME, _STATE, _REASON = 128, 128, 256  # widths of sinfo's columns; a longer reason is cut
# States of a node that a job may wait for; with any other it may wait for ever.
_BASES = frozenset({"idle", "allocated", "mixed"})
# A node that does not respond is soon down, or was resumed a moment ago.
_PASSING = frozenset(
    {"completing", "planned", "cloud", "powered_down", "powering_up", "dynamic_norm"}
    | {"not_responding"}
)
# What a job waits for that does not come by itself (Slurm's page "Job reason codes"): a limit that
# it exceeds, an account, a constraint or a hold. `PerJob` limits have a name for each resource.
_NEVER = re.compile(
    r"(?:Assoc|QOS)Max\w+PerJob(?:Limit)?|AccountNotAllowed|AssociationTimeLimit|BadConstraints|"
    r"DependencyNeverSatisfied|InvalidAccount|InvalidQOS|JobHeldAdmin|JobHeldUser|JobHoldMaxRequeue|"
    r"JobLaunchFailure|PartitionNodeLimit|PartitionTimeLimit|QOSNotAllowed|QOSTimeLimit|"
    r"ReservationDeleted|launch failed requeued held",
    re.ASCII,
)
_STATES = re.compile(r"[a-z_]+(?:\+[a-z_]+)*", re.ASCII)
_LICENCE = re.compile(r"LicenseName=(\S+) Total=(\d+) Used=\d+ ", re.ASCII)
_NO_LICENCE = "No licenses configured in Slurm."
_RESERVATION = re.compile(
    r"ReservationName=(?P<name>\S+) StartTime=(?P<start>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) "
    r"EndTime=\S+ Duration=\S+ Nodes=(?P<nodes>\S+) NodeCnt=\d+ .*?\bFlags=(?P<flags>\S*) "
    r".*?\bState=(?P<state>ACTIVE|INACTIVE)\b.*",  # not that of a comment at the end
    re.ASCII,
)
_OUR_JOB = re.compile(r"(\d+)\|([A-Z_]+)\|([^|]*)\|(.*)", re.ASCII)
_SUBMITTED = re.compile(r"(\d+)(?:;\S+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Node:
    """A node as sinfo shows it: its base state, the flags beside it, and the drain's reason."""

    name: str
    base: str
    flags: frozenset[str]
    reason: str

    @property
    def state(self) -> str:
        """The whole state, for a message."""
        return "+".join((self.base, *sorted(self.flags)))

    @property
    def drained(self) -> bool:
        """Whether no new job starts on it, because somebody drained it."""
        return "drain" in self.flags

    @property
    def ours(self) -> bool:
        """Whether it is drained for a reason of ours."""
        return self.drained and self.reason.startswith(OURS)

    @property
    def in_service(self) -> bool:
        """Whether it runs jobs but for a drain; a node that is DOWN has its own reason."""
        return self.base in _BASES

    def takes_jobs(self, *, reserved: bool = False) -> bool:
        """Whether a job that is pinned to it starts when the jobs before it are done.

        `reserved` says that the job is of the node's maintenance reservation.
        """
        own = {"maintenance", "reserved"} if reserved else set()
        return self.base in _BASES and self.flags - own <= _PASSING


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of Slurm that is in force."""

    name: str
    since: datetime
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queued:
    """A job of ours that waits or runs, the node that it asks for, and what it waits for."""

    id: str
    waits: bool
    node: str
    reason: str

    @property
    def never_starts(self) -> bool:
        """Whether it waits for what does not come unless somebody changes something."""
        return self.waits and _NEVER.match(self.reason) is not None

    @property
    def state(self) -> str:
        """What it does, for a message."""
        return self.reason if self.waits else "running"


@dataclass(frozen=True, slots=True)
class Job:
    """What is submitted for each node.

    `folder` is shared and gets the verdicts, `out` is a local folder of the node and gets the runs.
    `command` is rigproof on the node, or in the image, with its arguments.
    """

    script: Path
    folder: Path
    out: Path
    minutes: int
    command: tuple[str, ...]
    runtime: str = "host"
    image: str = ""
    licence: str | None = None
    partition: str | None = None
    reservation: str | None = None

    def argv(self, node: str) -> tuple[str, ...]:
        """The arguments of sbatch: one exclusive job, pinned to the node."""
        limits = (
            ("--licenses", self.licence),
            ("--partition", self.partition),
            ("--reservation", self.reservation),
        )
        return (
            "--parsable",
            f"--job-name={JOB}",
            "--nodes=1",
            f"--nodelist={node}",
            "--exclusive",
            "--mem=0",
            f"--time={self.minutes}",
            # A node that died has no verdict; the next call submits it again when it is back.
            "--no-requeue",
            "--chdir=/",
            f"--output={log_of(self.folder, node)}",
            "--open-mode=truncate",
            *(f"{option}={value}" for option, value in limits if value is not None),
            str(self.script),
            str(self.folder),
            str(self.out),
            self.runtime,
            self.image,
            *self.command,
        )


def log_of(folder: Path, node: str) -> Path:
    """What the last job of a node printed; the dot keeps it apart from the machines' folders."""
    return folder / ".jobs" / f"{node}.log"


def sinfo(partition: str | None) -> tuple[str, ...]:
    """The arguments of sinfo for the nodes of a partition, or of all."""
    columns = f"NodeList:{_NAME},StateComplete:{_STATE},Reason:{_REASON}"
    chosen = ("-p", partition) if partition else ()
    return ("-N", "-h", *chosen, "-O", columns)


def parse_nodes(text: str) -> tuple[Node, ...]:
    """The nodes of sinfo's output; one in several partitions stands there several times.

    Raises WordedUserError.
    """
    found: dict[str, Node] = {}
    for line in _lines(text):
        columns = line[:_NAME], line[_NAME : _NAME + _STATE]
        name, state = columns[0].strip(), columns[1].strip().lower()
        reason = line[_NAME + _STATE :].strip()
        whole = all(one.endswith(" ") for one in columns)  # else sinfo may have cut it
        if not whole or not due.is_name(name) or not _STATES.fullmatch(state):
            raise _unknown("sinfo", line)
        base, *flags = state.split("+")
        found[name] = Node(name, base, frozenset(flags), reason)
    return tuple(found.values())


def parse_licences(text: str) -> dict[str, int]:
    """How many there are of each licence, by `scontrol show licenses -o`. Raises WordedError."""
    found: dict[str, int] = {}
    for line in _lines(text):
        if line.strip() == _NO_LICENCE:
            continue
        licence = _LICENCE.match(line)
        if licence is None:
            raise _unknown("scontrol show licenses", line)
        found[licence[1]] = int(licence[2])
    return found


def parse_reservation(text: str) -> tuple[str, datetime, str, frozenset[str], bool]:
    """Name, start, list of nodes, flags, and whether it is in force. Raises WordedUserError."""
    lines = _lines(text)
    found = _RESERVATION.fullmatch(lines[0].strip()) if len(lines) == 1 else None
    if found is None:
        raise _unknown("scontrol show reservation", lines[0] if lines else "")
    try:
        since = datetime.fromisoformat(found["start"]).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _unknown("scontrol show reservation", lines[0]) from error
    flags = frozenset(found["flags"].split(","))
    return found["name"], since, found["nodes"], flags, found["state"] == "ACTIVE"


def parse_jobs(text: str) -> tuple[Queued, ...]:
    """Our jobs that wait or run, by squeue's lines; one that is completing did its work.

    Raises WordedUserError.
    """
    found = []
    for line in _lines(text):
        job = _OUR_JOB.fullmatch(line.strip())
        if job is None:
            raise _unknown("squeue", line)
        if job[2] != "COMPLETING":
            found.append(Queued(job[1], job[2] == "PENDING", job[3], job[4]))
    return tuple(found)


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _unknown(program: str, line: str) -> WordedUserError:
    return WordedUserError(
        english(
            "slurm_line",
            "{program} printed a line that is not known here: {text}: tell the version of Slurm "
            "to the developers of rigproof",
        ),
        program=program,
        text=plain_text.quote(line),
    )


def reason(component: str | None, check: str, run_id: str) -> str:
    """The reason of a drain. `sinfo -R` shows 20 letters: `rigproof FAIL: gpu3 `.

    Anybody who can write into the folder has written these values: only plain letters stay.
    """
    text = " ".join(part for part in (component, check, run_id) if part)
    return OURS + re.sub(r"[^A-Za-z0-9_.:>/ \[\]-]", "_", text, flags=re.ASCII)[:200]


def nodes(partition: str | None = None) -> tuple[Node, ...]:
    """The nodes that Slurm knows. Raises WordedUserError, CommandError."""
    found = parse_nodes(_output("sinfo", *sinfo(partition)))
    if not found:
        raise WordedUserError(
            english(
                "slurm_no_nodes", "Slurm lists no nodes[ in the partition {partition}]: see `sinfo`"
            ),
            partition=partition,
        )
    return found


def expand(nodes: str) -> tuple[str, ...]:
    """The names in a list of Slurm's form: n[1-3],gpu7. Raises WordedUserError, CommandError."""
    return due.names(_output("scontrol", "show", "hostnames", nodes), "scontrol show hostnames")


def licences(name: str) -> int:
    """How many the site has of a licence; raises WordedUserError where it has none."""
    known = parse_licences(_output("scontrol", "show", "licenses", "-o"))
    if count := known.get(name):
        return count
    raise WordedUserError(
        english(
            "slurm_no_licence",
            "Slurm knows no licence {licence}: have the site define it in slurm.conf "
            "(Licenses={licence}:4 lets four nodes be tested at once), or leave --licence out",
        ),
        licence=name,
    )


def maintenance(name: str) -> Reservation:
    """A maintenance reservation that is in force. Raises WordedUserError, CommandError."""
    text = _output("scontrol", "show", "reservation", name, "-o")
    known, since, nodes, flags, active = parse_reservation(text)
    if "MAINT" not in flags or not active:
        raise WordedUserError(
            english(
                "slurm_no_maintenance",
                "the reservation {reservation} is no maintenance reservation in force: create it "
                "with `scontrol create reservation ReservationName={reservation} "
                "Flags=MAINT,IGNORE_JOBS StartTime=now Duration=1-0 Users=$USER Nodes=LIST`",
            ),
            reservation=name,
        )
    return Reservation(known, since, expand(nodes))


@contextlib.contextmanager
def submitting(folder: Path) -> Iterator[None]:
    """Be the only call that submits for this shared folder, which has the folder of the logs.

    Raises WordedError where another call does, and WordedUserError where the folder cannot be
    locked.
    """
    path = log_of(folder, "any").with_name(".submit.lock")
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(history_folder.hold(path, _LOCK_S))
        except history_folder.Locked as error:
            raise WordedError(
                english(
                    "slurm_locked",
                    "another call submits for {path} at this moment ({holder}): call again when "
                    "it has ended",
                ),
                path=str(folder),
                holder=str(error),
            ) from error
        except PermissionError as error:
            raise WordedUserError("slurm_folder", path=str(path), why=error.strerror) from error
        except OSError as error:
            raise WordedUserError(
                english(
                    "slurm_no_lock",
                    "{path} cannot be locked ({why}), and two calls at once could test a node "
                    "twice: mount the shared folder with locks (Lustre: -o flock), or give a "
                    "folder that has them",
                ),
                path=str(path),
                why=error.strerror,
            ) from error
        yield


def jobs() -> tuple[Queued, ...]:
    """Our jobs that wait or run. Raises WordedUserError, CommandError."""
    return parse_jobs(_output("squeue", "-h", "--me", "-n", JOB, "-o", "%i|%T|%n|%r"))


def submit(job: Job, node: str) -> str:
    """Submit the job of one node; returns its id. Raises WordedUserError, CommandError."""
    # An array would start several on the node; GPUs that are hidden here are not hidden there.
    clean = ("env", "-u", "SBATCH_ARRAY_INX", "-u", "CUDA_VISIBLE_DEVICES")
    text = _output(*clean, command.find("sbatch", _PACKAGE), *job.argv(node), named="sbatch")
    found = _SUBMITTED.fullmatch(text.strip())
    if found is None:
        raise _unknown("sbatch", text)
    return found[1]


def drain(node: str, why: str) -> str:
    """Let no new job start on a node, while those that run go on; returns the reason.

    Raises WordedUserError, CommandError.
    """
    _output("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={why}")
    return why


def resume(node: str) -> str:
    """Undo a drain; returns the node's name. Raises WordedUserError, CommandError."""
    _output("scontrol", "update", f"NodeName={node}", "State=RESUME")
    return node


def release(reservation: Reservation, nodes: Sequence[str]) -> Reservation:
    """Take nodes out of a reservation, which ends with its last one.

    Returns what is left of it. Raises WordedUserError, CommandError.
    """
    left = tuple(one for one in reservation.nodes if one not in nodes)
    if left:
        named = f"ReservationName={reservation.name}"
        _output("scontrol", "update", named, f"Nodes={','.join(left)}")
    else:  # Slurm knows no reservation without nodes
        _output("scontrol", "delete", f"ReservationName={reservation.name}")
    return Reservation(reservation.name, reservation.since, left)


def _output(program: str, *arguments: str, named: str | None = None) -> str:
    """What a command of Slurm prints. Raises WordedUserError for an exit code but 0."""
    argv = (command.find(program, _PACKAGE), *arguments)
    standard = {"SLURM_TIME_FORMAT": "standard"}
    done = command.run(argv, deadline=Deadline.after(_SECONDS), env=standard)
    if done.returncode != 0 or done.truncated or done.timed_out:
        why: Text = done.last_lines(3) or done.describe()
        raise WordedUserError(
            english("slurm_refused", "{program} refused: {why}"), program=named or program, why=why
        )
    return done.stdout


def waits() -> Iterator[float]:
    """Seconds between two readings of the queue: the end of a short job is seen soon."""
    seconds = 0.5
    while True:
        yield seconds
        seconds = min(seconds * 1.2, 30.0)
