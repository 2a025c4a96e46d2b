"""Wrong results as loads tell of them, made from what is wrong: places and bits
of a result of 8192 x 8192.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from acceptance.loads.miscompare import WrongResult, read_or_keep
from acceptance.loads.mismatch import SEEN, ElementBits, describe_elements

SIDE = 8192
Fact = dict[str, Any]


def printed(part: object) -> Any:
    """A part of a wrong result as it stands in a load's output."""
    return msgspec.json.decode(msgspec.json.encode(part))


def ring(
    wrong: Sequence[tuple[int, int, int]],
    *,
    iteration: int = 17,
    slot: int = 5,
    lap: int = 0,
    width: int = 2,
    made_s: float | None = None,
    nan: int = 0,
    infinite: int = 0,
) -> Fact:
    """A wrong product of (element, expected, got); `width` is the bytes of an element."""
    moment = 1000.0 + iteration if made_s is None else made_s
    first = [ElementBits(*one) for one in wrong[:SEEN]]
    base = slot * SIDE * SIDE * width
    return {
        "component": "gpu0",
        "dtype": "bf16",
        "check": "ring",
        "shape": f"{SIDE}x{SIDE}x16384",
        "iteration": iteration,
        "lap": lap,
        "made_s": moment,
        "found_s": moment + 1.5,
        "elements": len(wrong),
        "of": SIDE * SIDE,
        "nan": nan,
        "infinite": infinite,
        "slot": slot,
        **printed(describe_elements(first, wrong[-1][0], columns=SIDE, width=width, base=base)),
    }


def one_bit(
    bit: int, element: int = 1234567, *, slot: int = 5, iteration: int = 17, **more: Any
) -> Fact:
    """One bit of one element of one product."""
    return ring([(element, 0x3F80, 0x3F80 ^ 1 << bit)], slot=slot, iteration=iteration, **more)


def units(stride: int, count: int = 5000, *, begin: int = 0, **more: Any) -> Fact:
    """Every so manyth element off by one unit in the last place."""
    return ring(
        [(begin + n * stride, 0x3F80 + n % 97, 0x3F81 + n % 97) for n in range(count)], **more
    )


def scrambled(elements: Sequence[int], **more: Any) -> Fact:
    """Elements with many wrong bits."""
    return ring(
        [
            (one, one * 40503 % 65521, one * 40503 % 65521 ^ (one * 2654435761 >> 8 | 1) % 65521)
            for one in elements
        ],
        **more,
    )


INPUTS: Fact = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "inputs",
    "lap": 0,
    "operand": "a",
    "expected": "00ff",
    "got": "00fe",
}
AGAIN: Fact = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "again",
    "lap": 1,
    "shape": "8192x8192x16384",
    "expected": "0a",
    "got": "0b",
}
WHOLE: Fact = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "whole",
    "shape": "8192x8192x16384",
    "rows": 8192,
    "elements": 1,
    "nan": 0,
    "infinite": 0,
    "first": [{"index": [3, 4], "expected": "3.0", "got": "5.0"}],
}
COPIED: Fact = {
    "component": "gpu0->gpu1",
    "check": "copy_p2p",
    "words": 12,
    "unwritten": 0,
    "first": [{"word": 3, "expected": "00", "got": "01"}],
}


PLACE: Fact = {"index": [1, 2], "expected": "00", "got": "01", "xor": "01"}
REMADE: Fact = {
    "component": "gpu0",
    "dtype": "f16",
    "check": "again",
    "expected": "0a",
    "got": "0b",
    "nan": 0,
    "infinite": 1,
}
REPEATED: Fact = {
    "component": "gpu0",
    "dtype": "f16",
    "check": "repeat",
    "after": "short",
    "elements": 1,
    "nan": 0,
    "infinite": 0,
    "first": [PLACE],
}
TRANSFERRED: Fact = {
    "component": "gpu0",
    "check": "copy_own_d2h",
    "copy": 3,
    "words": 1,
    "unwritten": 0,
    "first": [{"index": 7, "expected": "00", "got": "01", "xor": "01"}],
}
TRAINED: Fact = {
    "component": "gpu0",
    "check": "step_reference",
    "model": "small model",
    "option": "bfloat16",
    "tensor": "tokens.weight",
    "elements": 1,
    "of": 262144,
    "first": [{"index": [0, 7], "expected": "-0.0252", "got": "-0.0253"}],
}
COLLECTIVE: Fact = {
    "component": "gpu1",
    "check": "all_reduce",
    "format": "bf16",
    "arm": "p2p_off",
    "size": 4096,
    "turn": 3,
    "elements": 1,
    "unwritten": 0,
    "first": [{"index": [7], "expected": "12.0", "got": "11.0"}],
}
UNEQUAL: Fact = {
    "component": "gpu1",
    "check": "parallel_gradient",
    "way": "ddp",
    "arm": "p2p_off",
    "accumulation": 4,
    "step": 1,
    "tensor": "blocks.0.feed_forward.up.weight",
    "difference": "0.000191347",
    "bound": 0.000153,
}
VECTOR: Fact = {
    "component": "gpu0",
    "check": "elementwise",
    "elements": 65536,
    "batch": 1,
    "wrong": 1,
    "index": 7,
    "expected": 12.0,
    "got": "0.5",
}
CORE_REPEATED: Fact = {
    "component": "core:0",
    "check": "repeat",
    "product": 3,
    "seconds": 0.5,
    "elements": 1,
    "nan": 0,
    "first": [PLACE],
}
INEXACT: Fact = {
    "component": "core:0",
    "check": "exact",
    "found": "elements that no sum of these products can be",
    "elements": 1,
    "nan": 0,
    "first": [{"index": [1, 2], "got": "0.5"}],
}
ROWS: Fact = {
    "component": "core:0",
    "check": "exact",
    "found": "rows that fail the integer check",
    "rows": 1,
    "first": [3],
}
DIGESTS: Fact = {
    "check": "digest",
    "found": "first products that differ",
    "digests": {"00": ["core:0"]},
}
DIGESTS_OF_GPUS: Fact = {**DIGESTS, "digests": {"00": ["gpu0"]}}

RUN: Fact = {
    "component": "gpu0",
    "check": "digest_repeat",
    "format": "bf16",
    "repeat": 3,
    "step": 7,
    "part": "gradient",
    "tensor": "blocks.3.feed_forward.up.weight",
    "kind": "bit",
    "bit": 12,
    "digests": 40,
}
ARRAY: Fact = {
    "component": "core:0",
    "check": "triad",
    "repeat": 2,
    "elements": 1,
    "nan": 0,
    "first": [PLACE],
}

LAYER: Fact = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "layer_reference",
    "layer": "bert",
    "tensor": "attention.query.weight",
    "elements": 1,
    "odd": 0,
    "error": 0.2022,
    "bound": 0.1926,
    "first": [{"index": [0, 0], "expected": "-0.5", "got": "0.25"}],
}
LAYER_REPEATED: Fact = {
    "component": "gpu0",
    "dtype": "bf16",
    "check": "layer_repeat",
    "layer": "t5_decoder",
    "tensor": "memory",
    "run": "strict",
    "elements": 1,
    "first": [PLACE],
}
FILE: Fact = {
    "component": "disk:nvme0n1",
    "check": "kept",
    "file": "sealed",
    "pass": 0,
    "block": 3,
    "offset": 12296,
    "words": 511,
    "unwritten": 0,
    "want": "00000000000000ff",
    "got": "00000000000000fe",
    "xor": "0000000000000001",
    "of_offset": 4104,
    "of_turn": 1,
}
FAILED: Fact = {
    "component": "disk:nvme0n1",
    "check": "file",
    "operation": "read",
    "file": "sealed",
    "error": "EIO",
    "offset": 4096,
}


def all_of(*facts: Fact) -> tuple[WrongResult, ...]:
    """What readers make of them."""
    return tuple(read_or_keep(fact) for fact in facts)


def vram(
    wrong: Sequence[tuple[int, int, int]], *, words: int | None = None, number: int = 1, **more: Any
) -> Fact:
    """A pass over memory that found words (byte address, expected, got) wrong."""
    either, every = 0, (1 << 64) - 1
    bits: dict[str, int] = {}
    for _, expected, got in wrong:
        either, every = either | expected ^ got, every & (expected ^ got)
        for bit in range(64):
            if (expected ^ got) >> bit & 1:
                bits[str(bit)] = bits.get(str(bit), 0) + 1
    first = [
        {
            "address": place,
            "expected": f"{due:016x}",
            "got": f"{got:016x}",
            "xor": f"{due ^ got:016x}",
        }
        for place, due, got in wrong[:32]
    ]
    return {
        "component": "gpu0",
        "check": "vram",
        "pattern": "march C-",
        "pass": number,
        "words": len(wrong) if words is None else words,
        "bits": bits,
        "xor_or": f"{either:016x}",
        "xor_and": f"{every:016x}",
        "found_s": 1000.0 + number,
        "first": first,
        **more,
    }


def described_keys() -> frozenset[str]:
    """What a product tells of its wrong elements."""
    return frozenset(describe_elements([ElementBits(0, 1, 2)], 0, columns=1, width=1, base=0))
