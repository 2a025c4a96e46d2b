"""Parallel training through torch: DistributedDataParallel, FSDP2, and tensor parallelism by hand.

It runs over NCCL between GPUs, and over gloo between processors.
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from acceptance.loads import card
from acceptance.loads.collective import pattern
from acceptance.loads.collective.torch_group import TorchGroup
from acceptance.loads.collective.worker import CHUNK
from acceptance.loads.train import parallel_split, parallel_values
from acceptance.loads.train.model import Model, batch, model
from acceptance.loads.train.parallel_contract import Fault
from acceptance.loads.train.parallel_values import BATCH, STEPS, VERIFIED, ParallelWay
from acceptance.loads.train.parallel_worker import (
    Clock,
    Clocked,
    Deviation,
    TrainedFormat,
    TrainerJoined,
    Verified,
    Verify,
    compare,
    steps_for,
)
from acceptance.loads.train.step_bounds import RATE

_TYPES: dict[TrainedFormat, torch.dtype] = {"bf16": torch.bfloat16, "f16": torch.float16}
WARM_STEPS = 2
SMALL_BUCKET = 1.0  # MiB: the small model has several buckets too
SPOILED = "blocks.0.feed_forward.up.weight"  # what an injected fault spoils the gradient of
Gate = Callable[[bool], contextlib.AbstractContextManager[None]]


def _open(_last: bool) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class Trained:
    """A model as one way trains it, its parameters by their names in the model alone.

    `gate(last)` stands around each accumulated batch: gradients are exchanged in the last one.
    """

    module: nn.Module
    named: dict[str, nn.Parameter]
    gate: Gate = _open


class TorchTrainer:
    """A rank of a process group of torch.distributed."""

    def __init__(self, backend: str, rank: int, ranks: int, folder: Path) -> None:
        self._on_gpu = backend == "nccl"
        self._rank, self._ranks = rank, ranks
        self._kind = "cuda" if self._on_gpu else "cpu"
        self._device = f"cuda:{rank}" if self._on_gpu else "cpu"
        self._card = card.CudaCard() if self._on_gpu else card.ProcessorCard()
        self._mesh: Any = None
        self._group = TorchGroup(backend, rank, ranks, folder)
        self._memory = self._group.memory
        uuid = card.uuid(rank) if self._on_gpu else ""
        native = not self._on_gpu or torch.cuda.get_device_capability(rank) >= (8, 0)
        self._dtype = torch.bfloat16
        name: TrainedFormat = "bf16" if native else "f16"
        self.joined = TrainerJoined(self._memory.free_bytes(), self._group.about, uuid, name)

    def leave(self) -> None:
        """Leave the group."""
        if self._mesh is not None:
            self._group.leave()

    def _meet(self) -> None:
        if self._mesh is None:
            self._group.meet()
            self._mesh = init_device_mesh(self._kind, (self._ranks,))

    @property
    def _last(self) -> bool:
        return self._rank == self._ranks - 1

    def _together(
        self, way: ParallelWay, made: Model, *, exact: bool, drop: bool = False
    ) -> Trained:
        """The model as this way trains it; `exact` is in float32, with small buckets."""
        if way == "ddp":
            return self._replicated(made, exact=exact, drop=drop)
        if way == "tp":
            parallel_split.split(made, self._rank, self._ranks)
            made.blocks[0].attention.out.drop = drop and self._last
            return Trained(made, dict(made.named_parameters()))
        return self._sharded(made, reshard=way == "zero3", exact=exact)

    def _replicated(self, made: Model, *, exact: bool, drop: bool) -> Trained:
        named = dict(made.named_parameters())
        module = DistributedDataParallel(
            made,
            device_ids=[self._rank] if self._on_gpu else None,
            gradient_as_bucket_view=True,
            bucket_cap_mb=SMALL_BUCKET if exact else None,
        )
        if drop:
            hook = _dropping if self._last else _averaging
            # without annotations, of which torch takes its own only
            module.register_comm_hook(None, lambda _state, bucket: hook(bucket))

        def gate(last: bool) -> contextlib.AbstractContextManager[None]:
            return _open(last) if last else module.no_sync()

        return Trained(module, named, gate)

    def _sharded(self, made: Model, *, reshard: bool, exact: bool) -> Trained:
        """FSDP2: each block a group of its own, gathered in the format of the products.

        Gradients are reduced in float32. Embedding, positions and last norm stay in float32, so
        that what flows between the blocks has the format that one card alone gives it.
        """
        # A processor's norm takes no weights of another format than its input.
        mixed = self._on_gpu and not exact
        policy = MixedPrecisionPolicy(
            param_dtype=self._dtype if mixed else None,
            reduce_dtype=torch.float32 if mixed else None,
            cast_forward_inputs=False,
        )
        for block in made.blocks:
            fully_shard(block, mesh=self._mesh, reshard_after_forward=reshard, mp_policy=policy)
        module: Any = fully_shard(made, mesh=self._mesh, reshard_after_forward=reshard)

        @contextlib.contextmanager
        def gate(last: bool) -> Iterator[None]:
            module.set_requires_gradient_sync(last)
            yield

        return Trained(module, dict(module.named_parameters()), gate)

    def _own(self, way: ParallelWay, name: str, whole: Tensor) -> Tensor:
        """What this rank has of a tensor of one card alone."""
        if way == "ddp":
            return whole
        if way == "tp":
            return parallel_split.own(name, whole, VERIFIED.layer, self._rank, self._ranks)
        parts = torch.chunk(whole, self._ranks)
        return parts[self._rank] if self._rank < len(parts) else whole[:0]

    def verify(self, task: Verify, fault: Fault | None) -> Verified:
        """Train the small model with all others, and compare it with one card's training."""
        self._meet()
        torch.set_float32_matmul_precision("highest")  # no TF32
        single = model(VERIFIED, self._device)
        alone = Trained(single, dict(single.named_parameters()))
        before = {name: one.detach().clone() for name, one in alone.named.items()}
        made = model(VERIFIED, self._device)
        together = self._together(task.way, made, exact=True, drop=fault == "drop")
        optimizers = [
            torch.optim.AdamW(
                one.module.parameters(),
                lr=parallel_values.RATE,
                eps=parallel_values.EPSILON,
                fused=True,
            )
            for one in (alone, together)
        ]
        told = _Comparison(self, task)
        size = BATCH * task.accumulation * self._ranks
        for step in range(1, STEPS + 1):
            tokens, targets = batch(VERIFIED, self._device, size, step)
            loss = alone.module(tokens, targets)
            loss.backward()
            told.alone.append(float(loss.detach()))
            told.losses.append(self._pass(task, together, tokens, targets))
            self._spoil(fault if step == 1 else None, task.way, alone, together, told.share(step))
            told.gradients(step, alone, together)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        told.weights(before, alone, together)
        whole = self._digest(together) if task.way == "ddp" else ""
        return told.verified(whole)

    def _pass(self, task: Verify, together: Trained, tokens: Tensor, targets: Tensor) -> float:
        """Forward and backward with this rank's samples of a step; its mean loss."""
        one = BATCH * self._ranks if task.way == "tp" else BATCH
        first = 0 if task.way == "tp" else self._rank * task.accumulation * BATCH
        total = 0.0
        for number in range(task.accumulation):
            chosen = slice(first + number * one, first + (number + 1) * one)
            with together.gate(number == task.accumulation - 1):
                loss = together.module(tokens[chosen], targets[chosen])
                (loss / task.accumulation).backward()
            total += float(loss.detach())
        return total / task.accumulation

    def _spoil(
        self, fault: Fault | None, way: ParallelWay, alone: Trained, together: Trained, share: float
    ) -> None:
        """Make the faults that are of a gradient, at the last rank.

        "wrong" is just above the bound of what it spoils. Of a sharded way "drop" is a gradient of
        which nothing arrived.
        """
        if not self._last or fault not in ("wrong", "drop"):
            return
        local = _local(_gradient(together.named[SPOILED]))
        if fault == "wrong":
            bound = _bounds_of_gradients(share, alone)[SPOILED]
            local[0, 0] += parallel_values.INJECTED * bound
        elif way in ("zero2", "zero3"):
            local.zero_()

    def clock(self, task: Clock) -> Clocked:
        """Train a model, and time its steps: by CUDA events on a GPU, else by the host's clock."""
        gc.collect()
        if self._on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        self._dtype = _TYPES[task.dtype]
        made = model(task.shape, self._device)
        if task.way == "alone":
            trained = Trained(made, dict(made.named_parameters()))
        else:
            self._meet()
            trained = self._together(task.way, made, exact=False)
        del made
        # As slow as in `step_load`, so that losses stay finite in float16 too.
        optimizer = torch.optim.AdamW(trained.module.parameters(), lr=RATE, fused=True)
        batches = [
            batch(
                task.shape,
                self._device,
                task.batch,
                1 + number + (0 if task.way == "tp" else self._rank * task.accumulation),
            )
            for number in range(task.accumulation)
        ]
        losses: list[Tensor] = []

        def step() -> tuple[Any, Any, Any]:
            begin = self._card.mark()
            for number, (tokens, targets) in enumerate(batches):
                with (
                    trained.gate(number == task.accumulation - 1),
                    torch.autocast(self._kind, self._dtype),
                ):
                    loss = trained.module(tokens, targets)
                (loss / task.accumulation).backward()
                losses.append(loss.detach())
            passed = self._card.mark()
            optimizer.step()
            optimizer.zero_grad()
            return begin, passed, self._card.mark()

        warm = [step() for _ in range(WARM_STEPS)]
        one_s = self._card.seconds(warm[-1][0], warm[-1][2])
        count = steps_for(task.seconds, one_s if task.way == "alone" else self._slowest(one_s))
        marks = [step() for _ in range(count)]
        whole_s = self._card.seconds(marks[0][0], marks[-1][2])
        told = torch.stack(losses).float()
        return Clocked(
            steps=count,
            step_s=whole_s / count,
            passes_s=statistics.median(self._card.seconds(one[0], one[1]) for one in marks),
            optimizer_s=statistics.median(self._card.seconds(one[1], one[2]) for one in marks),
            peak_bytes=torch.cuda.max_memory_allocated() if self._on_gpu else 0,
            infinite=int((~torch.isfinite(told)).sum()),
            digest=self._digest(trained) if task.way == "ddp" else "",
        )

    def _slowest(self, seconds: float) -> float:
        told = torch.tensor([seconds], dtype=torch.float64, device=self._device)
        distributed.all_reduce(told, distributed.ReduceOp.MAX)
        return float(told)

    def _digest(self, trained: Trained) -> str:
        """The digest of all weights, one after the other."""
        parts, first = [], 0
        for one in trained.named.values():
            for piece in one.detach().flatten().split(CHUNK):
                places = self._memory.places(first, len(piece))
                parts.append(pattern.part(places, self._memory.words(piece)))
                first += len(piece)
        return pattern.digest(parts)

    def _compared(self, task: Verify, name: str, whole: Tensor, found: Tensor) -> tuple[float, int]:
        """The norm of the difference from one card's tensor, and how many elements that are."""
        own, local = self._own(task.way, name, whole), _local(found)
        if own.shape != local.shape:
            raise RuntimeError(f"{name} is {tuple(local.shape)} here, not {tuple(own.shape)}")
        return float((local.double() - own.double()).norm()), local.numel()


@dataclass(slots=True)
class _Comparison:
    """What has been compared, and found."""

    trainer: TorchTrainer
    task: Verify
    losses: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0, 0])
    nearest: list[float] = field(default_factory=lambda: [0.0, 0.0])
    deviations: list[Deviation] = field(default_factory=list)

    def share(self, step: int) -> float:
        """The bound of gradients, relative."""
        parts = self.task.accumulation * self.trainer._ranks
        places = BATCH * parts * VERIFIED.sequence
        return parallel_values.relative(VERIFIED, places, parts, step, gradient=True)

    def gradients(self, step: int, alone: Trained, together: Trained) -> None:
        """Compare the gradients of a step."""
        bounds = _bounds_of_gradients(self.share(step), alone)
        for name, parameter in together.named.items():
            whole = _gradient(alone.named[name])
            difference, count = self.trainer._compared(self.task, name, whole, _gradient(parameter))
            self.counts[0] += count
            self._take(0, step, name, difference, bounds[name])

    def weights(self, before: dict[str, Tensor], alone: Trained, together: Trained) -> None:
        """Compare the weights after the last step."""
        changes = {
            name: one.detach().double() - before[name].double() for name, one in alone.named.items()
        }
        bounds = _bounds(self.share(STEPS), changes)
        for name, parameter in together.named.items():
            whole = alone.named[name].detach()
            difference, count = self.trainer._compared(self.task, name, whole, parameter.detach())
            bound = parallel_values.weight_bound(bounds[name], float(whole.double().norm()), STEPS)
            self.counts[1] += count
            self._take(1, STEPS, name, difference, bound)

    def _take(self, kind: int, step: int, name: str, difference: float, bound: float) -> None:
        check = ("parallel_gradient", "parallel_weights")[kind]
        found = compare(check, step, name, difference, bound)  # type: ignore[arg-type]
        if found is not None:
            self.deviations.append(found)
        if math.isfinite(difference):
            self.nearest[kind] = max(self.nearest[kind], difference / bound)

    def verified(self, whole: str) -> Verified:
        """All of it."""
        return Verified(
            losses=tuple(self.losses),
            alone=tuple(self.alone),
            gradients=self.counts[0],
            weights=self.counts[1],
            nearest=(self.nearest[0], self.nearest[1]),
            digest=whole,
            deviations=tuple(self.deviations),
        )


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise RuntimeError("a parameter has no gradient")
    return parameter.grad


def _local(tensor: Tensor) -> Tensor:
    """A rank's own part of a sharded tensor; a whole one itself."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _bounds_of_gradients(share: float, alone: Trained) -> dict[str, float]:
    return _bounds(share, {name: _gradient(one) for name, one in alone.named.items()})


def _bounds(share: float, tensors: dict[str, Tensor]) -> dict[str, float]:
    """The bound of each tensor's difference."""
    norms = {name: float(one.double().norm()) for name, one in tensors.items()}
    sizes = {name: one.numel() for name, one in tensors.items()}
    mean_square = sum(norm**2 for norm in norms.values()) / sum(sizes.values())
    return {
        name: parallel_values.norm_bound(share, norm, sizes[name], mean_square)
        for name, norm in norms.items()
    }


def _averaging(bucket: Any) -> Any:
    """What DDP does with a bucket."""
    return _reduced(bucket.buffer()).then(lambda done: done.value()[0])


def _dropping(bucket: Any) -> Any:
    """The first bucket is exchanged, and stays what it was at this rank."""
    if bucket.index() != 0:
        return _averaging(bucket)
    kept = bucket.buffer().clone()
    return _reduced(bucket.buffer()).then(lambda _done: kept)


def _reduced(buffer: Tensor) -> Any:
    buffer.div_(distributed.get_world_size())
    return distributed.all_reduce(buffer, async_op=True).get_future()
