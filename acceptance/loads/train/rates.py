"""Readings of training that model sheets have published rates of, or floors for. Pure."""

from __future__ import annotations

from acceptance.loads.train.layer_contract import LAYER_PARTS, LAYER_READINGS
from acceptance.loads.train.step_contract import STEP_MODELS

# The card's own matrix product, of which the shares are.
OF_MATMUL = ("layer_matmul", "step_matmul")
# What model sheets have published rates of, and floors of shares for.
TRAINING_RATES = frozenset(
    {
        *(name for name, unit in (LAYER_READINGS | LAYER_PARTS).items() if unit == "TFLOP/s"),
        *(f"step_{model}" for model in STEP_MODELS),
    }
    - {*OF_MATMUL}
)
TRAINING_SHARES = frozenset(
    {
        *(name for name, unit in LAYER_READINGS.items() if unit == "ratio"),
        *(f"step_{model}_share" for model in STEP_MODELS),
    }
)
