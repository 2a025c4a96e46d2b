"""Everything before a run: machine file, inventory, limits, and the plan.

No hardware is loaded and no journal is written here.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import msgspec

from acceptance import resources
from acceptance.core import message, parts
from acceptance.core.evidence import Observed, Scratch
from acceptance.core.limit import GIB, MIB
from acceptance.core.message import (
    Listed,
    Message,
    SetupError,
    Text,
    UserError,
    Values,
    english,
    plural,
)
from acceptance.core.parts import Component, Core, parse
from acceptance.core.plan import SITE, LimitSet, Plan, Reduction, SiteSheet, matches_patterns
from acceptance.core.record import Note
from acceptance.expect import (
    ceiling,
    components,
    declaration,
    gpu_limits,
    gpu_names,
    limit_book,
    limit_version,
    measurements,
    plan_builder,
    site_sheets,
    storage_limits,
)
from acceptance.expect.collected import CollectedCheck, PlanError
from acceptance.expect.declared_inventory import Observation, declared_machine
from acceptance.expect.disk_sheet import DiskSheet
from acceptance.expect.limit_book import LimitBook, Override
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.expect.sheet import Sheet
from acceptance.expect.site_sheets import Sheets
from acceptance.journal import provenance
from acceptance.loads.pulse import selection
from acceptance.loads.work import work_of
from acceptance.machine import (
    channels,
    disk_link,
    gpu_selection,
    machine_file,
    scratch_place,
    topology,
)
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.machine_file import Machine
from acceptance.machine.toml_place import spell
from acceptance.observe import storage
from acceptance.observe.cpu import power_limit_w
from acceptance.observe.inventory import observe
from acceptance.observe.presence import missing_gpus, paravirtualised, presence, shortfalls
from acceptance.observe.sensors import Sensors
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.reports.text import duration
from acceptance.run import check_cache, profile, scratch, site_collection, site_folder
from acceptance.run.site_collection import CollectedSite
from acceptance.session import context as session_context
from acceptance.station import preflight
from acceptance.station.options import Options
from acceptance.wording import words

# Share of the free RAM that the memory test fills where the machine file does not say: the rest is
# for the system and our own logs.
TEST_SHARE = 0.8
# The share of what would be filled by default below which RAM is a gap, and a run shortened.
LEAST_FILLED = 0.5
LEAST_THREAD_MIB = 64  # RAM for each thread of the memory test, where the machine has as much
MEMORY_TEST = "stressapptest"  # the load that fills it
PRESENT = "gpu.present"  # the check that a missing GPU fails
ROOM = MIB  # bytes: many times what collecting writes


# Not judged in a virtual machine: a healthy 16-core VM showed 0.89 to 1.05.
CORE_RATIOS = ("cpu_gemm_core_ratio_f64", "cpu_gemm_core_ratio_f32")
VIRTUAL_CORES = Message(
    english(
        "cores_shared",
        "virtual CPUs share their cores with other guests: a {key} in the machine file judges "
        "them all the same",
    ),
    {"key": "[[limit]]"},
)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start.

    `notes` tell the reader of its reports how it was prepared. `alarm` is what must be said at
    once: a GPU is missing, which is a FAIL whatever follows. `scratches` are the folders that the
    storage tests write in, `limits` what the plan's limits come from. `site` are the site's own
    checks, where the run has any. `undeclared` is what the machine file leaves out, of a plan for
    the machine that it declares.
    """

    options: Options
    machine: Machine | None
    inventory: Inventory
    plan: Plan
    profile_summary: str
    notes: tuple[Note, ...] = ()
    alarm: tuple[Message, ...] = ()
    scratches: tuple[Scratch, ...] = ()
    limits: LimitSet | None = None
    site: CollectedSite | None = None
    undeclared: tuple[Message, ...] = ()

    def matrix(self) -> topology.Topology:
        """The paths between GPUs and network cards."""
        return topology.build(self.inventory, self.inventory.places)

    def observed(self) -> Observed:
        """The inventory and the topology as a record."""
        return Observed(msgspec.to_builtins(self.inventory), self.matrix().rows())


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was asked of a run: its options, and what the files that they name hold.

    `declared` is the machine file. `overlay` are the site's sheets, which lie in `folder`; `sheets`
    are all that are in effect. `site` are the site's own checks, `checks` all that were collected.
    """

    options: Options
    declared: Machine | None
    profile: profile.Profile
    folder: Path | None
    overlay: tuple[SiteSheet, ...]
    sheets: Sheets
    site: CollectedSite | None
    checks: tuple[CollectedCheck, ...] = ()

    @property
    def file(self) -> str | None:
        """The name of the machine file."""
        return self.options.machine_file.name if self.options.machine_file else None

    @property
    def environment(self) -> Mapping[str, str]:
        """Where a scheduler names the job around this run."""
        return {} if self.options.as_declared else os.environ

    def error(self, place: Sequence[str | int], sentence: str) -> UserError:
        """The error of a key of the machine file, which is there."""
        assert self.options.machine_file is not None
        return machine_file.key_error(self.options.machine_file, place, sentence)


@dataclass(frozen=True, slots=True)
class Subject:
    """The machine under test: what is seen of it, and which of its GPUs were `asked` for.

    `declared` is the machine file as far as it holds for the GPUs on the bus. `missing` are those
    asked for that cannot be tested. `job` is the scheduler's job that has a part of the machine.
    """

    seen: Observation
    declared: Machine | None
    asked: tuple[Component, ...]
    missing: tuple[Component, ...]
    job: gpu_selection.Job | None

    @property
    def inventory(self) -> Inventory:
        """The machine as it shows itself."""
        return self.seen.inventory

    @property
    def names(self) -> tuple[Component, ...]:
        """The GPUs under test."""
        return tuple(name for name in self.asked if name not in self.missing)


def collect(root: Path) -> session_context.Answer:
    """All checks, as the package's own pytest collects them. Raises SetupError."""
    with start_collection(root) as answer:
        return answer()


@contextlib.contextmanager
def start_collection(root: Path) -> Iterator[Callable[[], session_context.Answer]]:
    """Like `collect`, in two steps with time for other work between them.

    The context's value is a function that waits for the checks. They are collected once for each
    package, Python and pytest. Both steps raise SetupError.
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
        raise SetupError(
            f"{text}: free some space, or set TMPDIR to a folder that has some"
        ) from error


def _answer(done: command.ProgramResult, answer: Path) -> session_context.Answer:
    with _room_for_files():
        if done.returncode != 0 or not answer.is_file():
            # A full disk raises here; pytest itself would print a traceback.
            answer.with_name("room").write_bytes(bytes(ROOM))
            reason = done.last_lines() or "install it again"
            raise SetupError(
                "rigproof's own checks could not be collected "
                f"({words.message(done.describe())}): {reason}"
            )
        text = answer.read_bytes()
    try:
        return msgspec.json.decode(text, type=session_context.Answer)
    except ValueError as error:
        raise SetupError(
            f"rigproof's own checks are not marked as they should be: {error}"
        ) from error


def overrides(declared: Machine, file: str, inventory: Inventory) -> Iterator[Override]:
    """All limits from the machine file, strongest first."""
    yield from declaration.own_limits(declared, file)
    yield from declaration.declared_limits(declared, file)
    if channels.channels(inventory) is not None:
        yield from declaration.channel_limits(declared, file)
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
    if not ceiling.are_all_memory(cpu.model, [dimm.kind for dimm in modules]):
        modules = ()
    if cpu.threads is None and not cpu.core_groups and not cpu.cores:
        return iter(())  # no file declares the processors
    singles = [Core(core[0]) for group in cpu.core_groups for core in group.cores]
    # Some firmware has the configured speed in MHz, which is half of it.
    rates = [
        (
            max(filter(None, (dimm.configured_mts, dimm.rated_mts)), default=None),
            dimm.data_width_bits,
        )
        for dimm in modules
    ]
    cores = max(cpu.cores or 0, len(singles)) or known(cpu.threads)
    return ceiling.host_ceilings(cores, singles, rates)


def read_disk_links(
    scratches: Sequence[Scratch], inventory: Inventory, root: Path
) -> dict[str, tuple[float, Message]]:
    """The most that the link of each tested disk can carry, by the disk's name."""
    tested = {name for one in scratches for name in one.disks}
    links = {
        disk.name: storage.read_link(disk, root)
        for disk in known(inventory.disks)
        if disk.name in tested
    }
    return {
        name: most
        for name, link in links.items()
        if link is not None and (most := disk_link.most(link)) is not None
    }


def disk_limits(
    scratches: Sequence[Scratch],
    inventory: Inventory,
    links: Mapping[str, tuple[float, Message]],
    sheets: Sequence[DiskSheet],
) -> tuple[tuple[Override, ...], tuple[Override, ...]]:
    """The limits and the ceilings of the tested filesystems, from links and sheets of the disks.

    In a virtual machine a link sets no ceiling: the port above a passed-through disk, and all of an
    emulated one, is the hypervisor's own, and need not say what it carries.
    """
    found, ceilings = storage_limits.overrides(scratches, known(inventory.disks), links, sheets)
    return found, () if inventory.cpu.virtualised else ceilings


def book(
    declared: Machine | None,
    file: str | None,
    inventory: Inventory,
    names: tuple[Component, ...],
    of_disks: tuple[tuple[Override, ...], tuple[Override, ...]] = ((), ()),
    models: Sequence[Sheet] | None = None,
    of_site: measurements.Measurements | None = None,
) -> LimitBook:
    """The limits of this machine with these GPUs and tested disks, in order of precedence.

    `models` are the GPU sheets; None for rigproof's own. `of_site` are the measurements of the
    site's own checks. None of them is a shipped one.
    """
    if models is None:
        models = gpu_limits.sheets()
    defaults = limit_book.class_defaults(measurements.shipped())
    if of_site is not None:
        own = limit_book.class_defaults(of_site).entries
        defaults = defaults.after(replace(one, origin=limit_book.SITE) for one in own)
    if inventory.cpu.virtualised:
        defaults = defaults.after(
            Override(
                name,
                Message(english("virtual_machine", "virtual machine")),
                unlimited=VIRTUAL_CORES,
            )
            for name in CORE_RATIOS
        )
    defaults = defaults.after(gpu_limits.overrides(inventory, names, declared, models))
    defaults = defaults.under(gpu_limits.ceilings(inventory, names, models)).under(
        _host_ceilings(inventory)
    )
    defaults = defaults.after(of_disks[0]).under(of_disks[1])
    for families in (measurements.shipped(), of_site):
        if families is not None:
            defaults = defaults.under(limit_book.class_ceilings(families))
    return (
        defaults
        if declared is None or file is None
        else defaults.after(overrides(declared, file, inventory))
    )


def memory_gib(declared: Machine | None, chosen: profile.Profile, inventory: Inventory) -> float:
    """GiB of RAM that the memory test fills where no GPU is loaded beside it.

    The declared share of the free RAM, at most the profile's maximum.
    """
    if inventory.memory.total_bytes is None:
        return 0.0  # no file declares it
    whole_gib = test_share(declared) * inventory.memory.free_bytes / GIB
    return min(whole_gib, chosen.memory_gib_max or float("inf"))


def test_share(declared: Machine | None) -> float:
    """The share of the free RAM that the memory test fills where no profile limits it."""
    return (
        TEST_SHARE
        if declared is None or declared.memory.test_share is None
        else declared.memory.test_share
    )


def memory_untested(
    filled_gib: float,
    declared: Machine | None,
    chosen: profile.Profile,
    inventory: Inventory,
    fill_s: float,
) -> list[Message]:
    """The RAM that the memory test leaves out, and which profile fills it.

    `fill_s` is the time to fill a GiB, in seconds. Nothing where the profile has no memory test.
    """
    if MEMORY_TEST not in chosen.seconds or inventory.memory.total_bytes is None:
        return []
    free_gib = inventory.memory.free_bytes / GIB
    whole_gib = test_share(declared) * free_gib
    sizes = {
        "filled": f"{filled_gib:.1f}",
        "share": f"{filled_gib / free_gib:.0%}" if free_gib else "0%",
        "free": f"{free_gib:.1f}",
        "total": f"{known(inventory.memory.total_bytes) / GIB:.1f}",
    }
    if filled_gib >= whole_gib:
        return [
            Message(
                english(
                    "memory_untested",
                    "RAM beyond the {filled} GiB that the memory test fills: {share} of the "
                    "{free} GiB that are free, of {total} GiB",
                ),
                sizes,
            )
        ]
    more = {"whole": f"{whole_gib:.1f}", "fill": duration(fill_s * whole_gib)}
    return [
        Message(
            english(
                "memory_untested_but_in_soak",
                "RAM beyond the {filled} GiB that the memory test fills: {share} of the {free} "
                "GiB that are free, of {total} GiB; `--profile soak` fills {whole} GiB, and "
                "filling takes about {fill}",
            ),
            sizes | more,
        )
    ]


def memory_gap(
    filled_gib: float, declared: Machine | None, chosen: profile.Profile, inventory: Inventory
) -> list[Message]:
    """A gap where less than half of the share is free, unless the profile asks for no more."""
    if inventory.memory.total_bytes is None:
        return []
    total = inventory.memory.total_bytes / GIB
    least_gib = LEAST_FILLED * test_share(declared) * total
    if filled_gib >= min(least_gib, chosen.memory_gib_max or float("inf")):
        return []
    sizes = {"filled": f"{filled_gib:.1f}", "total": f"{total:.1f}"}
    return [
        Message(
            english(
                "memory_taken",
                "memory: only {filled} of {total} GiB can be filled: end what holds the rest "
                "(`free -h`), or hugepages",
            ),
            sizes,
        )
    ]


def reductions(
    chosen: profile.Profile,
    loads_s: Mapping[str, float],
    filled_gib: float,
    own_gib: float,
    scratches: Sequence[Scratch],
    own_disk_gib: float,
) -> tuple[Reduction, ...]:
    """What a run does less of than its profile.

    That is a load of fewer seconds, less than half of the RAM (`own_gib`) that the profile would
    fill by default, and less than half of what it would write to each disk (`own_disk_gib`).
    """
    sizes = [(str(parts.MEMORY), filled_gib, own_gib)] if MEMORY_TEST in chosen.seconds else []
    sizes += [(str(one.component), one.write_bytes / GIB, own_disk_gib) for one in scratches]
    smaller = [
        Reduction(load, planned, own, "GiB")
        for load, planned, own in sizes
        if planned < LEAST_FILLED * own
    ]
    shorter = profile.reductions(chosen, loads_s)  # the burn first, if at all
    return (*shorter[:1], *smaller, *shorter[1:])


def share_problem(declared: Machine | None, inventory: Inventory) -> str | None:
    """Why the declared share of the RAM is too small; None where it is not.

    Where the default share leaves too little for each thread too, the machine has no more.
    """
    threads, share = inventory.cpu.threads, test_share(declared)
    if not threads or share >= TEST_SHARE or inventory.memory.total_bytes is None:
        return None
    thread_mib = inventory.memory.free_bytes / MIB / threads
    if share * thread_mib >= LEAST_THREAD_MIB or TEST_SHARE * thread_mib < LEAST_THREAD_MIB:
        return None
    return (
        f"{share:g} leaves {share * thread_mib:.1f} MiB of the free RAM for each of "
        f"{threads} threads, and the memory test needs {LEAST_THREAD_MIB}: give at least "
        f"{math.ceil(1000 * LEAST_THREAD_MIB / thread_mib) / 1000:g}, or leave it out for "
        f"{TEST_SHARE:g}"
    )


def _cores(declared: Machine, inventory: Inventory) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The keys of limits and waivers that name a core that this machine has not, with sentences.

    None where the kernel shows no cores, or fewer than are declared: that a core is missing is for
    the run to say.
    """
    every = [core for group in inventory.cpu.core_groups for core in group.cores]
    names = sorted(core[0] for core in every)
    if not names or len(names) < (declared.cpu.cores or 0):
        return
    first = {thread: core[0] for core in every for thread in core}
    named = [("limit", [limit.component for limit in declared.limit])]
    named += [("waiver", [_component(waiver.component) for waiver in declared.waiver])]
    for table, rows in named:
        for index, core in enumerate(rows):
            if not isinstance(core, Core) or core.number in names:
                continue
            own = first.get(core.number)
            why = (
                f"CPU {core.number} is a thread of {Core(own)}: name that"
                if own is not None
                else f"this machine has {Core(names[0])} to {Core(names[-1])}, each named by its "
                "first CPU: correct it"
            )
            yield (table, index, "component"), f"there is no {core}: {why}"


def _model_notes(inputs: Inputs, subject: Subject) -> Iterator[Message]:
    """How the declared GPU models are read, where they are not named as NVML does.

    Raises UserError for a name of several models.
    """
    rows = subject.declared.gpu if subject.declared else ()
    cards = [] if inputs.options.as_declared else [card.model for card in gpus(subject.inventory)]
    for index, row in enumerate(rows):
        if row.model is None or any(row.model == one.model for one in rows[:index]):
            continue
        place = ("gpu", index, "model")
        where = f"{inputs.file}, {spell(place)}"
        try:
            note = gpu_names.read(row.model, where, cards, inputs.sheets.models)
        except UserError as error:
            raise inputs.error(place, str(error)) from error
        if note is not None:
            yield note


def _component(text: str | None) -> Component | None:
    """The component that a waiver names; None where it names none, or any of a pattern."""
    try:
        return None if text is None else parse(text)
    except ValueError:
        return None


def power_notes(
    declared: Machine | None, file: str | None, inventory: Inventory, cpu_limit_w: float | None
) -> tuple[Note, ...]:
    """The power limits of GPUs and processors against the declared power supply.

    A note and no limit: board, RAM, disks and fans draw power too, which nothing here shows.
    """
    if declared is None or declared.psu.watts is None or file is None:
        return ()
    cards = {card.name: card.traits for card in gpus(inventory)}
    every = map(parts.Gpu, range(components.gpu_count(declared, inventory)))
    limits: list[tuple[str | Message, float | None]] = [
        *(
            (str(gpu), traits.power_limit_w if (traits := cards.get(gpu)) else None)
            for gpu in every
        ),
        (Message(english("the_processors", "the processors")), declared.cpu.watts or cpu_limit_w),
    ]
    told = [(what, watts) for what, watts in limits if watts is not None]
    unknown = tuple(what for what, watts in limits if watts is None)
    total = sum(watts for _, watts in told)
    if not told:
        about: Values = {"supply": declared.psu.watts, "file": file, "unknown": Listed(unknown)}
        return (
            Note(
                Message(
                    english(
                        "power_limits_unknown",
                        "none of the power limits is known ({unknown}), so none is compared with "
                        "the {supply} W that {file} declares for the power supply",
                    ),
                    about,
                )
            ),
        )
    values = message.known(
        parts=Listed(
            tuple(
                Message(
                    english("watts_of", "{what} ({watts} W)"), {"what": what, "watts": f"{watts:g}"}
                )
                for what, watts in told
            )
        ),
        total=f"{total:g}",
        supply=declared.psu.watts,
        file=file,
        unknown=Listed(unknown) if unknown else None,
    )
    code = (
        english(
            "power_above_supply",
            "the power limits of {parts} add up to {total} W, more than the {supply} W that "
            "{file} declares for the power supply[; not known and not in the sum: {unknown}]: "
            "under full load it may switch the machine off: lower the limits of the GPUs (`sudo "
            "nvidia-smi -pl WATTS`), or fit a larger supply",
        )
        if total > declared.psu.watts
        else english(
            "power_of_supply",
            "the power limits of {parts} add up to {total} W of the {supply} W that {file} "
            "declares for the power supply[; not known and not in the sum: {unknown}]; board, "
            "RAM, disks and fans draw power too",
        )
    )
    return (Note(Message(code, values)),)


def channel_notes(declared: Machine | None, inventory: Inventory) -> tuple[Note, ...]:
    """Empty and unequal memory channels, where the machine file does not declare the channels."""
    found = channels.channels(inventory)
    if found is None or (declared is not None and declared.memory.channels is not None):
        return ()
    return tuple(Note(one) for one in (found.empty_cost(), found.unequal_cost()) if one)


def channels_untold(declared: Machine | None, inventory: Inventory) -> list[Message]:
    """Why the declared memory channels are not compared, where they are not."""
    if declared is None or declared.memory.channels is None or channels.channels(inventory):
        return []
    why: Text = (
        Message("virtual_machine")
        if inventory.cpu.virtualised
        else inventory.memory.dimms_unread
        or Message(
            english("slots_without_channel", "the firmware does not name the channels of its slots")
        )
    )
    return [
        Message(
            english(
                "channels_not_compared",
                "the declared memory channels are not compared with the machine: {why}",
            ),
            {"why": why},
        )
    ]


def without_places(declared: Machine | None, inventory: Inventory) -> Machine | None:
    """The machine file for a machine with fewer GPUs on its bus than declared.

    GPUs are numbered in the order of their addresses, so that those behind the missing one have
    moved: what is declared of one card alone, or of a pair, cannot be held against any, and no
    limit or waiver of it either. Tables of equal cards without an address hold for each of them.
    """
    if declared is None or len(gpus(inventory)) >= (declared.gpu_count() or 0):
        return declared
    count = declared.gpu_count() or 0
    alike = len(declared.gpu) == 1 and declared.gpu[0].address is None
    kept = msgspec.structs.replace(
        declared,
        gpu=declared.gpu if alike else (),
        gpu_pair=(),
        network=tuple(msgspec.structs.replace(link, gpus=()) for link in declared.network),
        limit=tuple(row for row in declared.limit if not _of_a_gpu(row.component)),
        waiver=tuple(row for row in declared.waiver if not _of_some_gpus(row.component, count)),
    )
    return declared if kept == declared else msgspec.structs.replace(kept, gpus=count)


def _of_a_gpu(component: Component | None) -> bool:
    ends = component.ends if component is not None else ()
    return any(isinstance(end, parts.Gpu) for end in ends)


def _of_some_gpus(pattern: str | None, count: int) -> bool:
    """Whether a waiver's component is some of so many GPUs, or of the paths between them.

    A pattern that means all of them (`gpu*`) needs no numbers.
    """
    if pattern is None:
        return False
    cards = [parts.Gpu(index) for index in range(count)]
    groups = (cards, [parts.Pair(a, b) for a, b in permutations(cards, 2)])
    return any(0 < sum(one.matches(pattern) for one in group) < len(group) for group in groups)


def gpus_not_run(missing: Sequence[Component], why: tuple[Message, ...]) -> list[Message]:
    """What is not run because these GPUs are missing."""
    return (
        [
            Message(
                english("gpus_not_run", "missing GPUs, but for their presence: {why}"), {"why": why}
            )
        ]
        if missing
        else []
    )


def _asks_for_power(only: Sequence[str]) -> bool:
    """Whether "power", the id of one of its checks, or a shell pattern of either is among these."""
    return any(re.match(r"power\b", pattern) for pattern in only)


def power_steps(
    declared: Machine | None,
    options: Options,
    gpus: Sequence[Component],
    environment: Mapping[str, str],
) -> tuple[dict[str, float], list[Message]]:
    """Seconds of the power load by check, empty where it does not run; and why it does not.

    The profile's selection decides; the machine file and a scheduler's job can leave it out.
    """
    asked = _asks_for_power(options.only)
    job = selection.in_job(environment)
    wanted = selection.extent(options.profile, asked=asked, job=None)
    if wanted is None or not gpus:
        return {}, []
    if declared is not None and not declared.power.pulses:
        return {}, [
            Message(
                english(
                    "power_pulses_declared_off",
                    "faults that show when full load comes and goes: pulses = false in the "
                    "machine file leaves the power steps out",
                )
            )
        ]
    if job is not None and not asked:
        return {}, [
            Message(
                english(
                    "power_pulses_in_job",
                    "faults that show when full load comes and goes: this is a scheduler's job "
                    "({variable} is set), whose supply others share; `--only power` runs the "
                    "power steps all the same",
                ),
                {"variable": job},
            )
        ]
    steps = selection.due(wanted, len(gpus))
    return {
        name.replace(".", "_"): selection.total_s({name: own}) for name, own in steps.items()
    }, []


def find_scratches(
    declared: Machine | None, options: Options, collected: Sequence[CollectedCheck]
) -> tuple[tuple[Scratch, ...], list[Message]]:
    """The folders that the storage tests write in, and why there are none where some are due.

    Raises UserError for a folder of the machine file that cannot be used.
    """
    if not scratch.due([check.id for check in collected], options.only):
        return (), []
    named = declared.scratch if declared else ()
    try:
        return scratch.find(named, options.profile, options.out, options.root), []
    except scratch.ScratchError as error:
        if not named or options.machine_file is None:
            return (), [
                Message(
                    english(
                        "storage_without_scratch",
                        "the speed of the disks, and what they give back: {why}",
                    ),
                    {"why": error.message},
                )
            ]
        place = ("scratch", error.index, "path")
        raise machine_file.key_error(options.machine_file, place, str(error)) from error


def asks_for_gpus(
    collected: Sequence[CollectedCheck],
    only: Sequence[str],
    every: Mapping[str, Sequence[Component]],
) -> bool:
    """Whether a selected check measures anything of GPUs; `every` has the members of each class."""
    return any(
        isinstance(end, parts.Gpu) or end == parts.GPUS
        for check in collected
        if not only or matches_patterns(check.id, only)
        for one in check.measures
        for component in every[one.per]
        for end in component.ends
    )


def _untrained(chosen: profile.Profile, names: Sequence[Component]) -> list[Message]:
    """That a profile whose loads are all of GPUs loads nothing here, where there is none."""
    alone = all(work_of(load).gpus for load in chosen.seconds)
    return (
        [
            Message(
                english(
                    "no_training_without_gpu",
                    "training: there is no GPU, so this profile loads nothing here",
                )
            )
        ]
        if alone and not names
        else []
    )


def prepare(options: Options) -> PreparedRun:
    """Make the plan. Passes on the errors of its parts, each one sentence for the user."""
    inputs = _read(options)
    # observation and collection take about a second each, and run side by side
    with start_collection(options.root) as collected:
        inventory = None if options.as_declared else observe(options.root)
        answer = collected()
    own = inputs.site.checks if inputs.site is not None else ()
    inputs = replace(inputs, checks=(*answer.checks, *own))
    seen = _as_declared(inputs) if inventory is None else _as_observed(inputs, inventory)
    _require_fitting(inputs, seen.inventory)
    inputs, subject = _select(inputs, seen)
    power_s, power_off = power_steps(
        subject.declared, inputs.options, subject.names, inputs.environment
    )
    if power_s and seen.inventory.cpu.virtualised:
        power_off.append(
            Message(
                english(
                    "power_faults_hidden",
                    "what the host sees of a power step: in a virtual machine its Xids, bus "
                    "errors and power events are hidden",
                )
            )
        )
    request = _request(inputs, subject, power_s)
    machine = _machine(inputs, subject, request, power_off)
    plan = _build(inputs, answer.digest, subject, machine, request)
    limit_set = _limit_set(inputs, subject, machine, plan)
    return PreparedRun(
        inputs.options,
        subject.declared,
        seen.inventory,
        plan,
        inputs.profile.summary,
        tuple(_notes(inputs, subject, machine, plan, limit_set)),
        _alarm(inputs, subject, machine, plan),
        seen.scratches,
        limit_set,
        inputs.site,
        seen.undeclared,
    )


def _read(options: Options) -> Inputs:
    """Read the files that the options name."""
    folder = site_folder.find(options.sheets, options.root)
    overlay = site_folder.read_sheets(folder, named=options.sheets is not None)
    return Inputs(
        options,
        machine_file.read(options.machine_file) if options.machine_file else None,
        profile.choose(profile.read(resources.locate("profiles.toml")), options.profile),
        folder,
        overlay,
        site_sheets.in_effect(overlay) if overlay else site_sheets.own_sheets(),
        site_collection.collect(options.checks, options.root) if options.checks else None,
    )


def _as_declared(inputs: Inputs) -> Observation:
    """The machine that the file declares, with its folders where a selected check needs one."""
    assert inputs.declared is not None
    found = declared_machine(inputs.declared, inputs.sheets, inputs.options.profile)
    return (
        found
        if scratch.due([check.id for check in inputs.checks], inputs.options.only)
        else replace(found, scratches=())
    )


def _as_observed(inputs: Inputs, inventory: Inventory) -> Observation:
    """This machine, with the folders that the storage tests write in."""
    root = inputs.options.root
    scratches, unscratched = find_scratches(inputs.declared, inputs.options, inputs.checks)
    return Observation(
        inventory,
        sensors=Sensors.find(root).offered(),
        thermometers=storage.limited(known(inventory.disks), root),
        disk_links=read_disk_links(scratches, inventory, root),
        scratches=scratches,
        unscratched=tuple(unscratched),
        cpu_limit_w=power_limit_w(root),
    )


def _require_fitting(inputs: Inputs, inventory: Inventory) -> None:
    """Raise UserError where the file names a core or a share that this machine has not."""
    if inputs.declared is None:
        return
    for place, sentence in _cores(inputs.declared, inventory):
        raise inputs.error(place, sentence)
    if problem := share_problem(inputs.declared, inventory):
        raise inputs.error(("memory", "test_share"), problem)


def _select(inputs: Inputs, seen: Observation) -> tuple[Inputs, Subject]:
    """The machine under test with the GPUs that were named, or that a job around this run has."""
    options, inventory = inputs.options, seen.inventory
    cards, count = gpus(inventory), components.gpu_count(inputs.declared, inventory)
    asked = gpu_selection.names(options.gpus, cards, count)
    job = gpu_selection.job(inputs.environment, inventory.cpu.threads)
    if job is not None and not options.gpus:
        asked = gpu_selection.names_of_job(job, cards, count)
        if len(asked) < count:  # the same as if they were named
            inputs = replace(inputs, options=replace(options, gpus=tuple(map(str, asked))))
    return inputs, Subject(
        seen,
        without_places(inputs.declared, inventory),
        asked,
        missing_gpus(inventory, asked),
        None if job is None or job.whole else job,
    )


def _request(inputs: Inputs, subject: Subject, power_s: Mapping[str, float]) -> Request:
    """What the plan is asked for; `power_s` are the seconds of the power load by check."""
    options, chosen, seen = inputs.options, inputs.profile, subject.seen
    most_gib = memory_gib(subject.declared, chosen, seen.inventory)
    filled_gib, own_gib = (
        seen.inventory.memory.beside_gpus(gib, len(subject.names))
        for gib in (most_gib, memory_gib(None, chosen, seen.inventory))
    )
    own_disk_gib = scratch_place.own_bytes(options.profile, len(seen.scratches)) / GIB
    loads_s = {**profile.seconds(chosen, options.burn_s), **power_s}
    return Request(
        profile=options.profile,
        loads_s=loads_s,
        memory_gib=filled_gib,
        own_s=chosen.seconds,
        own_memory_gib=own_gib if MEMORY_TEST in chosen.seconds else None,
        reductions=reductions(chosen, loads_s, filled_gib, own_gib, seen.scratches, own_disk_gib),
        cannot_detect=chosen.cannot_detect,
        only=options.only,
        narrowed=bool(options.gpus) or subject.job is not None,
    )


def _machine(
    inputs: Inputs, subject: Subject, request: Request, power_off: Sequence[Message]
) -> MachineUnderTest:
    """The machine under test as its plan needs it; `power_off` is why it has no steps of power."""
    declared, seen, names = subject.declared, subject.seen, subject.names
    inventory, chosen = seen.inventory, inputs.profile
    classes, any_profile, not_compared = _components(inputs, subject)
    limits = _limits(inputs, subject, inputs.sheets, declared)
    short = _shortfalls(inputs, subject, limits)
    unscratched = (
        *seen.unscratched,
        *scratch.untested(seen.scratches, known(inventory.disks)),
    )
    fill_s = sum(one.seconds_per_gib for one in inputs.checks if one.load == MEMORY_TEST)
    return MachineUnderTest(
        components=classes,
        book=limits,
        siblings=components.siblings(declared, inventory, names, seen.scratches),
        any_profile=any_profile,
        waivers=declared.waiver if declared else (),
        file=inputs.file,
        missing=subject.missing,
        turns=topology.host_turns(inventory, gpus(inventory, names)),
        not_offered=(
            *(
                components.gpus_do_not_offer(classes)
                if inputs.options.as_declared
                else (*components.not_offered(classes), *channels_untold(declared, inventory))
            ),
            *gpus_not_run(subject.missing, short),
            *not_compared,
            *power_off,
            *unscratched,
            *(site_collection.not_due(inputs.site, classes) if inputs.site is not None else ()),
            *_untrained(chosen, names),
            *memory_untested(request.memory_gib, declared, chosen, inventory, fill_s),
        ),
        gaps=(
            *site_sheets.gaps(inventory, names, inputs.sheets.models),
            *memory_gap(memory_gib(declared, chosen, inventory), declared, chosen, inventory),
        ),
        gpu_functions=tuple(map(parse, topology.gpu_functions(inventory))),
        shortfalls=short,
        cure=_cure(
            short,
            *(power_off if _asks_for_power(request.only) else ()),
            *(unscratched if request.only else ()),
        ),
    )


def _cure(short: tuple[Message, ...], *left_out: Message) -> str:
    """The end of the error that nothing is due: why something that was asked for is not tested."""
    text = "".join(f"; {words.message(one)}" for one in left_out)
    if not short:
        return text
    missing = words.message(Message("clauses", {"why": short}))
    return (
        f"{text}; {missing}: select gpu.present too (--only gpu.present; make: "
        "ONLY=gpu.present), which shows why, or leave out --only to test the rest of the "
        "machine"
    )


_Classes = dict[str, tuple[Component, ...]]


def _components(inputs: Inputs, subject: Subject) -> tuple[_Classes, _Classes, list[Message]]:
    """The components by class, of this profile and of all, and what of GPUs is not compared."""
    seen = subject.seen
    inventory, cards = seen.inventory, gpus(seen.inventory)
    # A GPU that is not on the bus has no number: only the count tells that it is missing.
    there = {card.name for card in cards}
    expected = [name for name in subject.asked if name in there]
    classes = components.resolve(
        subject.declared,
        inventory,
        seen.sensors,
        subject.names,
        expected,
        seen.scratches,
        seen.thermometers,
    )
    classes |= dict.fromkeys(seen.hidden, ())
    if inputs.site is not None:
        site_collection.require_classes(inputs.site, classes)
    any_profile = components.any_profile(classes, inventory, seen.scratches)
    not_compared = []
    if subject.declared != inputs.declared:
        not_compared.append(
            Message(
                english(
                    "gpu_tables_not_compared",
                    "what the machine file declares of single GPUs and of pairs is not compared, "
                    "and its limits and waivers of them do not count: fewer GPUs are on the bus "
                    "than declared, so their numbers name others",
                )
            )
        )
    every = gpu_selection.names((), cards, components.gpu_count(inputs.declared, inventory))
    if classes["gpu-nvlink"] and missing_gpus(inventory, every):
        # Links to a missing GPU are down, also those of one that is not under test.
        classes["gpu-nvlink"] = ()
        not_compared.append(
            Message(
                english(
                    "nvlinks_not_compared",
                    "how many NVLinks are up is not compared: a GPU is missing, and links to it "
                    "are down for no other reason",
                )
            )
        )
    return classes, any_profile, not_compared


def _limits(
    inputs: Inputs, subject: Subject, sheets: Sheets, declared: Machine | None
) -> LimitBook:
    """The limits by these sheets and a machine file."""
    seen = subject.seen
    of_disks = disk_limits(seen.scratches, seen.inventory, seen.disk_links, sheets.disks)
    of_site = inputs.site.measurements if inputs.site is not None else None
    return book(
        declared, inputs.file, seen.inventory, subject.names, of_disks, sheets.models, of_site
    )


def _shortfalls(inputs: Inputs, subject: Subject, limits: LimitBook) -> tuple[Message, ...]:
    """What the check of presence fails for; nothing is missing of a machine that is declared."""
    present = limits.find("gpu_count", parts.MACHINE)
    limit = present.limit if present and not inputs.options.as_declared else None
    declared = inputs.declared.gpu if inputs.declared else ()
    addresses = [one.address for one in declared if one.address]
    return shortfalls(subject.inventory, limit, subject.asked, addresses)


def _build(
    inputs: Inputs, digest: str, subject: Subject, machine: MachineUnderTest, request: Request
) -> Plan:
    """The plan. Raises UserError and PlanError."""
    whole = inputs.declared
    try:
        if whole is not None and whole != subject.declared:
            # Rows that do not hold now are checked all the same, each in its own line.
            declared_book = _limits(inputs, subject, inputs.sheets, whole)
            plan_builder.lint(inputs.checks, declared_book)
            plan_builder.lint_waivers(inputs.checks, whole.waiver, inputs.file or "", declared_book)
        plan = plan_builder.build(inputs.checks, digest, machine, request)
    except PlanError as error:
        if whole is None or not error.place:
            raise
        raise inputs.error(error.place, error.sentence) from error
    return plan if inputs.site is None else msgspec.structs.replace(plan, site=inputs.site.bound)


def _notes(
    inputs: Inputs, subject: Subject, machine: MachineUnderTest, plan: Plan, limit_set: LimitSet
) -> Iterator[Note]:
    """How the run was prepared, for the reader of its reports."""
    options, declared, seen = inputs.options, subject.declared, subject.seen
    applied = site_sheets.applied(seen.inventory, inputs.sheets)
    yield from map(Note, site_sheets.notes(limit_set, applied))
    yield from map(Note, _model_notes(inputs, subject))
    yield from power_notes(declared, inputs.file, seen.inventory, seen.cpu_limit_w)
    yield from channel_notes(declared, seen.inventory)
    if options.burn_s is not None and profile.BURN not in inputs.profile.seconds:
        yield Note(
            Message(
                english(
                    "profile_without_burn",
                    "the profile {profile} has no burn, so --burn (BURN= in make) changes nothing",
                ),
                {"profile": options.profile},
            )
        )
    if inputs.site is not None and (n := len(plan.share(SITE))):
        folder = str(inputs.site.folder.path)
        yield Note(
            Message(
                plural(
                    "site_checks_run",
                    "{n} check of the site's own is part of this run: {folder}",
                    "{n} checks of the site's own are part of this run: {folder}",
                ),
                {"folder": folder, "n": n},
            )
        )
    if subject.job is not None:
        yield Note(
            Message(
                english(
                    "job_shares_node",
                    "Slurm job {job} is not known to have this node to itself: the run is "
                    "partial, and no acceptance of the machine; submit it with `rigproof fleet "
                    "submit --slurm`, or with --exclusive",
                ),
                {"job": subject.job.id},
            )
        )
    if declared and declared.scratch:
        yield from map(Note, scratch.unmounted(seen.scratches))
    if not options.as_declared:
        yield from map(Note, scratch.announce(seen.scratches))
    # Else some may be of other GPUs, or of what is not declared.
    if declared and inputs.file and not (options.gpus or subject.missing or options.as_declared):
        every = machine.any_profile or machine.components
        idle = plan_builder.waivers_of_nothing(inputs.checks, every, declared.waiver, inputs.file)
        yield from map(Note, idle)
    if subject.missing and not _shows_presence(plan):
        asked = components.resolve(declared, seen.inventory, seen.sensors, subject.asked)
        if asks_for_gpus(inputs.checks, options.only, asked):
            for one in gpus_not_run(subject.missing, machine.shortfalls):
                yield Note(one, trouble=True)


def _shows_presence(plan: Plan) -> bool:
    return any(check.id == PRESENT for check in plan.checks)


def _alarm(
    inputs: Inputs, subject: Subject, machine: MachineUnderTest, plan: Plan
) -> tuple[Message, ...]:
    """What must be said at once where a GPU is missing: that the run fails for sure, why, and how
    far it goes all the same.
    """
    inventory, fail_fast = subject.inventory, inputs.options.fail_fast
    # a layer that shares GPUs out ends the run by an error
    if not machine.shortfalls or not _shows_presence(plan) or paravirtualised(inventory):
        return ()
    then = Message(
        english(
            "host_is_tested",
            "without a GPU only processor, RAM, disks and network are tested (--fail-fast, with "
            "make FAIL_FAST=1, stops the run instead)",
        )
        if not plan.gpus
        else english(
            "rest_is_tested",
            "everything else is tested all the same (--fail-fast, with make FAIL_FAST=1, stops "
            "the run instead)",
        )
    )
    if preflight.stops_at_the_gate(plan, inventory, fail_fast=fail_fast):
        then = Message(
            english(
                "run_stops_at_fail",
                "the run stops at the first check that fails (--fail-fast, with make FAIL_FAST=1)",
            )
            if fail_fast
            else english(
                "run_stops_at_gate",
                "the run stops before any load, because the GPUs that are there are not set up to "
                "be tested",
            )
        )
    missing = Message(
        english("gpus_missing", "{why}, so the verdict will be FAIL; {then}"),
        {"why": machine.shortfalls, "then": then},
    )
    return (missing, *(layer.message for layer in presence(inventory)))


def _limit_set(inputs: Inputs, subject: Subject, machine: MachineUnderTest, plan: Plan) -> LimitSet:
    """What the plan's limits come from, and which of them the site's sheets loosen."""
    version, digest = limit_version.shipped()
    if not inputs.overlay:
        return LimitSet(version, digest)
    own = _limits(inputs, subject, site_sheets.own_sheets(), subject.declared)
    return LimitSet(
        version,
        limit_version.with_sheets(digest, inputs.overlay),
        str(inputs.folder.absolute()) if inputs.folder else None,
        inputs.overlay,
        site_sheets.looser(plan, machine.book, own),
    )
