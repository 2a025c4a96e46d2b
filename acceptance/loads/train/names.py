"""Names of the training loads' readings, and columns of their tables, for loads and readers alike.

All are of `gpu0`, the load's own.
"""

from __future__ import annotations

from typing import Literal, get_args

from acceptance.loads.train.shapes import LAYER_NAMES, LAYERS, LayerName

# Layers: forward with backward, the forward pass alone, and the first's share of the card's own
# matrix product in the same program.
LAYER_READINGS = {
    **{f"layer_{name}": "TFLOP/s" for name in LAYER_NAMES},
    **{f"layer_{name}_forward": "TFLOP/s" for name in LAYER_NAMES},
    **{f"layer_{name}_share": "ratio" for name in LAYER_NAMES},
    "layer_matmul": "TFLOP/s",
    "layer_miscompares": "count",
}
# Parts of a BERT-large layer at batch 64, sequence 128, forward.
LAYER_PARTS = {
    "layer_dense": "TFLOP/s",
    "layer_dense_gelu": "TFLOP/s",
    "layer_feed_forward": "TFLOP/s",
    "layer_attention": "TFLOP/s",
    "layer_miscompares": "count",
}
# Parameters of each layer. With inputs and output they are the tensors that are compared.
LAYER_PARAMETERS: dict[LayerName, int] = {
    "bert": 16,
    "gpt2": 16,
    "t5_encoder": 9,
    "t5_decoder": 14,
    "llama": 9,
}
LAYER_TABLE = "train_layers"
LAYER_COLUMNS = (
    "layer",
    "format",
    "sequence",
    "batch",
    "forward TFLOP/s",
    "with backward TFLOP/s",
    "share",
)


def layer_tensors(formats: int, *, judged: bool) -> int:
    """How many tensors the load of layers compares.

    In each of so many formats these are the output and every gradient of each small layer; with
    `judged`, also those of each judged layer under strict determinism, and its timed output.
    """
    found = 0
    for name, parameters in LAYER_PARAMETERS.items():
        own = 1 + (2 if LAYERS[name].cross else 1) + parameters
        found += formats * own + (own + 1 if judged else 0)
    return found


def layers_compared(tensors: int, wrong: int) -> str:
    """The note of the load of layers about what it compared."""
    return f"{tensors} tensors compared, {wrong} of them wrong"


# Steps: the rate of one model, and its share of the card's own matrix product.
StepModel = Literal["gpt2", "bert", "neo"]
STEP_MODELS: tuple[StepModel, ...] = get_args(StepModel)
STEP_READINGS = {"step_{}": "TFLOP/s", "step_{}_share": "ratio"}
STEP_OF_GPU = {"step_matmul": "TFLOP/s", "step_miscompares": "count"}
STEP_TABLE = "train_steps"
STEP_COLUMNS = (
    "model",
    "option",
    "batch",
    "accumulation",
    "samples/s",
    "ktokens/s",
    "TFLOP/s",
    "MFU",
    "GiB",
    "ms",
    "ms p5",
    "ms p95",
)
# As the load has them, which does not know the sheet's peak.
STEP_LOAD_COLUMNS = tuple(name for name in STEP_COLUMNS if name != "MFU")
# What was compared, of which model and format: how many numbers, and the largest difference as a
# share of the allowed one (of losses that must be equal, finite or lower: how many are not).
STEP_CHECKS = "train_step_checks"
STEP_CHECK_COLUMNS = ("model", "format", "compared", "numbers", "share of allowed")
STEP_REFERENCED = ("loss", "gradients", "weights")  # of a small model, against float64
# Of each model in each format, with the least number of them: the loss of new weights is made three
# times and that of the last ones twice, and at least six steps are made.
STEP_LOSSES = {"first loss": 1, "repeated losses": 3, "finite losses": 7, "trained loss": 1}
STEP_SIZES = 8192, 4096  # of the matrix product; the smaller one on GPUs with little memory
NEO_GIB = 30  # GPUs with less memory than this are not to train the model neo

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
