"""What the table of sensitivity tells: which measurements of which machines make a row, in words.

Pure data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from acceptance.core.dtype import DTYPES
from acceptance.expect import components, measurements

# "any": the fault shows in all of these measurements, and the first that finds it is enough.
# "each": these are separate faults, and the row tells the largest of what is needed.
Mode = Literal["any", "each"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One row: `pattern` names its measurements (a whole regular expression), `machines` where
    they are judged.
    """

    what: str
    pattern: str
    machines: tuple[str, ...]
    mode: Mode = "each"
    less: bool = True


D = f"({'|'.join(DTYPES)})"
MODE = "(float|tensor|double)"
ALONE = ("1xh200", "4090-7950x")
BESIDE = ("2x4090", "8xh200")
ONE = ("1xh200",)
BOARD = ("8xh200",)
DESK = ("4090-7950x",)
ALL = ("all that can be declared",)

SLOW = (
    *(
        Asked(
            f"a GPU alone that is slow in {d}, by its sheet",
            f"(gemm|burn)_{d}(_short)?",
            ALONE,
            "any",
        )
        for d in DTYPES
    ),
    Asked(
        "one GPU slow in sustained products, beside its equals", rf"(gemm|burn)_{D}_ratio", BESIDE
    ),
    Asked("one GPU slow in short products, beside its equals", rf"gemm_{D}_short_ratio", BESIDE),
    Asked("one GPU slow in gpu-burn, beside its equals", rf"gpu_burn_ratio_{MODE}", BESIDE),
    Asked(
        "one GPU slow in copies from and to the host (nvbandwidth), beside its equals",
        r"copy_(h2d|d2h)_ratio",
        BESIDE,
    ),
    Asked(
        "one GPU slow in copies inside its memory, beside its equals",
        r"(copy_own_d2d|vram_copy)_ratio",
        BESIDE,
    ),
    Asked(
        "a disk slower than its equals, below the bound of the warning",
        r"storage_(write|read)_ratio",
        ALL,
    ),
    Asked("rate lost when hot, last lap of the burn against the first", rf"burn_{D}_kept", ONE),
    Asked("clock lost when hot, last lap of the burn against the first", r"burn_clock_kept", ONE),
    Asked(
        "slow copies from and to the host, by what card and slot can do",
        r"(copy|copy_own|bandwidth_test)_(h2d|d2h)",
        ALONE,
    ),
    Asked("slow memory of a GPU alone (copies inside it)", r"copy_own_d2d|vram_copy", ALONE),
    Asked("patterns that run slower than a copy in the same memory", r"vram_rate", ALONE),
    Asked(
        "slow copies between two GPUs over NVLink",
        r"p2p_write|copy_d2d_(read|write)|copy_own_p2p",
        BOARD,
        "any",
    ),
    Asked("slow copies between two GPUs over PCI Express", r"p2p_gain", ("2x4090",)),
    Asked(
        "one way between two GPUs slow in NCCL, beside its equals",
        r"collective_send_receive_ratio",
        BOARD,
    ),
    Asked(
        "slow collective operations and sends over NVLink, by the links or published figures",
        r"collective_(?!latency|send_receive_ratio|disagreements)\w+(?<!_p2p_off)(?<!_multicast)(?<!miscompares)",
        BOARD,
    ),
    Asked(
        "the same through host memory (NCCL_P2P_DISABLE=1), by the slowest PCI Express link",
        r"collective_(?!latency|disagreements)\w+(?<!miscompares)_p2p_off",
        BOARD,
    ),
    Asked(
        "training on all GPUs that wait for each other, by figures of such links",
        r"parallel_\w+_efficiency\w*",
        BOARD,
    ),
    Asked("slow RAM (copy, triad)", r"memory_(copy|triad)", ("4090-7950x", "2xa100-40gb-7049gp")),
    Asked(
        "memory of a GPU that the patterns, or the burn, leave out",
        r"vram_tested|burn_filled",
        ALONE,
    ),
    Asked(
        "GiB that are copied beside the burn, fewer than usual (300, assumed)",
        r"burn(_peer)?_copied",
        BOARD,
    ),
    Asked(
        "one slow core, beside the others (bare metal; VM)",
        r"cpu_gemm_core_ratio_f(64|32)",
        ("4090-7950x", "cpu-only"),
    ),
    Asked("one GPU slow in transformer layers, beside its equals", r"layer_\w+_ratio", BESIDE),
    Asked(
        "transformer layers slow against the GPU's own matrix products, by published figures",
        r"layer_\w+_share",
        ALONE,
        "any",
    ),
    Asked(
        "one GPU slow in training steps, beside its equals", r"step_(gpt2|bert|neo)_ratio", BESIDE
    ),
    Asked(
        "training steps slow against the GPU's own matrix products, by published figures",
        r"step_(gpt2|bert|neo)_share",
        ALONE,
        "any",
    ),
    Asked("power steps that the machine did not bear", r"power_(step|pulses|ladder)_made", ALL),
    Asked(
        "one GPU that draws less when full load comes at once, beside its equals",
        r"power_(step|pulses|ladder)_excursion_ratio",
        ALL,
    ),
)
COUNTED = (
    Asked(
        "wrong elements, words, blocks or results, by any of the loads and tools",
        rf".*miscompares.*|collective_disagreements(_p2p_off|_multicast)?|(gpu_burn|stressapptest|burn_memory)_errors(_{MODE})?"
        r"|copy_faults|.*_failures|burn_digests_differ|digest_(repeats_)?differs?"
        r"|parallel_disagreements",
        BOARD,
        less=False,
    ),
    Asked(
        "ways of NCCL that do not fit what joins two GPUs, or may be meant",
        r"transport_(faults(_p2p_off)?|doubts)",
        BOARD,
        less=False,
    ),
    Asked(
        "uncorrected ECC errors, before the run or in it",
        r"gpu_ecc_uncorrected(_new)?",
        BOARD,
        less=False,
    ),
    Asked(
        "uncorrected ECC errors in a card's life", r"gpu_ecc_uncorrected_total", BOARD, less=False
    ),
    Asked(
        "what the driver calls a fault of the GPU: SRAM threshold, repairs, InfoROM, wanted action",
        r"gpu_(sram_threshold|repair_pending|memory_unrepairable|inforom_corrupt|recovery_action)",
        ALL,
        less=False,
    ),
    Asked("banks of memory without a spare row", r"gpu_banks_without_spare", ALL, less=False),
    Asked("faults of the NVLink fabric's health", r"gpu_fabric_faults", ALL, less=False),
    Asked(
        "rows remapped in the run; remaps pending or failed",
        r"gpu_remapped_new|gpu_remap_(pending|failed)",
        BOARD,
        less=False,
    ),
    Asked(
        "samples with a power brake or a lasting slowdown, in power steps",
        r"power_(step|pulses|ladder)_slowdowns",
        ALL,
        less=False,
    ),
    Asked("rows remapped before the run", r"gpu_remapped_uncorrected", BOARD, less=False),
    Asked(
        "pages retired in the run, or waiting for it",
        r"gpu_retired_new|gpu_retirement_pending",
        BOARD,
        less=False,
    ),
    Asked("pages retired before the run", r"gpu_retired_pages", BOARD, less=False),
    Asked(
        "PCI Express packets sent again",
        r"gpu_pcie_replays|burn_errors_new",
        BOARD,
        less=False,
    ),
    Asked(
        "NVLink packets broken or sent again",
        r"gpu_nvlink_(replays|crc_errors)|burn_nvlink_errors_new",
        BOARD,
        less=False,
    ),
    Asked("NVLinks trained again", r"gpu_nvlink_recoveries", BOARD, less=False),
    Asked(
        (
            "kernel messages of a hardware fault, faults in a disk's SMART report or its growth, "
            "self-tests of disks that failed, faults of a RAID array and of its members, "
            "filesystems that became read-only, throttling that the processor counts"
        ),
        r"kernel_faults_(before|during)|disk_(faults|growth|lifetime_faults|self_test_faults)"
        r"|raid_(faults|growth)|filesystems_read_only"
        r"|cpu_throttle_events",
        ALL,
        less=False,
    ),
    Asked("RAID members that counted errors before the run", r"raid_errors", ALL, less=False),
    Asked(
        (
            "a disk that failed a read or a write, blocks of a file on it that are not what was "
            "written, or of the file kept since the acceptance"
        ),
        r"storage_(failed|wrong_blocks|kept_errors)",
        ALL,
        less=False,
    ),
    *(
        Asked(one.what, one.name, ALL, less=False)
        for one in measurements.shipped().by_name.values()
        if one.per in components.counted() and one.limit is not None
    ),
    Asked(
        "lanes, or generations, of PCI Express missing under load",
        r"gpu_link_(width|gen)",
        ALONE,
    ),
    Asked("lanes, or a generation, of a disk's link missing", r"disk_link_share", ALL),
    Asked("lanes, or a generation, of a network card's link missing", r"network_link_share", ALL),
    Asked(
        "a lower rate of a network port",
        r"network_rate_(ratio|share)",
        ALL,
    ),
    Asked(
        "packets of a network port with errors, times that its link went down, ports that are lost",
        r"network_(port_lost|errors|link_downs)",
        ALL,
        less=False,
    ),
    Asked("symbol errors of a network port", r"network_symbol_errors", ALL, less=False),
    Asked("packets that arrived marked as bad", r"network_remote_errors", ALL, less=False),
    Asked(
        "kinds of what is past a threshold in a disk's SMART report",
        r"disk_warnings",
        ALL,
        less=False,
    ),
    Asked("degrees of a disk above its own threshold", r"disk_temperature_margin", ALL),
    Asked(
        "two sources on a path between GPUs that exclude each other",
        r"link_contradictions",
        BOARD,
        less=False,
    ),
    Asked(
        "cards that draw less than their equals and cool more",
        r"burn_power_short",
        ALL,
        less=False,
    ),
    Asked("NVLinks of 18 down", r"nvlink_active", BOARD),
    Asked("an NVLink that is slow", r"nvlink_speed", BOARD),
    Asked(
        (
            "GPUs missing (on the bus, without driver, in NVML, in CUDA, in the container), not "
            "ready, in a lesser slot, without a peer"
        ),
        r"gpu_(count|answers|driver_bound|in_nvml|seen_by_cuda|granted|ready|settings_unchanged)"
        r"|gpu_link_(width|gen)_max"
        r"|p2p_supported",
        BOARD,
    ),
    Asked("multiprocessors of a GPU missing", r"gpu_sm_count", ALONE),
    Asked("memory of a GPU missing", r"gpu_memory_total", ALONE),
    Asked("RAM missing, as the kernel sees it", r"memory_total", DESK),
    Asked(
        "memory modules, disks, cores, threads, sockets or network links missing",
        r"dimm_(count|present)|memory_channels|disk_count|cpu_(cores|threads|sockets)|link_up",
        ALL,
    ),
    Asked(
        "a module smaller or slower than declared, a network link slower",
        r"dimm_(rated|configured)_speed|dimm_size|link_speed",
        ALL,
    ),
    Asked(
        "a model, module, board, version, address or path that is not the declared one",
        r".*_differs|memory_channels_unequal",
        ALL,
        less=False,
    ),
    Asked(
        "compares of a ring of results that gpu-burn does not get to (8 are usual)",
        rf"gpu_burn_compares_{MODE}",
        ONE,
    ),
    Asked(
        "a GPU hotter than the recorded ones, by its margin",
        r"gpu_temperature_margin",
        ONE,
    ),
    Asked("a GPU hotter than its equals", r"burn_temperature_spread", BESIDE, less=False),
    Asked(
        "a processor hotter than usual (75 degC, assumed)",
        r"cpu_temperature",
        DESK,
        less=False,
    ),
    Asked(
        "a slowdown, thermal slowdown or power brake that the driver sums",
        r"gpu_(hw_slowdown|(hw|sw)_thermal_slowdown|power_brake)",
        ONE,
        less=False,
    ),
)
