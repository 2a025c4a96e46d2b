"""Stands in for gpu-burn: it lasts its seconds and tells of compares as often as the memory (-m)
and the model's rate make it.
"""

from __future__ import annotations

import sys
import time

import seen
from seen import SICK

PRODUCT = 1_100_048_498_688
MIB = 1 << 20
TICK_S = 0.1
KINDS = {"single": "FLOATS", "tensor": "FLOATS, using Tensor Cores", "double": "DOUBLES"}


def line(percent: float, done: list[int], rates: list[float], errors: list[str]) -> str:
    products = " - ".join(
        f"{one} ({rate * 1000:.0f} Gflop/s)" for one, rate in zip(done, rates, strict=True)
    )
    temperatures = " - ".join("61 C" for _ in done)
    return (
        f"\r{percent:.1f}%  proc'd: {products}   errors: {' - '.join(errors)}   temps: "
        f"{temperatures} "
    )


def main() -> None:
    words = sys.argv[1:]
    mode = "tensor" if "-tc" in words else "double" if "-d" in words else "single"
    memory_mb, seconds = int(words[words.index("-m") + 1]), int(words[-1])
    machine, how = seen.machine(), seen.fault("gpu-burn")
    gpus = seen.gpus(machine)
    say = sys.stdout.write
    say(f"Using compare file: compare.ptx\nBurning for {seconds} seconds.\n")
    for gpu in machine.gpus:  # of `nvidia-smi -L`, which CUDA_VISIBLE_DEVICES does not concern
        say(f"GPU {gpu.index}: {gpu.readings['name']} (UUID: {gpu.readings['uuid']})\n")
    seen.misbehave(how)
    if not gpus:
        seen.leave("Couldn't init a GPU test: no CUDA-capable device is detected\n", 124)
    if how == "802":
        say("terminate called after throwing an instance of 'std::runtime_error'\n")
        seen.leave("  what():  Error (gpu_burn-drv.cpp:298): system not yet initialized\n", 1)
    if how == "misses one":
        gpus = gpus[:-1]
    result_mb = 512 if mode == "double" else 256
    ring = memory_mb // result_mb - 2
    for index, gpu in enumerate(gpus):
        total = (gpu.readings["memory_total_bytes"] - gpu.readings["memory_reserved_bytes"]) // MIB
        say(
            f"Initialized device {index} with {total} MB of memory ({total - 500} MB "
            f"available, using {memory_mb} MB of it)"
        )
        say(
            f", using {KINDS[mode]}\nResults are {result_mb * MIB} bytes each, thus "
            f"performing {ring} iterations\n"
        )
    rates = [seen.wobble(getattr(seen.figures(gpu), mode), gpu.index) for gpu in gpus]
    if how == "slow":
        rates[SICK] *= 0.85
    if how == "too fast":
        rates = [2.91 * rate for rate in rates]
    burn(gpus, rates, ring, seconds, how)


def burn(
    gpus: list[seen.Gpu], rates: list[float], ring: int, seconds: int, how: str | None
) -> None:
    began = time.monotonic()
    done, shown = [0] * len(gpus), [0.0] * len(gpus)
    errors = ["0"] * len(gpus)
    say = sys.stdout.write
    while (elapsed := time.monotonic() - began) < seconds:
        time.sleep(TICK_S)
        compares = [int(elapsed * rate * 1e12 / PRODUCT / ring) for rate in rates]
        now = [0 if how == "compares nothing" else ring * count for count in compares]
        if how == "dies" and elapsed > seconds / 2:
            say('\nFailure during compute: Error in "Read faultyelemdata": CUDA_ERROR_UNKNOWN\n')
            done[SICK], errors[SICK] = -1, "-1 (DIED!)"
            say(line(100 * elapsed / seconds, done, shown, errors))
            break
        if how == "is truncated" and elapsed > seconds / 2:
            time.sleep(seconds - elapsed)
            seen.leave("")
        if now != done:
            done, shown = now, list(rates)
            errors = [
                "12 (WARNING!)" if how == "wrong results" and i == SICK else "0"
                for i in range(len(gpus))
            ]
            say(line(min(100.0, 100 * elapsed / seconds), done, shown, errors))
            sys.stdout.flush()
    if how != "dies":
        say(line(100.0, done, shown, ["0"] * len(gpus)))
    say("\nKilling processes with SIGTERM (soft kill)\n")
    for index in range(len(gpus)):
        say(f"Freed memory for dev {index}\nUninitted cublas\n")
    say(f"done\n\nTested {len(gpus)} GPUs:\n")
    for index in range(len(gpus)):
        bad = index == SICK and how in ("is FAULTY", "wrong results", "dies")
        say(f"\tGPU {index}: {'FAULTY' if bad else 'OK'}\n")
    seen.leave("")  # as the real one, with 0 whatever it found


if __name__ == "__main__":
    main()
