"""Layers on a torch device: their passes, their comparison with float64, and bit for bit.

Needs torch.

A forward pass builds the graph, as in training. With backward, the gradients of the input, of a
cross-attention's memory and of all parameters are made from a random gradient of the output, and
kept nowhere: no pass adds to those of another.

The timed forward pass uses no operation whose order of addition may vary, so its output must have
the same bits before and after. The backward pass of flash attention adds in any order where torch
is free to choose; under `use_deterministic_algorithms`, strictly, it does not, nor does that of
the memory-efficient kernel, which T5's mask needs. So the output and all gradients of one run in
that mode, before the timed ones, are compared with those of one after them, when the card is hot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from acceptance.core.dtype import DtypeName
from acceptance.loads.contract import OWN
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.product import difference, normal, wrong_values
from acceptance.loads.miscompare import WrongLayer, WrongLayerRepeat
from acceptance.loads.program import OutOfMemory
from acceptance.loads.train.layer_bound import SMALL, error_bound
from acceptance.loads.train.layer_contract import PART_BATCH, PART_SEQUENCE
from acceptance.loads.train.layer_worker import Work
from acceptance.loads.train.model import MODULES, Attention, FeedForward, initialise, layer
from acceptance.loads.train.shapes import LAYERS, LayerName, LayerShape

_SEED = 20
# How far beyond its bound an injected fault lies.
_BEYOND = 1.05
Run = Literal["forward", "strict"]
_TYPES: dict[DtypeName, torch.dtype] = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "tf32": torch.float32,
    "f32": torch.float32,
}


def _precision(dtype: DtypeName) -> None:
    """Let products of float32 use TF32, or not."""
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")


@contextmanager
def _strict() -> Iterator[None]:
    """Every operation adds in one order, or raises."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = True


class Passes:
    """A layer with its input, and the gradient that its output is given."""

    def __init__(
        self, module: nn.Module, shape: LayerShape, device: str, dtype: torch.dtype
    ) -> None:
        self.module = module
        generator = torch.Generator(device=device).manual_seed(_SEED)
        size = (shape.batch, shape.sequence, shape.hidden)

        def draw() -> Tensor:
            return torch.randn(size, device=device, dtype=dtype, generator=generator)

        self.inputs = [draw().requires_grad_() for _ in range(2 if shape.cross else 1)]
        self.gradient = draw()

    def forward(self) -> Tensor:
        """The output, with the graph."""
        return self.module(*self.inputs)

    def train(self) -> tuple[Tensor, ...]:
        """The gradients of inputs and parameters."""
        found: tuple[Tensor, ...] = torch.autograd.grad(
            self.forward(), (*self.inputs, *self.module.parameters()), self.gradient
        )
        return found

    def tensors(self) -> dict[str, Tensor]:
        """The output and every gradient, by name."""
        output = self.forward()
        own = dict(self.module.named_parameters())
        found = torch.autograd.grad(output, (*self.inputs, *own.values()), self.gradient)
        names = ("output", *("input", "memory")[: len(self.inputs)], *own)
        return dict(zip(names, (output.detach(), *found), strict=True))


class TorchLayer:
    """One layer in one shape and format; `layer_worker.LayerTrial`."""

    def __init__(self, name: LayerName, dtype: DtypeName, shape: LayerShape, device: str) -> None:
        self._name, self._dtype = name, dtype
        _precision(dtype)
        kind = _TYPES[dtype]
        try:
            self._passes: Passes | None = Passes(
                layer(name, shape, device, kind), shape, device, kind
            )
            self.train()
        except torch.OutOfMemoryError:
            raise OutOfMemory from None
        self._kept: dict[Run, dict[str, Tensor]] = {}

    def forward(self) -> None:
        """Queue one forward pass."""
        self._own().forward()

    def train(self) -> None:
        """Queue one forward and one backward pass."""
        self._own().train()

    def keep(self) -> None:
        """Keep the output of a forward pass, and all tensors of a strict run."""
        self._kept = self._tensors()

    def compare(self) -> tuple[int, Sequence[WrongLayerRepeat]]:
        """Make the same again; the tensors whose bits differ."""
        again = self._tensors()
        found, compared = [], 0
        for run, tensors in self._kept.items():
            for tensor, expected in tensors.items():
                compared += 1
                got = again[run][tensor]
                wrong = differing(self._name, self._dtype, run, tensor, expected, got)
                found += [] if wrong is None else [wrong]
        return compared, found

    def release(self) -> None:
        """Free the memory."""
        self._passes, self._kept = None, {}

    def _own(self) -> Passes:
        assert self._passes is not None
        return self._passes

    def _tensors(self) -> dict[Run, dict[str, Tensor]]:
        own = self._own()
        timed = {"output": own.forward().detach()}
        with _strict():
            return {"forward": timed, "strict": own.tensors()}


def differing(
    name: LayerName, dtype: DtypeName, run: Run, tensor: str, expected: Tensor, got: Tensor
) -> WrongLayerRepeat | None:
    """How a tensor differs bit for bit from the first time; None where it does not."""
    found = difference(expected.contiguous(), got.contiguous())
    if found is None:
        return None
    return WrongLayerRepeat(
        component=OWN,
        dtype=dtype,
        check="layer_repeat",
        layer=name,
        tensor=tensor,
        run=run,
        elements=found["elements"],
        first=found["first"],
    )


class _Sided(nn.Module):
    """ReLU that takes the side that another took, where its own value is near 0."""

    def __init__(self, others: Tensor, bound: float) -> None:
        super().__init__()
        self._others, self._bound = others, bound

    def forward(self, values: Tensor) -> Tensor:
        """Keep the values of the positive side."""
        given = values.detach()
        near = given.abs() <= self._bound * (_rms(given) + given.abs())
        return values * torch.where(near, self._others > 0, given > 0)


def _rms(tensor: Tensor) -> Tensor:
    return tensor.square().mean().sqrt()


def _vary(module: nn.Module) -> None:
    """Give biases and norms other values than 0 and 1, so that they count."""
    generator = torch.Generator().manual_seed(_SEED)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            if name.startswith("positions"):
                parameter.copy_(drawn)
            elif parameter.dim() == 1:
                parameter.add_(0.1 * drawn.to(parameter.device, parameter.dtype))


def small(
    name: LayerName, dtype: DtypeName, device: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """All tensors of the small layer on the device, and in float64 on the processor."""
    _precision(dtype)
    shape, kind = SMALL[name], _TYPES[dtype]
    module = layer(name, shape, device, kind)
    _vary(module)
    own = Passes(module, shape, device, kind)
    kept: list[Tensor] = []
    for part in module.modules():
        if isinstance(part, FeedForward):
            part.up.register_forward_hook(lambda *told: kept.append(told[2].detach()))
    got = {tensor: value.cpu().double() for tensor, value in own.tensors().items()}
    exact = MODULES[name](shape).double()
    exact.load_state_dict({key: one.cpu().double() for key, one in module.state_dict().items()})
    for part in exact.modules():
        if isinstance(part, FeedForward) and name.startswith("t5"):
            part._activation = _Sided(kept[0].cpu().double(), error_bound(dtype, shape))
    reference = Passes(exact, shape, "cpu", torch.float64)
    reference.inputs = [one.detach().cpu().double().requires_grad_() for one in own.inputs]
    reference.gradient = own.gradient.cpu().double()
    return got, reference.tensors()


def scale(tensor: str, exact: Mapping[str, Tensor]) -> float:
    """The root mean square of a tensor, of a bias's gradient at least that of its matrix."""
    own = float(_rms(exact[tensor]))
    matrix = exact.get(tensor.removesuffix("bias") + "weight")
    return (
        max(own, float(_rms(matrix)))
        if tensor.endswith(".bias") and matrix is not None and matrix.dim() > 1
        else own
    )


class TorchLayers:
    """The layers on a torch device; `layer_worker.Layers`."""

    def __init__(self, device: str, shapes: Mapping[LayerName, LayerShape] = LAYERS) -> None:
        self._device, self._shapes = device, shapes

    def verify(
        self, name: LayerName, dtype: DtypeName, *, falsify: bool
    ) -> tuple[int, Sequence[WrongLayer], str]:
        """Compare the small layer with float64."""
        got, exact = small(name, dtype, self._device)
        bound = error_bound(dtype, SMALL[name])
        found, worst = list[WrongLayer](), 0.0
        for tensor, expected in exact.items():
            scaled = scale(tensor, exact)
            value = got[tensor]
            if falsify and tensor.endswith("weight"):
                falsify = False
                place = (0,) * value.dim()
                value[place] = expected[place] + _BEYOND * bound * (scaled + expected[place].abs())
            errors = (value - expected).abs() / (scaled + expected.abs())
            wrong = ~(errors <= bound)  # also true where it is NaN
            finite = errors[errors.isfinite()]
            if finite.numel():
                worst = max(worst, float(finite.max()))
            if wrong.any():
                found.append(_wrong(name, dtype, tensor, bound, errors, wrong, expected, value))
        return len(exact), found, f"{worst / bound:.2f} of the allowed error"

    def product(self, dtype: DtypeName, size: int) -> Work:
        """One square matrix product of normal-random numbers."""
        made = normal(DTYPES[dtype], size, self._device)
        return made.multiply

    def layer(self, name: LayerName, dtype: DtypeName, *, batch: int, sequence: int) -> TorchLayer:
        """A layer of this batch and sequence. Raises OutOfMemory."""
        own = self._shapes[name]
        shape = replace(own, sequence=sequence, batch=batch)
        return TorchLayer(name, dtype, shape, self._device)

    def part(self, reading: str, dtype: DtypeName) -> Work:
        """One forward pass of a part of a BERT layer."""
        _precision(dtype)
        shape, kind = self._shapes["bert"], _TYPES[dtype]
        with torch.device(self._device):
            module = _PARTS[reading](shape).to(kind)
        initialise(module, 1)
        size = (PART_BATCH, PART_SEQUENCE, shape.hidden)
        values = torch.randn(size, device=self._device, dtype=kind).requires_grad_()

        def forward() -> None:
            module(values)

        return forward


def _dense(shape: LayerShape) -> nn.Module:
    return nn.Linear(shape.hidden, shape.inner)


_PARTS: dict[str, Callable[[LayerShape], nn.Module]] = {
    "layer_dense": _dense,
    "layer_dense_gelu": lambda shape: nn.Sequential(_dense(shape), nn.GELU()),
    "layer_feed_forward": lambda shape: FeedForward(shape, nn.functional.gelu, bias=True),
    "layer_attention": lambda shape: Attention(shape, causal=False, bias=True),
}


def _wrong(
    name: LayerName,
    dtype: DtypeName,
    tensor: str,
    bound: float,
    errors: Tensor,
    wrong: Tensor,
    expected: Tensor,
    got: Tensor,
) -> WrongLayer:
    finite = errors[wrong & errors.isfinite()]
    return WrongLayer(
        component=OWN,
        dtype=dtype,
        check="layer_reference",
        layer=name,
        tensor=tensor,
        elements=int(wrong.sum()),
        odd=int((~got.isfinite()).sum()),
        error=float(finite.max()) if finite.numel() else None,
        bound=bound,
        first=wrong_values(wrong, expected, got),
    )
