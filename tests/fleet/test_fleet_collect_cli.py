"""`rigproof fleet collect`: what is printed, and the exit code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cases import each
from command import assert_refused, printed
from executable import executable
from fleet_verdicts import Call, ago, place, verdict

from acceptance.core.verdict import VerdictWord
from acceptance.reports import verdict_json
from acceptance.reports.verdict_json import File


@pytest.fixture
def call(fleet: Call) -> Call:
    return lambda *arguments, verb="collect": fleet(verb, *arguments)


def fresh(word: VerdictWord, machine: str, hours: float = 3.0) -> File:
    """A verdict of a run that began some hours ago."""
    return verdict(word, ago(hours)[0], serial=machine, machine_id=machine)


def fill(folder: Path, **machines: VerdictWord) -> None:
    for name, word in machines.items():
        place(folder, name, fresh(word, name), written=datetime.now(UTC))


@pytest.mark.parametrize(
    ("machines", "code", "last"),
    [
        ({"a": "PASS", "b": "PASS"}, 0, "PASS: 2 machines due: 2 PASS, 0 FAIL, 0 UNJUDGED"),
        ({"a": "PASS", "b": "FAIL"}, 1, "FAIL: 2 machines due: 1 PASS, 1 FAIL, 0 UNJUDGED"),
        ({"a": "UNJUDGED"}, 3, "UNJUDGED: 1 machine due: 0 PASS, 0 FAIL, 1 UNJUDGED"),
        ({"a": "UNJUDGED", "b": "FAIL"}, 1, "FAIL: 2 machines due: 0 PASS, 1 FAIL, 1 UNJUDGED"),
    ],
)
def test_exit_codes(
    call: Call, tmp_path: Path, machines: dict[str, VerdictWord], code: int, last: str
) -> None:
    fill(tmp_path / "fleet", **machines)
    got, out, err = call("fleet")
    assert (got, out[-1], err) == (code, last, "")


def test_the_missing_come_first_then_failures_with_their_finding(
    call: Call, tmp_path: Path
) -> None:
    fill(tmp_path / "fleet", a="PASS", b="FAIL", c="UNJUDGED", stranger="PASS")
    (tmp_path / "fleet/torn").mkdir()
    (tmp_path / "fleet/torn/verdict.json").write_text("{")
    (tmp_path / "due").write_text("a\nb\nc\nz\n")
    out = printed(call("fleet", "--due", "due"), 1)
    assert out[0] == "UNJUDGED z: there is no verdict"
    assert out[1].startswith("FAIL b: gemm.rate[bf16]: measured 1, limit >= 600 (20")
    assert out[2].startswith(
        "UNJUDGED c: gemm.rate[bf16]: no result; next: 'rigproof accept --only gemm.rate[bf16]' (20"
    )
    assert out[3].startswith("fleet/torn/verdict.json is no verdict of rigproof")
    assert out[4:] == [
        "not due: torn: UNJUDGED, which does not count",
        "not due: stranger: PASS, which does not count",
        "PASS nightly (1): a",
        "unsigned: a, b, c",
        (
            "compared with their equals: 4 of 4 machines, none on an earlier night: slow ones are "
            "named from the second night"
        ),
        "FAIL: 4 machines due: 1 PASS, 1 FAIL, 2 UNJUDGED (1 without a fresh verdict)",
    ]


MIXED: dict[str, VerdictWord] = {"a": "PASS", "b": "PASS", "c": "PASS", "d": "FAIL"}


@each(
    "machines, folders, share, code",
    [
        *((MIXED, ["fleet"], *one) for one in (("0", 1), ("0.2", 1), ("0.25", 0), ("1", 0))),
        ({"a": "PASS"}, ["fleet", "nowhere"], "1", 3),
        ({}, ["fleet"], "1", 3),  # it makes no pass of nothing
    ],
)
def test_fail_on_a_share(
    call: Call,
    tmp_path: Path,
    machines: dict[str, VerdictWord],
    folders: list[str],
    share: str,
    code: int,
) -> None:
    (tmp_path / "fleet").mkdir()
    fill(tmp_path / "fleet", **machines)
    assert call(*(str(tmp_path / one) for one in folders), "--fail-on", share)[0] == code


def test_fresh_hours(call: Call, tmp_path: Path) -> None:
    place(tmp_path / "fleet", "a", fresh("PASS", "a", 5.0), written=datetime.now(UTC))
    assert call("fleet")[0] == 0
    assert "no fresh verdict" in printed(call("fleet", "--fresh", "4"), 3)[0]


def test_nights_are_kept(call: Call, tmp_path: Path) -> None:
    fill(tmp_path / "fleet", a="PASS")
    code, out, _ = call("fleet", "--out", "nights")
    (kept,) = (tmp_path / "nights").glob("night-*.parquet")
    assert (code, out[0]) == (0, f"nights/{kept.name}")


def test_a_night_that_cannot_be_kept_is_judged_all_the_same(call: Call, tmp_path: Path) -> None:
    fill(tmp_path / "fleet", a="FAIL")
    (tmp_path / "nights").write_text("a file")
    code, out, err = call("fleet", "--out", "nights")
    assert (code, out[-1]) == (3, "FAIL: 1 machine due: 0 PASS, 1 FAIL, 0 UNJUDGED")
    assert "nights cannot be written (File exists)" in err
    assert err.count("\n") == 1


def test_without_duckdb_a_night_is_judged_and_not_kept(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "fleet", a="PASS")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert call("fleet")[0] == 0
    assert_refused(call("fleet", "--out", "nights"), 2, "pip install rigproof[fleet]")


def test_the_nodes_of_slurm(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "fleet", a="PASS")
    sinfo = executable(
        tmp_path / "bin/sinfo", '#!/bin/sh\n[ "$*" = "-N -h -o %N" ] && printf "a\\nb\\na\\n"\n'
    )
    monkeypatch.setenv("PATH", str(sinfo.parent), prepend=":")
    code, out, _ = call("fleet", "--due-slurm")
    assert (code, out[0]) == (3, "UNJUDGED b: there is no verdict")
    sinfo.write_text("#!/bin/sh\necho no controller >&2\nexit 1\n")
    assert_refused(call("fleet", "--due-slurm"), 2, "no controller")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "FOLDER"),
        (["fleet", "--due", "gone"], "gone: the list of due machines cannot be read"),
        (["fleet", "--due", "x", "--due-slurm"], "not allowed with"),
        (["fleet", "--signer", "gone"], "gone"),
        (["fleet", "--locations", "gone"], "gone: what is known of the machines cannot be read"),
        (["fleet", "--fresh", "0"], "no number of hours"),
        (["fleet", "--fresh", "nan"], "no number of hours"),
        (["fleet", "--fail-on", "5"], "no share from 0 to 1"),
        (["fleet", "--fail-on", "-1"], "--fail-on"),
    ],
)
def test_usage_errors_are_one_sentence(call: Call, arguments: list[str], said: str) -> None:
    assert_refused(call(*arguments), 2, said)


# --- a fleet with every fault at once ---


def plant(
    folder: Path,
    name: str,
    hours: float = 3.0,
    word: VerdictWord = "PASS",
    *,
    of: str | None = None,
    gpus: str | None = None,
    **more: object,
) -> Path:
    """A run of a machine some hours ago; `of` is its machine id, `gpus` are its GPUs."""
    run, at = ago(hours)
    made = verdict(word, run, machine_id=of or name, serial=gpus or f"GPU-{name}", **more)
    written = min(at + timedelta(minutes=5), datetime.now(UTC))
    return place(folder, name, made, under=run, written=written)


@pytest.mark.parametrize("kept", [False, True])
def test_a_fail_is_not_ended_by_another_machine(call: Call, tmp_path: Path, kept: bool) -> None:
    """One that has a GPU of it by now, and one with its image and its maker's constant serial."""
    out = ("--out", "nights") if kept else ()
    fleet = tmp_path / "fleet"
    plant(fleet, "gave", 10, "FAIL", gpus="G", values=(1.0,) * 8)
    plant(fleet, "took", 5, gpus="G", values=(700.0,))
    for name, hours, word in (("failed", 10, "FAIL"), ("equal", 5, "PASS")):
        path = plant(fleet, name, hours, word, of="image")  # type: ignore[arg-type]
        file = verdict_json.read(path.read_bytes())
        facts = {**file.provenance, "board_serial": "Default string"}
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(file, provenance=facts)))
    code, lines, _ = call("fleet", *out)
    assert (code, lines[-1]) == (1, "FAIL: 4 machines due: 2 PASS, 2 FAIL, 0 UNJUDGED")
    if kept:
        code, lines, _ = call("--nights", "nights", verb="report")
        assert (code, lines[-1].split(" (")[0]) == (
            1,
            "FAIL: 4 machines due: 2 PASS, 2 FAIL, 0 UNJUDGED",
        )


def test_kept_nights_do_not_forget_a_fail_that_stands(call: Call, tmp_path: Path) -> None:
    """The report reads the last nights, and the FAIL is older than these."""
    plant(tmp_path / "fleet", "bad", 24 * 9, "FAIL")
    for night in range(6):
        plant(tmp_path / "fleet", "good", 24 * night + 3)
        plant(tmp_path / "fleet", "bad", 24 * night + 3, "UNJUDGED")
    assert call("fleet", "--out", "nights", "--fresh", "200")[0] == 1
    assert call("--nights", "nights", verb="report")[0] == 1
    assert call("fleet", "--out", "nights")[0] == 1
    code, lines, _ = call("--nights", "nights", verb="report")
    assert (code, lines[-1].split(" (")[0]) == (
        1,
        "FAIL: 2 machines due: 1 PASS, 1 FAIL, 0 UNJUDGED",
    )
    plant(tmp_path / "fleet", "bad", 1)
    assert call("fleet", "--out", "nights")[0] == 0
    assert call("--nights", "nights", verb="report")[0] == 0


RSYNC = """#!/bin/sh
for place; do :; done
place=${place#collector:}
mkdir -p "$place"
for file; do [ ! -f "$file" ] || cp "$file" "$place"; done
"""


def test_the_drop_in_of_the_documents_keeps_a_fail(call: Call, tmp_path: Path) -> None:
    """It copies each run into a folder of its own: an UNJUDGED night overwrites no FAIL."""
    program, reports = tmp_path / "bin/rsync", tmp_path / "reports"
    executable(program, RSYNC)
    text = (Path(__file__).parents[2] / "docs/from-one-to-many.md").read_text()
    (unit,) = re.findall(r"^ExecStopPost=((?:.*\\\n)*.*)", text, re.MULTILINE)
    unit = unit.replace("\\\n", " ").replace("%H", "n1").replace("$$", "$")  # as systemd does
    unit = unit.replace("/opt/rigproof/reports", str(reports))
    unit = unit.replace("/srv/verdicts", str(tmp_path / "fleet"))
    nights: tuple[tuple[VerdictWord, float, int], ...]
    nights = (("FAIL", 40, 1), ("UNJUDGED", 20, 1), ("UNJUDGED", 2, 1), ("PASS", 1, 0))
    for word, hours, code in nights:
        made = plant(reports.parent, reports.name, hours, word)
        (reports / "latest").unlink(missing_ok=True)
        (reports / "latest").symlink_to(made.parent.name)
        env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
        subprocess.run(shlex.split(unit), env=env, check=True)
        assert call("fleet")[0] == code
    copied = [path for path in (tmp_path / "fleet/n1").iterdir() if path.is_dir()]
    assert len(copied) == len(nights)
