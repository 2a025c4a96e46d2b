"""What the digests of a training run print for a GPU: digests made up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import load_texts

from acceptance.loads.contract import OWN
from acceptance.loads.miscompare import REPEATS_DIFFER, DifferingRun, DigestFormat, DigestPart
from acceptance.loads.train import digest_contract, digest_log
from acceptance.loads.train.digest_contract import (
    BATCH,
    COLUMNS,
    LOG,
    RECIPE,
    STEPS,
    TABLE,
    Ask,
)
from acceptance.loads.train.digest_log import Row, RunDigests, Stamp
from acceptance.loads.train.shapes import MODELS

MODEL = MODELS["digest"]
TENSORS = digest_log.gpt_tensors(MODEL.layers)
LIBRARY = "torch 2.10.0+cu128, CUDA 12.8"


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


@cache
def run(dtype: str, wrong: Wrong | None = None, seed: str = "") -> RunDigests:
    """A run of this format; equal arguments have equal bits."""
    rows, differs = [], False
    for step, part, count in digest_log.due_rows(STEPS, len(TENSORS)):
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


def printed(
    ask: Ask,
    about: Mapping[str, Any],
    *,
    repeats: int = 12,
    wrong: Mapping[str, Wrong] = {},
    differing: Sequence[tuple[DigestFormat, int, Wrong]] = (),
    multiprocessors: int = 132,
    seed: str = "",
) -> str:
    """What the load says. `wrong` are first runs that differ from those of sound GPUs, by format;
    `differing` repeats that do from the first run: format, number, and where.
    """
    own = digest_contract.formats(about["capability"])
    hello = {
        "formats": list(own),
        "model": MODEL.name,
        "batch": BATCH,
        "sequence": MODEL.sequence,
        "steps": STEPS,
        "recipe": RECIPE,
        "library": LIBRARY,
        "cublas": "12.8.4",
        "multiprocessors": multiprocessors,
        **about,
    }
    first = {dtype: run(dtype, wrong.get(dtype), seed) for dtype in own}
    rows = [(dtype, STEPS, repeats, *first[dtype].summaries, 0.5) for dtype in own]
    return load_texts.printed(
        ask,
        hello,
        values={REPEATS_DIFFER: float(len(differing))},
        wrong=[_differing(*one) for one in differing],
        tables={TABLE: (COLUMNS, rows)},
        logs={(LOG.format(dtype), OWN): one.text() for dtype, one in first.items()},
    )


def _differing(dtype: DigestFormat, repeat: int, where: Wrong) -> DifferingRun:
    return DifferingRun(
        component=OWN,
        check="digest_repeat",
        format=dtype,
        repeat=repeat,
        step=where.step,
        part=where.part,
        tensor=where.tensor,
        kind="bit",
        bit=where.bit,
        digests=2000,
    )
