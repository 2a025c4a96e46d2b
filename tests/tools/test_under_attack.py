"""Every parser under attack: whatever is done to a text, none crashes or hangs, and none calls a
text a pass that lost its proof.

`RIGPROOF_ATTACKS=N` takes N times as many examples, every line of the long texts, and random seeds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

import pytest
from attack_rules import ALTERED, NOT_NEEDED
from attack_texts import HOSTILE, SIZE
from attacks import (
    HEALTHY,
    INDEX,
    NOT_A_PASS,
    READ,
    RECORDINGS,
    TIMES,
    Healthy,
    ended_early,
    fewer,
    listed,
    pieces,
    with_a_line_again,
    without_a_line,
)
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


# --- lines ---


@pytest.mark.parametrize("attack", [without_a_line, with_a_line_again, ended_early])
@pytest.mark.parametrize("healthy", HEALTHY, ids=IDS)
def test_lines_lost_doubled_or_cut_off(
    healthy: Healthy, attack: Callable[[Healthy, Sequence[int]], None]
) -> None:
    attack(healthy, chosen(healthy, pieces(healthy.text)))


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
