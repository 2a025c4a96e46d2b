"""The result type of every tool's parser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from acceptance.core.message import Message, Text, english
from acceptance.core.parts import Component
from acceptance.core.plain_text import _tidied, first_line, lines
from acceptance.process.unreadable import UnreadableOutput, require_bounded
from acceptance.tools.read import log_prefix

Outcome = Literal["pass", "fail", "error"]
_RESULT_START = re.compile(r"Result =|(?:PASSED|FAILED)$")
_RESULT = re.compile(r"(?:Result = )?(?P<result>PASS|FAIL)(?:ED)?(?![A-Za-z0-9/])")


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured quantity: `values` maps a component (`cpu`, `memory`, `gpu0`) to a number.

    `unit` is one of a closed set: GB/s, GFLOP/s, TFLOP/s, degC, W, MHz, us, ns, s, count, ratio,
    GiB, IOPS. Raises ValueError for a value that is not finite: such a number was never measured.
    """

    name: str
    unit: str
    values: Mapping[Component, float] = field(hash=False)

    def __post_init__(self) -> None:
        for component, value in self.values.items():
            if not math.isfinite(value):
                raise ValueError(f"{self.name} of {component} is not a finite number: {value}")


@dataclass(frozen=True, slots=True)
class GpuEntry:
    """One GPU in a tool's text, for comparison with the GPU that is due.

    `pci_address` is `0000:0b:00.0`; `memory_mib` is CUDA's total, in 2^20 bytes. None: not in the
    text.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The judgement of one text.

    `fail`: the text itself proves a fault. `error`: it was read and proves nothing. `pass`: it is
    complete and shows no fault. `reason` says why. `events` are plain mappings (kernel log
    and NCCL's log only). `gpus` are the GPUs that the text lists, in its order; `driver` is the
    driver's version as printed.
    """

    tool: str
    outcome: Outcome
    reason: Text
    readings: tuple[Reading, ...] = ()
    events: tuple[Mapping[str, object], ...] = field(default=(), hash=False)
    # Identity of the machine; no part of the measurement, so not compared.
    gpus: tuple[GpuEntry, ...] = field(default=(), compare=False)
    driver: str | None = field(default=None, compare=False)

    def reading(self, name: str) -> Mapping[Component, float]:
        """The values of one reading. Raises KeyError if the text does not have it."""
        for reading in self.readings:
            if reading.name == name:
                return reading.values
        raise KeyError(name)


def duplicate(gpus: Sequence[GpuEntry]) -> str | None:
    """The UUID or PCI address that two GPUs of a list share; None if all are distinct."""
    for names in ([gpu.uuid for gpu in gpus], [gpu.pci_address for gpu in gpus]):
        given = [name for name in names if name is not None]
        if twice := next((name for name in given if given.count(name) > 1), None):
            return twice
    return None


def foreign(tool: str, text: str) -> UnreadableOutput:
    """The error of a text without any line of the tool; it quotes the first line."""
    return UnreadableOutput(
        tool,
        first_line(text),
        Message(english("tool_absent", "the text holds no line of {tool}"), {"tool": tool}),
    )


def sample_result(tool: str, line: str, before: str | None) -> str | None:
    """PASS or FAIL if the line is the result of a CUDA sample, else None.

    `before` is the result that the text has given already. Raises UnreadableOutput for an unknown
    result, and for another one than before.
    """
    text = " ".join(line.split())
    if not _RESULT_START.match(text):
        return None
    match = _RESULT.match(text)
    if match is None or before not in (None, match["result"]):
        raise UnreadableOutput(
            tool,
            line,
            Message(
                english("result_unknown", "a result that is unknown, or that gainsays another")
            ),
        )
    return match["result"]


def plain_lines(text: str) -> tuple[str, ...]:
    """The lines of a text as `plain_text.lines` gives them.

    Raises UnreadableOutput for a text that is too long. Every parser here takes its lines from this
    function or from `tool_lines`.
    """
    require_bounded(text)
    return lines(text)


def tool_lines(text: str) -> tuple[str, ...]:
    """The lines of a program's output, without the prefixes of container runtimes and launchers.

    Like `plain_lines`, but for output from a container, from a log collector or from many machines,
    where every line has a prefix.
    """
    require_bounded(text)
    plain = _tidied(text.removeprefix("\ufeff").split("\n"))
    freed = log_prefix.strip_prefixes(plain)
    return lines(text if freed == list(plain) else "\n".join(freed))


def only_json(
    tool: str, text: str, root: re.Pattern[str], once: Callable[[list[tuple[str, Any]]], object]
) -> tuple[Any, int, int]:
    """The only JSON of a text, where it begins, and where it ends.

    `root` matches its beginning, `once` makes an object of its pairs. Raises UnreadableOutput for
    none, several, one that is cut, and a number that is none.
    """

    def no_constant(word: str) -> NoReturn:
        raise UnreadableOutput(
            tool, word, Message(english("figure_no_number", "a figure is no number"))
        )

    starts = [match.start() for match in root.finditer(text)]
    if len(starts) != 1:
        raise UnreadableOutput(tool, "", Message("outputs_several", {"count": len(starts)}))
    decoder = json.JSONDecoder(object_pairs_hook=once, parse_constant=no_constant)
    try:
        value, end = decoder.raw_decode(text, starts[0])
    except (ValueError, RecursionError) as error:
        why = Message(
            english("json_cut", "the JSON is cut or damaged ({error})"),
            {"error": type(error).__name__},
        )
        raise UnreadableOutput(tool, text[-80:], why) from error
    return value, starts[0], end
