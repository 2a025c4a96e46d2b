"""The links between GPUs and host: their state as the driver reports it, and their data rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median

import pytest

from acceptance.core import parts
from acceptance.core.message import (
    Gap,
    Listed,
    Message,
    Quantity,
    Text,
    after_fault,
    english,
    no_answer,
    not_offered,
)
from acceptance.core.parts import GPUS, Component, Pair
from acceptance.core.verdict import Judgement
from acceptance.diagnosis import peer_paths, transports
from acceptance.expect import components
from acceptance.expect.sheet import Sheet
from acceptance.loads.collective.contract import COLLECTIVE_VARIANTS, WITH_MULTICAST, Ask
from acceptance.loads.miscompare import of_variant
from acceptance.machine import topology
from acceptance.machine.gpu import Gpu, uuids
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.observe import kernel_counters, pci
from acceptance.session.check import Check, Figures, loss, refuse
from acceptance.session.loads import Loads, Place, alone
from acceptance.session.tools import Outputs, Tools
from acceptance.suites.fixtures import collectives, gpu_links
from acceptance.tools import bandwidth_test, nvbandwidth, p2p_bandwidth

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
PEER_ACCESS_UNKNOWN = Message(
    english(
        "peer_access_unknown",
        "NVML does not say whether these two have peer access: see `nvidia-smi topo -p2p r`, and "
        "update a driver that does not tell it",
    )
)
NO_FIGURE = after_fault(
    Message(english("no_figure_counts", "no figure counts of a run with a fault"))
)
# A quarter of what the others copy: making and comparing the buffers takes most of a GPU's turn. On
# two H100s either direction was as fast as with 512 MiB within 0.3 %, with 64 MiB 2 % slower.
HOST_MIB = 128


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
    supported, differs = Figures(), Figures()
    for first in due_gpus:
        for second in due_gpus:
            if first == second:
                continue
            name = Pair(first.name, second.name)
            cell = cells.get((str(first.name), str(second.name)))
            pair = offered.get((first, second))
            if pair is not None and pair.p2p_read is not None and pair.p2p_write is not None:
                offers = {"path": f"{cell}", "read": pair.p2p_read, "write": pair.p2p_write}
                both = pair.p2p_read == pair.p2p_write == "ok"
                supported.add(
                    name,
                    float(both),
                    Message(
                        english("peer_path", "path {path}; read {read}, write {write}"), offers
                    ),
                )
            if name in wanted and cell is not None:
                differs.add(name, float(cell != wanted[name]), Message("found", {"text": cell}))
    untold = dict.fromkeys(check.components("p2p_supported"), no_answer(PEER_ACCESS_UNKNOWN)) | {
        Pair(a.name, b.name): not_offered(PEER_ACCESS_UNKNOWN)
        for (a, b), pair in offered.items()
        if pair.error is None
    }
    check.take("p2p_supported", supported, skipped=untold)
    check.take("gpu_path_differs", differs)


def _declared_paths(machine: Machine | None) -> dict[Component, str]:
    """The paths that the machine file declares, by pair, in both directions."""
    found: dict[Component, str] = {}
    for pair in machine.gpu_pair if machine is not None else ():
        if pair.path is not None:
            first, second = (parts.Gpu(index) for index in pair.between)
            found |= {Pair(first, second): pair.path, Pair(second, first): pair.path}
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


@dataclass(frozen=True, slots=True)
class Again:
    """Why all were measured a second time: what one of them was at first."""

    measurement: str
    component: Component
    first: Quantity

    @property
    def note(self) -> Message:
        """In words."""
        about = {"measurement": self.measurement, "component": str(self.component)}
        return Message(
            english(
                "all_measured_again",
                "all were measured a second time, and that counts: at first {measurement} of "
                "{component} was {first}",
            ),
            {**about, "first": self.first},
        )


def _take(
    runs: Outputs,
    check: Check,
    names: Mapping[str, str],
    *ratios: str,
    again: Again | None = None,
) -> None:
    """Journal the figures of every run, and these ratios; then raise, where a run proves nothing.

    A run that proves a fault leaves its own figures out, and the ratios. `again` is noted where it
    is the second run that counts.
    """
    whole = runs.requiring(names.values())
    check.faults("copy_faults", whole, quiet=True)
    for measurement, reading in names.items():
        notes = _notes(again, measurement, check)
        check.figures(measurement, whole, reading, NO_FIGURE, notes=notes)
    for ratio in ratios:
        untold = dict.fromkeys(check.components(ratio), NO_FIGURE) if whole.faulty else None
        check.ratio(ratio, skipped=untold, notes=_notes(again, ratio, check))
    whole.raise_failed()


def _notes(again: Again | None, measurement: str, check: Check) -> dict[Component, Text | None]:
    """The note of a second time at the components of the measurement that it was for."""
    return (
        {}
        if again is None or again.measurement != measurement
        else dict.fromkeys(check.components(measurement), again.note)
    )


def _run_and_take(
    run: Callable[[], Outputs],
    inventory: Inventory,
    check: Check,
    names: Mapping[str, str],
    *ratios: str,
) -> None:
    """Run a tool on every GPU and journal its figures; in a VM, where one of them is not what is
    usual, all are measured a second time, and that counts: other guests use the host's RAM too.
    """
    runs = run()
    again = _unusual(runs, check, names, ratios) if inventory.cpu.virtualised else None
    if again is not None:
        runs = run()
    # Of what is still unusual, its finding says it all.
    well = again is not None and _unusual(runs, check, names, ratios) is None
    _take(runs, check, names, *ratios, again=again if well else None)


def _unusual(
    runs: Outputs, check: Check, names: Mapping[str, str], ratios: Sequence[str]
) -> Again | None:
    """The GPU that is farthest behind its equals, or outside a limit; None where none is.

    None too where a run proves a fault, or nothing: then that is to be told.
    """
    runs = runs.requiring(names.values())
    if runs.failed or runs.faulty:
        return None
    values = {measurement: runs.values(reading) for measurement, reading in names.items()}
    behind: list[Again] = []
    outside: list[Again] = []
    for due in chain.from_iterable(map(check.due, (*ratios, *names))):
        own = values.get(due.measurement, {}).get(due.component)
        value = (
            own
            if due.siblings is None
            else due.siblings.ratio(due.component, values[due.siblings.of])
        )
        if value is None or due.limit is None or due.limit.grade(value) == "pass":
            continue
        found = outside if own is not None else behind
        found.append(Again(due.measurement, due.component, Quantity(value, due.unit)))
    behind.sort(key=lambda one: one.first.value)
    return next(iter((*behind, *outside)), None)


def _nvbandwidth(
    tools: Tools,
    testcases: Mapping[str, str],
    on: Sequence[Place],
    turns: Iterable[Sequence[Gpu]] = (),
    buffer_mib: int = nvbandwidth.BUFFER_MIB,
) -> Outputs:
    argv = partial(nvbandwidth.argv, testcases=tuple(testcases.values()), buffer_mib=buffer_mib)
    return tools.run(nvbandwidth.TOOL, argv, on=on, turns=turns)


def _alone(
    tools: Tools,
    due: Sequence[Gpu],
    testcases: Mapping[str, str],
    buffer_mib: int = nvbandwidth.BUFFER_MIB,
) -> Outputs:
    """These testcases once for each GPU; GPUs that share the way to the host take turns."""
    turns = topology.host_link_groups(tools.inventory, due)
    return _nvbandwidth(tools, testcases, alone(due), turns, buffer_mib)


@pytest.mark.session("load")
@pytest.mark.costs(0.1, load="nvbandwidth", per_turn=2.3, slack=35.0)
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
    tools: Tools, due_gpus: tuple[Gpu, ...], inventory: Inventory, check: Check
) -> None:
    """Copies between pinned host memory and each GPU, in both directions and in both at once; GPUs
    that share the way to the host take turns (nvbandwidth).

    Measured: the median of three samples of sixteen copies by the copy engine, 1 GB = 1e9 bytes;
    the last copy of each sample is compared with its pattern. Each direction is also compared with
    the other GPUs of that model on such a link. Where one is outside its limit or behind its
    equals in a VM, all are measured a second time, and that counts: other guests use the host's
    RAM too. Not measured: pageable memory, and several GPUs of one NUMA node at once.
    """
    _run_and_take(
        lambda: _alone(tools, due_gpus, HOST_COPIES, HOST_MIB),
        inventory,
        check,
        HOST_COPIES,
        "copy_h2d_ratio",
        "copy_d2h_ratio",
    )


@pytest.mark.session("load")
@pytest.mark.costs(0.1, load="nvbandwidth", per_turn=1.2, slack=41.0)
@pytest.mark.measures("copy_faults", "copy_local", "latency_host_device")
def test_device_alone(tools: Tools, due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """Copies inside each GPU's own memory, and the time of one access from the GPU to host memory
    (nvbandwidth).

    Measured: bytes copied, counted once though each is read and written; buffers of 512 MiB leave
    every L2 cache.
    """
    _take(_alone(tools, due_gpus, ALONE), check, ALONE)


@pytest.mark.session("load")
@pytest.mark.costs(0.1, load="nvbandwidth", per_pair=0.2, slack=225.0)
@pytest.mark.measures("copy_faults", "copy_d2d_read", "copy_d2d_write")
def test_peer_copies(tools: Tools, due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """Copies between GPUs that have peer access, pair by pair and way by way, every one verified
    (nvbandwidth).

    Measured: reads and writes by the copy engine of the first GPU of the pair. Data that arrives
    changed fails the check.
    """
    _take(_nvbandwidth(tools, PEER_COPIES, [Place(GPUS, due_gpus)]), check, PEER_COPIES)


@pytest.mark.session("load")
@pytest.mark.costs(0.1, load="bandwidth_test", per_gpu=0.4, slack=8.0)
@pytest.mark.measures(
    "copy_faults",
    "bandwidth_test_h2d",
    "bandwidth_test_d2h",
    "bandwidth_test_d2d",
)
def test_bandwidth_test(
    tools: Tools, due_gpus: tuple[Gpu, ...], inventory: Inventory, check: Check
) -> None:
    """The CUDA sample bandwidthTest on each GPU, as builders run it.

    Measured: pinned copies of 32 MB, which lie inside the L2 cache of newer GPUs: the
    device-to-device figure is recorded and not judged. Where one is outside its limit in a VM, all
    are measured a second time, and that counts. Not measured: whether the data arrived.
    """
    names = {
        name: name for name in ("bandwidth_test_h2d", "bandwidth_test_d2h", "bandwidth_test_d2d")
    }
    # One after the other: its host memory may be of any NUMA node.
    _run_and_take(
        lambda: tools.run(
            bandwidth_test.TOOL,
            partial(bandwidth_test.argv, device=0),
            on=alone(due_gpus),
            turns=(due_gpus,),
        ),
        inventory,
        check,
        names,
    )


@pytest.mark.session("load")
@pytest.mark.costs(0.1, load="p2p_bandwidth", per_pair=0.2, slack=155.0)
@pytest.mark.measures("copy_faults", "p2p_gain", "p2p_write", "p2p_staged", "p2p_latency")
def test_p2p(tools: Tools, due_gpus: tuple[Gpu, ...], check: Check) -> None:
    """The CUDA sample p2pBandwidthLatencyTest: every pair with peer access on, compared with
    the same pair with it off.

    Measured: copies of 160 MB in one direction, and the latency of a write. The sample copies zeros
    and checks nothing; nvbandwidth's peer copies show whether data arrives intact.
    """
    runs = tools.run(p2p_bandwidth.TOOL, p2p_bandwidth.argv, on=[Place(GPUS, due_gpus)])
    gain = {} if runs.failed or runs.faulty else p2p_bandwidth.gain(runs.only())
    unread = dict.fromkeys(check.components("p2p_gain"), NO_FIGURE) if runs.faulty else None
    check("p2p_gain", gain, skipped=unread)
    names = {"p2p_write": "p2p_on", "p2p_staged": "p2p_off", "p2p_latency": "p2p_latency_on"}
    _take(runs, check, names)


# Counts of the load of collectives, the rates of all GPUs together, and what is of each path.
COLLECTIVE_COUNTS = (
    "collective_miscompares",
    "collective_send_receive_miscompares",
    "collective_disagreements",
    "collective_miscompares_p2p_off",
    "collective_send_receive_miscompares_p2p_off",
    "collective_disagreements_p2p_off",
)
COLLECTIVE_RATES = (
    "collective_all_reduce",
    "collective_all_gather",
    "collective_reduce_scatter",
    "collective_all_to_all",
    "collective_broadcast",
    "collective_latency",
    "collective_all_reduce_p2p_off",
    "collective_all_gather_p2p_off",
    "collective_reduce_scatter_p2p_off",
    "collective_all_to_all_p2p_off",
    "collective_broadcast_p2p_off",
    "collective_latency_p2p_off",
    "collective_send_receive_p2p_off",
)
PATH_RATE = ("collective_send_receive", "collective_send_receive_ratio")
# Due where the machine file asks for them.
MULTICAST_COUNTS = ("collective_miscompares_multicast", "collective_disagreements_multicast")
MULTICAST_RATES = (
    "collective_all_reduce_multicast",
    "collective_all_gather_multicast",
    "collective_reduce_scatter_multicast",
    "collective_all_to_all_multicast",
    "collective_broadcast_multicast",
    "collective_latency_multicast",
)
TRANSPORTS = ("transport_faults", "transport_doubts", "transport_faults_p2p_off")


@pytest.mark.session("load")
# Two or three arms, each of which starts a process for each GPU; the slack is for slow links, and
# for a rank that hangs, which the load itself ends after a minute.
@pytest.mark.costs(2.0, load="collective", per_gpu=1.0, slack=180.0)
@pytest.mark.measures(
    *COLLECTIVE_COUNTS,
    *MULTICAST_COUNTS,
    *COLLECTIVE_RATES,
    *PATH_RATE,
    *TRANSPORTS,
    *MULTICAST_RATES,
)
def test_collectives(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    load_s: Mapping[str, float],
    inventory: Inventory,
    model_sheets: tuple[Sheet, ...],
    check: Check,
) -> None:
    """Collective operations between all GPUs through NCCL, as training uses them: as the machine
    comes, and with peer access switched off.

    Measured: bus bandwidth as nccl-tests defines it, of 1 GiB, and of 128 MiB on each path; every
    element compared at its destination; the way that NCCL chose for each path. Not measured: NVLink
    multicast, which is off unless the machine file asks for it, and other machines.
    """
    multicast = bool(check.due(MULTICAST_RATES[0]))
    arms = WITH_MULTICAST if multicast else COLLECTIVE_VARIANTS
    every = Place(GPUS, due_gpus)
    seconds = load_s["collective"] / len(arms)
    results = loads.run(
        lambda _: Ask(backend="nccl", ranks=len(due_gpus), seconds=seconds, arms=arms), on=[every]
    )
    check.all(results, but=(*PATH_RATE, *MULTICAST_RATES))
    output = results.outputs[GPUS]
    links = transports.pair_links(inventory, due_gpus, model_sheets)
    rate, ratio = PATH_RATE
    rates = results.values(rate)
    groups = {due.siblings.among for due in check.due(ratio) if due.siblings is not None}
    slow = transports.explain(rates, groups, due_gpus, links, collectives.trials(results))
    check(rate, rates, notes=slow)
    check.ratio(ratio, notes=slow)
    # The ways that NCCL chose for each path, in both arms.
    for arm in COLLECTIVE_VARIANTS:
        ways = collectives.judge_transports(output, every, inventory, links, arm).items()
        check.take(of_variant("transport_faults", arm), collectives.judged(ways, "fault"))
        if arm == "default":
            check.take("transport_doubts", collectives.judged(ways, "doubt"))
    if multicast:
        collectives.require_multicast(output)
        for name in MULTICAST_RATES:
            check(name, results.values(name))


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
# Each of them measures a rate of the paths.
@pytest.mark.follows("link.p2p", "link.peer_copies", "link.collectives")
@pytest.mark.measures("link_contradictions")
def test_peers(
    inventory: Inventory,
    due_gpus: tuple[Gpu, ...],
    judged_before: Sequence[Judgement],
    check: Check,
) -> None:
    """All that this run has said of each path between two GPUs, compared with each other:
    topology, peer access, NVLinks, copies and collectives.

    Measured: sources that exclude each other, such as peer access that is offered and copies that
    are no faster with it, or NVLinks that are up and a rate that is PCI Express's. What fails by a
    limit of its own is not counted again. Nothing is sent here. Not measured: paths of which no
    rate was measured, which are skipped.
    """
    links = transports.pair_links(inventory, due_gpus, ())
    due = check.components(peer_paths.CONTRADICTIONS)
    counts = Figures()
    for path in peer_paths.paths(links, due_gpus, judged_before):
        if path.pair not in due:
            continue
        if not path.rates and not path.contradictions:
            counts.skip(
                path.pair,
                not_offered(
                    Message(
                        english(
                            "peers_no_rate",
                            "no check of this run measured a rate between the two, so nothing can "
                            "be compared: run link.p2p and link.peer_copies too",
                        )
                    )
                ),
            )
        else:
            counts.add(path.pair, float(len(path.open)), peer_paths.note(path))
    check.take(peer_paths.CONTRADICTIONS, counts)


# Measurement -> the files with the counters of the kernel (AER) whose growth it is.
AER = {
    "aer_uncorrected": ("aer_dev_nonfatal", "aer_dev_fatal"),
    "aer_corrected": ("aer_dev_correctable",),
}


@pytest.mark.session("host-after")
@pytest.mark.costs(0.1)
@pytest.mark.measures(*AER, "aer_doubts")
def test_aer(
    inventory: Inventory,
    due_gpus: tuple[Gpu, ...],
    machine: Machine | None,
    root: Path,
    check: Check,
) -> None:
    """Errors of PCI Express that the kernel counted during the run (AER), of each GPU and of the
    bridges above it, up to the root port.

    Measured: the growth of the kernel's counters from before the run until after it, where it has
    any: fatal and non-fatal errors together, and corrected ones, which are also compared between
    equal GPUs on equal links. What bridges above several GPUs counted belongs to all of them
    together. Not measured: errors that the firmware keeps to itself.
    """
    since = kernel_counters.since(inventory, kernel_counters.AER, root)
    answering = [gpu for gpu in due_gpus if gpu.answers]
    fallen = [gpu.name for gpu in answering if not pci.answers(gpu.pci_address, root)]
    named = Listed(tuple(map(str, fallen)))
    left_out = after_fault(Message("gpus_fallen_off_before", {"gpus": named}))
    skipped: dict[Component, Gap] = {
        part: left_out for part in since if since[part].lost and any(map(part.holds, fallen))
    }
    values: dict[str, dict[Component, float]] = {}
    for measurement, files in AER.items():
        values[measurement], notes = {}, {}
        for part in check.components(measurement):
            own = since[part].of(*files)
            count = sum(n for name, n in own.grown.items() if " TOTAL_ERR_" in name)
            if count or not own.lost:
                values[measurement][part] = float(count)
                told = tuple(f"{name} +{n}" for name, n in own.grown.items() if n)
                notes[part] = Message("note", {"text": Listed(told)}) if told else None
        check(
            measurement,
            values[measurement],
            skipped=skipped,
            notes=notes,
            serials=uuids(due_gpus),
        )
    corrected = values["aer_corrected"]
    equal = components.link_siblings(machine, inventory, [gpu.name for gpu in due_gpus]).values()
    doubts = {
        part: float(count > 0 and any(_only_one(part, group, corrected) for group in equal))
        for part, count in corrected.items()
    }
    check("aer_doubts", doubts, skipped=skipped, serials=uuids(due_gpus))
    lost = [(part, since[part].lost) for part in check.components("aer_doubts") - skipped.keys()]
    refuse(loss(part, Listed(names)) for part, names in lost if names)


def _only_one(
    part: Component, group: Sequence[Component], counts: Mapping[Component, float]
) -> bool:
    """Whether a part is one of a group of which most others counted nothing."""
    others = [counts[one] for one in group if one != part and one in counts]
    return part in group and bool(others) and median(others) == 0
