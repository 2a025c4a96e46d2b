"""gpu-burn: what its text is worth (written to the text of the versions from 2012 to 2026, on Linux and Windows).

It multiplies the same two 8192 x 8192 matrices until a ring of results is full, then holds each against the first. How it misleads: it
exits 0 when a GPU is FAULTY; it says OK of a GPU that never came to compare; error counts start again at every 10 % summary, run over
the end of an int, and are garbage once a process died; a NaN is no error to it; a wrong result that is always the same is none either.

Readings, by `gpu0`, `gpu1`: its own order, which is CUDA's. Each holds only the GPUs of which the text tells it.

- `gpu_burn_rate`, TFLOP/s: median of the rates of the intervals between compares, those of 0 left out.
- `gpu_burn_errors`, count: wrong elements, the most that one line showed for a GPU that lived (the count starts again every 10 %).
  Negative counts ran over 2^31 and are given as what they must at least have been.
- `gpu_burn_compares`, count: rings that were filled, compared and shown: products over the ring's length, and where the text does not
  give the length, over the greatest number that divides all products shown, so at least that many.
- `gpu_burn_temperature`, degC: the highest shown.
- `gpu_burn_died`, count: 1 for each GPU whose process died while nothing in the text speaks of hardware: a run of a machine takes that for
  trouble, and the kernel log for the judge; a text alone cannot tell, and is a *fail*.
- `gpu_burn_faulty`, count: 1 where the table says FAULTY, 0 where it says OK; its counts of errors may be 0 all the same.
"""

from __future__ import annotations

from acceptance.tools import cuda_error, gpu_burn_progress, gpu_burn_table, gpu_burn_trouble, reading
from acceptance.tools.gpu_burn_command import STOP_S as STOP_S
from acceptance.tools.gpu_burn_command import Mode as Mode
from acceptance.tools.gpu_burn_command import argv as argv
from acceptance.tools.gpu_burn_command import deadline_s as deadline_s
from acceptance.tools.gpu_burn_command import memory_mb as memory_mb
from acceptance.tools.gpu_burn_history import History
from acceptance.tools.gpu_burn_progress import TOOL as TOOL
from acceptance.tools.gpu_burn_table import Frame
from acceptance.tools.gpu_burn_trouble import Trouble
from acceptance.tools.reading import Reading, ToolOutput, UnreadableOutput

# One compare may be of warm-up work; three are the least that show a rate and a GPU that goes on.
_FEWEST_COMPARES = 3


def parse(text: str) -> ToolOutput:
    """Read gpu-burn's text. Any wrong element, FAULTY, or a process that died for no reason of set-up is a *fail*.

    *pass* needs the whole table with every GPU OK, three compares of each, errors of 0 in every progress line, and an end at 100 %.
    Raises UnreadableOutput for a text without any line of gpu-burn, and for a progress line of unknown form where
    no GPU is FAULTY.
    """
    cleaned = "\n".join(reading.tool_lines(text))
    try:
        lines, rest = gpu_burn_progress.read(cleaned)
    except UnreadableOutput:
        if faulty := gpu_burn_table.read(cleaned).faulty():
            return ToolOutput(TOOL, "fail", f"FAULTY: {_names(faulty)}")
        raise
    frame = gpu_burn_table.read(rest)
    trouble = gpu_burn_trouble.find(rest)
    if not (lines or frame.ours or trouble.hardware or trouble.setup or trouble.abort):
        raise UnreadableOutput(TOOL, reading.first_line(text), "the text holds no line of gpu-burn")
    history = History(lines, frame)
    readings = _readings(history, frame, trouble)
    fault = _fault(history, frame, trouble)
    if fault is not None:
        return ToolOutput(TOOL, "fail", fault, readings)
    said = cuda_error.find(rest.split("\n"))
    if said is not None and said.hardware:
        return ToolOutput(TOOL, "fail", said.reason, readings)
    why = _hindered(trouble) or (said and said.reason) or _worthless(history, frame, trouble)
    if why is not None:
        return ToolOutput(TOOL, "error", why, readings)
    fewest = min(history.compares().values())
    tested = _names([gpu for gpu, _ in frame.verdicts])
    reason = f"OK: {tested}, compared {fewest} times or more, no result wrong"
    return ToolOutput(TOOL, "pass", reason, readings, gpus=frame.listed)


def mismatch(text: str, *, mode: Mode, seconds: int, memory_mb: int) -> str | None:
    """How a whole text differs from what a run of ours with these arguments prints, or None.

    Only for runs of our own: foreign and older versions leave some of these lines out.
    """
    lines, rest = gpu_burn_progress.read("\n".join(reading.tool_lines(text)))
    frame = gpu_burn_table.read(rest)
    if frame.seconds != (seconds,):
        burned = f"{frame.seconds[0]} s" if frame.seconds else "no time"
        return f"gpu-burn says that it burned for {burned}, and was to burn for {seconds} s"
    if not frame.tested or [one.gpu for one in _sorted(frame)] != list(range(frame.tested[0])):
        return "gpu-burn does not say of each of its devices, once, how it was initialised"
    for device in _sorted(frame):
        if device.mode != mode:
            return f"gpu-burn says that device {device.gpu} works in mode {device.mode}, and was to work in mode {mode}"
        if device.used_mb != memory_mb:
            return f"gpu-burn says that device {device.gpu} uses {device.used_mb} MB, and was to use {memory_mb} MB"
    return History(lines, frame).false_rate(seconds)


def memory(text: str) -> tuple[int, ...]:
    """Total memory of each device in MB of 2^20 bytes, as CUDA told gpu-burn, in CUDA's order."""
    _, rest = gpu_burn_progress.read("\n".join(reading.tool_lines(text)))
    return tuple(device.total_mb for device in _sorted(gpu_burn_table.read(rest)))


def _sorted(frame: Frame) -> list[gpu_burn_table.Device]:
    """The devices by number: their processes print as they get ready."""
    return sorted(frame.devices, key=lambda device: device.gpu)


def _readings(history: History, frame: Frame, trouble: Trouble) -> tuple[Reading, ...]:
    errors = history.errors()
    for gpu, count in trouble.wrong:
        errors[gpu] = max(errors.get(gpu, 0), count)
    faulty = set(frame.faulty())
    named = (
        ("gpu_burn_rate", "TFLOP/s", history.rates()),
        ("gpu_burn_errors", "count", errors),
        ("gpu_burn_compares", "count", history.compares()),
        ("gpu_burn_temperature", "degC", history.temperatures()),
        ("gpu_burn_died", "count", {} if trouble.hardware else dict.fromkeys(_dead(history, trouble), 1.0)),
        ("gpu_burn_faulty", "count", {gpu: float(gpu in faulty) for gpu, _ in frame.verdicts}),
    )
    return tuple(
        Reading(name, unit, {f"gpu{gpu}": float(value) for gpu, value in sorted(values.items())})
        for name, unit, values in named
        if values
    )


def _dead(history: History, trouble: Trouble) -> list[int]:
    """The GPUs whose processes died; all of them where it says that none is alive and shows no line."""
    return history.died() or (list(range(max(history.widest(), 1))) if trouble.all_dead else [])


def _names(gpus: list[int]) -> str:
    return ("GPU " if len(gpus) == 1 else "GPUs ") + ", ".join(map(str, gpus))


def _fault(history: History, frame: Frame, trouble: Trouble) -> str | None:
    """What in the text speaks against the hardware."""
    told = trouble.hardware or trouble.setup or trouble.abort
    because = f" ('{reading.quote(told)}')" if told else ""
    if faulty := frame.faulty():
        return f"FAULTY: {_names(faulty)}{because}"
    wrong = sorted({gpu for gpu, count in history.errors().items() if count} | {gpu for gpu, _ in trouble.wrong})
    if wrong:
        return f"wrong results on {_names(wrong)}, whatever the table says{because}"
    if trouble.hardware is not None:
        return f"the driver reports a hardware fault: '{reading.quote(trouble.hardware)}'"
    if trouble.setup is None and (dead := history.died()):
        return f"gpu-burn died on {_names(dead)}{because}: see the kernel log for an Xid of that time"
    if trouble.setup is None and trouble.all_dead:
        return f"gpu-burn died on every GPU{because}: see the kernel log for an Xid of that time"
    return None


def _hindered(trouble: Trouble) -> str | None:
    """Why it could not run, with the cure."""
    missing = "; nvidia-smi is missing, without which some versions crash: put it on the PATH"
    if trouble.setup is not None:
        return f"{trouble.cure}: '{reading.quote(trouble.setup)}'"
    if trouble.abort is not None:
        return f"gpu-burn could not do its work: '{reading.quote(trouble.abort)}'" + (
            missing if trouble.no_temperatures else ""
        )
    return None


def _worthless(history: History, frame: Frame, trouble: Trouble) -> str | None:
    """Why a text in which nothing was found wrong still proves nothing, or None."""
    return (
        _broken_table(history, frame, trouble)
        or frame.contradiction()
        or _broken_lines(history, frame)
        or _idle(history, frame)
    )


def _broken_table(history: History, frame: Frame, trouble: Trouble) -> str | None:
    if not frame.tested:
        if history.lines and not history.whole:
            why = "the progress lines are clipped before the error counts, and the table of results is missing"
        else:
            why = "the text ends without the table 'Tested N GPUs:': it is cut, or the run was stopped before its end"
        return why + ("; nvidia-smi is missing: put it on the PATH" if trouble.no_temperatures else "")
    if len(frame.tested) > 1:
        return "the table of results comes twice: give one run at a time"
    gpus = sorted(gpu for gpu, _ in frame.verdicts)
    if gpus != list(range(frame.tested[0])) or not gpus:
        listed = ", ".join(map(str, gpus)) or "none"
        return f"the table of results is not whole: it speaks of {frame.tested[0]} GPUs and lists {listed}"
    return None


def _broken_lines(history: History, frame: Frame) -> str | None:
    """Why the progress lines are not those of one whole run of the GPUs in the table."""
    if not history.lines:
        return "OK, but no GPU showed a single compare, which proves nothing: burn longer or with less memory (-m)"
    if not history.whole:
        return "the progress lines are clipped, so the error counts are not known: run it on a wider terminal or into a file"
    widths = sorted({len(line.columns) for line in history.whole} | {history.widest()})
    if widths != [frame.tested[0]]:
        return f"the progress lines show {' and '.join(map(str, widths))} GPUs, the table {frame.tested[0]}"
    if history.falls():
        return "the progress falls: lines are changed or of several runs, give one run at a time"
    return None


def _idle(history: History, frame: Frame) -> str | None:
    """Why the GPUs did not do enough, or not to the end."""
    compares = history.compares()
    for gpu, ring in sorted(history.rings().items()):
        if ring < 2:
            return f"the ring of GPU {gpu} holds {ring} result, so nothing is compared: allow more memory with -m"
    if broken := history.off_ring():
        return f"the products of {_names(broken)} do not fit the ring's length: the text was changed"
    few = [f"GPU {gpu}: {count}" for gpu, count in compares.items() if count < _FEWEST_COMPARES]
    if few:
        return (
            f"OK, but after too few compares, which proves nothing ({', '.join(few)}; {_FEWEST_COMPARES} are needed):"
            " burn longer or with less memory (-m)"
        )
    if slow := history.without_rate():
        return f"{_names(slow)} worked at a rate of 0, which proves nothing"
    if stalled := history.stalled():
        return f"{_names(stalled)} stopped comparing before half of the time was over"
    last = history.lines[-1].percent
    if last < 100 and not (frame.elided or frame.windows):
        return f"the progress ends at {last:.1f} % and a whole run shows 100 %: lines are missing"
    return None
