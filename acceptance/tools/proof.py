"""What a tool's run proves: its text, its exit and its duration are judged together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from acceptance.core.message import Message, Single
from acceptance.machine.thresholds import thresholds
from acceptance.process.command import ProgramResult
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import cuda_error
from acceptance.tools.reading import ToolOutput
from acceptance.wording.errors import WordedError


class ToolError(WordedError):
    """A tool ran and proves nothing, so the hardware stays unjudged."""


class Unnamed(ToolError):
    """A tool ended well, and says in words that need not name it why it proves nothing."""


def prove(
    tool: str, done: ProgramResult, parse: Callable[[str], ToolOutput], seconds: float
) -> ToolOutput:
    """Judge a tool's run that was to last at least `seconds`.

    A fault in the text is a fault, however the run ended. Any other text counts only if it is
    complete and readable, and if the program exited with 0 and not too early: a healthy text from a
    program that failed or did not load the machine proves nothing. A text with a CUDA error beside
    it proves nothing either, even with exit code 0.

    Raises ToolError when the run proves nothing.
    """
    troubles: list[Single] = []
    if done.timed_out or done.returncode != 0:
        troubles.append(Message("tool_ended", {"tool": tool, "how": done.describe()}))
    elif done.seconds < thresholds().program.ran * seconds:
        values = {"tool": tool, "ran": f"{done.seconds:.1f}", "due": f"{seconds:.0f}"}
        troubles.append(Message("tool_ended_early", values))
    if done.truncated:
        troubles.append(Message("tool_output_lost", {"tool": tool}))
    try:
        output = parse(done.text)
    except UnreadableOutput as error:
        raise ToolError("clauses", why=(*troubles, error.message)) from error
    if output.outcome == "fail":
        return output
    if output.outcome == "error":
        troubles.append(output.reason)
    elif trouble := cuda_error.find(done.text.splitlines()):
        troubles.append(Message("tool_says", {"tool": tool, "why": trouble.reason}))
    if troubles:
        last = done.last_lines(2)
        said = Message("last_said", {"text": last}) if last else Message("printed_nothing")
        unproved = Unnamed if troubles == [output.reason] else ToolError
        raise unproved("clauses", why=(*troubles, said))
    return output


def option(argv: Sequence[str], name: str) -> int:
    """The number behind an option of a program's command line, perhaps of seconds (`36s`).

    Raises ToolError where there is none: what the program was asked is then not known.
    """
    for word, value in pairwise(argv):
        if word == name and value.removesuffix("s").isdecimal():
            return int(value.removesuffix("s"))
    raise ToolError("command_line_lacks", option=name)
