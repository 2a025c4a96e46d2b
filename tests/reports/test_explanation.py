from __future__ import annotations

from unittest import mock

import msgspec
from cases import each
from known import known

from acceptance.core.event_finding import OwnedEvent, event_findings
from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message, Quantity, Range
from acceptance.core.parts import MACHINE, Component, Gpu, Part, decode, parse
from acceptance.core.past import Bounds, DriftFinding, Level, Past
from acceptance.core.plan import Due
from acceptance.core.record import Event
from acceptance.reports import languages
from acceptance.reports.explanation import (
    Explanation,
    details,
    explain,
    group_findings,
    labelled_lines,
    note_lines,
)
from acceptance.reports.locations import Location, Locations

CHINESE = languages.language("zh-CN")
HERE = Locations(
    {Gpu(0): Location(address="0000:01:00.0"), Gpu(1): Location(address="0000:81:00.0")}
)


def fault(
    component: Component = Gpu(0), measurement: str = "gpu_link_width", **more: object
) -> Finding:
    finding = Finding(
        "fail",
        "watch.pcie_link",
        "outside_limit",
        measurement=measurement,
        component=component,
    )
    return msgspec.structs.replace(finding, **more)


def xid(
    code: int, action: str = "Reset the GPU.", component: str | None = "0000:02:00.0"
) -> Finding:
    return Finding(
        "fail", "run", "event_on", component=component, action=(action,), event=f"xid.{code}"
    )


def explained(finding: Finding, language: Language = ENGLISH) -> Explanation:
    return known(explain(finding, HERE, language))


def test_a_card_at_x8_says_where_it_is_and_what_to_look_for() -> None:
    found = explained(fault())
    assert found.next == "sudo lspci -vvs 0000:01:00.0 | grep -E 'LnkCap:|LnkSta:'"
    told = " ".join([f"{one.what} {one.tell}" for one in found.causes] + [found.shows or ""])
    for word in (
        "M.2",
        "riser",
        "bifurcation",
        "dust",
        "slot",
        "LnkSta",
        "x8 (downgraded)",
        "manual",
    ):
        assert word in told
    assert found.vendor is not None


def test_drift_of_a_measurement_has_the_causes_of_drift_and_then_its_own() -> None:
    found, own = explained(fault(event="drift.slope")), explained(fault())
    assert "little by little" in str(found.symptom)
    assert "fan" in " ".join(one.what for one in found.causes[:4])
    assert found.causes[4:] == own.causes
    assert (found.next, found.shows, found.vendor) == (own.next, own.shows, own.vendor)


def outside(value: float, limit: Range, measurement: str, **more: object) -> Finding:
    values = {"measured": Quantity(value, limit.unit), "limit": limit}
    return fault(measurement=measurement, values=values, **more)


def told(finding: Finding) -> str:
    return str(explained(finding).symptom)


BETTER = "The value is on the good side of its limit"
PROVES_NOTHING = "The value is better than the hardware can be"


BOTH, SHORT = Range("GB/s", low=10.0, high=90.0), Range("us", low=1.0, high=50.0)
EXACT = Range("count", low=2.0, high=2.0)


@each(
    "finding, text",
    [
        (outside(5.0, BOTH, "copy_own_d2d"), "slower"),
        (outside(95.0, BOTH, "copy_own_d2d"), BETTER),
        (Finding("error", "c", "implausible", {}, "copy_own_d2d", Gpu(0)), PROVES_NOTHING),
        (outside(60.0, SHORT, "collective_latency"), "longer"),
        (outside(0.9, SHORT, "collective_latency"), BETTER),
        (outside(3.0, EXACT, "gpu_count"), "more NVIDIA GPUs"),
        (outside(1.0, EXACT, "gpu_count"), "cannot be used"),
    ],
    told=[
        "a rate below its floor",
        "a rate above its ceiling",
        "an impossible rate",
        "a time above its ceiling",
        "a time below its floor",
        "more than declared",
        "less than declared",
    ],
)
def test_each_side_of_a_limit_has_its_own_symptom(finding: Finding, text: str) -> None:
    assert text in told(finding)


def test_drift_has_the_causes_of_its_measurement_on_their_side_alone() -> None:
    def drifted(value: float, measurement: str) -> Finding:
        level = Level(100.0, 9, 1.0, 3.0, Bounds(low=90.0, high=110.0))
        drift = DriftFinding(
            "warn", "changed", "drifted", Past(False, 3, 7, level=level), "GB/s", value,
            beyond=("level",),
        )  # fmt: skip
        return fault(measurement=measurement, drift=drift, event="drift.changed")

    down, up = explained(drifted(50.0, "copy_h2d")), explained(drifted(150.0, "copy_h2d"))
    assert down.causes[: len(up.causes)] == up.causes
    assert len(down.causes) > len(up.causes)
    assert (down.symptom, down.next) == (up.symptom, up.next)


@each("code", ["not_measured", "no_answer", "not_finite", "wrong_unit", "not_the_ratio"])
def test_a_value_that_proves_nothing_has_causes_whatever_it_measures(code: str) -> None:
    first, other = (
        Finding("error", "c", code, {}, name, Gpu(0)) for name in ("gemm_bf16", "copy_h2d")
    )
    assert told(first) == told(other)
    assert explain(msgspec.structs.replace(first, kind="waived"), HERE) is None


def test_the_first_line_says_where_the_part_is() -> None:
    known = Location(address="0000:41:00.0", slot="PCIEX16_2", serial="77", uuid="GPU-9")
    found = Locations(
        {
            Gpu(0): known,
            "0000:41:00.0": known,
            Part("dimm", "A1"): Location(slot="A1", serial="S\x1b[31m1"),
        }
    )
    whole = "where: PCI address 0000:41:00.0, slot PCIEX16_2, serial number 77, GPU-9"
    assert details(fault(), found)[0] == whole
    by_address = msgspec.structs.replace(xid(79), component="0000:41:00.0")
    assert details(by_address, found)[0] == "where: slot PCIEX16_2, serial number 77, GPU-9"
    assert details(fault(Part("dimm", "A1"), "dimm_size"), found)[0] == "where: serial number S1"
    assert details(fault(Gpu(7)), found)[0].startswith("what it means: ")
    chinese = "位置：PCI 地址 0000:41:00.0，插槽 PCIEX16_2，序列号 77，GPU-9"  # noqa: RUF001
    assert details(fault(), found, CHINESE)[0] == chinese


OF_ALL = "sudo lspci -vv -d 10de: | grep -E '^[0-9a-f]|LnkCap:|LnkSta:'"
OF_ONE = "sudo lspci -vvs 0000:01:00.0 | grep -E 'LnkCap:|LnkSta:'"


@each(
    "finding, command",
    [
        (fault(measurement="something_new", event="drift.counter"), "rigproof history"),
        (fault(Gpu(7)), OF_ALL),
        (fault(), OF_ONE),
    ],
    told=[
        "drift of what has no entry has that of drift",
        "the general one where the place is not known",
        "that of its place",
    ],
)
def test_the_command_that_is_next(finding: Finding, command: str) -> None:
    assert explained(finding).next == command


COMET = msgspec.structs.replace(xid(1), event="comet")
HOSTILE = msgspec.structs.replace(COMET, action=("a\x1b[31m\nb\u202e",))


@each(
    "finding, found, lines",
    [
        (
            COMET,
            Explanation(None, (), "Reset the GPU.", None),
            ("next: Reset the GPU.",),
        ),
        (msgspec.structs.replace(COMET, action=()), None, ()),
        (HOSTILE, mock.ANY, ("next: a b\ufffd",)),
        *(
            (msgspec.structs.replace(fault(), kind=kind), None, ())
            for kind in ("error", "skip", "waived")
        ),
        (fault(measurement="comet_tail"), None, ()),
    ],
    told=[
        *("an event that no catalogue knows keeps what it asks for", "and nothing without it"),
        "hostile words are made harmless",
        *("an error names its cure itself", "a skip", "what was waived", "not ours"),
    ],
)
def test_what_teaches_little(
    finding: Finding, found: Explanation | None, lines: tuple[str, ...]
) -> None:
    assert explain(finding, HERE) == found
    assert details(finding, HERE) == lines


def test_an_event_says_what_it_asks_for_and_has_the_causes_of_its_code() -> None:
    fallen, other = explained(xid(79)), explained(xid(8))
    assert fallen.action == other.action == "Reset the GPU."
    assert ("fell off the bus" in str(fallen.symptom), "an Xid" in str(other.symptom)) == (
        True,
        True,
    )
    action = "Reset the GPU; if it comes back, collect nvidia-bug-report.sh and ask the vendor."
    event = Event("xid", "fatal", "text", "meaning", action, 1, catalog=("CONTACT_SUPPORT",))
    (finding,) = event_findings([OwnedEvent(event)], "run")
    told = str(explained(finding, CHINESE).action)
    assert told == f"{CHINESE.text(action)} NVIDIA's catalog: CONTACT_SUPPORT.", "not its own words"


AGAIN, BETWEEN = fault(check="watch.again"), fault(measurement="gpu_count", component=MACHINE)


@each(
    "findings, groups, command",
    [
        ([fault(), fault(Gpu(1))], [[0, 1]], OF_ALL),
        ([fault(), AGAIN], [[0, 1]], OF_ONE),
        ([fault(), BETWEEN, AGAIN], [[0, 2], [1]], OF_ONE),
        ([fault(), fault(Gpu(1), note="it hangs " * 20)], [[0], [1]], OF_ONE),
    ],
    told=[
        *("several components share the general teaching", "one keeps its own"),
        *("what stands between two alike does not make them two", "other notes are apart"),
    ],
)
def test_what_is_taught_together(
    findings: list[Finding], groups: list[list[int]], command: str
) -> None:
    found = list(group_findings(findings, HERE))
    assert [group for group, _ in found] == [tuple(findings[n] for n in one) for one in groups]
    assert f"next: {command}" in found[0][1]


@each(
    "note, count, last",
    [
        ("line\n" * 50, 50, "line"),
        ("line\n" * 51, 51, "... (1 more line)"),
        ("line\n" * 52, 51, "... (2 more lines)"),
        (Message("layers", {"bus": "a", "driver": "b", "nodes": "c", "nvml": "d"}), 4, None),
    ],
)
def test_a_note_keeps_its_lines_and_a_long_one_is_cut_and_said(
    note: Message | str, count: int, last: str | None
) -> None:
    lines = note_lines(fault(note=note))
    assert (len(lines), last in (None, lines[-1])) == (count, True)


def test_in_chinese_the_command_stays_and_all_else_is_chinese() -> None:
    english, chinese = explained(fault()), explained(fault(), CHINESE)
    assert chinese.next == english.next
    assert len(chinese.causes) == len(english.causes)
    assert "插槽" in " ".join(one.what for one in chinese.causes)
    labels = [label for label, _ in labelled_lines(fault(), HERE, CHINESE)]
    assert labels[-3:] == ["下一步", "看什么", "提供给厂商"]


def test_a_plan_that_carries_advice_is_still_read() -> None:
    """Journals of earlier versions have it; today it is found when reports are made."""
    old = (
        b'{"measurement":"m","component":"c","unit":"W","criteria":[],"origin":"o",'
        b'"advice":"likely: A. Next: B"}'
    )
    assert msgspec.json.decode(old, type=Due, dec_hook=decode) == Due("m", parse("c"), "W", (), "o")
