"""A training run whose bits are the same each time, with stamps of all its tensors. Needs torch.

What the bits rely on, beside equal versions, an equal model of GPU and as many multiprocessors:

- cuBLAS: a workspace of its own for each stream (CUBLAS_WORKSPACE_CONFIG, set before CUDA starts).
- Attention: the forward pass always gives the same bits; backward does in torch's strict mode
  alone (flash: its deterministic variant; memory-efficient, which float32 takes: one split of the
  keys). Of `warn_only` it keeps the fast variant, and cuDNN's attention is not used.
- The gradient of the embedding: strict mode (sorted, then added in order).
- Norms, GELU, cross-entropy of (rows, classes), and AdamW, fused: the same bits as they are.
- Random tokens and weights: torch's generator with a fixed seed; a place's number depends on the
  size of the launch, so on the number of multiprocessors.
- The stamps: sums of whole numbers modulo 2**64, which have no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from acceptance.core.limit import GIB
from acceptance.loads.collective.pattern import mixed
from acceptance.loads.miscompare import DigestFormat
from acceptance.loads.program import LoadError
from acceptance.loads.train.digest_log import gpt_tensors
from acceptance.loads.train.digest_worker import Fault, bit_of, element_of
from acceptance.loads.train.memory import step_bytes
from acceptance.loads.train.model import Model, batch, model
from acceptance.loads.train.shapes import ModelShape, StepOption

RATE = 1e-3  # AdamW's, so high that every weight moves from the first step on
SCALE = 1024.0  # of the loss in float16, fixed: without it small gradients become 0
_FIRST_BATCH = 100  # seed of the first step's tokens; the next one's is one higher
_INFINITE = 0x7F800000  # the exponent of float32 whose values are not finite
_STAMP = 3  # numbers in a stamp
_HALF = {"bf16": torch.bfloat16, "f16": torch.float16}
_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def strict() -> None:
    """Have torch refuse every operation whose bits are not the same each time."""
    # One thread adds in one order, and a GPU's process needs no more.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    # torch would fill all memory that nobody has written yet, which costs time and no bit here.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


class Stamper:
    """Writes the stamps of tensors of these sizes, equal ones together: few, large kernels."""

    def __init__(self, sizes: Sequence[int], device: str) -> None:
        self._groups: list[list[int]] = []
        for size in dict.fromkeys(sizes):
            self._groups.append([place for place, one in enumerate(sizes) if one == size])
        places = torch.arange(max(sizes), dtype=torch.int64, device=device)
        self._factors = mixed(places) | 1
        written = [place for group in self._groups for place in group]
        # where the stamp of each tensor stands among those that `write` writes
        self.order = [written.index(place) for place in range(len(sizes))]

    def write(self, tensors: Sequence[Tensor], stamps: Tensor) -> None:
        """Stamp float32 tensors into rows of `stamps`, in the order of the groups."""
        at = 0
        for group in self._groups:
            words = torch.stack([_words(tensors[place]) for place in group])
            rows = stamps[at : at + len(group)]
            rows[:, 0] = (words * self._factors[: words.shape[1]]).sum(1)
            rows[:, 1] = words.sum(1, dtype=torch.int64)
            rows[:, 2] = ((words & _INFINITE) == _INFINITE).sum(1)
            at += len(group)


def _words(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().view(torch.int32).flatten()


def flip(tensor: Tensor, element: int, bit: int) -> None:
    """Flip a bit of the middle half of an element; the numbers are large random ones' choices."""
    width = 8 * tensor.element_size()
    # `data`, because what backward keeps must not notice
    words = tensor.data.view(torch.int32 if width == 32 else torch.int16).view(-1)
    words[element] ^= 1 << bit_of(width, bit)


class DigestTraining:
    """Runs of one model on one device, each from the same weights and with the same tokens."""

    def __init__(self, shape: ModelShape, device: str, size: int, steps: int) -> None:
        self._shape, self._device, self._size = shape, device, size
        self.steps = steps
        first = model(shape, device)
        self.tensors = gpt_tensors(shape.layers)
        if sorted(self.tensors) != sorted(name for name, _ in first.named_parameters()):
            raise ValueError("the model has other parameters than a GPT")
        self._stamper = Stamper([one.numel() for one in self._parameters(first)], device)
        self._of_loss = Stamper([1], device)
        self._state: list[Tensor] = []
        self._kept: list[Tensor] = []

    def _parameters(self, made: Model) -> list[Tensor]:
        named = dict(made.named_parameters())
        return [named[name] for name in self.tensors]

    def run(self, dtype: DigestFormat, fault: Fault | None) -> list[list[int]]:
        """Train all steps; returns the stamps, which are read from the device once.

        Raises LoadError where the memory does not suffice.
        """
        try:
            return self._run(dtype, fault)
        except torch.OutOfMemoryError:
            needed = step_bytes(self._shape, StepOption("f32"), self._size) / GIB
            raise LoadError(
                f"{self._shape.name} at batch {self._size} needs about {needed:.0f} GiB of the "
                "GPU's memory for the runs whose bits are compared: end what else uses it, a "
                "display too; on a smaller card leave this check out with --only"
            ) from None

    def _run(self, dtype: DigestFormat, fault: Fault | None) -> list[list[int]]:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        torch.backends.cudnn.allow_tf32 = dtype == "tf32"
        self._state = []  # before the next model is made: both need not fit
        made = model(self._shape, self._device)
        parameters = self._parameters(made)
        optimizer = torch.optim.AdamW(parameters, lr=RATE, fused=True)
        count = len(parameters)
        stamps = torch.zeros(
            self.steps * (1 + count) + 3 * count, _STAMP, dtype=torch.int64, device=self._device
        )
        at = 0
        for step in range(self.steps):
            own = fault if fault is not None and fault.step == step else None
            tokens = batch(self._shape, self._device, self._size, _FIRST_BATCH + step)
            loss = self._forward(made, tokens, dtype, own)
            self._backward(loss, parameters, dtype)
            gradients = [_gradient(one) for one in parameters]
            if own is not None and own.kind == "gradient":
                _flip_one(gradients, own)
            self._of_loss.write([loss.detach().float().view(1)], stamps[at : at + 1])
            self._stamper.write(gradients, stamps[at + 1 : at + 1 + count])
            at += 1 + count
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            moments = [
                [optimizer.state[one][name] for one in parameters]
                for name in ("exp_avg", "exp_avg_sq")
            ]
            if own is not None and own.kind == "weight":
                _flip_one(parameters, own)
            if own is not None and own.kind == "optimizer":
                _flip_one([*moments[0], *moments[1]], own)
        for tensors in (parameters, *moments):
            self._stamper.write(tensors, stamps[at : at + count])
            self._state += [one.detach() for one in tensors]
            at += count
        return self._in_order(stamps.tolist())

    def _forward(
        self, made: Model, tokens: tuple[Tensor, Tensor], dtype: DigestFormat, own: Fault | None
    ) -> Tensor:
        half = _HALF.get(dtype)
        kind = torch.device(self._device).type
        with (
            _flipped_activation(made, own),
            sdpa_kernel(_BACKENDS),
            torch.autocast(kind, half or torch.bfloat16, enabled=half is not None),
        ):
            loss: Tensor = made(*tokens)
        return loss

    def _backward(self, loss: Tensor, parameters: Sequence[Tensor], dtype: DigestFormat) -> None:
        if dtype != "f16":
            loss.backward()
            return
        (loss * SCALE).backward()
        for one in parameters:
            _gradient(one).mul_(1 / SCALE)

    def _in_order(self, numbers: list[list[int]]) -> list[list[int]]:
        """The stamps with those of each row in the order of the tensors."""
        order, found, at = self._stamper.order, list[list[int]](), 0
        for step in range(self.steps + 3):
            if step < self.steps:
                found.append(numbers[at])
                at += 1
            found += [numbers[at + place] for place in order]
            at += len(order)
        return found

    def remember(self) -> None:
        """Keep a copy of the last run's weights and moments."""
        self._kept = [one.clone() for one in self._state]

    def as_remembered(self) -> bool:
        """Whether the last run's weights and moments have the kept bits, compared one by one."""
        return all(
            torch.equal(_words(one), _words(kept))
            for one, kept in zip(self._state, self._kept, strict=True)
        )


def _gradient(parameter: Tensor) -> Tensor:
    found = parameter.grad
    assert found is not None  # every parameter takes part in the loss
    return found


def _flip_one(tensors: Sequence[Tensor], fault: Fault) -> None:
    tensor, element = element_of([one.numel() for one in tensors], fault.element)
    flip(tensors[tensor], element, fault.bit)


@contextmanager
def _flipped_activation(made: Model, fault: Fault | None) -> Iterator[None]:
    """While it lasts, the output of one feed-forward part has one bit flipped."""
    if fault is None or fault.kind != "activation":
        yield
        return
    blocks = len(made.blocks)
    block, element = made.blocks[fault.element % blocks], fault.element // blocks

    def change(_module: object, _given: object, output: Tensor) -> None:
        flip(output, element % output.numel(), fault.bit)

    handle = block.feed_forward.register_forward_hook(change)
    try:
        yield
    finally:
        handle.remove()
