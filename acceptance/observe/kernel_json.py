"""A kernel log that was printed as JSON (`journalctl -o json`, `dmesg --json`), put back into lines."""

from __future__ import annotations

import json
from typing import Any


def _objects(text: str) -> list[dict[str, Any]]:
    """The records of a text that is nothing but JSON objects; none where it is anything else."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        whole = json.loads(text)
        found = whole["dmesg"] if isinstance(whole, dict) and isinstance(whole.get("dmesg"), list) else [whole]
    except ValueError:
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    except RecursionError:
        return []
    return found if all(isinstance(each, dict) for each in found) else []


def _message(record: dict[str, Any]) -> str | None:
    """A record's message; the journal writes one that is no plain text as a list of its bytes."""
    message = record.get("MESSAGE", record.get("msg"))
    if isinstance(message, list) and all(isinstance(each, int) and 0 <= each < 256 for each in message):
        return bytes(message).decode("utf-8", errors="replace")
    return message if isinstance(message, str) else None


def _word(value: object) -> str:
    """A text or a whole number as text; empty for anything else, which may be nested too deep to be written out."""
    return str(value) if isinstance(value, str | int) else ""


def _stamp(record: dict[str, Any]) -> str | None:
    """What stands before the message in the plain forms: dmesg's seconds, or the journal's time, host and program; None without them."""
    time = record.get("time")
    if isinstance(time, float | int) and 0 <= time < 1e12:
        return f"[{time:.6f}] "
    micros = _word(record.get("__REALTIME_TIMESTAMP", ""))
    kernel = record.get("_TRANSPORT") == "kernel"
    program = "".join(_word(record.get("SYSLOG_IDENTIFIER", "")).split()) or "unknown"
    if micros.isascii() and micros.isdigit() and len(micros) > 14:
        return f"{micros[:-6]}.{micros[-6:]} host {'kernel' if kernel else program}: "
    return "kernel: " if kernel or "msg" in record else None


def as_text(text: str) -> str:
    """The same log in lines; a text that is no such JSON comes back as it is."""
    told = [(_stamp(record), _message(record)) for record in _objects(text)]
    if not told or any(stamp is None or message is None for stamp, message in told):
        return text
    return "".join(f"{stamp}{line}\n" for stamp, message in told for line in (message or "").splitlines())
