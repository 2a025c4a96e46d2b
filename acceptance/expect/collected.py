"""The checks as pytest collected them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from acceptance.core.collection import Session
from acceptance.core.message import Message, Text, known
from acceptance.wording.errors import WordedError


class PlanError(WordedError):
    """The plan cannot be made; the message is one sentence for the user.

    `place` is the path of the key at fault in the machine file (`("waiver", 0, "skip")`),
    `sentence` what is wrong with it.
    """

    def __init__(
        self, sentence: str, where: Text | None = None, place: tuple[str | int, ...] = ()
    ) -> None:
        told = Message("plan_refused", known(where=where, why=sentence))
        super().__init__(told.code, **told.values)
        self.sentence = sentence
        self.place = place


def nearest(name: str, known_names: Iterable[str], where: str) -> str:
    """The cure for a name that there is not: the nearest that there is, else where to look."""
    import difflib  # only for somebody's slip

    close = difflib.get_close_matches(name, sorted(set(known_names)), n=1)
    return f"did you mean {close[0]}?" if close else f"correct it ({where})"


class Measures(msgspec.Struct, frozen=True):
    """A measurement that a check declares, as its family has it.

    `per` is the class of components. A *fact* is due only where the machine file declares it.
    `waivable` is false for measurements that no waiver may excuse (miscompares). `ratio_of` is the
    measurement that a ratio between equal components is made of.
    """

    name: str
    unit: str
    per: str
    fact: bool = False
    waivable: bool = True
    ratio_of: str | None = None


class CollectedCheck(msgspec.Struct, frozen=True):
    """One check as pytest collected it.

    `calculated_s` is its time from `seconds`, `load`, `extra_load`, `seconds_per_gib` for each GiB
    of RAM that is filled, `core_seconds_per_gib` for each GiB that all cores fill together,
    `seconds_per_gpu`, `seconds_per_pair`, and `seconds_per_turn` for each turn of the GPUs that
    share the way to the host (`machine.topology.host_turns`). `extra_load` is a part of the check
    that it makes only where the profile names it. `slack` is the extra time in seconds before its
    programs are ended, and `slack_per_gib` that for each GiB of RAM. `heats` marks a load that
    keeps its components in full use. `loads_gpus` marks a load that keeps every due GPU busy at
    once, for its whole time. `last` marks one that runs after all others, because the machine may
    not survive it.
    """

    id: str
    title: str
    session: Session
    measures: tuple[Measures, ...]
    seconds: float
    load: str | None = None
    extra_load: str | None = None
    gate: bool = False
    seconds_per_gib: float = 0.0
    core_seconds_per_gib: float = 0.0
    seconds_per_gpu: float = 0.0
    seconds_per_pair: float = 0.0
    seconds_per_turn: float = 0.0
    slack: float = 0.0
    slack_per_gib: float = 0.0
    heats: bool = False
    loads_gpus: bool = False
    last: bool = False

    def calculated_s(
        self, loads_s: Mapping[str, float], memory_gib: float, gpus: int, cores: int, turns: int
    ) -> float:
        """Seconds of this check: its own, its loads', and those for RAM, GPUs, ordered pairs and
        turns.

        `loads_s` are the seconds of each load, its own among them; `memory_gib` is the tested RAM.
        Without `cores` that the kernel shows, one core fills it. `turns` is the largest number of
        GPUs that share the way to the host.
        """
        seconds = self.seconds + (loads_s[self.load] if self.load else 0.0)
        seconds += loads_s.get(self.extra_load, 0.0) if self.extra_load else 0.0
        seconds += self.seconds_per_gib * memory_gib + self.seconds_per_gpu * gpus
        seconds += self.core_seconds_per_gib * memory_gib / max(1, cores)
        seconds += self.seconds_per_turn * turns
        return seconds + self.seconds_per_pair * gpus * (gpus - 1)
