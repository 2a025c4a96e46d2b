"""`rigproof inventory`: show the observed machine, or draft a machine file from it."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

import msgspec

from acceptance.cli import closing, options, stdout
from acceptance.core import parts
from acceptance.core.message import Message
from acceptance.machine.gpu import gpus
from acceptance.observe import draft, filesystem
from acceptance.observe import inventory as observed
from acceptance.reports import inventory_report, plain_json, report_terminal
from acceptance.reports.terminal import Terminal
from acceptance.reports.text import one_line, quoted_code
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof inventory`."""
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--write",
        metavar="FILE",
        type=options.path,
        help="draft a machine file from the observed machine; correct it by hand",
    )
    instead.add_argument(
        "--json", action="store_true", help="print everything that was read, as JSON"
    )
    options.language(parser)


def _worded(value: Any) -> Any:
    """The same plain data, each message among it in English."""
    if isinstance(value, dict) and value.get("is") == "message":
        return words.message(msgspec.convert(value, Message))
    if isinstance(value, dict):
        return {key: _worded(one) for key, one in value.items()}
    return [_worded(one) for one in value] if isinstance(value, list | tuple) else value


def run(args: argparse.Namespace) -> int:
    """Show the observed machine, or draft a machine file from it; returns the exit code."""
    language = closing.language_of(args)
    found = observed.observe()
    if args.json:
        plain = _worded(msgspec.to_builtins(found, enc_hook=parts.encode))
        return stdout.printed(plain_json.render(plain, sys.stdout.encoding))
    if args.write is None:
        screen = Terminal.on_stdout(language)
        report_terminal.show(inventory_report.report(found, language), screen, language)
        return closing.after_output(screen)
    draft.write(found, args.write, filesystem.on_disks())
    told = {
        "file": str(args.write),
        "command": f"rigproof accept --machine {shlex.quote(str(args.write))}",
    }
    line = (
        language(
            "{file}: drafted from what was found; correct it by hand, then run `{command}`",
            **told,
        )
        if gpus(found)
        else language(
            "{file}: drafted from what was found; no GPU was found: enter the number "
            "that you bought; correct it by hand, then run `{command}`",
            **told,
        )
    )
    sys.stdout.write(f"{quoted_code(one_line(line, 10_000))}\n")
    return 0
