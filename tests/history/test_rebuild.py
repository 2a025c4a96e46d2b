"""Catching up with the run folders, and making a damaged history anew: no night
lost, none doubled.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from nights import COPY, MACHINE, night, seen, write_run
from thoroughness import examples

from acceptance.history import location, queries, rebuild
from acceptance.history.era import Era
from acceptance.history.errors import HistoryError
from acceptance.history.night import NightMeasurement
from acceptance.history.store import Store
from acceptance.journal import clock, reader

COPIED = ("copy", "gpu0")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def rows(store: Store) -> list[tuple[object, ...]]:
    """Everything that a history holds of its nights, in order."""
    found = [
        (kept.run_id, kept.folder, kept.utc, kept.seconds, kept.verdict, kept.apart, kept.era)
        for kept in store.nights()
    ]
    lines = [
        (course.measurement, course.component, course.serial, course.points)
        for course in queries.trend_series(store)
    ]
    return [*found, *lines]


def opened(out: Path) -> tuple[list[tuple[object, ...]], tuple[str, ...]]:
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        return rows(store), told


def values(out: Path) -> list[float]:
    store, _ = rebuild.open_history(out, MACHINE)
    with store:
        return [point.value for course in queries.trend_series(store) for point in course.points]


def test_runs_that_the_history_lacks_are_added_once(out: Path) -> None:
    write_run(out, "run-1", {COPIED: 110.0})
    write_run(out, "run-2", {COPIED: 111.0})
    assert values(out) == [110.0, 111.0]
    write_run(out, "run-3", {COPIED: 112.0})
    assert values(out) == values(out) == [110.0, 111.0, 112.0]
    assert opened(out)[1] == ()


def test_only_closed_runs_of_this_machine(out: Path) -> None:
    write_run(out, "run-1", {COPIED: 110.0})
    write_run(out, "run-2", closed=False)
    write_run(out, "run-3", machine="machine-2")
    (out / "latest").symlink_to("run-1")
    (out / "image").mkdir()
    assert values(out) == [110.0]
    (out / "run-2" / "verdict.json").write_text("{}")
    assert len(values(out)) == 2


def test_a_run_without_a_plan_is_no_night_and_a_damaged_one_is_told(out: Path) -> None:
    write_run(out, "run-1", {COPIED: 110.0})
    bare, broken, cut = (write_run(out, name) for name in ("run-2", "run-3", "run-4"))
    head = (bare / reader.SUPERVISOR).read_text().splitlines(keepends=True)
    (bare / reader.SUPERVISOR).write_text(head[0])
    (broken / reader.SUPERVISOR).write_text("nothing\n")
    (cut / reader.SUPERVISOR).write_text("".join([*head[:2], "nothing\n", *head[3:]]))
    found, told = opened(out)
    assert [row[0] for row in found if row[1] == row[0]] == ["run-1"]
    (sentence,) = told
    assert sentence.startswith("not in the history, because they cannot be read: run-3 (")
    assert "; run-4 (" in sentence


def test_only_some_of_many_unreadable_runs_are_named(out: Path) -> None:
    for number in range(6):
        (write_run(out, f"run-{number}") / reader.SUPERVISOR).write_text("nothing\n")
    (sentence,) = opened(out)[1]
    assert "run-2" in sentence
    assert sentence.endswith(") and 3 more")


def test_a_folder_that_was_renamed_is_the_same_night(out: Path) -> None:
    folder = write_run(out, "run-1", {COPIED: 110.0})
    assert values(out) == [110.0]
    folder.rename(out / "kept")
    assert opened(out)[0][0][:2] == ("run-1", "kept")
    shutil.copytree(out / "kept", out / "copied")
    assert opened(out)[0][0][:2] == ("run-1", "kept")
    assert values(out) == [110.0]


def test_a_clock_that_was_set_back_orders_nothing(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(
        ["2026-03-01T02:00:00.000Z", "2019-01-01T00:00:00.000Z", "2026-03-03T02:00:00.000Z"]
    )
    for number in range(3):
        moment = next(times)
        monkeypatch.setattr(clock, "utc", lambda moment=moment: moment)
        write_run(out, f"run-{'bac'[number]}", {COPIED: 110.0 + number})
    monkeypatch.undo()
    assert values(out) == [110.0, 111.0, 112.0]


def test_boots_stand_in_the_order_of_their_days(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for boot, day in (("boot-2", 4), ("boot-2", 5), ("boot-1", 1), ("boot-1", 2)):
        monkeypatch.setattr(clock, "utc", lambda day=day: f"2026-03-0{day}T02:00:00.000Z")
        write_run(out, f"run-{day}", {COPIED: 110.0 + day}, boot=boot)
    monkeypatch.undo()
    assert values(out) == [111.0, 112.0, 114.0, 115.0]


# --- damage ---


def _header(path: Path) -> None:
    path.write_bytes(b"garbage" + path.read_bytes()[7:])


def _page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = b"\xa5" * 4096
    path.write_bytes(bytes(data))


def _nothing(path: Path) -> None:
    """A byte of a row's head changed, so that there is nothing where a text must be."""
    with sqlite3.connect(path) as connection:
        (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'era'").fetchone()
        loose = sql.replace("facts TEXT NOT NULL", "facts TEXT")
        connection.execute("PRAGMA writable_schema = ON")
        for text, then in ((loose, "UPDATE era SET facts = NULL"), (sql, "SELECT 1")):
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'era'", (text,))
            connection.commit()
            with sqlite3.connect(path) as other:
                other.execute(then)
            other.close()
    connection.close()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 4096 * 3 + 100])


def _text(path: Path) -> None:
    path.write_text("notes of mine, which do not belong here\n" * 100)


def _other(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE song (name TEXT)")
    connection.commit()
    connection.close()


@each("harm", [_header, _page, _cut, _text, _other])
def test_a_damaged_history_is_set_aside_and_made_anew(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    out = tmp_path / "reports"
    for number in range(3):
        write_run(out, f"run-{number}", {COPIED: 110.0 + number})
    before, _ = opened(out)
    path = location.database(out, MACHINE)
    harm(path)
    damaged = path.read_bytes()
    after, told = opened(out)
    assert after == before
    (aside,) = (
        one
        for one in path.parent.iterdir()
        if ".damaged-" in one.name and not one.name.endswith(("-wal", "-shm"))
    )
    assert aside.read_bytes() == damaged
    assert (
        "the history was made anew, with 3 nights; the old file is kept as "
        "history.sqlite3.damaged-20"
    ) in told[0]
    assert opened(out) == (before, ())


def test_a_newer_history_is_left_as_it_is(out: Path) -> None:
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        store.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(HistoryError, match="newer than this rigproof knows"):
        rebuild.open_history(out, MACHINE)
    assert [one.name for one in path.parent.iterdir() if "damaged" in one.name] == []


def test_nights_whose_run_is_gone_come_along(out: Path) -> None:
    """Made anew from a sound file, nothing is lost, and the order stays that of recording."""
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        store.add(
            night(
                7,
                50.0,
                day=3.0,
                figures=(
                    NightMeasurement(COPY, 50.0, 49.0, outside=True),
                    NightMeasurement(COPY._replace(serial=None), None),
                ),
            )
        )
        store.add(night(3, 51.0, apart="partial"))
    write_run(out, "run-1", {COPIED: 110.0})
    before, _ = opened(out)
    assert len(before) == 5
    store, told = rebuild.rebuild(out, MACHINE)
    with store:
        assert rows(store) == before
        assert [look.outside for look in seen(store)[COPY.part]] == [True]
    assert (
        "the history was made anew, with 3 nights; the old file is kept as "
        "history.sqlite3.replaced-"
    ) in told[0]


def test_what_a_damaged_file_still_tells_is_shown_and_is_no_measure(out: Path) -> None:
    path = location.database(out, MACHINE)
    lines = [COPY._replace(measurement=f"m{number:03}") for number in range(60)]
    with Store.open(path) as store:
        for number in range(120):
            store.add(
                night(
                    number, figures=tuple(NightMeasurement(line, float(number)) for line in lines)
                )
            )
    data = bytearray(path.read_bytes())
    begin = len(data) // 4096 // 2 * 4096
    data[begin : begin + 4096] = b"\xa5" * 4096
    path.write_bytes(bytes(data))
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        assert len(store.nights()) == 120
        assert {kept.apart for kept in store.nights()} == {"salvaged"}
        assert seen(store) == {}
        found = queries.trend_series(store)
        assert len(found) > 50
        assert all(
            point.value == float(point.run_id.removeprefix("run-"))
            for course in found
            for point in course.points
        )
    assert told[1].startswith(
        "not all of the old file could be read: of nights whose run folder is gone"
    )


@each(
    "harm",
    [
        "UPDATE night SET day = 'noon' WHERE seq = 1",
        "UPDATE night SET verdict = 'MAYBE' WHERE seq = 1",
        "UPDATE night SET apart = 'sideways' WHERE seq = 1",
        "UPDATE parts SET identities = '[' WHERE id = 1",
        "UPDATE era SET facts = '{}' WHERE id = 1",
        "UPDATE figure SET flags = 'x' WHERE night = 1",
        "UPDATE figure SET value = 'x' WHERE night = 1",
        "UPDATE figure SET again = x'00ff' WHERE night = 1",
        "DELETE FROM parts",
        "DELETE FROM line",
    ],
)
def test_what_makes_no_sense_is_left_out_and_never_stops_it(tmp_path: Path, harm: str) -> None:
    """A file can be sound as a database and yet hold what nobody wrote."""
    out = tmp_path / "reports"
    other = NightMeasurement(COPY._replace(component="gpu1", serial="GPU-b"), 60.0)
    with Store.open(location.database(out, MACHINE)) as store:
        store.add(
            night(1, figures=(NightMeasurement(COPY, 50.0), other), identities={"gpu0": "GPU-b"})
        )
        store.add(night(2, identities={"gpu0": "GPU-a"}))
        store.connection.execute(harm)
    write_run(out, "run-9", {COPIED: 110.0})
    store, told = rebuild.rebuild(out, MACHINE)
    with store:
        store.check()
        runs = [kept.run_id for kept in store.nights()]
        assert runs[-1] == "run-9"
        assert set(runs) <= {"run-00001", "run-00002", "run-9"}
        assert all(
            isinstance(point.value, float)
            for course in queries.trend_series(store)
            for point in course.points
        )
    assert len(told) == 2 or harm.startswith("DELETE")
    assert opened(out)[1] == ()


@each("facts", ["'{}'", "'[[\"driver\", 580]]'", "cast(x'ff41' as text)"])
def test_eras_without_facts_are_damage_and_the_nights_of_others_are_shown(
    tmp_path: Path, facts: str
) -> None:
    out = tmp_path / "reports"
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        store.add(night(1, era=Era((("driver", "570.1"),))))
        store.add(night(2))
        store.connection.execute(f"UPDATE era SET facts = {facts} WHERE id = 1")
    write_run(out, "run-9", {COPIED: 110.0})
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        assert [(kept.run_id, kept.apart) for kept in store.nights()][-2:] == [
            ("run-00002", "salvaged"),
            ("run-9", None),
        ]
        store.check()
    assert "the history was made anew, with " in told[0]
    assert len(list(path.parent.glob("history.sqlite3.damaged-*Z"))) == 1
    assert opened(out)[1] == ()


def test_nothing_where_a_text_must_be_is_damage_like_any_other(out: Path) -> None:
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        store.add(night(1))
    _nothing(path)
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        assert store.nights() == ()
    assert (
        "is damaged (NULL value in era.facts): the history was made anew, with 0 nights" in told[0]
    )
    assert told[1].startswith("not all of the old file could be read")


@settings(max_examples=examples(8))
@given(st.lists(st.tuples(st.floats(100.0, 120.0), st.booleans()), min_size=1, max_size=5))
def test_added_night_by_night_or_made_anew_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[float, bool]]
) -> None:
    out = tmp_path_factory.mktemp("rebuild") / "reports"
    for number, (value, at_once) in enumerate(told):
        write_run(out, f"run-{number}", {COPIED: value})
        if at_once:
            opened(out)
    before, _ = opened(out)
    shutil.rmtree(location.folder(out, MACHINE))
    assert opened(out)[0] == before
    store, _ = rebuild.rebuild(out, MACHINE)
    with store:
        assert rows(store) == before


def test_a_machines_folder_is_a_plain_name(tmp_path: Path) -> None:
    assert location.folder(tmp_path, "0123abcd").name == "0123abcd"
    for odd in ("../evil", ".", "a/b", "", "x" * 200, "\udcff"):
        found = location.folder(tmp_path, odd)
        assert found.parent == tmp_path / "history"
        assert found.name.startswith("id-")
    assert location.folder(tmp_path, "a/b") != location.folder(tmp_path, "a/c")
