"""`rigproof capacity`: what a machine trains, from the measured figures of a run."""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path

import msgspec

from acceptance.cli import closing, options, stdout
from acceptance.core.exit_code import UNJUDGED
from acceptance.core.language import ENGLISH
from acceptance.core.message import UserError
from acceptance.expect import site_sheets
from acceptance.journal import run as journal_run
from acceptance.reports import plain_json, report_terminal
from acceptance.reports.capacity import card, figures
from acceptance.reports.capacity import report as capacity_report
from acceptance.reports.capacity.figures import Question
from acceptance.reports.report import Line, Report, Section
from acceptance.reports.terminal import Terminal
from acceptance.wording import words

_AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE]\+?[0-9]{1,2})?)([KMBT]?)")
_SUFFIX = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_MOST = 1e18
_LEAST = 1e6  # a smaller number without a suffix or an exponent is a slip: 7 for 7B


def amount(text: str) -> float:
    """A large number, from 1 to 1e18: 7e9, 7B, 350M, 1.4T."""
    found = _AMOUNT.fullmatch(text.upper())
    value = float(found[1]) * _SUFFIX[found[2]] if found else math.nan
    if not 1 <= value <= _MOST:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number from 1 to 1e18, such as 7e9, 7B, 350M or 1.4T"
        )
    return value


def model_amount(text: str) -> float:
    """Parameters or tokens as `amount`; a small number is asked about, as a slip for billions."""
    value = amount(text)
    if value < _LEAST and text.replace(".", "", 1).isdigit():
        raise argparse.ArgumentTypeError(f"{text} is very few: did you mean {text}B?")
    return value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof capacity`."""
    parser.epilog = (
        "What was not asked for is assumed, and what the run did not measure is said to be "
        f"missing. {parser.epilog}"
    )
    parser.add_argument(
        "run_dir",
        metavar="RUN",
        nargs="?",
        type=options.path,
        default=Path("reports/latest"),
        help="folder of the run (default: reports/latest, the newest)",
    )
    for name, kind, what, text in (
        (
            "parameters",
            model_amount,
            "N",
            "parameters of the model: 7e9, 7B (assumed: a usual size that fits)",
        ),
        ("tokens", model_amount, "N", "tokens to train on (assumed: 20 a parameter)"),
        ("gpus", options.number, "N", "GPUs of each machine (default: those of the run)"),
        ("machines", options.number, "N", "machines like this one (default: 1)"),
        ("context", options.count, "N", "tokens of a sample (assumed: 4096)"),
        ("micro-batch", options.number, "N", "samples of a micro-batch on each GPU (assumed: 1)"),
        ("accumulation", options.number, "N", "micro-batches of an update (assumed: 4)"),
        ("layers", options.number, "N", "layers (default: from the parameters)"),
        ("hidden", options.count, "N", "hidden width (default: from the parameters)"),
        ("checkpoint-every", options.count, "SECONDS", "time between checkpoints (assumed: 3600)"),
    ):
        parser.add_argument(f"--{name}", metavar=what, type=kind, help=text)
    parser.add_argument(
        "--why",
        action="store_true",
        help="also show the formula, inputs, source and assumptions of each line",
    )
    parser.add_argument("--json", action="store_true", help="print the card as JSON")
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Show the card of a run; returns 3 where the run's evidence is incomplete, else 0.

    Raises UserError where neither the run nor the question has a GPU, JournalError
    or SetupError.
    """
    language = closing.language_of(args)
    found = journal_run.read(args.run_dir)
    told = figures.measured(found, site_sheets.of_record(found.start.limits).models)
    asked = Question(
        parameters=args.parameters,
        tokens=args.tokens,
        gpus=args.gpus,
        machines=args.machines,
        context=args.context,
        micro=args.micro_batch,
        accumulation=args.accumulation,
        layers=args.layers,
        hidden=args.hidden,
        checkpoint_every=args.checkpoint_every,
    )
    if not told.gpus:
        raise UserError(
            f"{args.run_dir}: this run tested no GPU, so it says nothing of training: give the "
            "folder of one that did"
        )
    code = UNJUDGED if found.troubles else 0
    if args.json:
        made = card.card(told, asked, ENGLISH)
        plain = {"run_id": found.verdict.run_id, "verdict": found.verdict.verdict}
        troubles = [words.message(one) for one in found.troubles]
        content = {**plain, "troubles": troubles, **msgspec.to_builtins(made)}
        return stdout.printed(plain_json.render(content, sys.stdout.encoding), code)
    screen = Terminal.on_stdout(language)
    run = language("{label}: {text}", label=found.verdict.run_id, text=found.verdict.verdict)
    for trouble in found.troubles:
        screen.say(words.message(trouble, language), "yellow")
    made = card.card(told, asked, language)
    parts = [*capacity_report.parts(made, told.memory, language, why=args.why)]
    if not args.why:
        parts.append(Line(language("`--why` shows formulas, inputs, sources and assumptions")))
    report = Report(language("What this machine trains"), (Section("", parts),), Line(run))
    report_terminal.show(report, screen, language)
    return closing.after_output(screen, code)
