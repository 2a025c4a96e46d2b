"""What loads say while they run: wrong results as events, laps as notes, and
everything else as nothing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thoroughness import ALL
from wrong_results import (
    COLLECTIVE,
    COPIED,
    DIGESTS_OF_GPUS,
    FAILED,
    FILE,
    INPUTS,
    LAYER,
    REPEATED,
    RUN,
    TRAINED,
    TRANSFERRED,
    UNEQUAL,
    VECTOR,
    one_bit,
    vram,
)

from acceptance.core.message import Listed, Message
from acceptance.core.parts import GPUS, Component, Gpu, Pair, Part
from acceptance.core.record import Body, Event, Note
from acceptance.journal import clock
from acceptance.loads.miscompare import read, read_or_keep
from acceptance.session import load_events
from acceptance.wording import words

RING = {**one_bit(3), "found_s": -5.0}


class Heard:
    """A listener of the loads of these GPUs, a clock that is set, and what it wrote."""

    def __init__(self, *names: str, shown: Mapping[str, Sequence[str]] | None = None) -> None:
        self.now = 1000.0
        self.written: list[Body] = []
        self._listener = load_events.listener(names, self.written.append, lambda: self.now, shown)

    def __call__(self, index: int, record: object) -> None:
        self._listener(index, record if isinstance(record, str) else json.dumps(record))

    def events(self) -> list[Event]:
        assert all(isinstance(body, Event) for body in self.written)
        return [body for body in self.written if isinstance(body, Event)]

    def notes(self) -> list[str]:
        assert all(
            isinstance(body, Note) and body.progress and not body.trouble for body in self.written
        )
        return [words.text(body.text) for body in self.written if isinstance(body, Note)]


def lap(number: int, laps: int = 400) -> dict[str, Any]:
    formats = [{"format": "bf16", "rate": 900.0, "right": number * 8, "wrong": 0}]
    return {"lap": number, "laps": laps, "done": number, "formats": formats}


def step(gpus: list[str], **more: Any) -> dict[str, Any]:
    return {"kind": "square", "gpus": gpus, "seconds": 9.0, "hertz": 2.0, **more}


def begins(of: dict[str, Any], at_s: float) -> dict[str, Any]:
    return {"step": of, "begins": at_s}


def ended(of: dict[str, Any], wrong: int = 0) -> dict[str, Any]:
    return {"step_ended": of, "edges": 36, "right": 70, "wrong": wrong}


def meaning_of(event: Event) -> str:
    return words.text(event.meaning)


def wrong(**more: Any) -> dict[str, Any]:
    return {"miscompare": {**RING, **more}}


def test_a_wrong_result_is_an_event_at_once() -> None:
    heard = Heard(Gpu(3), Gpu(5))
    heard.now = 1010.0
    heard(1, wrong(found_s=1009.5))
    (event,) = heard.events()
    assert (event.kind, event.severity, event.source, event.hardware) == (
        "miscompare",
        "fatal",
        "load",
        True,
    )
    assert (event.component, event.code, event.boot_s) == (Gpu(5), "bf16", 1009.5)
    assert "shape 8192x8192x16384, iteration 17, lap 0, elements 1" in meaning_of(event)
    assert event.text.endswith("wrong: 1 of 67108864; the first at 150, 5767: 3f88 instead of 3f80")


def test_it_is_told_once_for_each_gpu_and_format() -> None:
    heard = Heard(Gpu(0), Gpu(1))
    for _ in range(1000):
        heard(0, wrong())
        heard(1, wrong())
        heard(1, wrong(dtype="f64"))
    assert [(event.component, event.code) for event in heard.events()] == [
        (Gpu(0), "bf16"),
        (Gpu(1), "bf16"),
        (Gpu(1), "f64"),
    ]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({**INPUTS, "dtype": "f8"}, "f8"),
        ({**COPIED, "check": "copy_h2d"}, "copy"),
        ({**COPIED, "check": "copy_d2h"}, "copy"),
        (COPIED, "peer"),
        (TRANSFERRED, "copy"),
        ({**TRANSFERRED, "component": "gpu0->gpu1", "check": "copy_own_p2p"}, "peer"),
        (VECTOR, "elementwise"),
        (vram([(64, 0, 4)]), "vram"),
        (FILE, "kept"),
        (FAILED, "file"),
        ({"check": "new one"}, "result"),
        ({"dtype": 3, "check": None}, "result"),
        ({**INPUTS, "dtype": "f128"}, "result"),
    ],
)
def test_what_it_is_of_stands_in_the_name_of_its_count(found: dict[str, Any], code: str) -> None:
    assert read_or_keep(found).code == code
    heard = Heard(Gpu(0))
    heard(0, {"miscompare": found})
    assert [event.code for event in heard.events()] == [code]
    assert all(event.meaning and event.action for event in heard.events())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"words": 9, "unwritten": 9}, "copy_lost"),
        ({"words": 9, "unwritten": 8}, "copy_changed"),
        ({"words": 9}, "copy_changed"),
    ],
)
def test_a_copy_that_never_arrived_is_told_apart(found: dict[str, Any], said: str) -> None:
    older = {key: value for key, value in COPIED.items() if key != "unwritten"}
    meaning = load_events.event_of(read({**older, **found}), Gpu(0)).meaning
    assert isinstance(meaning, Message)
    where = Listed(("words 9", "word 3", "expected 00", "got 01"))
    assert (meaning.code, meaning.values["where"]) == (said, where)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            FILE,
            "disk:nvme0n1 gave back other data than was written: sealed at byte 12296; what is "
            "there belongs to byte 4104 of the writing number 1",
        ),
        (
            {**FILE, "of_offset": None, "of_turn": None},
            "disk:nvme0n1 gave back other data than was written: sealed at byte 12296",
        ),
        (FAILED, "disk:nvme0n1 failed: read of sealed ended with EIO at byte 4096"),
    ],
)
def test_a_wrong_file_says_where_and_what_to_do(found: dict[str, Any], said: str) -> None:
    event = load_events.event_of(read(found), Part("disk", "nvme0n1"))
    assert meaning_of(event) == said
    assert event.action.startswith("Save what is on this disk;")


@pytest.mark.parametrize(
    ("index", "told", "component"),
    [
        (0, "gpu0", Gpu(2)),
        (1, "gpu0", Gpu(4)),
        (1, "gpu0->gpu1", Pair(Gpu(4), Gpu(2))),
        (1, "gpu2->gpu0", Pair(Gpu(7), Gpu(4))),
        (1, "gpu9", Gpu(4)),
        (1, None, Gpu(4)),
        (1, ["gpu0"], Gpu(4)),
    ],
)
def test_components_are_named_as_in_the_run(index: int, told: object, component: str) -> None:
    heard = Heard(Gpu(2), Gpu(4), Gpu(7))
    heard(index, wrong(component=told))
    assert [event.component for event in heard.events()] == [component]


@pytest.mark.parametrize(
    ("found", "count", "component", "place"),
    [
        (COLLECTIVE, "collective_miscompares_p2p_off", Gpu(4), ["size 4096", "index [7]"]),
        (
            {**COLLECTIVE, "check": "send_receive", "component": "gpu0->gpu1"},
            "collective_send_receive_miscompares_p2p_off",
            Pair(Gpu(2), Gpu(4)),
            ["index [7]", "expected 12.0", "got 11.0"],
        ),
        (UNEQUAL, "parallel_miscompares", Gpu(4), ["step 1", "difference 0.000191347"]),
        (DIGESTS_OF_GPUS, "parallel_disagreements", GPUS, ["check digest"]),
        (TRAINED, "step_miscompares", Gpu(2), ["tensor tokens.weight", "index [0, 7]"]),
        (LAYER, "layer_miscompares", Gpu(2), ["layer bert", "index [0, 0]"]),
        (RUN, "digest_repeats_differ", Gpu(2), ["step 7", "bit 12"]),
        (REPEATED, "power_step_miscompares", Gpu(2), ["after short", "index [1, 2]"]),
        (vram([(64, 0, 4)]), "vram_miscompares", Gpu(2), ["pass 1", "address 64"]),
    ],
)
def test_the_event_of_a_wrong_result_names_its_count_and_its_place(
    found: dict[str, Any], count: str, component: Component, place: list[str]
) -> None:
    heard = Heard(GPUS, shown={GPUS: [Gpu(2), Gpu(4)]})
    heard(0, {"miscompare": found})
    (event,) = heard.events()
    assert count in event.counts
    assert event.component == component
    for one in place:
        assert one in meaning_of(event)


def test_each_arm_of_a_collective_has_an_event_of_its_own() -> None:
    heard = Heard(GPUS, shown={GPUS: [Gpu(0), Gpu(1)]})
    for arm in ("default", "p2p_off", "default"):
        heard(0, {"miscompare": {**COLLECTIVE, "arm": arm}})
    assert [event.counts for event in heard.events()] == [
        ("collective_miscompares",),
        ("collective_miscompares_p2p_off",),
    ]


@pytest.mark.parametrize("moment", [999.0, 1011.1, -5, 10**400, True, "1005", None])
def test_a_moment_that_cannot_be_right_is_not_taken(moment: object) -> None:
    heard = Heard(Gpu(0))
    heard.now = 1010.0
    heard(0, wrong(found_s=moment))
    assert [event.boot_s for event in heard.events()] == [None]


def test_an_injected_fault_is_said_to_be_one() -> None:
    heard = Heard(Gpu(0), Gpu(1))
    heard(0, {"rigproof_load": 1, "load": "burn", "parameters": {"inject": "stuck"}})
    heard(1, {"rigproof_load": 1, "load": "burn", "parameters": {"seconds": 1}})
    heard(0, wrong())
    heard(1, wrong())
    assert ["injected on purpose: stuck" in meaning_of(event) for event in heard.events()] == [
        True,
        False,
    ]


def test_a_load_that_raves_fills_no_journal() -> None:
    count = load_events.MAX_EVENTS + 2
    heard = Heard(*map(Gpu, range(count)))
    ways = itertools.permutations(range(count), 2)
    for (one, other), dtype in itertools.product(ways, ("bf16", "f64")):
        way = f"gpu{one}->gpu{other}"
        heard(0, wrong(component=way, dtype=dtype, shape="x" * 10000))
    assert len(heard.events()) == count * load_events.MAX_EVENTS
    assert all(len(event.text) <= load_events.QUOTED for event in heard.events())


OTHERS = [
    "",
    "{",
    "null",
    "[1]",
    '"lap 1"',
    "{" * 100000,
    "stress-ng: info: [1] passed",
    '{"miscompare": []}',
    '{"miscompare": "gpu0"}',
    '{"note": "lap 1 of 4: bf16 900"}',
    '{"lap": 1, "laps": 4, "done": 5, "formats": []}',
    '{"lap": 1, "laps": 4, "done": 5}',
    '{"note": 5}',
    '{"note": "warm"}',
    '{"reading": "burn_f64", "unit": "TFLOP/s", "component": "gpu0", "value": 1}',
    '{"progress": 5, "of": 10}',
    '{"end": true, "readings": 1}',
    '{"rigproof_load": 1, "load": "burn", "parameters": 3}',
]


@pytest.mark.parametrize("line", OTHERS, ids=range(len(OTHERS)))
def test_everything_else_is_nothing(line: str) -> None:
    heard = Heard(Gpu(0))
    heard(0, line)
    assert heard.written == []


def test_programs_beyond_the_gpus_are_not_listened_to() -> None:
    heard = Heard(Gpu(0))
    heard(1, wrong())
    heard(2, lap(1))
    assert heard.written == []


@given(st.text(max_size=50) | st.binary(max_size=50).map(lambda text: "{" + text.decode("latin-1")))
def test_nothing_raises(line: str) -> None:
    Heard(Gpu(0))(0, line)


# --- laps ---


def test_laps_are_noted_once_a_minute_of_all_gpus_together() -> None:
    heard = Heard(Gpu(0), Gpu(1))
    heard(0, lap(1, 4))
    for second in range(1, 180):
        heard.now = 1000.0 + second
        heard(second % 2, lap(second))
    of_lap = "lap {0} of {1}: {0} s of burn done; bf16 at 900 TFLOP/s {2} right 0 wrong"
    assert heard.notes() == [
        f"gpu0: {of_lap.format(1, 4, 8)}",
        f"gpu0: {of_lap.format(60, 400, 480)}; gpu1: {of_lap.format(59, 400, 472)}",
        f"gpu0: {of_lap.format(120, 400, 960)}; gpu1: {of_lap.format(119, 400, 952)}",
    ]


def test_a_week_of_laps_leaves_some_hundred_notes_and_the_last_is_not_old() -> None:
    gpus = 8 if ALL else 2
    heard = Heard(*(Gpu(index) for index in range(gpus)))
    stamps = []
    for minute in range(7 * 24 * 60):
        heard.now = 1000.0 + 60 * minute
        line = json.dumps(lap(minute + 1, 10**6))
        for index in range(gpus):
            before = len(heard.written)
            heard(index, line)
            stamps += [heard.now] if len(heard.written) > before else []
    assert 100 < len(stamps) < 400
    assert all(
        after - before <= 60.0 + (after - 1000.0) / 59
        for before, after in itertools.pairwise(stamps)
    )


def test_the_clock_is_that_of_the_journal() -> None:
    written: list[Body] = []
    began = clock.boot_s()
    listener = load_events.listener([Gpu(0)], written.append)
    listener(0, json.dumps(wrong(found_s=clock.boot_s())))
    (event,) = written
    assert isinstance(event, Event)
    assert event.boot_s is not None
    assert began <= event.boot_s <= clock.boot_s()


# --- steps of a power load ---


@pytest.mark.parametrize(
    ("kind", "hertz", "said"),
    [
        ("square", 2.0, "2 Hz on 2 GPUs (gpu2, gpu5)"),
        ("cold", None, "a cold step from idle to full load on 2 GPUs (gpu2, gpu5)"),
        ("anti_phase", 2.0, "2 Hz in anti-phase on 2 GPUs (gpu2, gpu5)"),
        ("ramp", None, "a ramp from idle to full load on 2 GPUs (gpu2, gpu5)"),
    ],
)
def test_each_step_is_a_note_before_it_begins_and_one_after_its_end(
    kind: str, hertz: float | None, said: str
) -> None:
    heard = Heard(GPUS, shown={GPUS: [Gpu(2), Gpu(5)]})
    one = step(["gpu0", "gpu1"], kind=kind, hertz=hertz)
    heard(0, begins(one, 1001.0))
    heard(0, ended(one, 3))
    assert heard.notes() == [
        f"power step begun: {said}",
        f"power step ended: {said}: 36 edges commanded, 70 results right, 3 wrong",
    ]


def test_a_record_that_reached_the_disk_after_the_begin_of_its_step() -> None:
    heard = Heard(Gpu(0))
    heard.now = 1001.0
    heard(0, begins(step(["gpu0"]), 1001.0))
    assert len(heard.notes()) == 1
    heard.now = 1002.5
    heard(0, begins(step(["gpu0"]), 1002.0))
    *_, late = heard.written
    assert isinstance(late, Note)
    assert isinstance(late.text, Message)
    assert (late.progress, late.text.code) == (False, "power_step_late")


def test_a_load_of_steps_without_end_does_not_fill_the_journal() -> None:
    heard = Heard(Gpu(0))
    for _ in range(1000):
        heard(0, begins(step(["gpu0"]), 1001.0))
        heard(0, ended(step(["gpu0"])))
    assert len(heard.notes()) == 2 * load_events.MAX_STEPS
