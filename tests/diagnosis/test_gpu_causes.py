"""The conditions of the causes of the GPUs' loads: a case that confirms each, one that excludes it,
one that cannot tell. The causes are the shipped ones, the values are judged in a built verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

from cases import each

from acceptance.core.advice import Condition, LikelyCause
from acceptance.core.finding import Finding, Within
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Text
from acceptance.core.parts import parse
from acceptance.core.plan import Due
from acceptance.core.record import Event, Measured
from acceptance.core.verdict import CheckResult, Verdict, judge_due
from acceptance.diagnosis.causes import Evidence, Standing, evidence, ordered, standing
from acceptance.expect import measurements

Facts = Mapping[str, float | str]
CONFIRMED: Standing = "confirmed"
EXCLUDED: Standing = "excluded"
OPEN: Standing = "open"
LOG_READ: Facts = {"kernel_faults_during@machine": 0}
SAID = {"failed": 2.0, "sound": 0.5}  # of a limit of at most 1


def measured(
    facts: Facts, events: tuple[Event, ...] = (), notes: Mapping[str, Text] | None = None
) -> Evidence:
    """The evidence of a run that measured `facts`: by "measurement@component" a value, or that it
    failed or was sound. `notes` are the values' by measurement.
    """
    judged = []
    for told, fact in facts.items():
        name, _, component = told.partition("@")
        within = (Within(Limit("count", "a basis", high=1)),) if isinstance(fact, str) else ()
        due = Due(name, parse(component), "count", within, "")
        value = SAID[fact] if isinstance(fact, str) else fact
        body = Measured(
            "a check", name, due.component, "count", value, note=(notes or {}).get(name)
        )
        judged.append(judge_due(due, "a check", [body], (), ()))
    check = CheckResult("a check", "", "load", "fail", 1.0, tuple(judged), (), events)
    verdict = Verdict("full", "run", "accept", True, (check,), (), (), {})
    return evidence(verdict, {parse("0000:01:00.0"): parse("gpu0")})


def failure(measurement: str, component: str, note: Text | None = None) -> Finding:
    return Finding(
        "fail",
        "a check",
        "outside_limit",
        measurement=measurement,
        component=parse(component),
        note=note,
    )


def stands(
    measurement: str, component: str, words: str, facts: Facts, note: str = "", event: str = ""
) -> Standing:
    """How the one cause of the measurement whose `what` holds `words` stands."""
    (cause,) = [one for one in causes_of(measurement) if words in one.what]
    kind, _, told_code = event.partition(".")
    code = int(told_code) if told_code.isdecimal() else told_code or None
    events = (Event(kind, "error", "", "", "", code, component=GPU0),) if event else ()
    told = Message("note", {"text": (Message(note),)}) if note else None
    return standing(cause, failure(measurement, component, told), measured(facts, events))


GPU0 = parse("0000:01:00.0")


def causes_of(measurement: str) -> tuple[LikelyCause, ...]:
    return measurements.shipped().by_name[measurement].advice.causes


PAIR = "gpu0->gpu1"
WRONG = "collective_miscompares"
RIGHT_OFF: Facts = {
    "collective_miscompares_p2p_off@gpu0": 0,
    "collective_miscompares_p2p_off@gpu1": 0,
    "collective_send_receive_miscompares_p2p_off@gpu0->gpu1": 0,
    "collective_disagreements_p2p_off@gpus": 0,
}
RIGHT_ON: Facts = {name.replace("_p2p_off", ""): 0 for name in RIGHT_OFF}
WRONG_OFF: Facts = {**RIGHT_OFF, "collective_miscompares_p2p_off@gpu0": 2}
WRONG_ON: Facts = {**RIGHT_ON, "collective_miscompares@gpu0": 2}
REFUSED: Facts = {f"p2p_supported@{PAIR}": 0}
OFFERED: Facts = {f"p2p_supported@{PAIR}": 1}
NO_NVLINK_ERRORS: Facts = {
    "gpu_nvlink_crc_errors@gpu0": 0,
    "gpu_nvlink_replays@gpu0": 0,
    "gpu_nvlink_recoveries@gpu0": 0,
    **LOG_READ,
}
COOL: Facts = {"gpu_sw_thermal_slowdown@gpu0": 0, "gpu_hw_thermal_slowdown@gpu0": 0}
HOT: Facts = {**COOL, "gpu_sw_thermal_slowdown@gpu0": 0.4}
NO_OWN: Facts = {"gemm_f16_miscompares@gpu0": 0, "burn_f16_miscompares@gpu0": 0}
NOT_HELD: Facts = {**COOL, "gpu_hw_slowdown@gpu0": 0, "gpu_power_brake@gpu0": 0}
NOTHING_WRONG: Facts = {
    **NO_OWN,
    "gpu_burn_errors_float@gpu0": 0,
    "elementwise_miscompares@gpu0": 0,
    "layer_miscompares@gpu0": 0,
    "vram_miscompares@gpu0": 0,
    "gpu_ecc_uncorrected@gpu0": 0,
    "gpu_ecc_uncorrected_new@gpu0": 0,
    "gpu_remapped_new@gpu0": 0,
    "gpu_retired_new@gpu0": 0,
}
DRY_PCIE: Facts = {"gpu_pcie_replays@gpu0": 0, **LOG_READ}
SENT = "collective_send_receive_miscompares"
Case = tuple[str, str, str, Facts, Standing]

BY_VALUES: tuple[Case, ...] = (
    # gemm
    ("gemm_bf16_ratio", "gpu0", "back by heat", HOT, OPEN),
    ("gemm_bf16_ratio", "gpu0", "back by heat", COOL, EXCLUDED),
    ("gemm_bf16_ratio", "gpu0", "back by heat", {"gpu_sw_thermal_slowdown@gpu0": 0}, OPEN),
    ("gemm_bf16_ratio", "gpu1", "back by heat", HOT, OPEN),
    ("gemm_bf16_ratio", "gpu0", "worst air", COOL, EXCLUDED),
    ("gemm_bf16_ratio", "gpu0", "worst air", HOT, OPEN),
    ("gemm_bf16", "gpu0", "by heat", {"gpu_temperature_margin@gpu0": "failed"}, OPEN),
    (
        "gemm_bf16",
        "gpu0",
        "by heat",
        {
            "gpu_temperature_margin@gpu0": "sound",
            "gpu_sw_thermal_slowdown@gpu0": "sound",
            "gpu_hw_thermal_slowdown@gpu0": "sound",
        },
        EXCLUDED,
    ),
    ("gemm_bf16", "gpu0", "by heat", {"gpu_temperature_margin@gpu0": "sound"}, OPEN),
    (
        "gemm_bf16",
        "gpu0",
        "supply",
        {
            "gpu_hw_slowdown@gpu0": 1,
            "gpu_power_brake@gpu0": 0,
            "gpu_hw_thermal_slowdown@gpu0": 0,
        },
        CONFIRMED,
    ),
    (
        "gemm_bf16",
        "gpu0",
        "supply",
        {"gpu_hw_slowdown@gpu0": 1, "gpu_hw_thermal_slowdown@gpu0": 1},
        OPEN,
    ),
    (
        "gemm_bf16",
        "gpu0",
        "supply",
        {"gpu_hw_slowdown@gpu0": 0, "gpu_power_brake@gpu0": 0},
        EXCLUDED,
    ),
    ("gemm_bf16_short", "gpu0", "another card", {"gpu_sm_count@gpu0": "failed"}, CONFIRMED),
    ("gemm_bf16_short", "gpu0", "another card", {"gpu_sm_count@gpu0": "sound"}, OPEN),
    ("gemm_bf16_miscompares", "gpu0", "memory", {"vram_miscompares@gpu0": 1}, CONFIRMED),
    ("gemm_bf16_miscompares", "gpu0", "memory", {"vram_miscompares@gpu0": 0}, OPEN),
    ("gemm_bf16_miscompares", "gpu0", "riser", {"gpu_pcie_replays@gpu0": "failed"}, CONFIRMED),
    ("gemm_bf16_miscompares", "gpu0", "riser", {"gpu_pcie_replays@gpu0": 0}, OPEN),
    # Wrong data on its way to another GPU proves nothing of this one's slot.
    ("gemm_bf16_miscompares", "gpu0", "riser", {"copy_faults@gpus": "failed"}, OPEN),
    (
        "gemm_bf16_miscompares",
        "gpu0",
        "riser",
        {"gpu_pcie_replays@gpu0": 0, "copy_faults@gpu0": 0},
        EXCLUDED,
    ),
    # burn
    ("burn_f16_kept", "gpu0", "power cap", {"gpu_power_cap@gpu0": 0}, EXCLUDED),
    ("burn_f16_kept", "gpu0", "power cap", {"gpu_power_cap@gpu0": 60}, OPEN),
    ("burn_filled", "gpu0", "little memory", {"gpu_memory_total@gpu0": 7.8}, CONFIRMED),
    ("burn_filled", "gpu0", "little memory", {"gpu_memory_total@gpu0": 23.6}, EXCLUDED),
    ("burn_filled", "gpu0", "little memory", {}, OPEN),
    ("burn_copied", "gpu0", "narrower", {"gpu_link_width@gpu0": "failed"}, CONFIRMED),
    (
        "burn_copied",
        "gpu0",
        "narrower",
        {"gpu_link_width@gpu0": "sound", "gpu_link_gen@gpu0": "sound"},
        EXCLUDED,
    ),
    ("burn_copied", "gpu0", "narrower", {"gpu_link_width@gpu0": "sound"}, OPEN),
    ("burn_cpu_failures", "cpu", "sag", {"stress_ng_failures@cpu": 1}, EXCLUDED),
    ("burn_cpu_failures", "cpu", "sag", {"stress_ng_failures@cpu": 0}, OPEN),
    ("burn_cpu_failures", "cpu", "overheats", {"cpu_temperature@cpu": "failed"}, CONFIRMED),
    # It slows down some degrees below the limit.
    ("burn_cpu_failures", "cpu", "overheats", {"cpu_temperature@cpu": "sound"}, OPEN),
    ("burn_memory_errors", "memory", "module", {"memory_errors_corrected@memory": 3}, CONFIRMED),
    ("burn_memory_errors", "memory", "supply", {"stressapptest_errors@memory": 1}, EXCLUDED),
    (
        "burn_digests_differ",
        "gpu0",
        "this GPU computes",
        {"burn_f16_miscompares@gpu0": 1},
        CONFIRMED,
    ),
    (
        "burn_digests_differ",
        "gpu0",
        "this GPU computes",
        {"burn_peer_miscompares@gpu0->gpu1": 1},
        OPEN,
    ),
    (
        "burn_digests_differ",
        "gpu0",
        "the other of two",
        {
            "burn_digests_differ@gpu0": 1,
            "burn_digests_differ@gpu1": 1,
            "burn_f16_miscompares@gpu0": 0,
            "burn_f16_miscompares@gpu1": 1,
        },
        CONFIRMED,
    ),
    (
        "burn_digests_differ",
        "gpu1",
        "the other of two",
        {
            "burn_digests_differ@gpu0": 1,
            "burn_digests_differ@gpu1": 1,
            "burn_f16_miscompares@gpu0": 0,
            "burn_f16_miscompares@gpu1": 1,
        },
        EXCLUDED,
    ),
    ("burn_digests_differ", "gpu0", "the other of two", {}, OPEN),
    (
        "burn_digests_differ",
        "gpu0",
        "either may",
        {
            "burn_digests_differ@gpu0": 1,
            "burn_digests_differ@gpu1": 1,
            "burn_f16_miscompares@gpu1": 1,
        },
        EXCLUDED,
    ),
    (
        "burn_digests_differ",
        "gpu0",
        "either may",
        {
            "burn_digests_differ@gpu0": 1,
            "burn_digests_differ@gpu1": 0,
            "burn_digests_differ@gpu2": 0,
        },
        EXCLUDED,
    ),
    (
        "burn_digests_differ",
        "gpu0",
        "either may",
        {"burn_digests_differ@gpu0": 1, "burn_digests_differ@gpu1": 1},
        OPEN,
    ),
    (
        "burn_digests_differ",
        "gpu0",
        "either may",
        # Two pairs of two models, of which one pair differs.
        {f"burn_digests_differ@gpu{gpu}": differ for gpu, differ in enumerate((1, 1, 0, 0))},
        OPEN,
    ),
    # gpu-burn
    (
        "gpu_burn_compares_float",
        "gpu0",
        "so slow",
        {"gpu_burn_ratio_float@gpu0": "failed"},
        CONFIRMED,
    ),
    (
        "gpu_burn_compares_float",
        "gpu0",
        "so slow",
        {"gpu_burn_ratio_float@gpu0": "sound"},  # all of them may be slow
        OPEN,
    ),
    ("gpu_burn_compares_float", "gpu0", "so slow", {"gpu_burn_ratio_float@gpu1": "failed"}, OPEN),
    # nvbandwidth
    ("copy_h2d", "gpu0", "again", {"gpu_pcie_replays@gpu0": "failed"}, CONFIRMED),
    ("copy_h2d", "gpu0", "again", {"gpu_pcie_replays@gpu0": 0}, EXCLUDED),
    ("copy_h2d", "gpu0", "again", {"gpu_pcie_replays@gpu0": "sound"}, OPEN),
    ("copy_h2d", "gpu0", "channels", {"memory_copy@memory": "failed"}, CONFIRMED),
    ("copy_h2d", "gpu0", "channels", {"memory_copy@memory": "sound"}, OPEN),
    ("copy_h2d", "gpu0", "IOMMU", {"copy_h2d@gpu1": "sound", "copy_d2h@gpu1": "sound"}, EXCLUDED),
    ("copy_h2d", "gpu0", "IOMMU", {"copy_h2d@gpu1": "failed"}, OPEN),
    ("copy_h2d", "gpu0", "IOMMU", {"copy_h2d@gpu0": "failed"}, OPEN),
    ("copy_d2d_read", PAIR, "NVLink", {"nvlink_active@gpu1": "failed"}, CONFIRMED),
    (
        "copy_d2d_read",
        PAIR,
        "NVLink",
        {"nvlink_active@gpu1": "sound", "nvlink_speed@gpu1": "sound"},
        EXCLUDED,
    ),
    ("copy_d2d_read", PAIR, "NVLink", {"nvlink_active@gpu2": "failed"}, OPEN),
    ("copy_faults", "gpus", "peer access", {}, CONFIRMED),
    ("copy_own_miscompares", "gpu0", "peer access", {}, EXCLUDED),
    ("copy_faults", "gpu0", "riser", {"gpu_pcie_replays@gpu0": "failed"}, CONFIRMED),
    ("copy_faults", "gpu0", "riser", {"gpu_pcie_replays@gpu0": 0, **LOG_READ}, EXCLUDED),
    ("copy_faults", "gpu0", "riser", {"gpu_pcie_replays@gpu0": 0}, OPEN),
    ("copy_faults", "gpu0", "RAM", {"stressapptest_errors@memory": 1}, CONFIRMED),
    # peers
    ("link_contradictions", PAIR, "bridge", {"nvlink_active@gpu0": "failed"}, CONFIRMED),
    ("link_contradictions", PAIR, "bridge", {"nvlink_active@gpu0": "sound"}, OPEN),
    (
        "link_contradictions",
        PAIR,
        "setting of NCCL",
        {f"transport_faults@{PAIR}": 0, f"transport_doubts@{PAIR}": 0},
        EXCLUDED,
    ),
    ("link_contradictions", PAIR, "setting of NCCL", {f"transport_doubts@{PAIR}": 1}, OPEN),
    # copies
    ("copy_own_p2p_miscompares", PAIR, "memory of one", {"vram_miscompares@gpu1": 4}, CONFIRMED),
    ("copy_own_p2p_miscompares", PAIR, "memory of one", {"vram_miscompares@gpu2": 4}, OPEN),
    ("copy_own_p2p_miscompares", PAIR, "bridge", NO_NVLINK_ERRORS, EXCLUDED),
    ("copy_own_p2p_miscompares", PAIR, "bridge", {"gpu_nvlink_replays@gpu1": "failed"}, CONFIRMED),
    ("copy_own_p2p_miscompares", PAIR, "bridge", {"gpu_nvlink_replays@gpu1": 0}, OPEN),
    # collectives
    (WRONG, "gpu0", "peer access", {**RIGHT_OFF, **WRONG_ON}, CONFIRMED),
    (WRONG, "gpu0", "peer access", {**WRONG_OFF, **WRONG_ON}, EXCLUDED),
    (WRONG, "gpu0", "peer access", WRONG_ON, OPEN),
    (WRONG, "gpu0", "peer access", {**RIGHT_OFF, f"p2p_supported@{PAIR}": 0}, EXCLUDED),
    (f"{WRONG}_p2p_off", "gpu0", "peer access", {**WRONG_OFF, **RIGHT_ON}, EXCLUDED),
    (WRONG, "gpu0", "NVLink", {**WRONG_OFF, **WRONG_ON}, EXCLUDED),
    (WRONG, "gpu0", "NVLink", {**RIGHT_OFF, "gpu_nvlink_crc_errors@gpu0": "failed"}, CONFIRMED),
    (WRONG, "gpu0", "NVLink", {**RIGHT_OFF, **NO_NVLINK_ERRORS}, EXCLUDED),
    (WRONG, "gpu0", "NVLink", RIGHT_OFF, OPEN),
    (WRONG, "gpu0", "a GPU", {**WRONG_OFF, "gemm_f16_miscompares@gpu1": 1}, CONFIRMED),
    (WRONG, "gpu0", "a GPU", {**RIGHT_OFF, "gemm_f16_miscompares@gpu1": 1}, CONFIRMED),
    (WRONG, "gpu0", "a GPU", {**RIGHT_OFF, **WRONG_ON, **NO_OWN}, EXCLUDED),
    (WRONG, "gpu0", "a GPU", {**RIGHT_OFF, **WRONG_ON}, OPEN),
    # Without peer access both arms go the same way, and one was right by chance.
    (WRONG, "gpu0", "a GPU", {**RIGHT_OFF, **WRONG_ON, **NO_OWN, **REFUSED}, OPEN),
    (WRONG, "gpu0", "RAM", {**RIGHT_OFF, **WRONG_ON, **REFUSED}, OPEN),
    # A GPU that is wrong alone explains all that it takes part in.
    (WRONG, "gpu0", "peer access", {**RIGHT_OFF, "burn_f16_miscompares@gpu1": 1}, OPEN),
    # The data of a GPU comes from all of them, over all their links.
    (WRONG, "gpu0", "riser", {**DRY_PCIE, "gpu_pcie_replays@gpu1": "failed"}, CONFIRMED),
    (WRONG, "gpu0", "riser", {**DRY_PCIE, "gpu_pcie_replays@gpu1": 3}, OPEN),
    (WRONG, "gpu0", "riser", {**DRY_PCIE, "gpu_pcie_replays@gpu1": 0}, EXCLUDED),
    (
        WRONG,
        "gpu0",
        "NVLink",
        {**RIGHT_OFF, **NO_NVLINK_ERRORS, "gpu_nvlink_crc_errors@gpu1": "failed"},
        CONFIRMED,
    ),
    (
        SENT,
        PAIR,
        "NVLink",
        {**RIGHT_OFF, **NO_NVLINK_ERRORS, "gpu_nvlink_crc_errors@gpu2": "failed"},
        EXCLUDED,
    ),
    (WRONG, "gpu0", "a GPU", {**WRONG_OFF, **WRONG_ON, **NO_OWN}, OPEN),
    (f"{WRONG}_p2p_off", "gpu0", "RAM", {**RIGHT_ON, "stressapptest_errors@memory": 1}, CONFIRMED),
    (f"{WRONG}_p2p_off", "gpu0", "RAM", RIGHT_ON, OPEN),
    (WRONG, "gpu0", "RAM", RIGHT_OFF, EXCLUDED),
    (WRONG, "gpu0", "RAM", {**WRONG_ON, **OFFERED}, OPEN),
    # multicast
    (f"{WRONG}_multicast", "gpu0", "NVSwitch", {"collective_miscompares@gpu0": 0}, CONFIRMED),
    (f"{WRONG}_multicast", "gpu0", "NVSwitch", WRONG_ON, OPEN),
    (f"{WRONG}_multicast", "gpu0", "a GPU", RIGHT_ON, EXCLUDED),
    (f"{WRONG}_multicast", "gpu0", "a GPU", WRONG_ON, OPEN),
    (
        f"{WRONG}_multicast",
        "gpu0",
        "a GPU",
        {**WRONG_ON, "gemm_f16_miscompares@gpu1": 1},
        CONFIRMED,
    ),
    (WRONG, "gpu0", "RAM", {**WRONG_ON, f"p2p_supported@{PAIR}": 0}, OPEN),
    (WRONG, "gpu0", "RAM", WRONG_ON, OPEN),
    (
        "collective_all_reduce",
        "gpus",
        "one path",
        {"collective_send_receive_ratio@gpu0->gpu1": "failed"},
        CONFIRMED,
    ),
    (
        "collective_all_reduce",
        "gpus",
        "one path",
        {"collective_send_receive_ratio@gpu0->gpu1": "sound"},
        EXCLUDED,
    ),
    ("collective_all_reduce", "gpus", "one path", {}, OPEN),
    ("transport_faults", PAIR, "driver refuses", {f"p2p_supported@{PAIR}": 0}, CONFIRMED),
    (
        "transport_faults",
        PAIR,
        "driver refuses",
        {**REFUSED, "p2p_supported@gpu1->gpu0": 1},  # in one direction alone
        CONFIRMED,
    ),
    ("transport_faults", PAIR, "driver refuses", OFFERED, EXCLUDED),
    ("transport_faults", PAIR, "driver refuses", {}, OPEN),
    # training
    ("layer_bert_ratio", "gpu0", "as for products", {"gemm_bf16@gpu0": "failed"}, CONFIRMED),
    (
        "layer_bert_ratio",
        "gpu0",
        "as for products",
        {"gemm_bf16@gpu0": "sound", "gemm_bf16_ratio@gpu0": "sound", **NOT_HELD},
        EXCLUDED,
    ),
    (
        "layer_bert_ratio",
        "gpu0",
        "as for products",
        # Heat that came after the products.
        {"gemm_bf16@gpu0": "sound", "gemm_bf16_ratio@gpu0": "sound", **NOT_HELD, **HOT},
        OPEN,
    ),
    ("layer_bert_ratio", "gpu0", "as for products", {"gemm_bf16@gpu0": "sound"}, OPEN),
    ("step_gpt2_ratio", "gpu0", "by heat", {"gemm_bf16_ratio@gpu0": "sound", **HOT}, OPEN),
    (
        "step_gpt2_ratio",
        "gpu0",
        "by heat",
        {"gemm_bf16_ratio@gpu0": "sound", **NOT_HELD},
        EXCLUDED,
    ),
    (
        "parallel_ddp",
        "gpus",
        "more slowly, and",
        {"gemm_bf16_ratio@gpu0": "sound", **NOT_HELD},
        EXCLUDED,
    ),
    (
        "parallel_ddp",
        "gpus",
        "more slowly, and",
        {"gemm_bf16_ratio@gpu0": "sound", **NOT_HELD, "gpu_power_brake@gpu1": 2},
        OPEN,
    ),
    ("step_gpt2_ratio", "gpu0", "by heat", COOL, OPEN),
    ("step_miscompares", "gpu0", "only under such", {"gemm_f16_miscompares@gpu0": 0}, CONFIRMED),
    (
        "step_miscompares",
        "gpu0",
        "only under such",
        {**NO_OWN, "vram_miscompares@gpu0": 1},
        EXCLUDED,
    ),
    ("step_miscompares", "gpu0", "only under such", {}, OPEN),
    ("step_miscompares", "gpu0", "the GPU computes", {"burn_f16_miscompares@gpu0": 1}, CONFIRMED),
    (
        "step_miscompares",
        "gpu0",
        "the GPU computes",
        NOTHING_WRONG,
        EXCLUDED,
    ),
    (
        "step_miscompares",
        "gpu0",
        "the GPU computes",
        {**NOTHING_WRONG, "gpu_ecc_uncorrected_new@gpu0": 1},
        CONFIRMED,
    ),
    (
        "step_miscompares",
        "gpu0",
        "only under such",
        {**NOTHING_WRONG, "gpu_ecc_uncorrected_new@gpu0": 1},
        EXCLUDED,
    ),
    (
        "step_miscompares",
        "gpu0",
        "only under such",
        {**NOTHING_WRONG, "gpu_burn_errors_tensor@gpu0": 1},
        EXCLUDED,
    ),
    (
        "step_miscompares",
        "gpu0",
        "the GPU computes",
        {**NOTHING_WRONG, "layer_miscompares@gpu0": 1},
        CONFIRMED,
    ),
    ("step_miscompares", "gpu0", "the GPU computes", NO_OWN, OPEN),
    ("step_miscompares", "gpu0", "library", {"step_miscompares@gpu1": 0}, EXCLUDED),
    ("digest_repeats_differ", "gpu0", "marginal", {"gpu_burn_errors_tensor@gpu0": 1}, CONFIRMED),
    ("digest_repeats_differ", "gpu0", "marginal", {"gpu_burn_errors_tensor@gpu1": 1}, OPEN),
    # What ECC has corrected changed nothing.
    ("digest_repeats_differ", "gpu0", "memory of", {"gpu_ecc_corrected_new@gpu0": 4}, OPEN),
    ("digest_repeats_differ", "gpu0", "memory of", {"gpu_ecc_uncorrected_new@gpu0": 1}, CONFIRMED),
    ("parallel_miscompares", "gpus", "torch", {**RIGHT_ON, **RIGHT_OFF, **NO_OWN}, CONFIRMED),
    ("parallel_miscompares", "gpus", "torch", {**WRONG_ON, **RIGHT_OFF, **NO_OWN}, EXCLUDED),
    ("parallel_miscompares", "gpus", "torch", NO_OWN, OPEN),
    ("parallel_miscompares", "gpus", "peer access", {**WRONG_ON, **RIGHT_OFF}, CONFIRMED),
    ("parallel_miscompares", "gpus", "peer access", {**RIGHT_ON, **RIGHT_OFF}, EXCLUDED),
    ("parallel_miscompares", "gpus", "a GPU", {**RIGHT_ON, **RIGHT_OFF}, OPEN),
    # vram
    ("vram_tested", "gpu0", "8 GB", {"gpu_memory_total@gpu0": 23.6}, EXCLUDED),
    ("vram_tested", "gpu0", "8 GB", {"gpu_memory_total@gpu0": 7.8}, OPEN),
    ("vram_rate", "gpu0", "corrects", {"gpu_ecc_corrected_new@gpu0": 0}, EXCLUDED),
    ("vram_rate", "gpu0", "corrects", {}, OPEN),
)

BY_NOTE: tuple[tuple[str, str, str, str, Standing], ...] = (
    ("burn_f16_miscompares", "gpu0", "memory", "means_memory_bit", CONFIRMED),
    ("burn_f16_miscompares", "gpu0", "memory", "means_datapath", OPEN),
    ("burn_f16_miscompares", "gpu0", "chip", "means_datapath", CONFIRMED),
    ("burn_f16_miscompares", "gpu0", "chip", "means_memory_bit", EXCLUDED),
    ("burn_f16_miscompares", "gpu0", "chip", "means_many", OPEN),
    ("burn_digests_differ", "gpu0", "inputs", "inputs_differ", CONFIRMED),
    ("burn_digests_differ", "gpu0", "inputs", "result_differs", EXCLUDED),
    ("vram_miscompares", "gpu0", "address line", "means_address_line", CONFIRMED),
    ("vram_miscompares", "gpu0", "address line", "means_memory_bit", EXCLUDED),
    ("vram_miscompares", "gpu0", "address line", "means_many", OPEN),
    ("vram_miscompares", "gpu0", "a cell", "means_memory_bit", CONFIRMED),
    ("vram_miscompares", "gpu0", "a cell", "means_address_line", EXCLUDED),
    ("vram_miscompares", "gpu0", "a cell", "means_one_bit_once", OPEN),
    ("copy_own_p2p_miscompares", PAIR, "nowhere", "means_lost_copies", CONFIRMED),
    ("copy_own_p2p_miscompares", PAIR, "nowhere", "means_copies", EXCLUDED),
    ("copy_own_p2p_miscompares", PAIR, "nowhere", "", OPEN),
    ("collective_send_receive", PAIR, "the card", "slow_path_card", CONFIRMED),
    ("collective_send_receive", PAIR, "the card", "slow_path_link", EXCLUDED),
    ("collective_send_receive", PAIR, "the card", "slow_path_untold", OPEN),
    ("collective_send_receive", PAIR, "bridge", "slow_path_link", CONFIRMED),
    ("transport_faults", PAIR, "variable", "transport_cause_setting", CONFIRMED),
    ("transport_faults", PAIR, "/dev/shm", "transport_net", CONFIRMED),
    ("transport_faults", PAIR, "/dev/shm", "transport_nvlink_host", EXCLUDED),
    ("digest_differs", "gpu0", "now and then", "digest_transient", CONFIRMED),
    ("digest_differs", "gpu0", "now and then", "digest_persistent", EXCLUDED),
    ("digest_differs", "gpu0", "same way", "digest_persistent", CONFIRMED),
    ("digest_differs", "gpu0", "either", "digest_persistent_of_two", CONFIRMED),
    ("digest_differs", "gpu0", "either", "digest_unexplained", OPEN),
)

BY_EVENT: tuple[tuple[str, str, str, Facts, str, Standing], ...] = (
    ("copy_faults", "gpu0", "riser", {"gpu_pcie_replays@gpu0": 0}, "aer.fatal", CONFIRMED),
    # What the link has repaired changed no data, and shows that it is poor.
    ("copy_faults", "gpu0", "riser", {"gpu_pcie_replays@gpu0": 0}, "aer.corrected", OPEN),
    (WRONG, "gpu0", "NVLink", RIGHT_OFF, "xid.74", CONFIRMED),
    ("gpu_seen_by_cuda", "gpu0", "lost or hangs", {}, "xid.79", CONFIRMED),
    ("gpu_seen_by_cuda", "gpu1", "lost or hangs", LOG_READ, "xid.79", OPEN),
)


@each(
    "measurement, component, words, facts, note, event, due",
    [
        *((*one, facts, "", "", due) for *one, facts, due in BY_VALUES),
        *((*one, {}, note, "", due) for *one, note, due in BY_NOTE),
        *((*one, "", event, due) for *one, event, due in BY_EVENT),
    ],
)
def test_what_was_measured_or_noted_or_happened_decides(
    measurement: str,
    component: str,
    words: str,
    facts: Facts,
    note: str,
    event: str,
    due: Standing,
) -> None:
    assert stands(measurement, component, words, facts, note, event) == due


@each("path, due", [("NV4", EXCLUDED), ("PHB", OPEN), (None, OPEN)])
def test_what_stands_between_pcie_cards_changes_nothing_on_nvlinks(
    path: str | None, due: Standing
) -> None:
    note = {"p2p_supported": Message("peer_path", {"path": path})} if path else None
    (cause,) = [one for one in causes_of("copy_own_p2p_miscompares") if "IOMMU" in one.what]
    found = measured(OFFERED, notes=note)
    assert standing(cause, failure("copy_own_p2p_miscompares", PAIR), found) == due


def test_a_note_is_read_to_its_last_message() -> None:
    note = Message("a", {"of": (Listed((Message("digest_transient"), "words")), 1.0)})
    (cause,) = [one for one in causes_of("digest_differs") if "now and then" in one.what]
    assert standing(cause, failure("digest_differs", "gpu0", note), measured({})) == CONFIRMED


def test_a_finding_of_no_component_is_of_one_gpu_or_several_nobody_knows() -> None:
    (cause,) = [one for one in causes_of("copy_faults") if "peer access" in one.what]
    finding = Finding("fail", "a check", "outside_limit", measurement="copy_faults")
    assert standing(cause, finding, measured({})) == OPEN


def test_a_condition_that_only_excludes_has_no_say_in_what_confirms() -> None:
    alone = Condition(measurement="p2p_supported", is_="not zero", settles="excludes")
    other = Condition(measurement="copy_faults", is_="zero")
    found = measured({**OFFERED, "copy_faults@gpus": 0})
    finding = failure("copy_own_p2p_miscompares", PAIR)
    told = [
        standing(LikelyCause("what", "tell", when), finding, found)
        for when in (alone, (alone, other), (alone, other, alone))
    ]
    assert told == [OPEN, CONFIRMED, CONFIRMED]


BY_NVLINK = {"p2p_supported": Message("peer_path", {"path": "NV18"})}
BY_PCIE = {"p2p_supported": Message("peer_path", {"path": "SYS"})}


def stands_with(
    measurement: str, component: str, words: str, facts: Facts, notes: Mapping[str, Text]
) -> Standing:
    (cause,) = [one for one in causes_of(measurement) if words in one.what]
    return standing(cause, failure(measurement, component), measured(facts, notes=notes))


BOTH_WRONG: Facts = {**WRONG_ON, **WRONG_OFF, **OFFERED}
OFF_RIGHT: Facts = {**WRONG_ON, **RIGHT_OFF, **OFFERED}
NARROW: Facts = {**OFFERED, "gpu_link_width@gpu0": "failed"}


@each(
    "measurement, component, words, facts, notes, due",
    [
        # NCCL leaves peer access alone that is far: then both arms go through host memory.
        (WRONG, "gpu0", "RAM", BOTH_WRONG, BY_NVLINK, EXCLUDED),
        (WRONG, "gpu0", "RAM", BOTH_WRONG, BY_PCIE, OPEN),
        (WRONG, "gpu0", "RAM", {**BOTH_WRONG, "p2p_supported@gpu0->gpu2": 0}, BY_NVLINK, OPEN),
        (SENT, PAIR, "RAM", BOTH_WRONG, BY_NVLINK, EXCLUDED),
        # a machine without NVLink has no fault of one
        (WRONG, "gpu0", "NVLink", OFF_RIGHT, BY_NVLINK, OPEN),
        (WRONG, "gpu0", "NVLink", OFF_RIGHT, BY_PCIE, EXCLUDED),
        ("copy_own_p2p_miscompares", PAIR, "bridge", OFFERED, BY_NVLINK, OPEN),
        ("copy_own_p2p_miscompares", PAIR, "bridge", OFFERED, BY_PCIE, EXCLUDED),
        # copies over NVLink are not slow by a narrow slot
        ("copy_d2d_read", PAIR, "narrow", NARROW, BY_NVLINK, OPEN),
        ("copy_d2d_read", PAIR, "narrow", NARROW, BY_PCIE, CONFIRMED),
    ],
)
def test_what_joins_two_gpus_decides(
    measurement: str,
    component: str,
    words: str,
    facts: Facts,
    notes: Mapping[str, Text],
    due: Standing,
) -> None:
    assert stands_with(measurement, component, words, facts, notes) == due


HEAT_OF = ("gemm_bf16", "gemm_bf16_short_ratio", "gpu_burn_float", "step_gpt2_ratio")


@each(
    "measurement, during, due",
    [
        (one, during, due)
        for one in HEAT_OF
        for during, due in (
            (("another check", "a check"), CONFIRMED),
            (("another check",), OPEN),  # it came later
            (None, OPEN),
        )
    ],
)
def test_heat_explains_the_checks_that_it_came_in(
    measurement: str, during: tuple[str, ...] | None, due: Standing
) -> None:
    facts = {**HOT, "gpu_sw_thermal_slowdown@gpu0": "failed"}
    told = Message("during_checks", {"checks": Listed(during)}) if during else None
    notes = {"gpu_sw_thermal_slowdown": told} if told else {}
    words = "heat holds" if measurement == "gpu_burn_float" else "by heat"
    assert stands_with(measurement, "gpu0", words, facts, notes) == due


def test_nvlink_errors_come_before_the_peer_access_that_uses_it() -> None:
    facts = {**WRONG_ON, **RIGHT_OFF, **OFFERED, "gpu_nvlink_crc_errors@gpu0": "failed"}
    found = measured(facts, notes=BY_NVLINK)
    first, *_ = ordered(causes_of(WRONG), failure(WRONG, "gpu0"), found)
    assert (first[0].fault, first[1]) == ("NVLink", True)


def test_wrong_sums_with_and_without_peer_access_point_to_a_gpu_before_all_else() -> None:
    """Not peer access, no NVLink and no RAM: only a GPU and the way to it are left."""
    found = measured({**WRONG_ON, **WRONG_OFF, **OFFERED}, notes=BY_NVLINK)
    left = [one.what for one, _ in ordered(causes_of(WRONG), failure(WRONG, "gpu0"), found)]
    assert [one.split(" that ")[0] for one in left] == ["a GPU", "a riser, slot or cable"]
