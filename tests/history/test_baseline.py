"""The birth certificate: which runs can be one, what it holds, and that nothing
can be changed in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import journals
import machine_facts
import msgspec
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from known import known
from runs import judged

from acceptance.core import repeat
from acceptance.core.evidence import Observed
from acceptance.core.finding import Waiver
from acceptance.core.message import Message
from acceptance.core.parts import MEMORY, Gpu
from acceptance.core.plan import Plan, Reduction, reductions_message
from acceptance.core.record import Entry, Measured, Skipped
from acceptance.history import baseline, noise
from acceptance.history.baseline import Certificate, FormerBaseline
from acceptance.history.errors import HistoryError
from acceptance.history.reference_builder import NightValue, build_reference
from acceptance.journal.run import UnreadableRun
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NOISE = noise.read(FIXTURES / "noise.toml")
DRIFT = noise.read_rules(FIXTURES / "drift.toml", NOISE)
ERA = (("driver", "580.1"), ("profile", "smoke"))
COPY = journals.check(
    "link.copy", journals.due("copy_h2d", Gpu(0)), journals.due("copy_d2h", Gpu(0), limit=None)
)
FILLED = journals.check("burn.filled", journals.due("burn_memory_filled", MEMORY, "GiB", None))


def entries(
    plan: Plan | None = None,
    *,
    virtual: bool = False,
    values: dict[tuple[str, str], float] | None = None,
) -> list[Entry]:
    """A whole run that passes, of `machine_facts.machine`."""
    bodies = journals.bodies(plan or journals.plan(COPY, FILLED), values)
    inventory = machine_facts.machine()
    inventory["cpu"]["virtualised"] = virtual
    bodies.insert(1, Observed(inventory))
    return journals.entries(bodies)


def made(
    run: list[Entry] | None = None, replaces: FormerBaseline | None = None, *, anew: bool = False
) -> Certificate:
    return baseline.make(
        judged(run or entries()),
        NOISE,
        folder="2026-01-01",
        accepted_utc="2026-01-02T00:00:00.000Z",
        rigproof="1.0",
        era=ERA,
        replaces=replaces,
        anew=anew,
    )


def test_what_it_holds() -> None:
    former = FormerBaseline("run-0", "2025-01-01", "f" * 64)
    found = made(entries(values={("copy_h2d", Gpu(0)): 120.0}), former)
    assert (found.machine_id, found.folder, found.accepted_utc, found.rigproof) == (
        "machine-1",
        "2026-01-01",
        "2026-01-02T00:00:00.000Z",
        "1.0",
    )
    assert (found.profile, found.waived, found.warnings) == ("smoke", (), ())
    seen = machine_facts.machine()
    seen["cpu"]["virtualised"] = False
    assert found.machine == machine_facts.born(seen)
    assert (found.provenance, found.era, found.replaces) == ({"host": "box"}, ERA, former)
    figure = known(found.figure("link.copy", "copy_h2d", Gpu(0)))
    assert (figure.unit, figure.value, figure.serial, figure.among) == ("GB/s", 120.0, None, None)
    assert figure.spread == pytest.approx(3.6)  # 3 % of it
    assert found.figure("link.copy", "copy_h2d", Gpu(1)) is None
    assert len(found.figures) == 3
    filled = known(found.figure("burn.filled", "burn_memory_filled", MEMORY))
    assert filled.spread is None, "two runs cannot be compared in it"
    undeclared = made(entries(journals.plan(COPY, declared=False)))
    assert (found.inventory_declared, undeclared.inventory_declared) == (True, False)
    start, observed, *rest = entries(values={("copy_h2d", Gpu(0)): 120.0})
    assert made([observed, start, *rest], former) == found, "whatever line comes first"


def test_in_a_virtual_machine_the_spread_is_that_of_one() -> None:
    plan = journals.plan(
        journals.check("memory.copy", journals.due("memory_copy", MEMORY, limit=None))
    )
    for virtual, share in ((False, 0.1), (True, 0.4)):
        figure = known(
            made(entries(plan, virtual=virtual)).figure("memory.copy", "memory_copy", MEMORY)
        )
        assert figure.spread == pytest.approx(share)


def test_several_values_of_one_run_tell_how_far_they_lie_apart() -> None:
    run = entries()
    place = next(place for place, entry in enumerate(run) if isinstance(entry.body, Measured))
    body = run[place].body
    assert isinstance(body, Measured)
    second = msgspec.structs.replace(body, value=known(body.value) + 2.5)
    look = msgspec.structs.replace(run[place], body=second, segment=repeat.SEGMENT)
    run.insert(place, look)
    assert known(made(run).figure(body.check, body.measurement, body.component)).among == 2.5


def without_copies(run: list[Entry], reason: str) -> list[Entry]:
    """The run, of which link.copy skipped what it measured."""
    left = []
    for entry in run:
        body = entry.body
        if isinstance(body, Measured) and body.check == "link.copy":
            body = Skipped(body.check, reason, body.measurement, body.component)
        left.append(msgspec.structs.replace(entry, body=body))
    return left


def test_what_was_not_measured_has_no_figure() -> None:
    waiver = Waiver(reason="no tool", skip="link.copy", component="gpu0")
    run = without_copies(entries(journals.plan(COPY, FILLED, waivers=[waiver])), "no tool")
    assert [figure.measurement for figure in made(run).figures] == ["burn_memory_filled"]


def test_waived_shortfalls_are_listed_and_warnings_told() -> None:
    waiver = Waiver(reason="an old riser", measurement="copy_h2d", component="gpu0", worst=80.0)
    plan = journals.plan(COPY, waivers=[waiver])
    (waived,) = made(entries(plan, values={("copy_h2d", Gpu(0)): 90.0})).waived
    assert "waived: an old riser" in waived
    (warning,) = made(entries(values={("copy_h2d", Gpu(0)): 105.0})).warnings
    assert "outside what is usual" in warning


def slow(count: int = 1) -> list[Entry]:
    """A run whose copies of so many GPUs are too slow."""
    dues = [journals.due("copy_h2d", Gpu(number)) for number in range(count)]
    values = {(one.measurement, one.component): 50.0 for one in dues}
    return entries(journals.plan(journals.check("link.copy", *dues)), values=values)


PARTIAL = msgspec.structs.replace(journals.plan(COPY), scope="partial")


LESS = Reduction("burn", 1.0, 90.0, "s")
SHORTENED = msgspec.structs.replace(PARTIAL, shortened=(LESS,))
UNREAD = [
    Message(code, {"why": "its seal is broken"})
    for code in ("changes_unknown", "nightly_changes_unknown")
]


def refusal(run: list[Entry], *, anew: bool = False) -> Message:
    with pytest.raises(WordedUserError) as refused:
        made(run, anew=anew)
    return refused.value.message


@each(
    "run, code, verdict, more",
    [
        (slow(), "run_not_passed", "FAIL", None),
        (slow(3), "run_not_passed", "FAIL", 2),
        (
            entries(journals.plan(COPY, gaps=["gpu7 is not loaded"])),
            "run_not_passed",
            "UNJUDGED",
            None,
        ),
        (entries()[:-1], "run_not_passed", "UNJUDGED", None),
        (without_copies(entries(), "no rights"), "run_not_passed", "UNJUDGED", 1),
        (entries(PARTIAL), "run_partial", None, None),
        (entries(SHORTENED), "run_shortened", None, None),
        (
            [entry for entry in entries() if not isinstance(entry.body, Observed)],
            "run_without_inventory",
            None,
            None,
        ),
        *(
            (entries(journals.plan(COPY, gaps=[gap])), "run_not_passed", "UNJUDGED", None)
            for gap in UNREAD
        ),
    ],
    told=[
        *("failed", "failed more than once", "with a gap", "never ended", "skipped"),
        *("a part of the machine", "shortened", "without an inventory"),
        *("what was before cannot be read", "nor what a night told of it"),
    ],
)
def test_a_run_that_is_no_baseline(
    run: list[Entry], code: str, verdict: str | None, more: int | None
) -> None:
    message = refusal(run)
    values = message.values
    assert (message.code, values.get("verdict"), values.get("more")) == (code, verdict, more)


def test_what_was_less_is_named_and_a_journal_without_a_beginning_is_no_run() -> None:
    assert refusal(entries(SHORTENED)).values["loads"] == reductions_message((LESS,))
    with pytest.raises(UnreadableRun):
        made(entries()[1:])


# --- a machine that was changed, and is accepted as it is ---


def held(gaps: Sequence[str] = (), value: float = 120.0) -> list[Entry]:
    """A run that is held against a machine with another card and more speed."""
    before = machine_facts.machine()
    before["nvml"]["devices"][1]["uuid"] = "GPU-of-before"
    looks = [NightValue(day=20_000.0 + night, value=150.0) for night in range(30)]
    rule = known(DRIFT.rule("copy_h2d", "GB/s", journals.FLOOR, virtual=False))
    past = build_reference(looks, None, rule=rule, today=20_030.0, baseline_day=None, rebased=False)
    due = journals.due("copy_h2d", Gpu(0)).against(past)
    birth = msgspec.structs.replace(machine_facts.born(before), book=machine_facts.BOOK)
    plan = msgspec.structs.replace(
        journals.plan(journals.check("link.copy", due), gaps=gaps), baseline=birth
    )
    return entries(plan, values={("copy_h2d", Gpu(0)): value})


def test_a_run_that_is_worse_than_before_can_be_a_baseline_only_when_it_is_asked_for() -> None:
    assert refusal(held()).values["verdict"] == "FAIL"
    found = made(held(), anew=True)
    assert found.set_aside[0].startswith("gpu1 is another part: GPU-of-before when")
    assert (found.machine.book, found.waived) == (None, ())
    assert made(entries(), anew=True).set_aside == ()


@each("gap", UNREAD)
def test_what_cannot_be_read_of_before_is_set_aside_as_well(gap: Message) -> None:
    set_aside = made(entries(journals.plan(COPY, gaps=[gap])), anew=True).set_aside
    assert set_aside == (words.text(gap),)


@each("run, verdict", [(held(value=50.0), "FAIL"), (held(["gpu7 is not loaded"]), "UNJUDGED")])
def test_limits_and_gaps_of_the_run_itself_hold_all_the_same(
    run: list[Entry], verdict: str
) -> None:
    assert refusal(run, anew=True).values["verdict"] == verdict


# --- the seal ---


def test_sealed_and_opened() -> None:
    found = made(replaces=FormerBaseline("run-0", "2025-01-01", "f" * 64))
    file = baseline.encode_certificate(found)
    again, sha256 = baseline.decode_certificate(file)
    assert (again, len(sha256), sha256.encode() in file) == (found, 64, True)
    assert file.startswith(b'{\n "rigproof_baseline": 1,\n "sha256": "')
    assert file.endswith(b"\n}\n")
    plain = json.loads(file)
    turned = {key: plain[key] for key in reversed(plain)}
    turned["certificate"] = dict(reversed(plain["certificate"].items()))
    assert baseline.decode_certificate(json.dumps(turned).encode())[0] == found


def leaves(plain: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value that is no table."""
    if isinstance(plain, dict):
        return [found for key, value in plain.items() for found in leaves(value, (*way, key))]
    if isinstance(plain, list):
        return [
            found for place, value in enumerate(plain) for found in leaves(value, (*way, place))
        ]
    return [way]


PLAIN: dict[str, Any] = json.loads(baseline.encode_certificate(made()))


@given(
    st.sampled_from(leaves(PLAIN["certificate"])), st.sampled_from(["x", 1, 2.5, None, True, []])
)
def test_no_value_can_be_changed(way: tuple[Any, ...], value: Any) -> None:
    changed = json.loads(json.dumps(PLAIN))
    table = changed["certificate"]
    for key in way[:-1]:
        table = table[key]
    if type(table[way[-1]]) is type(value) and table[way[-1]] == value:
        return
    table[way[-1]] = value
    with pytest.raises(HistoryError, match=r"^is not what was sealed"):
        baseline.decode_certificate(json.dumps(changed).encode())


ODD = b'{"figures": 3}'


LESS_OF_IT = [
    {**PLAIN, "certificate": {key: one for key, one in PLAIN["certificate"].items() if key != gone}}
    for gone in ("waived", "figures", "birth")
]


@each(
    "file",
    [
        *(baseline.encode_certificate(made())[:size] for size in (0, 1, 100, -3)),
        b'{"rigproof_baseline": 1, "sha256": "", "certificate": ' + b"[" * 100_000,
        b'{"rigproof_baseline": 1, "sha256": "%s", "certificate": %s}'
        % (baseline.seal(ODD).encode(), ODD),
        *(json.dumps(one).encode() for one in LESS_OF_IT),
    ],
    told=[
        *("empty", "one letter", "cut", "cut at its end", "nested without end"),
        *("a sound seal over something else", "without waived", "without figures", "without birth"),
    ],
)
def test_a_file_that_holds_no_certificate(file: bytes) -> None:
    with pytest.raises(HistoryError) as broken:
        baseline.decode_certificate(file)
    assert broken.value.message.code != "certificate_newer"


def test_one_of_a_later_rigproof() -> None:
    with pytest.raises(HistoryError) as newer:
        baseline.decode_certificate(json.dumps(PLAIN | {"rigproof_baseline": 2}).encode())
    assert newer.value.message.code == "certificate_newer"


@given(st.binary(max_size=40))
def test_what_is_no_certificate(file: bytes) -> None:
    with pytest.raises(HistoryError):
        baseline.decode_certificate(file)
