"""Texts of kernel messages, and the events in them in brief."""

from __future__ import annotations

from acceptance.tools.read import kernel_log


def brief(text: str) -> list[str]:
    """Kind, code, component and severity of each event in a text."""
    return [f"{e.kind} {e.code} {e.component} {e.severity}" for e in kernel_log.events(text)]


def lines(*texts: str, stamp: str = "[  100.5] ") -> str:
    """Messages as lines of a log, each with the stamp."""
    return "".join(f"{stamp}{text}\n" for text in texts)
