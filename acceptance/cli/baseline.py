"""`rigproof baseline`: make a run the machine's baseline, or show the current one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from acceptance import resources
from acceptance.cli import closing, options
from acceptance.core import parts
from acceptance.core.language import ENGLISH, Language
from acceptance.history import baseline_file, noise
from acceptance.journal import clock
from acceptance.reports import baseline_report, plain_json, report_terminal
from acceptance.reports.terminal import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof baseline`."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = (
        "make a passed run the baseline of this machine; a baseline can only tighten limits, "
        "never loosen them"
    )
    accept = options.add(what, "accept", text, "baseline")
    options.run_dir(accept)
    accept.add_argument(
        "--replace",
        action="store_true",
        help="replace the current baseline (the old one is kept in baselines/)",
    )
    options.out(
        accept, None, "folder of the runs and their history (default: the run's parent folder)"
    )
    options.language(accept)
    show = options.add(what, "show", "show the baseline of this machine", "baseline")
    options.out(show, text="folder of the runs and their history (default: reports)")
    show.add_argument("--json", action="store_true", help="print the whole baseline as JSON")
    options.language(show)


def run(args: argparse.Namespace) -> int:
    """Make a run the machine's baseline, or show the current one; returns 0 or raises."""
    language = closing.language_of(args)
    screen = Terminal.on_stdout(language)
    if args.what == "accept":
        accept(args.run_dir, args.out, screen, replace=args.replace, language=language)
    else:
        show(args.out, screen, as_json=args.json, language=language)
    return closing.after_output(screen)


def accept(
    run_dir: Path,
    out: Path | None,
    screen: Terminal,
    *,
    replace: bool,
    language: Language = ENGLISH,
    root: Path = Path("/"),
) -> None:
    """Make a run the baseline of this machine, and report it.

    `out` defaults to the parent of the run's folder.

    Raises WordedUserError, HistoryError, JournalError or SetupError.
    """
    book = noise.read(resources.locate("noise.toml"))
    done = baseline_file.accept(
        run_dir, out or run_dir.resolve().parent, book, replace=replace, root=root
    )
    former = str(done.former) if done.former else None
    found = done.baseline.certificate
    if done.already:
        screen.say(language("this run has been the baseline since {utc}", utc=found.accepted_utc))
    else:
        report_terminal.show(baseline_report.accepted(found, former, language), screen, language)
    screen.path(str(done.baseline.path))


def show(
    out: Path,
    screen: Terminal,
    *,
    as_json: bool,
    language: Language = ENGLISH,
    root: Path = Path("/"),
) -> None:
    """Print the baseline of this machine.

    Raises WordedUserError if there is none, and HistoryError.
    """
    machine_id = clock.machine_id(root)
    found = baseline_file.require(out, machine_id)
    if as_json:
        certificate = msgspec.to_builtins(found.certificate, enc_hook=parts.encode)
        plain = {"sha256": found.sha256, "certificate": certificate}
        sys.stdout.buffer.write(plain_json.render(plain, sys.stdout.encoding))
        return
    former = [one.certificate for one in baseline_file.former_baselines(out, machine_id)]
    told = baseline_report.report(found.certificate, found.sha256, former, language)
    report_terminal.show(told, screen, language)
