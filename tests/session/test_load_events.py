"""What loads say while they run: wrong results as events, laps as notes, and
everything else as nothing.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrong_results import COPIED, INPUTS, TRANSFERRED, VECTOR, one_bit, vram

from acceptance.core.record import Body, Event, Note
from acceptance.journal import clock
from acceptance.loads.miscompare import read, read_or_keep
from acceptance.session import load_events

RING = {**one_bit(3), "found_s": -5.0}


class Heard:
    """A listener of the loads of these GPUs, a clock that is set, and what it wrote."""

    def __init__(self, *names: str) -> None:
        self.now = 1000.0
        self.written: list[Body] = []
        self._listener = load_events.listener(names, self.written.append, lambda: self.now)

    def __call__(self, index: int, record: object) -> None:
        self._listener(index, record if isinstance(record, str) else json.dumps(record))

    def events(self) -> list[Event]:
        assert all(isinstance(body, Event) for body in self.written)
        return [body for body in self.written if isinstance(body, Event)]

    def notes(self) -> list[str]:
        assert all(
            isinstance(body, Note) and body.progress and not body.trouble for body in self.written
        )
        return [body.text for body in self.written if isinstance(body, Note)]


def wrong(**more: Any) -> dict[str, Any]:
    return {"miscompare": {**RING, **more}}


def test_a_wrong_result_is_an_event_at_once() -> None:
    heard = Heard("gpu3", "gpu5")
    heard.now = 1010.0
    heard(1, wrong(found_s=1009.5))
    (event,) = heard.events()
    assert (event.kind, event.severity, event.source, event.hardware) == (
        "miscompare",
        "fatal",
        "load",
        True,
    )
    assert (event.component, event.code, event.boot_s) == ("gpu5", "bf16", 1009.5)
    assert (
        "wrong result under load: check ring, shape 8192x8192x16384, iteration 17, lap 0, "
        "elements 1" in event.meaning
    )
    assert event.text == json.dumps({**RING, "found_s": 1009.5})[: load_events.QUOTED]
    assert event.action == "Run it again, cool and alone; if it comes back, replace the card."


def test_it_is_told_once_for_each_gpu_and_format() -> None:
    heard = Heard("gpu0", "gpu1")
    for _ in range(1000):
        heard(0, wrong())
        heard(1, wrong())
        heard(1, wrong(dtype="f64"))
    assert [(event.component, event.code) for event in heard.events()] == [
        ("gpu0", "bf16"),
        ("gpu1", "bf16"),
        ("gpu1", "f64"),
    ]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({**INPUTS, "dtype": "f8"}, "f8"),
        ({**COPIED, "check": "copy_h2d"}, "copy"),
        ({**COPIED, "check": "copy_d2h"}, "copy"),
        (COPIED, "peer"),
        (TRANSFERRED, "copy"),
        (VECTOR, "elementwise"),
        (vram([(64, 0, 4)]), "vram"),
        ({"check": "new one"}, "result"),
        ({"dtype": 3, "check": None}, "result"),
        ({**INPUTS, "dtype": "f128"}, "result"),
    ],
)
def test_what_it_is_of_stands_in_the_name_of_its_count(found: dict[str, Any], code: str) -> None:
    assert load_events.code_of(read_or_keep(found)) == code
    heard = Heard("gpu0")
    heard(0, {"miscompare": found})
    assert [event.code for event in heard.events()] == [code]
    assert all(event.meaning and event.action for event in heard.events())


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"words": 9, "unwritten": 9}, "data never arrived (copy_p2p) while gpu0 was under load"),
        (
            {"words": 9, "unwritten": 8},
            "data was changed on its way (copy_p2p) while gpu0 was under load",
        ),
        ({"words": 9}, "data was changed on its way (copy_p2p) while gpu0 was under load"),
    ],
)
def test_a_copy_that_never_arrived_is_told_apart(found: dict[str, Any], said: str) -> None:
    older = {key: value for key, value in COPIED.items() if key != "unwritten"}
    assert load_events.event_of(read({**older, **found}), "gpu0").meaning == said


@pytest.mark.parametrize(
    ("index", "told", "component"),
    [
        (0, "gpu0", "gpu2"),
        (1, "gpu0", "gpu4"),
        (1, "gpu0->gpu1", "gpu4->gpu2"),
        (1, "gpu2->gpu0", "gpu7->gpu4"),
        (1, "gpu9", "gpu4"),
        (1, None, "gpu4"),
        (1, ["gpu0"], "gpu4"),
    ],
)
def test_components_are_named_as_in_the_run(index: int, told: object, component: str) -> None:
    heard = Heard("gpu2", "gpu4", "gpu7")
    heard(index, wrong(component=told))
    assert [event.component for event in heard.events()] == [component]


@pytest.mark.parametrize("moment", [999.0, 1011.1, -5, 10**400, True, "1005", None])
def test_a_moment_that_cannot_be_right_is_not_taken(moment: object) -> None:
    heard = Heard("gpu0")
    heard.now = 1010.0
    heard(0, wrong(found_s=moment))
    assert [event.boot_s for event in heard.events()] == [None]


def test_an_injected_fault_is_said_to_be_one() -> None:
    heard = Heard("gpu0", "gpu1")
    heard(0, {"rigproof_load": 1, "load": "burn", "parameters": {"inject": "stuck"}})
    heard(1, {"rigproof_load": 1, "load": "burn", "parameters": {"seconds": 1}})
    heard(0, wrong())
    heard(1, wrong())
    assert ["injected on purpose: stuck" in event.meaning for event in heard.events()] == [
        True,
        False,
    ]


def test_a_load_that_raves_fills_no_journal() -> None:
    heard = Heard("gpu0", "gpu1")
    for number in range(5000):
        heard(number % 2, wrong(component="->".join(["gpu0"] * (number + 1)), shape="x" * 10000))
    assert len(heard.events()) == 2 * load_events.MAX_EVENTS
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
    '{"note": "about laps"}',
    '{"note": 5}',
    '{"note": "warm"}',
    '{"reading": "burn_f64", "unit": "TFLOP/s", "component": "gpu0", "value": 1}',
    '{"progress": 5, "of": 10}',
    '{"end": true, "readings": 1}',
    '{"rigproof_load": 1, "load": "burn", "parameters": 3}',
]


@pytest.mark.parametrize("line", OTHERS, ids=range(len(OTHERS)))
def test_everything_else_is_nothing(line: str) -> None:
    heard = Heard("gpu0")
    heard(0, line)
    assert heard.written == []


def test_programs_beyond_the_gpus_are_not_listened_to() -> None:
    heard = Heard("gpu0")
    heard(1, wrong())
    heard(2, {"note": "lap 1: fine"})
    assert heard.written == []
    Heard()(0, wrong())


@given(st.text(max_size=50) | st.binary(max_size=50).map(lambda text: "{" + text.decode("latin-1")))
def test_nothing_raises(line: str) -> None:
    Heard("gpu0")(0, line)


# --- laps ---


def test_laps_are_noted_once_a_minute_of_all_gpus_together() -> None:
    heard = Heard("gpu0", "gpu1")
    heard(0, {"note": "lap 1 of 4: bf16 900"})
    for second in range(1, 180):
        heard.now = 1000.0 + second
        heard(second % 2, {"note": f"lap {second} of 400: bf16 900"})
    assert heard.notes() == [
        "gpu0: lap 1 of 4: bf16 900",
        "gpu0: lap 60 of 400: bf16 900; gpu1: lap 59 of 400: bf16 900",
        "gpu0: lap 120 of 400: bf16 900; gpu1: lap 119 of 400: bf16 900",
    ]


def test_a_week_of_laps_leaves_some_hundred_notes_and_the_last_is_not_old() -> None:
    heard = Heard(*(f"gpu{index}" for index in range(8)))
    stamps = []
    for minute in range(7 * 24 * 60):
        heard.now = 1000.0 + 60 * minute
        line = json.dumps({"note": f"lap {minute}: {'x' * (load_events.QUOTED + 20)}"})
        for index in range(8):
            before = len(heard.written)
            heard(index, line)
            stamps += [heard.now] if len(heard.written) > before else []
    assert 100 < len(stamps) < 400
    assert all(
        after - before <= 60.0 + (after - 1000.0) / 59
        for before, after in itertools.pairwise(stamps)
    )
    assert max(len(text) for text in heard.notes()) < 8 * (load_events.QUOTED + 10)


def test_the_clock_is_that_of_the_journal() -> None:
    written: list[Body] = []
    began = clock.boot_s()
    listener = load_events.listener(["gpu0"], written.append)
    listener(0, json.dumps(wrong(found_s=clock.boot_s())))
    (event,) = written
    assert isinstance(event, Event)
    assert event.boot_s is not None
    assert began <= event.boot_s <= clock.boot_s()
