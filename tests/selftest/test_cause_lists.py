"""What is left to write of likely causes: each list on small data, then on what is shipped."""

from __future__ import annotations

import pytest
from cases import each

from acceptance.core.advice import Advice, Condition, LikelyCause
from acceptance.reports import advice
from acceptance.reports.advice import AdviceBook
from selftest import causes
from selftest.fault import Expect, Fault, Named, read

BOOK = advice.shipped()
KNOWN = ("gemm_bf16", "gemm_f32", "burn_f16_miscompares", "copies_p2p_off", "vram_rate")
BARE = LikelyCause("a bare cause", "look at it")


def book(*listed: LikelyCause, event: str = "xid") -> AdviceBook:
    """One advice, which is for measurements of all KNOWN names and for an event."""
    one = Advice("It is slow.", (BARE, *listed), "dmesg", "a line", "all of it", events=(event,))
    return AdviceBook(dict.fromkeys(KNOWN, one), {event: one})


def named(*expects: Expect) -> tuple[Named, ...]:
    return (Named("wrong results", "one", Fault("a fault", expects, 1)),)


@each(
    "text, found",
    [
        ("`gemm_bf16` is low", ("gemm_bf16",)),
        ("any of `gemm_*`", ("gemm_*",)),
        ("`burn_<format>_miscompares` is not 0", ("burn_<format>_miscompares",)),
        ("the counts with `_p2p_off` are 0", ("_p2p_off",)),
        ("gemm_bf16 of no code", ()),
        ("`gemm` alone, `<inactive>`, `*` and `top`", ()),
        ("an Xid, or AER lines", ("xid", "aer")),
        ("`vram_rate`, SXid lines, EDAC and machine checks", ("vram_rate", "sxid", "edac", "mce")),
        ("MAXIDEA, LAYERS", ()),
    ],
)
def test_the_measurements_and_events_that_a_text_names(text: str, found: tuple[str, ...]) -> None:
    assert causes.names(text, KNOWN) == found


def test_a_cause_that_names_a_measurement_without_a_condition_is_listed_once() -> None:
    in_tell = LikelyCause("heat", "`vram_rate` is low too")
    in_what = LikelyCause("`gemm_bf16` was interrupted by an Xid", "look")
    (first, second) = causes.without_condition(book(in_tell, in_what))
    assert first == "gemm_bf16: heat: vram_rate"
    assert second.endswith(": gemm_bf16, xid")
    when = Condition(measurement="vram_rate", is_="failed")
    conditioned = LikelyCause("heat", "`vram_rate` is low too", when)
    assert not list(causes.without_condition(book(conditioned)))


@each(
    "when, lacking",
    [
        (Condition(measurement="vram_rate", is_="failed"), None),
        (Condition(measurement=("vram_rate", "gemm_f8"), is_="failed"), "gemm_f8"),
        (Condition(measurement="gemm_*", is_="failed"), None),
        (Condition(measurement="burn_?_miscompares", is_="zero"), "burn_?_miscompares"),
        (Condition(event="xid"), None),
        (Condition(event=("xid.79", "sxid")), "sxid"),
        (Condition(rule="no_such_rule"), "no_such_rule"),
    ],
)
def test_a_condition_on_what_there_is_not_is_listed(when: Condition, lacking: str | None) -> None:
    found = list(causes.of_nothing(book(LikelyCause("heat", "look", when))))
    assert found == ([] if lacking is None else [f"gemm_bf16: heat: {lacking}"])


FAILED = Condition(measurement="vram_rate", is_="failed")


@each(
    "cause, listed",
    [
        (LikelyCause("heat", "`vram_rate` is low too", FAILED), False),
        (LikelyCause("heat", "`gemm_bf16` is low too", FAILED), True),
        (LikelyCause("heat", "it is hot", FAILED), True),
        (LikelyCause("heat", "it is hot", FAILED, "the memory is slow too"), False),
        (
            LikelyCause(
                "heat",
                "it is hot",
                Condition(measurement="vram_rate", is_="failed", settles="excludes"),
            ),
            False,
        ),
        (LikelyCause("heat", "it is hot", Condition(rule="no_such_rule")), False),
        (LikelyCause("heat", "it is hot"), False),
        (
            LikelyCause("heat", "any `gemm_*`", Condition(measurement="gemm_f32", is_="failed")),
            False,
        ),
        (LikelyCause("a crash", "an Xid stands before it", Condition(event="xid.79")), False),
        (LikelyCause("a crash", "AER lines stand before it", Condition(event="xid.79")), True),
    ],
)
def test_what_is_shown_as_measured_is_about_what_was_looked_at(
    cause: LikelyCause, listed: bool
) -> None:
    assert bool(list(causes.about_another(book(cause)))) == listed


def test_an_expect_of_a_failure_or_an_event_without_a_cause_is_listed() -> None:
    with_cause = Expect("link.copy", "gemm_bf16 on gpu0", cause="a bare cause")
    none = Expect("link.copy", "vram_rate on gpu0", name="vram")
    error = Expect("link.copy", "it died of 9", "error")
    event = Expect("cpu.stress_ng", "xid 31 on 0000:01:00.0", "error")
    refused = Expect("start", "xid 31 on 0000:01:00.0", "refused")
    expects = named(with_cause, none, error, event, refused)
    assert list(causes.without_cause(expects, book())) == [
        "wrong-results/one.toml: vram: vram_rate on gpu0",
        "wrong-results/one.toml: cpu.stress_ng: xid 31 on 0000:01:00.0",
    ]


@each(
    "says, cause, listed",
    [
        ("gemm_bf16 on gpu0", "a bare cause", False),
        ("gemm_bf16 on gpu0", "another", True),
        ("xid 79 on 0000:01:00.0", "a bare cause", False),
        ("xid 79 on 0000:01:00.0", "another", True),
        ("xid on 0000:01:00.0", "another", True),
        ("xid:0 is gone", "another", True),
        ("something happened", "a bare cause", False),
        ("something happened", "another", True),
        ("gemm_bf16 on gpu0", "", False),
        ("gemm_bf16 on gpu0", None, False),
    ],
)
def test_a_cause_that_the_advice_of_the_finding_does_not_have_is_listed(
    says: str, cause: str | None, listed: bool
) -> None:
    found = list(causes.not_offered(named(Expect("link.copy", says, cause=cause)), book()))
    assert found == ([f"wrong-results/one.toml: link.copy: {cause}"] if listed else [])


def test_a_cause_of_another_finding_is_not_offered() -> None:
    foreign = next(
        cause.what
        for cause in BOOK.by_event["oom"].causes
        if cause not in BOOK.measurements["gemm_bf16"].causes
    )
    assert list(causes.not_offered(named(Expect("x", "gemm_bf16 on gpu0", cause=foreign)), BOOK))
    assert not list(causes.not_offered(named(Expect("x", "oom 7: python", cause=foreign)), BOOK))


def test_words_that_only_begin_like_an_event_are_of_any_finding() -> None:
    gone = named(
        Expect("run", r"disk:sda \(A\) is missing", cause=BOOK.by_event["oom"].causes[0].what)
    )
    assert not list(causes.not_offered(gone, BOOK))


def test_the_lists_are_printed_with_their_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "read", lambda: named(Expect("link.copy", "vram_rate on gpu0")))
    monkeypatch.setattr(advice, "shipped", book)
    assert causes.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said if not line.startswith(" ")] == ["0"] * 3 + ["1", "0"]
    assert "  wrong-results/one.toml: link.copy: vram_rate on gpu0" in said
    monkeypatch.setattr(causes, "read", tuple)
    assert causes.main() == 0


# --- what is shipped ---


def test_nothing_is_left_to_write_of_what_is_shipped() -> None:
    for of_book in (causes.without_condition, causes.of_nothing, causes.about_another):
        assert list(of_book(BOOK)) == []
    for of_faults in (causes.without_cause, causes.not_offered):
        assert list(of_faults(read(), BOOK)) == []
