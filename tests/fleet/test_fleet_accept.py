"""FAILs that weaker runs leave standing, and those that somebody accepts by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import assert_refused, printed
from fleet_verdicts import LESS, Call, ago, place, rows, verdict
from keys import made_key
from known import known
from lxml import etree

from acceptance.cli import machine_test
from acceptance.core.language import ENGLISH
from acceptance.core.verdict import VerdictWord
from acceptance.fleet import acceptances, night, parquet, reader_file, verdicts
from acceptance.fleet.night import Judged, Standing
from acceptance.reports.summary import Caveat
from acceptance.reports.terminal import Terminal
from acceptance.reports.verdict_json import Bounds, Check, Figure, Row

FRESH = timedelta(hours=30)
REASON = "sold with one GPU less, order 7"


def hold(folder: Path, name: str, word: VerdictWord, hours: float, **more: Any) -> str:
    """A verdict of a machine in a fleet's folder, from some hours ago; returns its run."""
    run = ago(hours, "0a1f")[0]
    more = {"serial": name, "machine_id": name, "profile": "accept", **more}
    place(folder, name, verdict(word, run, **more), under=run, written=datetime.now(UTC))
    return run


def judge(folder: Path, **more: Any) -> Judged:
    now = datetime.now(UTC)
    signers = more.pop("signers", None)
    found = verdicts.collect([folder], now, now - FRESH, signers)
    return night.judge(found, None, now, FRESH, signed=signers is not None, **more)


def words_of(found: Judged) -> Mapping[str, VerdictWord]:
    return {one.machine: one.verdict for one in found.due}


def only(found: Judged) -> Standing:
    (one,) = found.due
    return one


# --- the incident ---


def incident(folder: Path) -> tuple[str, str]:
    """`accept` misses a GPU; `smoke` under another machine file, which declares none, passes."""

    def counted(value: float, due: float) -> Check:
        limit = Bounds("count", "declared", low=due, high=due)
        one = Figure("gpu_count", "machine", "count", "m", False, value=value, limit=limit)
        return Check("gpu.present", "present", "host-before", "pass", 0.1, (one,))

    missing = Row(
        "gpu.present",
        "gpu_count on machine: measured 1, limit = 2",
        "outside_limit",
        {},
        measurement="gpu_count",
        component="machine",
    )
    both = {"declared": msgspec.structs.replace(LESS, facts={"gpus": 2})}
    failed = hold(
        folder, "n1", "FAIL", 3, checks=(counted(1.0, 2.0),), violations=(missing,), **both
    )
    passed = hold(
        folder,
        "n1",
        "PASS",
        1,
        checks=(counted(0.0, 0.0),),
        declared=LESS,
        profile="smoke",
        caveats=(Caveat("no_gpu_declared", "no GPU declared"),),
        provenance={"machine_file": "cpu-only.toml", "machine_id": "n1"},
    )
    return failed, passed


def test_an_acceptance_ends_it_and_every_view_says_so(fleet: Call, tmp_path: Path) -> None:
    failed, passed = incident(tmp_path / "fleet")
    out = printed(fleet("collect", "fleet"), 1)
    assert any(one.startswith("FAIL n1: ") and failed in one and passed in one for one in out)
    out = printed(fleet("accept", "n1", "fleet", "--reason", f"  {REASON}\n"))
    (path,) = (tmp_path / "fleet/n1").glob("accepted-*.json")
    assert str(path.relative_to(tmp_path)) in out
    made = json.loads(path.read_text())
    assert (made["machine"], made["runs"], made["reason"]) == ("n1", [failed], REASON)
    assert "@" in made["by"]
    assert abs(datetime.now(UTC) - datetime.fromisoformat(made["at"])) < timedelta(minutes=5)
    assert path.stat().st_mode & 0o222 == 0, "it is never changed"
    assert (tmp_path / "fleet/n1/ended").read_text() == f"{failed} {path.name}\n"
    out = printed(fleet("collect", "fleet"))
    assert any(one.startswith("PASS smoke under cpu-only.toml (no GPU declared)") for one in out)
    assert any(failed in one and REASON in one for one in out)
    files = ("--junit", "j.xml", "--csv", "c.csv", "--page", "p.html", "--textfile", "m.prom")
    assert fleet("report", "fleet", *files)[0] == 0
    (row,) = rows(tmp_path / "c.csv")
    assert (row["verdict"], row["run_id"], row["profile"]) == ("PASS", passed, "smoke")
    assert (row["machine_file"], row["caveats"]) == ("cpu-only.toml", "no GPU declared")
    assert REASON in row["accepted"]
    told = {
        one.get("name"): one.get("value")
        for one in etree.parse(tmp_path / "j.xml").iterfind(".//testsuite[@name='n1']//property")
    }
    assert (told["profile"], told["machine_file"]) == ("smoke", "cpu-only.toml")
    assert told["caveats"] == "no GPU declared"
    assert REASON in told["accepted"]
    page = (tmp_path / "p.html").read_text()
    assert REASON in page
    assert "no GPU declared" in page
    assert "cpu-only.toml" in page
    metrics = (tmp_path / "m.prom").read_text()
    assert 'rigproof_fleet_accepted_fails{machine="n1"} 1' in metrics
    assert 'caveats="no GPU declared"' in metrics
    # again: there is nothing left to accept, and what is written stays
    assert fleet("accept", "n1", "fleet", "--reason", "again")[0] == 2
    assert list((tmp_path / "fleet/n1").glob("accepted-*.json")) == [path]


def test_a_newer_fail_counts_again(fleet: Call, tmp_path: Path) -> None:
    first = hold(tmp_path / "fleet", "n1", "FAIL", 5)
    assert fleet("accept", "n1", "fleet", "--reason", REASON)[0] == 0
    one = only(judge(tmp_path / "fleet"))
    assert (one.verdict, one.proved) == ("UNJUDGED", False), "it has no PASS, and is tested again"
    hold(tmp_path / "fleet", "n1", "PASS", 4, declared=LESS)
    assert only(judge(tmp_path / "fleet")).verdict == "PASS"
    newer = hold(tmp_path / "fleet", "n1", "FAIL", 3)
    hold(tmp_path / "fleet", "n1", "PASS", 2, declared=LESS)
    one = only(judge(tmp_path / "fleet"))
    assert one.verdict == "FAIL"
    assert known(one.failed).run_id == newer
    assert fleet("accept", "n1", "fleet", "--reason", "so was the other")[0] == 0
    one = only(judge(tmp_path / "fleet"))
    assert (one.verdict, [each.run for each in one.accepted]) == ("PASS", [first, newer])
    # a PASS that ends both by itself needs nobody's word
    hold(tmp_path / "fleet", "n1", "PASS", 1)
    one = only(judge(tmp_path / "fleet"))
    assert (one.verdict, one.accepted) == ("PASS", ())


@pytest.mark.parametrize("reason", ["", " ", "\n\t", "..."])
def test_no_fail_is_accepted_without_a_reason(fleet: Call, tmp_path: Path, reason: str) -> None:
    hold(tmp_path / "fleet", "n1", "FAIL", 3)
    assert_refused(fleet("accept", "n1", "fleet", "--reason", reason), 2)
    assert not list((tmp_path / "fleet/n1").glob("accepted-*"))


def test_what_cannot_be_accepted(fleet: Call, tmp_path: Path) -> None:
    hold(tmp_path / "fleet", "good", "PASS", 3)
    hold(tmp_path / "fleet", "unknown", "UNJUDGED", 3)
    hold(tmp_path / "fleet", "repaired", "FAIL", 3)
    hold(tmp_path / "fleet", "repaired", "PASS", 2)
    for name in ("good", "unknown", "repaired", "nobody"):
        code, _, err = fleet("accept", name, "fleet", "--reason", REASON)
        assert (code, err.count("\n")) == (2, 1), name
        assert name in err
    assert fleet("accept", "good", "fleet")[0] == 2
    assert not list((tmp_path / "fleet").rglob("accepted-*"))


def test_a_fail_in_doubt_can_be_accepted(fleet: Call, tmp_path: Path) -> None:
    """A torn one, whose verdict does not say what failed, and one of a clock that was ahead."""
    torn = hold(tmp_path / "fleet", "torn", "FAIL", 3)
    file = tmp_path / "fleet/torn" / torn / "verdict.json"
    file.write_bytes(file.read_bytes()[:100])
    hold(tmp_path / "fleet", "torn", "PASS", 2)
    hold(tmp_path / "fleet", "ahead", "FAIL", -5)
    assert words_of(judge(tmp_path / "fleet")) == {"torn": "FAIL", "ahead": "FAIL"}
    for name in ("torn", "ahead"):
        assert fleet("accept", name, "fleet", "--reason", REASON)[0] == 0
    assert words_of(judge(tmp_path / "fleet")) == {"torn": "PASS", "ahead": "UNJUDGED"}


# --- which FAILs stand ---


def test_each_of_several_fails_must_be_ended(tmp_path: Path) -> None:
    other = Row("storage.read", "x", "y", {}, measurement="disk_read", component="disk:sda")
    disk = Figure("disk_read", "disk:sda", "GB/s", "m", False, value=1.0)
    storage = Check("storage.read", "disks", "load", "pass", 1.0, (disk,))
    rates = verdict(serial="n1").checks
    first = hold(tmp_path, "n1", "FAIL", 6, checks=(*rates, storage), violations=(other,))
    second = hold(tmp_path, "n1", "FAIL", 5)
    passed = hold(tmp_path, "n1", "PASS", 4)
    one = only(judge(tmp_path))
    assert (one.verdict, one.ended) == ("FAIL", {second: passed})
    assert known(one.failed).run_id == first
    hold(tmp_path, "n1", "PASS", 3, checks=(*rates, storage))
    one = only(judge(tmp_path))
    assert (one.verdict, set(one.ended)) == ("PASS", {first, second})
    hold(tmp_path, "n1", "PASS", 2, checks=(storage,))
    assert only(judge(tmp_path)).verdict == "PASS", "what was ended stays so"


def test_a_fail_of_long_ago_stands_behind_a_newer_pass(tmp_path: Path) -> None:
    failed = hold(tmp_path, "n1", "FAIL", 2000)
    for hours in range(100, 1900, 100):
        hold(tmp_path, "n1", "UNJUDGED" if hours % 200 else "PASS", hours, declared=LESS)
    hold(tmp_path, "n1", "PASS", 1, declared=LESS)
    one = only(judge(tmp_path))
    assert one.verdict == "FAIL"
    assert known(one.failed).run_id == failed
    hold(tmp_path, "n1", "PASS", 1950)
    assert only(judge(tmp_path)).verdict == "PASS", "a PASS of long ago ended it"


def test_a_pass_that_changes_while_it_is_read_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(tmp_path, "n1", "FAIL", 3)
    hold(tmp_path, "n1", "PASS", 2)
    read = verdicts._content
    seen: set[Path] = set()

    def content(path: Path) -> bytes:
        again = path in seen
        seen.add(path)
        return read(path) + (b" " if again else b"")

    monkeypatch.setattr(verdicts, "_content", content)
    assert only(judge(tmp_path)).verdict == "FAIL"


def test_a_new_name_ends_no_fail(fleet: Call, tmp_path: Path) -> None:
    """The same rule, whatever the machine is called by now."""
    same = {"serial": "x", "machine_id": "x"}
    failed = hold(tmp_path / "fleet", "old", "FAIL", 3, **same)
    hold(tmp_path / "fleet", "new", "PASS", 2, declared=LESS, **same)
    found = judge(tmp_path / "fleet")
    assert words_of(found) == {"old": "FAIL", "new": "FAIL"}
    assert all(one.failed is not None and one.failed.run_id == failed for one in found.due)
    assert fleet("collect", "fleet", "--due", str(_list(tmp_path, "new")))[0] == 1
    hold(tmp_path / "fleet", "new", "PASS", 1, **same)
    assert words_of(judge(tmp_path / "fleet")) == {"old": "UNJUDGED", "new": "PASS"}


def test_a_fail_of_the_old_name_is_accepted_under_the_new_one(fleet: Call, tmp_path: Path) -> None:
    same = {"serial": "x", "machine_id": "x"}
    hold(tmp_path / "fleet", "old", "FAIL", 3, **same)
    hold(tmp_path / "fleet", "new", "PASS", 2, declared=LESS, **same)
    assert fleet("accept", "new", "fleet", "--reason", REASON)[0] == 0
    assert words_of(judge(tmp_path / "fleet")) == {"old": "FAIL", "new": "PASS"}


def _list(folder: Path, *names: str) -> Path:
    path = folder / "due"
    path.write_text("\n".join(names))
    return path


# --- kept nights ---


def test_a_fail_whose_verdict_was_removed_stands_by_the_kept_nights(
    fleet: Call, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    failed = hold(tmp_path / "fleet", "n1", "FAIL", 6)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 1
    shutil.rmtree(tmp_path / "fleet/n1" / failed)
    hold(tmp_path / "fleet", "n1", "PASS", 2)
    assert fleet("collect", "fleet")[0] == 0, "without the nights nobody knows of it"
    for _ in range(2):
        out = printed(fleet("collect", "fleet", "--out", "nights"), 1)
        assert any(failed in one for one in out if one.startswith("FAIL n1: "))
        assert fleet("report", "--nights", "nights")[0] == 1
    assert fleet("accept", "n1", "fleet", "--reason", REASON)[0] == 2
    accepted = fleet("accept", "n1", "fleet", "--reason", REASON, "--nights", "nights")
    assert (accepted[0], failed in accepted[1][0]) == (0, True)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 0
    out = printed(fleet("report", "--nights", "nights"))
    assert any(REASON in one for one in out)


def test_a_night_that_cannot_be_read_hides_no_fail(fleet: Call, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    hold(tmp_path / "fleet", "n1", "FAIL", 6)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 1
    file = min((tmp_path / "nights").glob("night-*.parquet"))  # it is another one after noon
    file.write_bytes(b"torn")
    code, out, err = fleet("collect", "fleet", "--out", "nights")
    assert (code, str(file.name) in err) == (3, True)
    assert any(one.startswith("FAIL n1: ") for one in out)


def test_kept_nights_follow_the_rule(fleet: Call, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    failed = hold(tmp_path / "fleet", "n1", "FAIL", 6)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 1
    hold(tmp_path / "fleet", "n1", "PASS", 3, declared=LESS)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 1
    assert fleet("report", "--nights", "nights")[0] == 1
    passed = hold(tmp_path / "fleet", "n1", "PASS", 2)
    assert fleet("collect", "fleet", "--out", "nights")[0] == 0
    assert fleet("report", "--nights", "nights", "--csv", "c.csv")[0] == 0
    (row,) = rows(tmp_path / "c.csv")
    assert (row["run_id"], row["profile"]) == (passed, "accept")
    # After noon the FAIL stands in the evening's file as well.
    nights = (tmp_path / "nights").glob("night-*.parquet")
    kept = [one for file in nights for one in parquet.read(file).rows]
    assert {one.run_id: one.ended for one in kept}[passed] == (failed,)


# --- signatures ---


def test_with_signers_an_acceptance_is_signed(fleet: Call, tmp_path: Path) -> None:
    for name in ("key", "other"):
        made_key(tmp_path / name)
    failed = hold(tmp_path / "fleet", "n1", "FAIL", 3)
    assert fleet("accept", "n1", "fleet", "--reason", REASON)[0] == 0
    folder, key = tmp_path / "fleet", tmp_path / "key.pub"
    assert only(judge(folder)).verdict == "UNJUDGED"
    assert only(judge(folder, signers=key)).verdict == "FAIL"
    for path in (folder / "n1").glob("accepted-*"):
        path.unlink()
    assert (
        fleet("accept", "n1", "fleet", "--reason", REASON, "--sign", str(tmp_path / "key"))[0] == 0
    )
    assert only(judge(folder, signers=key)).ended == {
        failed: next((folder / "n1").glob("accepted-*.json")).name
    }
    assert only(judge(folder, signers=tmp_path / "other.pub")).verdict == "FAIL"
    (path,) = (folder / "n1").glob("accepted-*.json")
    path.chmod(0o644)
    path.write_text(path.read_text().replace("order 7", "order 8"))
    found = judge(folder)
    assert (only(found).verdict, len(found.troubles)) == ("FAIL", 1), "it was changed"
    assert (
        fleet("accept", "n1", "fleet", "--reason", REASON, "--sign", str(tmp_path / "gone"))[0] == 2
    )


def made(**more: object) -> bytes:
    """The file of an acceptance with something changed."""
    right = {"schema": 1, "machine": "n1", "runs": ["r"], "reason": "x", "by": "y"}
    return msgspec.json.encode({**right, "at": "2026-11-26T01:00:00Z", **more})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff",
        made(runs=[]),
        made(reason=" "),
        made(schema=2),
        made(by=None),
    ],
)
def test_what_is_no_acceptance_is_named(tmp_path: Path, content: bytes) -> None:
    hold(tmp_path, "n1", "PASS", 3)
    (tmp_path / "n1/accepted-2026-11-26T01-00-00Z-0123abcd.json").write_bytes(content)
    found = judge(tmp_path)
    assert (only(found).verdict, len(found.troubles)) == ("UNJUDGED", 1)


def test_who_accepts_is_known_by_name_or_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    assert acceptances._user().startswith("alice@")
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_123)
    assert acceptances._user().startswith("4000000123@")


# --- the file for the readers on a node ---


def test_ended_lists_what_stands_and_what_was_ended(fleet: Call, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    first, by = hold(folder, "n1", "FAIL", 6), hold(folder, "n1", "PASS", 5)
    second = hold(folder, "n1", "FAIL", 4)
    out = printed(fleet("failures", "fleet/n1"), 1)
    assert any(second in one for one in out if one.startswith("FAIL n1"))
    assert (folder / "n1/ended").read_text() == f"{first} {by}\n"
    assert fleet("accept", "n1", "fleet", "--reason", REASON)[0] == 0
    out = printed(fleet("failures", "fleet/n1"))
    assert any(REASON in one for one in out)
    assert len((folder / "n1/ended").read_text().splitlines()) == 2
    (folder / "n1" / ago(1)[0]).mkdir()
    assert fleet("failures", "fleet/n1")[0] == 3, "a run without a verdict"
    (tmp_path / "signers").write_text("")
    assert fleet("failures", "fleet/n1", "--signer", "signers")[0] == 1


def test_ended_is_written_where_there_is_a_fail_alone(tmp_path: Path) -> None:
    hold(tmp_path, "n1", "PASS", 3)
    now = datetime.now(UTC)
    assert reader_file.write_machine(tmp_path / "n1", now)[2] is None
    assert not (tmp_path / "n1/ended").exists()


def test_an_ended_file_that_cannot_be_written_is_said(fleet: Call, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    hold(folder, "n1", "FAIL", 6)
    hold(folder, "n1", "PASS", 5)
    (folder / "n1/ended").mkdir()
    out = printed(fleet("collect", "fleet"))
    assert any(str(Path("fleet/n1/ended")) in one for one in out)
    assert fleet("failures", "fleet/n1")[0] == 3
    hold(folder, "n1", "FAIL", 4)
    code, out, _ = fleet("accept", "n1", "fleet", "--reason", REASON)
    assert (code, any("ended" in one for one in out)) == (0, True)


def test_a_run_tells_the_readers_of_its_own_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`accept` and `nightly` do so after a run: a node reads the folder of its runs."""
    failed, passed = hold(tmp_path, "reports", "FAIL", 6), hold(tmp_path, "reports", "PASS", 5)
    (tmp_path / "reports/latest").symlink_to(passed)
    out = tmp_path / "reports"
    machine_test._tell_readers(out, Terminal.on_stdout(ENGLISH))
    assert (out / "ended").read_text() == f"{failed} {passed}\n"
    assert capsys.readouterr().out == ""
    (out / "ended").unlink()
    (out / "ended").mkdir()
    machine_test._tell_readers(out, Terminal.on_stdout(ENGLISH))
    assert "ended" in capsys.readouterr().out


def test_a_view_of_each_pass_says_what_it_was_given_by(fleet: Call, tmp_path: Path) -> None:
    caveats = (
        Caveat("not_sealed", "not sealed"),
        Caveat("inventory_not_declared", "inventory not declared"),
        Caveat("subject_waived", "1 subject waived whole: storage"),
    )
    hold(tmp_path / "fleet", "n1", "PASS", 3, caveats=caveats, profile="smoke")
    hold(tmp_path / "fleet", "n2", "PASS", 3, caveats=msgspec.UNSET)
    for call in (("collect", "fleet"), ("report", "fleet")):
        code, out, _ = fleet(*call)
        text = "\n".join(out)
        assert code == 0
        for one in caveats:
            assert one.text in text
        assert "does not say what the verdict does not cover" in text
