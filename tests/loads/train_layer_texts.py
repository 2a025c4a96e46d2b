"""What the load of layers prints on a sound GPU: figures of an H200, and where it has none, of the
recorded H100s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import load_texts

from acceptance.core.dtype import DtypeName, native_dtypes
from acceptance.loads.miscompare import Miscompare, read
from acceptance.loads.train.layer_bound import UNITS
from acceptance.loads.train.layer_contract import (
    LAYER_COLUMNS,
    LAYER_TABLE,
    Ask,
    layer_tensors,
    layers_compared,
)
from acceptance.loads.train.layer_grid import GRID
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
FORMATS: dict[DtypeName, float] = {"bf16": 1.0, "f16": 0.97, "tf32": 0.36, "f32": 0.1}
Cell = tuple[LayerName, DtypeName, int, int]
# One gradient element of a small layer, just beyond its bound, as it was printed.
WRONG = read(
    {
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
)


def whole(
    ask: Ask,
    about: Mapping[str, Any],
    *,
    share: float = 1.0,
    matmul: float = MATMUL,
    wrong: Sequence[Miscompare] = (),
    without: Mapping[Cell, str] | None = None,
) -> dict[str, Any]:
    """The whole output, for `load_texts.printed`.

    `about` is the GPU's identity, `share` what is left of the rates of the layers, which are so
    much of `matmul`; `without` has cells of the table without rates, and why.
    """
    part = matmul / MATMUL
    formats = [one for one in UNITS if one in native_dtypes(about["capability"])]
    values = {"layer_matmul": matmul, "layer_miscompares": float(len(wrong))}
    values |= {name: part * rate for name, rate in PARTS.items()}
    rows: list[tuple[float | str, ...]] = []
    for name, rates in RATES.items():
        figures = *(share * part * rate for rate in rates), share * rates[1] / MATMUL
        names = f"layer_{name}_forward", f"layer_{name}", f"layer_{name}_share"
        values |= dict(zip(names, figures, strict=True))
        rows.append((name, ask.dtype, LAYERS[name].sequence, LAYERS[name].batch, *figures))
    known: dict[str, Any] = {"formats": [], "size": 8192}
    known["batches"] = {name: shape.batch for name, shape in LAYERS.items()}
    tensors = layer_tensors(1, judged=True)
    if ask.table:
        rows = [
            _cell((name, dtype, sequence, batch), part, without or {})
            for dtype in formats
            for name, sequence, batches in GRID
            for batch in batches
        ]
        known |= {"formats": formats, "batches": {}}
        tensors = layer_tensors(len(formats), judged=False)
    return {
        "about": {**known, **about},
        "values": values,
        "tables": {LAYER_TABLE: (LAYER_COLUMNS, rows)},
        "notes": (layers_compared(tensors, len(wrong)),),
        "wrong": wrong,
    }


def _cell(key: Cell, part: float, without: Mapping[Cell, str]) -> tuple[float | str, ...]:
    """A row of the table of published shapes."""
    if key in without:
        return (*key, *(without[key],) * 3)
    name, dtype, *_ = key
    forward, both = RATES[name]
    rate = FORMATS[dtype] * part
    return (*key, rate * forward, rate * both, both / MATMUL)


def printed(ask: Ask, about: Mapping[str, Any], **more: Any) -> str:
    """The whole output as text; `more` is as in `whole`."""
    return load_texts.printed(ask, **whole(ask, about, **more))
