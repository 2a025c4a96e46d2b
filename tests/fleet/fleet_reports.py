"""Reports of made-up fleets of any size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from acceptance.core.parts import Gpu
from acceptance.fleet import night, report
from acceptance.fleet.common_cause import Causes
from acceptance.fleet.comparison import Comparison
from acceptance.fleet.night import Accepted, NightTable, Row
from acceptance.fleet.outliers import Flag
from acceptance.fleet.report import FleetReport
from acceptance.fleet.verdicts import Series

MODEL = "NVIDIA H200"
CHECK = "gemm.rate[bf16]"
SOLD = (Accepted("run-0", "alice@box", "2026-11-24 08:00", "sold with one GPU less"),)


def many(count: int, gpus: int = 2) -> FleetReport:
    """A fleet of which every tenth machine is FAIL, and one is an outlier."""
    now = datetime.now(UTC)
    made = tuple(
        Row(
            f"gpu-{number:05d}",
            "FAIL" if number % 10 == 0 else "PASS",
            None,
            f"run-{number}",
            now - timedelta(hours=3),
            groups=(("gpu_model", MODEL),),
            checks=150,
            not_passed=((f"gemm.rate[{number % 70}]", "fail"),) if number % 10 == 0 else (),
            parts=tuple(f"GPU-{number}-{gpu}" for gpu in range(gpus)),
            accepted=SOLD if number == 1 else (),
        )
        for number in range(count)
    )
    series = tuple(
        Series(CHECK, name, Gpu(gpu), "TFLOP/s") for name in report.KEY_RATES for gpu in range(gpus)
    )
    values = np.random.default_rng(1).normal(700, 7, (count, len(series)))
    flag = Flag("gpu-00001", series[0], 560.0, 700.0, 0.2, 0.05, count)
    compared = Comparison(("2026-11-25",), count, count, count, (flag,), (), (), Causes((), ()), ())
    order = sorted(made, key=night.order)
    last = {row.machine: now - timedelta(hours=3) for row in made}
    reasons = {row.machine: "x" * 150 for row in made if row.verdict != "PASS"}
    return FleetReport(
        now,
        None,
        tuple(order),
        (),
        reasons,
        (),
        last,
        NightTable(made, series, values),
        ("2026-11-24", NightTable(made, series, values)),
        compared,
    )
