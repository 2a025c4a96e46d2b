"""What every parser returns, and the text weather that all of them stand."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acceptance.tools import log_prefix

Outcome = Literal["pass", "fail", "error"]

_QUOTE_LIMIT = 160
# ECMA-48: CSI sequences (colours, cursor), OSC sequences (titles), then the two-character ones.
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BOLD = re.compile(r"^(\s*)\*\*(.*)\*\*$")


def quote(line: str, limit: int = _QUOTE_LIMIT) -> str:
    """The line as it may stand in a message: one line, control characters escaped, at most `limit` characters of it."""
    shown = line.strip()
    cut = shown[:limit]
    safe = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in cut)
    return safe + ("..." if len(shown) > limit else "")


def shown(value: object) -> str:
    """A value of a JSON text, for a message; what is nested is named only, for it may be too deep to be written out."""
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else quote(repr(value))


class UnreadableOutput(Exception):
    """The text is not this tool's output, or a needed line of it has a form nobody has described.

    `str()` is one sentence that quotes the line. A text that *was* read and proves nothing is not this: it is a ToolOutput
    whose outcome is `error`.
    """

    def __init__(self, tool: str, line: str, why: str) -> None:
        self.tool = tool
        self.line = line
        self.why = why
        super().__init__(f"{tool}: {why}: '{quote(line)}'" if line.strip() else f"{tool}: {why}")


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured quantity: `values` maps a component (`cpu`, `memory`, `gpu0`) to a number in `unit`.

    `unit` is one of the closed set: GB/s, GFLOP/s, TFLOP/s, degC, W, MHz, us, ns, s, count, ratio, GiB. Raises ValueError for a
    value that is not finite: such a number was never measured.
    """

    name: str
    unit: str
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        for component, value in self.values.items():
            if not math.isfinite(value):
                raise ValueError(f"{self.name} of {component} is not a finite number: {value}")


@dataclass(frozen=True, slots=True)
class GpuEntry:
    """One GPU as a tool's text names it, for comparison with the GPU that is due.

    `pci_address` is `0000:0b:00.0`; `memory_mib` is CUDA's total, in 2^20 bytes. None: the text
    does not say it.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What one text is worth.

    `fail`: the text itself proves a fault. `error`: it was read and proves nothing. `pass`: it was read whole and shows no fault.
    `reason` is one sentence. `events` are plain mappings (kernel log only). `gpus` are those that the
    text lists, in its order; `driver` is the driver's version as it prints it.
    """

    tool: str
    outcome: Outcome
    reason: str
    readings: tuple[Reading, ...] = ()
    events: tuple[Mapping[str, object], ...] = ()
    # They say whose figures these are, and are no part of what was measured.
    gpus: tuple[GpuEntry, ...] = field(default=(), compare=False)
    driver: str | None = field(default=None, compare=False)

    def reading(self, name: str) -> Mapping[str, float]:
        """The values of one reading. Raises KeyError when the text did not give it."""
        for reading in self.readings:
            if reading.name == name:
                return reading.values
        raise KeyError(name)

    def to_json_object(self) -> dict[str, object]:
        """The form that `rigproof read` prints."""
        return {
            "tool": self.tool,
            "outcome": self.outcome,
            "reason": self.reason,
            "readings": {
                reading.name: {"unit": reading.unit, "values": dict(reading.values)} for reading in self.readings
            },
            "events": [dict(event) for event in self.events],
        }


def duplicate(gpus: Sequence[GpuEntry]) -> str | None:
    """The UUID or PCI address that a list gives to two GPUs; None where each has its own."""
    for names in ([gpu.uuid for gpu in gpus], [gpu.pci_address for gpu in gpus]):
        given = [name for name in names if name is not None]
        if twice := next((name for name in given if given.count(name) > 1), None):
            return twice
    return None


def number(tool: str, line: str, digits: str) -> float:
    """`digits` as a finite number. Raises UnreadableOutput: thousands of digits are no measurement."""
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UnreadableOutput(tool, line, "a number cannot be read")
    return value


def lines(text: str) -> tuple[str, ...]:
    r"""The lines of a text, freed of what terminals, mails and forums do to it.

    `\r\n`, `\r` and `\n` end a line (progress is drawn with `\r`; str.splitlines would also split at form feeds and at U+2028, which
    stand inside a line). ANSI sequences, a byte order mark and trailing blanks go. Three habits of pasted text go too, because the
    recordings that people send come out of mails, issues and forums: a `> ` before *every* line, an indentation common to *every*
    line, and `**` around a line. A mark on some lines only stays: it is the text's own.
    """
    return _tidied(_LINE_END.split(text.removeprefix("\ufeff")))


def tool_lines(text: str) -> tuple[str, ...]:
    """The same for the output of a program that was run by hand, in a container, or on many machines: what container runtimes, log
    collectors and launchers put before every line goes too.
    """
    plain = _tidied(text.removeprefix("\ufeff").split("\n"))
    freed = log_prefix.taken_off(plain)
    return lines(text if freed == list(plain) else "\n".join(freed))


def _tidied(raw: Sequence[str]) -> tuple[str, ...]:
    found = [_ANSI.sub("", line).rstrip() for line in raw]
    inked = [line for line in found if line]
    if inked and all(line.lstrip().startswith(">") for line in inked):
        found = [line.lstrip()[1:] for line in found]
        inked = [line for line in found if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in inked), default=0)
    return tuple(_BOLD.sub(r"\1\2", line[indent:]).rstrip() for line in found)


def first_line(text: str) -> str:
    """The first line with something on it, for a message; empty when there is none."""
    return next((line for line in lines(text) if line.strip()), "")
