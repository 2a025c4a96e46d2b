"""`rigproof fleet submit --kubernetes DIR`: one Job a node without a fresh PASS or FAIL."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from acceptance.cli import options
from acceptance.core.exit_code import PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Message, english
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import due, kubectl, kubernetes, night, reader_file, verdicts
from acceptance.fleet.kubernetes import Refusal
from acceptance.fleet.night import Standing
from acceptance.reports.terminal import Terminal
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that only Kubernetes needs."""
    group = parser.add_argument_group("Kubernetes (docs/kubernetes.md)")
    options.due(group, "the cluster's nodes with GPUs")
    group.add_argument(
        "--selector", metavar="LABELS", help="only the cluster's nodes with these labels"
    )
    group.add_argument(
        "--verdicts",
        metavar="FOLDER",
        type=options.path,
        action="append",
        default=[],
        help="leave out nodes with a fresh PASS or FAIL in this folder (may be repeated)",
    )
    group.add_argument(
        "--label",
        action="store_true",
        help="label each due node rigproof/verdict=PASS, FAIL or UNJUDGED (needs --verdicts)",
    )
    group.add_argument(
        "--taint",
        action="store_true",
        help=(
            "keep new pods from nodes whose verdict is FAIL (rigproof/failed:NoSchedule), until "
            "they have a fresh PASS (needs --verdicts)"
        ),
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be applied, as YAML, and with labels and taints as comments",
    )


def submit(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Submit a Job for each node; returns 0, or 3 where a node could not be submitted.

    Raises WordedError.
    """
    _refuse_unused(args)
    names = due.read(args.due) if args.due else None
    path = str(args.kubernetes)
    manifest = kubernetes.manifest(kubectl.kustomization(args.kubernetes), path)
    now = datetime.now(UTC)
    # The Jobs before the verdicts: one that ends in between is a Job, not in neither.
    jobs = kubectl.jobs(manifest.namespace)
    standings = judge(args, now, screen, language) if args.verdicts else {}
    tested = {name: one.row for name, one in standings.items() if one.proved}
    selector = ("-l", args.selector) if args.selector else ()
    cluster = kubernetes.nodes(kubectl.get("nodes", *selector))
    devices = kubernetes.with_devices(kubectl.get("resourceslices")) if manifest.claims else None
    unfinished, last = kubernetes.unfinished(jobs), kubernetes.last_jobs(jobs)
    chosen, refused = kubernetes.choose(cluster, names, devices, unfinished, tested)
    rendered = [kubernetes.job(manifest, node, last.get(node.name)) for node in chosen]
    objects = kubernetes.as_list([*manifest.others, *rendered])
    named = {one.name for one in chosen} | {one.node for one in refused}
    marked = {name: one.verdict for name, one in standings.items()}
    commands = list(marks(args, [node for node in cluster if node.name in named], marked))
    if args.dry_run:
        for one in refused:
            options.say_error(refusal_line(one, language))
        for argv in commands:
            print("#", shlex.join((kubectl.PROGRAM, *argv)))
        if rendered:
            print(kubectl.yaml(objects, len(rendered)), end="")
        return exit_code(chosen, refused)
    for one in refused:
        screen.say(refusal_line(one, language), "" if one.harmless else "yellow")
    for argv in commands:
        kubectl.mark(argv)
    if rendered:
        kubectl.apply(objects, len(rendered))
    for node in chosen:
        screen.say(language("submitted: {node}", node=node.name))
        if node.gpus < node.all_gpus:
            fewer = Message(
                english(
                    "kubernetes_fewer",
                    "{gpus} of its {all} GPUs can be allocated: the device plugin holds the "
                    "others back",
                ),
                {"gpus": node.gpus, "all": node.all_gpus},
            )
            told = words.message(fewer, language)
            screen.say(language("{label}: {text}", label=node.name, text=told), "yellow")
    if chosen or refused:
        screen.say(closing_line(len(chosen), len(refused), language), "bold")
    else:
        screen.say_messages(
            [
                Message(
                    english(
                        "kubernetes_no_gpu_node",
                        "no node of the cluster has GPUs for this kustomization: see that the "
                        "device plugin, or with claims the DRA driver, runs on the nodes",
                    )
                )
            ],
            "bold yellow",
        )
    return exit_code(chosen, refused)


def _refuse_unused(args: argparse.Namespace) -> None:
    """Raise WordedUserError where an option would do nothing without verdicts."""
    given = {
        "--label": args.label,
        "--taint": args.taint,
        "--signer": args.signer is not None,
        "--fresh": args.fresh != options.FRESH_HOURS,
    }
    option = next((name for name, is_given in given.items() if is_given), None)
    if option and not args.verdicts:
        raise WordedUserError(
            english(
                "kubernetes_no_verdicts",
                "{option} goes by verdicts: name their folder with --verdicts FOLDER",
            ),
            option=option,
        )


def marks(
    args: argparse.Namespace, nodes: list[kubernetes.Node], standings: dict[str, VerdictWord]
) -> Iterator[tuple[str, ...]]:
    """The arguments of kubectl that label and taint the due nodes by their verdicts, if asked."""
    if args.label:
        for word, names in kubernetes.labels((one.name for one in nodes), standings).items():
            yield kubectl.label(names, word)
    if args.taint:
        given, taken = kubernetes.taints(nodes, standings)
        if given:
            yield kubectl.taint(given)
        if taken:
            yield kubectl.taint(taken, remove=True)


def judge(
    args: argparse.Namespace, now: datetime, screen: Terminal, language: Language
) -> dict[str, Standing]:
    """What the verdicts of each machine count as, which the readers on the nodes are told.

    Raises WordedUserError where a folder cannot be read: its nodes would all be tested again.
    """
    age = timedelta(hours=args.fresh)
    found = verdicts.collect(args.verdicts, now, now - age, args.signer)
    if lost := next((one.message for one in found.troubles if one.machine is None), None):
        raise WordedUserError(lost.code, **lost.values)
    judged = night.judge(found, None, now, age, signed=args.signer is not None)
    if not args.dry_run:
        screen.say_messages(reader_file.write(args.verdicts, judged), "yellow")
    return {one.machine: one for one in judged.due}


def exit_code(chosen: tuple[kubernetes.Node, ...], refused: tuple[Refusal, ...]) -> int:
    """0 where each node is submitted or needs no test; also 3 where there is no node at all."""
    whole = all(one.harmless for one in refused) and (chosen or refused)
    return PASS if whole else UNJUDGED


def refusal_line(one: Refusal, language: Language) -> str:
    """Why a node is not submitted."""
    why = words.message(one.why, language)
    return language("not submitted: {node}: {why}", node=one.node, why=why)


def closing_line(chosen: int, refused: int, language: Language) -> str:
    """How many nodes are submitted, and how many are not."""
    submitted = language.ngettext("{n} node submitted", "{n} nodes submitted", chosen)
    return language("{submitted}, {others} not", submitted=submitted, others=refused)
