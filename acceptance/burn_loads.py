"""The fixtures that load everything at once: the burn of the whole machine, and the memory test of all GPUs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from acceptance import command, gpu_identity, host_tools, selection
from acceptance.command import Completed
from acceptance.gpu_loads import GpuLoads, collected
from acceptance.judge.measurement import GIB
from acceptance.judge.plan import PlannedCheck
from acceptance.live import Listener
from acceptance.observe.inventory import Gpu, Inventory
from acceptance.program import Programs
from acceptance.tools import burn_load_output, stress_ng_command, stressapptest
from acceptance.tools.proof import ToolTrouble
from acceptance.tools.reading import ToolOutput

# What feeds the GPUs goes first: processors and RAM are loaded with what it leaves.
NICE = "10"
PROVING_S = 20.0  # that a GPU's load proves its first products before it burns: 18 s on an H200
# A GiB takes stressapptest 0.3 s to fill, in a VM up to 2, before its time begins. More than this, and the GPUs are done when it is ready.
FILL_GIB_S = 1.0
GPU_GIB = 4.0  # of RAM, for what feeds one GPU
LEAST_SHARE = 0.25  # of the RAM that the plan fills, however much the GPUs' loads may want

Listening = Callable[[Mapping[str, Sequence[str]]], Listener]


class PartFailed(Exception):
    """A part of the machine was not burned whole, so nothing is proved of it; the message says which parts, and why."""


@dataclass(frozen=True, slots=True)
class HostRun:
    """What a program that loads processors or RAM proved beside the GPUs' loads: its output; or why nothing was proved.

    `missing` is the cure where the program is not installed, `trouble` what kept it from proving anything.
    """

    output: ToolOutput | None = None
    missing: str | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """What each part of the machine proved while all of it was loaded; what one proves is kept when another fails."""

    gpus: GpuLoads
    processors: HostRun
    memory: HostRun
    memory_gib: float

    def troubles(self) -> list[str]:
        """Why a part proved nothing, one sentence each."""
        died = [f"{gpu}: {failure}" for gpu, failure in self.gpus.failed.items()]
        return [*died, *(run.trouble for run in (self.processors, self.memory) if run.trouble is not None)]


def memory_share(planned_gib: float, *, seconds: float, free_gib: float | None, gpus: int) -> float:
    """GiB of RAM that are filled beside the GPUs' loads: what the plan fills, but for what would not be full in time or crowds them out.

    `free_gib` is None where the kernel does not say. At least LEAST_SHARE of the plan's, and never more than the plan's.
    """
    room = planned_gib if free_gib is None else free_gib - GPU_GIB * gpus
    return min(planned_gib, max(min(room, FILL_GIB_S * seconds), LEAST_SHARE * planned_gib))


@pytest.fixture
def vram_run(
    programs: Programs, due_gpus: tuple[Gpu, ...], load_s: Mapping[str, float], listener: Listening
) -> Callable[[], GpuLoads]:
    """Runs the memory test on all GPUs at once, a process each."""

    def run() -> GpuLoads:
        seconds = load_s["vram"]
        identities = {gpu.name: gpu_identity.of_load(gpu) for gpu in due_gpus}
        argvs = [burn_load_output.vram_argv(sys.executable, seconds=seconds)] * len(due_gpus)
        envs = [selection.environment([gpu]) for gpu in due_gpus]
        done = programs.run_together(argvs, envs=envs, heard=listener({name: [name] for name in identities}))
        return collected(
            due_gpus,
            dict(zip(identities, done, strict=True)),
            lambda gpu, one: burn_load_output.read_vram(one, seconds=seconds, also=identities[gpu]),
        )

    return run


@dataclass(frozen=True, slots=True)
class _Host:
    """A program of the processors or the RAM: its command line, or the word on why there is none."""

    program: str
    argv: tuple[str, ...] | None
    run: HostRun
    read: Callable[[Completed], ToolOutput]

    def proved(self, done: Completed) -> HostRun:
        try:
            return HostRun(self.read(done))
        except ToolTrouble as trouble:
            told = str(trouble)
            return HostRun(trouble=told if told.startswith(self.program) else f"{self.program}: {told}")


def _host(program: str, argv: Callable[[str], tuple[str, ...]], read: Callable[[Completed], ToolOutput]) -> _Host:
    """One that is started so. One that is not installed, or cannot run with what is asked, keeps no other from running."""
    try:
        first = (command.find("nice", "coreutils"), "-n", NICE)
        return _Host(program, (*first, *argv(command.find(program, program))), HostRun(), read)
    except command.ProgramMissing as missing:
        return _Host(program, None, HostRun(missing=str(missing)), read)
    except ValueError as error:
        return _Host(program, None, HostRun(trouble=str(error)), read)


def _peers(planned: PlannedCheck, due: Sequence[Gpu]) -> dict[str, list[Gpu]]:
    """The GPUs that each GPU is to copy to, by its name: what the plan says is due."""
    ways = {one.component for one in planned.due if one.measurement == "burn_peer_copied"}
    return {gpu.name: [one for one in due if f"{gpu.name}->{one.name}" in ways] for gpu in due}


@pytest.fixture
def together(
    programs: Programs,
    planned: PlannedCheck,
    due_gpus: tuple[Gpu, ...],
    load_s: Mapping[str, float],
    memory_gib: float,
    inventory: Inventory,
    formats: Mapping[str, tuple[str, ...]],
    listener: Listening,
) -> Callable[[], Together]:
    """Runs the burns of all GPUs, stress-ng on every logical CPU and stressapptest over the RAM side by side, all for the same seconds.

    A machine without GPUs burns processors and RAM only. A program that is not installed is left out, and what it would have proved is
    not measured.
    """
    seconds, threads = load_s["burn"], inventory.cpu.threads
    # The GPUs' loads prove their first products before they burn: for as long processors and RAM go on beside them.
    proving_s = min(PROVING_S, seconds) if due_gpus else 0.0
    whole_s, free = max(1, round(seconds + proving_s)), inventory.memory.available_bytes
    gib = memory_share(
        memory_gib, seconds=seconds, free_gib=free / GIB if free is not None else None, gpus=len(due_gpus)
    )
    hosts = (
        _host(
            "stress-ng",
            lambda path: stress_ng_command.argv(path, seconds=whole_s, workers=threads, temp_path=str(programs.folder)),
            lambda done: host_tools.of_stress_ng(done, seconds=whole_s, threads=threads),
        ),
        _host(
            "stressapptest",
            lambda path: stressapptest.argv(path, megabytes=int(gib * 1024), seconds=whole_s, threads=threads),
            lambda done: host_tools.of_stressapptest(done, seconds=whole_s, gib=gib),
        ),
    )

    def run() -> Together:
        shown = {name: [name, *(one.name for one in peers)] for name, peers in _peers(planned, due_gpus).items()}
        by_name = {gpu.name: gpu for gpu in due_gpus}
        beside = [host.argv for host in hosts if host.argv is not None]
        argvs = [
            burn_load_output.burn_argv(sys.executable, dtypes=formats[name], seconds=seconds, peers=len(names) - 1)
            for name, names in shown.items()
        ]
        envs = [selection.environment([by_name[one] for one in names]) for names in shown.values()]
        done = programs.run_together(
            [*argvs, *beside],
            envs=[*envs, *({} for _ in beside)],
            heard=listener(shown),
        )
        gpus = collected(
            due_gpus,
            dict(zip(shown, done, strict=False)),
            lambda gpu, one: burn_load_output.read_burn(
                one,
                dtypes=formats[gpu],
                seconds=seconds,
                peers=len(shown[gpu]) - 1,
                also=gpu_identity.of_load(by_name[gpu]),
            ),
            shown,
        )
        ended = iter(done[len(shown) :])
        processors, memory = (host.run if host.argv is None else host.proved(next(ended)) for host in hosts)
        return Together(gpus, processors, memory, gib)

    return run
