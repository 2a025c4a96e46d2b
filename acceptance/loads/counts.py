"""Which count a wrong result belongs to. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from acceptance.core.parts import Core
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.miscompare import (
    DifferingDigests,
    DifferingRun,
    FailedFile,
    FileCheck,
    WrongArray,
    WrongCollective,
    WrongCopy,
    WrongFile,
    WrongFirstProduct,
    WrongLayer,
    WrongLayerRepeat,
    WrongMemory,
    WrongRepeat,
    WrongResult,
    WrongStep,
    WrongTraining,
    WrongTransfer,
    WrongVector,
    dtype_of,
)
from acceptance.loads.names import WITH_MULTICAST, of_arm
from acceptance.loads.storage import contract as storage

# Loads that name the format of a wrong product in its count, and checks of the one that does not.
_BY_FORMAT = ("gemm_{}_miscompares", "burn_{}_miscompares")
_OF_CORES = tuple(miscompares for miscompares, *_ in cpu.GEMM.values())
_OF_FILES: Mapping[FileCheck, str] = {
    "memmap": storage.MEMMAP_MISCOMPARES,
    "feed": storage.FEED_MISCOMPARES,
    "checkpoint": storage.CHECKPOINT_MISCOMPARES,
    "kept": storage.KEPT_ERRORS,
}
_OF_POWER = ("power_step_miscompares", "power_pulses_miscompares", "power_ladder_miscompares")


def counts_of(wrong: WrongResult) -> tuple[str, ...]:
    """The counts that a wrong result may belong to: the one of these that its check measures.

    None where the result does not say.
    """
    match wrong:
        case WrongCopy():
            peer = wrong.check == "copy_p2p"
            return ("burn_peer_miscompares" if peer else "burn_copy_miscompares",)
        case WrongTransfer():
            peer = wrong.check == "copy_own_p2p"
            return ("copy_own_p2p_miscompares" if peer else "copy_own_miscompares",)
        case WrongCollective():
            path = wrong.check == "send_receive"
            base = "collective_send_receive_miscompares" if path else "collective_miscompares"
            return (of_arm(base, wrong.arm),)
        case WrongFirstProduct() | WrongRepeat(component=Core(), dtype=None):
            return _OF_CORES
        case DifferingDigests() if any(
            isinstance(one, Core) for own in wrong.digests.values() for one in own
        ):
            return _OF_CORES
        case DifferingDigests():  # does not say its arm
            arms = (of_arm("collective_disagreements", arm) for arm in WITH_MULTICAST)
            return (*arms, "parallel_disagreements")
        case WrongTraining():
            return ("parallel_miscompares",)
        case WrongVector():
            return ("elementwise_miscompares",)
        case DifferingRun():
            return ("digest_repeats_differ",)
        case WrongArray():
            _, miscompares = cpu.BANDWIDTH[wrong.check]
            return (miscompares,)
        case WrongMemory(check="ram"):
            _, miscompares = cpu.random_names(wrong.component)
            return (miscompares,)
        case WrongMemory():
            return ("vram_miscompares",)
        case WrongLayer() | WrongLayerRepeat():
            return ("layer_miscompares",)
        case WrongStep():
            return ("step_miscompares",)
        case WrongFile():
            return (_OF_FILES[wrong.check],)
        case FailedFile():
            return ("storage_failed",)
        case _:
            dtype = dtype_of(wrong)
            if dtype is None:
                return ()
            return (*(one.format(dtype) for one in _BY_FORMAT), *_OF_POWER)
