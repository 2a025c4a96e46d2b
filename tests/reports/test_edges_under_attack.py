"""The journal with hostile text in it, and in reports what stands around its records: times,
names of segments and logs, JSON.
"""

from __future__ import annotations

import json
from pathlib import Path

import hostile
import jenkins_schema
import journals
import msgspec
import pytest
import runs
import samples
from cases import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import write_views
from thoroughness import examples, some

from acceptance.core.record import Body
from acceptance.journal import reader, run_folder, segment
from acceptance.reports import junit, plain_json, verdict_json
from acceptance.reports.page import render

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs/1xh200-host-smoke"
many = settings(
    max_examples=examples(20) if hostile.ATTACKS == 1 else 20 * hostile.ATTACKS,
    deadline=None,
    derandomize=hostile.ATTACKS == 1,
    suppress_health_check=list(HealthCheck),
)


def assert_harmless(text: str) -> None:
    assert not hostile.HARMFUL.search(text)


# --- the journal ---


def journalled(folder: Path, bodies: list[Body]) -> tuple[list[object], bytes]:
    """The records of a journal that was given these, and its bytes."""
    path = runs.write_segment(folder / "journal.jsonl", bodies, runs.machine_root(folder / "root"))
    return [entry.body for entry in reader.read(folder).entries], path.read_bytes()


@many
@given(hostile.texts)
def test_a_journal_gives_back_what_was_written_one_line_a_record(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    bodies = hostile.attack(text.encode("utf-8", errors="replace").decode("utf-8"))
    found, data = journalled(tmp_path_factory.mktemp("run"), bodies)
    assert (found, data.count(b"\n")) == (bodies, len(bodies) + 1)


@each(
    "bodies, kept",
    [
        # The kernel takes any byte in the name of a network link, and Python hands it on as half
        # of a pair.
        (hostile.attack("eth\udcff"), hostile.attack("eth?")),
        *(
            (hostile.attack(text, "tool-ran.argv[]"),) * 2
            for text in some(list(hostile.FLOODS.values()), 2)
        ),
    ],
)
def test_a_byte_that_is_no_utf_8_and_megabytes_cost_no_record(
    bodies: list[Body], kept: list[Body], tmp_path: Path
) -> None:
    found, data = journalled(tmp_path, bodies)
    assert (found == kept, b"\\udcff" in data) == (True, False)


# --- reports of what stands around the records ---


def test_a_time_that_is_none_is_left_out_of_junit() -> None:
    found = samples.run(hostile.run())
    for utc in (hostile.EVERYTHING, "", "2026-01-01"):
        changed = (msgspec.structs.replace(one, utc=utc) for one in found.entries)
        data = junit.render(runs.judged(changed))
        assert jenkins_schema.faults(data) == []
        assert b"timestamp" not in data


def test_a_torn_segment_of_a_hostile_name_is_told_harmlessly(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    journalled(folder, hostile.run())
    for name in ("\x1b[2J\u202e", "\udcff\x9b31m"):
        (folder / f"journal-{name}.jsonl").write_bytes(b'{"half\x1b[31m')
    write_views(folder)
    for name in (run_folder.JUNIT, run_folder.PAGE, run_folder.VERDICT):
        assert_harmless((folder / name).read_text(encoding="utf-8"))
    notes = json.loads((folder / run_folder.VERDICT).read_bytes())["notes"]
    assert sum("half" in note for note in notes) == 2


@each(
    "log",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "logs/../../x",
        "logs/a]]",
        "logs/\x1b[31m",
        "logs/a  b",
        "logs/a\nb",
    ],
)
def test_no_log_outside_the_run_is_attached(log: str) -> None:
    def change(place: str, old: str) -> str:
        return log if place == "tool-ran.log" else old

    assert b"ATTACHMENT" not in junit.render(samples.run(hostile.changed(hostile.run(), change)))


def test_two_checks_whose_names_look_alike_keep_two_testcases() -> None:
    """Without its end the run has a testcase of its own."""
    long = "x" * 300
    names = ("a.b\x1b[31m", "a.b\x1b[32m", "the whole run", f"{long}1", f"{long}2")
    made = journals.plan(*map(journals.check, names))
    data = junit.render(samples.run(journals.bodies(made)[:-1]))
    assert jenkins_schema.faults(data) == []
    assert data.count(b"<testcase") == 6


@pytest.mark.sweep
def test_a_recorded_run_under_attack_keeps_its_measure() -> None:
    found = reader.read(RECORDED)
    bodies = [entry.body for entry in found.entries]
    sizes = []
    for text in ("plain", hostile.EVERYTHING, "\u200b" * 2_500):
        attacked = [
            msgspec.structs.replace(entry, body=body)
            for entry, body in zip(found.entries, hostile.attacked(bodies, text), strict=True)
        ]
        changed = runs.judged(attacked)
        assert changed.verdict.run_id.startswith(text)
        data = junit.render(changed)
        assert jenkins_schema.faults(data) == []
        assert_harmless(data.decode())
        shown = render.render(changed)
        assert_harmless(shown)
        assert_harmless(verdict_json.render(changed).decode())
        sizes.append((len(data), len(shown)))
    assert max(size for pair in sizes for size in pair) < 8_000_000


# --- JSON for a screen ---


def test_json_for_a_screen_says_the_same_in_escapes() -> None:
    value = {
        "name": "G\u015b\xae \U0001f525",
        "text": "\u202e\x9b31m\x7f\x1b",
        "\u2028": "\U000e0041",
    }
    shown = plain_json.render(value)
    assert json.loads(shown) == value
    assert shown.decode("utf-8").split("\n")[1:3] == [
        '  "name": "G\u015b\xae \U0001f525",',
        '  "text": "\\u202e\\u009b31m\\u007f\\u001b",',
    ]
    for encoding in ("ascii", "latin-1"):
        assert plain_json.render(value, encoding).isascii()
        assert json.loads(plain_json.render(value, encoding)) == value


@many
@given(st.dictionaries(hostile.texts, st.lists(hostile.texts, max_size=2), max_size=2))
def test_plain_json_is_the_same_value(value: object) -> None:
    for encoding in ("utf-8", "ascii"):
        data = plain_json.render(value, encoding)
        assert json.loads(data) == json.loads(segment.encoded(value))
        assert not hostile.HARMFUL.search(data.decode(encoding))
