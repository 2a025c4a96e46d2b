"""Stands in for deviceQuery of the CUDA samples."""

from __future__ import annotations

import seen

CORES = {"8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128}  # of a multiprocessor
HEAD = (
    "deviceQuery Starting...\n\n CUDA Device Query (Runtime API) version (CUDART static "
    "linking)\n\n"
)
DEVICE = """\
Device {index}: "{name}"
  CUDA Driver Version / Runtime Version          {cuda} / 12.4
  CUDA Capability Major/Minor version number:    {capability}
  Total amount of global memory:                 {mib} MBytes ({memory} bytes)
  ({sm:03d}) Multiprocessors, ({each:03d}) CUDA Cores/MP:    {cores} CUDA Cores
  GPU Max Clock rate:                            {clock} MHz ({ghz:.2f} GHz)
  Memory Clock rate:                             {memory_clock} Mhz
  Memory Bus Width:                              {bus}-bit
  L2 Cache Size:                                 {l2} bytes
  Total amount of shared memory per block:       49152 bytes
  Warp size:                                     32
  Run time limit on kernels:                     {display}
  Device has ECC support:                        {ecc}
  Device supports Unified Addressing (UVA):      Yes
  Device PCI Domain ID / Bus ID / location ID:   {domain} / {bus_id} / {slot}
  Compute Mode:
     < Default (multiple host threads can use ::cudaSetDevice() with device simultaneously) >

"""


def device(machine: seen.Machine, index: int, gpu: seen.Gpu, fewer: int) -> str:
    said = gpu.readings
    memory = said["memory_total_bytes"] - said["memory_reserved_bytes"]
    each = CORES[said["compute_capability"]]
    sm = said["cuda_cores"] // each - fewer
    domain, bus_id, slot = said["pci_bus_id"].partition(".")[0].split(":")
    return DEVICE.format(
        **{
            "index": index,
            "name": said["name"],
            "cuda": cuda(machine),
            "capability": said["compute_capability"],
        },
        **{"mib": memory >> 20, "memory": memory, "sm": sm, "each": each, "cores": sm * each},
        **{
            "clock": said["max_sm_clock_mhz"],
            "ghz": said["max_sm_clock_mhz"] / 1000,
            "l2": 50 << 20,
        },
        **{"memory_clock": said["max_memory_clock_mhz"], "bus": said["memory_bus_bits"]},
        **{
            "display": "Yes" if said["display_active"] else "No",
            "ecc": "Enabled" if said.get("ecc_enabled") else "Disabled",
        },
        **{"domain": int(domain, 16), "bus_id": int(bus_id, 16), "slot": int(slot, 16)},
    )


def cuda(machine: seen.Machine) -> str:
    version = machine.cuda_driver_version
    return f"{version // 1000}.{version % 1000 // 10}"


def main() -> None:
    machine, how = seen.machine(), seen.fault("deviceQuery")
    seen.misbehave(how)
    gpus = seen.gpus(machine)
    if how == "802":
        seen.leave(
            (
                f"{HEAD}cudaGetDeviceCount returned 802\n-> system not yet initialized\nResult = "
                "FAIL\n"
            ),
            1,
        )
    if not gpus:
        seen.leave(
            (
                f"{HEAD}cudaGetDeviceCount returned 100\n-> no CUDA-capable device is "
                "detected\nResult = FAIL\n"
            ),
            1,
        )
    if how == "misses one":
        gpus = gpus[:-1]
    parts = [HEAD, f"Detected {len(gpus)} CUDA Capable device(s)\n\n"]
    for index, gpu in enumerate(gpus):
        fewer = 12 if how == "shows fewer multiprocessors" and index == seen.SICK else 0
        parts.append(device(machine, index, gpu, fewer))
    if how != "is truncated":
        told = (
            f"CUDA Driver Version = {cuda(machine)}, CUDA Runtime Version = 12.4, NumDevs = "
            f"{len(gpus)}"
        )
        parts.append(f"deviceQuery, CUDA Driver = CUDART, {told}\nResult = PASS\n")
    seen.leave("".join(parts))


if __name__ == "__main__":
    main()
