"""What the capacity card is asked, and what it assumes where nothing is asked."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.formulas import MIXED, Batch, Model

# Usual sizes of models, of which the largest that fits is taken; without a known memory the first
# that is not larger than 7e9.
SIZES = (70e9, 13e9, 7e9, 1.3e9, 350e6, 125e6)
UNKNOWN_MEMORY = 7e9
TOKENS_A_PARAMETER = 20  # arXiv 2203.15556
CONTEXT = 4096
MICRO = 1
ACCUMULATION = 4
CHECKPOINT_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Question:
    """The model and its training, as they were asked for; None is left to assumption.

    `gpus` are those of each machine, `micro` and `context` samples and tokens of a micro-batch,
    `checkpoint_every` seconds.
    """

    parameters: float | None = None
    tokens: float | None = None
    gpus: int | None = None
    machines: int | None = None
    context: int | None = None
    micro: int | None = None
    accumulation: int | None = None
    layers: int | None = None
    hidden: int | None = None
    checkpoint_every: float | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """A training with nothing left open; `gpus` are those of each machine."""

    model: Model
    tokens: float
    context: int
    batch: Batch
    checkpoint_every: float

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.batch.gpus * self.batch.machines


def states_bytes(parameters: float, gpus: int) -> float:
    """Weights, gradients and optimizer on each of so many GPUs, all of it sharded."""
    return MIXED.on_each(3, gpus) * parameters


def training(question: Question, gpus: int, memory: float | None) -> Training:
    """What is asked; on so many GPUs of a machine, with this memory each, where nothing else is."""
    batch = Batch(
        question.micro or MICRO,
        question.accumulation or ACCUMULATION,
        question.gpus or gpus,
        question.machines or 1,
    )
    context = question.context or CONTEXT

    def model(parameters: float) -> Model:
        return formulas.shape_of(parameters, question.layers, question.hidden)

    def fits(parameters: float) -> bool:
        kept = formulas.checkpointed_bytes(model(parameters), context, batch.micro)
        return states_bytes(parameters, batch.gpus * batch.machines) + kept <= (memory or 0.0)

    usual = next(filter(fits, SIZES), SIZES[-1]) if memory else UNKNOWN_MEMORY
    parameters = question.parameters or usual
    return Training(
        model(parameters),
        question.tokens or TOKENS_A_PARAMETER * parameters,
        context,
        batch,
        question.checkpoint_every or CHECKPOINT_EVERY_S,
    )
