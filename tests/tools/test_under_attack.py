"""Every parser under attack: whatever is done to a text, none crashes or hangs, and none calls a
text a pass that lost its proof.

`RIGPROOF_ATTACKS=N` takes N times as many examples, every line of the long texts, and random seeds.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from attack_rules import ALTERED, COUNTED, LOST, MOVES, NOT_NEEDED, UNSEEN_END
from attack_texts import HOSTILE, SIZE
from attacks import HEALTHY, INDEX, NOT_A_PASS, READ, RECORDINGS, TIMES, Healthy, pieces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.attack

IDS = [healthy.name for healthy in HEALTHY]
EXAMPLES = settings(
    deadline=None,
    derandomize=TIMES == 1,
    max_examples=10 * TIMES,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
ENTRIES = 30
OF_TOOL = {
    tool: tuple(
        [healthy.text for healthy in HEALTHY if healthy.tool == tool]
        + [
            (RECORDINGS / entry["path"]).read_text(errors="replace")
            for entry in INDEX
            if entry["tool"] == tool
        ]
    )
    for tool in READ
}


def listed(rules: dict[str, tuple[str, ...]], tool: str, line: str) -> bool:
    return any(re.search(pattern, line) for pattern in rules.get(tool, ()))


def chosen(healthy: Healthy, lines: list[str]) -> list[int]:
    """The lines to attack: all of a short text; of a long one those that matter, its two ends,
    and some of the others.
    """
    if TIMES > 1 or len(lines) <= ENTRIES:
        return list(range(len(lines)))
    needed = [
        place
        for place, line in enumerate(lines)
        if not listed(NOT_NEEDED, healthy.tool, line.strip())
    ]
    step = max(1, len(lines) // 8)
    some = needed[:: max(1, len(needed) // 15)]
    return sorted(
        {*some, *range(5), *range(len(lines) - 5, len(lines)), *range(0, len(lines), step)}
    )


def figures(worth: Any) -> dict[tuple[str, str], Any]:
    """Every reading of a tool's pass by name and component."""
    return {
        (name, where): (unit, value)
        for name, (unit, by) in worth[0].items()
        for where, value in by.items()
    }


def fewer(whole: Any, left: Any) -> bool:
    """Whether all that is left of a pass is as it was: a judge then misses a reading, and finds
    none that was altered.
    """
    if not isinstance(whole, tuple):  # one object of facts, each absent or as it was
        return all(
            there in (getattr(whole, name), None)
            for name, there in _facts(left, whole)
            if name not in ("dimms", "ecc")
        ) and getattr(left, "ecc", None) in (None, getattr(whole, "ecc", None))
    if whole[1]:  # of a log, that has no other figures than counts of its events
        return all(event in whole[1] for event in left[1])
    return figures(left).items() <= figures(whole).items()


def _facts(left: Any, whole: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(left, name)) for name in type(whole).__slots__]


def moved(whole: Any, left: Any) -> bool:
    """Whether only what is taken over all progress lines moved, and by little; counts of wrong
    results never do.
    """
    one, other = figures(whole), figures(left)
    return one.keys() == other.keys() and all(
        other[key] == value
        or (key[0] in MOVES and abs(other[key][1] - value[1]) <= MOVES[key[0]] * value[1])
        for key, value in one.items()
    )


# --- lines ---


@pytest.mark.parametrize("healthy", HEALTHY, ids=IDS)
def test_without_a_needed_line_no_text_is_a_pass(healthy: Healthy) -> None:
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    assert whole != NOT_A_PASS
    for place in chosen(healthy, lines):
        line = lines[place].strip()
        left = healthy.worth("".join(lines[:place] + lines[place + 1 :]))
        if left == NOT_A_PASS:
            continue
        if left == whole:
            assert not line or listed(NOT_NEEDED, healthy.tool, line), (
                f"a pass without the line {line!r}"
            )
        elif listed(LOST, healthy.tool, line):
            assert fewer(whole, left), f"other readings without the line {line!r}"
        else:
            assert healthy.tool == "gpu-burn", (
                f"a pass with other readings without the line {line!r}"
            )
            assert listed(NOT_NEEDED, healthy.tool, line), line
            assert moved(whole, left), line


@pytest.mark.parametrize("healthy", HEALTHY, ids=IDS)
def test_a_line_that_comes_twice_or_too_early_alters_no_pass(healthy: Healthy) -> None:
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    for place in chosen(healthy, lines):
        line, before, after = lines[place], lines[:place], lines[place + 1 :]
        # A JSON text is one value: where its lines stand is what it says.
        one_value = healthy.text.lstrip().startswith("{\n") or '"nvbandwidth"' in healthy.text
        swapped = [] if one_value else [[*before, *after[:1], line, *after[1:]]]
        for other in ([*before, line, line, *after], *swapped):
            left = healthy.worth("".join(other))
            if left in (NOT_A_PASS, whole):
                continue
            shown = f"a pass with other readings, for the line {line!r}"
            if listed(COUNTED, healthy.tool, line.strip()):
                continue
            assert listed(LOST, healthy.tool, line.strip()), shown
            assert fewer(whole, left), shown


@pytest.mark.parametrize("healthy", HEALTHY, ids=IDS)
def test_a_text_that_ends_too_early_is_no_pass(healthy: Healthy) -> None:
    lines, whole = pieces(healthy.text), healthy.worth(healthy.text)
    for place in chosen(healthy, lines):
        left = healthy.worth("".join(lines[:place]))
        if left == NOT_A_PASS:
            continue
        gone = [line.strip() for line in lines[place:] if line.strip()]
        if left == whole:
            assert all(listed(NOT_NEEDED, healthy.tool, line) for line in gone), gone
        else:
            ends = healthy.tool in UNSEEN_END or all(
                listed(LOST, healthy.tool, line) or listed(NOT_NEEDED, healthy.tool, line)
                for line in gone
            )
            assert ends, f"a pass with other readings, cut before {gone[0]!r}"
            assert fewer(whole, left), gone


# An event that is cut within its line is another event: of logs only whole lines are compared,
# above.
@pytest.mark.parametrize("tool", [tool for tool in READ if tool != "kernel-log"])
@EXAMPLES
@given(st.data())
def test_a_text_cut_at_any_letter_alters_no_pass(tool: str, data: st.DataObject) -> None:
    healthy = data.draw(st.sampled_from([one for one in HEALTHY if one.tool == tool]))
    whole = healthy.worth(healthy.text)
    left = healthy.worth(healthy.text[: data.draw(st.integers(0, len(healthy.text) - 1))])
    assert left in (NOT_A_PASS, whole) or fewer(whole, left)


# --- judged numbers ---


@pytest.mark.parametrize(("tool", "pattern", "values", "carried"), ALTERED, ids=range(len(ALTERED)))
def test_a_judged_number_is_never_altered_into_a_pass(
    tool: str, pattern: str, values: tuple[str, ...], carried: bool
) -> None:
    found = 0
    for healthy in HEALTHY:
        matches = list(re.finditer(pattern, healthy.text)) if healthy.tool == tool else []
        whole = healthy.worth(healthy.text)
        for match in {
            match.start(1): match for match in (*matches[: 1 + TIMES], *matches[-1:])
        }.values():
            for value in values:
                text = healthy.text[: match.start(1)] + value + healthy.text[match.end(1) :]
                if text == healthy.text:
                    continue
                found += 1
                left = healthy.worth(text)
                told = f"{healthy.name}: {match[0]!r} with {value!r}"
                assert left == NOT_A_PASS or (carried and left != whole), told
    assert found, "nothing of the healthy texts was altered"


EVENTS = (
    "[ 9.5] NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off the bus.",
    "[ 9.5] NVRM: Xid (PCI:0000:4e:00): 48, pid=1, DBE (double bit error)",
    "[ 9.5] EDAC MC0: 1 UE memory read error on DIMM_A1 (channel:0)",
    "[ 9.5] pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:00:01.0",
    "[ 9.5] mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 6: fe00000000800400",
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event[6:40])
@pytest.mark.parametrize(
    "healthy", [one for one in HEALTHY if one.tool == "kernel-log"], ids=lambda one: one.name
)
def test_a_fault_anywhere_in_a_kernel_log_is_no_pass(healthy: Healthy, event: str) -> None:
    lines = pieces(healthy.text)
    for place in range(len(lines) + 1):
        for end in ("\n", "\r\n", "\r"):
            assert (
                healthy.worth("".join([*lines[:place], event + end, *lines[place:]])) == NOT_A_PASS
            ), place


# --- anything ---

LETTERS = st.sampled_from(
    "\x00\x07\x1b\r\n\t \u2028\ufeff\u0660\u00bd,.:;()[]{}\"'-+=*/%0179AaeEnNxX<>|\\"
)
WORDS = st.sampled_from(
    (
        *(
            "nan",
            "NaN",
            "-inf",
            "Infinity",
            "1e999",
            "9" * 400,
            "9" * 5000,
            "-1",
            "0",
            "0x0",
            "1,5",
            "٣",
            "½",
            "²",
        ),
        *(
            "null",
            "true",
            "{}",
            "[]",
            '"',
            "[" * 2000,
            '{"a":' * 2000,
            "N/A",
            "\x1b[31m",
            "\r",
            "\r\n",
            "\x00",
        ),
        *(
            "\n" * 300,
            " " * 3000,
            "(" * 300,
            "MiB",
            "MB/s",
            "°C",
            "OK",
            "FAULTY",
            "Result = PASS",
            "x" * 5000,
        ),
    )
)


@st.composite
def mutated(draw: st.DrawFn, tool: str) -> str:
    """A recording of the tool with one to four things done to it, some of them with a piece of
    another tool's recording.
    """
    text = draw(st.sampled_from(OF_TOOL[tool]))[:20_000]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 200)))
        kind = draw(
            st.sampled_from(
                ("put", "word", "cut", "double", "splice", "comma", "crlf", "bytes", "number")
            )
        )
        if kind == "put":
            text = text[:start] + draw(st.text(LETTERS, max_size=20)) + text[end:]
        elif kind == "word":
            text = text[:start] + draw(WORDS) + text[start:]
        elif kind == "cut":
            text = text[:start] + text[end:]
        elif kind == "double":
            text = text[:end] + text[start:]
        elif kind == "splice":
            other = draw(st.sampled_from(OF_TOOL[draw(st.sampled_from(sorted(READ)))]))
            text = text[:start] + other[draw(st.integers(0, len(other))) :][:2000] + text[end:]
        elif kind == "comma":
            text = re.sub(r"(?<=\d)\.(?=\d)", ",", text)
        elif kind == "crlf":
            text = text.replace(
                "\n", draw(st.sampled_from(("\r\n", "\r", "\n\n", "\x0b", "\u2028")))
            )
        elif kind == "bytes":
            raw = bytearray(text[start:end].encode())
            for place in range(0, len(raw), draw(st.integers(1, 50))):
                raw[place] ^= draw(st.integers(1, 255))
            text = text[:start] + raw.decode(errors="replace") + text[end:]
        elif match := re.compile(r"\d+(?:\.\d+)?").search(text, start):
            text = text[: match.start()] + draw(WORDS) + text[match.end() :]
    return text


@pytest.mark.parametrize("tool", READ)
@EXAMPLES
@given(st.data())
def test_nothing_makes_a_parser_crash(tool: str, data: st.DataObject) -> None:
    """READ lets every exception through that is not declared."""
    READ[tool](data.draw(st.one_of(mutated(tool), mutated(tool), st.text(max_size=300))))


@pytest.mark.parametrize("tool", READ)
@EXAMPLES
@given(st.data())
def test_a_recording_of_another_tool_is_no_pass(tool: str, data: st.DataObject) -> None:
    other = data.draw(
        st.sampled_from([one for one in HEALTHY if one.tool.split("-")[0] != tool.split("-")[0]])
    )
    assert READ[tool](other.text) == NOT_A_PASS


# --- time ---


@pytest.mark.parametrize(("tool", "name"), HOSTILE)
def test_no_text_takes_long_to_read(tool: str, name: str) -> None:
    text = HOSTILE[tool, name](SIZE.get(name, 100_000) * TIMES)
    begun = time.process_time()  # a busy machine is no slow parser
    READ[tool](text)
    assert time.process_time() - begun < 30 * TIMES, f"{len(text)} letters"
