"""What the digests of a training run print for a GPU: digests made up, by the forms of
`acceptance.loads.train`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from acceptance.core.dtype import native_dtypes
from acceptance.loads.miscompare import DigestFormat, DigestPart
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import Row, RunDigests, Stamp
from acceptance.loads.train.names import (
    DIGEST_BATCH,
    DIGEST_COLUMNS,
    DIGEST_FORMATS,
    DIGEST_LOG,
    DIGEST_RECIPE,
    DIGEST_STEPS,
    DIGEST_TABLE,
)
from acceptance.loads.train.shapes import MODELS

MODEL = MODELS["digest"]
TENSORS = digest_log.gpt_tensors(MODEL.layers)
LIBRARY = "torch 2.10.0+cu128, CUDA 12.8"
Line = dict[str, Any]


class Wrong(NamedTuple):
    """A bit that differs first, in one tensor; all that follows differs too.

    `gpu` makes other bits of what follows.
    """

    step: int = 6
    part: DigestPart = "gradient"
    tensor: str = "blocks.3.feed_forward.up.weight"
    bit: int = 12
    gpu: str = "gpu1"


def _number(*about: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(about).encode()).digest()[:8], "big")


def run(dtype: str, wrong: Wrong | None = None, seed: str = "") -> RunDigests:
    """A run of this format; equal arguments have equal bits."""
    rows, differs = [], False
    for step, part, count in digest_log.due_rows(DIGEST_STEPS, len(TENSORS)):
        stamps = []
        for place in range(count):
            name = digest_log.LOSS if part == "loss" else TENSORS[place]
            about = (seed, dtype, step, part, name)
            stamp = Stamp(_number(*about, "digest"), _number(*about, "sum") >> 1, 0)
            if wrong is not None and (step, part, name) == wrong[:3]:
                differs = True
                digest = (stamp.digest + (0x9E37_79B9_7F4A_7C15 << wrong.bit)) % (1 << 64)
                stamp = Stamp(digest, stamp.total + (1 << wrong.bit), 0)
            elif differs and wrong is not None:
                stamp = Stamp(_number(*about, wrong.gpu), _number(*about, wrong.gpu, 1), 0)
            stamps.append(stamp)
        rows.append(Row(step, part, tuple(stamps)))
    return RunDigests(TENSORS, tuple(rows))


def formats(capability: str) -> tuple[DigestFormat, ...]:
    native = native_dtypes(capability)
    return tuple(first if first in native else other for first, other in DIGEST_FORMATS)


def lines(
    identity: Mapping[str, Any],
    *,
    seconds: float,
    repeats: int = 12,
    wrong: Mapping[str, Wrong] | None = None,
    differing: Sequence[tuple[str, int, Wrong]] = (),
    multiprocessors: int = 132,
    seed: str = "",
) -> list[Line]:
    """All lines. `wrong` are first runs that differ from those of sound GPUs, by format;
    `differing` repeats that do from the first run: format, number, and where.
    """
    own = formats(identity["capability"])
    hello = {
        "device": "cuda",
        "seconds": seconds,
        "formats": list(own),
        "model": MODEL.name,
        "batch": DIGEST_BATCH,
        "sequence": MODEL.sequence,
        "steps": DIGEST_STEPS,
        "recipe": DIGEST_RECIPE,
        "library": LIBRARY,
        "cublas": "12.8.4",
        "multiprocessors": multiprocessors,
        **identity,
    }
    first = {dtype: run(dtype, (wrong or {}).get(dtype), seed) for dtype in own}
    found: list[Line] = []
    for dtype, number, where in differing:
        about = {"component": "gpu0", "check": "digest_repeat", "format": dtype, "repeat": number}
        place = {"step": where.step, "part": where.part, "tensor": where.tensor}
        told = {**about, **place, "kind": "bit", "bit": where.bit, "digests": 2000}
        found.append({"miscompare": told})
    for dtype in own:
        name = DIGEST_LOG.format(dtype)
        found.append({"log": name, "component": "gpu0", "text": first[dtype].text()})
    rows = [[dtype, DIGEST_STEPS, repeats, *first[dtype].summaries, 0.5] for dtype in own]
    found.append({"table": DIGEST_TABLE, "columns": list(DIGEST_COLUMNS), "rows": rows})
    count = {"reading": "digest_repeats_differ", "unit": "count", "component": "gpu0"}
    found.append({**count, "value": len(differing)})
    return [
        {"rigproof_load": 1, "load": "train_digest", "parameters": hello},
        *found,
        {"end": True, "readings": len(found) - len(differing)},
    ]


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
