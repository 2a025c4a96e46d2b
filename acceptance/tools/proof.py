"""What a tool's run proves: its text, its exit and its duration are judged together."""

from __future__ import annotations

from collections.abc import Callable

from acceptance.core.plain_text import UnreadableOutput
from acceptance.process.command import ProgramResult
from acceptance.tools import cuda_error
from acceptance.tools.reading import ToolOutput

EARLY = 0.95  # a program that rounds its seconds ends a little early, but never by a twentieth


class ToolError(Exception):
    """A tool ran and proves nothing, so the hardware stays unjudged."""


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
    troubles = []
    if done.timed_out or done.returncode != 0:
        troubles.append(f"{tool} {done.describe()}")
    elif done.seconds < EARLY * seconds:
        troubles.append(
            f"{tool} ended after {done.seconds:.1f} s and was to load the machine for "
            f"{seconds:.0f} s"
        )
    if done.truncated:
        troubles.append(f"{tool} printed more than is kept, or its output was not read to the end")
    try:
        output = parse(f"{done.stdout}\n{done.stderr}")
    except UnreadableOutput as error:
        raise ToolError("; ".join([*troubles, str(error)])) from error
    if output.outcome == "fail":
        return output
    if output.outcome == "error":
        troubles.append(output.reason)
    elif trouble := cuda_error.find(f"{done.stdout}\n{done.stderr}".splitlines()):
        troubles.append(f"{tool}: {trouble.reason}")
    if troubles:
        last = done.last_lines(2)
        raise ToolError(
            "; ".join(troubles) + (f"; it last said: {last}" if last else "; it printed nothing")
        )
    return output
