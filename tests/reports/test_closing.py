from __future__ import annotations

from pathlib import Path

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acceptance.core.finding import Finding, FindingKind, Waiver
from acceptance.core.language import ENGLISH
from acceptance.core.message import Message, Quantity, Range, Unmeasured, Values
from acceptance.core.parts import Component, Function, Gpu, Pair, Part
from acceptance.machine import machine_file
from acceptance.reports import closing
from acceptance.reports.locations import Location, Locations


def low(
    component: str, value: float, check: str = "link.copy", basis: str = "half the link"
) -> Finding:
    values: Values = {
        "measured": Quantity(value, "GB/s"),
        "limit": Range("GB/s", 20.0),
        "basis": basis,
    }
    return Finding("fail", check, "outside_limit", values, "copy_h2d", component)


NOWHERE = Locations()


def lines(*findings: Finding, places: Locations = NOWHERE) -> list[tuple[tuple[str, ...], str]]:
    return [line for said in closing.entries(findings, places, ENGLISH) for line in said.lines]


LIMIT = "limit >= 20 GB/s; basis: half the link"
PAIRS = [Pair(Gpu(a), Gpu(b)) for a in range(8) for b in range(8) if a != b]
STOPPED = [
    Finding("error", check, "never_ran", {"why": "stopped by SIGINT"})
    for check in ("a.one", "a.two", "a.one")
]
FALLEN = Finding(
    "fail",
    "run",
    "event_on",
    {"event": "xid 79", "meaning": "it fell off the bus"},
    component=Function("0000:01:00.0"),
)


@each(
    "findings, checks, starts",
    [
        (
            [low(Gpu(n), 12 + n / 2) for n in range(8)],
            ("link.copy",),
            [f"copy_h2d on gpu0 to gpu7: measured 12 .. 15.5 GB/s, {LIMIT}"],
        ),
        (
            [low(Gpu(0), 12), low(Gpu(3), 12)],
            ("link.copy",),
            [f"copy_h2d on gpu0, gpu3: measured 12 GB/s, {LIMIT}"],
        ),
        (
            [low(Pair(Gpu(0), Gpu(1)), -3), low(Pair(Gpu(1), Gpu(0)), 1e-5)],
            ("link.copy",),
            ["copy_h2d on gpu0->gpu1, gpu1->gpu0: measured -3 .. 1e-05 GB/s"],
        ),
        (
            [low(Gpu(0), 12.00001), low(Gpu(1), 12.00002)],
            ("link.copy",),
            [f"copy_h2d on gpu0, gpu1: measured 12 GB/s, {LIMIT}"],
        ),
        (
            [low(Gpu(0), 12), low(Gpu(1), 12, basis="another"), low(Gpu(2), 12)],
            ("link.copy",),
            ["copy_h2d on gpu0, gpu2:", "copy_h2d on gpu1:"],
        ),
        (STOPPED, ("a.one", "a.two"), ["never ran: stopped by SIGINT"]),
        ([FALLEN], ("run",), ["xid 79 on gpu0 (0000:01:00.0): it fell off the bus"]),
    ],
    told=[
        *("eight neighbours", "no neighbours", "paths", "shown as one value"),
        *("what differs stays apart", "several checks", "an address is named"),
    ],
)
def test_one_trouble_is_one_line(
    findings: list[Finding], checks: tuple[str, ...], starts: list[str]
) -> None:
    place = Location(address="0000:01:00.0")
    found = lines(*findings, places=Locations({Gpu(0): place, "0000:01:00.0": place}))
    assert [(of, text[: len(start)]) for (of, text), start in zip(found, starts, strict=True)] == [
        (checks, start) for start in starts
    ]
    ((_, text),) = lines(*(low(pair, 1) for pair in PAIRS))
    assert " and 40 more: measured 1 GB/s" in text


def test_causes_are_told_once_below_neighbours() -> None:
    other = replace(low(Gpu(0), 1), measurement="gemm_bf16")
    said = list(
        closing.entries([low(Gpu(0), 1), low(Gpu(1), 1, basis="another"), other], NOWHERE, ENGLISH)
    )
    assert [len(one.lines) for one in said] == [2, 1]
    assert all(any(line.startswith("next: ") for line in one.below) for one in said)


def test_the_causes_of_one_component_speak_of_its_place_and_those_of_several_in_general() -> None:
    places = Locations({Gpu(n): Location(address=f"0000:0{n + 1}:00.0") for n in range(2)})
    width = [replace(low(Gpu(n), 8, "c"), measurement="gpu_link_width") for n in (0, 1)]
    (one,), (both,) = (
        list(closing.entries(found, places, ENGLISH)) for found in (width[:1], width)
    )
    assert "0000:01:00.0" in " ".join(one.below)
    assert "0000:01:00.0" not in " ".join(both.below)


@given(st.text(max_size=40), st.sampled_from(["gpu", "\0", "{component}"]))
def test_a_text_from_outside_is_handed_on_as_it_came(text: str, name: str) -> None:
    twins = [low(f"{name}{n}", 1, basis=text) for n in range(2)]
    ((_, told),) = lines(*twins)
    limit = "measured 1 GB/s, limit >= 20 GB/s; basis: "
    assert told == f"copy_h2d on {name}0, {name}1: {limit}{text}"


def unread(component: Component, why: Unmeasured = Unmeasured.NOT_OFFERED) -> Finding:
    told: Values = {"reason": Message("health_unread", {"why": "no"})}
    kind: FindingKind = "error" if why is Unmeasured.NO_ANSWER else "skip"
    return Finding(kind, "storage.smart_health", why.value, told, "disk_faults", component)


def test_a_waiver_that_a_message_recommends_is_there_as_lines_to_paste(tmp_path: Path) -> None:
    (said,) = closing.entries(
        [unread(Part("disk", name)) for name in ("sda", 'v"d')], NOWHERE, ENGLISH
    )
    file = tmp_path / "box.toml"
    file.write_text("\n".join(['schema = 1\nname = "box"', *said.waiver]), encoding="utf-8")
    assert machine_file.read(file).waiver == tuple(
        Waiver("this disk has no SMART report", skip="storage.smart_health", component=name)
        for name in ("disk:sda", 'disk:v"d')
    )
    others = [unread(Part("disk", "sda"), why) for why in Unmeasured if why != "not_offered"]
    for finding in (*others, low(Gpu(0), 12)):
        (said,) = closing.entries([finding], NOWHERE, ENGLISH)
        assert said.waiver == (), "no message recommends one"
