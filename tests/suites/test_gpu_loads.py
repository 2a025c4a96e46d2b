from __future__ import annotations

import msgspec
import pytest
from gpu_machine import gpu
from wrong_results import COPIED, Fact, all_of

from acceptance.core.parts import Gpu, Pair
from acceptance.diagnosis.wrong_result import in_words
from acceptance.expect import gpu_limits
from acceptance.expect.sheet import find
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import LoadOutput, LoadReading
from acceptance.process.command import ProgramResult
from acceptance.suites.fixtures.gpu_loads import GpuLoads, collect_loads
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.proof import ToolError

DUE = (gpu(0), gpu(2))


def output(*readings: LoadReading, miscompares: tuple[Fact, ...] = ()) -> LoadOutput:
    return LoadOutput("burn", {}, readings, tuple(map(read, miscompares)), ())


def test_a_load_counts_its_own_gpu_first() -> None:
    """The second process saw gpu2 first, so its gpu0 is the machine's gpu2, and its way to gpu1
    the way from gpu2 to gpu0.
    """
    loads = GpuLoads(
        DUE,
        {
            Gpu(0): output(
                LoadReading("copy", "GB/s", Gpu(0), 1.0),
                LoadReading("p2p", "GB/s", Pair(Gpu(0), Gpu(1)), 2.0),
            ),
            Gpu(2): output(
                LoadReading("copy", "GB/s", Gpu(0), 3.0),
                LoadReading("p2p", "GB/s", Pair(Gpu(0), Gpu(1)), 4.0),
            ),
        },
    )
    assert loads.values("copy") == {Gpu(0): 1.0, Gpu(2): 3.0}
    assert loads.values("p2p") == {Pair(Gpu(0), Gpu(2)): 2.0, Pair(Gpu(2), Gpu(0)): 4.0}
    loads.raise_failed()


def test_a_load_that_tells_of_a_gpu_it_was_not_given() -> None:
    loads = GpuLoads(DUE, {Gpu(0): output(LoadReading("copy", "GB/s", Gpu(2), 1.0))})
    with pytest.raises(ToolError, match="gpu2, and was given 2 GPUs"):
        loads.values("copy")


def test_wrong_results_of_a_load_that_died_stay_evidence() -> None:
    def read(name: str, done: ProgramResult) -> LoadOutput:
        if name == Gpu(2):
            raise LoadFailed("the load died", all_of({"product": 7}, {"product": 8}))
        return output(LoadReading("wrong", "count", Gpu(0), 0.0))

    done = ProgramResult(("x",), 0, "", "", 1.0)
    loads = collect_loads(DUE, {Gpu(0): done, Gpu(2): done}, read)
    assert loads.miscompares("wrong") == (
        {Gpu(0): 0.0, Gpu(2): 2.0},
        {Gpu(0): None, Gpu(2): in_words(*all_of({"product": 7}))},
    )
    with pytest.raises(LoadFailed, match="gpu2: the load died"):
        loads.raise_failed()


TO_PEER = {**COPIED, "found_s": 5.0}


def test_a_load_that_saw_some_of_the_gpus_counts_those() -> None:
    three = (gpu(0), gpu(1), gpu(2))
    given = output(
        LoadReading("p2p", "GiB", Pair(Gpu(0), Gpu(1)), 2.0),
        miscompares=(TO_PEER,),
    )
    loads = GpuLoads(three, {Gpu(0): given}, shown={Gpu(0): [Gpu(0), Gpu(2)]})
    assert loads.values("p2p") == {Pair(Gpu(0), Gpu(2)): 2.0}
    assert set(loads.wrong("burn_peer_miscompares")) == {Pair(Gpu(0), Gpu(2))}
    stray = GpuLoads(
        three,
        {Gpu(0): output(LoadReading("p2p", "GiB", Pair(Gpu(0), Gpu(2)), 2.0))},
        shown=loads.shown,
    )
    with pytest.raises(ToolError, match="gpu0->gpu2, and was given 2 GPUs"):
        stray.values("p2p")


def test_peaks_of_a_sheet_are_those_of_the_formats() -> None:
    own = find(gpu_limits.sheets(), nvml_name="NVIDIA H200")
    assert own is not None
    assert own.peak.by_dtype()["bf16"] == own.peak.bf16
    assert own.peak.by_dtype()["f64"] == own.peak.fp64_tensor
    without = msgspec.structs.replace(own, peak=msgspec.structs.replace(own.peak, fp8=None))
    assert "f8" not in without.peak.by_dtype()
