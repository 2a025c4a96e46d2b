"""Which likely causes of a finding this run's own measurements confirm or exclude. Pure.

A condition has three answers: met, not met, or that nobody can tell, because a value was not
measured. What nobody can tell neither confirms nor excludes a cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Literal

from acceptance.core.advice import Condition, LikelyCause, Side, Whose
from acceptance.core.finding import Finding
from acceptance.core.grouping import grouped
from acceptance.core.message import Listed, Message, Value, english
from acceptance.core.parts import (
    CPU,
    MACHINE,
    MEMORY,
    SYSTEM,
    Component,
    Core,
    Gpu,
    Named,
    Part,
    Socket,
)
from acceptance.core.record import Event
from acceptance.core.verdict import Judgement, Verdict
from acceptance.diagnosis import note_rules

Standing = Literal["confirmed", "open", "excluded"]
# Whether the kernel's messages of the run were read: without them a missing event proves nothing.
_LOG_READ = "kernel_faults_during"
# What says that a part was reset, was lost or does not answer. Wrong accesses of a program,
# corrected errors and heat do not.
_LOST = Condition(
    event=(
        *("gpu-lost", "gpu-hang", "rm-init", "xid.62", "xid.79", "xid.119", "xid.120"),
        *("aer.dpc", "aer.unrecovered", "pcie.inaccessible", "pcie.header", "pcie.link-down"),
        *("pcie.retraining", "pcie.power-fault", "disk.controller", "disk.controller-fault"),
        *("disk.reset", "disk.offline", "disk.comreset", "disk.identify"),
        *("network.fatal", "network.health"),
    )
)
# Of these one value decides; of the other sides every value must be so.
_ONE_SUFFICES: frozenset[Side] = frozenset({"not zero", "failed", "low", "high", "below", "above"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run measured, by measurement, and the events that it recorded, in their order.

    `functions` gives the GPU, or another part, by what the kernel's messages call it: its PCI
    function, or its name.
    """

    values: Mapping[str, Sequence[Judgement]] = field(default_factory=lambda: MappingProxyType({}))
    events: Sequence[Event] = ()
    functions: Mapping[Component, Component] = field(default_factory=lambda: MappingProxyType({}))

    def __hash__(self) -> int:
        return hash((len(self.values), len(self.events)))

    def of(self, name: str) -> Iterator[Judgement]:
        """The values of a measurement, or of all whose names fit a pattern (`burn_*_kept`)."""
        for measurement, values in self.values.items():
            if fnmatchcase(measurement, name):
                yield from values


NO_EVIDENCE = Evidence()


def evidence(verdict: Verdict, functions: Mapping[Component, Component]) -> Evidence:
    """The evidence of a run."""
    values = grouped((one.due.measurement, one) for check in verdict.checks for one in check.judged)
    events = [event for check in verdict.checks for event in check.events]
    # Those of no check are in the findings of the run alone, without their time.
    events += (_event_of(one) for one in verdict.findings if one.event and one.quote)
    events.sort(key=lambda one: (one.boot_s is None, one.boot_s or 0.0))
    return Evidence(values, tuple(dict.fromkeys(events)), functions)


def _event_of(finding: Finding) -> Event:
    kind, _, code = (finding.event or "").partition(".")
    text = finding.quote or ""
    return Event(
        kind=kind,
        severity="error",
        text=text,
        meaning=text,
        action="",
        code=code or None,
        component=finding.component,
    )


def standing(cause: LikelyCause, finding: Finding, found: Evidence) -> Standing:
    """Whether the run confirms a cause of a finding, excludes it, or leaves it open.

    Conditions that only exclude have no say in what confirms it: the others must all be met.
    """
    answers = [(one, _answer(one, finding, found)) for one in cause.conditions]
    if any(met is False and one.settles != "confirms" for one, met in answers):
        return "excluded"
    confirming = [met for one, met in answers if one.settles != "excludes"]
    return "confirmed" if confirming and all(met is True for met in confirming) else "open"


def _answer(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    if condition.rule is not None:
        rule = RULES.get(condition.rule)  # a site's file may name one of another version
        return None if rule is None else rule(finding, found)
    return (
        _event(condition, finding, found) if condition.events else _value(condition, finding, found)
    )


def _value(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    """Whether the values are on the side that the condition names; None where one is missing."""
    side = condition.is_
    answers: list[bool | None] = []
    for name in condition.measurements:
        of_name = [
            _on_side(one, condition)
            for one in found.of(name)
            if belongs(one.due.component, condition, finding, found)
        ]
        answers += of_name or [None]
    return _any(answers) if side in _ONE_SUFFICES else _all(answers)


def _any(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _all(answers: Sequence[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _on_side(one: Judgement, condition: Condition) -> bool | None:
    """Whether one value is on the side; None for one that was not measured or is no number.

    So is one with an error, such as a rate that cannot be: it proves nothing. A failure that a
    waiver covers was not judged: nobody can tell whether it failed.
    """
    value, kinds = one.value, {finding.kind for finding in one.findings}
    if value is None or not math.isfinite(value) or "error" in kinds:
        return None
    failed, limit = "fail" in kinds, one.due.limit
    match condition.is_:
        case "zero":
            return value == 0
        case "not zero":
            return value != 0
        case "failed" | "sound":
            return (
                None
                if one.waived or (limit is None and not failed)
                else failed == (condition.is_ == "failed")
            )
        case "low" if limit is not None and limit.low is not None and not one.waived:
            return value < limit.low
        case "high" if limit is not None and limit.high is not None and not one.waived:
            return value > limit.high
        case "below" if condition.value is not None:
            return value < condition.value
        case "above" if condition.value is not None:
            return value > condition.value
        case _:
            return None


def _event(condition: Condition, finding: Finding, found: Evidence) -> bool | None:
    """Whether such an event was recorded of these components.

    An event that is not there proves nothing where the kernel's log was not read to its end, or
    where there is one without a component, or for `before` one without a time.
    """
    such = [one for one in found.events if _named(one) & set(condition.events)]
    there = [one for one in such if _concerns(one, condition, finding, found)]
    vague = any(one.component is None for one in such if one not in there)
    if condition.is_ == "before":
        own = [one for one in found.events if _is_own(one, finding, found)]
        if not own or own[0].boot_s is None:
            return None
        vague = vague or any(one.boot_s is None for one in there)
        there = [one for one in there if one.boot_s is not None and one.boot_s < own[0].boot_s]
    absent = not there
    if absent and (vague or not _log_was_read(found)):
        return None
    return absent if condition.is_ == "not there" else not absent


def _concerns(event: Event, condition: Condition, finding: Finding, found: Evidence) -> bool:
    """Whether an event is of a part that the condition is about; one that names none is of any."""
    return (
        condition.of == "any"
        if event.component is None
        else belongs(event.component, condition, finding, found)
    )


def _named(event: Event) -> set[str]:
    return {event.kind, f"{event.kind}.{event.code}"}


def _is_own(event: Event, finding: Finding, found: Evidence) -> bool:
    return finding.event in _named(event) and _are_one(event.component, finding.component, found)


def _are_one(one: Component | None, other: Component | None, found: Evidence) -> bool:
    """Whether two are one part, which the kernel's messages call by its PCI function."""
    return (
        one is other
        if one is None or other is None
        else _by_name(one, found) == _by_name(other, found)
    )


def _log_was_read(found: Evidence) -> bool:
    return any(one.value is not None for one in found.values.get(_LOG_READ, ()))


def belongs(part: Component, condition: Condition, finding: Finding, found: Evidence) -> bool:
    """Whether a part's value is one of those that the condition is about."""
    own = finding.component
    if condition.of == "any" or own is None:
        return condition.of != "others"
    own, part = _by_name(own, found), _by_name(part, found)
    related = are_related(own, part)
    return related if condition.of == "its" else not related and type(part) is type(own)


def _by_name(component: Component, found: Evidence) -> Component:
    return found.functions.get(component, component)


def share_a_part(one: Component, other: Component, found: Evidence) -> bool:
    """Whether two components are related, by the parts of their PCI functions."""
    return are_related(_by_name(one, found), _by_name(other, found))


def are_related(one: Component, other: Component) -> bool:
    """Whether one is the other, ends at it, has it among its own, or the other way around."""
    return _has(one, other) or _has(other, one)


def _has(whole: Component, part: Component) -> bool:
    if whole in (MACHINE, SYSTEM) or all(whole.holds(end) for end in part.ends):
        return True
    if whole == CPU:
        return isinstance(part, Socket | Core) or (isinstance(part, Named) and part.matches("cpu*"))
    if whole == MEMORY:
        dimm = isinstance(part, Part) and part.kind == "dimm"
        return dimm or isinstance(part, Socket) or (isinstance(part, Named) and part.matches("mc*"))
    return False


def ordered(
    causes: Iterable[LikelyCause], finding: Finding, found: Evidence
) -> Iterator[tuple[LikelyCause, bool]]:
    """The causes that are left, those that the run confirms first; and whether it does."""
    standings = [(one, standing(one, finding, found)) for one in causes]
    for wanted in ("confirmed", "open"):
        yield from ((one, wanted == "confirmed") for one, stands in standings if stands == wanted)


def _wrong_results_beside(finding: Finding, found: Evidence) -> bool | None:
    """Whether a count of wrong results of the same check and part failed."""
    failed = any(
        one.kind == "fail" and one.code == "outside_limit"
        for judged in _beside(finding, found)
        if not judged.due.waivable and judged.due.limit and judged.due.limit.high == 0
        for one in judged.findings
    )
    return True if failed else None


def _impossible_on_others(finding: Finding, found: Evidence) -> bool | None:
    """Whether this value was impossible on each other part; None where it has no other."""
    others = [
        any(told.code == finding.code for told in one.findings)
        for one in found.values.get(finding.measurement or "", ())
        if one.due.component != finding.component and one.value is not None
    ]
    return all(others) if others else None


def _part_was_lost(finding: Finding, found: Evidence) -> bool | None:
    """Whether an event of the finding's part says that it does not answer."""
    return _event(_LOST, finding, found) if finding.component is not None else None


def _unproven_beside(finding: Finding, found: Evidence) -> bool | None:
    """Whether a value that a ratio is made of cannot be or is missing, of any of its parts."""
    of = finding.values.get("of")
    if not isinstance(of, str):
        return False if found.values else None
    made_of = found.values.get(of, ())
    unproven = (
        one.value is None or any(told.kind == "error" for told in one.findings) for one in made_of
    )
    return any(unproven) if made_of else None


def _beside(finding: Finding, found: Evidence) -> Iterator[Judgement]:
    """What failed in the same check, of the finding's part and those related to it."""
    part = finding.component
    for judged in (one for ones in found.values.values() for one in ones):
        same = any(told.check == finding.check for told in judged.findings)
        if same and part is not None and are_related(part, judged.due.component):
            yield judged


_Rule = Callable[[Finding, Evidence], bool | None]


def _one_of(*conditions: Condition) -> _Rule:
    """Whether at least one of several conditions is met."""

    return lambda finding, found: _any([_answer(one, finding, found) for one in conditions])


def _of_the_finding(rule: note_rules.NoteRule) -> _Rule:
    return lambda finding, _: rule(finding)


def _after_another_xid(finding: Finding, found: Evidence) -> bool | None:
    """Whether an Xid of another number, of the same GPU, came before the finding's own."""
    xids = [one for one in found.events if one.kind == "xid"]
    own = next((one for one in xids if _is_own(one, finding, found)), None)
    if own is None or own.boot_s is None:
        return None
    others = [
        one
        for one in xids
        if str(one.code) != str(own.code)
        and (one.component is None or _are_one(one.component, own.component, found))
    ]
    times = [None if one.component is None else one.boot_s for one in others]
    if any(time is not None and time < own.boot_s for time in times):
        return True
    return False if _log_was_read(found) and None not in times else None


def _medium_error(finding: Finding, found: Evidence) -> bool | None:
    """Whether the kernel or the disk's own report names errors of its medium."""
    disk = Condition(event="disk")
    mine = [
        one
        for one in found.events
        if one.kind == "disk"
        and one.component is not None
        and belongs(one.component, disk, finding, found)
    ]
    if any(one.code in _MEDIUM or _BAD_MEDIUM in one.text for one in mine):
        return True
    reports = (one for name in _REPORTS for one in found.values.get(name, ()))
    bad = any(
        one.value
        and belongs(one.due.component, disk, finding, found)
        and note_rules.disk_fails(note_rules.codes(one.note))
        for one in reports
    )
    return True if bad else None


def _declared_disk_is_there(finding: Finding, found: Evidence) -> bool | None:
    """Whether as many disks of a declared model are there as all its declarations need."""
    model, note = _declared_model(finding.values.get("basis")), finding.note
    disks = note.values.get("disks") if isinstance(note, Message) else None
    if model is None or not isinstance(disks, Listed):
        return None
    there = [one for one in disks.items if isinstance(one, Message)]
    same = sum(repr(one.values.get("model")) == model for one in there)
    limits = [one.due.limit for one in found.values.get("disk_count", ())]
    needed = sum(
        limit.low or 0
        for limit in limits
        if limit is not None and _declared_model(limit.basis) == model
    )
    return True if 0 < needed <= same else None


def _declared_model(basis: Value | None) -> Value | None:
    return basis.values.get("model") if isinstance(basis, Message) else None


_BAD_MEDIUM = "critical medium error"  # the kernel's words in the event `disk.io`
_MEDIUM, _REPORTS = ("media", "sense"), ("disk_faults", "disk_growth")
_ROWS = (
    "gpu_remap_pending",
    "gpu_retirement_pending",
    "gpu_ecc_uncorrected",
    "gpu_ecc_uncorrected_new",
)


def _measured(side: Side, *names: str, of: Whose = "its") -> _Rule:
    """A rule that is met as a condition on these measurements is."""
    condition = Condition(measurement=names, is_=side, of=of)
    return lambda finding, found: _value(condition, finding, found)


def _recorded(*events: str, of: Whose = "its") -> _Rule:
    """A rule that is met where one of these events of the finding's component is there."""
    condition = Condition(event=events, of=of)
    return lambda finding, found: _event(condition, finding, found)


def _note(*codes: str, other: tuple[str, ...] = ()) -> _Rule:
    """A rule that is met where the finding's note says one of `codes`.

    It is not met where the note says one of `other`, and else cannot tell.
    """

    def rule(finding: Finding, _: Evidence) -> bool | None:
        said = note_rules.codes(finding.note)
        return True if said & set(codes) else False if said & set(other) else None

    return rule


def _either(*rules: _Rule) -> _Rule:
    """A rule that is met where one of these is."""
    return lambda finding, found: _any([rule(finding, found) for rule in rules])


def _unless(proof: _Rule, trace: _Rule) -> _Rule:
    """A rule that `proof` meets, and that is not met where there is no `trace` either."""

    def rule(finding: Finding, found: Evidence) -> bool | None:
        if proof(finding, found):
            return True
        return False if trace(finding, found) is False else None

    return rule


# Packets that came broken are sent again and counted: without any the link changed no data.
_PCIE = ("gpu_pcie_replays",)
_NVLINK = ("gpu_nvlink_crc_errors", "gpu_nvlink_replays", "gpu_nvlink_recoveries")
# What a link lost for good, and what it also repaired.
_AER_LOST = ("aer.fatal", "aer.non-fatal", "aer.unrecovered", "aer.dpc")
_AER, _NVLINK_ERROR = ("aer",), ("xid.74", "sxid")


def _packets_broken(
    counts: tuple[str, ...], lost: tuple[str, ...], told: tuple[str, ...], of: Whose = "its"
) -> _Rule:
    """A rule that is met where a link broke packets, and not met where none was repaired either."""
    return _unless(
        _either(_measured("failed", *counts, of=of), _recorded(*lost, of=of)),
        _either(_measured("not zero", *counts, of=of), _recorded(*told, of=of)),
    )


_ARMS = tuple(
    f"collective_{what}" for what in ("miscompares", "send_receive_miscompares", "disagreements")
)
_default_right = _measured("zero", *_ARMS)
_off_right = _measured("zero", *(f"{name}_p2p_off" for name in _ARMS))
# The results of a GPU by itself; one that is wrong spoils those of all.
_OWN_RESULTS = (
    "gemm_*_miscompares",
    "burn_[bfit]*_miscompares",  # of its formats, not of its copies and peers
    "gpu_burn_errors_*",
    "vram_miscompares",
)
_own_wrong = _measured("not zero", *_OWN_RESULTS, of="any")
_no_peer_access = _measured("zero", "p2p_supported")
_own_right = _either(
    _measured("zero", "gemm_*_miscompares", of="any"),
    _measured("zero", "burn_[bfit]*_miscompares", of="any"),
)


def _only_through_host(finding: Finding, found: Evidence) -> bool | None:
    """Whether only the data that goes through host memory arrives wrong.

    Where no peer access is offered the data of both arms goes that way, and it may where the GPUs
    are joined by PCI Express: NCCL leaves peer access alone where it is far.
    """
    right = _default_right(finding, found)
    if _no_peer_access(finding, found):
        return None
    if _off_right(finding, found) or (right is False and _all_by_nvlink(finding, found)):
        return False
    return right or None


def _gpu_wrong_alone(finding: Finding, found: Evidence) -> bool | None:
    """Whether a GPU itself computes or stores wrongly.

    Its results without other GPUs prove it. Where they are right, and data arrives wrong by one way
    between the GPUs and right by the other, it is the way. Without peer access there is one way.
    """
    if _own_wrong(finding, found):
        return True
    if _no_peer_access(finding, found):
        return None
    one_way = {_default_right(finding, found), _off_right(finding, found)} == {True, False}
    return False if one_way and _own_right(finding, found) else None


def _no_gpu_wrong_alone(finding: Finding, found: Evidence) -> bool | None:
    """Whether no result of a GPU without the others is known to be wrong."""
    return _own_wrong(finding, found) is not True if found.values else None


def _between_gpus(finding: Finding, _: Evidence) -> bool | None:
    """Whether the finding is about several GPUs, and not about one alone."""
    return None if finding.component is None else not isinstance(finding.component, Gpu)


def _joined_by_pcie(finding: Finding, found: Evidence) -> bool | None:
    """Whether no NVLink joins the GPUs, as the paths say that were found with peer access."""
    paths = _paths(finding, found, _ITS)
    return not any(path.startswith("NV") for path in paths) if paths else None


def _joined_by_nvlink(finding: Finding, found: Evidence) -> bool | None:
    joined = _joined_by_pcie(finding, found)
    return None if joined is None else not joined


def _hot_in_this_check(finding: Finding, found: Evidence) -> bool | None:
    """Whether heat slowed the GPU down in the check of the finding.

    Heat in other checks alone proves nothing of this one, and a slowdown that no sample saw is of
    none that is known.
    """
    if _hot(finding, found) is False:
        return False
    slowed = [
        one.note
        for name in _HEAT
        for one in found.of(name)
        if one.value and belongs(one.due.component, _ITS, finding, found)
    ]
    during = [
        note.values.get("checks")
        for note in slowed
        if isinstance(note, Message) and note.code == "during_checks"
    ]
    here = any(isinstance(one, Listed) and finding.check in one.items for one in during)
    return True if here else None


def _in_exchange(of_pair: _Rule, of_all: _Rule) -> _Rule:
    """A rule about the ways that data takes: of two GPUs those between them, else all.

    What arrives wrong at one GPU after an operation of all went wrong on any of them.
    """
    return lambda finding, found: (of_pair if _is_pair(finding) else of_all)(finding, found)


def _is_pair(finding: Finding) -> bool:
    return finding.component is not None and len(finding.component.ends) == 2


def _nvlink_in_exchange(finding: Finding, found: Evidence) -> bool | None:
    """Whether an NVLink is among the ways of an exchange."""
    paths = _paths_of_exchange(finding, found)
    return any(path.startswith("NV") for path in paths) if paths else None


def _all_by_nvlink(finding: Finding, found: Evidence) -> bool:
    """Whether peer access over NVLink is known of each way of an exchange."""
    paths = _paths_of_exchange(finding, found)
    return bool(paths) and all(path.startswith("NV") for path in paths) and _offered(found)


def _offered(found: Evidence) -> bool:
    return all(one.value for one in found.of("p2p_supported"))


def _paths_of_exchange(finding: Finding, found: Evidence) -> list[str]:
    return _paths(finding, found, _ITS if _is_pair(finding) else _ANY)


def _paths(finding: Finding, found: Evidence, of: Condition) -> list[str]:
    notes = [
        one.note
        for one in found.of("p2p_supported")
        if belongs(one.due.component, of, finding, found)
    ]
    return [str(note.values.get("path")) for note in notes if isinstance(note, Message)]


def _two_differ(finding: Finding, found: Evidence) -> bool | None:
    """Whether just two GPUs were compared, and differ: neither has a majority.

    Nobody can tell where there are more, which may be of several models: each is compared alone.
    """
    values = [one.value for one in found.of(finding.measurement or "")]
    if None in values or not values:
        return None
    differ = len(values) - values.count(0)
    return None if len(values) > 2 and differ and differ % 2 == 0 else differ == len(values) == 2


_HEAT = ("gpu_sw_thermal_slowdown", "gpu_hw_thermal_slowdown")
_hot = _measured("not zero", *_HEAT)
# What holds a GPU's clock back: products that were right may have been made while it was cooler.
_HELD_BACK = (*_HEAT, "gpu_hw_slowdown", "gpu_power_brake")
_GPU_FAILED = ("xid.79", "gpu-lost", "xid.62", "xid.119", "xid.120")
_ITS = Condition(measurement="p2p_supported", is_="not zero")
_ANY = Condition(measurement="p2p_supported", is_="not zero", of="any")
_MEMORY = ("means_memory_bit", "means_inputs", "means_address_line")
_CHIP = ("means_datapath", "means_thermal", "means_repeatable")
_MEMORY_COUNTS = (
    "vram_miscompares",
    "gpu_ecc_uncorrected",
    "gpu_ecc_uncorrected_new",
    "gpu_remapped_new",
    "gpu_retired_new",
)
_WAYS = ("transport_nvlink_host", "transport_peer_refused", "transport_peer_though_off")


def _modules_are_smaller(finding: Finding, found: Evidence) -> bool | None:
    """Whether sizes explain it: a small module does not explain a missing one beside it."""
    if finding.measurement in ("dimm_count", "dimm_present"):
        return None
    return _value(Condition(measurement="dimm_size", is_="low", of="any"), finding, found)


# The conditions that a value and its side cannot express, by name: a pure function of the finding
# and the evidence, which answers None where it cannot tell.
RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        **{name: _of_the_finding(rule) for name, rule in note_rules.NOTE_RULES.items()},
        "after_another_xid": _after_another_xid,
        "declared_disk_is_there": _declared_disk_is_there,
        "fault_since_reset": _one_of(
            Condition(measurement=_ROWS, is_="not zero"), Condition(event="xid")
        ),
        "link_errors": _one_of(
            Condition(measurement="gpu_pcie_replays", is_="not zero"), Condition(event="aer")
        ),
        "medium_error": _medium_error,
        "no_spare_row": _one_of(
            Condition(measurement="gpu_remap_failed", is_="not zero"), Condition(event="xid.64")
        ),
        "wrong_by_itself": _measured(
            "not zero",
            *_OWN_RESULTS,
            "elementwise_miscompares",
            "layer_miscompares",
            *_MEMORY_COUNTS,
        ),
        "other_end_failed_before": _one_of(
            Condition(event=_GPU_FAILED, is_="before", of="others", settles="confirms"),
            Condition(event=("sxid",), is_="before", of="any"),
        ),
        "wrong_in_our_own_loads": _one_of(
            Condition(measurement="vram_miscompares", is_="not zero"),
            Condition(rule="in_several_loads"),
        ),
        "pcie_packets_broken": _packets_broken(_PCIE, _AER_LOST, _AER),
        "nvlink_packets_broken": _packets_broken(_NVLINK, _NVLINK_ERROR, _NVLINK_ERROR),
        "pcie_broken_in_exchange": _in_exchange(
            _packets_broken(_PCIE, _AER_LOST, _AER),
            _packets_broken(_PCIE, _AER_LOST, _AER, "any"),
        ),
        "nvlink_broken_in_exchange": _in_exchange(
            _packets_broken(_NVLINK, _NVLINK_ERROR, _NVLINK_ERROR),
            _packets_broken(_NVLINK, _NVLINK_ERROR, _NVLINK_ERROR, "any"),
        ),
        "nvlink_in_exchange": _nvlink_in_exchange,
        # A sample may miss the last degrees: from where the margin is warned of.
        "near_its_thermal_limit": _one_of(
            Condition(measurement="gpu_temperature_margin", is_="below", value=6.0),
            Condition(measurement="gpu_hw_thermal_slowdown", is_="not zero"),
        ),
        "only_through_host": _only_through_host,
        "gpu_wrong_alone": _gpu_wrong_alone,
        "between_gpus": _between_gpus,
        "joined_by_nvlink": _joined_by_nvlink,
        "joined_by_pcie": _joined_by_pcie,
        "no_gpu_wrong_alone": _no_gpu_wrong_alone,
        "two_differ": _two_differ,
        "memory_is_bad": _either(_note(*_MEMORY), _measured("not zero", *_MEMORY_COUNTS)),
        "chip_by_note": _note(*_CHIP, other=_MEMORY),
        "memory_cell": _note("means_memory_bit", other=("means_address_line",)),
        "address_line": _note(
            "means_address_line", other=("means_memory_bit", "means_one_bit_once")
        ),
        "copy_lost": _note("means_lost_copies", other=("means_copies",)),
        "inputs_differ": _note(
            english("inputs_differ", "{product}: inputs {own}, {others}"), other=("result_differs",)
        ),
        "persistent": _note(
            english(
                "digest_persistent",
                "persistent: {difference}; run again alone, it gave the same bits",
            ),
            other=("digest_transient",),
        ),
        "transient": _note(
            "digest_transient", other=("digest_persistent", "digest_persistent_of_two")
        ),
        "either_of_two": _note(
            english(
                "digest_persistent_of_two",
                "persistent: {difference}; each gave its own bits again, so one of them computes "
                "wrongly every time: the baseline or another equal GPU tells which",
            ),
            other=("digest_persistent", "digest_transient"),
        ),
        "slow_card": _note(
            english(
                "slow_path_card",
                "points to {card}: its paths to all others are slow too[; tried again: {tried}]",
            ),
            other=("slow_path_link",),
        ),
        "slow_link": _note(
            english(
                "slow_path_link",
                "points to what joins {first} and {second} ({link}): their paths to other GPUs "
                "are not all slow[; tried again: {tried}]",
            ),
            other=("slow_path_card",),
        ),
        "peer_access_switched_off": _note("transport_cause_setting"),
        "through_network": _note("transport_net", other=_WAYS),
        "held_back": _one_of(
            Condition(measurement=_HELD_BACK, is_="not zero"),
            Condition(measurement=("gemm_bf16", "gemm_bf16_ratio"), is_="failed"),
        ),
        "held_back_beside_equals": _one_of(
            Condition(measurement=_HELD_BACK, is_="not zero"),
            Condition(measurement="gemm_bf16_ratio", is_="failed"),
        ),
        "hot_in_this_check": _hot_in_this_check,
        "impossible_on_others": _impossible_on_others,
        "modules_are_smaller": _modules_are_smaller,
        "part_was_lost": _part_was_lost,
        "unproven_beside": _unproven_beside,
        "wrong_results_beside": _wrong_results_beside,
    }
)
