"""What the load of layers prints on a sound GPU: figures of an H200, and where it has none, of the
recorded H100s; by the forms of `acceptance.loads.train.names`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.loads.train.layer_grid import GRID
from acceptance.loads.train.names import LAYER_COLUMNS, layer_tensors, layers_compared
from acceptance.loads.train.shapes import LAYERS, LayerName

# Forward, and forward with backward, in TFLOP/s; T5's have the H100s' shares of the product.
RATES: dict[LayerName, tuple[float, float]] = {
    "bert": (464.0, 436.0),
    "gpt2": (495.0, 472.0),
    "t5_encoder": (331.0, 316.0),
    "t5_decoder": (357.0, 326.0),
    "llama": (625.0, 610.0),
}
MATMUL = 658.0
# Of the parts and formats the higher of two H100s.
PARTS = {
    "layer_dense": 521.7,
    "layer_dense_gelu": 450.3,
    "layer_feed_forward": 516.1,
    "layer_attention": 105.7,
}
FORMATS = {"bf16": 1.0, "f16": 0.97, "tf32": 0.36, "f32": 0.1}
Line = dict[str, Any]
# One gradient element of a small layer, just beyond its bound, as it was printed.
WRONG: Line = {
    "miscompare": {
        "component": "gpu0",
        "dtype": "bf16",
        "check": "layer_reference",
        "layer": "bert",
        "tensor": "attention.query.weight",
        "elements": 1,
        "odd": 0,
        "error": 0.2022226960932156,
        "bound": 0.1925930438983006,
        "first": [
            {"index": [0, 0], "expected": "-0.058324337333385046", "got": "-0.03524104727872486"}
        ],
    }
}


def lines(
    about: Mapping[str, Any],
    *,
    seconds: float,
    dtype: str = "bf16",
    share: float = 1.0,
    wrong: Sequence[Line] = (),
) -> list[Line]:
    """All lines of the judged shapes. `about` is the GPU's identity, `share` what is left of the
    rates of the layers.
    """
    found: list[Line] = [reading("layer_matmul", "TFLOP/s", MATMUL)]
    rows = []
    for name, (forward, whole) in RATES.items():
        figures = share * forward, share * whole, share * whole / MATMUL
        found.append(reading(f"layer_{name}_forward", "TFLOP/s", figures[0]))
        found.append(reading(f"layer_{name}", "TFLOP/s", figures[1]))
        found.append(reading(f"layer_{name}_share", "ratio", figures[2]))
        rows.append([name, dtype, LAYERS[name].sequence, LAYERS[name].batch, *figures])
    found.append({"table": "train_layers", "columns": list(LAYER_COLUMNS), "rows": rows})
    batches = {name: shape.batch for name, shape in LAYERS.items()}
    told = {"table": False, "formats": [], "batches": batches}
    return _whole(told, found, about, seconds, dtype, wrong)


def table_lines(
    about: Mapping[str, Any],
    *,
    seconds: float,
    dtype: str = "bf16",
    wrong: Sequence[Line] = (),
    formats: Sequence[str] = tuple(FORMATS),
    without: Mapping[tuple[str, str, int, int], str] | None = None,
) -> list[Line]:
    """All lines of the table; `without` has cells without rates, and why."""
    found = [reading(name, "TFLOP/s", value) for name, value in PARTS.items()]
    rows: list[list[Any]] = []
    for kind in formats:
        for name, sequence, batches in GRID:
            for batch in batches:
                why = (without or {}).get((name, kind, sequence, batch))
                rates = [FORMATS[kind] * rate for rate in RATES[name]]
                figures = [*rates, rates[1] / MATMUL / FORMATS[kind]] if why is None else [why] * 3
                rows.append([name, kind, sequence, batch, *figures])
    found.append({"table": "train_layers", "columns": list(LAYER_COLUMNS), "rows": rows})
    told = {"table": True, "formats": list(formats), "batches": {}}
    return _whole(told, found, about, seconds, dtype, wrong)


def reading(name: str, unit: str, value: float) -> Line:
    return {"reading": name, "unit": unit, "component": "gpu0", "value": value}


def _whole(
    told: Line,
    found: list[Line],
    about: Mapping[str, Any],
    seconds: float,
    dtype: str,
    wrong: Sequence[Line],
) -> list[Line]:
    asked = {"device": "cuda", "dtype": dtype, "seconds": seconds, "size": 8192}
    hello: Line = {
        "rigproof_load": 1,
        "load": "train_layers",
        "parameters": {**asked, **told, **about},
    }
    found.append(reading("layer_miscompares", "count", float(len(wrong))))
    tensors = layer_tensors(len(told["formats"]) or 1, judged=not told["table"])
    note = {"note": layers_compared(tensors, len(wrong))}
    return [hello, *wrong, *found, note, {"end": True, "readings": len(found)}]


def printed(told: Sequence[Line]) -> str:
    """The lines as text."""
    return "".join(json.dumps(line) + "\n" for line in told)
