"""Every parser of tools on altered texts, quickly: `make test-attack` does the same at length."""

from __future__ import annotations

import contextlib

import pytest
from attacks import (
    HEALTHY,
    NOT_A_PASS,
    Healthy,
    ended_early,
    fewer,
    pieces,
    with_a_line_again,
    without_a_line,
)
from hypothesis import given
from hypothesis import strategies as st
from parsers import PARSERS

from acceptance.process.unreadable import UnreadableOutput

OF_TOOLS = [one for one in HEALTHY if one.tool in PARSERS]
WORDS = ("\n", "\r", "\t", " ", "nan", "0.00 ", "9" * 400, "{", "}", "[", "]", ",", "N/A", "...")
# What the lines of sound texts do not have.
MORE = {
    "fio": (
        *('{"fio version" : ', '"fio-3.33", ', '"jobs" : [', '{"jobname" : "x", "error" : 0'),
        *(', "read" : {', '"io_bytes" : ', "1", "fio: pid=1, err=", "5/", "/x offset 7,"),
        *("verify: bad header at file ", "fio: io_u error on file /x: "),
        "Input/output error: read offset=0, buflen=1",
    ),
    "stress-ng": (
        *("stress-ng: ", "info:  [1] ", "fail:  [1] ", "metrc: [1] ", "dispatching hogs: "),
        *("2 cpu", "cpu ", "1 ", "2.00 ", "stressor bogo ops real time", "s", "errno=1"),
        *("successful run completed in ", "setting to a ", " run per stressor", "passed: "),
        "terminated on signal",
    ),
    "stressapptest": (
        *("Stats: ", "Log: ", "Status: ", "PASS - please verify", "Starting SAT, ", "1M, "),
        *("4 seconds", "Completed: ", "1.0M in ", "2.0s ", "3.0MB/s, ", "Memory Copy: "),
        *("with 0 hardware incidents, 0 errors", "1.0M at 2.0MB/s", "Commandline - -F"),
        "Found 0 hardware incidents",
    ),
    "gpu-burn": (
        *(
            "10.0%  proc'd: ",
            "100.0%  proc'd: ",
            "8 (52000 Gflop/s) ",
            "24 (5 Gflop/s) ",
            "- ",
            "/ ",
        ),
        *("  errors: ", "0 ", "-1 ", " (DIED!)", " (WARNING!)", "  temps: ", "60 C ", "-- "),
        *("Tested 1 GPUs:", "GPU 0: OK", "GPU 1: FAULTY", "Low mem for result"),
        "No clients are alive",
    ),
    "p2pBandwidthLatencyTest": ("Device: ", "D\\D 0\n"),
} | dict.fromkeys(
    ("topo-m", "topo-p2p"),
    (
        *("GPU0", "GPU1", "NIC0", "CPU Affinity", "NUMA Affinity", "X", "NV4", "SYS", "OK", "U"),
        "0-7",
    ),
)


def spread(count: int, most: int) -> range:
    """At most so many places, as far apart as they can be."""
    return range(0, count, 1 + max(count - 1, 0) // most)


@pytest.mark.parametrize("healthy", OF_TOOLS, ids=[one.name for one in OF_TOOLS])
def test_no_line_lost_doubled_or_cut_alters_a_pass(healthy: Healthy) -> None:
    places = spread(len(pieces(healthy.text)), 20)
    for attack in (without_a_line, with_a_line_again, ended_early):
        attack(healthy, places)
    whole = healthy.worth(healthy.text)
    for end in spread(len(healthy.text) if healthy.tool != "kernel-log" else 0, 60):
        left = healthy.worth(healthy.text[:end])
        assert left in (NOT_A_PASS, whole) or fewer(whole, left), healthy.text[:end][-80:]


@pytest.mark.parametrize("tool", PARSERS)
@given(st.data())
def test_nothing_makes_a_parser_crash(tool: str, data: st.DataObject) -> None:
    lines = [line for one in OF_TOOLS if one.tool == tool for line in pieces(one.text)[:40]]
    words = st.sampled_from([*lines, *WORDS, *MORE.get(tool, ())])
    with contextlib.suppress(UnreadableOutput):
        output = PARSERS[tool](data.draw(st.one_of(st.text(), st.lists(words).map("".join))))
        assert output.outcome in {"pass", "fail", "error"}


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("an illegal memory access was encountered", "error"),
        ("uncorrectable ECC error encountered", "fail"),
    ],
)
def test_a_cuda_error_beside_a_healthy_text_is_no_pass(said: str, outcome: str) -> None:
    names = {"bandwidthTest", "deviceQuery", "gpu-burn", "p2pBandwidthLatencyTest", "nvbandwidth"}
    every = [one for one in OF_TOOLS if one.tool in names]
    assert {one.tool for one in every} == names
    for one in every:
        assert PARSERS[one.tool](f"{one.text}\nCUDA error: {said}\n").outcome == outcome, one.name


@given(st.one_of(st.text(), st.lists(st.sampled_from([*WORDS, *MORE["fio"]])).map("".join)))
def test_no_pieces_make_a_pass_of_fio(text: str) -> None:
    with contextlib.suppress(UnreadableOutput):
        assert PARSERS["fio"](text).outcome in {"fail", "error"}
