"""Everything before a run: machine file, inventory, limits, and the plan.

No hardware is loaded and no journal is written here.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance import resources
from acceptance.core import collection
from acceptance.core.limit import GIB, MIB
from acceptance.core.plan import Plan
from acceptance.core.record import Note, Observed
from acceptance.expect import (
    ceiling,
    components,
    declaration,
    gpu_limits,
    limit_book,
    measurements,
    plan_builder,
)
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.journal import provenance
from acceptance.machine import gpu_selection, machine_file, topology
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.machine_file import Machine
from acceptance.observe.inventory import observe
from acceptance.observe.sensors import Sensors
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.run import check_cache, profile
from acceptance.session import context as session_context
from acceptance.station.options import Options

# Share of the free RAM that the memory test fills where the machine file does not say: the rest is
# for the system and our own logs.
TEST_SHARE = 0.8
ROOM = MIB  # bytes: many times what collecting writes


# Not judged in a virtual machine: a healthy 16-core VM showed 0.89 to 1.05.
CORE_RATIOS = ("cpu_gemm_core_ratio_f64", "cpu_gemm_core_ratio_f32")
VIRTUAL_CORES = (
    "virtual CPUs share their cores with other guests: a [[limit]] in the machine "
    "file judges "
    "them all the same"
)


class PreparationError(Exception):
    """rigproof itself could not make the plan; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start.

    `notes` tell the reader of its reports how it was prepared.
    """

    options: Options
    machine: Machine | None
    inventory: Inventory
    plan: Plan
    profile_summary: str
    notes: tuple[Note, ...] = ()

    def matrix(self) -> topology.Topology:
        """The paths between GPUs and network cards."""
        return topology.build(self.inventory, self.inventory.places)

    def observed(self) -> Observed:
        """The inventory and the topology as a record."""
        return Observed(msgspec.to_builtins(self.inventory), self.matrix().rows())


def collect(root: Path) -> session_context.Answer:
    """All checks, as the package's own pytest collects them. Raises PreparationError."""
    with start_collection(root) as answer:
        return answer()


@contextlib.contextmanager
def start_collection(root: Path) -> Iterator[Callable[[], session_context.Answer]]:
    """Like `collect`, in two steps with time for other work between them.

    The context's value is a function that waits for the checks. They are collected once for each
    package, Python and pytest. Both steps raise PreparationError.
    """
    digest = provenance.package_digest()
    known = check_cache.read(digest)
    if known is not None:
        yield lambda: known
        return

    def collected() -> session_context.Answer:
        found = _answer(running.wait(), answer)
        # otherwise the package changed meanwhile, and the list's origin is unknown
        if found.digest == digest:
            check_cache.keep(found)
        return found

    with contextlib.ExitStack() as kept:
        with _room_for_files():
            folder = Path(
                kept.enter_context(
                    tempfile.TemporaryDirectory(prefix="rigproof-", ignore_cleanup_errors=True)
                )
            )
            context, answer = folder / "context.json", folder / "answer.json"
            session_context.write(
                session_context.SessionContext(mode="collect", root=str(root), answer=str(answer)),
                context,
            )
        argv, env = session_context.argv(context), session_context.environment(None)
        running = command.start(argv, deadline=Deadline.after(120.0), env=env, cwd=folder)
        try:
            yield collected
        finally:
            running.stop()


@contextlib.contextmanager
def _room_for_files() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        text = (
            f"no temporary file can be written in {tempfile.tempdir or 'any folder'} "
            f"({error.strerror})"
        )
        raise PreparationError(
            f"{text}: free some space, or set TMPDIR to a folder that has some"
        ) from error


def _answer(done: command.ProgramResult, answer: Path) -> session_context.Answer:
    with _room_for_files():
        if done.returncode != 0 or not answer.is_file():
            # A full disk raises here; pytest itself would print a traceback.
            answer.with_name("room").write_bytes(bytes(ROOM))
            reason = done.last_lines() or "install it again"
            raise PreparationError(
                f"rigproof's own checks could not be collected ({done.describe()}): {reason}"
            )
        text = answer.read_bytes()
    try:
        return msgspec.json.decode(text, type=session_context.Answer)
    except ValueError as error:
        raise PreparationError(
            f"rigproof's own checks are not marked as they should be: {error}"
        ) from error


def overrides(declared: Machine, file: str, inventory: Inventory) -> Iterator[Override]:
    """All limits from the machine file, strongest first."""
    yield from declaration.own_limits(declared, file)
    yield from declaration.declared_limits(declared, file)
    named = [dimm.configured_mts or dimm.rated_mts for dimm in declared.memory.dimm]
    found = [dimm.configured_mts or dimm.rated_mts for dimm in inventory.memory.dimms or ()]
    rates = [rate for rate in named if rate is not None] or [
        rate for rate in found if rate is not None
    ]
    yield from declaration.bandwidth_limits(declared, tuple(rates), file)


def _host_ceilings(inventory: Inventory) -> Iterator[Override]:
    """The ceilings of processors and RAM.

    A virtual machine's modules are ignored, because its firmware invents them.
    """
    cpu, modules = inventory.cpu, () if inventory.cpu.virtualised else inventory.memory.dimms or ()
    singles = [components.core_name(core) for group in cpu.core_groups for core in group.cores]
    rates = [(dimm.configured_mts or dimm.rated_mts, dimm.data_width_bits) for dimm in modules]
    cores = max(cpu.cores or 0, len(singles)) or known(cpu.threads)
    return ceiling.host_ceilings(cores, singles, rates)


def book(
    declared: Machine | None, file: str | None, inventory: Inventory, names: tuple[str, ...]
) -> LimitBook:
    """The limits of this machine with these GPUs, in order of precedence."""
    defaults = limit_book.class_defaults(measurements.shipped())
    if inventory.cpu.virtualised:
        defaults = defaults.after(
            Override(name, "virtual machine", unlimited=VIRTUAL_CORES) for name in CORE_RATIOS
        )
    defaults = defaults.after(gpu_limits.overrides(inventory, names, declared))
    defaults = defaults.under(gpu_limits.ceilings(inventory, names)).under(
        _host_ceilings(inventory)
    )
    if declared is None or file is None:
        return defaults
    return defaults.after(overrides(declared, file, inventory))


def memory_gib(declared: Machine | None, chosen: profile.Profile, inventory: Inventory) -> float:
    """GiB of RAM that the memory test fills.

    The declared share of the free RAM, at most the profile's maximum.
    """
    share = (
        declared.memory.test_share
        if declared and declared.memory.test_share is not None
        else TEST_SHARE
    )
    free = inventory.memory.available_bytes
    if free is None:  # kernels before 3.14 do not report it
        free = known(inventory.memory.total_bytes) // 2
    return min(share * free / GIB, chosen.memory_gib_max or float("inf"))


def memory_gap(
    filled_gib: float, declared: Machine | None, chosen: profile.Profile, inventory: Inventory
) -> list[str]:
    """A gap where less than half of the share is free, unless the profile asks for no more."""
    share = (
        declared.memory.test_share
        if declared and declared.memory.test_share is not None
        else TEST_SHARE
    )
    total = known(inventory.memory.total_bytes) / GIB
    if filled_gib >= min(0.5 * share * total, chosen.memory_gib_max or float("inf")):
        return []
    return [
        (
            f"memory: only {filled_gib:.1f} of {total:.1f} GiB can be filled: end what holds the "
            "rest (`free -h`), or hugepages"
        )
    ]


def prepare(options: Options) -> PreparedRun:
    """Make the plan. Passes on the errors of its parts, each one sentence for the user."""
    declared = machine_file.read(options.machine_file) if options.machine_file else None
    chosen = profile.choose(profile.read(resources.locate("profiles.toml")), options.profile)
    # observation and collection take about a second each, and run side by side
    with start_collection(options.root) as collected:
        inventory = observe(options.root)
        answer = collected()
    file = options.machine_file.name if options.machine_file else None
    names = gpu_selection.names(
        options.gpus, gpus(inventory), components.gpu_count(declared, inventory)
    )
    classes = components.resolve(declared, inventory, Sensors.find(options.root).offered(), names)
    filled_gib = memory_gib(declared, chosen, inventory)
    total_gib = known(inventory.memory.total_bytes) / GIB
    untested = f"RAM beyond the {filled_gib:.1f} of {total_gib:.1f} GiB that the memory test fills"
    try:
        made = plan_builder.build(
            answer.checks,
            profile=options.profile,
            loads_s=profile.seconds(chosen, options.burn_s),
            memory_gib=filled_gib,
            cannot_detect=chosen.cannot_detect,
            components=classes,
            not_offered=(*components.not_offered(classes), untested),
            book=book(declared, file, inventory, names),
            waivers=declared.waiver if declared else (),
            declared_in=file,
            only=options.only,
            digest=answer.digest,
            gaps=(
                *gpu_limits.gaps(inventory, names),
                *memory_gap(filled_gib, declared, chosen, inventory),
            ),
            narrowed=bool(options.gpus),
            siblings=components.siblings(declared, inventory, names),
        )
    except collection.PlanError as error:
        if options.machine_file is None or not error.place:
            raise
        raise machine_file.key_error(options.machine_file, error.place, error.sentence) from error
    return PreparedRun(options, declared, inventory, made, chosen.summary)
