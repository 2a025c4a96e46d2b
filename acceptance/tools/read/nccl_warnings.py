"""NCCL's warnings, in its own log and between the lines of a program that uses it.

What they mean is taken from NCCL's sources (src/transport/net_ib.cc, src/transport/nvls.cc,
src/include/checks.h) and from public issues. A warning that is not known here is no fault, and is
always quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from acceptance.core.message import Message, english, known
from acceptance.core.plain_text import quote
from acceptance.tools import proof
from acceptance.tools.reading import ToolOutput

# "fault": of the hardware; "failure": NCCL could not do its work, for whatever reason; "harmless":
# NCCL goes on as before; "unknown": none of these is known.
Kind = Literal["fault", "failure", "harmless", "unknown"]

_WARN = re.compile(r"NCCL WARN ?(?P<message>.*)")
# IBV_EVENT_DEVICE_FATAL: the adapter itself is in an error state.
_FAULT = re.compile(r"async (?:fatal )?event ?: (?:local catastrophic error|device fatal)", re.I)
_HARMLESS = re.compile(
    # events that net_ib.cc calls non-fatal; a port error is one of them, and ends a link
    r"Got async (?:error )?event ?: (?:port active|client reregistration|SM reregistration"
    r"|LID change|P_Key change|SM change|send queue drained|last WQE reached|path migrated"
    r"|SRQ limit reached|GID table change)"
    r"|GID table changed"
    # peers that share no bus: another transport is used
    r"|P2P is disabled between connected GPUs"
    r"|(?:Could not enable P2P|peer query failed) between dev"
    r"|NUMA auto balancing enabled",
    re.I,
)
_FAILURE = re.compile(
    r"fail|error|fatal|time[d]?[ -]?out|abort|mismatch|corrupt|unhandled|invalid|unable|not found"
    r"|could ?n[o']t|can ?n?[o']t|not enough|insufficient|not supported|refused|closed by|reset by"
    r"|unreachable|connection|\blost\b|broken|exceed|too (?:small|large|many)|Got completion"
    r"|hardware issue|misalign|unexpected|wrong|stuck|hang",
    re.I,
)
_CAUSES = (
    (
        re.compile(r"nvls\.cc|NVLS|multicast", re.I),
        Message(
            english(
                "nccl_multicast_failed",
                "NVLink multicast (NVLS) failed; if nvidia-fabricmanager was started again under "
                "running GPUs, reset them or reboot; NCCL_NVLS_ENABLE=0 does without it",
            )
        ),
    ),
    (
        re.compile(r"port error", re.I),
        Message(
            english(
                "nccl_port_failed",
                "a port of a network card lost its link: look at its cable and at the switch, and "
                "in the kernel's log",
            )
        ),
    ),
    (
        re.compile(r"Got completion|async fatal event on", re.I),
        Message(
            english(
                "nccl_transfer_failed",
                "a transfer between two network ports failed: look at both ports and the path "
                "between them; a peer that died leaves the same",
            )
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Warnings:
    """The warnings of a text by kind, as whole lines, in their order."""

    lines: tuple[tuple[Kind, str], ...]

    def of(self, kind: Kind) -> list[str]:
        """The lines of one kind."""
        return [line for known_as, line in self.lines if known_as == kind]

    def verdict(self, tool: str) -> ToolOutput | None:
        """The outcome that the warnings alone give a text; None if they give none."""
        if faults := self.of("fault"):
            values = known(line=quote(faults[0]), more=len(faults) - 1 or None)
            return ToolOutput(
                tool,
                "fail",
                Message(
                    english(
                        "nccl_fault",
                        "NCCL names a fault of the hardware: '{line}'[ (and {more} more such "
                        "lines)]",
                    ),
                    values,
                ),
                events=self.events(),
            )
        if failures := self.of("failure"):
            cause = next((why for form, why in _CAUSES if form.search(failures[0])), None)
            values = known(line=quote(failures[0]), more=len(failures) - 1 or None, cause=cause)
            return ToolOutput(tool, "error", Message("nccl_failed", values), events=self.events())
        return None

    def note(self) -> Message | None:
        """The unknown warnings, for a text that is a pass all the same."""
        lines = self.of("unknown")
        if not lines:
            return None
        return Message(
            english(
                "nccl_warning_unknown",
                "NCCL warned of what is not known here: '{line}'[ (and {more} more such lines)]",
            ),
            known(line=quote(lines[0]), more=len(lines) - 1 or None),
        )

    def events(self) -> tuple[dict[str, object], ...]:
        """Each warning once."""
        return tuple(
            {"kind": "warning", "class": kind, "text": quote(line)}
            for kind, line in dict.fromkeys(self.lines)
        )


def find(lines: Iterable[str]) -> Warnings:
    """The warnings in the lines."""
    return Warnings(
        tuple((_kind(match["message"]), line) for line in lines if (match := _WARN.search(line)))
    )


def _kind(message: str) -> Kind:
    trouble = proof.find([message])
    if _FAULT.search(message) or (trouble is not None and trouble.hardware):
        return "fault"
    if _HARMLESS.search(message):
        return "harmless"
    return "failure" if _FAILURE.search(message) else "unknown"
