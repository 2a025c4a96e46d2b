"""The observed machine: its inventory as types. What was not captured is None."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dimm:
    """One memory module. What the firmware does not give is None.

    `slot` is unique on the machine. `rated_mts` is what the module is specified for,
    `configured_mts` what it runs at, in megatransfers a second. `data_width_bits` leaves the check
    bits out, `total_width_bits` has them.
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


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node, and whether this user may open it for reading and writing."""

    path: str
    openable: bool


@dataclass(frozen=True, slots=True)
class Board:
    """The board and the system. What is not given is None.

    `serial` is for root only. `nvidia_driver` is the version of the loaded kernel module, None when
    it is not loaded. `secure_boot` is None on a machine that was not started through UEFI.
    `gpu_nodes` is each GPU's device node by its PCI address, as the driver numbers them; empty
    where it does not show that.
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
    nouveau_loaded: bool
    nvidia_driver: str | None
    device_nodes: tuple[DeviceNode, ...]
    gpu_nodes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Cores of one kind, so that a slow one can be held against its equals.

    `name` is "all" on a machine of one kind, else "performance", "efficiency", or "other" for what
    the kernel puts in neither. Each element of `cores` is one physical core: the numbers of its
    logical CPUs.
    """

    name: str
    cores: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Cache:
    """Caches of one level, kind ("data", "instruction", "unified") and size; `instances` counts
    them over the machine.
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
    `governor` is "mixed: a, b" where CPUs differ, None where there is no cpufreq. `virtualised` is
    the hypervisor flag of /proc/cpuinfo, None on architectures that have no flags line.
    """

    model: str | None
    vendor: str | None
    sockets: int | None
    cores: int | None
    threads: int
    core_groups: tuple[CoreGroup, ...]
    caches: tuple[Cache, ...]
    governor: str | None
    max_mhz: float | None
    virtualised: bool | None


@dataclass(frozen=True, slots=True)
class GpuCounters:
    """Counters and states of health. None: NVML does not offer it, or refuses it.

    `ecc_*` count memory errors of the whole device since the driver was loaded, `ecc_*_total` over
    its life. `remapped_*` are rows, `retired_*` pages. `nvlink_*` are sums over the active links;
    None where one of them does not tell, or none is active.
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
class GpuProcess:
    """A process that uses a GPU.

    `name` and `memory_bytes` (of the GPU's memory) are None where nobody tells them.
    """

    pid: int
    name: str | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Users:
    """Who uses a GPU at one moment. None: NVML does not tell it."""

    compute_processes: tuple[GpuProcess, ...] | None
    graphics_processes: tuple[GpuProcess, ...] | None
    display_active: bool | None

    def listed(self) -> tuple[GpuProcess, ...]:
        """Every process that is listed; one that computes and draws is in it twice."""
        return (*(self.compute_processes or ()), *(self.graphics_processes or ()))


@dataclass(frozen=True, slots=True)
class GpuTraits:
    """What a GPU is and how it is set up. None: NVML does not offer it, or refuses it.

    `compute_capability` is "9.0". Clocks are MHz, power limits W, temperatures degC (absolute; from
    Ada on often not offered). `max_link_gen` is what the GPU alone can do, `max_link_*_here` what
    GPU and slot can do together. `power_limit_w` is the limit that is enforced. `compute_mode` is
    "default", "exclusive-thread", "prohibited" or "exclusive-process". `cpu_affinity` lists logical
    CPUs. `fabric_state` is "not-supported", "not-started", "in-progress" or "completed", and
    `fabric_status` NVML's return code in that record. `virtualised`: a hypervisor is between,
    passthrough counted. `memory_thermometer`: whether its memory's temperature is told.
    `utilisation` is the share of the last moment (a sixth of a second to one second, nvml.h) in
    which a kernel ran on it.
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


@dataclass(frozen=True, slots=True)
class Inventory:
    """The observed machine.

    `pci` holds NVIDIA's functions only; `places` where GPUs and network cards hang in the PCI tree,
    by address.
    """

    cpu: Cpu
    memory: Memory
    disks: tuple[Disk, ...]
    links: tuple[NetworkLink, ...]
    pci: tuple[PciFunction, ...]
    board: Board
    nvml: NvmlAnswer
    places: dict[str, PciPlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Memory:
    """The machine's memory.

    `total_bytes` is what the kernel manages, a little less than what is plugged in;
    `available_bytes` what a program could take now. `dimms` is None when they could not be read
    (root only), and `dimms_unread` then says why and the cure; `slots_total` counts empty slots
    too; `ecc` is the firmware's own word.
    """

    total_bytes: int
    available_bytes: int | None
    dimms: tuple[Dimm, ...] | None
    dimms_unread: str | None
    slots_total: int | None
    ecc: str | None


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """One link. What the kernel does not give is None.

    `kind` is "ethernet", "wireless" or "infiniband"; an InfiniBand port is named "mlx5_0/1".
    `speed_mbps` is given while the link is up. `virtual` means that a hypervisor, not a card, is
    behind it. `bus` is that of the device itself ("pci", "usb", "virtio", ...);
    `is_virtual_function` marks one that SR-IOV cut out of a card. `pcie_speed_gts` (of one lane)
    and `pcie_width` (lanes) are those of a card's own link.
    """

    name: str
    kind: str
    driver: str | None
    speed_mbps: int | None
    mac: str | None
    up: bool
    virtual: bool
    pci_address: str | None
    bus: str | None = None
    is_virtual_function: bool = False
    pcie_speed_gts: float | None = None
    pcie_width: int | None = None


@dataclass(frozen=True, slots=True)
class NvLink:
    """One link of a GPU. None: NVML does not offer or refuses it, or the link is not active.

    `version` is "4.0", `speed_gbs` GB/s in one direction. `remote_address` is the PCI address of
    the other end, `remote_kind` "gpu", "switch" or "unknown". The counters are of this link.
    """

    link: int
    active: bool
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

    `error` is set when it stopped answering; what was read before that is kept.

    It has stopped when it refuses its identity (address, UUID, name, memory), or is lost. Whatever
    else is refused is None, by itself. `traits`, `counters` and `links` are None and empty when it
    stopped answering before they were read.
    """

    index: int
    uuid: str | None
    name: str | None
    pci_address: str | None
    serial: str | None
    vbios: str | None
    memory_bytes: int | None
    error: str | None
    error_code: int | None
    traits: GpuTraits | None = None
    counters: GpuCounters | None = None
    links: tuple[NvLink, ...] = ()


@dataclass(frozen=True, slots=True)
class NvmlAnswer:
    """What the library said.

    `error` is set when it could not be asked; `error_code` is NVML's own number where it gave one.

    `pairs` holds every ordered pair of the GPUs that answered.
    """

    driver_version: str | None
    cuda_driver_version: str | None
    devices: tuple[NvmlDevice, ...]
    error: str | None
    error_code: int | None
    pairs: tuple[NvmlPair, ...] = ()


@dataclass(frozen=True, slots=True)
class NvmlPair:
    """From GPU `a` to GPU `b` (NVML's indices). None: NVML does not offer it.

    `path` is what they have in common on the PCI bus: "INTERNAL" (one board), "PIX" (one switch),
    "PXB" (several), "PHB" (a host bridge), "NODE" (a NUMA node), "SYS" (nothing but the system).
    `p2p_*` are "ok", "chipset-not-supported", "gpu-not-supported", "topology-not-supported",
    "disabled-by-regkey", "not-supported" or "unknown".
    """

    a: int
    b: int
    path: str | None
    p2p_read: str | None
    p2p_write: str | None
    p2p_nvlink: str | None


@dataclass(frozen=True, slots=True)
class PciFunction:
    """One function of a card. What the kernel does not give is None.

    `address` is "0000:01:00.0", `device_id` "10de:2684", `class_code` "030000". `answers` is False
    when the configuration space reads as all ones (lspci's `rev ff`): the card has fallen off the
    bus; None when it could not be read. Speeds are gigatransfers a second of one lane, widths
    lanes; `slot_max_*` is what the port above the card can do. `is_virtual_function` marks a part
    that SR-IOV cut out of another function. `slot` is the slot's name, as root reads it in the
    firmware's tables, else the kernel's.
    """

    address: str
    device_id: str
    class_code: str
    is_display: bool
    is_virtual_function: bool
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
    """A function's place.

    `host_bridge` is "pci0000:00"; `bridges` are the addresses between it and the function, the
    nearest last.

    `numa_node` and `cpus` (logical CPUs that are near) are None where the kernel does not tell.
    """

    address: str
    host_bridge: str
    bridges: tuple[str, ...]
    numa_node: int | None
    cpus: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk. What the kernel does not give is None.

    `kind` is "nvme", "ssd", "hdd" or "virtual"; `transport` "nvme" over PCIe, else as the kernel's
    tree shows it ("sata", "sas", "usb", "virtio", ...).
    """

    name: str
    model: str | None
    serial: str | None
    size_bytes: int
    kind: str | None
    transport: str | None
    firmware: str | None

    @property
    def component(self) -> str:
        """What its measurements belong to."""
        return f"disk:{self.name}"
