"""Output of nccl-tests as several versions print it, made after public sources.

The forms are those of the format strings in github.com/NVIDIA/nccl-tests (src/common.cu,
src/util.cu, src/all_gather.cu) of 2.0, 2.13 and 2.18. None is a recording: hosts,
numbers and rates are invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RATES = (0.02, 2.5, 180.0)
SIZES = (8192, 1048576, 134217728)


@dataclass(frozen=True)
class Form:
    """What differs between versions and operations."""

    name: str = "all_reduce"
    new: bool = True  # 2.17 and later: version, start, long addresses
    head: tuple[str, ...] = ("size", "count", "type", "redop", "root")
    wrong: str = "#wrong"
    per_iteration: bool = False
    stamps: bool = False
    time: str = "time"


NEW = Form()
MIDDLE = Form(new=False)
OLD = Form(new=False, head=("size", "count", "type", "redop"), wrong="error")
OLD_GATHER = Form("all_gather", new=False, head=("size", "count", "type"), wrong="error")
OLD_BROADCAST = Form("broadcast", new=False, head=("size", "count", "type", "root"), wrong="error")


def settings(form: Form = NEW, *, gpus: int = 2, validation: int = 1, more: str = "") -> str:
    """The lines before the devices; three sizes are due."""
    first = (
        "# nccl-tests version 2.18.2 nccl-headers=22907 nccl-library=22907\n"
        f"# Collective test starting: {form.name}_perf\n"
        if form.new
        else ""
    )
    return (
        f"{first}# nThread 1 nGpus {gpus} minBytes {SIZES[0]} maxBytes {SIZES[-1]} "
        f"step: 128(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: {validation} "
        f"graph: 0{' unalign: 0' if form.new else ''}\n{more}#\n# Using devices\n"
    )


def device(rank: int, form: Form = NEW, host: str = "box") -> str:
    """The line of one rank."""
    address = f"[0000:{0x10 + rank:02x}:00]" if form.new else f"[0x{0x10 + rank:02x}]"
    group = "" if form.wrong == "error" else "Group  0 "
    name = "NVIDIA H100 80GB HBM3"
    return f"#  Rank {rank:2} {group}Pid {4711:6} on {host:>10} device {rank:2} {address} {name}\n"


def header(form: Form = NEW) -> str:
    """The names of the columns, and what stands around them."""
    half = [form.time, "algbw", "busbw", form.wrong]
    units = ["(us)", "(GB/s)", "(GB/s)"]
    if form.per_iteration:
        half += ["i_min", "i_max", "i_p99", "i_cv%"]
        units += ["(us)", "(us)", "(us)", "(%)"]
    stamp = ["timestamp"] if form.stamps else []
    form_of_time = ["%Y-%m-%d", "%H:%M:%S"] if form.stamps else []
    return (
        "#\n#                                          out-of-place                       in-place"
        "          \n"
        f"#  {'  '.join(f'{word:>8}' for word in [*form.head, *half, *half, *stamp])}\n"
        f"#  {'  '.join(f'{word:>8}' for word in ['(B)', '(elements)', *units, *units])}"
        f" {' '.join(form_of_time)}\n"
    )


def row(
    size: int,
    rate: float,
    form: Form = NEW,
    *,
    kind: str = "float",
    redop: str = "sum",
    root: int = -1,
    wrong: tuple[object, object] = (0, 0),
) -> str:
    """One row: the rate is the bus bandwidth, in place a hundredth more."""
    words = {"size": size, "count": size // 4, "type": kind, "redop": redop, "root": root}
    cells: list[object] = [words[name] for name in form.head]
    for place, count in enumerate(wrong):
        bus = rate + place / 100
        cells += [f"{size / max(bus, 0.1) / 1000:.2f}", f"{bus:.2f}", f"{bus:.2f}", count]
        cells += ["9.81", "12.30", "12.10", "4.2"] if form.per_iteration else []
    cells += ["2026-01-02 03:04:05"] if form.stamps else []
    return "  " + "  ".join(f"{cell!s:>10}" for cell in cells) + "\n"


def footer(form: Form = NEW, *, wrong: int = 0, average: str = "60.8417") -> str:
    """The closing lines."""
    last = f"# Collective test concluded: {form.name}_perf\n#\n" if form.new else "\n"
    return (
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"
        f"# Avg bus bandwidth    : {average} \n#\n{last}"
    )


def rows(form: Form = NEW, rates: Sequence[float] = RATES, **values: object) -> str:
    """A row of each size that is due."""
    return "".join(
        row(size, rate, form, **values)  # type: ignore[arg-type]
        for size, rate in zip(SIZES, rates, strict=True)
    )


def whole(form: Form = NEW, *, ranks: int = 2, table: str | None = None, **given: object) -> str:
    """A whole text; `table` takes the place of the rows."""
    sound = {"wrong": ("0e+00", "0e+00")} if form.wrong == "error" else {}
    return (
        settings(form, gpus=ranks, **given)  # type: ignore[arg-type]
        + "".join(device(rank, form) for rank in range(ranks))
        + header(form)
        + (rows(form, **sound) if table is None else table)
        + footer(form)
    )
