"""Catching up with the run folders, and making a damaged history anew: no night
lost, none doubled.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from nights import COPY, MACHINE, night, seen, write_run, written
from raising import raising
from thoroughness import examples

from acceptance.core.machine_facts import KnownChange
from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.history import location, night_file, queries, rebuild, retention
from acceptance.history.era import Era
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night, NightMeasurement, ReportedChanges
from acceptance.history.store import Store
from acceptance.journal import clock, reader
from acceptance.wording import words

COPIED = ("copy", Gpu(0))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def rows(store: Store) -> list[tuple[object, ...]]:
    """Everything that a history holds of its nights, in order."""
    found = [
        (
            kept.run_id,
            kept.folder,
            kept.utc,
            kept.seconds,
            kept.verdict,
            kept.apart,
            kept.era,
            kept.pruned,
        )
        for kept in store.nights()
    ]
    lines = [
        (course.measurement, course.component, course.serial, course.points)
        for course in queries.trend_series(store)
    ]
    return [*found, *lines]


def in_words(notices: tuple[Message, ...]) -> tuple[str, ...]:
    """The notices of one opening, as one sentence where there are any."""
    return (words.message(rebuild.in_one(notices)),) if notices else ()


def opened(out: Path) -> tuple[list[tuple[object, ...]], tuple[str, ...]]:
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        return rows(store), in_words(told)


def write_runs(out: Path, *values: float) -> None:
    """Runs 0, 1, ... with these values."""
    for number, value in enumerate(values):
        write_run(out, f"run-{number}", {COPIED: value})


def rebuilt(out: Path) -> tuple[list[tuple[object, ...]], str]:
    """All nights after the history was made anew, and what is said of it."""
    store, notices = rebuild.rebuild(out, MACHINE)
    (sentence,) = in_words(notices)
    with store:
        return rows(store), sentence


def of_runs(found: list[tuple[object, ...]]) -> list[object]:
    """The ids of the nights among these rows."""
    return [row[0] for row in found if str(row[0]).startswith("run-")]


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
    assert of_runs(found) == ["run-1"]
    (sentence,) = told
    assert sentence.startswith("not in the history, because they cannot be read: run-3 (")
    assert "; run-4 (" in sentence


def _journal(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / reader.SUPERVISOR
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text


def test_a_run_whose_evidence_is_not_whole_is_a_night_and_no_reference(out: Path) -> None:
    runs = [write_run(out, f"run-{n}", {COPIED: 120.0 + n}) for n in range(4)]
    _journal(runs[1], lambda text: text.replace('"value":121.0', '"value":999.0'))
    _journal(runs[2], lambda text: "".join(text.splitlines(keepends=True)[:-1]))
    store, told = rebuild.open_history(out, MACHINE)
    with store:
        first, *_ = nights = store.nights()
        assert [one.apart for one in nights] == [None, "not-whole", "not-whole", None]
        ((_, found),) = seen(store, era=first.era).items()
        assert ([one.value for one in found], told) == ([120.0, 123.0], ())


def test_what_is_changed_after_a_night_was_recorded_changes_nothing_until_it_is_made_anew(
    out: Path,
) -> None:
    folder = write_run(out, "run-1", {COPIED: 110.0})
    before, _ = opened(out)
    _journal(folder, lambda text: text.replace('"value":110.0', '"value":999.0'))
    assert opened(out)[0] == before
    store, _ = rebuild.rebuild(out, MACHINE)
    with store:
        (made,) = store.nights()
        assert (made.apart, seen(store, era=made.era)) == ("not-whole", {})


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


@each(
    "nights, due",
    [
        (
            [
                ("b", "boot-1", "2026-03-01"),
                ("a", "boot-1", "2019-01-01"),
                ("c", "boot-1", "2026-03-03"),
            ],
            [0.0, 1.0, 2.0],
        ),
        (
            [
                *(("4", "boot-2", "2026-03-04"), ("5", "boot-2", "2026-03-05")),
                *(("1", "boot-1", "2026-03-01"), ("2", "boot-1", "2026-03-02")),
            ],
            [2.0, 3.0, 0.0, 1.0],
        ),
    ],
    told=["a clock that was set back orders nothing", "boots stand in the order of their days"],
)
def test_the_order_of_runs(
    tmp_path: Path, nights: list[tuple[str, str, str]], due: list[float]
) -> None:
    out = tmp_path / "reports"
    for number, (name, boot, day) in enumerate(nights):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(clock, "utc", lambda day=day: f"{day}T02:00:00.000Z")
            write_run(out, f"run-{name}", {COPIED: float(number)}, boot=boot)
    assert values(out) == due


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
    written(path, "CREATE TABLE song (name TEXT)")


@each("harm", [_header, _page, _cut, _text, _other])
def test_a_damaged_history_is_set_aside_and_made_anew(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    out = tmp_path / "reports"
    write_runs(out, 110.0, 111.0, 112.0)
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


# --- nights whose run is gone ---


GONE = (
    night(
        7,
        50.0,
        day=3.0,
        figures=(
            NightMeasurement(COPY, 50.0, 49.0, outside=True),
            NightMeasurement(COPY._replace(serial=None), None),
        ),
    ),
    night(8, 51.0, apart="salvaged"),
    night(9, 52.0, told=ReportedChanges("birth", (KnownChange("", "kernel", "6.13", "2026"),))),
)


def older_store(out: Path, *nights: Night) -> Path:
    """A history of an older rigproof, which removed runs and wrote no files of their nights."""
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        for one in nights or GONE:
            store.add(one, one.run_id)
            store.link(one.run_id, None)
    return path


def kept(out: Path) -> list[str]:
    return [file.stem for file in night_file.files(out, MACHINE)]


def test_an_older_store_is_written_out_first_and_then_nothing_needs_it(out: Path) -> None:
    path = older_store(out)
    write_run(out, "run-1", {COPIED: 110.0})
    before, told = opened(out)
    assert told == ()
    assert kept(out) == [one.run_id for one in GONE]
    _text(path)
    after, (sentence,) = opened(out)
    assert after == before
    assert "with 4 nights; the old file is kept as history.sqlite3.damaged-" in sentence
    assert "older rigproof" not in sentence
    store, _ = rebuild.open_history(out, MACHINE)
    with store:
        assert queries.known_changes(store, "birth")[0].now == "6.13"
        assert [look.outside for look in seen(store)[COPY.part]] == [True, False]


def test_a_file_of_version_1_is_written_out_too(out: Path) -> None:
    path = location.database(out, MACHINE)
    written(path, Path(__file__).with_name("version-1.sql").read_text())
    before, _ = opened(out)
    path.unlink()
    after, _ = opened(out)
    assert [row[2:] for row in after] == [row[2:] for row in before]


def test_made_anew_from_a_sound_file_of_an_older_rigproof_nothing_is_lost(out: Path) -> None:
    older_store(out)
    write_run(out, "run-1", {COPIED: 110.0})
    found, sentence = rebuilt(out)
    assert of_runs(found) == [*(one.run_id for one in GONE), "run-1"]
    assert "made anew, with 4 nights; the old file is kept as history.sqlite3.replaced-" in sentence


@each("harm", [_header, _page, _cut, _text, _nothing])
def test_an_older_store_that_is_damaged_already_is_told(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    out = tmp_path / "reports"
    path = older_store(out)
    write_run(out, "run-1", {COPIED: 110.0})
    harm(path)
    found, (sentence,) = opened(out)
    assert [row[0] for row in found if row[1] == row[0]] == ["run-1"]
    assert "is damaged" in sentence
    assert sentence.endswith(
        "Z; nights whose runs an older rigproof removed, if there are any, are in the old file "
        "alone"
    )
    assert opened(out) == (found, ())


def test_a_run_that_somebody_removed_is_a_night_still(out: Path) -> None:
    write_runs(out, 110.0, 111.0, 112.0, 113.0)
    before, _ = opened(out)
    shutil.rmtree(out / "run-2")
    assert opened(out) == (before, ())
    assert kept(out) == ["run-2"]
    location.database(out, MACHINE).unlink()
    after, _ = opened(out)
    assert [row[0] for row in after] == [row[0] for row in before]
    assert values(out) == [110.0, 111.0, 112.0, 113.0]


def test_a_journal_goes_before_the_file_of_its_night(out: Path) -> None:
    folder = write_run(out, "run-1", {COPIED: 110.0})
    opened(out)
    folder.rename(out.parent / "away")
    opened(out)
    assert kept(out) == ["run-1"]
    (out.parent / "away").rename(folder)
    location.database(out, MACHINE).unlink()
    found, told = opened(out)
    assert found[0][:2] == ("run-1", "run-1")
    assert told == ()
    assert values(out) == [110.0]


def test_nights_without_a_journal_lie_where_they_were_recorded(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clock said, and whatever goes later."""
    with monkeypatch.context() as patched:
        for number, day in enumerate((1, 2, 30, 4, 5, 6, 7)):
            patched.setattr(clock, "utc", lambda day=day: f"2026-01-{day:02}T02:00:00.000Z")
            write_run(out, f"run-{9 - number}", {COPIED: 110.0 + number})
    before = values(out)
    assert before == sorted(before)
    for gone in ([3], [7, 5], [8, 6, 4], [9]):
        for number in gone:
            shutil.rmtree(out / f"run-{number}")
        opened(out)
        location.database(out, MACHINE).unlink()
        assert values(out) == before


def test_a_night_whose_forerunner_is_lost_lies_by_its_day(out: Path) -> None:
    path = older_store(out, *map(night, range(6)))
    write_run(out, "run-9")
    opened(out)
    path.unlink()
    (night_file.folder(out, MACHINE) / "run-00002.json").unlink()
    (night_file.folder(out, MACHINE) / "run-00000.json").unlink()
    runs = of_runs(opened(out)[0])
    assert runs == ["run-00001", "run-00003", "run-00004", "run-00005", "run-9"]


def test_night_files_in_a_circle_are_all_read(out: Path) -> None:
    folder = night_file.folder(out, MACHINE)
    folder.mkdir(parents=True)
    for number, after in ((1, 2), (2, 1), (3, 3), (4, 1), (5, None)):
        name = None if after is None else f"run-{after:05}"
        record = night_file.NightRecord(night(number), name, pruned=False)
        (folder / f"run-{number:05}.json").write_bytes(night_file.encode(record))
    found = of_runs(opened(out)[0])
    assert found[0] == "run-00005"
    assert sorted(map(str, found)) == [f"run-{number:05}" for number in range(1, 6)]


@each(
    "harm",
    [
        "UPDATE night SET day = 'noon' WHERE seq = 1",
        "UPDATE night SET verdict = 'MAYBE' WHERE seq = 1",
        "UPDATE night SET apart = 'sideways' WHERE seq = 1",
        "UPDATE night SET virtual = 2 WHERE seq = 1",
        "UPDATE night SET told = '{' WHERE seq = 1",
        "UPDATE parts SET identities = '[' WHERE id = 1",
        "UPDATE figure SET flags = 'x' WHERE night = 1",
        "UPDATE figure SET flags = 8 WHERE night = 1",
        "UPDATE figure SET value = 'x' WHERE night = 1",
        "UPDATE figure SET again = x'00ff' WHERE night = 1",
        "DELETE FROM parts WHERE id = 1",
    ],
)
def test_a_night_that_makes_no_sense_is_named_and_the_others_are_kept(
    tmp_path: Path, harm: str
) -> None:
    """A file can be sound as a database and yet hold what nobody wrote."""
    for again in (rebuild.open_history, rebuild.rebuild):
        out = tmp_path / again.__name__ / "reports"
        path = older_store(out, night(1, identities={Gpu(0): "GPU-b"}), night(2), night(3))
        with Store.open(path) as store:
            store.connection.execute(harm)
        write_run(out, "run-9", {COPIED: 110.0})
        store, notices = again(out, MACHINE)
        (sentence,) = in_words(notices)
        with store:
            store.check()
            runs = [one.run_id for one in store.nights()]
        assert runs == ["run-00002", "run-00003", "run-9"]
        assert kept(out) == ["run-00002", "run-00003"]
        assert f"{path}: is damaged (night run-00001 cannot be read: " in sentence
        assert "made anew, with 3 nights; the old file is kept as " in sentence
        assert opened(out)[1] == ()


def test_several_nights_that_make_no_sense_are_named(out: Path) -> None:
    path = older_store(out, *map(night, range(1, 9)))
    with Store.open(path) as store:
        store.connection.execute("UPDATE night SET verdict = 'MAYBE' WHERE seq > 2")
    (sentence,) = opened(out)[1]
    assert "night run-00003 cannot be read: Invalid enum value 'MAYBE'" in sentence
    assert ") (and so are run-00004; run-00005; run-00006 and 2 more): the history" in sentence


def test_an_index_that_disagrees_with_its_table_is_no_source(out: Path) -> None:
    """Night files are for good: what is written to them must be sound, indexes too."""
    path = older_store(out)
    data = path.read_bytes()
    at = data.index(b"run-00008")
    path.write_bytes(data[:at] + b"run-99998" + data[at + 9 :])
    (sentence,) = opened(out)[1]
    assert "is damaged (" in sentence
    assert kept(out) == []


@each("facts", ["'{}'", "'[[\"driver\", 580]]'", "cast(x'ff41' as text)"])
def test_eras_without_facts_are_damage(tmp_path: Path, facts: str) -> None:
    out = tmp_path / "reports"
    path = location.database(out, MACHINE)
    with Store.open(path) as store:
        store.add(night(1, era=Era((("driver", "570.1"),))))
        store.connection.execute(f"UPDATE era SET facts = {facts} WHERE id = 1")
    write_run(out, "run-9", {COPIED: 110.0})
    found, (sentence,) = opened(out)
    assert [row[0] for row in found if row[1] == row[0]] == ["run-9"]
    assert "is damaged (" in sentence
    assert len(list(path.parent.glob("history.sqlite3.damaged-*Z"))) == 1
    assert opened(out)[1] == ()


def test_a_night_file_that_cannot_be_read_is_named_every_time(out: Path) -> None:
    path = older_store(out)
    opened(out)
    folder = night_file.folder(out, MACHINE)
    sound = (folder / "run-00008.json").read_bytes()
    (folder / "run-00008.json").write_bytes(sound.replace(b"51.0", b"52.0"))
    (folder / "run-00009.json").unlink()
    (folder / "run-00009.json").mkdir()
    path.unlink()
    for _ in range(2):
        found, (sentence,) = opened(out)
        assert of_runs(found) == ["run-00007"]
        place = f"history/{MACHINE}/nights"
        assert sentence.startswith(
            f"not in the history, because they cannot be read: {place}/run-00008.json (is not what "
            "was written"
        )
        assert f"; {place}/run-00009.json (cannot be read (it is a folder, not a file)" in sentence
    (folder / "run-00008.json").write_bytes(sound)
    assert [row[0] for row in opened(out)[0]][:2] == ["run-00007", "run-00008"]


def test_a_night_file_that_was_damaged_is_written_again_from_a_sound_store(out: Path) -> None:
    older_store(out)
    before, _ = opened(out)
    file = night_file.folder(out, MACHINE) / "run-00008.json"
    sound = file.read_bytes()
    file.write_bytes(sound[:-9])
    found, sentence = rebuilt(out)
    assert found == before
    assert "cannot be read" not in sentence
    assert file.read_bytes() == sound
    file.write_bytes(sound[:-9])
    assert opened(out) == (before, ())
    assert file.read_bytes() == sound


def test_night_files_that_cannot_be_written_leave_the_store_as_it_is(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older_store(out)
    before = path.read_bytes()

    for again in (rebuild.open_history, rebuild.rebuild):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
            with pytest.raises(
                HistoryError, match=r"nights: .*No space left on device\): make room"
            ):
                again(out, MACHINE)
        assert path.read_bytes() == before
        assert not night_file.folder(out, MACHINE).exists(), "it shows that nothing is missing"
    assert len([row for row in opened(out)[0] if str(row[0]).startswith("run-")]) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_folder_of_nights_that_cannot_be_listed_is_told(out: Path) -> None:
    older_store(out)
    opened(out)
    folder = night_file.folder(out, MACHINE)
    folder.chmod(0)
    with pytest.raises(HistoryError, match="nights"):
        rebuild.open_history(out, MACHINE)
    folder.chmod(0o755)


@pytest.fixture(scope="module", params=["by age", "by size"])
def pruned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nights of January, the oldest of them pruned."""
    out = tmp_path_factory.mktemp("pruned") / "reports"
    with pytest.MonkeyPatch.context() as patched:
        for day in range(1, 7):
            patched.setattr(clock, "utc", lambda day=day: f"2026-01-{day:02}T02:00:00.000Z")
            write_run(out, f"run-{day}", {COPIED: 110.0 + day})
    store, _ = rebuild.open_history(out, MACHINE)
    with store:
        today = store.nights()[-1].day
        keep = {"keep_days": 3.5} if request.param == "by age" else {"keep_bytes": 0}
        retention.prune(store, out, MACHINE, today=today, **keep)
    return out


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.binary(min_size=1, max_size=64)), min_size=1))
def test_damaged_anywhere_after_pruning_nothing_is_lost(
    pruned: Path, tmp_path_factory: pytest.TempPathFactory, harms: list[tuple[float, bytes]]
) -> None:
    out = tmp_path_factory.mktemp("damage") / "reports"
    shutil.copytree(pruned, out)
    before, _ = opened(out)
    path = location.database(out, MACHINE)
    data = bytearray(path.read_bytes())
    for place, harm in harms:
        at = int(place * (len(data) - len(harm)))
        data[at : at + len(harm)] = harm
    path.write_bytes(bytes(data))
    with suppress(HistoryError):  # the version may read as a newer one
        rebuild.open_history(out, MACHINE)[0].close()
    try:
        rebuild.rebuild(out, MACHINE)[0].close()
    except HistoryError:
        path.unlink()
    assert opened(out) == (before, ())


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
    assert rebuilt(out)[0] == before


def test_a_machines_folder_is_a_plain_name(tmp_path: Path) -> None:
    assert location.folder(tmp_path, "0123abcd").name == "0123abcd"
    for odd in ("../evil", ".", "a/b", "", "x" * 200, "\udcff"):
        found = location.folder(tmp_path, odd)
        assert found.parent == tmp_path / "history"
        assert found.name.startswith("id-")
    assert location.folder(tmp_path, "a/b") != location.folder(tmp_path, "a/c")
