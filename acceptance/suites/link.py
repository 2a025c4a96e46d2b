"""The links between GPUs and host: their state as the driver reports it, and their data rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from acceptance.core.siblings import ratios
from acceptance.expect.components import ALL_GPUS, link_siblings, pair_name
from acceptance.machine import topology
from acceptance.machine.gpu import Gpu
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.session.check import Check
from acceptance.suites.fixtures import gpu_links
from acceptance.tools import p2p_bandwidth
from acceptance.tools.proof import ToolError
from acceptance.tools.reading import ToolOutput

# nvbandwidth's testcases by measurement.
HOST_COPIES = {
    "copy_h2d": "host_to_device_memcpy_ce",
    "copy_d2h": "device_to_host_memcpy_ce",
    "copy_h2d_bidirectional": "host_to_device_bidirectional_memcpy_ce",
    "copy_d2h_bidirectional": "device_to_host_bidirectional_memcpy_ce",
}
ALONE = {"copy_local": "device_local_copy", "latency_host_device": "host_device_latency_sm"}
PEER_COPIES = {
    "copy_d2d_read": "device_to_device_memcpy_read_ce",
    "copy_d2d_write": "device_to_device_memcpy_write_ce",
}
PEER_ACCESS_UNKNOWN = (
    "NVML does not say whether these two have peer access: see `nvidia-smi topo -p2p r`,"
    " and update a driver that does not tell it"
)


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("p2p_supported", "gpu_path_differs")
def test_paths(
    inventory: Inventory, due_gpus: tuple[Gpu, ...], machine: Machine | None, check: Check
) -> None:
    """The way from each GPU to each other: NVLinks or the common part of their PCIe ways, and
    whether peer access is offered.

    Measured: NVML's answers. Whether data arrives intact, and how fast, is another check.
    """
    cells = topology.build(inventory, inventory.places).cells
    wanted = _declared_paths(machine)
    offered = {(a, b): pair for a, b, pair in topology.pairs(inventory, due_gpus)}
    supported, offers, differs, ways = {}, {}, {}, {}
    for first in due_gpus:
        for second in due_gpus:
            if first == second:
                continue
            name = pair_name(first.name, second.name)
            cell = cells.get((first.name, second.name))
            pair = offered.get((first, second))
            if pair is not None and pair.p2p_read is not None and pair.p2p_write is not None:
                supported[name] = float(pair.p2p_read == pair.p2p_write == "ok")
                offers[name] = f"path {cell}; read {pair.p2p_read}, write {pair.p2p_write}"
            if name in wanted and cell is not None:
                differs[name] = float(cell != wanted[name])
                ways[name] = f"found {cell}"
    untold = {one.component: PEER_ACCESS_UNKNOWN for one in check.due("p2p_supported")}
    check("p2p_supported", supported, notes=offers, skipped=untold)
    check("gpu_path_differs", differs, notes=ways)


def _declared_paths(machine: Machine | None) -> dict[str, str]:
    """The paths that the machine file declares, by pair, in both directions."""
    found: dict[str, str] = {}
    for pair in machine.gpu_pair if machine is not None else ():
        if pair.path is not None:
            first, second = (f"gpu{index}" for index in pair.between)
            found |= {pair_name(first, second): pair.path, pair_name(second, first): pair.path}
    return found


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("nvlink_active", "nvlink_speed")
def test_nvlinks(due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """How many NVLinks of each GPU are up, and the speed of the slowest of them in one direction.

    Measured: each link as NVML reports it. A bridge with no link up looks like no bridge, unless
    the machine file declares it.
    """
    gpu_links.measure(due_gpus, check)


def _take(
    output: ToolOutput,
    check: Check,
    figures: Mapping[str, Mapping[str, float]],
    component: str = ALL_GPUS,
) -> None:
    """Journal a run's figures by measurement and component, or the fault that the run proves."""
    failed = output.outcome == "fail"
    check(
        "copy_faults",
        {component: float(failed)},
        notes={component: output.reason if failed else None},
    )
    for measurement, values in figures.items():
        due = check.components(measurement)
        check(
            measurement,
            {} if failed else {name: value for name, value in values.items() if name in due},
            skipped=dict.fromkeys(
                (due & {component}) or due, "no figure counts of a run with a fault"
            )
            if failed
            else None,
        )


def _readings(output: ToolOutput, names: Mapping[str, str]) -> dict[str, Mapping[str, float]]:
    """The tool's own readings by measurement.

    Raises ToolError for a missing reading, for example of a testcase that the tool waived.
    """
    if output.outcome == "fail":
        return {name: {} for name in names}
    given = {reading.name: reading.values for reading in output.readings}
    if lacking := [reading for reading in names.values() if reading not in given]:
        raise ToolError(f"{output.tool} did not give {', '.join(lacking)}: {output.reason}")
    return {name: given[reading] for name, reading in names.items()}


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="nvbandwidth", per_gpu=6.5, slack=30.0)
@pytest.mark.measures(
    "copy_faults",
    "copy_h2d",
    "copy_d2h",
    "copy_h2d_bidirectional",
    "copy_d2h_bidirectional",
    "copy_h2d_ratio",
    "copy_d2h_ratio",
)
def test_host_copies(
    nvbandwidth: Callable[..., ToolOutput],
    inventory: Inventory,
    due_gpus: tuple[Gpu, ...],
    machine: Machine | None,
    check: Check,
) -> None:
    """Copies between pinned host memory and each GPU, each GPU by itself, in both directions and in
    both at once (nvbandwidth).

    Measured: the median of three samples of sixteen copies by the copy engine, 1 GB = 1e9 bytes;
    the last copy of each sample is compared with its pattern. Each direction is also compared with
    the other GPUs of that model on such a link. Not measured: pageable memory, and all GPUs at
    once.
    """
    output = nvbandwidth(*HOST_COPIES.values())
    found = _readings(output, HOST_COPIES)
    siblings = link_siblings(machine, inventory, [gpu.name for gpu in due_gpus])
    held = {
        f"{name}_ratio": ratios(check.plausible(name, found[name]), siblings)
        for name in ("copy_h2d", "copy_d2h")
    }
    _take(output, check, {**found, **held})


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="nvbandwidth", per_gpu=2.0, slack=30.0)
@pytest.mark.measures("copy_faults", "copy_local", "latency_host_device")
def test_device_alone(nvbandwidth: Callable[..., ToolOutput], check: Check) -> None:
    """Copies inside each GPU's own memory, and the time of one access from the GPU to host memory
    (nvbandwidth).

    Measured: bytes copied, counted once though each is read and written; buffers of 512 MiB leave
    every L2 cache.
    """
    output = nvbandwidth(*ALONE.values())
    _take(output, check, _readings(output, ALONE))


@pytest.mark.session("load")
@pytest.mark.costs(2.0, load="nvbandwidth", per_gpu=4.0, slack=180.0)
@pytest.mark.measures("copy_faults", "copy_d2d_read", "copy_d2d_write")
def test_peer_copies(nvbandwidth: Callable[..., ToolOutput], check: Check) -> None:
    """Copies between GPUs that have peer access, pair by pair and way by way, every one verified
    (nvbandwidth).

    Measured: reads and writes by the copy engine of the first GPU of the pair. Data that arrives
    changed fails the check.
    """
    output = nvbandwidth(*PEER_COPIES.values())
    _take(output, check, _readings(output, PEER_COPIES))


@pytest.mark.session("load")
@pytest.mark.costs(1.0, load="bandwidth_test", per_gpu=1.0)
@pytest.mark.measures(
    "copy_faults",
    "bandwidth_test_h2d",
    "bandwidth_test_d2h",
    "bandwidth_test_d2d",
)
def test_bandwidth_test(bandwidth_test: Mapping[str, ToolOutput], check: Check) -> None:
    """The CUDA sample bandwidthTest on each GPU, as builders run it.

    Measured: pinned copies of 32 MB, which lie inside the L2 cache of newer GPUs: the
    device-to-device figure is recorded and not judged. Not measured: whether the data arrived.
    """
    names = {
        name: name for name in ("bandwidth_test_h2d", "bandwidth_test_d2h", "bandwidth_test_d2d")
    }
    for gpu, output in bandwidth_test.items():
        _take(output, check, _readings(output, names), gpu)


@pytest.mark.session("load")
@pytest.mark.costs(1.0, load="p2p_bandwidth", per_gpu=3.0, slack=120.0)
@pytest.mark.measures("copy_faults", "p2p_gain", "p2p_write", "p2p_staged", "p2p_latency")
def test_p2p(p2p_run: ToolOutput, check: Check) -> None:
    """The CUDA sample p2pBandwidthLatencyTest: every pair with peer access on, held against the
    same pair with it off.

    Measured: copies of 160 MB in one direction, and the latency of a write. The sample copies zeros
    and checks nothing; nvbandwidth's peer copies show whether data arrives intact.
    """
    gain = {} if p2p_run.outcome == "fail" else p2p_bandwidth.gain(p2p_run)
    names = {"p2p_write": "p2p_on", "p2p_staged": "p2p_off", "p2p_latency": "p2p_latency_on"}
    _take(p2p_run, check, {"p2p_gain": gain, **_readings(p2p_run, names)})
