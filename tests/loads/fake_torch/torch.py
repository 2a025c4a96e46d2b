"""As much of torch as the copy load uses, on numpy: one GPU that is the processor, and a peer or
two.

What a test asks of it comes in the environment: FAKE_TORCH_GPUS, FAKE_TORCH_PEERS ("1,2": whom GPU
0 can reach), FAKE_TORCH_LOSE (copies to this device lose their last word), FAKE_TORCH_WINDOW (what
another GPU writes to this device goes nowhere, and is given back to it where it reads there),
FAKE_TORCH_NAN (the product of these many elements is NaN in one place), FAKE_TORCH_FAIL (the copy
with this number fails as CUDA does), FAKE_TORCH_TRACE (a file that gets a line of each copy: the
process, from where to where, and when it began and ended, by the clock of all processes).
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import types
from pathlib import Path

import numpy as np

__version__ = "0.fake"
int64, float32 = np.int64, np.float32
GPUS = int(os.environ.get("FAKE_TORCH_GPUS", "1"))
PEERS = [int(peer) for peer in os.environ.get("FAKE_TORCH_PEERS", "").split(",") if peer]
LOSE = os.environ.get("FAKE_TORCH_LOSE")
WINDOW = os.environ.get("FAKE_TORCH_WINDOW")
NAN = int(os.environ.get("FAKE_TORCH_NAN", "0"))
FAIL = int(os.environ.get("FAKE_TORCH_FAIL", "0"))
TRACE = os.environ.get("FAKE_TORCH_TRACE")
copies = 0


class Tensor:
    __hash__ = None

    def __init__(self, array, device="cpu"):
        self.array, self.device = array, str(device)
        self.window = None

    def numel(self):
        return self.array.size

    def numpy(self):
        assert self.device == "cpu"
        return self.array

    def fill_(self, value):
        self.array.fill(value)

    def copy_(self, other, non_blocking=False):
        began = time.monotonic()
        self._copy(other, non_blocking)
        if TRACE and non_blocking:
            with Path(TRACE).open("a") as file:
                way = f"{other.device}->{self.device}"
                file.write(f"{os.getpid()} {way} {began} {time.monotonic()}\n")

    def _copy(self, other, non_blocking):
        global copies
        if non_blocking:
            copies += 1
            if copies == FAIL:
                raise RuntimeError(
                    "CUDA error: an illegal memory access was encountered\nmore about it"
                )
        foreign = "cpu" not in (self.device, other.device) and self.device != other.device
        sent = other.window if foreign and other.window is not None else other.array
        if foreign and self.device == WINDOW:
            self.window = sent.copy()
            return
        words = -1 if non_blocking and self.device == LOSE else None
        self.array[:words] = sent[:words]

    def __getitem__(self, key):
        return Tensor(self.array[key], self.device)

    def __setitem__(self, key, value):
        self.array[key] = value

    def __rshift__(self, shift):
        return Tensor(self.array >> shift, self.device)

    def __ne__(self, other):
        return Tensor(self.array != other.array, self.device)

    def __eq__(self, value):
        return Tensor(self.array == value, self.device)

    def _in_place(self, operation, value):
        value = value.array if isinstance(value, Tensor) else np.int64(value)
        operation(self.array, value, out=self.array)
        return self

    def mul_(self, value):
        return self._in_place(np.multiply, value)

    def add_(self, value):
        return self._in_place(np.add, value)

    def bitwise_and_(self, value):
        return self._in_place(np.bitwise_and, value)

    def bitwise_xor_(self, value):
        return self._in_place(np.bitwise_xor, value)

    def count_nonzero(self):
        return np.count_nonzero(self.array)

    def nonzero(self):
        return Tensor(np.argwhere(self.array), self.device)

    def flatten(self):
        return Tensor(self.array.reshape(-1), self.device)

    def tolist(self):
        return self.array.tolist()

    def to(self, dtype):
        return Tensor(self.array.astype(dtype), self.device)

    def __int__(self):
        return int(self.array.item())

    def __float__(self):
        return float(self.array.item())


def arange(start, end, dtype, device):
    return Tensor(np.arange(start, end, dtype=dtype), device)


def empty(count, dtype, device="cpu", pin_memory=False):
    return Tensor(np.full(count, 77, dtype=dtype), device)


def zeros(count, dtype):
    return Tensor(np.zeros(count, dtype=dtype))


def empty_like(tensor):
    return empty(tensor.numel(), tensor.array.dtype, tensor.device)


def from_numpy(array):
    return Tensor(array)


def mul(a, b, out):
    np.multiply(a.array, b.array, out=out.array)
    if out.numel() == NAN:
        out.array[3] = np.nan


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.when = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return (later.when - self.when) * 1e3


class Stream:
    """No two things happen at once here, so what was queued on another stream has always ended."""

    def wait_event(self, event):
        pass


cuda = types.ModuleType("torch.cuda")
cuda.is_available = lambda: GPUS > 0
cuda.device_count = lambda: GPUS
cuda.can_device_access_peer = lambda one, other: one == 0 and other in PEERS
cuda.mem_get_info = lambda: (64 << 20, 80 << 20)
cuda.empty_cache = lambda: None
cuda.synchronize = lambda: None
cuda.Event, cuda.Stream = Event, Stream
cuda.stream = lambda stream: contextlib.nullcontext()
cuda.get_device_properties = lambda index: types.SimpleNamespace(
    name="Fake GPU",
    uuid=f"{index:08}-0000-4000-8000-000000000000",
    major=9,
    minor=0,
    L2_cache_size=2 << 20,
    pci_domain_id=0,
    pci_bus_id=0xFE,
    pci_device_id=31,
)
version = types.SimpleNamespace(cuda="13.0")
sys.modules["torch.cuda"] = cuda
