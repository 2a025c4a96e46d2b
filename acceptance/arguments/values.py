"""What an option takes: a text of the command line as a value. Each raises ArgumentTypeError with a sentence for what it does not take."""

from __future__ import annotations

import argparse
import re
from datetime import time
from pathlib import Path


def path(text: str) -> Path:
    """A path whose name can be written down."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # the journal and every report are UTF-8, and hold the name
        raise argparse.ArgumentTypeError(f"the name {text!a} is not UTF-8: give it another one") from None
    return Path(text)


def seconds(text: str) -> float:
    """Seconds of a burn, up to 30 days."""
    value = float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else 0.0
    if not 1 <= value <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 1 to 2592000 (30 days)")
    return value


def patterns(text: str) -> tuple[str, ...]:
    """Checks by id, subject or shell pattern, with commas between them."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name at least one check, subject or pattern")
    return found


def gpus(text: str) -> tuple[str, ...]:
    """GPUs by index or UUID, with commas between them."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name at least one GPU by its index or UUID")
    return found


def time_of_day(text: str) -> time:
    """Hours and minutes."""
    if not re.fullmatch("([01]?[0-9]|2[0-3]):[0-5][0-9]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time of day: give hours and minutes, such as 03:30")
    hour, _, minute = text.partition(":")
    return time(int(hour), int(minute))


def number(text: str) -> int:
    """A whole number from 1 to 9999."""
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 9999")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1 to a million."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 1000000")
    return value


def amount(text: str) -> float:
    """A number from 0 to a million."""
    if not (text.isascii() and text.replace(".", "", 1).isdigit()) or float(text) > 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1000000")
    return float(text)
