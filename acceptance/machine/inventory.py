"""The observed machine: its inventory as types.

A value that was not captured is None. What a part is named by (its slot, name or address) is always
there. A value that to observe this machine always gives, such as `Memory.total_bytes`, can be None
only in an inventory that a journal recorded: `known` takes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from acceptance.core.limit import GIB
from acceptance.core.message import Text, Unmeasured
from acceptance.core.parts import Component, part

_T = TypeVar("_T")
GPU_GIB = 4.0  # RAM for the process that feeds one GPU
LEAST_SHARE = 0.25  # minimum share of the planned RAM, however much the GPUs' loads may need


def known(value: _T | None) -> _T:
    """A value that to observe this machine always gives.

    Raises ValueError for None, which only an inventory from a journal can have there.
    """
    if value is None:
        raise ValueError("this inventory was not observed on this machine: a value is missing")
    return value


@dataclass(frozen=True, slots=True)
class Dimm:
    """One memory module. None: the firmware does not give the value.

    `slot` is unique on the machine. `rated_mts` is the module's specified rate, `configured_mts`
    its current one, in megatransfers a second. `data_width_bits` is without the check bits,
    `total_width_bits` with them.
    """

    slot: str
    size_bytes: int | None
    kind: str | None
    rated_mts: int | None
    configured_mts: int | None
    manufacturer: str | None
    part_number: str | None
    serial: str | None
    data_width_bits: int | None
    total_width_bits: int | None
    bank: str | None

    @property
    def component(self) -> Component:
        """The component of its facts."""
        return part("dimm", self.slot)


@dataclass(frozen=True, slots=True)
class EmptySlot:
    """A slot without a module: its name, unique among all slots, and its bank where it has one."""

    slot: str
    bank: str | None


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node, and whether this user may open it for reading and writing."""

    path: str
    openable: bool


@dataclass(frozen=True, slots=True)
class Board:
    """The board and the system. None: not given.

    `serial` is for root only. `nvidia_driver` is the version of the loaded kernel module, None when
    it is not loaded. `secure_boot` is None on a machine that was not started through UEFI.
    `gpu_nodes` maps each GPU's PCI address to its device node, as the driver numbers them; empty
    where the driver does not show that.
    """

    vendor: str | None
    name: str | None
    product: str | None
    serial: str | None
    bios_vendor: str | None
    bios_version: str | None
    bios_date: str | None
    secure_boot: bool | None
    kernel: str | None
    os: str | None
    hostname: str | None
    machine_id: str | None
    boot_id: str | None
    nouveau_loaded: bool | None
    nvidia_driver: str | None
    device_nodes: tuple[DeviceNode, ...]
    gpu_nodes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Cores of one kind, so that a slow core can be compared with equal ones; or of one socket.

    `name` is "all" on a machine of one kind, else "performance", "efficiency", or "other" for cores
    that the kernel puts in neither; of a socket "socket0". Each element of `cores` is one physical
    core: the numbers of its logical CPUs.
    """

    name: str
    cores: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Cache:
    """Caches of one level, kind ("data", "instruction", "unified") and size.

    `instances` counts them over the machine.
    """

    level: int
    kind: str
    size_bytes: int | None
    instances: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors of the machine, online CPUs only.

    `cores` are physical, `threads` logical; both, and `sockets`, count the whole machine.
    `sockets`, `cores` and `core_groups` are None or empty where the kernel shows no topology.
    `socket_cores` are the cores by the socket whose memory is their own: one group where no NUMA
    nodes tell the memory of several sockets apart, none where the kernel shows no topology.
    `governor` is "mixed: a, b" where CPUs differ, None where there is no cpufreq. `virtualised` is
    the hypervisor flag of /proc/cpuinfo. Arm has no such flag: there it is True where the
    firmware's tables name a virtual machine, else None.
    """

    model: str | None
    vendor: str | None
    sockets: int | None
    cores: int | None
    threads: int | None
    core_groups: tuple[CoreGroup, ...]
    caches: tuple[Cache, ...]
    governor: str | None
    max_mhz: float | None
    virtualised: bool | None
    socket_cores: tuple[CoreGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuCounters:
    """Health counters and states. None: NVML does not offer the value, or refuses it.

    `ecc_*` count memory errors of the whole device since the driver was loaded, `ecc_*_total` over
    its life. `remapped_*` are rows, `retired_*` pages. `nvlink_*` are sums over the active links;
    None where one of them gives no value, or none is active.
    """

    ecc_corrected: int | None
    ecc_uncorrected: int | None
    ecc_corrected_total: int | None
    ecc_uncorrected_total: int | None
    remapped_corrected: int | None
    remapped_uncorrected: int | None
    remap_pending: bool | None
    remap_failed: bool | None
    retired_single: int | None
    retired_double: int | None
    retired_pending: bool | None
    pcie_replays: int | None
    nvlink_replays: int | None
    nvlink_recoveries: int | None
    nvlink_crc_errors: int | None


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """What the driver says of a GPU's health. None: NVML does not offer the value.

    `*_repair_pending`: a memory channel, or a group of processors (TPC), is replaced by a spare one
    at the next reset. `banks_without_spare` are the banks of memory that have no spare row left.
    `recovery_action` is nvml.h's nvmlDeviceGpuRecoveryAction_t, or what older drivers say instead.
    `unanswered` has the functions that failed, each with NVML's error.
    """

    sram_threshold_exceeded: bool | None = None
    channel_repair_pending: bool | None = None
    tpc_repair_pending: bool | None = None
    memory_unrepairable: bool | None = None
    banks_without_spare: int | None = None
    inforom_corrupt: bool | None = None
    recovery_action: int | None = None
    unanswered: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a GPU.

    `name` and `memory_bytes` (of GPU memory) are None where they are not known.
    """

    pid: int
    name: str | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Users:
    """The users of a GPU at one moment. None: NVML does not report it."""

    compute_processes: tuple[GpuProcess, ...] | None
    graphics_processes: tuple[GpuProcess, ...] | None
    display_active: bool | None

    def listed(self) -> tuple[GpuProcess, ...]:
        """Every listed process; a process that computes and draws occurs twice."""
        return (*(self.compute_processes or ()), *(self.graphics_processes or ()))


@dataclass(frozen=True, slots=True)
class GpuTraits:
    """Properties and settings of a GPU. None: NVML does not offer the value, or refuses it.

    `compute_capability` is "9.0". Clocks are MHz, power limits W, temperatures degC (absolute; from
    Ada on often not offered). `max_link_gen` is the maximum of the GPU alone, `max_link_*_here`
    that of GPU and slot together. `power_limit_w` is the enforced limit. `compute_mode` is
    "default", "exclusive-thread", "prohibited" or "exclusive-process". `cpu_affinity` lists logical
    CPUs. `fabric_state` is "not-supported", "not-started", "in-progress" or "completed", or the
    number of another one; `fabric_status` is NVML's return code in that record, `fabric_health` and
    `fabric_summary` are what its newer versions have besides, and `fabric_error` is NVML's error
    where asking failed. `*_pending` are modes after the next reset. `virtualised`: the GPU is
    behind a hypervisor, passthrough included. `memory_thermometer`: whether NVML reports its
    memory's temperature. `utilisation` is the share of the last moment (a sixth of a second to one
    second, nvml.h) in which a kernel ran on it. `fan`: whether NVML reports the speed of its fans.
    """

    compute_capability: str | None
    cuda_cores: int | None
    max_sm_clock_mhz: float | None
    max_memory_clock_mhz: float | None
    memory_bus_bits: int | None
    max_link_gen: int | None
    max_link_gen_here: int | None
    max_link_width_here: int | None
    power_limit_w: float | None
    power_limit_default_w: float | None
    max_temperature_c: float | None
    slowdown_temperature_c: float | None
    shutdown_temperature_c: float | None
    memory_max_temperature_c: float | None
    mig_enabled: bool | None
    compute_mode: str | None
    display_active: bool | None
    persistence: bool | None
    ecc_enabled: bool | None
    numa_node: int | None
    cpu_affinity: tuple[int, ...] | None
    fabric_state: str | None
    fabric_status: int | None
    virtualised: bool | None
    compute_processes: tuple[GpuProcess, ...] | None
    graphics_processes: tuple[GpuProcess, ...] | None
    memory_thermometer: bool | None = None
    utilisation: float | None = None
    fan: bool | None = None
    fabric_health: int | None = None
    fabric_summary: int | None = None
    fabric_error: str | None = None
    ecc_pending: bool | None = None
    mig_pending: bool | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The observed machine.

    `pci` holds NVIDIA's functions only; `places` holds the places of GPUs and network cards in the
    PCI tree, by address. `writable` are the sources ("/dev/sda2") of the local filesystems that
    were mounted and could be written to. `counters` are the kernel's counters of faults, by class
    of components, component and name. A list that was not captured is None; an empty one shows that
    there is no such part.
    """

    cpu: Cpu
    memory: Memory
    disks: tuple[Disk, ...] | None
    links: tuple[NetworkLink, ...] | None
    pci: tuple[PciFunction, ...] | None
    board: Board
    nvml: NvmlAnswer
    places: dict[str, PciPlace] = field(default_factory=dict)
    writable: tuple[str, ...] | None = None
    counters: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory.

    `total_bytes` is what the kernel manages, a little less than what is installed;
    `available_bytes` is what a program could allocate now. `dimms` is None when the modules could
    not be read (root only); `dimms_unread` then says why, with the cure, and `dimms_unread_why`
    which kind of reason it is (None in the journals of an older rigproof). `slots_total` includes
    empty slots, which `empty_slots` names; `ecc` is as the firmware reports it.
    """

    total_bytes: int | None
    available_bytes: int | None
    dimms: tuple[Dimm, ...] | None
    dimms_unread: Text | None
    slots_total: int | None
    ecc: str | None
    empty_slots: tuple[EmptySlot, ...] | None = None
    dimms_unread_why: Unmeasured | None = None

    @property
    def free_bytes(self) -> int:
        """What a program could allocate now; half of the total where the kernel (before 3.14) does
        not report it. Raises ValueError where the total is not known either.
        """
        return (
            self.available_bytes
            if self.available_bytes is not None
            else known(self.total_bytes) // 2
        )

    def beside_gpus(self, planned_gib: float, gpus: int) -> float:
        """GiB of RAM that a test may fill while so many GPUs are loaded.

        The planned amount, less where that would leave too little for the processes that feed the
        GPUs, but at least LEAST_SHARE of it. Unchanged where the kernel does not report what is
        free.
        """
        if self.available_bytes is None:
            return planned_gib
        room_gib = self.available_bytes / GIB - GPU_GIB * gpus
        return min(planned_gib, max(room_gib, LEAST_SHARE * planned_gib))


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One network link. None: the kernel does not give the value.

    `kind` is "ethernet", "wireless" or "infiniband"; an InfiniBand port is named "mlx5_0/1".
    `speed_mbps` is given while the link is up. `virtual` means that the device belongs to a
    hypervisor, not to a card. `bus` is that of the device itself ("pci", "usb", "virtio", ...);
    `is_virtual_function` marks an SR-IOV virtual function of a card. `pcie_speed_gts` (of one lane)
    and `pcie_width` (lanes) are those of the card's PCIe link, `max_pcie_*` the card's maximum,
    `slot_max_pcie_*` that of the port above it. `device_id` is "15b3:1021", `guid` that of an
    RDMA device. `state` is the kernel's word for the link ("up", "ACTIVE"), `phys_state` that for
    the physical layer of an InfiniBand port ("LinkUp"). `rdma` names the RDMA port of an Ethernet
    interface, such as "mlx5_0/1". `counters` are the kernel's error counters by their file names.
    """

    name: str
    kind: str | None
    driver: str | None
    speed_mbps: int | None
    mac: str | None
    up: bool | None
    virtual: bool | None
    pci_address: str | None
    bus: str | None = None
    is_virtual_function: bool | None = None
    pcie_speed_gts: float | None = None
    pcie_width: int | None = None
    max_pcie_speed_gts: float | None = None
    max_pcie_width: int | None = None
    slot_max_pcie_speed_gts: float | None = None
    slot_max_pcie_width: int | None = None
    device_id: str | None = None
    guid: str | None = None
    state: str | None = None
    phys_state: str | None = None
    rdma: str | None = None
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def component(self) -> Component:
        """The component of its facts."""
        return part("net", self.name)


@dataclass(frozen=True, slots=True)
class NvLink:
    """One NVLink of a GPU.

    `version` is "4.0", `speed_gbs` GB/s in one direction. `remote_address` is the PCI address of
    the other end, `remote_kind` "gpu", "switch" or "unknown". The counters are of this link. None:
    NVML does not offer or refuses the value, or the link is not active.
    """

    link: int | None
    active: bool | None
    version: str | None
    speed_gbs: float | None
    remote_address: str | None
    remote_kind: str | None
    replays: int | None
    recoveries: int | None
    crc_errors: int | None


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One GPU as the driver knows it.

    `error` is set when the GPU stopped answering; values that were read before are kept. It has
    stopped when it refuses its identity (address, UUID, name, memory), or is lost. Any other
    refused value is None by itself. `traits`, `counters`, `health` and `links` are None and empty
    when it stopped answering before they were read.
    """

    index: int | None
    uuid: str | None
    name: str | None
    pci_address: str | None
    serial: str | None
    vbios: str | None
    memory_bytes: int | None
    error: Text | None
    error_code: int | None
    traits: GpuTraits | None = None
    counters: GpuCounters | None = None
    links: tuple[NvLink, ...] = ()
    health: GpuHealth | None = None


@dataclass(frozen=True, slots=True)
class NvmlAnswer:
    """NVML's answers.

    `error` is set when NVML could not be used; `error_code` is its own number where it gave one,
    and `hung` says whether the driver did not answer in time. `pairs` holds every
    ordered pair of the GPUs that answered.
    """

    driver_version: str | None
    cuda_driver_version: str | None
    devices: tuple[NvmlDevice, ...]
    error: Text | None
    error_code: int | None
    pairs: tuple[NvmlPair, ...] = ()
    hung: bool | None = None


@dataclass(frozen=True, slots=True)
class NvmlPair:
    """The path from GPU `a` to GPU `b` (NVML's indices). None: NVML does not offer the value.

    `path` is what they have in common on the PCI bus: "INTERNAL" (one board), "PIX" (one switch),
    "PXB" (several), "PHB" (a host bridge), "NODE" (a NUMA node), "SYS" (nothing but the system).
    `p2p_*` are "ok", "chipset-not-supported", "gpu-not-supported", "topology-not-supported",
    "disabled-by-regkey", "not-supported" or "unknown". `error` is NVML's where it failed to answer.
    """

    a: int
    b: int
    path: str | None
    p2p_read: str | None
    p2p_write: str | None
    p2p_nvlink: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PciFunction:
    """One PCI function. None: the kernel does not give the value.

    `address` is "0000:01:00.0", `device_id` "10de:2684", `class_code` "030000". `answers` is False
    when the configuration space reads as all ones (lspci's `rev ff`): the card has fallen off the
    bus; None when it could not be read. Speeds are gigatransfers a second of one lane, widths
    lanes; `slot_max_*` is the maximum of the port above the card. `is_virtual_function` marks an
    SR-IOV virtual function of another one. `slot` is the slot's name from the firmware's tables
    (root only), else the kernel's.
    """

    address: str
    device_id: str | None
    class_code: str | None
    is_display: bool | None
    is_virtual_function: bool | None
    driver: str | None
    answers: bool | None
    revision: str | None
    link_speed_gts: float | None
    link_width: int | None
    max_link_speed_gts: float | None
    max_link_width: int | None
    slot_max_link_speed_gts: float | None
    slot_max_link_width: int | None
    numa_node: int | None
    slot: str | None = None


@dataclass(frozen=True, slots=True)
class PciPlace:
    """The place of a function in the PCI tree.

    `host_bridge` is "pci0000:00"; `bridges` are the addresses between it and the function, the
    nearest last. `numa_node` and `cpus` (nearby logical CPUs) are None where the kernel does not
    give them.
    """

    address: str
    host_bridge: str
    bridges: tuple[str, ...]
    numa_node: int | None
    cpus: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk. None: the kernel does not give the value.

    `kind` is "nvme", "ssd", "hdd" or "virtual"; `transport` is "nvme" over PCIe, else as the
    kernel's device tree shows it ("sata", "sas", "usb", "virtio", ...). `shows_link` says whether
    the kernel shows its link, and what disk and slot can have.
    """

    name: str
    model: str | None
    serial: str | None
    size_bytes: int | None
    kind: str | None
    transport: str | None
    firmware: str | None
    shows_link: bool | None = None

    @property
    def component(self) -> Component:
        """The component of its measurements."""
        return part("disk", self.name)
