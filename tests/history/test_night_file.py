"""A night's file: what it holds comes back, and what is not as it was written is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from nights import COPY, MACHINE, night
from refusal import refused
from thoroughness import examples

from acceptance.core import regular_file
from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import ITSELF, Gpu, parse
from acceptance.history import night_file
from acceptance.history.night import Night, NightMeasurement, ReportedChanges
from acceptance.history.night_file import DamagedNight, UnreadableNight

WHOLE = night(
    1,
    measured={
        COPY: NightMeasurement(50.5, 49.25, outside=True, failed=True),
        COPY._replace(component=Gpu(1), serial=None): NightMeasurement(None, unsteady=True),
    },
    apart="in-use",
    folder="run-00001",
    reported=ReportedChanges("birth", (KnownChange(ITSELF, "kernel", "6.13", "2026-01-01"),)),
)
CONTENT = night_file.encode(WHOLE)
OLDER = Path(__file__).with_name("night-1.json")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
components = texts.filter(lambda text: ":" not in text and "->" not in text).map(parse)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(25))
@given(
    st.builds(
        night,
        st.integers(0, 10**5),
        seconds=st.none() | numbers,
        verdict=st.sampled_from(["PASS", "FAIL", "UNJUDGED"]),
        virtual=st.booleans(),
        postponed=st.booleans(),
        folder=st.none() | texts,
        pruned=st.booleans(),
        measured=st.dictionaries(
            st.builds(COPY._replace, component=components, serial=st.none() | texts),
            st.builds(
                NightMeasurement,
                st.none() | numbers,
                st.none() | numbers,
                st.booleans(),
                st.booleans(),
                st.booleans(),
            ),
            max_size=4,
        ),
    )
)
def test_a_night_comes_back_from_its_file(made: Night) -> None:
    assert night_file.decode(night_file.encode(made)) == made


def changed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    return change


@each(
    "harm",
    [
        changed(b"50.5", b"50.6"),
        changed(b'"PASS"', b'"FAIL"'),
        changed(b'"copy_h2d"', b'"copy_d2h"'),
        changed(b'"seconds":90.0,', b""),
        changed(b'"pruned":false', b'"pruned":false,"more":1'),
        changed(b'"night":{', b'"night":{ '),
        changed(b'"sha256":"', b'"sha256":"0'),
        lambda content: content[: len(content) // 2],
        lambda content: content + b"{}",
        lambda content: content[:120] + b"\xff" + content[121:],
        lambda _: b"",
        lambda _: b"{}",
        lambda _: b"[" * 100_000,
    ],
)
def test_what_is_not_as_it_was_written_is_refused(harm: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UnreadableNight):
        night_file.decode(harm(CONTENT))


def test_no_flipped_bit_is_taken_for_a_night_that_was_not_written() -> None:
    for at in range(0, len(CONTENT), 3):
        for bit in range(8):
            flipped = bytearray(CONTENT)
            flipped[at] ^= 1 << bit
            try:
                found = night_file.decode(bytes(flipped))
            except UnreadableNight:
                continue
            assert found == WHOLE, "white space at the end"


@each(
    "harm",
    [
        lambda made: replace(made, figures=made.figures[:1]),
        lambda made: replace(made, verdict="MAYBE"),
        lambda made: replace(made, figures=(("50.5",), (None,))),
    ],
)
def test_a_sealed_file_that_is_no_night_is_refused(harm: Callable[[Night], Night]) -> None:
    with pytest.raises(DamagedNight):
        night_file.decode(night_file.encode(harm(WHOLE)))


@each(
    "content, code",
    [
        (changed(b'"rigproof_night":2', b'"rigproof_night":3')(CONTENT), "night_newer"),
        (OLDER.read_bytes(), "night_older"),
    ],
    told=["newer", "older"],
)
def test_another_format_is_no_damage_and_names_its_cure(content: bytes, code: str) -> None:
    assert not issubclass(UnreadableNight, DamagedNight)
    assert refused(UnreadableNight, night_file.decode, content).code == code


def test_the_file_of_another_night_or_machine_or_none_is_refused(tmp_path: Path) -> None:
    """Without waiting for what never comes."""
    one, two, pipe, large = (tmp_path / f"run-0000{number}.json" for number in range(1, 5))
    for path in (one, two):
        path.write_bytes(CONTENT)
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(regular_file.SMALL_RECORD + 1)
    assert night_file.read(one, MACHINE) == WHOLE
    for path, machine, code in (
        (two, MACHINE, "other_night"),
        (one, "machine-2", "other_night"),
        (pipe, MACHINE, "night_unread"),
        (large, MACHINE, "night_unread"),
    ):
        assert refused(UnreadableNight, night_file.read, path, machine).code == code


def test_an_odd_run_id_is_no_path() -> None:
    assert night_file.name("2026-01-01T02-00-00Z-aaaa") == "2026-01-01T02-00-00Z-aaaa.json"
    for odd in ("../evil", ".hidden", "a/b", ""):
        assert night_file.name(odd).startswith("id-")
