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


def test_what_was_not_read_is_absent() -> None:
    assert first() == Gauge("gpu0", None, None, None, (), False, 0, None, None, False)
    assert gauges().machine == {}


def test_a_sample_is_what_a_gpu_shows_now() -> None:
    cool, hot = gauges(
        terminal_run.sample(0, board=True), terminal_run.sample(1, board=True), terminal_run.MACHINE
    ).gauges()
    assert (cool.power_w, cool.temperature_c, cool.clock_mhz, cool.held) == (
        690.0,
        64.0,
        1830.0,
        ("reason_sw_power_cap",),
    )
    assert (hot.temperature_c, hot.held, hot.idle) == (86.0, ("reason_sw_thermal",), False)
    assert first(Sample({"reason_gpu_idle": 1.0}, component=Gpu(0))).idle
    assert gauges(terminal_run.MACHINE).machine["load_1m"] == 32.12
    assert first(Sample({"power_w": 1.0}, component=Gpu(9))).power_w is None


def test_what_links_move_stays_until_it_is_old() -> None:
    found = gauges(gpus=1)
    found.entry(at(Sample({"power_w": 1.0, "pcie_tx_gb_s": 12.5}, component=Gpu(0)), 100.0))
    found.entry(at(Sample({"power_w": 2.0}, component=Gpu(0)), 100.0 + RATE_STALE_S))
    assert found.gauges()[0].rates == {"pcie_tx_gb_s": 12.5}
    found.entry(at(Sample({"power_w": 3.0}, component=Gpu(0)), 101.0 + RATE_STALE_S))
    assert found.gauges()[0].rates == {}


def test_a_gpu_that_is_silent_shows_nothing_any_more() -> None:
    found = gauges()
    found.entry(at(terminal_run.sample(0, board=True), 100.0))
    found.entry(at(terminal_run.MACHINE, 100.0 + STALE_S))
    assert found.gauges()[0].power_w == 690.0
    found.entry(at(terminal_run.MACHINE, 101.0 + STALE_S))
    assert found.gauges()[0].power_w is None


def test_a_lost_gpu_shows_that_it_is_lost() -> None:
    lost = Event(
        "gpu-lost",
        "fatal",
        "NVML says",
        "It is lost.",
        "Look.",
        "nvml",
        parse(terminal_run.address(0)),
        source="nvml",
    )
    found = first(terminal_run.sample(0, board=True), lost)
    assert (found.lost, found.power_w, found.errors) == (True, None, 1)


def test_what_two_tell_of_is_one_error() -> None:
    nvml = msgspec.structs.replace(terminal_run.XID, source="nvml", boot_s=100.0)
    kernel = msgspec.structs.replace(terminal_run.XID, boot_s=101.0)
    assert gauges(nvml, kernel).gauges()[1].errors == 1
    assert (
        gauges(nvml, kernel, msgspec.structs.replace(terminal_run.XID, code=13)).gauges()[1].errors
        == 2
    )


@each("severity, errors", [("fatal", 1), ("error", 1), ("warning", 0), ("info", 0)])
def test_errors_are_what_is_harmful(severity: str, errors: int) -> None:
    event = msgspec.structs.replace(terminal_run.XID, severity=severity)
    found = gauges(event, msgspec.structs.replace(event, component=None))
    assert (found.gauges()[1].errors, found.elsewhere) == (errors, errors)


def test_a_storm_is_counted_and_not_kept() -> None:
    storm = [msgspec.structs.replace(terminal_run.XID, text=f"{n}") for n in range(1_000)]
    assert gauges(*storm).gauges()[1].errors == 1_000


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


def test_addresses_are_named() -> None:
    found = gauges()
    assert [
        found.name(one)
        for one in (parse(terminal_run.address(1)), Gpu(0), Part("disk", "sda"), None)
    ] == [
        Gpu(1),
        Gpu(0),
        Part("disk", "sda"),
        None,
    ]


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
