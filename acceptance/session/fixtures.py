"""The fixtures that the plugin provides to the checks of a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from acceptance.core.evidence import AnyBody, Sample, Scratch, Table
from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Text, after_fault, english
from acceptance.core.parts import CPU, GPUS, Component, parse
from acceptance.core.parts import Gpu as GpuName
from acceptance.core.plan import (
    LOAD_SESSIONS,
    REPEAT_SESSION,
    Plan,
    PlannedCheck,
    SessionName,
    earlier_sessions,
    segment_of,
)
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Note,
    Outcome,
    Skipped,
)
from acceptance.core.verdict import Judgement, judge
from acceptance.diagnosis.gpu_history import GpuHistory
from acceptance.diagnosis.gpu_work import idle_reason
from acceptance.diagnosis.series import Series
from acceptance.diagnosis.signature import GpuHeat
from acceptance.expect import site_sheets
from acceptance.expect.sensor_range import card_ranges
from acceptance.expect.sheet import Sheet
from acceptance.journal import clock, reader
from acceptance.journal import segment as journal_segment
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import Machine
from acceptance.machine.thresholds import Range, thresholds
from acceptance.observe import pci
from acceptance.observe.event import PartKind
from acceptance.observe.sensors import UNITS
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.session import earlier, load_events
from acceptance.session.check import Check, CheckSkipped
from acceptance.session.collection import check_id
from acceptance.session.loads import Listening, Loads
from acceptance.session.programs import Programs
from acceptance.session.tools import Tools
from acceptance.watch.telemetry_reader import GpuTelemetry
from acceptance.wording.errors import WordedError

# After its first hour the watch writes a sample every ten seconds
# (`observe.sensors.SampleThinner`): a sample of the present moment is written within this time.
WRITTEN_S = 12.0
OFF_THE_BUS = 79  # the Xid of a GPU that has fallen off the bus


def _ranges(context: session_context.SessionContext) -> dict[Component, dict[str, Range]]:
    """The possible readings of each GPU's sensors, by its name."""
    found: dict[Component, dict[str, Range]] = {}
    inventory = context.inventory
    if inventory is None:
        return found
    for gpu in gpus(inventory):
        if (traits := gpu.traits) is not None:
            limits = (traits.power_limit_w, traits.power_limit_default_w)
            found[gpu.name] = card_ranges(
                limits, traits.max_sm_clock_mhz, traits.max_memory_clock_mhz
            )
    return found


class SessionFixtures:
    """The fixtures of one session.

    `share` is its part of the plan by check id; `write` journals a record.
    """

    def __init__(
        self,
        context: session_context.SessionContext,
        run_dir: Path,
        share: Mapping[str, PlannedCheck],
        write: Callable[[AnyBody], None],
    ) -> None:
        self.context = context
        self.run_dir = run_dir
        self.share = share
        self.write = write
        self._gpu_telemetry = GpuTelemetry(run_dir / reader.GPU_TELEMETRY, _ranges(context))

    @property
    def plan(self) -> Plan:
        """The plan of the run; a session that only collects has none."""
        assert self.context.plan is not None
        return self.context.plan

    @pytest.fixture
    def planned(self, request: pytest.FixtureRequest) -> PlannedCheck:
        """This check's part of the plan."""
        return self.share[check_id(request.node)]

    @pytest.fixture
    def check(self, planned: PlannedCheck) -> Check:
        """Journals readings and judges them against the plan (`acceptance.session.check.Check`)."""
        return Check(planned, self.plan.waivers, self.write)

    @pytest.fixture
    def machine(self) -> Machine | None:
        """The machine file; None where there is none."""
        return self.context.machine

    @pytest.fixture
    def inventory(self) -> Inventory:
        """The machine as observed before the run."""
        assert self.context.inventory is not None
        return self.context.inventory

    @pytest.fixture
    def model_sheets(self) -> tuple[Sheet, ...]:
        """The GPU sheets of this run, those of the site among them."""
        limits = self.context.limits
        return site_sheets.in_effect(limits.sheets if limits is not None else ()).models

    @pytest.fixture
    def due_gpus(self, inventory: Inventory) -> tuple[Gpu, ...]:
        """The GPUs that this run tests, in the order of their PCI addresses.

        `--gpus` may select fewer than the machine has.
        """
        return gpus(inventory, self.plan.gpus)

    @pytest.fixture
    def expected_gpus(self, inventory: Inventory, planned: PlannedCheck) -> tuple[Gpu, ...]:
        """The GPUs on the bus whose presence is due, with those that are dead and not tested."""
        names = [due.component for due in planned.due if due.measurement == "gpu_answers"]
        return gpus(inventory, names)

    @pytest.fixture
    def say(self) -> Callable[[Text], None]:
        """Writes a note for the reader of the report; no verdict depends on it."""
        return lambda text: self.write(Note(text))

    @pytest.fixture
    def report_event(self) -> Callable[[Event], None]:
        """Journals an event of the machine for the check that runs."""
        return self.write

    @pytest.fixture
    def listener(self) -> Listening:
        """Makes a listener that journals at once the wrong results that loads report.

        Its argument is the GPUs that each load sees, the load's own first.
        """
        return lambda shown: load_events.listener(list(shown), self.write, shown=shown)

    @pytest.fixture
    def root(self) -> Path:
        """The directory under which /sys, /proc and /dev are read."""
        return Path(self.context.root)

    @pytest.fixture
    def exists(self, root: Path) -> Callable[[str], bool]:
        """Whether a file is there now, such as `sys/block/sda`."""
        return lambda path: (root / path).exists()

    @pytest.fixture
    def pause(self) -> Callable[[float], None]:
        """Waits so many seconds."""
        return time.sleep

    @pytest.fixture
    def scratches(self) -> tuple[Scratch, ...]:
        """The filesystems on which the run has made its folder."""
        return self.context.scratches

    @pytest.fixture
    def run_id(self) -> str:
        """The id of the run."""
        assert self.context.run_id is not None
        return self.context.run_id

    @pytest.fixture
    def machine_id(self) -> str:
        """The id of the machine."""
        assert self.context.machine_id is not None
        return self.context.machine_id

    @pytest.fixture
    def kernel_log_after(self) -> int | None:
        """Sequence number of the last kernel message before the run.

        None where the log could not be read then.
        """
        return self.context.kernel_log_after

    @pytest.fixture
    def tested_parts(self) -> Mapping[str, PartKind]:
        """The parts under test before the run, by their names in the kernel's messages."""
        return self.context.tested_parts

    @pytest.fixture
    def load_s(self) -> Mapping[str, float]:
        """Seconds of each load in this profile."""
        return self.plan.loads_s

    @pytest.fixture
    def memory_gib(self) -> float:
        """GiB of RAM that the memory test fills."""
        return self.plan.memory_gib

    @pytest.fixture
    def programs(self, planned: PlannedCheck) -> Programs:
        """Runs the check's programs, with its deadline, logs and journal.

        See `acceptance.session.programs.Programs`.
        """
        look = "-again" if self.context.session == REPEAT_SESSION else ""
        return Programs(planned, self.run_dir / "logs", self.write, look)

    @pytest.fixture
    def deadline(self, planned: PlannedCheck) -> Deadline:
        """The time at which a check that starts no programs must have its answers."""
        return Deadline.after(session_context.programs_s(planned))

    @pytest.fixture
    def loads(self, programs: Programs, listener: Listening) -> Loads:
        """Runs our own loads (`acceptance.session.loads.Loads`)."""
        return Loads(programs, listener)

    @pytest.fixture
    def tools(self, programs: Programs, inventory: Inventory) -> Tools:
        """Runs upstream programs (`acceptance.session.tools.Tools`)."""
        return Tools(programs, inventory)

    @pytest.fixture
    def earlier_programs(self) -> Callable[[str], tuple[ProgramResult, ...]]:
        """The programs that a check of a session before this one ran, by the check's id."""
        assert self.context.session is not None
        before = earlier_sessions(self.context.session)
        return lambda check: earlier.programs(self.run_dir, before, check)

    @pytest.fixture
    def table(self, planned: PlannedCheck) -> Callable[..., None]:
        """Journals a table of figures for the reports: (component, name, columns, rows)."""

        def write(
            component: Component,
            name: str,
            columns: Sequence[str],
            rows: Sequence[Sequence[float | str]],
        ) -> None:
            self.write(
                Table(
                    planned.id, component, name, tuple(columns), tuple(tuple(row) for row in rows)
                )
            )

        return write

    @pytest.fixture
    def telemetry(self) -> Mapping[str, Series]:
        """The samples of the machine's own sensors since the run began, by reading."""
        segment = self.run_dir / reader.TELEMETRY
        if not segment.is_file():
            raise journal_segment.JournalError(
                english(
                    "telemetry_absent",
                    "{path}: cannot be read: the watch over the sensors did not begin",
                ),
                path=str(segment),
            )
        points = grouped(
            (name, (entry.boot_s, value))
            for entry in reader.Tail(segment).each()
            if isinstance(entry.body, Sample) and entry.body.component is None
            for readings in (entry.body.low or {}, entry.body.values, entry.body.high or {})
            for name, value in readings.items()
        )
        return {name: Series(name, CPU, UNITS[name], found) for name, found in points.items()}

    @pytest.fixture
    def gpu_history(
        self, load_spans: tuple[tuple[str, float, float], ...]
    ) -> Mapping[Component, GpuHistory]:
        """The samples of each GPU since the run began, by the GPU's name; empty without telemetry.

        It waits for samples that cover the end of the last load, for at most WRITTEN_S.
        """
        if not (self.run_dir / reader.GPU_TELEMETRY).is_file():
            return {}
        ended_s = max((end for _, _, end in load_spans), default=0.0)
        while clock.boot_s() < ended_s + WRITTEN_S and not self._sampled_until(ended_s):
            time.sleep(0.2)
        return self._gpu_telemetry.histories(load_spans)

    @pytest.fixture
    def gpu_heat(self) -> Callable[[Component, float], GpuHeat | None]:
        """A function from a GPU's name and a moment in seconds since boot to its heat.

        It returns None where no sample is near enough.
        """
        return self._gpu_telemetry.heat

    def refuse_lost(self, planned: PlannedCheck) -> None:
        """Raise CheckSkipped for a load on GPUs if one has fallen off the bus during the run.

        A load takes in all GPUs, and with that card it would hang, or take the machine with
        it. The watch's events say so (Xid 79, or the driver
        lost it), or the card's configuration reads as all ones.
        """
        on_gpus = any(
            end == GPUS or isinstance(end, GpuName)
            for due in planned.due
            for end in due.component.ends
        )
        if planned.session not in LOAD_SESSIONS or not on_gpus or self.context.inventory is None:
            return
        lost = self._reported_lost()
        gone = [
            str(gpu.name)
            for gpu in gpus(self.context.inventory, self.plan.gpus)
            if lost & {gpu.name, parse(gpu.pci_address)}
            or pci.answers(gpu.pci_address, Path(self.context.root)) is False
        ]
        if gone:
            why = Message(
                english("gpus_fallen_off_before", "not run: {gpus} fell off the bus before"),
                {"gpus": Listed(tuple(gone))},
            )
            raise CheckSkipped(after_fault(why))

    def _reported_lost(self) -> set[Component]:
        """The components that the watch reported as fallen off the bus since the run began."""
        from acceptance.watch import gpu_sampler, host  # not at the top: most sessions need neither

        found = set()
        for name in (host.SEGMENT, gpu_sampler.EVENTS):
            path = self.run_dir / name
            for entry in reader.Tail(path).each() if path.is_file() else ():
                one = entry.body
                lost = isinstance(one, Event) and (
                    (one.kind == "xid" and one.code == OFF_THE_BUS) or one.kind == "gpu-lost"
                )
                if lost and isinstance(one, Event) and one.component is not None:
                    found.add(one.component)
        return found

    def require_work(self, planned: PlannedCheck, begin_s: float) -> None:
        """Raise WordedError unless every due GPU was at work for the time of the check's load.

        The time counts from `begin_s`, in seconds since boot. Waits for samples that cover the
        present moment.
        """
        if planned.gpu_load_s < thresholds().work.load_s:
            return
        end_s = clock.boot_s()
        if (self.run_dir / reader.GPU_TELEMETRY).is_file():
            while clock.boot_s() < end_s + WRITTEN_S and not self._sampled_until(end_s):
                time.sleep(0.05)
        histories = self._gpu_telemetry.histories()
        troubles = []
        for gpu in self.plan.gpus:
            if gpu not in histories:
                troubles.append(
                    Message(
                        english(
                            "not_watched",
                            "{gpu} was not watched, so nothing shows that it worked: "
                            "journal.jsonl says why",
                        ),
                        {"gpu": str(gpu)},
                    )
                )
            elif trouble := idle_reason(histories[gpu], begin_s, end_s, planned.gpu_load_s):
                troubles.append(trouble)
        if troubles:
            raise WordedError(
                english(
                    "not_at_work",
                    "{why}: the load ran elsewhere or not at all: its log says which GPU it used; "
                    "`nvidia-smi` shows each GPU's use",
                ),
                why=tuple(troubles),
            )

    def _sampled_until(self, moment_s: float) -> bool:
        """Whether every tested GPU has a sample at or after a moment, in seconds since boot."""
        newest = reader.read_last_entries(self.run_dir / reader.GPU_TELEMETRY)
        sampled = {
            entry.body.component: entry.boot_s for entry in newest if isinstance(entry.body, Sample)
        }
        return all(sampled.get(gpu, 0.0) >= moment_s for gpu in self.plan.gpus)

    @pytest.fixture
    def load_outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each check of the load sessions, by its id.

        A check without an end is left out.
        """
        return {
            entry.body.check: entry.body.outcome
            for entry in self._load_entries()
            if isinstance(entry.body, CheckEnded)
        }

    @pytest.fixture
    def work_spans(
        self, load_spans: tuple[tuple[str, float, float], ...]
    ) -> tuple[tuple[float, float], ...]:
        """Begin and end, in seconds since boot, of the checks that kept every GPU at work."""
        working = {check.id for check in self.plan.checks if check.gpu_load_s}
        return tuple((begin, end) for name, begin, end in load_spans if name in working)

    @pytest.fixture
    def load_spans(self) -> tuple[tuple[str, float, float], ...]:
        """Id, begin and end of each check of the load sessions, in seconds since boot.

        In the order of their ends; those of two sessions may overlap. A check without an end is
        left out.
        """
        began: dict[str, float] = {}
        found = []
        for entry in self._load_entries():
            if isinstance(entry.body, CheckStarted):
                began[entry.body.check] = entry.boot_s
            elif isinstance(entry.body, CheckEnded) and entry.body.check in began:
                found.append((entry.body.check, began[entry.body.check], entry.boot_s))
        return tuple(sorted(found, key=lambda span: span[2]))

    @pytest.fixture
    def load_tables(self) -> tuple[Table, ...]:
        """The tables that the checks of the load sessions journalled."""
        return tuple(entry.body for entry in self._load_entries() if isinstance(entry.body, Table))

    @pytest.fixture
    def earlier_tables(self) -> Callable[[str], tuple[Table, ...]]:
        """The tables that a check of a session before this one journalled, by the check's id."""
        session = self.context.session
        assert session is not None
        return lambda check: tuple(
            entry.body
            for name in earlier_sessions(session)
            for entry in self._segment(name)
            if isinstance(entry.body, Table) and entry.body.check == check
        )

    def _load_entries(self) -> Iterator[Entry]:
        """The records of the load sessions, one session after the other."""
        for session in LOAD_SESSIONS:
            yield from self._segment(session)

    def _segment(self, session: SessionName) -> Sequence[Entry]:
        """The records of a session; none where it has no segment."""
        path = self.run_dir / segment_of(session)
        return journal_segment.read_segment(path).entries if path.is_file() else ()

    @pytest.fixture
    def judged_before(self) -> tuple[Judgement, ...]:
        """What the sessions before this one measured, judged against the plan."""
        plan, session = self.context.plan, self.context.session
        assert plan is not None
        assert session is not None
        before = earlier_sessions(session)
        bodies = [entry.body for name in before for entry in self._segment(name)]
        measured = grouped((one.check, one) for one in bodies if isinstance(one, Measured))
        skips = grouped((one.check, one) for one in bodies if isinstance(one, Skipped))
        return tuple(
            one
            for check in plan.checks
            if check.session in before
            for one in judge(
                check, measured.get(check.id, ()), skips.get(check.id, ()), plan.waivers
            )
        )
