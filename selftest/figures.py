"""What a sound machine measures, as the middle about which its runs are drawn: recorded, published,
or reckoned from an H200.

Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from boxes import Box
from journals import good_value

from acceptance.core.plan import Due

# Medians of the recorded runs on H200s (fixtures/recordings/h200/runs), where they say more than
# the figures of the published box.
RECORDED: Mapping[str, float] = {
    "gemm_f64_short": 58.7,
    "gemm_f32_short": 51.0,
    "gemm_tf32_short": 385.1,
    "gemm_f16_short": 732.0,
    "gemm_bf16_short": 743.0,
    "gemm_f8_short": 1420.0,
    "gemm_i8_short": 945.6,
    "gemm_f64": 53.3,
    "gemm_f32": 51.1,
    "gemm_tf32": 345.0,
    "gemm_f16": 640.0,
    "gemm_bf16": 667.5,
    "gemm_f8": 1270.0,
    "gemm_i8": 877.0,
    "burn_f64": 53.3,
    "burn_f32": 51.24,
    "burn_tf32": 337.5,
    "burn_f16": 641.0,
    "burn_bf16": 664.9,
    "burn_f8": 1291.0,
    "burn_i8": 898.5,
    "gpu_burn_float": 50.92,
    "gpu_burn_tensor": 353.3,
    "gpu_burn_double": 54.1,
    "copy_h2d": 55.48,
    "copy_d2h": 55.33,
    "copy_own_h2d": 55.33,
    "copy_own_d2h": 55.31,
    "bandwidth_test_h2d": 55.1,
    "bandwidth_test_d2h": 55.1,
    "copy_own_d2d": 4275.0,
    "vram_copy": 4275.0,
    "p2p_write": 373.0,
    "p2p_staged": 37.7,
    "copy_d2d_read": 393.8,
    "copy_d2d_write": 396.1,
    "copy_own_p2p": 396.1,
}
# Measured on two H200s with blocks of our own, before a recorded run had them.
MEASURED: Mapping[str, float] = {
    "layer_bert": 436.0,
    "layer_bert_forward": 464.0,
    "layer_bert_share": 0.66,
    "layer_gpt2": 472.0,
    "layer_gpt2_forward": 495.0,
    "layer_gpt2_share": 0.72,
    "layer_llama": 610.0,
    "layer_llama_share": 0.93,
    "layer_matmul": 658.0,
    "step_gpt2": 375.0,
    "step_gpt2_share": 0.57,
    "step_matmul": 658.0,
}
# Means of two H100s in the recorded run of the profile train. An H200, of the same processor, has
# its own where they were measured.
TRAINED: Mapping[str, float] = {
    "layer_bert": 424.4,
    "layer_bert_forward": 404.2,
    "layer_bert_share": 0.601,
    "layer_gpt2": 461.1,
    "layer_gpt2_forward": 500.8,
    "layer_gpt2_share": 0.653,
    "layer_t5_encoder": 338.8,
    "layer_t5_encoder_forward": 354.6,
    "layer_t5_encoder_share": 0.48,
    "layer_t5_decoder": 349.8,
    "layer_t5_decoder_forward": 382.5,
    "layer_t5_decoder_share": 0.496,
    "layer_llama": 597.1,
    "layer_llama_forward": 596.9,
    "layer_llama_share": 0.846,
    "layer_matmul": 705.7,
    "layer_dense": 476.3,
    "layer_dense_gelu": 441.2,
    "layer_feed_forward": 514.7,
    "layer_attention": 91.7,
    "step_gpt2": 318.8,
    "step_gpt2_share": 0.473,
    "step_bert": 266.5,
    "step_bert_share": 0.387,
    "step_neo": 455.5,
    "step_neo_share": 0.675,
    "step_matmul": 674.5,
}
# What is the same on every machine, as the recorded runs showed it.
EVERYWHERE: Mapping[str, float] = {
    "burn_clock_kept": 0.994,
    "vram_rate": 0.879,
    "gpu_temperature_margin": 18.6,
    "burn_temperature_spread": 0.0,
    "burn_copied": 300.0,
    "burn_peer_copied": 300.0,
    "cpu_temperature": 75.0,
}
COMPARES = 8.0
KEPT = 0.999
# Of the most that is possible, where nothing is published: links reach 0.79 to 0.94 of it.
POSSIBLE = 0.8
# A layer's share of its floor, which is 0.6 to 0.88 of what was published.
ABOVE_SHARE = 1 / 0.88
VERIFIED = 0.989  # of the rate that is left where every result is compared, on an H200
# Of the GPU's memory on boards, and on cards for slots, whose memory is less (assumed).
MEMORY: Mapping[str, tuple[float, float]] = {
    "vram_tested": (0.9948, 0.975),
    "burn_filled": (0.9407, 0.85),
}
# Of the floor. A GPU shows 139.8 of 141 GiB, where the floor is 0.93 of them; RAM 0.96 to 0.985 of
# what is plugged in, the floor is 0.95; copies in RAM reach 60 to 80 % of what the channels could
# do, the floor is half of it.
SEEN: Mapping[str, float] = {
    "gpu_memory_total": 0.9915 / 0.93,
    "memory_total": 0.98 / 0.95,
    "memory_copy": 0.7 / 0.5,
    "memory_triad": 0.7 / 0.5,
}


# A copy within a GPU's memory is published once; an H200 gives both of ours the same (RECORDED).
PUBLISHED_AS: Mapping[str, str] = {"vram_copy": "copy_own_d2d"}


def centre(box: Box, due: Due, dues: Mapping[str, Due], floors: Mapping[str, float]) -> float:
    """What a sound machine of this kind gives: recorded, published, or as far above its floor as an
    H200 is above its own.

    `dues` are all of the machine by measurement, `floors` those of an H200.
    """
    name, board = due.measurement, box.sheet.startswith(("H100 SXM", "H200 SXM"))
    if box.sheet.startswith("H200") and (found := RECORDED.get(name) or MEASURED.get(name)):
        return found
    if board and name in TRAINED:
        return TRAINED[name]
    if name in EVERYWHERE:
        return EVERYWHERE[name]
    if name.endswith("_kept"):
        return KEPT
    if name.startswith("gpu_burn_compares"):
        return COMPARES
    if name in MEMORY:
        return MEMORY[name][0 if board else 1]
    published = PUBLISHED_AS.get(name, name)
    if published in box.figures and name not in ("gpu_temperature", "p2p_gain"):
        given = box.figures[published]
        return statistics.mean(given) if isinstance(given, tuple) else given
    if name.startswith("burn_") and due.unit == "TFLOP/s":
        return VERIFIED * centre(box, dues[f"gemm_{name.removeprefix('burn_')}"], dues, floors)
    if (
        due.limit is not None
        and due.limit.low is not None
        and (name in SEEN or due.unit in ("TFLOP/s", "GB/s"))
    ):
        return due.limit.low * (SEEN.get(name) or _above(name, floors))
    # A link trains to all that it can; the others are shares of a published rate.
    shared = name.endswith("_share") and name != "disk_link_share"
    if shared and due.limit is not None and due.limit.low is not None:
        return ABOVE_SHARE * due.limit.low
    if due.limit is None and due.unit in ("TFLOP/s", "GFLOP/s", "GB/s"):
        most = due.ceiling.high if due.ceiling is not None else None
        found = RECORDED.get(name, 100.0)
        return found if most is None else min(found, POSSIBLE * most)
    return good_value(due)


def _above(measurement: str, floors: Mapping[str, float]) -> float:
    """How far above its floor an H200 is; assumed of cards of which nobody published it."""
    return RECORDED[measurement] / floors[measurement] if measurement in RECORDED else 1 / 0.98
