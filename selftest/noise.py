"""How much what a sound machine measures moves: from run to run and from one equal GPU to the next,
by kind of measurement.

Pure.

The recorded runs on H200s were each made on another card, so their spread holds both, and each GPU
of a made run draws its own. Where nobody measured, the source begins with `assumed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.core.dtype import DTYPES


@dataclass(frozen=True, slots=True)
class Noise:
    """One standard deviation, as a share of the value or, with `absolute`, in the measurement's
    own unit; and where that comes from.
    """

    spread: float
    source: str
    absolute: bool = False


STILL = Noise(0.0, "counts and facts of a sound machine are the same every time")
_RUNS = "recorded H200 runs"
_D = f"({'|'.join(DTYPES)})"
_TWINS = "between the two cards of published boxes: gpu-burn 3.0 % (A100) and 0.34 % (4090)"
_VM = "recorded on a VM of 16 cores: ratios of 0.63 to 1.14 in three runs"

# By a pattern that a whole name matches; the first that does holds. Boards of H100 and H200 first,
# then cards for slots, then both.
_BOARDS: tuple[tuple[str, Noise], ...] = (
    (r"gemm_f16_short", Noise(0.038, f"{_RUNS}: 682 to 745 TFLOP/s")),
    (r"gemm_tf32_short", Noise(0.022, f"{_RUNS}: 372 to 396 TFLOP/s")),
    (r"gemm_f8_short", Noise(0.021, f"{_RUNS}: 1402 to 1472 TFLOP/s")),
    (r"gemm_f64_short", Noise(0.012, f"{_RUNS}: 57.9 to 59.5 TFLOP/s")),
    (
        r"gemm_(bf16|i8|f32)_short",
        Noise(0.010, f"{_RUNS}: bfloat16 736 to 750, INT8 931 to 952 TFLOP/s"),
    ),
    (
        rf"(gemm|burn)_{_D}",
        Noise(
            0.008, f"{_RUNS}: bfloat16 656 to 670, FP8 1246 to 1296, float64 52.6 to 53.7 TFLOP/s"
        ),
    ),
    (
        r"gpu_burn_(float|tensor|double)",
        Noise(0.004, f"{_RUNS}: 50.9 to 51.1 and 53.9 to 54.4 TFLOP/s"),
    ),
    (r"(copy|bandwidth_test|copy_own)_(h2d|d2h)", Noise(0.004, f"{_RUNS}: 54.8 to 55.5 GB/s")),
    (r"copy_own_d2d|vram_copy", Noise(0.004, f"{_RUNS}: 4275 to 4303 GB/s")),
    (
        r"step_(?!miscompares|\w+_ratio)\w+",
        Noise(0.01, "two H200 measured: 154.7 k tokens/s each, within 0.02 %, widened"),
    ),
    (r"p2p_write", Noise(0.045, f"{_RUNS}: 361 and 393 GB/s, an H100 published 365")),
    (r"copy_d2d_(read|write)|copy_own_p2p", Noise(0.005, f"{_RUNS}: 393.8 to 396.2 GB/s")),
    (r"vram_rate", Noise(0.005, f"{_RUNS}: 0.879 to 0.880, widened")),
    (
        r"layer_(?!miscompares|\w+_ratio)\w+",
        Noise(0.01, "two H200 measured: within 1 % of each other in every layer"),
    ),
)
_CARDS: tuple[tuple[str, Noise], ...] = (
    (rf"gpu_burn_(float|tensor|double)|(gemm|burn)_{_D}(_short)?", Noise(0.015, _TWINS)),
    (
        r"copy_own_d2d|vram_copy",
        Noise(
            0.008,
            (
                "between the two cards of published boxes: 883 and 894 (3090 Ti), 911 and 921 "
                "GB/s (4090)"
            ),
        ),
    ),
    (
        r"(copy|bandwidth_test|copy_own)_(h2d|d2h)",
        Noise(0.010, "assumed: twice that of the recorded H200 and more"),
    ),
    (
        r"p2p_write|copy_d2d_(read|write)|copy_own_p2p",
        Noise(0.013, "one path four times, published 2 x 4090: 21.9 to 22.5 GB/s"),
    ),
    (r"step_(?!miscompares|\w+_ratio)\w+", Noise(0.015, "assumed: as products of matrices")),
    (r"vram_rate", Noise(0.015, "assumed: as the rates of these cards")),
    (r"layer_(?!miscompares|\w+_ratio)\w+", Noise(0.015, "assumed: as products of matrices")),
)
_ALL: tuple[tuple[str, Noise], ...] = (
    (
        r"p2p_staged",
        Noise(0.013, f"{_RUNS}: 37.3 and 38.0 GB/s; the published 2 x 4090: 21.9 and 22.5 GB/s"),
    ),
    (rf"burn_{_D}_kept", Noise(0.004, f"{_RUNS}: 0.995 to 1.006", True)),
    (r"burn_clock_kept", Noise(0.007, f"{_RUNS}: 0.986 to 1.001", True)),
    (r"gpu_temperature_margin", Noise(3.3, f"{_RUNS}: 14 to 23 degC", True)),
    (r"vram_tested", Noise(0.0005, f"{_RUNS}: 0.9948 each time; widened", True)),
    (r"burn_filled", Noise(0.001, f"{_RUNS}: 0.9407 each time; widened", True)),
    (r"gpu_burn_compares_.*", Noise(0.5, f"{_RUNS}: 7 and 8 on two cards at once", True)),
    (r"cpu_temperature", Noise(4.0, "assumed: nobody measured it on the machines at hand", True)),
    (
        r"memory_(copy|triad)",
        Noise(0.03, "assumed for bare metal; a VM gave 65 to 78 GB/s in three runs"),
    ),
)
_SMALL_CASE = Noise(2.5, f"{_RUNS}: highest temperatures of 61 to 67 degC on seven cards", True)
_BIG_CASE = Noise(
    3.5,
    (
        "limits file: equal cards differ by up to about 10 degC in chassis of eight, a range of "
        "2.85 of it"
    ),
    True,
)
_BARE_CORE = Noise(0.015, "assumed: within a few per cent of each other on bare metal")
_VM_CORE = Noise(0.10, _VM)


def of(measurement: str, *, board: bool, virtual: bool, gpus: int) -> Noise:
    """The noise of one measurement; `board` says that the GPUs are H100 or H200 on a board,
    `virtual` that the CPUs are a guest's.
    """
    if measurement.startswith("cpu_gemm_core_f"):
        return _VM_CORE if virtual else _BARE_CORE
    if measurement == "burn_temperature_spread":
        return _BIG_CASE if gpus > 2 else _SMALL_CASE
    if "miscompares" in measurement or "digests" in measurement:
        return STILL
    for pattern, noise in (*_ALL, *(_BOARDS if board else _CARDS)):
        if re.fullmatch(pattern, measurement):
            return noise
    return STILL


def table() -> tuple[tuple[str, str, str], ...]:
    """What is moved by how much and why, as rows: what, one standard deviation, source."""
    rows = [
        (f"{where}{_words(pattern)}", _share(noise), noise.source)
        for where, kind in _kinds()
        for pattern, noise in kind
    ]
    rows += [
        ("temperature beside one equal GPU", _share(_SMALL_CASE), _SMALL_CASE.source),
        ("temperature beside seven", _share(_BIG_CASE), _BIG_CASE.source),
        ("rate of a core, bare metal", _share(_BARE_CORE), _BARE_CORE.source),
        ("rate of a core, VM", _share(_VM_CORE), _VM_CORE.source),
    ]
    return tuple(rows)


def _kinds() -> tuple[tuple[str, tuple[tuple[str, Noise], ...]], ...]:
    return (("H100, H200: ", _BOARDS), ("cards for slots: ", _CARDS), ("", _ALL))


def _words(pattern: str) -> str:
    """A pattern as people read it."""
    plain = pattern.replace(_D, "<d>").replace("(_short)?", ", short too").replace(".*", "<mode>")
    return ", ".join(f"`{part}`" for part in _choices(plain))


def _choices(plain: str) -> list[str]:
    """The alternatives outside brackets."""
    depth, parts = 0, [""]
    for letter in plain:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _share(noise: Noise) -> str:
    return f"{noise.spread:g}" if noise.absolute else f"{100 * noise.spread:.2g} %"
