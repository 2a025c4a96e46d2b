from __future__ import annotations

import journals
from cases import each

from acceptance.core.evidence import Sample
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.parts import CPU, Component, Gpu
from acceptance.core.plan import Due, Plan
from acceptance.core.record import Body, CheckEnded, CheckStarted, Measured
from acceptance.reports import margins
from acceptance.reports.margins import Margins
from acceptance.reports.text import ASCII, UNICODE

BASIS = "for the test"
FLOOR = Limit("TFLOP/s", BASIS, low=626.0)
SLOW = Limit("us", BASIS, high=10.0, warn_high=9.0)
SOUND = Limit("count", BASIS, high=0.0)
COOL = Limit("degC", BASIS, low=1.0, warn_low=6.0)
HOT = Limit("degC", BASIS, high=100.0)


def due(name: str, limit: Limit | None, unit: str, component: Component | None = None) -> Due:
    return journals.due(name, component or Gpu(0), unit, limit)


def told(limit: Limit | None, value: float, name: str = "gemm_bf16", unit: str = "") -> str:
    unit = limit.unit if limit else unit
    found = margins.margin(due(name, limit, unit), value, alone=True)
    return "" if found is None else margins.line(found, ENGLISH, UNICODE).plain


@each(
    "limit, value, text",
    [
        (FLOOR, 664.0, "gemm_bf16 664 TFLOP/s, 6 % above its limit"),
        (FLOOR, 627.0, "gemm_bf16 627 TFLOP/s, 0.2 % above its limit"),
        (FLOOR, 600.0, "FAIL gemm_bf16 600 TFLOP/s, 4 % below its limit"),
        (SLOW, 8.0, "gemm_bf16 8 us, 20 % below its limit"),
        (SLOW, 12.0, "FAIL gemm_bf16 12 us, 20 % above its limit"),
        (COOL, 14.0, "gemm_bf16 14 \u00b0C, 13 \u00b0C above its limit"),
        (COOL, -2.0, "FAIL gemm_bf16 -2 \u00b0C, 3 \u00b0C below its limit"),
        (SOUND, 3.0, "FAIL gemm_bf16 3, its limit is 0"),
        (Limit("count", BASIS, low=8.0), 7.0, "FAIL gemm_bf16 7, its limit is 8"),
        (Limit("W", BASIS, high=0.0), 7.0, "FAIL gemm_bf16 7 W, its limit is 0"),
        (Limit("W", BASIS, low=100.0, high=200.0), 190.0, "gemm_bf16 190 W, 5 % below its limit"),
        (Limit("degC", BASIS, low=0.0), 7.0, "gemm_bf16 7 \u00b0C, 7 \u00b0C above its limit"),
        # what has no margin
        (None, 5.0, ""),
        (SOUND, 0.0, ""),
        (Limit("count", BASIS, low=8.0), 9.0, ""),
        (Limit("GiB", BASIS, low=130.0), 139.8, ""),
        (Limit("GT/s", BASIS, low=16.0), 16.0, ""),
        (Limit("us", BASIS, low=0.0), 3.0, ""),
    ],
)
def test_in_words(limit: Limit | None, value: float, text: str) -> None:
    assert told(limit, value) == text


def test_a_warning_and_a_failure_are_coloured() -> None:
    styles = [
        str(margins.line(found, ENGLISH, ASCII).style)
        for value in (8.0, 9.5, 12.0)
        if (found := margins.margin(due("latency", SLOW, "us"), value, alone=True))
    ]
    assert styles == ["", "yellow", "bold red"]


def plan() -> Plan:
    gpus = (Gpu(0), Gpu(1))
    return journals.plan(
        journals.check("compute.a", *(due("gemm_bf16", FLOOR, "TFLOP/s", gpu) for gpu in gpus)),
        *(
            journals.check(f"link.{name}", due(f"latency_{name}", SLOW, "us", CPU))
            for name in "bcd"
        ),
        journals.check(
            "watch.heat",
            *(due("gpu_temperature_margin", COOL, "degC", gpu) for gpu in gpus),
            *(due("gpu_power", None, "W", gpu) for gpu in gpus),
        ),
        journals.check("thermal.cpu", due("cpu_temperature", HOT, "degC", CPU)),
    )


def fed(*bodies: Body) -> list[str]:
    shown = Margins(plan())
    for body in bodies:
        shown.entry(journals.entries([body])[0])
    return [margins.line(one, ENGLISH, ASCII).plain for one in shown.worst()]


def gemm(gpu: int, value: float | None, unit: str = "TFLOP/s", name: str = "gemm_bf16") -> Measured:
    return Measured("compute.a", name, Gpu(gpu), unit, value)


def latency(name: str, value: float) -> Measured:
    return Measured(f"link.{name}", f"latency_{name}", CPU, "us", value)


LAST = (("d", 7, 30), ("c", 6, 40), ("b", 5, 50))


def margin(gpu: int, value: float, span_s: float = 0.0, *bounds: float) -> Sample:
    low, high = ({"temperature_margin_c": one} for one in bounds or (value, value))
    values = {"temperature_margin_c": value, "power_w": 600.0}
    return Sample(values, span_s, low if span_s else None, high if span_s else None, Gpu(gpu))


@each(
    "bodies, lines",
    [
        (
            [gemm(0, 700.0), gemm(1, 664.0), gemm(0, 690.0), latency("b", 9.8)],
            [
                "latency_b 9.8 us, 2 % below its limit",
                "gemm_bf16 gpu1 664 TFLOP/s, 6 % above its limit",
            ],
        ),
        ([gemm(0, None), gemm(0, 9.0, "GB/s"), gemm(0, 9.0, name="gemm_f8")], []),
        ([gemm(7, 1.0), Measured("watch.heat", "gpu_power", Gpu(0), "W", 700.0)], []),
        ([margin(0, 1.0)], []),
        ([Sample({"temperature_c": 1.0}, component=Gpu(0))], []),
        ([CheckEnded("compute.a", "pass", "", 1.0)], []),
        (
            [gemm(0, 700.0), latency("b", 5.0), latency("c", 6.0), latency("d", 7.0)],
            [f"latency_{name} {us} us, {p} % below its limit" for name, us, p in LAST],
        ),
        (
            [gemm(0, 630.0), CheckStarted("compute.a"), gemm(1, 700.0)],
            ["gemm_bf16 gpu1 700 TFLOP/s, 12 % above its limit"],
        ),
        (
            [
                margin(0, 20.0),
                margin(1, 12.0),
                margin(0, 15.0, 10.0, 9.0, 18.0),
                margin(1, -128.0),  # no sensor
                Sample({"cpu_temperature_c": 71.0}),
                Sample({"cpu_temperature_c": 60.0}),
            ],
            [
                "gpu_temperature_margin gpu0 9 C, 8 C above its limit",
                "cpu_temperature 71 C, 29 C below its limit",
            ],
        ),
    ],
    told=[
        "of several GPUs the worst, and the nearest first",
        *("what the plan does not owe so", "nor of that part", "at its limit", "of no limit"),
        *("no value", "only the last checks", "a repeat begins anew", "the worst of its samples"),
    ],
)
def test_the_nearest_to_their_limits(bodies: list[Body], lines: list[str]) -> None:
    assert fed(*bodies) == lines
