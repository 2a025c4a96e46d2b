"""Numbers with which tests of derived limits count, whatever `fixtures/derived.toml` says today.

What the shipped numbers pass and fail is for tests without them.
"""

from __future__ import annotations

from msgspec.structs import replace

from acceptance.expect import limit_book
from acceptance.expect.limit_book import Book

# By side, and by the first quantity and measurement of a limit.
SHARES: dict[tuple[str, str, str], float] = {
    ("low", "link", "copy_h2d"): 0.75,
    ("low", "nvlink", "nvlink_speed"): 0.98,
    ("low", "memory_size", "gpu_memory_total"): 0.93,
    ("low", "copy_off_nvlink", "p2p_gain"): 2,
    ("low", "copy_off_peers", "p2p_gain"): 0.9,
    ("low", "copy_off_host", "p2p_gain"): 0.9,
    ("low", "nvlinks", "p2p_write"): 0.65,
    ("low", "way_nvlinks", "collective_send_receive"): 0.5,
    ("low", "way_pcie", "collective_send_receive"): 0.1,
    ("low", "gemm_floor", "burn_*"): 0.98,
    ("low", "alone_nvlink_two", "parallel_ddp_efficiency"): 0.85,
    ("low", "alone_nvlink_two", "parallel_ddp_efficiency_accumulated"): 0.9,
    ("low", "alone_nvlink_more", "parallel_ddp_efficiency"): 0.8,
    ("low", "alone_nvlink_more", "parallel_ddp_efficiency_accumulated"): 0.85,
    ("low", "alone_sharded", "parallel_zero2_efficiency"): 0.7,
    ("low", "alone_pcie", "parallel_ddp_efficiency"): 0.3,
    ("low", "alone_pcie", "parallel_ddp_efficiency_accumulated"): 0.6,
    ("low", "declared_memory", "memory_total"): 0.95,
    ("low", "channels", "memory_copy"): 0.5,
    ("low", "disk", "storage_read"): 0.7,
    ("low", "hard_disk", "storage_read"): 0.4,
    ("low", "disk_random", "storage_read_random"): 0.5,
    ("high", "host_link", "copy_h2d"): 1.02,
    ("high", "nvlink", "nvlink_speed"): 1.1,
    ("high", "memory", "copy_own_d2d"): 1.05,
    ("high", "memory_doubtful", "copy_own_d2d"): 1.1,
    ("high", "copy_in_memory", "vram_rate"): 2,
    ("high", "peak", "gemm_*"): 1.1,
    ("high", "alone", "parallel_*_efficiency*"): 1.15,
    ("high", "modules", "memory_copy"): 1.25,
    ("high", "cores", "cpu_gemm_f64"): 1,
    ("high", "disk_link", "storage_read"): 1,
}
FIGURES: dict[str, float] = {
    "unknown_clock": 1.36,
    "core_ghz": 6.5,
    "core_f64_operations": 32,
    "core_f32_operations": 64,
    "chip_link_gbs": 450,
    "job_iops": 250000,
    "sharded_least_gbs": 200,
    "pcie_most_tflops": 250,
    "pcie_least_gbs": 12,
    "memory_warn_c": 5,
}


def book() -> Book:
    """The shipped limits with these numbers."""
    shipped = limit_book.book()
    rows = []
    for row in shipped.derived:
        of, names = next(iter(row.of.items()))
        side = "low" if row.low is not None else "high"
        rows.append(replace(row, **{side: SHARES.get((side, of, names[0]), row.share)}))
    figures = {
        name: replace(getattr(shipped.figure, name), value=value) for name, value in FIGURES.items()
    }
    return replace(shipped, derived=tuple(rows), figure=replace(shipped.figure, **figures))
