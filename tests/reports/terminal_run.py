"""A run played at a terminal: the records that the view of a real one is shown, made for two or
eight GPUs, then its closing block.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping

import journals
import machine_facts
from msgspec.structs import replace
from runs import judged

from acceptance import __main__ as rigproof
from acceptance.core.evidence import Observed, Sample
from acceptance.core.limit import Limit
from acceptance.core.message import Message
from acceptance.core.parts import SYSTEM, Gpu, parse
from acceptance.core.plan import SESSIONS, Plan
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Note,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.loads.protocol import Lap, LapFormat
from acceptance.observe.gpu_sample import REASONS
from acceptance.reports.terminal import Terminal
from acceptance.session.load_events import lap_message

FLOOR = Limit("GB/s", "half of what the link can do", low=20.0)
NEXT = signal.SIGUSR1
SOUND = Limit("count", "no wrong result is sound", high=0.0)


def address(gpu: int) -> str:
    return f"0000:{gpu + 1:02x}:00.0"


def plan(gpus: int) -> Plan:
    """A check before, two under load, one after."""
    names = [Gpu(number) for number in range(gpus)]
    checks = (
        replace(
            journals.check(
                "gpu.present", journals.due("gpu_count", parse("machine"), "count", None)
            ),
            session="host-before",
        ),
        journals.check(
            "link.copy",
            *(journals.due("copy_h2d", name, "GB/s", FLOOR) for name in names),
            seconds=40.0,
        ),
        journals.check(
            "together.burn",
            *(journals.due("burn_bf16_miscompares", name, "count", SOUND) for name in names),
            seconds=300.0,
        ),
        replace(
            journals.check(
                "kernel_log.during_run", journals.due("kernel_events", SYSTEM, "count", None)
            ),
            session="host-after",
        ),
    )
    return replace(journals.plan(*checks), gpus=tuple(names))


def sample(gpu: int, *, board: bool) -> Sample:
    """A GPU in the middle of a burn. gpu1 is too hot, and gpu3."""
    hot = gpu % 2 == 1 and gpu < 4
    values = {
        "temperature_c": 86.0 if hot else 64.0 + gpu,
        "power_w": 690.0 + gpu if board else 448.0,
        "sm_clock_mhz": (1410.0 if board else 1800.0) if hot else (1830.0 if board else 2520.0),
        "utilisation": 1.0,
        **dict.fromkeys(REASONS, 0.0),
        "reason_sw_thermal": float(hot),
        "reason_sw_power_cap": float(not hot),
    }
    return Sample(values, component=Gpu(gpu))


MACHINE = Sample(
    {
        "cpu_temperature_c": 71.0,
        "cpu_mhz_mean": 4950.0,
        "load_1m": 32.12,
        "memory_available_gib": 17.6,
    }
)
XID = Event(
    "xid",
    "error",
    "NVRM: Xid (PCI:0000:02:00): 94",
    "A contained memory error.",
    "Look.",
    94,
    parse(address(1)),
)


def progress(laps: Mapping[str, int], formats: Callable[[int], tuple[LapFormat, ...]]) -> Note:
    """The laps of the GPUs' burns, and their formats by the GPU's number."""
    told = (
        lap_message(gpu, Lap(lap, 60, 14.0, formats(number)))
        for number, (gpu, lap) in enumerate(laps.items())
    )
    return Note(Message("note", {"text": tuple(told)}), progress=True)


def live(gpus: int) -> Iterator[Body]:
    """What the view is shown until the middle of the burn."""
    yield CheckStarted("gpu.present")
    yield Measured("gpu.present", "gpu_count", parse("machine"), "count", float(gpus))
    yield CheckEnded("gpu.present", "pass", "", 0.1)
    yield CheckStarted("link.copy")
    for number in range(gpus):
        yield Measured("link.copy", "copy_h2d", Gpu(number), "GB/s", 12.0 + number / 10)
    yield CheckEnded(
        "link.copy",
        "fail",
        "copy_h2d on gpu0: measured 12 GB/s, limit >= 20 GB/s; basis: half",
        39.0,
        ("outside_limit",),
    )
    yield CheckStarted("together.burn")
    yield MACHINE
    for number in range(gpus):
        yield sample(number, board=gpus > 2)
    yield progress(
        {f"gpu{n}": 3 for n in range(gpus)},
        lambda n: (LapFormat("f64", 61.0, 48, 0), LapFormat("bf16", 640.0 + n, 9, 0)),
    )
    yield XID


def records(gpus: int) -> list[Body]:
    """The whole journal."""
    made = plan(gpus)
    ids = tuple(check.id for check in made.checks)
    return [
        RunStarted("run-1", made, {"host": "box"}, "machine-1"),
        *(SessionStarted(name, made.digest, ids) for name in SESSIONS if made.share(name)),
        *(body for body in live(gpus) if not isinstance(body, Sample)),
        *(
            Measured("together.burn", "burn_bf16_miscompares", Gpu(number), "count", 0.0)
            for number in range(gpus)
        ),
        CheckEnded("together.burn", "pass", "", 300.0),
        CheckStarted("kernel_log.during_run"),
        Measured("kernel_log.during_run", "kernel_events", SYSTEM, "count", 1.0),
        CheckEnded("kernel_log.during_run", "pass", "", 0.1),
        *(SessionEnded(name, True, "exited 0", 1.0) for name in SESSIONS if made.share(name)),
        RunEnded(True, "every session of the plan was run"),
    ]


def entry(body: Body) -> Entry:
    return journals.entries([body])[0]


def play(gpus: int, hold_s: float = 0.0) -> None:
    """The run at standard output: until the middle of the burn, then the burn, for `hold_s` at most
    or until NEXT comes, then the closing
    block.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [NEXT])
    rigproof._streams()
    terminal = Terminal.on_stdout()
    names = {parse(address(number)): Gpu(number) for number in range(gpus)}
    try:
        terminal.start(plan(gpus), names, frames=10.0)  # what the tests wait for is drawn sooner
        for body in live(gpus):
            terminal.entry(entry(body))
        signal.sigtimedwait([NEXT], hold_s)
        terminal.entry(entry(CheckEnded("together.burn", "pass", "", 300.0)))
    except KeyboardInterrupt:
        terminal.say("stopped")
        return
    finally:
        terminal.stop()
    seen = Observed({"pci": [machine_facts.function(number) for number in range(gpus)]})
    run = judged(journals.entries([*records(gpus)[:1], seen, *records(gpus)[1:]]))
    terminal.verdict(run, ["/runs/run-1/report.html"])
