"""The store: whole nights, once each, in the order in which they came, whatever
happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from nights import COPY, ERA, night, seen, written
from thoroughness import examples

from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import CPU, ITSELF, Gpu, Part
from acceptance.history import queries
from acceptance.history import store as history_store
from acceptance.history.era import Era
from acceptance.history.errors import DamagedHistory, HistoryError
from acceptance.history.night import Night, NightMeasurement, ReportedChanges, SeriesKey
from acceptance.history.store import Store


def place(folder: Path) -> Path:
    return folder / "history" / "machine-1" / "history.sqlite3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return place(tmp_path)


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


def add(store: Store, *nights: Night) -> None:
    for one in nights:
        store.add(one)


def values(store: Store, line: SeriesKey = COPY) -> list[float]:
    return [look.value for look in seen(store).get(line.part, ())]


def test_what_was_added_is_there_after_it_is_opened_again(path: Path) -> None:
    with Store.open(path) as store:
        assert store.add(night(1, 50.5, verdict="FAIL"), "run-00001")
    with Store.open(path) as store:
        (kept,) = store.nights()
        assert (kept.run_id, kept.folder, kept.verdict, kept.apart) == (
            "run-00001",
            "run-00001",
            "FAIL",
            None,
        )
        assert (kept.day, kept.seconds, kept.postponed, kept.pruned, kept.era) == (
            20_001.0,
            90.0,
            False,
            False,
            ERA.key,
        )
        assert store.eras() == {ERA.key: ERA}
        assert values(store) == [50.5]


def test_a_run_is_recorded_once(path: Path) -> None:
    with Store.open(path) as store, Store.open(path) as other:
        assert store.add(night(1, 50.0))
        assert not other.add(night(1, 99.0))
        assert values(store) == values(other) == [50.0]
        assert len(store.nights()) == 1


def test_the_order_is_that_of_recording_whatever_the_clock_says(store: Store) -> None:
    for number, day in ((1, 20_000.0), (2, 0.0), (3, 19_000.5)):
        store.add(night(number, float(number), day=day))
    assert [kept.run_id for kept in store.nights()] == ["run-00001", "run-00002", "run-00003"]
    assert values(store) == [1.0, 2.0, 3.0]
    assert [kept.run_id for kept in store.nights(last=2)] == ["run-00002", "run-00003"]


def test_a_number_is_never_given_twice(store: Store) -> None:
    add(store, night(1), night(2))
    store.connection.execute("DELETE FROM night WHERE run_id = 'run-00002'")
    store.add(night(3))
    assert [kept.seq for kept in store.nights()] == [1, 3]


def test_a_link_that_is_gone(store: Store) -> None:
    store.add(night(1), "run-00001")
    store.link("run-00001", None)
    assert [kept.folder for kept in store.nights()] == [None]


@each("apart", ["not-whole", "partial", "interrupted", "in-use", "own-image", "salvaged"])
def test_a_night_apart_is_kept_and_is_no_measure(tmp_path: Path, apart: str) -> None:
    path = place(tmp_path)
    with Store.open(path) as store:
        add(store, night(1, 50.0), night(2, 10.0, apart=apart))
        assert values(store) == [50.0]
        (course,) = queries.trend_series(store)
        assert [(point.value, bool(point.held)) for point in course.points] == [
            (50.0, True),
            (10.0, False),
        ]


def test_what_broke_its_limit_and_what_was_outside_is_marked(store: Store) -> None:
    add(
        store,
        night(1, 50.0),
        night(2, figures=(NightMeasurement(COPY, 10.0, failed=True),), verdict="FAIL"),
        night(3, figures=(NightMeasurement(COPY, 45.0, 44.0, outside=True),)),
        night(
            4,
            figures=(
                NightMeasurement(COPY, 45.0, 50.0, unsteady=True),
                NightMeasurement(COPY._replace(component=Gpu(1), serial="GPU-b"), 3.0),
            ),
        ),
        night(5, figures=(NightMeasurement(COPY, None),)),
    )
    found = seen(store)[COPY.part]
    assert [(one.value, one.again, one.outside, one.unsteady, one.failed) for one in found] == [
        (50.0, None, False, False, False),
        (10.0, None, False, False, True),
        (45.0, 44.0, True, False, False),
        (45.0, 50.0, False, True, False),
    ]
    first, second = queries.trend_series(store)
    assert [point.value for point in first.points] == [50.0, 10.0, 45.0, 45.0]
    assert (second.component, second.points[0].value) == (Gpu(1), 3.0)


def test_another_era_and_another_part_are_told_apart(store: Store) -> None:
    newer = Era((("driver", "590.1"), ("profile", "nightly"), ("station", "host")))
    other = COPY._replace(serial="GPU-b")
    for number, (era, line) in enumerate([(ERA, COPY), (newer, COPY), (ERA, COPY), (ERA, other)]):
        store.add(night(number, era=era, figures=(NightMeasurement(line, float(number)),)))
    found = seen(store)
    assert [look.value for look in found[COPY.part]] == [0.0, 2.0]
    assert [look.value for look in found[other.part]] == [3.0]
    assert list(seen(store, era=newer.key)) == [COPY.part]
    assert seen(store, era="another") == {}


def test_the_first_nights_and_the_last_ones(store: Store) -> None:
    for number in range(20):
        store.add(night(number, float(number)))

    def told(after: int, first: int, last: int) -> list[float]:
        found = queries.night_values(store, ERA.key, after=after, first=first, last=last)
        return [look.value for look in found.get(COPY.part, ())]

    assert told(0, 2, 3) == [0.0, 1.0, 17.0, 18.0, 19.0]
    assert told(5, 2, 3) == [5.0, 6.0, 17.0, 18.0, 19.0]
    assert told(18, 5, 3) == [
        18.0,
        19.0,
    ]  # nights since the machine was accepted, and no older ones
    assert told(0, 15, 15) == told(0, 20, 1) == [float(number) for number in range(20)]
    assert (
        told(0, 19, 1)
        == told(0, 21, 1)
        == told(0, 1, 30)
        == [float(number) for number in range(20)]
    )
    assert told(20, 5, 2) == []


def test_nights_of_another_era_between_are_none_of_this_one(store: Store) -> None:
    newer = Era((("driver", "590.1"),))
    for number in range(12):
        store.add(night(number, float(number), era=newer if number % 3 else ERA))
    found = queries.night_values(store, ERA.key, after=1, first=1, last=2)
    assert [look.value for look in found[COPY.part]] == [3.0, 6.0, 9.0]


def test_a_part_that_moved_has_its_nights_in_the_order_of_recording(store: Store) -> None:
    moved = COPY._replace(component=Gpu(1))
    for number, (line, day) in enumerate(
        [(COPY, 20_003.0), (moved, 5.0), (COPY, 20_001.0), (moved, 90_000.0)]
    ):
        store.add(night(number, day=day, figures=(NightMeasurement(line, float(number)),)))
    (part,) = seen(store)
    assert part.name == "GPU-a"
    assert [look.value for look in seen(store)[part]] == [0.0, 1.0, 2.0, 3.0]


def test_the_number_of_a_run(store: Store) -> None:
    for number, day in ((1, 20_001.0), (2, 90_000.0), (3, 20_003.0), (4, 20_004.0)):
        store.add(night(number, float(number), day=day))
    at = known(queries.number(store, "run-00002"))
    assert [look.value for look in seen(store, at)[COPY.part]] == [3.0, 4.0]
    assert queries.number(store, "run-00009") is None
    assert [queries.last_until(store, day) for day in (20_000.0, 20_001.0, 20_003.5, 99_000.0)] == [
        0,
        1,
        3,
        4,
    ]


@each("wrong", range(1, 10))
@each("clock", [0.0, 90_000.0])
def test_one_wrong_clock_moves_no_night_far_across_a_day(
    tmp_path: Path, wrong: int, clock: float
) -> None:
    path = place(tmp_path)
    with Store.open(path) as store:
        for number in range(1, 10):
            store.add(night(number, day=clock if number == wrong else 20_000.0 + number))
        assert queries.last_until(store, 19_999.0) == (wrong if wrong <= 2 and clock == 0.0 else 0)
        found = queries.last_until(store, 20_004.5)
    last = {(4, 90_000.0): 3, (5, 0.0): 5, (6, 0.0): 6}  # at the parting itself nothing tells
    assert found == last.get((wrong, clock), 4)


@each(
    "facts",
    [
        "'{'",
        "'{}'",
        "'[[1, 2]]'",
        "'[[\"driver\"]]'",
        "'null'",
        "x'00ff'",
        "cast(x'ff41' as text)",
        "7",
    ],
)
def test_an_era_without_facts_is_damage(tmp_path: Path, facts: str) -> None:
    path = place(tmp_path)
    with Store.open(path) as store:
        store.add(night(1))
        store.check()
        store.connection.execute(f"UPDATE era SET facts = {facts}")
        for ask in (store.eras, store.check, lambda: queries.eras(store)):
            with pytest.raises(DamagedHistory, match=r"is damaged \(.*rigproof history --rebuild"):
                ask()


def test_courses_by_name_pattern_and_number_of_nights(store: Store) -> None:
    lines = [
        SeriesKey("c", name, where, "count", None)
        for name in ("copy_h2d", "copy_d2h", "odd[*]")
        for where in (Gpu(0), "cpu")
    ]
    for number in range(4):
        store.add(
            night(number, figures=tuple(NightMeasurement(line, float(number)) for line in lines))
        )
    assert len(queries.trend_series(store)) == 6
    assert [course.measurement for course in queries.trend_series(store, "copy_*", "gpu0")] == [
        "copy_h2d",
        "copy_d2h",
    ]
    assert [course.component for course in queries.trend_series(store, "odd[*]")] == [
        Gpu(0),
        CPU,
    ]
    (course,) = queries.trend_series(store, "copy_h2d", "cpu", last=2)
    assert [(point.run_id, point.value) for point in course.points] == [
        ("run-00002", 2.0),
        ("run-00003", 3.0),
    ]
    assert course.serial is None


def test_what_is_read_together_is_of_one_moment(path: Path) -> None:
    with Store.open(path) as store, Store.open(path) as other:
        store.add(night(1))
        with store.snapshot():
            assert len(store.nights()) == 1
            assert other.add(night(2))
            assert [len(course.points) for course in queries.trend_series(store)] == [1]
        assert [len(course.points) for course in queries.trend_series(store)] == [2]
        assert store.add(night(3))


def test_nights_skipped_in_a_row(store: Store) -> None:
    assert queries.skipped_in_a_row(store) == 0
    for number, postponed in enumerate([True, True, False, True, True]):
        store.add(night(number, postponed=postponed, figures=()))
    assert queries.skipped_in_a_row(store) == 2
    add(store, night(7, apart="partial"), night(8, apart="interrupted"))
    assert queries.skipped_in_a_row(store) == 2, "no night in place of those"
    store.add(night(9))
    assert queries.skipped_in_a_row(store) == 0


figures = st.builds(
    NightMeasurement,
    st.builds(
        SeriesKey,
        st.sampled_from(["c.one", "c.two[x]"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([Gpu(0), Part("disk", "☃")]),
        st.sampled_from(["GB/s", "count"]),
        st.sampled_from([None, "GPU-a"]),
    ),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=examples(25))
@given(st.lists(st.lists(figures, max_size=6, unique_by=lambda one: one.line), max_size=6))
def test_every_figure_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, told: list[list[NightMeasurement]]
) -> None:
    path = tmp_path_factory.mktemp("store") / "history.sqlite3"
    with Store.open(path) as store:
        for number, row in enumerate(told):
            store.add(night(number, figures=tuple(row)))
        found = {
            (
                course.check,
                course.measurement,
                course.component,
                course.unit,
                course.serial,
                point.run_id,
            ): point
            for course in queries.trend_series(store)
            for point in course.points
        }
    due = {
        (*one.line, f"run-{number:05}"): one
        for number, row in enumerate(told)
        for one in row
        if one.value is not None
    }
    assert found.keys() == due.keys()
    for key, one in due.items():
        point = found[key]
        assert (point.value, point.again, bool(point.outside), bool(point.unsteady)) == (
            one.value,
            one.again,
            one.outside,
            one.unsteady,
        )
        assert bool(point.held) is not one.failed


# --- other files than those of this version ---


def test_a_file_of_version_1_is_read(path: Path) -> None:
    written(path, Path(__file__).with_name("version-1.sql").read_text())
    with Store.open(path) as store:
        assert [(kept.run_id, kept.folder, kept.verdict) for kept in store.nights()] == [
            ("2026-01-01T02-00-00Z-aaaa", "2026-01-01T02-00-00Z-aaaa", "PASS"),
            ("2026-01-02T02-00-00Z-bbbb", None, "FAIL"),
        ]
        (course,) = queries.trend_series(store)
        assert [(point.value, point.again, bool(point.outside)) for point in course.points] == [
            (55.25, None, False),
            (50.5, 50.25, True),
        ]
        # It told of changes, and did not write down which.
        assert queries.known_changes(store, "2026-01-01T02-00-00Z-aaaa") == ()
        assert store.add(night(7))


STEP = ("CREATE TABLE later (x INTEGER)", "INSERT INTO later SELECT seq FROM night")


def test_a_step_to_the_next_version_takes_what_there_is_along(path: Path) -> None:
    with Store.open(path) as store:
        store.add(night(1))
    with Store.open(path, (*history_store.STEPS, STEP)) as store:
        assert store.connection.execute("SELECT x FROM later").fetchall() == [(1,)]
        assert values(store) == [50.0]
    with pytest.raises(
        HistoryError,
        match=r"is of version 3, newer than this rigproof knows \(2\): install that newer",
    ):
        Store.open(path)
    with pytest.raises(HistoryError, match="newer"):
        Store.view(path)


def test_a_step_that_fails_changes_nothing(path: Path) -> None:
    with Store.open(path) as store:
        store.add(night(1))
    with pytest.raises(HistoryError, match="cannot be used"):
        Store.open(path, (*history_store.STEPS, (*STEP, "NO SUCH THING")))
    with Store.open(path) as store:
        assert values(store) == [50.0]
        assert (
            store.connection.execute(
                "SELECT name FROM sqlite_master WHERE name = 'later'"
            ).fetchall()
            == []
        )


def test_an_older_file_is_not_read_without_being_brought_up(path: Path) -> None:
    Store.open(path).close()
    with pytest.raises(HistoryError, match="older than this rigproof reads"):
        Store.view(path, (*history_store.STEPS, STEP))


def test_an_empty_file_is_a_beginning(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    with Store.open(path) as store:
        assert store.nights() == ()


@pytest.mark.parametrize("marked", [False, True])
def test_another_programs_database_is_not_ours(path: Path, marked: bool) -> None:
    written(path, "CREATE TABLE song (name TEXT)", *["PRAGMA application_id = 77"] * marked)
    with pytest.raises(DamagedHistory, match="is another program's database"):
        Store.open(path)


def test_there_is_none_to_look_at(path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history yet"):
        Store.view(path)


def test_who_looks_writes_nothing(path: Path) -> None:
    with Store.open(path) as store:
        store.add(night(1))
    with Store.view(path) as store:
        assert values(store) == [50.0]
        with pytest.raises(HistoryError, match="cannot be written"):
            store.add(night(2))


def test_names_are_kept_once(store: Store) -> None:
    for number in range(3):
        store.add(night(number))
    assert [
        store.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("line", "era", "parts")
    ] == [
        1,
        1,
        1,
    ]


# --- what a night has told ---


def told(birth: str, kernel: str) -> ReportedChanges:
    return ReportedChanges(birth, (KnownChange(ITSELF, "kernel", kernel, "2026-01-01"),))


def test_the_last_night_says_what_it_has_told_of_this_baseline(store: Store) -> None:
    assert queries.known_changes(store, "birth") == ()
    add(store, night(1, told=told("birth", "6.13")), night(2, told=told("birth", "6.14")))
    assert queries.known_changes(store, "birth") == told("birth", "6.14").known
    assert queries.known_changes(store, "another") == ()
    store.add(night(3, told=ReportedChanges("birth", ())))
    assert queries.known_changes(store, "birth") == ()


@each(
    "changed, heard",
    [
        ({"postponed": True}, False),
        ({"apart": "partial"}, False),
        ({"apart": "interrupted"}, False),
        ({"apart": "salvaged"}, False),
        ({"apart": "own-image"}, True),
        ({"verdict": "FAIL"}, True),
        ({"told": None}, False),
    ],
    told=str,
)
def test_whose_word_counts(tmp_path: Path, changed: dict[str, object], heard: bool) -> None:
    path = place(tmp_path)
    with Store.open(path) as store:
        add(
            store,
            night(1, told=told("birth", "6.13")),
            night(2, **{"told": told("birth", "6.14"), **changed}),
        )
        assert queries.known_changes(store, "birth")[0].now == ("6.14" if heard else "6.13")


@each("text", ["'{'", "'[]'", "7", "x'7b22ff223a317d'", "x''"])
def test_what_cannot_be_read_was_not_told(tmp_path: Path, text: str) -> None:
    path = place(tmp_path)
    with Store.open(path) as store:
        store.add(night(1, told=told("birth", "6.13")))
        store.connection.execute(f"UPDATE night SET told = {text}")
        assert queries.known_changes(store, "birth") == ()


def test_of_all_eras_only_what_is_asked_for(store: Store) -> None:
    newer = Era((("driver", "590.1"), ("profile", "nightly"), ("station", "host")))
    count = SeriesKey("watch.memory", "gpu_ecc_corrected_total", Gpu(0), "count", "GPU-a")
    for number, era in enumerate([ERA, newer, ERA]):
        store.add(
            night(
                number,
                era=era,
                figures=(NightMeasurement(COPY, 50.0), NightMeasurement(count, float(number))),
            )
        )
    store.add(night(3, apart="partial", figures=(NightMeasurement(count, 99.0),)))
    found = queries.night_values(store, None, first=5, last=5, only={"gpu_ecc_corrected_total"})
    assert {part: [look.value for look in looks] for part, looks in found.items()} == {
        count.part: [0.0, 1.0, 2.0]
    }
    later = queries.night_values(store, None, after=1, first=1, last=1)[count.part]
    assert [look.value for look in later] == [1.0, 2.0]
    assert list(queries.night_values(store, newer.key, first=5, last=5, only={"copy_h2d"})) == [
        COPY.part
    ]
