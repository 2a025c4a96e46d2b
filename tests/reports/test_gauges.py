from __future__ import annotations

import msgspec
import terminal_run
from cases import each

from acceptance.core.evidence import Sample
from acceptance.core.message import Message
from acceptance.core.parts import MEMORY, Gpu, Part, parse
from acceptance.core.record import Body, CheckEnded, CheckStarted, Entry, Event, Measured, Note
from acceptance.loads.protocol import LapFormat
from acceptance.reports.gauges import RATE_STALE_S, STALE_S, Gauge, Gauges


def gauges(*bodies: Body, gpus: int = 2) -> Gauges:
    found = Gauges(
        [Gpu(n) for n in range(gpus)], {parse(terminal_run.address(n)): Gpu(n) for n in range(gpus)}
    )
    for body in bodies:
        found.entry(terminal_run.entry(body))
    return found


def first(*bodies: Body) -> Gauge:
    return gauges(*bodies).gauges()[0]


def at(body: Body, seconds: float) -> Entry:
    return msgspec.structs.replace(terminal_run.entry(body), boot_s=seconds)


def test_a_sample_is_what_a_gpu_shows_now() -> None:
    assert first() == Gauge("gpu0", None, None, None, (), False, 0, None, None, False)
    assert gauges().machine == {}, "what was not read is absent"
    samples = (terminal_run.sample(n, board=True) for n in (0, 1))
    found = gauges(*samples, terminal_run.MACHINE)
    cool, hot = found.gauges()
    assert (cool.power_w, cool.temperature_c, cool.clock_mhz, cool.held) == (
        690.0,
        64.0,
        1830.0,
        ("reason_sw_power_cap",),
    )
    assert (hot.temperature_c, hot.held, hot.idle) == (86.0, ("reason_sw_thermal",), False)
    assert found.machine["load_1m"] == 32.12
    assert first(Sample({"reason_gpu_idle": 1.0}, component=Gpu(0))).idle
    assert first(Sample({"power_w": 1.0}, component=Gpu(9))).power_w is None
    names = (parse(terminal_run.address(1)), Gpu(0), Part("disk", "sda"), None)
    assert [found.name(one) for one in names] == [Gpu(1), *names[1:]]


@each("silent_s, power_w", [(STALE_S, 690.0), (1.0 + STALE_S, None)])
def test_a_gpu_that_is_silent_shows_nothing_any_more(
    silent_s: float, power_w: float | None
) -> None:
    found = gauges()
    found.entry(at(terminal_run.sample(0, board=True), 100.0))
    found.entry(at(terminal_run.MACHINE, 100.0 + silent_s))
    assert found.gauges()[0].power_w == power_w


def test_what_links_move_stays_until_it_is_old() -> None:
    found = gauges(gpus=1)
    found.entry(at(Sample({"power_w": 1.0, "pcie_tx_gb_s": 12.5}, component=Gpu(0)), 100.0))
    found.entry(at(Sample({"power_w": 2.0}, component=Gpu(0)), 100.0 + RATE_STALE_S))
    assert found.gauges()[0].rates == {"pcie_tx_gb_s": 12.5}
    found.entry(at(Sample({"power_w": 3.0}, component=Gpu(0)), 101.0 + RATE_STALE_S))
    assert found.gauges()[0].rates == {}


XID = terminal_run.XID
NVML = msgspec.structs.replace(XID, source="nvml", boot_s=100.0)
KERNEL = msgspec.structs.replace(XID, boot_s=101.0)


@each(
    "events, errors, elsewhere",
    [
        *(
            (
                [
                    msgspec.structs.replace(XID, severity=severity, component=where)
                    for where in (XID.component, None)
                ],
                errors,
                errors,
            )
            for severity, errors in (("fatal", 1), ("error", 1), ("warning", 0), ("info", 0))
        ),
        ([NVML, KERNEL], 1, 0),
        ([NVML, KERNEL, msgspec.structs.replace(XID, code=13)], 2, 0),
        ([msgspec.structs.replace(XID, text=f"{n}") for n in range(1_000)], 1_000, 0),
    ],
    told=[
        *("fatal", "error", "warning", "info", "what two tell of is one", "another code"),
        "a storm",
    ],
)
def test_errors_are_what_is_harmful(events: list[Event], errors: int, elsewhere: int) -> None:
    found = gauges(*events)
    assert (found.gauges()[1].errors, found.elsewhere) == (errors, elsewhere)
    lost = msgspec.structs.replace(
        XID, kind="gpu-lost", code="nvml", source="nvml", component=parse(terminal_run.address(0))
    )
    gone = first(terminal_run.sample(0, board=True), lost)
    assert (gone.lost, gone.power_w, gone.errors) == (True, None, 1)


def test_the_latest_figure_is_that_of_the_running_check() -> None:
    bodies: list[Body] = [
        Measured("a", "copy_h2d", Gpu(0), "GB/s", 12.0),
        Measured("a", "copy_d2h", Gpu(0), "GB/s", 13.5),
        Measured("a", "errors", Gpu(0), "count", 1.0),
        Measured("a", "copy_h2d_ratio", Gpu(0), "ratio", 1.0),
        Measured("a", "copy_own", Gpu(0), "GB/s", None),
        Measured("a", "triad", MEMORY, "GB/s", 1.0),
    ]
    assert first(*bodies).figure == "13.5 GB/s copy_d2h"
    assert first(*bodies, CheckStarted("b")).figure is None


def test_a_burn_tells_how_far_it_is_and_its_rate() -> None:
    formats = (LapFormat("f64", 61.2, 4, 0), LapFormat("bf16", 1100.0, 9, 0))
    note = terminal_run.progress({"gpu0": 3, "gpu1": 2, "gpu7": 1}, lambda _: formats)
    one, two = gauges(note).gauges()
    assert (one.lap, one.figure) == ((3, 60), "1100 TFLOP/s bf16")
    assert (two.lap, two.figure) == ((2, 60), "1100 TFLOP/s bf16")
    assert first(msgspec.structs.replace(note, progress=False)).lap is None
    assert first(note, CheckStarted("b")).lap is None


@each(
    "text",
    [
        "gpu0: lap 3 of 60: 14 s of burn done; f64 at 61.2 TFLOP/s 4 right 0 wrong",
        Message("note", {"text": "gpu0"}),
        Message("note", {"text": (Message("burn_lap", {"gpu": "gpu0", "lap": 3}),)}),
        Message("no_such_code"),
    ],
)
def test_other_notes_are_no_laps(text: str | Message) -> None:
    """Those of an older rigproof, too, which has no live gauges any more."""
    assert first(Note(text, progress=True)).lap is None


def test_a_check_beside_it_takes_no_figure_away() -> None:
    found = gauges()

    def say(body: Body, session: str) -> None:
        entry = msgspec.structs.replace(
            terminal_run.entry(body), segment=f"journal-{session}.jsonl"
        )
        found.entry(entry)

    say(CheckStarted("g"), "gpu-load")
    say(Measured("g", "gemm_bf16", Gpu(0), "TFLOP/s", 664.0), "gpu-load")
    say(CheckStarted("h"), "host-load")
    assert found.gauges()[0].figure == "664 TFLOP/s gemm_bf16"
    say(CheckEnded("g", "pass", "", 1.0), "gpu-load")
    say(CheckStarted("l"), "load")
    assert found.gauges()[0].figure is None
