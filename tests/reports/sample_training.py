"""What a sample run tells of training: about the figures that builders published of two RTX 3090
Ti. None was measured by us.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acceptance.core.evidence import Table
from acceptance.core.parts import GPUS, Component
from acceptance.core.plan import Due, Plan, PlannedCheck
from acceptance.loads.train import digest_contract, parallel_contract
from acceptance.loads.train.layer_contract import LAYER_COLUMNS, LAYER_TABLE
from acceptance.loads.train.step_contract import STEP_COLUMNS, STEP_TABLE
from acceptance.reports.page.training import PUBLISHED

PRODUCT = 74.0
LAYERS = {
    "BERT-large layer": (512, (39.0, 40.5, 43.8, 44.6), (40.2, 44.3, 48.0, 50.0)),
    "GPT-2 medium block": (1024, (26.9, 29.2, 30.0, 30.9), (29.4, 31.3, 32.2, 33.3)),
    "T5-large encoder layer": (512, (24.8, 28.9, 31.3, 33.6), (30.3, 34.3, 36.7, 38.8)),
}
MEASURED = {
    "train.layers": {
        "layer_matmul": (PRODUCT, "TFLOP/s"),
        "layer_bert": (50.1, "TFLOP/s"),
        "layer_bert_forward": (47.0, "TFLOP/s"),
        "layer_bert_share": (50.1 / PRODUCT, "ratio"),
        "layer_gpt2": (33.2, "TFLOP/s"),
        "layer_dense": (71.0, "TFLOP/s"),
    },
    "train.step": {
        "step_matmul": (PRODUCT, "TFLOP/s"),
        "step_gpt2": (42.2, "TFLOP/s"),
        "step_gpt2_share": (42.2 / PRODUCT, "ratio"),
    },
    "train.digest": {"digest_repeats_differ": (0.0, "count")},
    "train.parallel": {
        "parallel_ddp_efficiency": (0.9, "ratio"),
        "parallel_ddp_efficiency_accumulated": (1.04, "ratio"),
        "parallel_ddp_efficiency_p2p_off": (0.63, "ratio"),
    },
}
EFFICIENCIES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("default", "ddp"): (0.90, 1.04),
    ("default", "zero2"): (0.84, 0.97),
    ("default", "zero3"): (0.78, 0.95),
    ("default", "tp"): (0.87, 0.9),
    ("p2p_off", "ddp"): (0.63, 0.93),
    ("p2p_off", "zero2"): (0.51, 0.86),
    ("p2p_off", "zero3"): (0.42, 0.8),
    ("p2p_off", "tp"): (0.31, 0.32),
}


def with_checks(
    checks: Sequence[PlannedCheck], gpus: Sequence[Component]
) -> tuple[PlannedCheck, ...]:
    """The plan's checks, with those of training that it does not have."""
    there = {one.id for one in checks}
    more = (
        PlannedCheck(
            check,
            f"what {check} measures",
            "load",
            12.0,
            tuple(
                Due(name, where, unit, (), "sample", "no figure of this card was published")
                for name, (_, unit) in told.items()
                for where in ((GPUS,) if check == "train.parallel" else gpus)
            ),
        )
        for check, told in MEASURED.items()
        if check not in there
    )
    return (*checks, *more)


def values(plan: Plan) -> dict[tuple[str, str, Component], float]:
    """What those checks measure; cards differ by half a per cent."""
    return {
        (check.id, due.measurement, due.component): value
        * (1.005 if str(due.component) == "gpu1" and due.unit != "ratio" else 1.0)
        for check in plan.checks
        for due in check.due
        for value, _ in [MEASURED.get(check.id, {}).get(due.measurement, (0.0, ""))]
        if due.measurement in MEASURED.get(check.id, {})
    }


def tables(check: str, gpus: Sequence[Component]) -> Iterator[Table]:
    """The tables of a check of training."""
    for place, gpu in enumerate(gpus):
        own = 1.0 + 0.005 * place
        if check == "train.layers":
            yield Table(check, gpu, LAYER_TABLE, (*LAYER_COLUMNS, PUBLISHED), tuple(_layers(own)))
        if check == "train.step":
            yield Table(check, gpu, STEP_TABLE, (*STEP_COLUMNS, PUBLISHED), tuple(_steps(own)))
        if check == "train.digest":
            told = ("3f9c0a7de4416b52", "81d2c6f0a97b3e14", "c07755e1b8d94a2f")
            rows = (("bfloat16", 50.0, 3.0, *told, 5.8), ("tf32", 20.0, 3.0, *told[::-1], 9.9))
            yield Table(check, gpu, digest_contract.TABLE, digest_contract.COLUMNS, rows)
    if check == "train.parallel":
        yield Table(
            check, GPUS, parallel_contract.TABLE, parallel_contract.COLUMNS, tuple(_parallel())
        )


def _layers(own: float) -> Iterator[tuple[float | str, ...]]:
    for name, (sequence, forward, both) in LAYERS.items():
        for power, (one, two) in enumerate(zip(forward, both, strict=True), start=1):
            rates = (round(one * own, 2), round(two * own, 2), round(two / PRODUCT, 3))
            for dtype in ("bfloat16", "float16"):
                published = two if dtype == "float16" else ""
                yield (name, dtype, float(sequence), 2.0**power, *rates, published)


def _steps(own: float) -> Iterator[tuple[float | str, ...]]:
    for name, option, batch, times, samples, rate, gib, published in (
        ("BERT-large", "TF32", 8, 1, 15.6, 17.2, 20.3, 17.22),
        ("BERT-large", "bfloat16, fused", 11, 1, 25.3, 27.9, 21.2, 27.9),
        ("BERT-large", "bfloat16, fused", 11, 4, 27.5, 30.3, 21.2, 30.27),
        ("BERT-large", "bfloat16, fused, checkpointing", 66, 4, 25.1, 36.8, 19.5, 36.77),
        ("GPT-2 medium", "bfloat16, fused", 5, 1, 17.0, 42.2, 19.9, 42.16),
    ):
        sequence = 512 if name == "BERT-large" else 1024
        step = 1000.0 * batch * times / samples
        rates = (samples * own, samples * sequence / 1000 * own, rate * own, rate / 160)
        spread = (round(step, 1), round(step * 0.99, 1), round(step * 1.02, 1))
        rounded = tuple(round(one, 3) for one in rates)
        yield (name, option, float(batch), float(times), *rounded, gib, *spread, published)


def _parallel() -> Iterator[tuple[float | str, ...]]:
    for (arm, way), found in EFFICIENCIES.items():
        for times, one in zip((1.0, 4.0), found, strict=True):
            rate = round(2 * 42.2 * one, 2)
            lost = round(max(0.0, 0.94 - 0.88 * one), 2)
            parts = (round(0.94 - lost, 2), lost, 0.06)
            tokens = round(34.8 * one, 2)
            yield (arm, way, times, 10.0, tokens, rate, one, 21.4, round(340 * times / one), *parts)
