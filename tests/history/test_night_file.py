"""A night's file: what it holds comes back, and what is not as it was written is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from nights import COPY, MACHINE, night
from thoroughness import examples

from acceptance.core import regular_file
from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import ITSELF, Gpu, parse
from acceptance.history import location, night_file
from acceptance.history.night import Night, NightMeasurement, ReportedChanges
from acceptance.history.night_file import NightRecord, UnreadableNight
from acceptance.history.store import Store

WHOLE = NightRecord(
    night(
        1,
        figures=(
            NightMeasurement(COPY, 50.5, 49.25, outside=True, failed=True),
            NightMeasurement(COPY._replace(component=Gpu(1), serial=None), None, unsteady=True),
        ),
        apart="in-use",
        told=ReportedChanges("birth", (KnownChange(ITSELF, "kernel", "6.13", "2026-01-01"),)),
    ),
    "run-00000",
    pruned=False,
)
FORMAT_1 = Path(__file__).with_name("night-1.json")


def test_a_file_of_format_1_is_read_and_written_like_that() -> None:
    content = FORMAT_1.read_bytes()
    assert night_file.decode(content) == WHOLE
    assert night_file.encode(WHOLE) == content


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
        identities=st.dictionaries(components, texts, max_size=3),
        figures=st.lists(
            st.builds(
                NightMeasurement,
                st.builds(
                    COPY._replace, component=components, serial=st.none() | texts.filter(bool)
                ),
                st.none() | numbers,
                st.none() | numbers,
                st.booleans(),
                st.booleans(),
                st.booleans(),
            ),
            max_size=4,
            unique_by=lambda one: one.line,
        ).map(tuple),
    )
)
def test_a_night_of_the_store_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, made: Night
) -> None:
    out = tmp_path_factory.mktemp("night")
    with Store.open(location.database(out, MACHINE)) as store:
        store.add(made)
        night_file.write(store, out, MACHINE, [made.run_id])
    (file,) = night_file.files(out, MACHINE)
    record = night_file.read(file, MACHINE)
    # The history keeps neither the order of parts nor that of measurements.
    assert set(record.night.figures) == set(made.figures)
    assert replace(record.night, figures=()) == replace(made, figures=())
    assert (record.after, record.pruned) == (None, False)


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
        changed(b'"PASS"', b'"MAYBE"'),
        changed(b'"again":49.25,', b""),
        changed(b'"pruned":false', b'"pruned":false,"more":1'),
        changed(b'"value":50.5', b'"value":"50.5"'),
        changed(b'"value":50.5', b'"value":NaN'),
        changed(b'"outside":true', b'"outside":1'),
        changed(b":", b": "),
        changed(b"\n", b""),
        lambda content: content[: len(content) // 2],
        lambda content: content + b"{}",
        lambda content: content[:60] + b"\xff" + content[61:],
        lambda _: b"",
        lambda _: b"[" * 100_000,
    ],
)
def test_what_is_not_as_it_was_written_is_refused(harm: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UnreadableNight, match=r"put a copy of it back, or move it away$"):
        night_file.decode(harm(FORMAT_1.read_bytes()))


def test_every_flipped_bit_is_seen() -> None:
    content = FORMAT_1.read_bytes()
    for at in range(0, len(content), 7):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            with pytest.raises(UnreadableNight):
                night_file.decode(bytes(flipped))


def test_a_newer_format_names_its_cure() -> None:
    newer = FORMAT_1.read_bytes().replace(b'"rigproof_night":1', b'"rigproof_night":2')
    with pytest.raises(UnreadableNight, match=r"format 2, .* reads \(1\): install a newer"):
        night_file.decode(newer)


def assert_unreadable(path: Path, said: str, machine: str = MACHINE) -> None:
    with pytest.raises(UnreadableNight, match=said):
        night_file.read(path, machine)


def test_the_file_of_another_night_or_machine_is_refused(tmp_path: Path) -> None:
    content = FORMAT_1.read_bytes()
    (tmp_path / "run-00001.json").write_bytes(content)
    (tmp_path / "run-00002.json").write_bytes(content)
    assert night_file.read(tmp_path / "run-00001.json", MACHINE) == WHOLE
    for name, machine in (("run-00002.json", MACHINE), ("run-00001.json", "machine-2")):
        assert_unreadable(tmp_path / name, "holds night run-00001 of machine machine-1", machine)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run-1.json")
    assert_unreadable(tmp_path / "run-1.json", r"it is a named pipe, not a file\): put a copy")
    with (tmp_path / "run-2.json").open("wb") as file:
        file.truncate(regular_file.SMALL_RECORD + 1)
    assert_unreadable(tmp_path / "run-2.json", "at most 16 MiB are read")


def test_an_odd_run_id_is_no_path() -> None:
    assert night_file.name("2026-01-01T02-00-00Z-aaaa") == "2026-01-01T02-00-00Z-aaaa.json"
    for odd in ("../evil", ".hidden", "a/b", ""):
        assert night_file.name(odd).startswith("id-")
