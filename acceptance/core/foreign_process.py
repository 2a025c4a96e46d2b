"""Foreign processes: who else used the GPUs while this run tested them, and which checks prove
nothing because of it.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from acceptance.core.finding import Finding
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Entry, ForeignProcess
from acceptance.core.spans import CheckSpans

_ALL = "gpus"  # every GPU of the test, as one component
# Units of what another program on the same GPU changes: rates and times.
RATES = frozenset({"GB/s", "GFLOP/s", "TFLOP/s", "MT/s", "Mbit/s", "us", "ns", "s"})


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Somebody's time on a GPU, in seconds since the boot of that number;
    infinite where nobody saw it end.
    """

    who: str
    gpu: str
    boot: int
    since_s: float
    until_s: float


def uses(entries: Sequence[Entry]) -> tuple[GpuUse, ...]:
    """Every use of a GPU by others, in the order in which they were told; what was told of its
    end goes with its beginning.
    """
    found: dict[tuple[int, str, int | None, str | None, float], GpuUse] = {}
    for entry in entries:
        if isinstance(one := entry.body, ForeignProcess):
            name = (entry.boot, one.component, one.pid, one.command, one.since_s)
            until_s = inf if one.until_s is None else one.until_s
            found[name] = GpuUse(one.who, one.component, entry.boot, one.since_s, until_s)
    return tuple(found.values())


def is_disturbed(check: PlannedCheck, gpu: str) -> bool:
    """Whether a check proves nothing of a GPU that somebody else used meanwhile: it keeps the
    GPU at work, or takes its rate or time.
    """
    if check.session != "load":
        return False
    return check.gpu_load_s > 0.0 or any(
        due.unit in RATES and (due.component == _ALL or gpu in due.component.split("->"))
        for due in check.due
    )


def findings(check: PlannedCheck, uses: Sequence[GpuUse], spans: CheckSpans) -> list[Finding]:
    """An error for each use of a GPU that falls into the time of a check that it disturbs."""
    by_text: dict[str, Finding] = {}
    for name, boot, begin_s, end_s in spans.spans:
        for use in uses if name == check.id else ():
            meets = use.boot == boot and use.since_s <= end_s and use.until_s >= begin_s
            if meets and is_disturbed(check, use.gpu):
                text = (
                    f"{use.gpu} was also used by {use.who} {_when(use, begin_s, end_s)}: end "
                    "it, "
                    "and run again"
                )
                by_text[text] = Finding("error", check.id, text, component=use.gpu)
    return list(by_text.values())


def _when(use: GpuUse, begin_s: float, end_s: float) -> str:
    since = (
        f"from second {use.since_s - begin_s:.0f}"
        if use.since_s > begin_s
        else "from its beginning"
    )
    whole = use.until_s >= end_s
    if whole and use.since_s <= begin_s:
        return "for the whole of this check"
    return (
        f"{since} to the end of this check"
        if whole
        else f"{since} to second {use.until_s - begin_s:.0f} of this check"
    )


def use_notes(entries: Sequence[Entry], uses: Sequence[GpuUse]) -> tuple[str, ...]:
    """Every use of a GPU by others, with its seconds of the run: for the
    reader, whichever check it disturbed.
    """
    began = {entry.boot: entry.boot_s for entry in reversed(entries)}
    return tuple(dict.fromkeys(_note(use, began[use.boot]) for use in uses))


def _note(use: GpuUse, began_s: float) -> str:
    until = "its end" if use.until_s == inf else f"second {use.until_s - began_s:.0f}"
    return (
        f"{use.gpu} was also used by {use.who} from second "
        f"{max(0.0, use.since_s - began_s):.0f} "
        f"of the run to {until}"
    )
