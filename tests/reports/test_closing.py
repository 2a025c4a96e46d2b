from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH
from acceptance.reports import closing
from acceptance.reports.locations import NO_LOCATIONS, Location, Locations


def low(
    component: str, value: str, check: str = "link.copy", basis: str = "half the link"
) -> Finding:
    text = f"copy_h2d on {component}: measured {value} GB/s, limit >= 20 GB/s; basis: {basis}"
    return Finding("fail", check, text, "copy_h2d", component)


def lines(
    *findings: Finding, places: Locations = NO_LOCATIONS
) -> list[tuple[tuple[str, ...], str]]:
    return [line for said in closing.entries(findings, places, ENGLISH) for line in said.lines]


def test_eight_gpus_with_the_same_trouble_are_one_line() -> None:
    found = lines(*(low(f"gpu{n}", f"{12 + n / 2:g}") for n in range(8)))
    assert found == [
        (
            ("link.copy",),
            (
                "copy_h2d on gpu0 to gpu7: measured 12 .. 15.5 GB/s, limit >= 20 GB/s; basis: "
                "half the link"
            ),
        )
    ]


def test_they_are_named_one_by_one_where_they_are_not_neighbours() -> None:
    assert lines(low("gpu0", "12"), low("gpu3", "12")) == [
        (
            ("link.copy",),
            "copy_h2d on gpu0, gpu3: measured 12 GB/s, limit >= 20 GB/s; basis: half the link",
        )
    ]
    ((_, text),) = lines(low("gpu0->gpu1", "-3"), low("gpu1->gpu0", "1e-05"))
    assert text.startswith("copy_h2d on gpu0->gpu1, gpu1->gpu0: measured -3 .. 1e-05 GB/s")


def test_of_very_many_the_first_are_named() -> None:
    ((_, text),) = lines(
        *(low(f"gpu{a}->gpu{b}", "1") for a in range(8) for b in range(8) if a != b)
    )
    assert " and 40 more: measured 1 GB/s" in text


def test_what_differs_stays_apart() -> None:
    found = lines(low("gpu0", "12"), low("gpu1", "12", basis="another"), low("gpu2", "12"))
    assert [text.split(":")[0] for _, text in found] == [
        "copy_h2d on gpu0, gpu2",
        "copy_h2d on gpu1",
    ]


def test_one_trouble_of_several_checks_is_said_once() -> None:
    stopped = [
        Finding("error", check, "never ran: stopped by SIGINT")
        for check in ("a.one", "a.two", "a.one")
    ]
    assert lines(*stopped) == [(("a.one", "a.two"), "never ran: stopped by SIGINT")]


def test_causes_are_told_once_below_neighbours() -> None:
    other = Finding(
        "fail",
        "b",
        "gemm_bf16 on gpu0: measured 1 TFLOP/s, limit >= 2 TFLOP/s",
        "gemm_bf16",
        "gpu0",
    )
    said = list(
        closing.entries(
            [low("gpu0", "1"), low("gpu1", "1", basis="another"), other], NO_LOCATIONS, ENGLISH
        )
    )
    assert [len(one.lines) for one in said] == [2, 1]
    assert all(any(line.startswith("next: ") for line in one.below) for one in said)


def test_the_causes_of_one_component_speak_of_its_place_and_those_of_several_in_general() -> None:
    places = Locations({f"gpu{n}": Location(address=f"0000:0{n + 1}:00.0") for n in range(2)})
    width = [
        Finding(
            "fail",
            "c",
            f"gpu_link_width on gpu{n}: measured 8, limit = 16",
            "gpu_link_width",
            f"gpu{n}",
        )
        for n in (0, 1)
    ]
    (one,), (both,) = (
        list(closing.entries(found, places, ENGLISH)) for found in (width[:1], width)
    )
    assert "0000:01:00.0" in " ".join(one.below)
    assert "0000:01:00.0" not in " ".join(both.below)


def test_an_address_is_named() -> None:
    event = Finding(
        "fail", "run", "xid 79 on 0000:01:00.0: it fell off the bus", component="0000:01:00.0"
    )
    places = Locations(
        {"gpu0": Location(address="0000:01:00.0"), "0000:01:00.0": Location(address="0000:01:00.0")}
    )
    assert lines(event, places=places) == [
        (("run",), "xid 79 on gpu0 (0000:01:00.0): it fell off the bus")
    ]


@each(
    "text",
    [
        "measured 1.2.3 GB/s",
        "measured 1e9999 and measured -",
        "\0\1 measured 4",
        "measured 5e+",
        "",
    ],
)
def test_any_text_is_held_together(text: str) -> None:
    twins = [Finding("fail", "a", f"x on gpu{n} {text} gpu{n}", "x", f"gpu{n}") for n in range(3)]
    ((_, told),) = lines(*twins)
    assert told.startswith("x on gpu0 to gpu2")
    assert told.endswith(" each")


@given(
    st.text(st.sampled_from("\0\1 -medrs5:"), max_size=40), st.sampled_from(["gpu", "\0", "a\1"])
)
def test_marks_of_a_text_from_outside_are_no_marks_of_ours(text: str, name: str) -> None:
    """What the text holds itself is shown as what it is, and nothing is put in its place."""
    shown = text.replace("\0", "\ufffd").replace("\1", "\ufffd")

    def told(text: str, name: str) -> str:
        ((_, line),) = lines(
            *(Finding("fail", "a", f"x on {name}{n}: {text}.", "x", f"{name}{n}") for n in range(2))
        )
        return line

    line = told(text, name)
    assert not {"\0", "\1"} & set(line)
    assert line == told(shown, name.replace("\0", "\ufffd").replace("\1", "\ufffd"))
