"""`rigproof fleet submit --slurm FOLDER`: one job a node without a fresh PASS or FAIL."""

from __future__ import annotations

import argparse
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from acceptance import resources
from acceptance.cli import options
from acceptance.core.exit_code import PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Listed, english
from acceptance.fleet import night, reader_file, slurm, verdicts
from acceptance.fleet.night import Judged, Standing
from acceptance.fleet.slurm import Job, Node, Queued, Reservation
from acceptance.fleet.verdicts import MachineVerdict
from acceptance.reports.terminal import Terminal
from acceptance.wording import words
from acceptance.wording.errors import WordedError, WordedUserError, said

LOCAL = Path("/var/lib/rigproof")
_MINUTES = 120
# A controller that restarts is back within some minutes.
_PAUSES_S = (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0)
# Slurm writes a job's reason anew in each round of its scheduler, at most a minute apart.
_REASON_S = 150.0

Answer = TypeVar("Answer")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that only Slurm needs."""
    group = parser.add_argument_group("Slurm (docs/slurm.md)")
    group.add_argument(
        "--nodes",
        metavar="LIST",
        help="only these nodes, as Slurm writes them: n[1-3],gpu7 (default: all)",
    )
    group.add_argument("--partition", metavar="NAME", help="the partition of the jobs")
    group.add_argument(
        "--licence",
        metavar="NAME",
        help=(
            "each job takes one of this licence; their number, which the site sets, limits how "
            "many run at once"
        ),
    )
    group.add_argument(
        "--reservation",
        metavar="NAME",
        help=(
            "resume the nodes of this maintenance reservation that rigproof drained, test them in "
            "it, and release those that pass"
        ),
    )
    group.add_argument(
        "--drain",
        action="store_true",
        help="drain nodes whose verdict is FAIL, and undrain them when they pass",
    )
    group.add_argument(
        "--wait",
        action="store_true",
        help=(
            "wait until the jobs have ended, drain and release nodes, and judge them as "
            "`collect` does"
        ),
    )
    group.add_argument(
        "--wait-minutes",
        metavar="N",
        type=options.count,
        help=(
            "end --wait with code 3 after this many minutes, and name the nodes that were "
            "not tested "
            "(default: --minutes for each wave of the licence, and once more for jobs before it)"
        ),
    )
    group.add_argument(
        "--runtime",
        choices=slurm.RUNTIMES,
        default="host",
        help="what starts rigproof on the node: the host itself, or the site's container runtime",
    )
    group.add_argument(
        "--image", metavar="REF", default="", help="the image, as pyxis or apptainer names it"
    )
    group.add_argument(
        "--command",
        metavar="PATH",
        default="rigproof",
        help="rigproof on the node, or in the image (default: rigproof)",
    )
    group.add_argument(
        "--minutes",
        metavar="N",
        type=options.number,
        default=_MINUTES,
        help="time limit of a job (default: 120)",
    )
    options.out(parser, LOCAL, "local folder of the runs on each node (default: /var/lib/rigproof)")


def submit(args: argparse.Namespace, screen: Terminal, language: Language) -> tuple[int, Judged]:
    """Drain, undrain, release and submit; returns 0 or 3, and the verdicts of the chosen nodes.

    Raises WordedError.
    """
    _refuse_unused(args)
    at_once = None
    if args.licence is not None:
        at_once = slurm.licences(args.licence)
    else:
        screen.say(language("no licence limits how many nodes are tested at once"), "yellow")
    job = _job(args)
    with slurm.submitting(job.folder):
        reservation = slurm.maintenance(args.reservation) if args.reservation else None
        fleet = _Fleet(args, screen, language, job, _chosen(args, reservation), reservation)
        # The queue before the verdicts: a job that ends in between is in the queue, not in neither.
        queued = slurm.jobs()
        judged = fleet.judge()
        fleet.settle(judged.due, fleet.known(), queued)
        fleet.submit(judged.due, fleet.known(), queued)
    if args.wait:
        fleet.wait(at_once)
        judged = fleet.judge()
        fleet.settle(judged.due, fleet.patiently(fleet.known))
        fleet.drain_again(judged.due, fleet.patiently(fleet.known))
    return UNJUDGED if fleet.refused else PASS, judged


def _refuse_unused(args: argparse.Namespace) -> None:
    """Raise WordedUserError where an option is missing, or would do nothing."""
    if args.runtime != "host" and not args.image:
        raise WordedUserError(
            english(
                "slurm_no_image", "--runtime {runtime} needs an image: give it with --image REF"
            ),
            runtime=args.runtime,
        )
    if args.runtime == "host" and args.image:
        raise WordedUserError(
            english(
                "slurm_unused_image",
                "--image is of no use with --runtime host: name the runtime that starts it "
                "(--runtime pyxis or apptainer), or leave it out",
            )
        )
    if args.wait_minutes is not None and not args.wait:
        raise WordedUserError(
            english(
                "slurm_unused_minutes",
                "--wait-minutes is the limit of --wait: give that too, or leave it out",
            )
        )


def _job(args: argparse.Namespace) -> Job:
    folder, out = args.slurm.absolute(), args.out.absolute()
    logs = slurm.log_of(folder, "any").parent
    try:
        logs.mkdir(exist_ok=True)
    except OSError as error:
        raise WordedUserError(
            english(
                "slurm_folder",
                "{path} cannot be written ({why}): give a folder that every node and this user "
                "can write to",
            ),
            path=str(folder),
            why=error.strerror,
        ) from error
    return Job(
        resources.deployment("slurm/job"),
        folder,
        out,
        args.minutes,
        (args.command, "accept", "--station", "host", "--out", str(out), *args.accept),
        args.runtime,
        args.image,
        args.licence,
        args.partition,
        args.reservation,
    )


def _chosen(args: argparse.Namespace, reservation: Reservation | None) -> tuple[str, ...]:
    """The nodes that are due. Raises WordedUserError where Slurm or the reservation has not all."""
    all_nodes = tuple(one.name for one in slurm.nodes(args.partition))
    there = all_nodes if reservation is None else reservation.nodes
    if args.nodes is None:
        return there
    asked = slurm.expand(args.nodes)
    if strangers := [name for name in asked if name not in there]:
        named = None if reservation is None else reservation.name
        raise WordedUserError(
            english(
                "slurm_unknown_nodes",
                "--nodes {nodes}: not among the nodes that Slurm lists[ in the reservation "
                "{reservation}]: see `sinfo -N`",
            ),
            nodes=", ".join(strangers),
            reservation=named,
        )
    return asked


@dataclass
class _Fleet:
    args: argparse.Namespace
    screen: Terminal
    language: Language
    job: Job
    names: Sequence[str]
    reservation: Reservation | None
    refused: list[str] = field(default_factory=list)
    resumed: dict[str, str] = field(default_factory=dict)  # why they were drained before
    unfinished: dict[str, str] = field(default_factory=dict)  # the job of each node

    def known(self) -> Mapping[str, Node]:
        """The chosen nodes as they are now."""
        chosen = frozenset(self.names)
        return {one.name: one for one in slurm.nodes(self.args.partition) if one.name in chosen}

    def judge(self) -> Judged:
        """The verdicts of the chosen nodes as they are now."""
        now, fresh = datetime.now(UTC), timedelta(hours=self.args.fresh)
        found = verdicts.collect([self.job.folder], now, now - fresh, self.args.signer)
        judged = night.judge(found, self.names, now, fresh, signed=self.args.signer is not None)
        self.screen.say_messages(reader_file.write([self.job.folder], judged), "yellow")
        return judged

    def settle(
        self,
        standings: Iterable[Standing],
        nodes: Mapping[str, Node],
        queued: Iterable[Queued] = (),
    ) -> None:
        """Drain nodes that failed, undrain and release those that passed.

        A node of the reservation that is to be tested again by one of these jobs is not drained:
        its job would never start, and no user's job reaches it.
        """
        passed = []
        retested = {job.node for job in queued} if self.reservation is not None else set()
        for one in standings:
            node = nodes.get(one.machine)
            if node is None or not self._counts(one):
                continue
            if one.failed is not None:
                if not one.proved and node.name in retested:
                    continue
                if not node.drained and node.in_service and self._drains:
                    self._drain(one.machine, one.failed)
            elif one.verdict == "PASS" and node.ours and node.in_service and self._drains:
                if self._done(node.name, partial(slurm.resume, node.name)):
                    self.screen.say(self.language("{node}: resumed, it passed", node=node.name))
                    passed.append(node.name)
            elif one.verdict == "PASS" and not node.drained:
                passed.append(node.name)
        self._release(passed)

    def submit(
        self,
        standings: Iterable[Standing],
        nodes: Mapping[str, Node],
        queued_before: Iterable[Queued],
    ) -> None:
        """Submit each node without a fresh PASS or FAIL, and name those that are not.

        `queued_before` are the jobs that were queued before the verdicts were read.
        """
        queued = {one.node: one for one in (*queued_before, *slurm.jobs())}
        fresh, waiting, sent = [], [], []
        for one in sorted(standings, key=lambda one: one.machine):
            name = one.machine
            if self._tested(one):
                about = words.message(one.row.proof, self.language)
                fresh.append(self.language.noted(name, about) if one.verdict == "PASS" else name)
            elif name in queued:
                why = queued[name].reason  # PartitionTimeLimit: it never starts
                waiting.append(self.language.noted(name, why) if queued[name].waits else name)
                self.unfinished[name] = queued[name].id
            elif name not in nodes:
                self.refused.append(name)
                self.screen.say(
                    self.language("{node}: not in the partition: not submitted", node=name),
                    "yellow",
                )
            elif not self._ready(nodes[name]):
                self.refused.append(name)
            else:
                number = self._done(name, partial(slurm.submit, self.job, name))
                if number is None:
                    continue
                sent.append(self.language.noted(name, number))
                self.unfinished[name] = number
                # After its job is in the queue: where that is refused, the node stays drained.
                if not nodes[name].drained:
                    continue
                if self._done(name, partial(slurm.resume, name)):
                    self.resumed[name] = nodes[name].reason
        language = self.language
        if fresh:
            self.screen.say(
                language("fresh verdict, not tested again: {nodes}", nodes=language.listed(fresh))
            )
        if waiting:
            self.screen.say(
                language("a job waits or runs already: {nodes}", nodes=language.listed(waiting))
            )
        if sent:
            self.screen.say(language("submitted: {nodes}", nodes=language.listed(sent)))

    def wait(self, at_once: int | None) -> None:
        """Wait for the jobs of these nodes until each has ended or cannot start, or to the limit.

        A job that waits for a node that is away cannot start, nor one whose reason does not pass.
        `at_once` is how many the licence lets run. Raises WordedError.
        """
        began, limit_s, stuck_since = time.monotonic(), 0.0, dict[str, float]()
        for seconds in slurm.waits():
            nodes, jobs = self.patiently(lambda: (self.known(), slurm.jobs()))
            ours = [job for job in jobs if job.node in nodes]
            self.unfinished = {job.node: job.id for job in ours}
            passed_s = time.monotonic() - began
            stuck_since = {
                job.id: stuck_since.get(job.id, passed_s) for job in ours if job.never_starts
            }
            within = self.reservation is not None
            stuck = [
                job
                for job in ours
                if (job.waits and not nodes[job.node].takes_jobs(reserved=within))
                or passed_s - stuck_since.get(job.id, passed_s) >= _REASON_S
            ]
            going = [job for job in ours if job not in stuck]
            limit_s = limit_s or self._limit_s(len(going), at_once)
            if not going or passed_s >= limit_s:
                break
            time.sleep(min(seconds, limit_s - passed_s))
        self._name_untested(stuck, going, limit_s)

    def _limit_s(self, jobs: int, at_once: int | None) -> float:
        """After how many seconds --wait ends: as given, or from the number of waves."""
        waves = math.ceil(jobs / at_once) if at_once else 1
        # Once more for jobs of others, which have these nodes now.
        minutes: int = self.args.wait_minutes or (waves + 1) * self.args.minutes
        return minutes * 60.0

    def _name_untested(
        self, stuck: Sequence[Queued], going: Sequence[Queued], limit_s: float
    ) -> None:
        for job in stuck:
            self.screen.say(
                self.language(
                    "{node}: its job cannot start ({reason}): end the cause, or `scancel {job}`",
                    node=job.node,
                    job=job.id,
                    reason=job.reason,
                ),
                "yellow",
            )
        if going:
            jobs = self.language.listed(
                self.language.noted(job.node, f"{job.id}: {job.state}") for job in going
            )
            self.screen.say(
                self.language(
                    "not tested after {minutes} min, their jobs stay in the queue: {jobs}",
                    minutes=round(limit_s / 60),
                    jobs=jobs,
                ),
                "yellow",
            )
        self.refused.extend(job.node for job in (*stuck, *going))

    def patiently(self, read: Callable[[], Answer]) -> Answer:
        """What Slurm answers; where it refuses, it is asked again after growing pauses.

        Raises WordedError, which names the jobs that stay submitted.
        """
        for pause_s in _PAUSES_S:
            with contextlib.suppress(WordedError):
                return read()
            time.sleep(pause_s)
        try:
            return read()
        except WordedError as error:
            jobs = tuple(f"{node} ({job})" for node, job in self.unfinished.items())
            tries = len(_PAUSES_S) + 1
            raise WordedError(
                english(
                    "slurm_unread",
                    "Slurm refused {tries} times in a row ({why})[; these jobs stay submitted: "
                    "{jobs}]: call again with --wait when it answers",
                ),
                why=said(error),
                tries=tries,
                jobs=Listed(jobs) if jobs else None,
            ) from error

    def drain_again(self, standings: Iterable[Standing], nodes: Mapping[str, Node]) -> None:
        """Drain what was resumed for a test that gave neither PASS nor FAIL, as it was before.

        A node that somebody drained meanwhile keeps that reason.
        """
        for one in standings:
            node = nodes.get(one.machine)
            if node is None or (node.drained and not node.ours):
                continue
            if one.machine in self.resumed and not self._tested(one):
                why = self.resumed[one.machine]
                if self._done(one.machine, partial(slurm.drain, one.machine, why)):
                    self._say_drained(one.machine, why)

    @property
    def _drains(self) -> bool:
        # What was resumed into a reservation is not left open when that ends.
        return self.args.drain or self.reservation is not None

    def _tested(self, one: Standing) -> bool:
        """Whether a node needs no test: a fresh PASS or FAIL, of this reservation if there is."""
        return one.proved and self._counts(one)

    def _counts(self, one: Standing) -> bool:
        """Whether a node's verdict is of this reservation, if there is one."""
        if self.reservation is None:
            return True
        counts = one.failed or one.newest
        began = counts.began if counts else None
        # Both are in seconds: of the same second, the run may have been the earlier one.
        return began is not None and began > self.reservation.since

    def _ready(self, node: Node) -> bool:
        """Whether a node takes a job, if need be when it is resumed; says why not."""
        within = self.reservation is not None
        resumed = replace(node, flags=node.flags - {"drain"}) if within and node.ours else node
        if resumed.takes_jobs(reserved=within):
            return True
        values = {"node": node.name, "state": node.state}
        text = (
            self.language("{node}: {state}: not submitted", **values)
            if node.reason in ("", "none")
            else self.language(
                "{node}: {state} ({reason}): not submitted", **values, reason=node.reason
            )
        )
        self.screen.say(text, "yellow")
        return False

    def _drain(self, node: str, failed: MachineVerdict) -> None:
        why = slurm.reason(failed.component, failed.check or "", failed.run_id)
        if self._done(node, partial(slurm.drain, node, why)):
            self._say_drained(node, why)

    def _say_drained(self, node: str, why: str) -> None:
        self.screen.say(self.language("{node}: drained ({reason})", node=node, reason=why), "red")

    def _release(self, passed: Sequence[str]) -> None:
        held = self.reservation
        if held is None or not (out := [name for name in passed if name in held.nodes]):
            return
        left = self._done(held.name, partial(slurm.release, held, out))
        if left is not None:
            self.reservation = left
            self.screen.say(
                self.language(
                    "released from the reservation {reservation}: {nodes}",
                    nodes=self.language.listed(out),
                    reservation=held.name,
                )
            )

    def _done(self, of: str, act: Callable[[], Answer]) -> Answer | None:
        """What Slurm answers; None where it refused, which is said and hinders no other node."""
        try:
            return act()
        except WordedError as error:
            self.refused.append(of)
            why = words.text(said(error), self.language)
            self.screen.say(self.language("{label}: {text}", label=of, text=why), "red")
            return None
