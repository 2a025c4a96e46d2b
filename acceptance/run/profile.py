"""Profiles: named selections of loads with their seconds, read from `fixtures/profiles.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.core.nearest import nearest
from acceptance.core.plan import Reduction


class IdlePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a run gives way to other users of the machine.

    `niceness` is that of its loads (0 to 19). An idle GPU has at most `idle_use` of utilisation in
    each of `looks` samples, `apart_s` seconds apart. `most_skipped` nights in a row on which the
    machine was in use are a failure. Another rigproof run that has had the machine for less than
    `together_s` seconds was started for the same night; one that has had it for longer counts as
    any other user.
    """

    niceness: Annotated[int, msgspec.Meta(ge=0, le=19)]
    idle_use: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    looks: Annotated[int, msgspec.Meta(ge=1)]
    apart_s: Annotated[float, msgspec.Meta(ge=0)]
    most_skipped: Annotated[int, msgspec.Meta(ge=1)]
    together_s: Annotated[float, msgspec.Meta(ge=0)]


Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The longest time that a whole run should take, in seconds, by the number of GPUs."""

    one: Seconds
    two: Seconds
    eight: Seconds

    def of(self, gpus: int) -> float | None:
        """The goal of a machine with so many GPUs; None for another number."""
        return {1: self.one, 2: self.two, 8: self.eight}.get(gpus)


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A selection of loads: `seconds` by load; a load that is not named does not run.

    `cannot_detect` is shown before any load. `memory_gib_max` limits the memory test, where filling
    a large machine would take longer than the profile lasts. `nights` is set for a profile that
    runs unattended beside other work. `goal_s` is what `make bench` holds the planned time against;
    a profile that lasts as long as its user likes has none.
    """

    summary: str
    cannot_detect: tuple[str, ...]
    seconds: dict[str, Seconds]
    memory_gib_max: Annotated[float, msgspec.Meta(gt=0)] | None = None
    nights: IdlePolicy | None = None
    goal_s: Goal | None = None


# The burn of the whole machine. `--burn` (or BURN= in make) sets its time.
BURN = "burn"
# The burns of single parts before it keep their time, but last no longer than the whole burn. Other
# loads are measurements with their own time.
SINGLE = (
    "stress_ng",
    "cpu_gemm",
    "cpuburn",
    "stressapptest",
    "gpu_burn_float",
    "gpu_burn_tensor",
    "gpu_burn_double",
    "vram",
)


def read(path: Path) -> dict[str, Profile]:
    """Every profile by name. Raises UserError."""
    return resources.read(path, dict[str, Profile], UserError)


def choose(profiles: dict[str, Profile], name: str) -> Profile:
    """The profile of that name. Raises UserError, listing the names."""
    if name not in profiles:
        near = nearest(name, profiles)
        cure = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(profiles)}"
        raise UserError(f"there is no profile {name!r}: {cure}")
    return profiles[name]


def seconds(profile: Profile, burn_s: float | None) -> dict[str, float]:
    """Seconds of each load; `burn_s` replaces those of the burn of the whole machine.

    Single burns last no longer than that.
    """
    if burn_s is None:
        return dict(profile.seconds)
    at_most = dict.fromkeys(SINGLE, burn_s)
    found = {load: min(time, at_most.get(load, time)) for load, time in profile.seconds.items()}
    return {load: burn_s if load == BURN else time for load, time in found.items()}


def reductions(profile: Profile, loads_s: Mapping[str, float]) -> tuple[Reduction, ...]:
    """The loads that are shorter than the profile's own, the burn of the whole machine first."""
    names = sorted(profile.seconds, key=lambda load: load != BURN)
    return tuple(
        Reduction(load, loads_s[load], profile.seconds[load], "s")
        for load in names
        if loads_s[load] < profile.seconds[load]
    )
