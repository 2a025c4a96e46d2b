"""Verdicts of made-up machines, written as runs write them."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from acceptance.core.verdict import VerdictWord
from acceptance.reports import verdict_json
from acceptance.reports.verdict_json import Bounds, Check, Declaration, Figure, File, Head, Row

# What the fixture `fleet` is: exit code, lines on standard output, standard error.
Call = Callable[..., tuple[int, list[str], str]]
NOW = datetime(2026, 11, 26, 7, 0, tzinfo=UTC)
LAST_NIGHT = "2026-11-26T01-00-00Z-0001"
RATE = "gemm_bf16"
LESS = Declaration({"gpus": 0}, (), ())  # than the made-up machines declare


def run_id(text: str, tail: str = "0001") -> str:
    """The id of a run that began at this time: `2026-11-26T01:00`."""
    return f"{text.replace(':', '-')}-00Z-{tail}"


def ago(hours: float, tail: str = "0001") -> tuple[str, datetime]:
    """The id of a run that began some hours ago, and when that was."""
    at = datetime.now(UTC) - timedelta(hours=hours)
    return f"{at:%Y-%m-%dT%H-%M-%SZ}-{tail}", at


def verdict(
    word: VerdictWord = "PASS",
    run: str = LAST_NIGHT,
    values: Mapping[str, float] | Sequence[float] = (700.0,),
    **more: Any,
) -> File:
    """A verdict whose values are of gpu0, gpu1, ... in one measurement, or by measurement."""
    cells = (
        [(name, "gpu0", value) for name, value in values.items()]
        if isinstance(values, Mapping)
        else [(RATE, f"gpu{n}", value) for n, value in enumerate(values)]
    )
    serial = more.pop("serial", "GPU-1")
    machine_id = more.pop("machine_id", "id-1")
    figures = tuple(
        Figure(
            name,
            part,
            "TFLOP/s",
            "class default",
            False,
            serial=f"{serial}-{part}",
            value=value,
            limit=Bounds("TFLOP/s", "made up", low=0.5),
        )
        for name, part, value in cells
    )
    row = Row("gemm.rate[bf16]", "measured 1, limit >= 600", "below_limit", {})
    unheard = Row("gemm.rate[bf16]", "no result", "no_result", {})
    found = File(
        schema=verdict_json.SCHEMA,
        verdict=word,
        exit_code={"PASS": 0, "FAIL": 1, "UNJUDGED": 3}[word],  # type: ignore[arg-type]
        run_id=run,
        violations=(row,) if word == "FAIL" else (),
        unjudged=(unheard,) if word == "UNJUDGED" else (),
        warnings=(),
        waivers=(),
        stale_waivers=(),
        notes=(),
        checks=(Check("gemm.rate[bf16]", "rates", "gpu-load", "pass", 1.0, figures),),
        provenance={"host": "box", "gpu_model": "NVIDIA H200", "machine_id": machine_id},
        scope="full",
        profile="nightly",
        inventory_declared=True,
        declared=Declaration({"gpus": 1}, (), ()),
        caveats=(),
    )
    return msgspec.structs.replace(found, **more)


def place(
    folder: Path,
    machine: str,
    file: File | None = None,
    *,
    under: str = "",
    packed: bool = False,
    written: datetime = NOW,
) -> Path:
    """Write a verdict of a machine into a fleet's folder; `under` is the folder of its run."""
    made = verdict(serial=f"GPU-{machine}", machine_id=f"id-{machine}") if file is None else file
    content = msgspec.json.encode(headed(made))
    path = folder / machine / under / ("verdict.json.gz" if packed else "verdict.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if packed else content)
    os.utime(path, (written.timestamp(), written.timestamp()))
    return path


def headed(made: File) -> File:
    """A verdict with the headline that every FAIL and UNJUDGED has: of its first row."""
    rows = made.violations or made.unjudged
    if not rows or made.headline is not msgspec.UNSET:
        return made
    first = rows[0]
    text = f"{first.check}: {first.text}"
    again = f"; next: 'rigproof accept --only {first.check}'"
    to_do = text if made.violations else f"{text}{again}"
    closing = f"{made.verdict}: {text}"
    head = Head(text, closing, first.check, to_do, len(rows) - 1, first.component)
    return msgspec.structs.replace(made, headline=head)


def hold(folder: Path, node: str, word: VerdictWord, hours: float = 1.0) -> str:
    """A run of a node some hours ago, as its job copies it into the shared folder."""
    run, at = ago(hours)
    file = verdict(word, run, serial=node, machine_id=node)
    place(folder, node, file, under=run, written=at + timedelta(minutes=1))
    return run


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a report's CSV."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
