"""Stands in for bandwidthTest of the CUDA samples: pinned memory, one size, one device."""

from __future__ import annotations

import sys

import seen

L2 = 3.3  # the 32 MB of its copies stay inside the cache of newer cards
TABLE = """
 {name} Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth(GB/s)
   32000000\t\t\t{rate}
"""


def main() -> None:
    index = int(
        next(word for word in sys.argv[1:] if word.startswith("--device=")).partition("=")[2]
    )
    how = seen.fault("bandwidthTest")
    seen.misbehave(how)
    gpu = seen.gpus(seen.machine())[index]
    host = seen.wobble(seen.host_rate(gpu), gpu.index)
    rates = {
        "Host to Device": host,
        "Device to Host": host,
        "Device to Device": L2 * seen.figures(gpu).local,
    }
    sick = gpu.index == seen.SICK  # each run sees one GPU alone
    told = {name: f"{rate:.1f}" for name, rate in rates.items()}
    if sick and how in ("copies nothing", "copies NaN", "is too fast"):
        told["Host to Device"] = {
            "copies nothing": "0.0",
            "copies NaN": "nan",
            "is too fast": "1000.0",
        }[how]
    text = (
        f"[CUDA Bandwidth Test] - Starting...\nRunning on...\n\n Device {index}: "
        f"{gpu.readings['name']}\n Quick Mode\n"
    )
    text += "".join(TABLE.format(name=name, rate=rate) for name, rate in told.items())
    if sick and how == "is truncated":
        seen.leave(text[: len(text) // 2])
    seen.leave(f"{text}\nResult = PASS\n")


if __name__ == "__main__":
    main()
