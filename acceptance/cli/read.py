"""`rigproof read`: read one recorded output of a tool, or a sheet, and print the result as JSON."""

from __future__ import annotations

import argparse
import codecs
import errno
import sys
from dataclasses import replace

from acceptance.cli import options, stdout
from acceptance.core import regular_file
from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.message import UserError
from acceptance.process.unreadable import UnreadableOutput
from acceptance.reports import plain_json
from acceptance.tools import SHEET, TOOLS
from acceptance.tools.reading import ToolOutput
from acceptance.wording import words

_READABLE = (*TOOLS, SHEET)
EXIT = {"pass": PASS, "fail": FAIL, "error": UNJUDGED}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof read`."""
    names = [tool.name for tool in _READABLE]
    parser.add_argument("tool", metavar="TOOL", choices=names, help=", ".join(names))
    parser.add_argument(
        "file",
        metavar="FILE",
        type=options.path,
        help="the recorded output, or the sheet; - for standard input",
    )


def _text(data: bytes) -> str:
    """Decode a recording: UTF-8, or as its byte order mark says (PowerShell writes UTF-16)."""
    marks = (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    )
    encoding = next((name for mark, name in marks if data.startswith(mark)), "utf-8")
    return data.decode(encoding, errors="replace")


def _input() -> bytes:
    """Read standard input to its end.

    Raises OSError if it is larger than a recording may be.
    """
    most = regular_file.RECORDING
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it holds more than {regular_file.size(most)}")
    return data


def json_object(output: ToolOutput) -> dict[str, object]:
    """The form in which an output is printed."""
    return {
        "tool": output.tool,
        "outcome": output.outcome,
        "reason": words.text(output.reason),
        "readings": {
            reading.name: {
                "unit": reading.unit,
                "values": {str(where): value for where, value in reading.values.items()},
            }
            for reading in output.readings
        },
        "events": [dict(event) for event in output.events],
    }


def run(args: argparse.Namespace) -> int:
    """Parse and print one recorded output; returns 0 for a pass, 1 for a fail, 3 for an error."""
    try:
        data = (
            _input()
            if str(args.file) == "-"
            else regular_file.read(args.file, regular_file.RECORDING)
        )
    except OSError as error:
        printed = f"the file that holds what {args.tool} printed"
        wanted = "the sheet's file" if args.tool == SHEET.name else printed
        cure = f"give {wanted}, or - for standard input"
        raise UserError(f"{args.file}: cannot be read ({error.strerror}): {cure}") from error
    tool = next(tool for tool in _READABLE if tool.name == args.tool)
    try:
        output = replace(tool.parse(_text(data)), tool=args.tool)
    except UnreadableOutput as error:
        output = ToolOutput(args.tool, "error", error.message)
    shown = plain_json.render(json_object(output), sys.stdout.encoding)
    return stdout.printed(shown, EXIT[output.outcome])
