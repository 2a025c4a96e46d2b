"""Amounts of the capacity card in words: memory in GiB, rates in TFLOP/s, counts in billions."""

from __future__ import annotations

import math
from collections.abc import Callable

from acceptance.core.language import Language
from acceptance.core.limit import GIB, number

FILE = "B of a file"  # disks are counted in GB, memory in GiB
_SCALED = {
    "B": (float(GIB), "GiB"),
    FILE: (1e9, "GB"),
    "B/s": (1e9, "GB/s"),
    "FLOP/s": (1e12, "TFLOP/s"),
}
_PLAIN = 1e6  # counts from here on have a word for their size
_WORDLESS = 1e15  # and from here on an exponent


def count(value: float, language: Language) -> str:
    """A count, with a word where it is large: 7 billion, 1.3 trillion."""
    if value < _PLAIN:
        return number(value if value == int(value) else float(f"{value:.4g}"))
    if value >= _WORDLESS:
        power = 3 * math.floor(math.log10(value) / 3)
        return f"{float(value / 10.0**power):.4g}e{power}"
    # Languages divide by other sizes: the translation has its own, from the smallest on.
    words = language.pgettext("sizes of large numbers", "1e6 million, 1e9 billion, 1e12 trillion")
    sizes = [(float(size), word) for size, word in (one.split() for one in words.split(", "))]
    shown = float(f"{value:.3g}")  # 999.96 million are a billion
    size, word = max((one for one in sizes if one[0] <= shown), default=sizes[0])
    many = shown / size
    return f"{number(round(many, 1) if many < 100 else round(many))} {word}"


def share(value: float) -> str:
    """A share in per cent."""
    return f"{100 * value:.3g} %"


def amount(value: float, unit: str, language: Language) -> str:
    """A value with its unit."""
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
        return many[unit](count(value, language))
    scale, shown = _SCALED.get(unit, (1.0, unit))
    text = count(value / scale, language)
    return text if shown in ("", "ratio") else f"{text} {shown}"
