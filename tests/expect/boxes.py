"""Whole machines with the figures that their builders published, or that we measured; all else
of them is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# One figure for every component, or one for each; a later component of a machine takes the last.
Figures = Mapping[str, float | tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Box:
    """`file` is the machine file that ships for it, `sheet` the name of its GPUs' sheet.

    `slot` is what the slot offers: PCI Express generation and lanes; None where a VM hides it.
    `nvlinks` are those of each GPU. `p2p` and `path` are NVML's words for each pair.

    `figures` are by measurement, in the measurement's unit; what is not in them is made up so that
    it passes.
    """

    file: str
    sheet: str
    count: int
    slot: tuple[int, int] | None
    nvlinks: int = 0
    p2p: str = "not-supported"
    path: str = "PHB"
    figures: Figures = field(default_factory=dict)


# 2 x RTX 3090 Ti with a bridge: torch 1.13, CUDA 11.7; pairs in the order gpu0->gpu1, gpu1->gpu0.
TI = {
    "gpu_burn_tensor": 55.35,
    "gemm_f16_short": 81.314,
    "gemm_f16": 81.314,
    "gemm_tf32_short": 42.056,
    "gemm_tf32": 42.056,
    "copy_own_d2d": (883.27, 894.39),
    "p2p_staged": (6.23, 6.23),
    "p2p_write": (52.77, 52.89),
    "p2p_gain": (52.77 / 6.23, 52.89 / 6.23),
}
# 2 x RTX 4090: torch 2.0, CUDA 11.8, matrices of 8192.
RTX_4090 = {
    "gpu_burn_tensor": (145.963, 146.466),
    "gpu_temperature": 46.0,
    "gemm_f16_short": 156.083,
    "gemm_f16": 156.083,
    "gemm_f32_short": 52.182,
    "gemm_f32": 52.182,
    "copy_own_d2d": (911.08, 920.74),
    "p2p_staged": (21.89, 22.46),
    "p2p_write": (22.43, 22.50),
    "p2p_gain": (22.43 / 21.89, 22.50 / 22.46),
    "p2p_latency": (18.50, 12.55),
}
# 1 x H200 in a VM, and its own model elsewhere.
H200 = {
    "gpu_burn_float": 51.1,
    "gpu_burn_tensor": 347.0,
    "gpu_burn_double": 54.1,
    "gpu_temperature": 62.0,
    "gpu_power": 825.0,
    "copy_h2d": 55.50,
    "copy_d2h": 55.41,
    "copy_h2d_bidirectional": 50.0,
    "copy_d2h_bidirectional": 50.7,
    "copy_local": 2093.0,
    "latency_host_device": 1179.0,
    "bandwidth_test_h2d": 55.3,
    "bandwidth_test_d2h": 55.3,
    "bandwidth_test_d2d": 3184.6,
    "copy_own_h2d": 55.0,
    "copy_own_d2h": 55.4,
    "copy_own_d2d": 4299.0,
    "gemm_bf16_short": 814.0,
    "gemm_f64": 53.6,
    "gemm_f32": 51.2,
    "gemm_tf32": 344.0,
    "gemm_f16": 637.0,
    "gemm_bf16": 664.0,
    "gemm_f8": 1213.0,
    "gemm_i8": 869.0,
}
H100 = {
    "copy_h2d": 55.3,
    "copy_d2h": 55.6,
    "copy_own_d2d": 2900.0,
    "p2p_write": 365.30,
    "p2p_staged": 38.40,
    "p2p_gain": 365.30 / 38.40,
    "gemm_f32_short": 51.9,
    "gemm_tf32_short": 402.0,
    "gemm_f16_short": 760.0,
    "gemm_bf16_short": 795.0,
    "gemm_f8_short": 1403.0,
    "gemm_tf32": 373.0,
    "gemm_bf16": 730.0,
    "gemm_f8": 1290.0,
}
# 2 x A100-40GB, and A100 PCIe 40GB elsewhere.
A100 = {
    "gpu_burn_tensor": (118.649, 122.261),
    "copy_h2d": 25.9,
    "copy_d2h": 26.0,
    "copy_own_d2d": 1293.0,
    "gemm_f32_short": 17.6,
    "gemm_tf32_short": 108.0,
    "gemm_f16_short": 241.0,
    "gemm_bf16_short": 234.0,
    "gemm_bf16": 224.0,
    "gemm_tf32": 106.0,
}
PAIRED = {
    "p2p_write": 365.30,
    "p2p_staged": 38.40,
    "p2p_gain": 365.30 / 38.40,
    # box of two H200s by nccl-tests; all-reduce of eight published, with multicast off
    "collective_all_reduce": 363.0,
    "collective_all_gather": 272.0,
    "collective_reduce_scatter": 269.0,
    "collective_all_to_all": 331.0,
    "collective_broadcast": 364.0,
    "collective_send_receive": 291.0,
    "collective_all_reduce_p2p_off": 27.0,
    "collective_send_receive_p2p_off": 23.0,
}

BOXES = {
    box.file: box
    for box in (
        Box("2x3090ti-bridge.toml", "GeForce RTX 3090 Ti", 2, (4, 8), 4, "ok", figures=TI),
        Box(
            "2x4090.toml",
            "GeForce RTX 4090",
            2,
            (4, 16),
            p2p="chipset-not-supported",
            path="SYS",
            figures=RTX_4090,
        ),
        Box("4090-7950x.toml", "GeForce RTX 4090", 1, (4, 16), figures=RTX_4090),
        Box("2xa100-40gb-7049gp.toml", "A100 PCIe 40GB", 2, (4, 16), p2p="ok", figures=A100),
        Box("8xh100.toml", "H100 SXM5 80GB", 8, (5, 16), 18, "ok", figures=H100),
        Box("8xh200.toml", "H200 SXM 141GB", 8, (5, 16), 18, "ok", figures={**H200, **PAIRED}),
        Box("1xh200.toml", "H200 SXM 141GB", 1, (5, 16), figures=H200),
        Box("1xh200-vm.toml", "H200 SXM 141GB", 1, None, figures=H200),
    )
}
