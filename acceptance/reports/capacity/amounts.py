"""Amounts of the capacity card in words: sizes in GB, rates in TFLOP/s, large counts as 7e9."""

from __future__ import annotations

import math
from collections.abc import Callable

from acceptance.core.language import Language
from acceptance.core.limit import number

_SCALED = {"B": (1e9, "GB"), "B/s": (1e9, "GB/s"), "FLOP/s": (1e12, "TFLOP/s")}
_PLAIN = 1e6  # counts from here on have an exponent


def count(value: float) -> str:
    """A count with an exponent of three where it is large: 7e9, 140e9, 1.3e12."""
    if value < _PLAIN:
        return number(value if value == int(value) else float(f"{value:.4g}"))
    power = 3 * math.floor(math.log10(value) / 3)
    return f"{float(value / 10.0**power):.4g}e{power}"


def share(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.3g} %"


def amount(value: float, unit: str, language: Language) -> str:
    """A value with its unit, four digits of it."""
    one: dict[str, Callable[[], str]] = {
        "samples": lambda: language("1 sample"),
        "layers": lambda: language("1 layer"),
        "GPUs": lambda: language("1 GPU"),
        "micro-batches": lambda: language("1 micro-batch"),
        "days": lambda: language("1 day"),
    }
    many: dict[str, Callable[[str], str]] = {
        "parameters": lambda n: language("{number} parameters", number=n),
        "tokens": lambda n: language("{number} tokens", number=n),
        "tokens/s": lambda n: language("{number} tokens/s", number=n),
        "samples": lambda n: language("{number} samples", number=n),
        "layers": lambda n: language("{number} layers", number=n),
        "GPUs": lambda n: language("{number} GPUs", number=n),
        "micro-batches": lambda n: language("{number} micro-batches", number=n),
        "days": lambda n: language("{number} days", number=n),
    }
    if unit in one and value == 1:
        return one[unit]()
    if unit in many:
        return many[unit](count(value))
    scale, shown = _SCALED.get(unit, (1.0, unit))
    text = count(value / scale)
    return text if shown in ("", "ratio") else f"{text} {shown}"
