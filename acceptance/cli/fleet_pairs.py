"""`rigproof fleet pairs`: collectives between two nodes at a time, until what is bad has a name."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from acceptance import resources
from acceptance.cli import options
from acceptance.core.language import Language
from acceptance.core.limit import MIB
from acceptance.core.message import Message, UserError, english
from acceptance.core.verdict import EXIT_CODES
from acceptance.fleet import due, pair_tests, slurm
from acceptance.fleet.pair_tests import Judged, NodePair, PairLimits, PairTest
from acceptance.fleet.views import pair_report
from acceptance.journal import run_folder
from acceptance.loads import asks
from acceptance.loads.collective.contract import PairAsk
from acceptance.loads.collective.pattern import SIZES
from acceptance.process import command
from acceptance.process.command import RunningProgram
from acceptance.process.deadline import Deadline
from acceptance.reports import plain_json, report_terminal
from acceptance.reports.report import Report, Section
from acceptance.reports.terminal import Terminal
from acceptance.wording import words

FILE = "pairs.json"
NODE = "{node}"
_SRUN = "srun --quiet --overlap --nodes=1 --ntasks=1 --nodelist={node}"
_ALLOCATION = "SLURM_JOB_NODELIST"
_ADDRESS = "address"  # the column of --locations
_WITHIN, _GRACE = 180.0, 45.0
_MOST = {"nccl": 128 * MIB, "gloo": 16 * MIB}  # a processor verifies 16 MiB in half a second
_END_S = 5.0  # that a program has to end itself before it is killed


def _size(text: str) -> int:
    """A size of the load."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value not in SIZES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(map(str, SIZES))}")
    return value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof fleet pairs`."""
    parser.add_argument(
        "nodes",
        metavar="NODES",
        nargs="?",
        type=options.path,
        help="file with a node on each line, in the order of rack and switch",
    )
    engine = parser.add_mutually_exclusive_group(required=True)
    engine.add_argument(
        "--launch",
        metavar="TEMPLATE",
        help="command that starts a program on a node: 'ssh {node}' or 'ip netns exec {node}'",
    )
    engine.add_argument(
        "--slurm",
        action="store_true",
        help="start with srun, in this allocation; without NODES, test all of its nodes",
    )
    parser.add_argument(
        "--backend",
        choices=("nccl", "gloo"),
        default="nccl",
        help="nccl between GPUs, or gloo between processors (default: nccl)",
    )
    parser.add_argument(
        "--gpu",
        metavar="N",
        type=int,
        choices=range(16),
        default=0,
        help="the GPU of each node (default: 0)",
    )
    parser.add_argument(
        "--most",
        metavar="BYTES",
        type=_size,
        help=(
            "largest message: 4096, 32768, and so on, times eight (default: 128 MiB, with gloo "
            "16 MiB)"
        ),
    )
    parser.add_argument(
        "--locations",
        metavar="FILE",
        type=options.path,
        help=(
            "CSV with columns `machine` and `address`: how other nodes reach it (default: its name)"
        ),
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=options.numbers(int, 1, 65535, "port from 1 to 65535"),
        default=29500,
        help="port on each node (default: 29500)",
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        default="python3",
        help="Python on the nodes, with rigproof and torch (default: python3)",
    )
    parser.add_argument(
        "--within",
        metavar="S",
        type=options.seconds,
        default=_WITHIN,
        help="seconds of one test, its start included (default: 180)",
    )
    parser.add_argument(
        "--grace",
        metavar="S",
        type=options.seconds,
        default=_GRACE,
        help="seconds that one node waits for the other (default: 45)",
    )
    parser.add_argument(
        "--at-once",
        metavar="PAIRS",
        type=options.number,
        default=64,
        help="pairs that are tested side by side (default: 64)",
    )
    options.out(parser, None, f"folder for {FILE}, such as that of the verdicts")
    options.language(parser)


def test_pairs(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Test the pairs round by round and name what is bad; returns the exit code.

    Raises UserError, CommandError, JournalError where the file cannot be written, and SetupError.
    """
    launcher = _launcher(args)
    nodes = _nodes(args)
    addresses = _addresses(args, nodes)
    limits = pair_tests.read_limits(resources.locate("pairs.toml"))
    if args.out is not None:
        try:
            args.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out {args.out} cannot be made: {error.strerror}") from error
    began = datetime.now(UTC)
    judged = pair_tests.judge(nodes, (), limits)
    round_ = 0
    try:
        while now := pair_tests.next_tests(nodes, judged.passed):
            round_ += 1
            count = language.ngettext("{n} pair", "{n} pairs", len(now))
            screen.say(language("round {number}: {pairs}", number=round_, pairs=count))
            for begin in range(0, len(now), args.at_once):
                batch = now[begin : begin + args.at_once]
                new = _test(args, launcher, batch, round_, addresses)
                if same := pair_tests.one_machine((*judged.tests, *new)):
                    raise UserError(
                        f"{same.first} and {same.second} are one machine ({same.said}): name each "
                        "machine once"
                    )
                judged = pair_tests.judge(nodes, (*judged.tests, *new), limits)
            passed = judged.passed
            for test in judged.tests:
                if test.round == round_ and not passed[test.pair]:
                    lines = [*pair_report.why_bad(test, judged, language)]
                    report_terminal.show(Report("", (Section("", lines),)), screen, language)
    finally:  # after Ctrl-C too
        if args.out is not None:
            content = plain_json.render(_record(args, judged, limits, began))
            run_folder.write_whole(
                args.out / FILE,
                content,
                then=Message(
                    english("pairs_again", "make room and run `rigproof fleet pairs` again")
                ),
            )
    report_terminal.show(pair_report.report(judged, limits, language), screen, language)
    if args.out is not None:
        screen.path(str(args.out / FILE))
    return EXIT_CODES[judged.verdict]


def _launcher(args: argparse.Namespace) -> tuple[str, ...]:
    template = _SRUN if args.slurm else args.launch
    try:
        found = tuple(shlex.split(template))
    except ValueError as error:
        raise UserError(f"--launch {template}: {error}") from error
    if not found or not any(NODE in one for one in found):
        raise UserError(f"--launch {template}: write {NODE} where the node's name belongs")
    return (command.find(found[0], "slurm-client" if args.slurm else None), *found[1:])


def _nodes(args: argparse.Namespace) -> tuple[str, ...]:
    allocation = os.environ.get(_ALLOCATION)
    if args.slurm and not allocation:
        raise UserError(
            "--slurm needs an allocation: salloc --nodes=N rigproof fleet pairs --slurm"
        )
    if args.nodes is None:
        if not args.slurm or allocation is None:
            raise UserError("name the nodes: give a file with one on each line")
        found = slurm.expand(allocation)
    else:
        found = due.read(args.nodes)
    if len(found) < 2:
        raise UserError(f"{found[0]} is the only node: a pair needs two")
    return found


def _addresses(args: argparse.Namespace, nodes: Sequence[str]) -> dict[str, str]:
    """Where the others reach each node. Raises WordedUserError."""
    places = {} if args.locations is None else due.read_locations(args.locations)
    found = {node: places.get(node, {}).get(_ADDRESS) for node in nodes}
    if args.locations is not None and not any(found.values()):
        raise UserError(
            f"--locations {args.locations} has no address of a node: give the columns `machine`, "
            f"with names such as {nodes[0]}, and `{_ADDRESS}`"
        )
    nodes_at: dict[str, str] = {}
    for node in nodes:
        address = found[node] or node
        if address in nodes_at:
            raise UserError(f"{nodes_at[address]} and {node} have one address: {address}")
        nodes_at[address] = node
    return {node: address for address, node in nodes_at.items()}


def _test(
    args: argparse.Namespace,
    launcher: Sequence[str],
    batch: Sequence[NodePair],
    round_: int,
    addresses: Mapping[str, str],
) -> list[PairTest]:
    """The tests of these pairs, side by side. Raises CommandError; then none is left running."""
    running: list[RunningProgram] = []
    asked = [one for pair in batch for one in _ask(args, pair, addresses[pair.first])]
    deadline = Deadline.after(args.within + _END_S)
    try:
        for node, ask in zip(chain.from_iterable(batch), asked, strict=True):
            argv = [one.replace(NODE, node) for one in launcher]
            argv += (args.python, *asks.PROGRAM, *asks.typed(ask))
            running.append(command.start(argv, deadline=deadline))
        done = [one.wait() for one in running]
    except BaseException:
        for one in running:
            one.stop()
        raise
    halves = [pair_tests.read_half(ask, one) for ask, one in zip(asked, done, strict=True)]
    return [
        PairTest(pair, round_, (first, second))
        for pair, first, second in zip(batch, halves[::2], halves[1::2], strict=True)
    ]


def _ask(args: argparse.Namespace, pair: NodePair, address: str) -> Iterator[PairAsk]:
    """What the load is asked on each of two nodes."""
    test = ",".join((*pair, secrets.token_hex(8)))
    return (
        PairAsk(
            backend=args.backend,
            rank=rank,
            test=test,
            address=address,
            within=args.within,
            port=args.port,
            gpu=args.gpu,
            most=args.most or _MOST[args.backend],
            grace=args.grace,
        )
        for rank in range(len(pair))
    )


def _record(
    args: argparse.Namespace, judged: Judged, limits: PairLimits, began: datetime
) -> dict[str, Any]:
    """What the file holds."""
    blame, passed = judged.blame, judged.passed
    return {
        "rigproof_pairs": 1,
        "verdict": judged.verdict,
        "began": f"{began:%Y-%m-%dT%H:%M:%SZ}",
        "ended": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "backend": args.backend,
        "nodes": judged.nodes,
        "bad_nodes": judged.bad,
        "bad_links": blame.links,
        "not_reached": judged.unreached,
        "unattributed": blame.unattributed,
        "not_tested": blame.untested,
        "limits": limits,
        "too_wide": judged.too_wide,
        "tests": [
            {
                "round": one.round,
                "nodes": one.pair,
                "passed": passed[one.pair],
                "rates": one.rates,
                "slow": [slow._asdict() for slow in judged.slow.get(one.pair, ())],
                "apart": [slow._asdict() for slow in judged.apart.get(one.pair, ())],
                "wrong": [half.wrong for half in one.halves],
                "began": one.began,
                "reasons": [
                    None if half.reason is None else words.text(half.reason) for half in one.halves
                ],
            }
            for one in judged.tests
        ],
    }
