"""What a run says of its verified load, and of the memory that it tested."""

from __future__ import annotations

import math

import journals
import samples
from cases import each
from known import known
from msgspec.structs import replace

from acceptance.core.limit import GIB
from acceptance.core.parts import CPU, GPUS, MEMORY, Gpu
from acceptance.core.plan import PlannedCheck
from acceptance.journal.run import Run
from acceptance.reports import verdict_json, verified_load
from acceptance.reports.verified_load import LoadTime, MemoryShare

RAM = journals.due("memory_tested", MEMORY, "GiB")
CARD = journals.due("vram_tested", Gpu(0), "ratio")


def verifying(name: str, *parts: object, seconds: float, own: float) -> PlannedCheck:
    made = journals.check(name, RAM if name.startswith("memory") else CARD)
    return replace(made, verifies=parts, load_s=seconds, own_s=own)


PLAN = replace(
    journals.plan(
        verifying("memory.filled", MEMORY, seconds=10.0, own=60.0),
        verifying("vram.patterns", GPUS, seconds=5.0, own=20.0),
        replace(journals.check("cpu.copy"), verifies=(CPU, GPUS), load_s=1.0, own_s=90.0),
        journals.check("link.copy"),
    ),
    own_memory_gib=128.0,
)


def run(tested_gib: float = 4.0, share: float = 0.95) -> Run:
    values = {("memory_tested", MEMORY): tested_gib, ("vram_tested", Gpu(0)): share}
    return samples.seen(samples.run(journals.bodies(PLAN, values)))


BODIES = journals.bodies(PLAN)
CPU_LOAD, MEMORY_LOAD = LoadTime(CPU, 1.0, 1.0, 90.0), LoadTime(MEMORY, 10.0, 10.0, 60.0)


@each(
    "found, times",
    [
        (run(), (LoadTime(GPUS, 6.0, 6.0, 110.0), CPU_LOAD, MEMORY_LOAD)),
        (
            samples.run([one for one in BODIES if getattr(one, "check", None) != "vram.patterns"]),
            (LoadTime(GPUS, 1.0, 6.0, 110.0), CPU_LOAD, MEMORY_LOAD),
        ),
        (samples.run(journals.bodies(journals.plan())), ()),
    ],
    told=["of its checks", "one that did not end has verified nothing", "a plan of nothing"],
)
def test_the_seconds_of_each_part(found: Run, times: tuple[LoadTime, ...]) -> None:
    assert verified_load.load_times(found) == times


TOTAL, CARD_SHARE = known(run().inventory.memory.total_bytes), MemoryShare(Gpu(0), 0.95)


@each(
    "found, shares",
    [
        (run(), [MemoryShare(MEMORY, 4.0 * GIB / TOTAL, 4.0, 128.0), CARD_SHARE]),
        *((run(value, value), []) for value in (-1.0, math.inf, math.nan)),
        (
            samples.run(
                journals.bodies(
                    PLAN, {("memory_tested", MEMORY): 4.0, ("vram_tested", Gpu(0)): 0.95}
                )
            ),
            [CARD_SHARE],
        ),
    ],
    told=["measured", *("no amount",) * 3, "RAM of no known size"],
)
def test_the_share_of_each_memory(found: Run, shares: list[MemoryShare]) -> None:
    assert list(verified_load.tested_memory(found)) == shares


def test_programs_and_people_are_told_the_same() -> None:
    content = verdict_json.read(verdict_json.render(run()))
    assert content.verified_load == (
        verdict_json.VerifiedLoad("gpus", 6.0, 6.0, 110.0),
        verdict_json.VerifiedLoad("cpu", 1.0, 1.0, 90.0),
        verdict_json.VerifiedLoad("memory", 10.0, 10.0, 60.0),
    )
    memory, card = content.tested_memory  # type: ignore[misc]  # it is there
    assert (memory.component, memory.gib, memory.own_gib) == ("memory", 4.0, 128.0)
    assert card == verdict_json.MemoryShare("gpu0", 0.95)
    told = list(verified_load.lines(run()))
    assert [line.partition(":")[0] for line in told] == ["gpus", "cpu", "memory", "memory", "gpu0"]
