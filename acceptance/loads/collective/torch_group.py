"""Groups of torch.distributed: NCCL between GPUs, gloo between processors.

Loading this takes seconds, and touches no GPU.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from acceptance.loads.card import MEMORY_SHARE, Kernels
from acceptance.loads.collective.pattern import FORMATS, Numbers, Operation, Rule, kernel_rule
from acceptance.loads.cpu.memory_bandwidth import available_bytes
from acceptance.loads.miscompare import ElementType
from acceptance.loads.program import LoadError

WARM_REPLAYS, REPLAYS = 3, 5
_BLOCKS_EACH, _THREADS = 8, 256
# About a millisecond: longer than Python takes to queue an operation, which is up to 150 us.
_QUEUE_CYCLES = 2_000_000
Tensor = Any  # torch.Tensor; torch is not installed where the types are checked


class TorchMemory:
    """Tensors of one device: a GPU, or the processor."""

    def __init__(self, device: str, ranks: int) -> None:
        self.device, self._ranks = device, ranks
        self._kernels: Kernels | None = None

    def places(self, first: int, count: int) -> Tensor:
        """The numbers from `first` on."""
        return torch.arange(first, first + count, dtype=torch.int64, device=self.device)

    def buffer(self, dtype: ElementType, count: int) -> Tensor:
        """A new tensor."""
        types = {
            "f32": torch.float32,
            "bf16": torch.bfloat16,
            "f16": torch.float16,
            "i32": torch.int32,
        }
        return torch.empty(count, dtype=types[dtype], device=self.device)

    def write(self, buffer: Tensor, numbers: Numbers, rule: Rule, turn: int) -> bool:
        """Write the numbers by a kernel; False on the processor."""
        if self.device == "cpu":
            return False
        self._launch("write_numbers", buffer, numbers, rule, turn)
        return True

    def differing(self, buffer: Tensor, numbers: Numbers, rule: Rule, turn: int) -> int | None:
        """How many elements are not those of the rule, by a kernel; None on the processor.

        Raises LoadError where the kernel did not compare all of them.
        """
        if self.device == "cpu":
            return None
        tally = torch.zeros(2, dtype=torch.int64, device=self.device)
        place = ctypes.c_void_p(tally.data_ptr())
        self._launch("compare_numbers", buffer, numbers, rule, turn, place)
        wrong, steps = tally.tolist()
        if steps != len(buffer):
            raise LoadError(f"{steps} of {len(buffer)} elements were compared: not believed")
        return int(wrong)

    def _launch(
        self, name: str, buffer: Tensor, numbers: Numbers, rule: Rule, turn: int, *more: Any
    ) -> None:
        if not len(buffer):
            return
        if self._kernels is None:
            self._kernels = Kernels("collective", buffer.device.index)
        arguments = (
            ctypes.c_void_p(buffer.data_ptr()),
            ctypes.c_ulonglong(len(buffer)),
            ctypes.c_uint(FORMATS[numbers.dtype]),
            kernel_rule(numbers, rule, turn),
            *more,
        )
        blocks = min(_BLOCKS_EACH * self._kernels.multiprocessors, -(-len(buffer) // _THREADS))
        self._kernels.launch(name, blocks, _THREADS, arguments)

    def words(self, piece: Tensor) -> Tensor:
        """The bits of elements of four bytes."""
        return piece.view(torch.int32).to(torch.int64)

    def free_bytes(self) -> int:
        """Free memory of the GPU; of the processor's a share for each rank."""
        return (
            int(MEMORY_SHARE * available_bytes()) // self._ranks
            if self.device == "cpu"
            else int(MEMORY_SHARE * torch.cuda.mem_get_info()[0])
        )


class TorchGroup:
    """A process group of torch.distributed, with one tensor device for each rank.

    Its ranks meet by a file in the folder, those of several machines at `meet`, a URL of torch's;
    the GPU's number is the rank's unless `gpu` says another.
    """

    def __init__(
        self,
        backend: str,
        rank: int,
        ranks: int,
        folder: Path,
        meet: str | None = None,
        gpu: int | None = None,
    ) -> None:
        on_gpu = backend == "nccl"
        self._backend, self._rank, self._ranks = backend, rank, ranks
        self._place = meet or f"file://{folder}/meet"
        self._met = False
        device = rank if gpu is None else gpu
        self.memory = TorchMemory(f"cuda:{device}" if on_gpu else "cpu", ranks)
        self.about, self.uuid = f"torch {torch.__version__}, {backend}", ""
        if on_gpu:
            self.uuid = str(torch.cuda.get_device_properties(device).uuid)
            torch.cuda.set_device(device)
            version = ".".join(map(str, torch.cuda.nccl.version()))
            self.about = f"{self.about} {version}, {torch.cuda.get_device_name(device)}"
        else:
            torch.set_num_threads(1)  # the ranks share the processors
        self._gate = self.memory.buffer("f32", 1).fill_(0)

    def meet(self) -> None:
        """Meet all other ranks."""
        distributed.init_process_group(
            self._backend,
            init_method=self._place,
            rank=self._rank,
            world_size=self._ranks,
        )
        self._met = True

    def run(self, operation: Operation, source: Tensor, destination: Tensor) -> float:
        """Time one operation: by CUDA events on a GPU, else by the host's clock.

        A sum of one element goes first. No rank has it before all ranks are there, so the time
        includes no wait for a late one. A GPU is kept busy until all is queued, so that the time is
        that of the operation and not of the program that queues it.
        """
        if self.memory.device != "cpu":
            torch.cuda._sleep(_QUEUE_CYCLES)
        self._wait_for_all()
        if self.memory.device == "cpu":
            begin = time.perf_counter()
            self._operate(operation, source, destination)
            return time.perf_counter() - begin
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        self._operate(operation, source, destination)
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1e3

    def _wait_for_all(self) -> None:
        """A sum of one element, which no rank has before all ranks are there."""
        if not self._met:
            self.meet()
        distributed.all_reduce(self._gate)

    def latency(self, buffer: Tensor, calls: int) -> float | None:
        """The median of REPLAYS replays of a CUDA graph, by CUDA events.

        The graph is replayed WARM_REPLAYS times before.
        """
        if self.memory.device == "cpu":
            return None
        self._wait_for_all()
        distributed.all_reduce(buffer, distributed.ReduceOp.MAX)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # the threads of torch and NCCL ask for events meanwhile, which "global" would forbid
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(calls):
                distributed.all_reduce(buffer, distributed.ReduceOp.MAX)
        took = []
        for _ in range(WARM_REPLAYS + REPLAYS):
            self._wait_for_all()
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            graph.replay()
            ended.record()
            ended.synchronize()
            took.append(float(began.elapsed_time(ended)) / 1e3 / calls)
        # Left in the order in which it was used: NCCL ends a group after its graphs.
        del graph
        return statistics.median(took[WARM_REPLAYS:])

    def _operate(self, operation: Operation, source: Tensor, destination: Tensor) -> None:
        match operation.name:
            case "all_reduce":
                distributed.all_reduce(destination)
            case "all_gather":
                distributed.all_gather_into_tensor(destination, source)
            case "reduce_scatter":
                distributed.reduce_scatter_tensor(destination, source)
            case "all_to_all":
                distributed.all_to_all_single(destination, source)
            case "broadcast":
                distributed.broadcast(destination, operation.source)
            case "send_receive":
                # A single send would make a communicator of two ranks, with transports of its own.
                if self._rank == operation.source:
                    self._exchange(distributed.isend, source, operation.destination)
                elif self._rank == operation.destination:
                    self._exchange(distributed.irecv, destination, operation.source)

    def _exchange(self, way: Any, tensor: Tensor, other: int) -> None:
        for request in distributed.batch_isend_irecv([distributed.P2POp(way, tensor, other)]):
            request.wait()

    def leave(self) -> None:
        """Leave the group."""
        distributed.destroy_process_group()
