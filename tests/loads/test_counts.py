"""To which count each wrong result of a load belongs."""

from __future__ import annotations

from typing import Any, get_args

from cases import each
from wrong_results import (
    ARRAY,
    COLLECTIVE,
    COPIED,
    CORE_REPEATED,
    DIGESTS,
    DIGESTS_OF_GPUS,
    FAILED,
    FILE,
    INEXACT,
    INPUTS,
    LAYER,
    LAYER_REPEATED,
    REPEATED,
    ROWS,
    RUN,
    TRAINED,
    TRANSFERRED,
    UNEQUAL,
    VECTOR,
    one_bit,
    vram,
)

from acceptance.core.dtype import DTYPES
from acceptance.expect import measurements
from acceptance.loads.miscompare import CollectiveVariant, FileCheck, read, read_or_keep

PRODUCT = one_bit(3)
RAM = {**vram([(64, 0, 4)]), "check": "ram", "component": "socket0"}


@each(
    "found, count",
    [
        (PRODUCT, "burn_bf16_miscompares"),
        (PRODUCT, "gemm_bf16_miscompares"),
        (INPUTS, "burn_bf16_miscompares"),
        ({**REPEATED, "dtype": "f64"}, "gemm_f64_miscompares"),
        ({**REPEATED, "dtype": "f32"}, "power_step_miscompares"),
        ({**REPEATED, "dtype": "f32"}, "power_pulses_miscompares"),
        ({**REPEATED, "dtype": "f32"}, "power_ladder_miscompares"),
        (COPIED, "burn_peer_miscompares"),
        ({**COPIED, "check": "copy_h2d"}, "burn_copy_miscompares"),
        ({**TRANSFERRED, "check": "copy_own_p2p"}, "copy_own_p2p_miscompares"),
        ({**TRANSFERRED, "check": "copy_own_h2d"}, "copy_own_miscompares"),
        (VECTOR, "elementwise_miscompares"),
        (vram([(64, 0, 4)]), "vram_miscompares"),
        (LAYER, "layer_miscompares"),
        (LAYER_REPEATED, "layer_miscompares"),
        (RUN, "digest_repeats_differ"),
        (TRAINED, "step_miscompares"),
        (UNEQUAL, "parallel_miscompares"),
        (DIGESTS_OF_GPUS, "collective_disagreements"),
        (DIGESTS_OF_GPUS, "collective_disagreements_p2p_off"),
        (DIGESTS_OF_GPUS, "parallel_disagreements"),
        (FILE, "storage_kept_errors"),
        (FAILED, "storage_failed"),
    ],
)
def test_the_count_of_a_wrong_result(found: dict[str, Any], count: str) -> None:
    assert count in read(found).counts


@each(
    "found, code",
    [
        (PRODUCT, "bf16"),
        (LAYER, "bf16"),
        (REPEATED, "f16"),
        (CORE_REPEATED, "repeat"),
        (COPIED, "peer"),
        ({**COPIED, "check": "copy_d2h"}, "copy"),
        (TRANSFERRED, "copy"),
        ({**TRANSFERRED, "check": "copy_own_p2p"}, "peer"),
        (DIGESTS, "digest"),
        (FAILED, "file"),
        ({"check": "new one"}, "result"),
    ],
)
def test_the_code_of_its_event(found: dict[str, Any], code: str) -> None:
    assert read_or_keep(found).code == code


@each("arm, behind", [("default", ""), ("p2p_off", "_p2p_off"), ("multicast", "_multicast")])
def test_a_collective_belongs_to_the_count_of_its_arm_alone(
    arm: CollectiveVariant, behind: str
) -> None:
    found = {**COLLECTIVE, "check": "all_reduce", "arm": arm}
    assert read(found).counts == (f"collective_miscompares{behind}",)
    path = {**found, "check": "send_receive", "component": "gpu0->gpu1"}
    assert read(path).counts == (f"collective_send_receive_miscompares{behind}",)


@each("found", [CORE_REPEATED, INEXACT, ROWS, DIGESTS])
def test_a_wrong_product_of_a_core_belongs_to_the_counts_of_processors(
    found: dict[str, Any],
) -> None:
    assert read(found).counts == ("cpu_gemm_miscompares_f64", "cpu_gemm_miscompares_f32")


@each(
    "found, count",
    [
        (ARRAY, "memory_triad_miscompares"),
        ({**ARRAY, "check": "copy"}, "memory_copy_miscompares"),
        (RAM, "memory_random_miscompares"),
        ({**RAM, "component": "socket0->socket1"}, "memory_random_remote_miscompares"),
    ],
)
def test_a_wrong_word_of_ram_belongs_to_one_count(found: dict[str, Any], count: str) -> None:
    assert read(found).counts == (count,)


@each("found", [FILE, DIGESTS, {"check": "new one"}, {"dtype": 3}])
def test_what_does_not_say_it_belongs_to_none_of_a_gpu(found: dict[str, Any]) -> None:
    told = read_or_keep(found).counts
    assert not [name for name in told if name.startswith(("burn", "gemm", "vram"))]


def test_each_count_is_a_measurement() -> None:
    shipped = measurements.shipped().by_name
    named = [
        name
        for found in (
            COPIED,
            TRANSFERRED,
            VECTOR,
            LAYER,
            RUN,
            TRAINED,
            UNEQUAL,
            DIGESTS,
            DIGESTS_OF_GPUS,
            ARRAY,
            RAM,
            COLLECTIVE,
            *({**FILE, "check": one} for one in get_args(FileCheck)),
            FAILED,
        )
        for name in read(found).counts
    ]
    named += [name for dtype in DTYPES for name in read({**PRODUCT, "dtype": dtype}).counts]
    assert [name for name in named if name not in shipped] == []
