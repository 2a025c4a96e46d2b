"""A fleet's verdicts: what is found, what is said of bad ones, and the word on each machine."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cases import each
from fleet_verdicts import LAST_NIGHT, NOW, RATE, place, run_id, verdict
from keys import made_key, sign
from known import known
from raising import raising

from acceptance.core import regular_file
from acceptance.core.parts import Gpu
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import due, night, verdicts
from acceptance.fleet.night import Judged, Standing
from acceptance.fleet.verdicts import Collection
from acceptance.reports.verdict_json import SCHEMA, File, Skipped
from acceptance.run import signature
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

FRESH = timedelta(hours=30)


def judged(
    *folders: Path, due_: tuple[str, ...] | None = None, now: datetime = NOW, signed: bool = False
) -> tuple[Judged, Collection]:
    found = verdicts.collect(folders, now, now - FRESH)
    return night.judge(found, due_, now, FRESH, signed=signed), found


def standing(found: Judged, machine: str) -> Standing:
    (one,) = (one for one in (*found.due, *found.others) if one.machine == machine)
    return one


def reason(found: Judged, machine: str) -> str:
    return words.text(standing(found, machine).reason or "")


def word(found: Judged, machine: str) -> VerdictWord:
    return standing(found, machine).verdict


# --- what is read ---


def test_verdicts_are_found_packed_and_not_and_in_folders_of_runs(tmp_path: Path) -> None:
    place(tmp_path, "a")
    place(tmp_path, "b", packed=True)
    place(tmp_path, "c", under=LAST_NIGHT)
    place(tmp_path, "d", under=LAST_NIGHT, packed=True)
    found, collection = judged(tmp_path)
    assert [(one.machine, one.verdict) for one in found.due] == [(name, "PASS") for name in "abcd"]
    assert (found.verdict, found.troubles) == ("PASS", ())
    assert [len(collection.verdicts[name]) for name in "abcd"] == [1, 1, 1, 1]


def test_the_newest_of_several_runs_counts(tmp_path: Path) -> None:
    older = run_id("2026-11-25T20:00")
    place(tmp_path, "a", verdict("FAIL", older), under=older)
    place(tmp_path, "a", verdict("PASS"), under=LAST_NIGHT)
    (tmp_path / "a/latest").symlink_to(LAST_NIGHT)
    found, collection = judged(tmp_path)
    assert word(found, "a") == "PASS"
    assert sorted(one.run_id for one in collection.verdicts["a"]) == [older, LAST_NIGHT]


def test_runs_of_long_ago_are_left_out_but_for_the_newest(tmp_path: Path) -> None:
    old = [run_id(f"2026-10-0{day}T01:00") for day in (1, 2, 3)]
    for run in old:
        place(tmp_path, "a", verdict("PASS", run), under=run)
    found, collection = judged(tmp_path)
    assert [one.run_id for one in collection.verdicts["a"]] == [old[-1]]
    assert standing(found, "a").missing
    assert "no fresh verdict" in reason(found, "a")
    assert old[-1] in reason(found, "a")


def test_a_machine_in_two_folders_is_one_machine(tmp_path: Path) -> None:
    older = run_id("2026-11-25T20:00")
    place(tmp_path / "one", "a", verdict("PASS"))
    place(tmp_path / "two", "a", verdict("FAIL", older))
    found, _ = judged(tmp_path / "one", tmp_path / "two", tmp_path / "one")
    assert (found.verdict, found.troubles) == ("PASS", ())


# --- due ---


def test_a_machine_that_is_due_and_has_no_verdict_comes_first(tmp_path: Path) -> None:
    place(tmp_path, "a", verdict("FAIL"))
    place(tmp_path, "b", verdict("PASS", serial="other"))
    found, _ = judged(tmp_path, due_=("b", "a", "z"))
    assert [(one.machine, one.verdict, one.missing) for one in found.due] == [
        ("z", "UNJUDGED", True),
        ("a", "FAIL", False),
        ("b", "PASS", False),
    ]
    assert found.verdict == "FAIL"
    assert found.not_passed == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("hours", "expected"), [(29.9, "PASS"), (30.0, "PASS"), (30.1, "UNJUDGED")]
)
def test_a_verdict_is_fresh_for_some_hours(
    tmp_path: Path, hours: float, expected: VerdictWord
) -> None:
    place(tmp_path, "a")
    began = known(verdicts.began(LAST_NIGHT))
    found, _ = judged(tmp_path, now=began + timedelta(hours=hours))
    assert word(found, "a") == expected


def test_a_fail_does_not_expire_and_is_tested_again(tmp_path: Path) -> None:
    old = run_id("2026-11-20T01:00")
    place(tmp_path, "a", verdict("FAIL", old), under=old)
    (one,) = judged(tmp_path)[0].due
    assert (one.verdict, one.missing, one.proved) == ("FAIL", True, False)
    assert words.text(one.reason or "").startswith("gemm.rate[bf16]: ")


def runs(folder: Path, history: str) -> None:
    """Runs of a machine, one each ten hours: words that end with the newest, of last night.

    `-` is a run without a verdict, `TORN` one whose file is half written.
    """
    for number, name in enumerate(reversed(history.split())):
        began = datetime(2026, 11, 26, 1, tzinfo=UTC) - timedelta(hours=10 * number)
        run = run_id(f"{began:%Y-%m-%dT%H:%M}")
        path = folder / "a" / run / "verdict.json"
        path.parent.mkdir(parents=True)
        if name == "TORN":
            path.write_bytes(b"{")
        elif name != "-":
            whole, _, part = name.partition("/")
            file = verdict(whole, run, scope="partial" if part else "full")  # type: ignore[arg-type]
            place(folder, "a", file, under=run, written=NOW - timedelta(hours=10 * number))


@pytest.mark.parametrize(
    ("history", "expected", "proved"),
    [
        ("FAIL UNJUDGED", "FAIL", True),
        ("FAIL PASS/part", "FAIL", True),
        ("FAIL -", "FAIL", False),
        ("FAIL TORN", "FAIL", False),
        ("FAIL UNJUDGED PASS/part -", "FAIL", False),
        ("FAIL PASS", "PASS", True),
        ("FAIL PASS UNJUDGED", "UNJUDGED", False),
        ("FAIL PASS -", "UNJUDGED", False),
        ("FAIL PASS TORN", "UNJUDGED", False),
        ("FAIL/part UNJUDGED", "FAIL", True),
        ("PASS FAIL FAIL PASS/part", "FAIL", True),
        ("PASS UNJUDGED", "UNJUDGED", False),
        ("PASS -", "UNJUDGED", False),
        ("- PASS", "PASS", True),
        ("-", "UNJUDGED", False),
        # The FAIL is older than the runs that are read otherwise.
        ("FAIL" + 9 * " UNJUDGED", "FAIL", False),
        ("FAIL" + 9 * " UNJUDGED" + " -", "FAIL", False),
        ("FAIL PASS" + 9 * " UNJUDGED", "UNJUDGED", False),
    ],
)
def test_a_fail_stands_until_a_newer_pass_of_a_whole_run(
    tmp_path: Path, history: str, expected: VerdictWord, proved: bool
) -> None:
    runs(tmp_path, history)
    (one,) = judged(tmp_path)[0].due
    assert (one.verdict, one.proved) == (expected, proved)


def test_what_does_not_count_ends_no_fail(tmp_path: Path) -> None:
    """A PASS of the future, and an unsigned one where signers are named."""
    runs(tmp_path, "FAIL PASS")
    assert word(judged(tmp_path)[0], "a") == "PASS"
    assert word(judged(tmp_path, signed=True)[0], "a") == "FAIL"
    (newest,) = (tmp_path / "a").glob(LAST_NIGHT)
    later = run_id("2026-11-27T01:00")
    place(tmp_path, "a", verdict("PASS", later), under=later)
    for path in (newest / "verdict.json", newest):
        path.unlink() if path.is_file() else path.rmdir()
    found, _ = judged(tmp_path)
    assert word(found, "a") == "FAIL"
    assert "the machine's clock" in reason(found, "a")


@pytest.mark.parametrize("history", ["FAIL -", "FAIL UNJUDGED TORN", "FAIL PASS", "FAIL"])
def test_a_fail_in_doubt_is_named_and_tested_again(tmp_path: Path, history: str) -> None:
    """A run without a verdict, and unsigned verdicts where signers are named."""
    runs(tmp_path, history)
    (one,) = judged(tmp_path, signed=True)[0].due
    assert (one.verdict, one.newest, one.proved) == ("FAIL", None, False)
    assert known(one.failed).verdict == "FAIL"


@pytest.mark.parametrize("hours", [-40, -20, 20])
def test_a_fail_of_the_future_is_tested_again(tmp_path: Path, hours: int) -> None:
    at = NOW - timedelta(hours=hours)
    run = run_id(f"{at:%Y-%m-%dT%H:%M}")
    place(tmp_path, "a", verdict("FAIL", run), under=run)
    (one,) = judged(tmp_path)[0].due
    assert (one.verdict, one.proved, one.failed is not None) == ("FAIL", hours > 0, True)


def test_a_fail_of_long_ago_is_read_where_signers_are_named(tmp_path: Path) -> None:
    """The unsigned PASS after it does not count, so it is not the last that is looked at."""
    runs(tmp_path, "FAIL PASS" + 9 * " UNJUDGED")
    (tmp_path / "signers").write_text("")
    found = verdicts.collect([tmp_path], NOW, NOW - FRESH, tmp_path / "signers")
    assert night.judge(found, ["a"], NOW, FRESH, signed=True).due[0].verdict == "FAIL"
    assert len(found.verdicts["a"]) == 11
    assert judged(tmp_path)[0].due[0].verdict == "UNJUDGED", "without signers it ended it"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("TORN PASS", ("PASS", True)),
        ("TORN FAIL", ("FAIL", True)),
        ("TORN FAIL UNJUDGED", ("FAIL", True)),
        ("PASS TORN FAIL", ("FAIL", True)),
        ("TORN UNJUDGED", ("UNJUDGED", False)),
        ("PASS TORN UNJUDGED", ("UNJUDGED", False)),
        ("FAIL TORN PASS/part", ("FAIL", False)),
        ("TORN PASS/part", ("UNJUDGED", False)),
    ],
)
def test_a_torn_run_counts_until_a_newer_verdict_decides(
    tmp_path: Path, history: str, expected: tuple[VerdictWord, bool]
) -> None:
    runs(tmp_path, history)
    for file in tmp_path.rglob("verdict.json"):
        if file.read_bytes() == b"{":
            os.utime(file, (0, 0))
    found, _ = judged(tmp_path)
    assert (found.due[0].verdict, found.due[0].proved) == expected
    assert bool(found.troubles) != expected[1]


def test_a_torn_run_that_is_dated_before_a_pass_and_was_written_after_it(tmp_path: Path) -> None:
    """The clock was set back: the torn verdict may be the newest, and a FAIL."""
    runs(tmp_path, "TORN PASS")
    (torn,) = (one for one in tmp_path.rglob("verdict.json") if one.read_bytes() == b"{")
    for minutes, expected in ((59, "PASS"), (61, "UNJUDGED")):
        at = (NOW + timedelta(minutes=minutes)).timestamp()
        os.utime(torn, (at, at))
        assert word(judged(tmp_path)[0], "a") == expected


@pytest.mark.parametrize("newer", ["ahead", "unsigned"])
def test_what_does_not_count_makes_no_torn_run_count_less(tmp_path: Path, newer: str) -> None:
    hold(tmp_path, "PASS", -2 if newer == "ahead" else 0.1)
    torn = tmp_path / "a" / run_id("2026-11-26T01:00") / "verdict.json"
    _write(torn, b"{")
    os.utime(torn, (0, 0))
    (tmp_path / "signers").write_text("")
    signers = None if newer == "ahead" else tmp_path / "signers"
    found = verdicts.collect([tmp_path], NOW, NOW - FRESH, signers)
    assert [one.message.code for one in found.troubles] == ["fleet_no_verdict"]


def test_a_changed_verdict_is_named_beside_a_newer_pass_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = run_id("2026-11-25T20:00")
    path = place(tmp_path, "a", verdict("FAIL", earlier), under=earlier)
    for name in (signature.STATEMENT, signature.SIGNATURE):
        (path.parent / name).write_bytes(b"x")

    monkeypatch.setattr(
        signature,
        "verify_verdict",
        raising(signature.SignatureError("evidence_of_another_run", run=earlier)),
    )
    place(tmp_path, "a", under=LAST_NIGHT)
    found, _ = judged(tmp_path)
    assert [one.message.code for one in found.troubles] == ["fleet_altered"]


def test_a_file_that_is_none_counts_until_a_newer_verdict(tmp_path: Path) -> None:
    earlier = run_id("2026-11-25T20:00")
    (tmp_path / "a" / earlier / "verdict.json").mkdir(parents=True)
    os.utime(tmp_path / "a" / earlier / "verdict.json", (0, 0))
    found, _ = judged(tmp_path)
    assert [one.message.code for one in found.troubles] == ["fleet_unread"]
    place(tmp_path, "a", under=LAST_NIGHT)
    assert word(judged(tmp_path)[0], "a") == "PASS"


def hold(folder: Path, word: VerdictWord, days: float, *, alone: bool = False) -> None:
    """A run of machine a, some days before NOW, in a folder for it or `alone` in the machine's."""
    at = NOW - timedelta(days=days)
    run = run_id(f"{at:%Y-%m-%dT%H:%M}")
    place(folder, "a", verdict(word, run), under="" if alone else run, written=at)


def test_a_fail_of_long_ago_is_read_beside_an_older_pass(tmp_path: Path) -> None:
    """The PASS that lies beside the folders of the runs is older than the FAIL."""
    for word_, days in (("FAIL", 20), ("UNJUDGED", 0.2)):
        hold(tmp_path, word_, days)  # type: ignore[arg-type]
    hold(tmp_path, "PASS", 60, alone=True)
    assert word(judged(tmp_path)[0], "a") == "FAIL"


def test_a_fail_of_long_ago_is_read_whatever_the_order_of_folders(tmp_path: Path) -> None:
    hold(tmp_path / "one", "FAIL", 20)
    hold(tmp_path / "one", "UNJUDGED", 10)
    hold(tmp_path / "two", "PASS", 60)
    hold(tmp_path / "two", "UNJUDGED", 0.2)
    for folders in (("one", "two"), ("two", "one")):
        found, _ = judged(*(tmp_path / name for name in folders))
        assert word(found, "a") == "FAIL"


def test_a_pass_of_the_future_hides_no_fail_of_long_ago(tmp_path: Path) -> None:
    """The clock of the file's time is as far ahead as that of the machine."""
    hold(tmp_path, "FAIL", 20)
    hold(tmp_path, "PASS", -2)
    assert word(judged(tmp_path)[0], "a") == "FAIL"


def test_an_unsigned_pass_ends_no_fail_in_the_table_either(tmp_path: Path) -> None:
    runs(tmp_path, "FAIL PASS")
    found = verdicts.collect([tmp_path], NOW, NOW - FRESH)
    failed, passed = sorted(found.verdicts["a"], key=lambda one: one.run_id)
    found = replace(found, verdicts={"a": (replace(failed, signer="key"), passed)})
    judged_ = night.judge(found, None, NOW, FRESH, signed=True)
    assert (judged_.due[0].verdict, judged_.due[0].proved) == ("FAIL", True)
    rows = [row for table in night.tables(found, judged_, {}, NOW).values() for row in table.rows]
    assert {row.run_id: row.verdict for row in rows}.get(LAST_NIGHT, "UNJUDGED") == "UNJUDGED"
    assert "FAIL" in {row.verdict for row in rows}


def test_a_fail_stays_in_its_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    evening = run_id("2026-11-25T20:00")
    place(tmp_path, "a", verdict("FAIL", evening, values=(1.0,)), under=evening)
    place(tmp_path, "a", verdict("UNJUDGED", values=(2.0,)), under=LAST_NIGHT)
    found, collection = judged(tmp_path)
    ((_, table),) = night.tables(collection, found, {}, NOW).items()
    assert [(row.verdict, row.run_id) for row in table.rows] == [("FAIL", evening)]
    newer = place(tmp_path / "later", "a", verdict("UNJUDGED", values=(2.0,)))
    after, collected = judged(newer.parent.parent)
    ((_, update),) = night.tables(collected, after, {}, NOW).items()
    for one, two in ((table, update), (update, table)):
        assert night.merge(one, two).rows == table.rows


def test_a_machine_of_another_fleet_does_not_count(tmp_path: Path) -> None:
    place(tmp_path, "a")
    place(tmp_path, "stranger", verdict("FAIL"))
    found, _ = judged(tmp_path, due_=("a",))
    assert (found.verdict, [one.machine for one in found.others]) == ("PASS", ["stranger"])


def test_nothing_due_is_no_pass(tmp_path: Path) -> None:
    found, _ = judged(tmp_path)
    assert (found.verdict, found.not_passed) == ("UNJUDGED", 1.0)
    assert [words.message(one.message) for one in found.troubles] == [
        f"{tmp_path} holds no folder of a machine"
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu-01\ngpu-02\n", ("gpu-01", "gpu-02")),
        ("# rack 1\n\n gpu-02 \r\ngpu-01\ngpu-02\n", ("gpu-02", "gpu-01")),
        ("node/gpu-01\nnode/gpu-02\n", ("gpu-01", "gpu-02")),
    ],
)
def test_a_list_of_due_machines(text: str, names: tuple[str, ...]) -> None:
    assert due.names(text, "due.txt") == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "due.txt names no machine"),
        ("# none\n", "due.txt names no machine"),
        ("a\ngpu-[01-08]\n", "due.txt, line 2: gpu-[01-08] is no name of a machine"),
        ("a,b\n", "line 1"),
        ("NODELIST NODES\n", "line 1"),
        ("a\x1b[31mb\x07\n", r"line 1: ab\x07 is no name"),
    ],
)
def test_a_list_that_is_none(text: str, said: str) -> None:
    with pytest.raises(WordedUserError) as error:
        due.names(text, "due.txt")
    assert said in str(error.value)
    assert str(error.value).isprintable()


# --- bad input: one sentence each, the rest goes on ---


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


NOW_SCHEMA, NEXT_SCHEMA = (b'"schema":%d' % number for number in (SCHEMA, SCHEMA + 1))


def _future(folder: Path) -> None:
    made = msgspec.json.encode(verdict()).replace(NOW_SCHEMA, NEXT_SCHEMA + b',"unheard_of":[]')
    _write(folder / "bad/verdict.json", made)


def _bomb(folder: Path) -> None:
    most = regular_file.SMALL_RECORD
    _write(folder / "bad/verdict.json.gz", gzip.compress(b" " * (most + 1)))


def _huge(folder: Path) -> None:
    _write(folder / "bad/verdict.json", b"")
    os.truncate(folder / "bad/verdict.json", regular_file.SMALL_RECORD + 1)


def _loop(folder: Path) -> None:
    (folder / "bad").mkdir()
    (folder / "bad/verdict.json").symlink_to("verdict.json")


def _folder_loop(folder: Path) -> None:
    (folder / "bad").symlink_to("bad")


def _pipe(folder: Path) -> None:
    (folder / "bad").mkdir()
    os.mkfifo(folder / "bad/verdict.json")


def _torn(folder: Path) -> None:
    _write(folder / "bad/verdict.json", msgspec.json.encode(verdict())[:-40])


def _torn_gzip(folder: Path) -> None:
    content = gzip.compress(msgspec.json.encode(verdict()))
    _write(folder / "bad/verdict.json.gz", content[:-9])


def _changed(**changes: object) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        place(folder, "bad", verdict("PASS", **changes))

    return made


def _with_check(**values: object) -> Callable[[Path], None]:
    (check,) = verdict("PASS").checks
    return _changed(checks=(msgspec.structs.replace(check, **values),))


def _with_figure(**values: object) -> Callable[[Path], None]:
    (figure,) = verdict("PASS").checks[0].measurements
    return _with_check(measurements=(msgspec.structs.replace(figure, **values),))


def _way(folder: Path) -> None:
    made = msgspec.json.encode(verdict("PASS")).replace(b'"gpu0"', b'"gpu0->gpu1->gpu2"')
    _write(folder / "bad/verdict.json", made)


@dataclass(frozen=True)
class Bad:
    make: Callable[[Path], object]
    said: str


BAD = {
    "no run": Bad(lambda folder: (folder / "bad/notes").mkdir(parents=True), "holds no run"),
    "torn": Bad(_torn, "is no verdict of rigproof"),
    "torn gzip": Bad(_torn_gzip, "no whole gzip file"),
    "no gzip": Bad(lambda folder: _write(folder / "bad/verdict.json.gz", b"{}"), "gzip"),
    "not JSON": Bad(lambda folder: _write(folder / "bad/verdict.json", b"\xff\x00"), "no verdict"),
    "empty": Bad(lambda folder: _write(folder / "bad/verdict.json", b""), "no verdict"),
    "deep": Bad(lambda folder: _write(folder / "bad/verdict.json", b"[" * 100_000), "no verdict"),
    "a schema from the future": Bad(
        _future, f"format {SCHEMA + 1}, newer than this rigproof reads ({SCHEMA})"
    ),
    "an old schema": Bad(
        lambda folder: _write(folder / "bad/verdict.json", b'{"schema":4}'),
        f"format 4, older than this rigproof reads ({SCHEMA})",
    ),
    "a PASS with the exit code of a FAIL": Bad(_changed(exit_code=1), "contradicts itself"),
    "a PASS that has violations": Bad(
        _changed(violations=verdict("FAIL").violations), "contradicts itself"
    ),
    "a PASS of no checks": Bad(_changed(checks=()), "contradicts itself"),
    "a PASS of no scope": Bad(_changed(scope=msgspec.UNSET), "contradicts itself"),
    "a PASS of a night that was skipped": Bad(
        _changed(skipped=Skipped(("in use",), 1, 7)), "contradicts itself"
    ),
    "a PASS with a check that failed": Bad(_with_check(outcome="fail"), "rate[bf16] did not pass"),
    "a PASS with a value outside": Bad(_with_figure(value=0.4), "rate[bf16] did not pass"),
    "a PASS without a value": Bad(_with_figure(value=msgspec.UNSET), "rate[bf16] did not pass"),
    "a component that is none": Bad(_way, "a path has two ends"),
    "huge": Bad(_huge, "at most 16 MiB are read"),
    "a bomb": Bad(_bomb, "unpacks to more than 16 MiB"),
    "a loop of links": Bad(_loop, "cannot be read"),
    "a folder that is a loop": Bad(_folder_loop, "cannot be read"),
    "a named pipe": Bad(_pipe, "it is a named pipe"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_and_the_rest_goes_on(tmp_path: Path, name: str) -> None:
    place(tmp_path, "good")
    BAD[name].make(tmp_path)
    found, _ = judged(tmp_path, due_=("bad", "good"))
    assert (word(found, "good"), word(found, "bad")) == ("PASS", "UNJUDGED")
    texts = [words.message(one.message) for one in found.troubles]
    assert len(texts) == 1
    assert BAD[name].said in texts[0]
    assert str(tmp_path / "bad") in texts[0]
    assert found.verdict == "UNJUDGED"


FAILED = msgspec.json.encode(verdict("FAIL"))


@pytest.mark.parametrize(
    "content",
    [
        FAILED.replace(NOW_SCHEMA, b'"schema":4'),
        FAILED.replace(NOW_SCHEMA, NEXT_SCHEMA),
        FAILED.replace(b'"exit_code":1', b'"exit_code":0'),
        FAILED[:90],
        msgspec.json.format(FAILED)[:150],
    ],
)
@pytest.mark.parametrize("newer", [None, "UNJUDGED", "PASS"])
@pytest.mark.parametrize("under", ["", run_id("2026-11-25T20:00")])
def test_what_begins_as_a_fail_is_one_whatever_its_rest(
    tmp_path: Path, content: bytes, newer: VerdictWord | None, under: str
) -> None:
    """An upgrade puts no failed machine back to work, nor does a torn copy.

    Nothing says what failed, so no PASS shows that it is gone.
    """
    earlier = run_id("2026-11-25T20:00")
    made = content.replace(LAST_NIGHT.encode(), earlier.encode())
    _write(tmp_path / "a" / under / "verdict.json", made)
    os.utime(tmp_path / "a" / under / "verdict.json", (NOW.timestamp(), NOW.timestamp()))
    if newer:
        place(tmp_path, "a", verdict(newer), under=LAST_NIGHT)
    found, _ = judged(tmp_path)
    in_doubt = not (newer == "PASS" and under)  # else the torn file is older than a PASS
    assert (word(found, "a"), standing(found, "a").proved) == ("FAIL", not in_doubt)
    assert bool(found.troubles) == in_doubt


@pytest.mark.parametrize(
    "content",
    [
        FAILED[:60],
        FAILED.replace(LAST_NIGHT.encode(), b"2026-02-31T01-00-00Z-0001")[:-1],
        FAILED.replace(LAST_NIGHT.encode(), run_id("2026-11-25T20:00").encode())[:-1],
        b"[" + FAILED,
    ],
)
def test_what_does_not_begin_as_the_fail_of_its_run_is_in_doubt(
    tmp_path: Path, content: bytes
) -> None:
    _write(tmp_path / "a" / LAST_NIGHT / "verdict.json", content)
    found, _ = judged(tmp_path)
    assert (word(found, "a"), len(found.troubles)) == ("UNJUDGED", 1)


def test_names_with_newlines_are_escaped(tmp_path: Path) -> None:
    place(tmp_path, "good")
    place(tmp_path, "a\nFAIL b\x1b[31m")
    found, _ = judged(tmp_path)
    assert [one.machine for one in found.due] == ["good"]
    (texts,) = (words.message(one.message) for one in found.troubles)
    assert r"a\nFAIL b\x1b[31m is no name of a machine" in texts
    assert texts.isprintable()


def test_folders_that_are_not_there_or_one_too_deep(tmp_path: Path) -> None:
    place(tmp_path, "a")
    found, _ = judged(tmp_path, tmp_path / "gone", tmp_path / "a")
    texts = [words.message(one.message) for one in found.troubles]
    assert len(texts) == 2
    assert texts[0] == f"{tmp_path}/gone cannot be read (No such file or directory)"
    assert texts[1].startswith(f"{tmp_path}/a/verdict.json belongs to no machine")
    assert word(found, "a") == "PASS"


def test_a_file_that_vanishes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, "a")
    gone = place(tmp_path, "b")
    whole = verdicts.regular_file.read

    def read(path: Path, most: int) -> bytes:
        gone.unlink(missing_ok=True)
        return whole(path, most)

    monkeypatch.setattr(verdicts.regular_file, "read", read)
    found, _ = judged(tmp_path)
    assert (word(found, "a"), word(found, "b")) == ("PASS", "UNJUDGED")
    assert "b" in reason(found, "b")


def test_a_verdict_that_is_there_twice_is_one(tmp_path: Path) -> None:
    file = verdict("PASS")
    place(tmp_path, "a", file)
    place(tmp_path, "a", file, packed=True)
    found, collection = judged(tmp_path)
    assert (word(found, "a"), len(collection.verdicts["a"])) == ("PASS", 1)


def test_a_link_to_nothing_and_drafts_of_copiers_are_no_verdicts(tmp_path: Path) -> None:
    place(tmp_path, "a")
    (tmp_path / "a/.verdict.json.x7").write_bytes(b"{")
    (tmp_path / "a/latest").symlink_to("gone")
    found, _ = judged(tmp_path)
    assert (word(found, "a"), found.troubles) == ("PASS", ())


def test_verdicts_that_arrive_while_others_are_read(tmp_path: Path) -> None:
    """What was found is read whole; what comes later is taken by the next collection."""
    fleet, names = tmp_path / "fleet", [f"m{number:03}" for number in range(200)]
    fleet.mkdir()
    place(fleet, names[0])

    def arrive() -> None:
        for name in names[1:]:
            place(tmp_path / "drafts", name)
            (tmp_path / "drafts" / name).rename(fleet / name)

    arriving = threading.Thread(target=arrive)
    arriving.start()
    while arriving.is_alive():
        found, _ = judged(fleet)
        assert {one.verdict for one in found.due} == {"PASS"}
        assert found.troubles == ()
    arriving.join()
    assert len(judged(fleet)[0].due) == len(names)


# --- whose verdict, and of when ---

EVENING, TOMORROW = run_id("2026-11-25T22:00"), run_id("2026-11-27T01:00")
AT_ONCE = run_id("2026-11-26T00:58")


@each(
    "files, expected, said",
    [
        ([("a", verdict(scope="partial"))], {"a": "UNJUDGED"}, {"a": "is partial"}),
        (
            [("a", verdict("FAIL"))],
            {"a": "FAIL"},
            {"a": "gemm.rate[bf16]: measured 1, limit >= 600"},
        ),
        # They were tested at once, which one machine with replaced GPUs cannot be.
        (
            [("a", verdict()), ("a", verdict("PASS", AT_ONCE, serial="GPU-2"))],
            {"a": "UNJUDGED"},
            {"a": "two machines have this name"},
        ),
        (
            [("a", verdict()), ("a", verdict("FAIL", AT_ONCE, serial="GPU-2"))],
            {"a": "FAIL"},
            {"a": "two machines have this name"},
        ),
        ([("a", verdict("FAIL", EVENING, machine_id="x")), ("a", verdict())], {"a": "PASS"}, {}),
        (
            [
                ("a", verdict()),
                ("a", verdict("PASS", run_id("2026-11-20T01:00"), machine_id="x")),
            ],
            {"a": "PASS"},
            {},
        ),
        (
            [("a", verdict()), ("b", verdict(notes=("worded again",)))],
            {"a": "UNJUDGED", "b": "UNJUDGED"},
            {"a": "b has the very same verdict"},
        ),
        (
            [("a", verdict()), ("b", verdict()), ("c", verdict(serial="c", machine_id="c"))],
            {"a": "UNJUDGED", "b": "UNJUDGED", "c": "PASS"},
            {"b": "a has the very same verdict"},
        ),
        # Whether it is a copied disk, or one machine with other GPUs, is open.
        (
            [("a", verdict("PASS", EVENING, serial="a")), ("b", verdict(serial="b"))],
            {"a": "UNJUDGED", "b": "PASS"},
            {"a": "may be this machine under another name"},
        ),
        (
            [("a", verdict("PASS", TOMORROW))],
            {"a": "UNJUDGED"},
            {"a": "correct the machine's clock"},
        ),
        ([("a", verdict("FAIL", TOMORROW))], {"a": "FAIL"}, {"a": "correct the machine's clock"}),
        *(
            ([("a", verdict("PASS", run))], {"a": "UNJUDGED"}, {"a": run})
            for run in (
                *("run-1", "2026-02-31T01-00-00Z-0001"),
                *("0001-01-01T00-00-00Z-0001", "9999-12-31T23-59-59Z-0"),
            )
        ),
    ],
    told=[
        *("a partial PASS is no acceptance", "a failure says its first finding"),
        *("copied disks and one name", "copied disks and one name, of which one is FAIL"),
        *("installed anew, the same GPUs", "installed anew long ago"),
        *("the very same run under two names", "one verdict under two names"),
        *("one machine id with other GPUs under two names", "a clock that is a day ahead"),
        *("a FAIL of a clock that is a day ahead", "no date", "no such day"),
        *("the first of all days", "the last of all days"),
    ],
)
def test_the_word_on_each_machine_and_why(
    tmp_path: Path,
    files: list[tuple[str, File]],
    expected: dict[str, VerdictWord],
    said: dict[str, str],
) -> None:
    for number, (name, file) in enumerate(files):
        place(tmp_path, name, file, under=str(number))
    found, _ = judged(tmp_path)
    assert {one.machine: one.verdict for one in found.due} == expected
    assert all(text in reason(found, machine) for machine, text in said.items())


@pytest.mark.parametrize("other", ["PASS", "FAIL"])
def test_two_machines_of_one_name(tmp_path: Path, other: VerdictWord) -> None:
    earlier = run_id("2026-11-25T22:00")
    place(tmp_path / "one", "a", verdict("PASS"))
    place(tmp_path / "two", "a", verdict(other, earlier, machine_id="id-2", serial="GPU-2"))
    found, _ = judged(tmp_path / "one", tmp_path / "two")
    assert "two machines have this name" in reason(found, "a")
    assert word(found, "a") == ("FAIL" if other == "FAIL" else "UNJUDGED")


@pytest.mark.parametrize("before", ["PASS", "FAIL"])
def test_a_machine_whose_gpus_were_all_replaced_is_one(tmp_path: Path, before: VerdictWord) -> None:
    earlier = run_id("2026-11-25T22:00")
    place(tmp_path, "a", verdict(before, earlier, serial="GPU-2"), under="1")
    place(tmp_path, "a", verdict("PASS"), under="2")
    found, _ = judged(tmp_path)
    assert word(found, "a") == "PASS"
    assert [words.message(one) for one in found.remarks] == [
        f"a: all GPUs of run {LAST_NIGHT} are others than those of run {earlier}, so it counts as "
        "one machine whose GPUs were replaced"
    ]


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("PASS", "PASS", {"long": "UNJUDGED", "short": "PASS"}),
        ("PASS", "FAIL", {"long": "UNJUDGED", "short": "FAIL"}),
        ("FAIL", "PASS", {"long": "UNJUDGED", "short": "PASS"}),
        ("FAIL", "UNJUDGED", {"long": "FAIL", "short": "FAIL"}),
    ],
)
def test_a_machine_with_two_names_counts_for_the_newest(
    tmp_path: Path, older: VerdictWord, newer: VerdictWord, expected: dict[str, VerdictWord]
) -> None:
    place(tmp_path, "long", verdict(older, run_id("2026-11-25T22:00")))
    place(tmp_path, "short", verdict(newer))
    found, collection = judged(tmp_path, due_=("long", "short"))
    assert {one.machine: one.verdict for one in found.due} == expected
    assert reason(found, "long").startswith("this machine was tested later under the name short")
    ((_, kept),) = night.tables(collection, found, {}, NOW).items()
    stands = (older, newer) == ("FAIL", "UNJUDGED")
    short = run_id("2026-11-25T22:00") if stands else LAST_NIGHT
    assert {row.machine: row.run_id for row in kept.rows} == {"long": None, "short": short}


def test_what_does_not_count_ends_no_fail_of_a_machine_with_two_names(tmp_path: Path) -> None:
    """A PASS of the future, and an unsigned one where signers are named."""
    place(tmp_path, "long", verdict("FAIL", run_id("2026-11-25T22:00")))
    place(tmp_path, "short", verdict("PASS"))
    assert word(judged(tmp_path)[0], "long") == "UNJUDGED"
    assert word(judged(tmp_path, signed=True)[0], "long") == "FAIL"
    place(tmp_path, "short", verdict("PASS", run_id("2026-11-27T01:00")))
    assert word(judged(tmp_path)[0], "long") == "FAIL"


def test_a_fail_that_is_not_fresh_ends_by_a_pass_under_another_name(tmp_path: Path) -> None:
    place(tmp_path, "long", verdict("FAIL", run_id("2026-11-20T22:00")))
    assert word(judged(tmp_path)[0], "long") == "FAIL"
    place(tmp_path, "short", verdict("PASS"))
    assert word(judged(tmp_path)[0], "long") == "UNJUDGED"


def test_a_gpu_that_is_in_another_machine_by_now(tmp_path: Path) -> None:
    """Machine a was not tested after one of its two GPUs was put into b."""

    def with_gpus(*serials: str, **more: object) -> File:
        made = verdict("PASS", values=(1.0,) * len(serials), **more)
        (check,) = made.checks
        figures = tuple(
            msgspec.structs.replace(one, serial=serial)
            for one, serial in zip(check.measurements, serials, strict=True)
        )
        return msgspec.structs.replace(
            made, checks=(msgspec.structs.replace(check, measurements=figures),)
        )

    earlier = run_id("2026-11-25T22:00")
    place(tmp_path, "a", with_gpus("G1", "G2", run=earlier, machine_id="a"))
    place(tmp_path, "b", with_gpus("G2", "G3", machine_id="b"))
    found, _ = judged(tmp_path)
    assert (word(found, "a"), word(found, "b")) == ("UNJUDGED", "PASS")
    assert reason(found, "a").startswith("b had G2 of this verdict later")


def test_a_copied_machine_id_identifies_no_machine(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        place(tmp_path, name, verdict("PASS", run_id(f"2026-11-26T01:0{number}"), serial=name))
    found, _ = judged(tmp_path)
    assert found.verdict == "PASS"
    assert [words.message(one) for one in found.remarks] == [
        "machine id id-1 is on several machines (a, b, c), so it does not identify them: give each "
        "an id of its own (`rm /etc/machine-id; systemd-machine-id-setup`)"
    ]


def test_boards_with_serials_distinguish_copied_disks(tmp_path: Path) -> None:
    for name, hour in (("a", "20"), ("b", "23")):
        made = verdict("PASS", run_id(f"2026-11-25T{hour}:00"), serial=name)
        facts = {**made.provenance, "board_serial": f"S-{name}"}
        place(tmp_path, name, msgspec.structs.replace(made, provenance=facts))
    found, _ = judged(tmp_path)
    assert found.verdict == "PASS"


def test_a_clock_that_was_ahead_is_found_a_day_later_too(tmp_path: Path) -> None:
    place(tmp_path, "a", verdict("PASS"), written=NOW - timedelta(days=1))
    found, _ = judged(tmp_path)
    assert "correct the machine's clock" in reason(found, "a")


def test_a_clock_that_is_a_day_behind_is_stale(tmp_path: Path) -> None:
    place(tmp_path, "a", verdict("PASS", run_id("2026-11-25T00:30")))
    assert standing(judged(tmp_path)[0], "a").missing


@pytest.mark.parametrize("later", ["FAIL", "UNJUDGED"])
def test_runs_out_of_order_leave_no_pass(tmp_path: Path, later: VerdictWord) -> None:
    """The clock was set back: a run that is dated before the PASS was written after it."""
    earlier = run_id("2026-11-25T20:00")
    place(tmp_path, "a", verdict("PASS"), under="1", written=NOW - timedelta(hours=5))
    place(tmp_path, "a", verdict(later, earlier), under="2", written=NOW)
    found, _ = judged(tmp_path)
    assert word(found, "a") == later
    assert "was written after" in reason(found, "a")


@pytest.mark.parametrize("seconds", [-(10**10), 0, 10**11])
def test_a_file_of_an_impossible_time_ends_nothing(tmp_path: Path, seconds: int) -> None:
    path = place(tmp_path, "a")
    try:
        os.utime(path, (seconds, seconds))
    except OSError:
        pytest.skip("this file system keeps no such time")
    found, collection = judged(tmp_path)
    assert word(found, "a") == ("UNJUDGED" if seconds <= 0 else "PASS")
    assert night.tables(collection, found, {}, NOW)


# --- signatures ---


def test_an_unsigned_verdict_is_marked_and_counts_only_where_no_signer_is_named(
    tmp_path: Path,
) -> None:
    place(tmp_path, "a")
    place(tmp_path, "b", verdict("FAIL", serial="other"))
    found, collection = judged(tmp_path)
    assert [one.signer for one in collection.verdicts["a"]] == [None]
    assert word(found, "a") == "PASS"
    strict, _ = judged(tmp_path, signed=True)
    assert (word(strict, "a"), word(strict, "b")) == ("UNJUDGED", "FAIL")


@pytest.mark.tools
def test_signed_verdicts_are_checked(tmp_path: Path) -> None:
    key, fleet = made_key(tmp_path / "key"), tmp_path / "fleet"
    for name in ("sound", "altered", "packed", "elsewhere"):
        file = verdict("PASS", serial=name)
        path = place(fleet, name, file, packed=name == "packed")
        machine = "id-2" if name == "elsewhere" else "id-1"
        sign(path, msgspec.json.encode(file), key, machine)
    place(fleet, "altered", verdict("PASS", values=(701.0,)))
    signers = key.with_suffix(".pub")
    found = verdicts.collect([fleet], NOW, NOW - FRESH, signers)
    standings = night.judge(found, None, NOW, FRESH, signed=True)
    got = {one.machine: one.verdict for one in standings.due}
    assert got == {
        "sound": "PASS",
        "packed": "PASS",
        "altered": "UNJUDGED",
        "elsewhere": "UNJUDGED",
    }
    assert "it was changed or replaced" in reason(standings, "altered")
    assert found.verdicts["sound"][0].signer == "key.pub"
    other = made_key(tmp_path / "other").with_suffix(".pub")
    refused = night.judge(
        verdicts.collect([fleet], NOW, NOW - FRESH, other), None, NOW, FRESH, signed=True
    )
    assert {one.verdict for one in refused.due} == {"UNJUDGED"}


@pytest.mark.parametrize("held", ["PASS", "FAIL"])
def test_without_ssh_keygen_a_signed_verdict_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: VerdictWord
) -> None:
    path = place(tmp_path, "a", verdict(held))
    for name in (signature.STATEMENT, signature.SIGNATURE):
        (path.parent / name).write_bytes(b"x")
    monkeypatch.setenv("PATH", str(tmp_path))
    found, _ = judged(tmp_path)
    assert word(found, "a") == "UNJUDGED"
    assert "cannot be checked" in reason(found, "a")


# --- the table ---


def test_the_table_has_nan_where_nothing_was_measured(tmp_path: Path) -> None:
    place(tmp_path, "b", verdict("PASS", values=(1.0, 2.0), serial="b"))
    place(tmp_path, "a", verdict("FAIL", values={"copy_h2d": 3.0}, serial="a"))
    found, collection = judged(tmp_path, due_=("a", "b", "c"))
    ((_, table),) = night.tables(collection, found, {"a": "too slow"}, NOW).items()
    assert [(row.machine, row.verdict, row.reason) for row in table.rows] == [
        ("a", "FAIL", "too slow"),
        ("b", "PASS", None),
        ("c", "UNJUDGED", None),
    ]
    assert [(one.measurement, one.component) for one in table.series] == [
        ("copy_h2d", Gpu(0)),
        (RATE, Gpu(0)),
        (RATE, Gpu(1)),
    ]
    nan = np.nan
    np.testing.assert_array_equal(table.values, [[3, nan, nan], [nan, 1, 2], [nan, nan, nan]])
    assert dict(table.rows[1].groups)["gpu_model"] == "NVIDIA H200"


def test_each_verdict_is_of_its_own_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    before = run_id("2026-11-25T03:30")
    place(tmp_path, "a", verdict("FAIL", before, values=(1.0,)), under=before)
    place(tmp_path, "a", verdict("PASS", values=(2.0,)), under=LAST_NIGHT)
    found, collection = judged(tmp_path)
    made = night.tables(collection, found, {}, NOW)
    assert {night_: table.rows[0].verdict for night_, table in made.items()} == {
        "2026-11-24": "FAIL",
        "2026-11-25": "PASS",
    }
    assert [table.values.tolist() for table in made.values()] == [[[1.0]], [[2.0]]]


def test_a_doubted_machine_has_a_row_without_values(tmp_path: Path) -> None:
    place(tmp_path, "a", verdict("PASS", run_id("2026-11-27T01:00")))
    found, collection = judged(tmp_path)
    ((_, table),) = night.tables(collection, found, {}, NOW).items()
    assert [(row.verdict, row.run_id) for row in table.rows] == [("UNJUDGED", None)]
    assert table.values.shape == (1, 0)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(("word", "said"), [("PASS", "UNJUDGED"), ("FAIL", "FAIL")])
def test_a_run_that_was_cut_off_is_no_pass(
    tmp_path: Path, word: VerdictWord, said: str, nested: bool
) -> None:
    """The machine died in the run after its PASS: the folder of that run has no verdict."""
    earlier, later = run_id("2026-11-26T01:00"), run_id("2026-11-26T05:00")
    place(tmp_path, "a", verdict(word, earlier), under=earlier if nested else "")
    (tmp_path / "a" / later).mkdir()
    found, _ = judged(tmp_path)
    (standing,) = found.due
    assert standing.verdict == said
    assert "is the newest run and has no verdict" in words.text(standing.reason or "")
    (tmp_path / "a" / later).rmdir()
    (tmp_path / "a" / run_id("2026-11-25T01:00")).mkdir()  # an older one changes nothing
    assert judged(tmp_path)[0].due[0].verdict == word


def limits(version: str, digest: str = "1" * 64) -> dict[str, str]:
    """The provenance of a machine that was judged by these limits."""
    known = {"host": "box", "gpu_model": "NVIDIA H200"}
    return {**known, "limits": version, "limits_digest": digest}


def of_limits(folder: Path, machines: Mapping[str, Mapping[str, str] | None]) -> None:
    for name, facts in machines.items():
        file = verdict(serial=f"GPU-{name}", machine_id=f"id-{name}")
        known = file.provenance if facts is None else {**facts, "machine_id": f"id-{name}"}
        place(folder, name, msgspec.structs.replace(file, provenance=dict(known)))


def test_machines_that_were_judged_by_other_limits_are_told(tmp_path: Path) -> None:
    """The same version with a sheet of the site is other limits too; an old verdict tells none."""
    new, own = limits("2026-12-01.1", "2" * 64), limits("2026-11-27.1", "3" * 64)
    usual = limits("2026-11-27.1")
    of_limits(tmp_path, {"a": usual, "b": usual, "c": new, "d": own, "old": None})
    found, _ = judged(tmp_path)
    assert found.verdict == "PASS"
    end = (
        "their verdicts do not mean the same; install one version and the same sheets everywhere "
        "(`limits` in verdict.json)"
    )
    assert [words.message(one) for one in found.remarks] == [
        "d: judged by the limits 2026-11-27.1 333333333333, and 2 of the other machines by "
        f"2026-11-27.1 111111111111: {end}",
        "c: judged by the limits 2026-12-01.1 222222222222, and 2 of the other machines by "
        f"2026-11-27.1 111111111111: {end}",
    ]
    some, _ = judged(tmp_path, due_=("a", "b", "old"))
    assert some.remarks == ()


def test_the_verdict_of_another_run_in_a_folder_proves_nothing_of_that_run(tmp_path: Path) -> None:
    """As Slurm's reader has it: the run that the folder is named for has no verdict."""
    newer, newest = run_id("2026-11-26T03:00"), run_id("2026-11-26T05:00")
    own = {"serial": "GPU-a", "machine_id": "id-a"}
    place(tmp_path, "a", verdict(**own), under=LAST_NIGHT)
    place(tmp_path, "a", verdict(**own), under=newer)
    found, collected = judged(tmp_path)
    assert word(found, "a") == "UNJUDGED"
    assert [one.message.code for one in collected.troubles] == ["fleet_of_another_run"]
    assert LAST_NIGHT in reason(found, "a")
    place(tmp_path, "a", verdict(run=newest, **own), under=newest)  # a newer PASS settles it
    found, collected = judged(tmp_path)
    assert (word(found, "a"), collected.troubles) == ("PASS", ())


def test_a_fail_in_the_folder_of_another_run_stays_a_fail(tmp_path: Path) -> None:
    place(tmp_path, "a", verdict("FAIL"), under=run_id("2026-11-26T03:00"))
    found, _ = judged(tmp_path)
    assert word(found, "a") == "FAIL"


def test_a_run_folder_that_nobody_may_enter_leaves_the_other_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that root made under another umask: `exists` itself raises there."""
    shut, stat = tmp_path / "a" / LAST_NIGHT, Path.stat

    def refuse(path: Path, **options: bool) -> os.stat_result:
        if path.parent == shut:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    place(tmp_path, "a", under=LAST_NIGHT)
    place(tmp_path, "b", under=LAST_NIGHT)
    monkeypatch.setattr(Path, "stat", refuse)
    found, _ = judged(tmp_path)
    assert (word(found, "a"), word(found, "b")) == ("UNJUDGED", "PASS")
    assert "cannot be read (Permission denied)" in reason(found, "a")
