"""Training steps on a torch device: a model with its optimizer, and one step against float64.

Needs torch.
"""

from __future__ import annotations

import copy
import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.product import difference, normal, spoil, wrong_values
from acceptance.loads.gemm.worker import operations
from acceptance.loads.miscompare import WrongValue
from acceptance.loads.program import OutOfMemory
from acceptance.loads.train import model as models
from acceptance.loads.train.shapes import ModelShape, StepFormat, StepOption
from acceptance.loads.train.step_bounds import (
    BETAS,
    DECAY,
    EPSILON,
    RATE,
    SMALL,
    SMALL_BATCH,
    gradient_error,
    loss_error,
    weight_error,
)
from acceptance.loads.train.step_worker import Checked

Tensor = Any
_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
# The gradients of float16 are small: those of logits are 1e-9. AdamW's step does not change where
# they and its epsilon grow by one factor, so nothing is divided by it; a power of two rounds
# nothing.
LOSS_SCALE = {"f16": 2.0**14}


@contextmanager
def _out_of_memory() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError as raised:
        first = str(raised).splitlines()[0]
        raise OutOfMemory(f"a step ran out of memory: {first}") from None


def _optimizer(model: Any, option: StepOption) -> Any:
    return torch.optim.AdamW(
        model.parameters(),
        lr=RATE,
        betas=BETAS,
        eps=EPSILON * LOSS_SCALE.get(option.format, 1.0),
        weight_decay=DECAY,
        fused=option.fused,
        foreach=None if option.fused else False,
    )


class _Steps:
    """A model, its optimizer, and one batch that it is trained on again and again."""

    def __init__(self, model: Any, option: StepOption, tokens: Tensor, targets: Tensor) -> None:
        self.model, self._option = model, option
        self._tokens, self._targets = tokens, targets
        self.optimizer = _optimizer(model, option)

    def forward(self) -> Tensor:
        """The loss, with all that backward needs."""
        option = self._option
        torch.set_float32_matmul_precision("highest" if option.format == "f32" else "high")
        dtype = _TYPES.get(option.format, torch.bfloat16)
        with torch.autocast(self._tokens.device.type, dtype=dtype, enabled=option.narrow):
            return self.model(self._tokens, self._targets)

    def backward(self, loss: Tensor) -> None:
        """Add to the gradients."""
        scale = LOSS_SCALE.get(self._option.format, 1.0) / self._option.accumulation
        (loss * scale).backward()

    def step(self) -> Tensor:
        """One update of the weights; returns the loss before it."""
        for _ in range(self._option.accumulation):
            loss = self.forward()
            self.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


class TorchTrial:
    """The training of one model in one option; raises OutOfMemory."""

    def __init__(self, shape: ModelShape, option: StepOption, batch: int, device: str) -> None:
        self._device, self._option = device, option
        self._base = 0
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self._base = torch.cuda.memory_allocated()
        with _out_of_memory():
            made = models.model(shape, device, seed=1, recompute=option.checkpointed)
            tokens, targets = models.batch(shape, device, batch, 2)
            self._steps: _Steps | None = _Steps(made, option, tokens, targets)

    def _open(self) -> _Steps:
        if self._steps is None:
            raise RuntimeError("the trial was released")
        return self._steps

    def step(self) -> Tensor:
        """Queue one step; returns the loss before it, on the device."""
        with _out_of_memory():
            return self._open().step()

    def loss(self, *, checkpointed: bool) -> Tensor:
        """Queue a forward pass as a step has it; returns its loss, on the device."""
        steps = self._open()
        steps.model.recompute = checkpointed
        with _out_of_memory():
            try:
                return steps.forward().detach()
            finally:
                steps.model.recompute = self._option.checkpointed

    def values(self, losses: list[Tensor]) -> list[float]:
        """Losses of the device as numbers, none of whose bits are lost."""
        return [float(one) for one in losses]

    def spoil(self) -> None:
        """Make one weight NaN, for an injected fault."""
        with torch.no_grad():
            next(self._open().model.parameters()).view(-1)[0] = float("nan")

    def peak_bytes(self) -> int:
        """The most memory that model and steps took together; on a processor the program's."""
        return (
            int(torch.cuda.max_memory_allocated()) - self._base
            if self._device == "cuda"
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        )

    def release(self) -> None:
        """Free the memory."""
        self._steps = None
        gc.collect()
        if self._device == "cuda":
            torch.cuda.empty_cache()


class TorchMatmul:
    """A square matrix product in the judged format, with its first result."""

    def __init__(self, dtype: StepFormat, size: int, device: str) -> None:
        self._product = normal(DTYPES[dtype], size, device)
        self.flop = operations(size)
        self.bytes = (DTYPES[dtype].bytes_needed(size)) + DTYPES[dtype].result_bytes * size**2
        self._product.multiply()
        self._first = self._product.result.clone()

    def multiply(self) -> None:
        """Queue one product."""
        self._product.multiply()

    def compare(self) -> Checked:
        """Compare the product made now with the first, bit for bit."""
        spoil(self._product.result)
        self._product.multiply()
        found = difference(self._first, self._product.result)
        numbers = self._first.numel()
        if found is None:
            return Checked("repeated product", "product", numbers, 0, 0.0)
        listed = tuple(
            WrongValue(index=one.index, expected=one.expected, got=one.got)
            for one in found["first"]
        )
        return Checked("repeated product", "product", numbers, found["elements"], 1.0, listed)


class SmallStep:
    """One step of a small model, and its reference in float64 on the processor."""

    def __init__(self, device: str, *, shape: ModelShape = SMALL, seed: int = 3) -> None:
        self._shape, self._device = shape, device
        self._weights = models.model(shape, "cpu", seed=seed)
        self._data = models.batch(shape, "cpu", SMALL_BATCH, seed + 1)
        self._reference = copy.deepcopy(self._weights).double()
        loss = self._reference(*self._data)
        loss.backward()
        self._loss = float(loss.detach())

    def check(self, dtype: StepFormat, *, falsify: bool = False) -> list[Checked]:
        """Make the step in this format, and compare it.

        `falsify` gives one weight back the value from before the step, for an injected fault.
        """
        scale = LOSS_SCALE.get(dtype, 1.0)
        model = copy.deepcopy(self._weights).to(self._device)
        tokens, targets = (one.to(self._device) for one in self._data)
        steps = _Steps(model, StepOption(dtype), tokens, targets)
        loss = steps.forward()
        steps.backward(loss)
        gradients = {name: _wide(one.grad) for name, one in model.named_parameters()}
        steps.optimizer.step()
        if falsify:
            with torch.no_grad():
                model.tokens.weight.view(-1)[7] = self._weights.tokens.weight.view(-1)[7]
        updated = {name: _wide(one) for name, one in model.named_parameters()}
        allowed = loss_error(self._shape, SMALL_BATCH, dtype)
        found = [_one("loss", "loss", float(loss.detach()), self._loss, allowed)]
        share = gradient_error(self._shape, dtype)
        references = {name: one.grad for name, one in self._reference.named_parameters()}
        for name, want in references.items():
            got, size = gradients[name] / scale, _size(want)
            matrix = references.get(name.removesuffix("bias") + "weight")
            if matrix is not None and matrix.dim() == 2 and want.dim() == 1:
                size = torch.maximum(size, matrix.square().mean(1).sqrt())
            found.append(_compare("gradients", name, got, want, share * size))
        of_itself, absolute = weight_error()
        for name, one in self._weights.named_parameters():
            gradient, before = gradients[name], _wide(one)
            step = gradient / (gradient.abs() + EPSILON * scale)
            want = before * (1 - RATE * DECAY) - RATE * step
            bound = of_itself * before.abs() + absolute
            found.append(_compare("weights", name, updated[name], want, bound))
        return found


def _wide(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()


def _size(tensor: Tensor) -> Tensor:
    """Of each element the root mean square of its row or its column, the larger one."""
    squares = tensor.square()
    return (
        squares.mean().sqrt().expand_as(tensor)
        if tensor.dim() < 2
        else torch.maximum(squares.mean(0, keepdim=True), squares.mean(1, keepdim=True)).sqrt()
    )


def _one(what: str, name: str, got: float, want: float, allowed: float) -> Checked:
    wrong = not abs(got - want) <= allowed  # also where it is NaN
    value = WrongValue(index=(0,), expected=repr(want), got=repr(got))
    return Checked(what, name, 1, int(wrong), abs(got - want) / allowed, (value,) if wrong else ())


def _compare(what: str, name: str, got: Tensor, want: Tensor, allowed: Tensor) -> Checked:
    error = (got - want).abs()
    wrong = ~(error <= allowed)  # also where the error is NaN
    share = float(torch.where(error > 0, error / allowed, 0.0).max())
    return Checked(what, name, got.numel(), int(wrong.sum()), share, wrong_values(wrong, want, got))
