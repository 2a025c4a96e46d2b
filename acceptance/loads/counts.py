"""Which count a wrong result belongs to. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from acceptance.loads.miscompare import (
    DifferingDigests,
    DifferingRun,
    FailedFile,
    FileCheck,
    WrongCollective,
    WrongCopy,
    WrongFile,
    WrongLayer,
    WrongLayerRepeat,
    WrongMemory,
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
        case DifferingDigests():  # does not say its arm
            arms = (of_arm("collective_disagreements", arm) for arm in WITH_MULTICAST)
            return (*arms, "parallel_disagreements")
        case WrongTraining():
            return ("parallel_miscompares",)
        case WrongVector():
            return ("elementwise_miscompares",)
        case DifferingRun():
            return ("digest_repeats_differ",)
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
