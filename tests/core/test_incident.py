from __future__ import annotations

import journals
import msgspec
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from runs import judged

from acceptance.core.event_finding import OwnedEvent, event_findings
from acceptance.core.finding import Finding
from acceptance.core.incident import SAME_WITHIN_S, without_duplicates
from acceptance.core.parts import Gpu
from acceptance.core.record import CheckStarted, Entry, Event, Severity
from acceptance.wording import words

GPU, OTHER = "0000:01:00.0", "0000:02:00.0"


def xid(code: int, source: str, boot_s: float | None = 105.0, component: str | None = GPU) -> Event:
    return Event("xid", "fatal", f"{source} said", "m", "a", code, component, boot_s, source=source)


def lost(source: str, boot_s: float = 105.0, component: str | None = GPU) -> Event:
    code = "nvml" if source == "nvml" else "bus"
    return Event(
        "gpu-lost", "fatal", f"{source} said", "m", "a", code, component, boot_s, source=source
    )


def kept(*events: Event) -> list[str]:
    return [
        entry.body.text
        for entry in without_duplicates(journals.entries(events))
        if isinstance(entry.body, Event)
    ]


BOTH = ["kernel-log said", "nvml said"]
ONE = ["kernel-log said"]


@each(
    "kernel, nvml, expected",
    [
        (xid(48, "kernel-log"), xid(48, "nvml"), ONE),
        (xid(48, "kernel-log", 95.0), xid(48, "nvml"), ONE),
        (xid(48, "kernel-log", 115.0), xid(48, "nvml"), ONE),
        (xid(48, "kernel-log", 115.1), xid(48, "nvml"), BOTH),
        (xid(48, "kernel-log", 94.9), xid(48, "nvml"), BOTH),
        (xid(48, "kernel-log"), xid(63, "nvml"), BOTH),
        (xid(48, "kernel-log"), xid(48, "nvml", component=OTHER), BOTH),
        (xid(48, "kernel-log"), xid(48, "nvml", component=None), BOTH),
        (xid(79, "kernel-log"), lost("nvml"), ONE),
        (lost("kernel-log"), lost("nvml"), ONE),
        (lost("kernel-log"), xid(79, "nvml"), ONE),
        (xid(48, "kernel-log"), lost("nvml"), BOTH),
        (xid(79, "kernel-log"), lost("nvml", component=OTHER), BOTH),
        (
            xid(48, "kernel-log", None),
            xid(48, "nvml", 101.0),
            ONE,
        ),  # the entry's own time stands in
        (xid(48, "kernel-log", None), xid(48, "nvml", 110.5), BOTH),
    ],
)
def test_an_incident_is_told_once(kernel: Event, nvml: Event, expected: list[str]) -> None:
    assert kept(kernel, nvml) == expected
    if kernel.boot_s is not None:
        assert sorted(kept(nvml, kernel)) == expected


def test_what_one_source_says_twice_stays() -> None:
    assert kept(xid(13, "kernel-log"), xid(13, "kernel-log"), xid(13, "nvml")) == ONE * 2
    assert kept(xid(13, "nvml"), xid(13, "nvml")) == ["nvml said"] * 2


def test_another_boot_is_another_incident() -> None:
    first, second = journals.entries([xid(48, "kernel-log"), xid(48, "nvml")])
    assert (
        without_duplicates([first, msgspec.structs.replace(second, boot=1)])[1].body == second.body
    )


def test_what_is_no_event_stays() -> None:
    entries = journals.entries([CheckStarted("x"), xid(48, "nvml")])
    assert without_duplicates(entries) == entries


@given(
    st.lists(
        st.builds(
            xid,
            st.sampled_from([13, 79]),
            st.sampled_from(["kernel-log", "nvml"]),
            st.floats(0, 50),
        )
    )
)
def test_every_incident_is_told_by_somebody(events: list[Event]) -> None:
    left = [
        entry.body
        for entry in without_duplicates(journals.entries(events))
        if isinstance(entry.body, Event)
    ]
    assert [event for event in left if event.source != "nvml"] == [
        event for event in events if event.source != "nvml"
    ]
    for event in events:
        near = (
            abs((event.boot_s or 0) - (other.boot_s or 0)) <= SAME_WITHIN_S
            for other in left
            if other.code == event.code
        )
        assert any(near)


def test_a_verdict_counts_an_incident_once() -> None:
    made = journals.plan()

    def events(*told: Event) -> list[Entry]:
        return journals.entries([*journals.bodies(made)[:-1], *told, journals.bodies(made)[-1]])

    both = judged(events(xid(79, "kernel-log", 102.5), lost("nvml", 103.0))).verdict
    assert [finding.quote for finding in both.of_kind("fail")] == ONE
    assert both.verdict == "FAIL"
    alone = judged(events(lost("nvml", 103.0))).verdict
    assert (alone.verdict, [finding.quote for finding in alone.of_kind("fail")]) == (
        "FAIL",
        ["nvml said"],
    )


@each(
    "severity, hardware, kinds",
    [
        ("fatal", True, ["fail"]),
        ("error", True, ["fail"]),
        ("fatal", False, ["error"]),
        ("error", False, ["error"]),
        ("warning", True, ["warn"]),
        ("warning", False, ["warn"]),
        ("info", True, []),
        ("info", False, []),
    ],
)
def test_what_an_event_does_to_the_outcome(
    severity: Severity, hardware: bool, kinds: list[str]
) -> None:
    """Harm that proves a fault of the machine fails; harm that software alone
    can do leaves it unjudged.
    """
    for component, told in ((GPU, f"xid 48 on {GPU}: m"), (None, "xid 48: m")):
        event = msgspec.structs.replace(
            xid(48, "nvml", component=component), severity=severity, hardware=hardware
        )
        found = event_findings([OwnedEvent(event)], "c.one")
        assert [finding.kind for finding in found] == kinds
        assert [words.of(finding) for finding in found] == [told] * len(kinds)


@each(
    "event, key",
    [
        (xid(79, "kernel-log"), "xid.79"),
        (lost("nvml"), "gpu-lost.nvml"),
        (Event("edac", "warning", "said", "m", "a"), "edac"),
        (Event("oom", "error", "said", "m", "a", "4711", hardware=False), "oom.4711"),
    ],
)
def test_what_an_event_is_stands_in_its_finding(event: Event, key: str) -> None:
    """By it its causes are found; what it asks for, and the kernel's own line, are its own."""
    (found,) = event_findings([OwnedEvent(event)], "run")
    assert (found.event, found.quote) == (key, event.text)
    assert words.action(found) == event.action


@each(
    "catalog, told",
    [
        ((), "Reset it."),
        (("RESET_GPU",), "Reset it. NVIDIA's catalog: RESET_GPU."),
        (("A", "B", "C"), "Reset it. NVIDIA's catalog: A, then B, then C."),
    ],
)
def test_what_an_event_asks_for_comes_with_nvidias_own_words(
    catalog: tuple[str, ...], told: str
) -> None:
    event = Event("xid", "fatal", "text", "meaning", "Reset it.", 79, catalog=catalog)
    (found,) = event_findings([OwnedEvent(event)], "run")
    assert words.action(found) == told
    (bare,) = event_findings([OwnedEvent(Event("xid", "fatal", "text", "meaning", "", 79))], "run")
    assert words.action(bare) is None


@each(
    "code, counts, measurement, component, left",
    [
        ("bf16", (), "burn_bf16_miscompares", Gpu(0), 0),
        ("bf16", (), "burn_bf16_miscompares", Gpu(1), 1),
        ("bf16", (), "burn_f64_miscompares", Gpu(0), 1),
        ("bf16", (), "burn_bf16", Gpu(0), 1),
        ("bf16", (), "gemm_bf16_miscompares", Gpu(0), 1),
        ("copy", (), "burn_copy_miscompares", Gpu(0), 0),
        ("peer", (), "burn_peer_miscompares", Gpu(0), 0),
        ("vram", (), "vram_miscompares", Gpu(0), 0),
        ("elementwise", (), "elementwise_miscompares", Gpu(0), 0),
        ("result", (), "burn_result_miscompares", Gpu(0), 1),
        ("bf16", ("gemm_bf16_miscompares",), "gemm_bf16_miscompares", Gpu(0), 0),
        ("bf16", ("gemm_bf16_miscompares",), "burn_bf16_miscompares", Gpu(0), 1),
    ],
)
def test_only_the_count_of_its_own_format_and_gpu_stands_for_an_event(
    code: str, counts: tuple[str, ...], measurement: str, component: Gpu, left: int
) -> None:
    """Older journals do not name the counts: there the code stands for them."""
    event = Event("miscompare", "fatal", "t", "m", "a", code, Gpu(0), source="load", counts=counts)
    counted = Finding("fail", "c", "outside_limit", {}, measurement, component)
    assert len(event_findings([OwnedEvent(event)], "c", [counted])) == left
