"""A text that is longer than any tool prints is refused at once, by every parser."""

from __future__ import annotations

import pytest

from acceptance.process.unreadable import (
    LONGEST_LINE,
    MOST_LINES,
    OutputTooLong,
    UnreadableOutput,
    require_bounded,
)
from acceptance.tools import TOOLS, Tool

WHAT = {
    "digits": "1",
    "blanks": " ",
    "NULs": "\0",
    "ANSI escapes": "\x1b[0m",
    "open escapes": "\x1b[1;",
    "nested lists": "[",
    "nested objects": '{"nvbandwidth":',
    "gpu-burn's progress": "10.0%  proc'd: 1 (2 Gflop/s)   errors: 0   temps: 30 C ",
    "a kernel message": "[    1.000000] NVRM: Xid (PCI:0000:01:00): 79, ",
}
tools = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@tools
def test_a_line_that_is_too_long_is_named(tool: Tool) -> None:
    for what, repeated in WHAT.items():
        line = repeated * (LONGEST_LINE // len(repeated) + 1)
        with pytest.raises(UnreadableOutput) as told:
            tool.parse(f"one\r\ntwo\rthree\n{line}\nfive")
        assert told.value.message.code == "output_line_too_long", what
        assert told.value.message.values["line"] == 4
        assert told.value.message.values["length"] == len(line)


@tools
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_too_many_lines(tool: Tool, end: str) -> None:
    with pytest.raises(UnreadableOutput) as told:
        tool.parse(end * MOST_LINES)
    assert told.value.message.code == "output_of_many_lines"
    assert told.value.message.values["count"] == MOST_LINES + 1


def test_the_longest_text_that_is_read() -> None:
    require_bounded("a" * LONGEST_LINE)
    require_bounded(f"{'a' * LONGEST_LINE}\n{'b' * LONGEST_LINE}\r\n" + "\n" * (MOST_LINES - 3))
    with pytest.raises(OutputTooLong):
        require_bounded(f"{'a' * LONGEST_LINE}b")
