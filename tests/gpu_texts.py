"""What healthy GPU tools print, made to measure: of as many GPUs as a test has,
with the figures that it wants.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def device_query(buses: Sequence[int], *, sm: int = 128, mib: int = 24216) -> str:
    """deviceQuery of the GPUs on these PCI buses."""
    blocks = "".join(
        f"""\
Device {index}: "NVIDIA GeForce RTX 4090"
  CUDA Driver Version / Runtime Version          12.8 / 12.8
  CUDA Capability Major/Minor version number:    8.9
  Total amount of global memory:                 {mib} MBytes ({mib << 20} bytes)
  ({sm}) Multiprocessors, (128) CUDA Cores/MP:    {128 * sm} CUDA Cores
  GPU Max Clock rate:                            2520 MHz (2.52 GHz)
  Memory Clock rate:                             10501 Mhz
  Memory Bus Width:                              384-bit
  L2 Cache Size:                                 75497472 bytes
  Device has ECC support:                        Disabled
  Device PCI Domain ID / Bus ID / location ID:   0 / {bus} / 0
"""
        for index, bus in enumerate(buses)
    )
    return (
        f"./deviceQuery Starting...\n\nDetected {len(buses)} CUDA Capable device(s)\n\n{blocks}\n"
        "deviceQuery, CUDA Driver = CUDART, CUDA Driver Version = 12.8, CUDA Runtime Version = "
        "12.8, "
        f"NumDevs = {len(buses)}\nResult = PASS\n"
    )


def nvbandwidth(count: int, figures: Mapping[str, Sequence[float]], *, first_bus: int = 1) -> str:
    """nvbandwidth of these testcases, with a figure for each GPU, or for each ordered pair of
    GPUs, row by row.
    """
    testcases = []
    for name, values in figures.items():
        given = iter(values)
        pairs = "device_to_device" in name
        rows = [
            ["N/A" if pairs and row == column else f"{next(given):g}" for column in range(count)]
            for row in range(count if pairs else 1)
        ]
        unit = "latency (ns)" if "latency" in name else "bandwidth (GB/s)"
        testcases.append(
            {
                "bandwidth_description": (
                    f"memcpy CE {'GPU' if pairs else 'CPU'}(row) -> GPU(column) {unit}"
                ),
                "bandwidth_matrix": rows,
                "name": name,
                "status": "Passed",
                "sum": sum(values),
            }
        )
    devices = [
        f"{index}: NVIDIA GeForce RTX 4090 (00000000:{index + first_bus:02x}:00): (box)"
        for index in range(count)
    ]
    return json.dumps(
        {"nvbandwidth": {"GPU Device list": devices, "git_version": "v0.8", "testcases": testcases}}
    )


def nvbandwidth_alone(index: int, figures: Mapping[str, Sequence[float]]) -> str:
    """nvbandwidth of the GPU with this index alone, with its own of the figures of all."""
    own = {name: [values[index]] for name, values in figures.items()}
    return nvbandwidth(1, own, first_bus=index + 1)


WRONG_DATA = " Invalid value when checking the pattern at 0x7f1c40000000\n Current offset : 4096 \n"


def bandwidth_test(device: int, h2d: float = 26.2, d2h: float = 26.4, d2d: float = 3104.9) -> str:
    """bandwidthTest of one GPU."""
    tables = "".join(
        f" {way} Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
        f"   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t{rate}\n\n"
        for way, rate in (
            ("Host to Device", h2d),
            ("Device to Host", d2h),
            ("Device to Device", d2d),
        )
    )
    return (
        "[CUDA Bandwidth Test] - Starting...\nRunning on...\n\n"
        f" Device {device}: NVIDIA GeForce RTX 4090\n Quick Mode\n\n{tables}Result = PASS\n"
    )


ECC_UNCORRECTABLE = (
    "[CUDA Bandwidth Test] - Starting...\nRunning on...\n\n Device 0: NVIDIA GeForce RTX 4090\n "
    "Quick Mode\n\n"
    "CUDA error at bandwidthTest.cu:785 code=214(cudaErrorECCUncorrectable) "
    '"cudaDeviceSynchronize()" \n'
)


def p2p(
    count: int,
    on: float = 25.0,
    off: float = 24.8,
    pairs: Mapping[tuple[int, int], float] | None = None,
    *,
    name: str = "NVIDIA GeForce RTX 4090",
    first_bus: int = 1,
) -> str:
    """p2pBandwidthLatencyTest, with the same figure for all pairs, but for those (row, column)
    that have one of their own with P2P.
    """

    def matrix(
        title: str, label: str, local: float, way: float, own: Mapping[tuple[int, int], float]
    ) -> str:
        head = f"   {label}" + "".join(f"{column:6d} " for column in range(count))
        rows = [
            f"{row:6d} "
            + "".join(
                f"{local if row == column else own.get((row, column), way):6.2f} "
                for column in range(count)
            )
            for row in range(count)
        ]
        return "\n".join([*([title] if title else []), head, *rows]) + "\n"

    own = pairs or {}
    ones = " ".join(["     1"] * count)
    connected = "\n".join(f"     {row}\t{ones}" for row in range(count))
    twice = {pair: 2 * rate for pair, rate in own.items()}
    latency = "".join(
        matrix(title, "GPU", 2.1, micros, {}) + "\n" + matrix("", "CPU", 2.0, micros, {})
        for title, micros in (
            ("P2P=Disabled Latency Matrix (us)", 17.0),
            ("P2P=Enabled Latency (P2P Writes) Matrix (us)", 2.1),
        )
    )
    devices = "".join(
        f"Device: {index}, {name}, pciBusID: {index + first_bus:x}, pciDeviceID: 0, pciDomainID:0\n"
        for index in range(count)
    )
    return (
        f"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n{devices}\nP2P Connectivity Matrix\n"
        f"     D\\D{''.join(f'     {column}' for column in range(count))}\n{connected}\n"
        + matrix("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", "D\\D", 900.0, off, {})
        + matrix(
            "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)",
            "D\\D",
            900.0,
            on,
            own,
        )
        + matrix("Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)", "D\\D", 900.0, 2 * off, {})
        + matrix("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", "D\\D", 900.0, 2 * on, twice)
        + latency
    )


def burn_as_asked(
    argv: Sequence[str],
    rates: Sequence[float],
    *,
    names: Sequence[str] = (),
    totals: Sequence[int] = (),
) -> str:
    """gpu-burn of so many GPUs with this command line: with its memory, for its time."""
    memory, seconds = int(argv[argv.index("-m") + 1]), int(argv[-1])
    ring = memory // 256 - 2
    compares = max(3, round(seconds * min(rates) / 1.1 / ring))
    text = gpu_burn(rates, compares=compares, ring=ring, memory=memory, seconds=seconds)
    for gpu, name in enumerate(names):
        text = text.replace(f"GPU {gpu}: NVIDIA GeForce RTX 4090 (", f"GPU {gpu}: {name} (")
    for gpu, total in enumerate(totals):
        begin = f"Initialized device {gpu} with "
        text = text.replace(
            f"{begin}24217 MB of memory (23801 ", f"{begin}{total} MB of memory ({total - 99} "
        )
    return text


def gpu_burn(
    rates: Sequence[float],
    *,
    compares: int = 8,
    faulty: Sequence[int] = (),
    errors: Mapping[int, int] | None = None,
    ring: int = 9,
    memory: int = 2816,
    seconds: int = 1,
) -> str:
    """gpu-burn of as many GPUs as there are rates (TFLOP/s).

    `errors` are those of a GPU half way; they stand at 0 again in the end.
    """
    gpus = range(len(rates))
    head = f"Burning for {seconds} seconds.\n" + "".join(
        f"GPU {gpu}: NVIDIA GeForce RTX 4090 (UUID: GPU-{gpu:08x}-0000-4000-8000-000000000000)\n"
        for gpu in gpus
    )
    head += "".join(
        f"Initialized device {gpu} with 24217 MB of memory (23801 MB available, using {memory} MB "
        "of it), using FLOATS\n"
        f"Results are 268435456 bytes each, thus performing {ring} iterations\n"
        for gpu in gpus
    )
    progress = []
    for compare in [*range(1, compares + 1), compares]:
        half = compare == (compares + 1) // 2
        done = " - ".join(f"{ring * compare} ({rate * 1000:.0f} Gflop/s)" for rate in rates)
        found = [(errors or {}).get(gpu, 0) if half else 0 for gpu in gpus]
        wrong = " - ".join(f"{count} {' (WARNING!)' if count else ''}" for count in found)
        progress.append(
            f"{100 * compare / compares:.1f}%  proc'd: {done}   errors: {wrong}  temps: "
            f"{' - '.join(['60 C'] * len(rates))} \r"
        )
    freed = "".join(f"Freed memory for dev {gpu}\nUninitted cublas\n" for gpu in gpus)
    table = "".join(f"\tGPU {gpu}: {'FAULTY' if gpu in faulty else 'OK'}\n" for gpu in gpus)
    return (
        f"{head}{''.join(progress)}\nKilling processes with SIGTERM (soft kill)\n{freed}done\n\n"
        f"Tested {len(rates)} GPUs:\n{table}"
    )
