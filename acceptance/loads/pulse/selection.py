"""Which power steps are due: by profile, and in which order. Pure.

The order is that of the risk: a part of the GPUs before all of them, and what changes slowly before
what changes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from acceptance.loads.pulse.contract import REST_S, Step

Check = Literal["power.ladder", "power.step", "power.pulses"]
Extent = Literal["short", "whole"]
Steps = Mapping[Check, tuple[Step, ...]]

# None: never, whoever asks.
PROFILES: Mapping[str, Extent | None] = {
    "smoke": None,
    "accept": "short",
    "nightly": None,
    "train": None,
    "soak": "whole",
}
# Any of these says that a scheduler has started us: other jobs share the supply.
JOBS = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "SGE_TASK_ID",
    "FLUX_JOB_ID",
    "OAR_JOB_ID",
    "_CONDOR_JOB_AD",
    "NOMAD_ALLOC_ID",
    "KUBERNETES_SERVICE_HOST",
)

SHORT_HZ = (1.0, 2.0, 5.0)
SHORT_COLD_S, SHORT_WAVE_S = 8.0, 9.0
WHOLE_HZ = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
WHOLE_S = 15.0
RUNGS = (1, 2, 4, 8)  # GPUs of the ladder; the last rung has them all
RUNG_HZ = 2.0  # within the band in which training swings, 0.2 to 3 Hz


def extent(profile: str, *, asked: bool, job: str | None) -> Extent | None:
    """How much of it a run does; None for none of it.

    `asked` is `--only power`, which gets the whole. `job` is the scheduler's variable (`in_job`):
    within its job nothing is done unless asked for. Raises KeyError for a profile that nobody has
    decided about.
    """
    own = PROFILES[profile]
    if own is None:
        return None
    if asked:
        return "whole"
    return None if job is not None else own


def in_job(environment: Mapping[str, str]) -> str | None:
    """The variable that says that this is a scheduler's job; None outside of one."""
    return next((name for name in JOBS if environment.get(name)), None)


def due(wanted: Extent, gpus: int) -> Steps:
    """The steps of each check on so many GPUs, in the order in which they run."""
    if wanted == "short":
        waves = tuple(Step("square", SHORT_WAVE_S, hertz) for hertz in SHORT_HZ)
        return {"power.step": (Step("cold", SHORT_COLD_S),), "power.pulses": waves}
    waves = tuple(Step("square", WHOLE_S, hertz) for hertz in WHOLE_HZ)
    return {
        "power.ladder": ladder(gpus),
        "power.step": (Step("ramp", WHOLE_S), Step("cold", WHOLE_S)),
        "power.pulses": (*_control(gpus), *waves),
    }


def ladder(gpus: int) -> tuple[Step, ...]:
    """The same wave on more and more GPUs."""
    counts = [*(count for count in RUNGS if count < gpus), gpus]
    return tuple(Step("square", WHOLE_S, RUNG_HZ, count) for count in counts)


def _control(gpus: int) -> tuple[Step, ...]:
    """The edges of each GPU without those of the machine; one GPU alone has no such control."""
    return (Step("anti_phase", WHOLE_S, RUNG_HZ),) if gpus > 1 else ()


def total_s(steps: Steps) -> float:
    """How long they take together, with the rest before each."""
    return sum(REST_S + step.seconds for one in steps.values() for step in one)
