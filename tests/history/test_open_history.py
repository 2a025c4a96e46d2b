"""The nights of a machine: every closed run once, in order, and what is damaged named."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import each
from msgspec.structs import replace
from nights import COPY, MACHINE, night, record, recorded, seen, write_run
from raising import raising
from refusal import refused

from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.history import folder as history_folder
from acceptance.history import night_file, nights
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night, NightMeasurement
from acceptance.journal import clock, reader
from acceptance.wording import words

COPIED = ("copy", Gpu(0))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "reports"


def opened(out: Path) -> tuple[tuple[Night, ...], list[str]]:
    """The nights after the runs that are there were added, and the codes of the notices."""
    found, notices, _ = nights.open_history(out, MACHINE)
    assert nights.read(out, MACHINE)[0] == found
    return found, [one.code for one in notices]


def measured(out: Path) -> list[float | None]:
    return [one.value for made in opened(out)[0] for one in made.figures]


def write_runs(out: Path, *values: float) -> list[Path]:
    """Runs 0, 1, ... with these values."""
    return [write_run(out, f"run-{number}", {COPIED: value}) for number, value in enumerate(values)]


def file_of(out: Path, run_id: str) -> Path:
    return night_file.folder(out, MACHINE) / night_file.name(run_id)


def test_runs_that_the_history_lacks_are_added_once(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By three at once, and once; the run of the moment is not read again."""
    first, _ = write_runs(out, 110.0, 111.0)
    assert at_once(*[functools.partial(nights.open_history, out, MACHINE)] * 3) == [0] * 3
    assert measured(out) == [110.0, 111.0]
    write_run(out, "run-3", {COPIED: 112.0})
    assert measured(out) == measured(out) == [110.0, 111.0, 112.0]
    before = opened(out)
    assert before[1] == []
    shutil.rmtree(first)
    assert opened(out) == before, "a run that somebody removed is a night still"
    run = nights.journal_run.read(write_run(out, "run-4", {COPIED: 113.0}))
    monkeypatch.setattr(nights.journal_run, "read", raising(AssertionError))
    (*_, made), *_ = nights.open_history(out, MACHINE, run)
    assert (made.run_id, made.folder, made.number) == ("run-4", "run-4", 4)


def test_only_closed_runs_of_this_machine(out: Path) -> None:
    write_run(out, "run-1", {COPIED: 110.0})
    write_run(out, "run-2", closed=False)
    write_run(out, "run-3", machine="machine-2")
    (out / "latest").symlink_to("run-1")
    (out / "image").mkdir()
    assert measured(out) == [110.0]
    (out / "run-2" / "verdict.json").write_text("{}")
    assert len(measured(out)) == 2


def test_a_run_without_a_plan_is_no_night_and_some_of_the_damaged_are_named(out: Path) -> None:
    write_run(out, "run-1", {COPIED: 110.0})
    bare, broken, cut = (write_run(out, name) for name in ("run-2", "run-3", "run-4"))
    head = (bare / reader.SUPERVISOR).read_text().splitlines(keepends=True)
    (bare / reader.SUPERVISOR).write_text(head[0])
    (broken / reader.SUPERVISOR).write_text("nothing\n")
    (cut / reader.SUPERVISOR).write_text("".join([*head[:2], "nothing\n", *head[3:]]))
    found, (notice,), _ = nights.open_history(out, MACHINE)
    assert [one.run_id for one in found] == ["run-1"]
    assert named(notice) == ["run-3", "run-4"]
    for number in range(5, 9):
        (write_run(out, f"run-{number}") / reader.SUPERVISOR).write_text("nothing\n")
    _, (notice,), _ = nights.open_history(out, MACHINE)
    names = notice.values["names"]
    assert isinstance(names, Message)
    assert (names.code, names.values["more"]) == ("and_more", 3)


def named(notice: Message) -> list[object]:
    """What a notice names as not in the history."""
    assert notice.code == "not_in_history"
    names = notice.values["names"]
    assert isinstance(names, tuple)
    return [one.values["path"] for one in names if isinstance(one, Message)]


def _journal(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / reader.SUPERVISOR
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text


def test_a_run_whose_evidence_is_not_whole_is_a_night_and_no_reference(out: Path) -> None:
    runs = write_runs(out, 120.0, 121.0, 122.0, 123.0)
    _journal(runs[1], lambda text: text.replace('"value":121.0', '"value":999.0'))
    _journal(runs[2], lambda text: "".join(text.splitlines(keepends=True)[:-1]))
    found, codes = opened(out)
    assert [one.apart for one in found] == [None, "not-whole", "not-whole", None]
    ((_, kept),) = seen(found, era=found[0].era).items()
    assert ([one.value for one in kept], codes) == ([120.0, 123.0], [])


def test_what_is_changed_after_a_night_was_recorded_changes_nothing(out: Path) -> None:
    (folder,) = write_runs(out, 110.0)
    before = opened(out)
    _journal(folder, lambda text: text.replace('"value":110.0', '"value":999.0'))
    assert opened(out) == before
    file_of(out, "run-0").unlink()
    assert [one.apart for one in opened(out)[0]] == ["not-whole"]


def test_a_folder_that_was_renamed_is_the_same_night(out: Path) -> None:
    (folder,) = write_runs(out, 110.0)
    assert [one.folder for one in opened(out)[0]] == ["run-0"]
    folder.rename(out / "kept")
    shutil.copytree(out / "kept", out / "with another name")
    assert [one.folder for one in opened(out)[0]] == ["kept"]
    assert measured(out) == [110.0]


A, B, C, D, E = (f"2026-03-0{day}" for day in range(1, 6))


@each(
    "made, due",
    [
        ([("b", "boot-1", A), ("a", "boot-1", "2019-01-01"), ("c", "boot-1", C)], [0, 1, 2]),
        (
            [("4", "boot-2", D), ("5", "boot-2", E), ("1", "boot-1", A), ("2", "boot-1", B)],
            [2, 3, 0, 1],
        ),
    ],
    told=["a clock that was set back orders nothing", "boots stand in the order of their days"],
)
def test_the_order_of_runs(
    tmp_path: Path, made: list[tuple[str, str, str]], due: list[int]
) -> None:
    """Of runs that are found at once; each that is recorded by itself follows the last."""
    out, by_itself = tmp_path / "reports", tmp_path / "other/reports"
    for number, (name, boot, day) in enumerate(made):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(clock, "utc", lambda day=day: f"{day}T02:00:00.000Z")
            for folder in (out, by_itself):
                write_run(folder, f"run-{name}", {COPIED: float(number)}, boot=boot)
        assert measured(by_itself) == list(map(float, range(number + 1)))
    assert measured(out) == due


# --- damage ---


def january(out: Path, count: int) -> None:
    for number in range(count):
        with pytest.MonkeyPatch.context() as patched:
            day = f"2026-01-{number + 1:02}T02:00:00.000Z"
            patched.setattr(clock, "utc", lambda day=day: day)
            write_run(out, f"run-{number}", {COPIED: 110.0 + number})


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _value(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"[11", b"[99", 1))


def _text(path: Path) -> None:
    path.write_text("notes of mine, which do not belong here\n" * 100)


@each("harm", [_cut, _value, _text])
def test_a_damaged_night_is_written_again_in_its_place_while_its_run_is_there(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Once it is gone, the night is named, and hides no other."""
    out, file = tmp_path / "reports", file_of(tmp_path / "reports", "run-1")
    january(out, 3)
    before, _ = opened(out)
    harm(file)
    _, (notice,), _ = nights.open_history(out, MACHINE)
    assert notice.code == "night_restored"
    assert str(file) in words.message(notice)
    after, codes = opened(out)
    assert codes == []
    for one, other in zip(before, after, strict=True):  # of which two may have the same number
        assert replace(other, number=one.number) == one
    shutil.rmtree(out / "run-1")
    harm(file)
    damaged = file.read_bytes()
    for _ in range(2):
        found, (notice,), _ = nights.open_history(out, MACHINE)
        assert (found, named(notice)) == ((after[0], after[2]), [str(file)])
    assert file.read_bytes() == damaged
    file.rename(tmp_path / "moved away")
    assert opened(out) == ((after[0], after[2]), [])


@each(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes().replace(b'night":2', b'night":3', 1)),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
    told=["a newer rigproof's", "a pipe"],
)
def test_what_is_no_damage_is_left_as_it_is(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    out = tmp_path / "reports"
    january(out, 2)
    opened(out)
    harm(file_of(out, "run-1"))
    kind = file_of(out, "run-1").stat()
    write_run(out, "run-2")
    assert refused(HistoryError, opened, out).code == "not_in_history"
    assert file_of(out, "run-1").stat() == kind
    assert not file_of(out, "run-2").exists()  # its number is not known


def test_the_history_of_an_older_rigproof_is_to_be_converted_first(out: Path) -> None:
    january(out, 1)
    path = history_folder.database(out, MACHINE)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"anything")
    for ask in (nights.read, nights.open_history):
        assert refused(HistoryError, ask, out, MACHINE).code == "history_to_convert"
    assert path.read_bytes() == b"anything"
    shutil.rmtree(out)
    out.write_text("a file")
    assert refused(HistoryError, nights.open_history, out, MACHINE).code == "history_out_of_reach"


# --- two processes, a kill, a full disk ---

MANY = tuple(
    night(
        number,
        measured={
            COPY._replace(measurement=f"m{place}"): NightMeasurement(float(place))
            for place in range(40)
        },
    )
    for number in range(40)
)


def started(work: Callable[[], object]) -> int:
    """A process of its own that does something; it ends with 0 where it came to its end."""
    pid = os.fork()
    if pid == 0:
        code = 9
        with contextlib.suppress(BaseException):
            work()
            code = 0
        os._exit(code)
    return pid


def at_once(*works: Callable[[], object]) -> list[int]:
    """Do several things at once, each in a process of its own; how each ended."""
    return [
        os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for pid in [started(work) for work in works]
    ]


def test_two_writers_lose_and_double_nothing(out: Path) -> None:
    def one_by_one(first: int, last: int) -> None:
        for made in MANY[first:last]:
            record(out, made)

    writers = [functools.partial(one_by_one, *span) for span in ((0, 25), (15, 40))]
    assert at_once(*writers) == [0, 0]
    assert recorded(out) == MANY


def test_a_number_that_two_gave_at_once_orders_by_the_clock(out: Path) -> None:
    given = ((2, 1), (1, 1), (3, 0))
    record(out, *(replace(night(run, postponed=True), number=place) for run, place in given))
    assert [one.run_id for one in recorded(out)] == ["run-00003", "run-00001", "run-00002"]
    _cut(file_of(out, "run-00001"))  # what cannot be read ends no row of postponed nights
    assert nights.queries.skipped_in_a_row(nights.read(out, MACHINE)[0]) == 2
    assert not nights.open_history(out, MACHINE).complete  # so that nobody relies on the 2


@each("call", ["fsync", "replace"])
@each("at", range(1, 5))
def test_a_kill_takes_no_night_that_was_there(tmp_path: Path, call: str, at: int) -> None:
    out = tmp_path / f"reports-{call}-{at}"
    record(out, *MANY[:3])
    changed = [night(0, 77.0), *MANY[3:6]]
    left, place = iter(range(1, at)), os if call == "fsync" else Path
    real = getattr(place, call)

    def dies(*given: object) -> object:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given)

    def child() -> None:
        setattr(place, call, dies)
        record(out, *changed)

    assert at_once(child) == [-signal.SIGKILL]
    found = {one.run_id: one for one in recorded(out)}
    assert [found.pop(one.run_id) for one in MANY[1:3]] == list(MANY[1:3])
    assert found.pop("run-00000") in (MANY[0], changed[0])
    assert all(one in changed for one in found.values())
    record(out, *changed)  # the next start
    assert [one.run_id for one in recorded(out)] == [one.run_id for one in MANY[:6]]


def test_the_drafts_of_who_was_killed_go_and_those_of_others_stay(out: Path) -> None:
    record(out, night(1))
    folder = night_file.folder(out, MACHINE)
    gone = started(lambda: None)
    os.waitpid(gone, 0)
    writers = (("a", os.getpid()), ("b", 1), ("c", 1), ("d", gone))
    drafts = [folder / f".run-{name}.json.{pid}" for name, pid in writers]
    for draft in drafts:
        draft.write_text("{")
    os.utime(drafts[1], (0, 0))
    record(out, night(2))
    assert [draft.exists() for draft in drafts] == [False, False, True, False]
    assert [one.run_id for one in recorded(out)] == ["run-00001", "run-00002"]


@each("size", [0, 1000, 2500])
def test_a_full_disk_is_said_and_takes_no_night_that_was_there(tmp_path: Path, size: int) -> None:
    """No file may grow beyond a size: the kernel then takes a part of a write, as a full disk."""
    out = tmp_path / f"reports-{size}"
    record(out, *MANY[:3])
    reader_end, pen = os.pipe()

    def child() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            record(out, night(0, 77.0), *MANY[3:])
        except HistoryError as error:
            os.write(pen, error.message.code.encode())

    assert at_once(child) == [0]
    os.close(pen)
    with os.fdopen(reader_end, encoding="utf-8") as told:
        assert told.read() == "history_out_of_reach"
    assert recorded(out) == MANY[:3]
    assert [
        file.name for file in night_file.folder(out, MACHINE).iterdir() if file.suffix != ".json"
    ] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_read_only_folder_can_be_read_and_not_written(out: Path) -> None:
    record(out, night(1))
    folder = night_file.folder(out, MACHINE)
    folder.chmod(0o555)
    for place in (*folder.parents,)[:-2]:
        if place.stat().st_mode & 0o777 == 0o700:
            place.chmod(0o755)

    def look() -> None:
        os.setuid(65534)
        assert nights.open_history(out, MACHINE)[0] == (night(1),)
        with pytest.raises(HistoryError):
            record(out, night(2))

    assert at_once(look) == [0]
    folder.parent.chmod(0o000)

    def refused() -> None:
        os.setuid(65534)
        for ask in (nights.read, nights.open_history):
            with pytest.raises(HistoryError):
                ask(out, MACHINE)

    assert at_once(refused) == [0]
    assert recorded(out) == (night(1),)
