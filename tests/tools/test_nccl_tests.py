"""The tables of nccl-tests: wrong values fail, and what is cut, missing or N/A proves nothing."""

from __future__ import annotations

import pytest
from cases import each
from nccl_tests_texts import (
    MIDDLE,
    NEW,
    OLD,
    OLD_BROADCAST,
    OLD_GATHER,
    RATES,
    SIZES,
    Form,
    device,
    footer,
    header,
    row,
    rows,
    settings,
    whole,
)
from reasons import why_of

from acceptance.core.message import Listed, Message
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import nccl_tests
from acceptance.tools.reading import ToolOutput

SOUND = whole()
NCCL = "node:4711:4720 [0] NCCL INFO Launch mode Parallel"


def outcome(text: str) -> str:
    """The outcome as `rigproof read` gives it."""
    try:
        return nccl_tests.parse(text).outcome
    except UnreadableOutput:
        return "error"


def values(output: ToolOutput, name: str) -> dict[str, float]:
    return {str(where): value for where, value in output.reading(f"nccl_tests_{name}").items()}


def notes(output: ToolOutput) -> list[str]:
    assert isinstance(output.reason, Message)
    told = output.reason.values.get("notes", Listed(()))
    assert isinstance(told, Listed)
    return [one.code for one in told.items if isinstance(one, Message)]


FORMS = [
    NEW,
    MIDDLE,
    OLD,
    OLD_GATHER,
    OLD_BROADCAST,
    Form(per_iteration=True),
    Form(stamps=True),
    Form(per_iteration=True, stamps=True),
    Form(time="cputime"),
]


@each("form", FORMS)
def test_a_whole_text_is_a_pass(form: Form) -> None:
    output = nccl_tests.parse(whole(form))
    assert output.outcome == "pass", why_of(output)
    assert notes(output) == []
    assert values(output, "bus_bandwidth") == {"gpus": 180.0}
    assert values(output, "bus_bandwidth_in_place") == {"gpus": 180.01}
    assert values(output, "average_bus_bandwidth") == {"gpus": 60.8417}
    assert values(output, "wrong") == {"gpus": 0}
    assert values(output, "ranks") == {"gpus": 2}


@each("form", FORMS)
@each("half", [0, 1])
def test_wrong_values_fail(form: Form, half: int) -> None:
    sound = "0e+00" if form.wrong == "error" else 0
    # the old column has a deviation: the program says by its sum whether it is one too many
    bad = "3e+01" if form.wrong == "error" else "1.5e+06"
    wrong = (bad, sound) if half == 0 else (sound, bad)
    table = "".join(
        row(size, rate, form, wrong=wrong if size == SIZES[1] else (sound, sound))
        for size, rate in zip(SIZES, RATES, strict=True)
    )
    text = whole(form, table=table).replace(footer(form), footer(form, wrong=2))
    output = nccl_tests.parse(text)
    assert output.outcome == "fail"
    counted = 2.0 if form.wrong == "error" else 1.5e6
    assert values(output, "wrong") == {"gpus": counted}
    # whatever else is missing
    for part in (text.replace(footer(form, wrong=2), ""), text.split("\n", 6)[-1]):
        assert outcome(part) == ("fail" if form.wrong == "#wrong" or "bounds" in part else "error")
    # a program that says 0 of a table that counts wrong values, or deviates far
    lied = text.replace(footer(form, wrong=2), footer(form))
    assert outcome(lied) == ("fail" if form.wrong == "#wrong" else "error")


@each(
    "old, new",
    [
        (footer(), ""),
        (footer().split("\n")[0], ""),
        (footer().split("\n")[1], ""),
        (settings().split("\n")[2], ""),
        (device(0), ""),
        (device(1), ""),
        (device(0) + device(1), ""),
        (header(), ""),
        ("  root ", " "),
        (" #wrong", ""),
        ("algbw", "speed"),
        ("redop", "reduce"),
        (row(SIZES[0], RATES[0]), ""),
        (row(SIZES[1], RATES[1]), ""),
        (row(SIZES[2], RATES[2]), ""),
        (rows(), ""),
        (rows(), rows()[:-30]),
        (rows(), rows()[:-200] + "\n" + rows()[-200:]),
        ("0 OK", "0 FAILED"),
        ("0 OK", "-1 OK"),
        ("0 OK", "nan OK"),
        ("60.8417", "nan"),
        ("60.8417", "-1"),
        ("60.8417", ""),
        ("60.8417 ", "60.8417 MAYBE"),
        (footer(), footer() + footer(average="1")),
        (" 2.50 ", " nan "),
        (" 2.50 ", " 1e999 "),
        (" 2.50 ", " -2.50 "),
        (" 2.50 ", " N/A "),
        ("  2.50        2.50  ", "  2.50        0.00  "),
        ("   0\n", "   -1\n"),
        ("   0\n", "   0.5\n"),
        ("   0\n", "   x\n"),
        ("   0\n", "   0   0\n"),
        ("validation: 1", "validation: 0"),
        ("step: 128(factor)", "step: 1(factor)"),
        ("step: 128(factor)", "step: 0(bytes)"),
        ("step: 128(factor)", "step: 4096(bytes)"),
        ("step: 128(factor)", "step: 128(jumps)"),
        ("minBytes 8192", "minBytes 0"),
        ("maxBytes 134217728", "maxBytes 34359738368"),
        ("nGpus 2", "nGpus 3"),
        ("nGpus 2", f"nGpus {'9' * 5000}"),
        ("Rank  1", "Rank  0"),
        ("Rank  1", "Rank  2"),
        ("  8192 ", "  -8192 "),
        ("  8192 ", "  8192.5 "),
        ("  8192 ", "  999999999 "),
        ("  2048 ", "  x "),
    ],
)
def test_what_is_cut_or_contradicts_itself_proves_nothing(old: str, new: str) -> None:
    assert old in SOUND
    assert outcome(SOUND.replace(old, new, 1)) == "error"


WARN = "node:1:2 [0] transport/net_ib.cc:94 NCCL WARN "
BEGUN = settings() + device(0) + device(1) + header()
FIRST = row(SIZES[0], RATES[0])
CUT_ROW = "  ".join(row(SIZES[0], RATES[0], wrong=(12, 0)).split()[:9])
GATHER, ALL_TO_ALL = Form("all_gather"), Form("alltoall")
OF_GATHER = whole(GATHER, table=rows(GATHER, redop="none"))
WRONG_GATHER = whole(GATHER, table=rows(GATHER, wrong=(1, 0)))
OUT_OF_PLACE = rows(ALL_TO_ALL, redop="none", wrong=(0, "N/A"))
STEP, ONE_RANK = "step: 128(factor)", whole(ranks=1, table=rows(rates=(0.0, 0.0, 0.0)))
ONE_SIZE = (
    whole(table=row(8192, 0.02))
    .replace("maxBytes 134217728", "maxBytes 8192")
    .replace("60.8417", "0.025")
)
REDUCED = whole(table=rows()[: rows().rindex("   134217728")]).replace("60.8417", "1.26")
ASKED = SOUND.replace("60.8417 ", "60.8417 OK")
HARMLESS = "NET/IB : mlx5_0:1 Got async error event: client reregistration"


def lacking(place: int, *more: str) -> str:
    """A row that lost a word, with more behind its first half."""
    words = FIRST.split()
    del words[place]
    return " ".join([*words[: 8 if more else None], *more])


def timed(half: int, time: str) -> str:
    """A table whose first row has this time and rates of 0."""
    words = FIRST.split()
    words[5 + 4 * half : 8 + 4 * half] = [time, "0.00", "0.00"]
    return whole(table=" ".join(words) + "\n" + rows().split("\n", 1)[1])


def of_hosts(ranks: int, gpus: int, more: str = "") -> str:
    devices = "".join(device(rank, host=f"node{rank // 8}") for rank in range(ranks))
    return settings(gpus=gpus) + devices + more + header() + rows() + footer()


@each(
    "text, due",
    [
        # a text that is cut after a wrong value; words that were lost move the others
        (BEGUN + CUT_ROW, "fail"),
        (BEGUN + CUT_ROW.replace(" 12", " 0"), "error"),
        *((BEGUN + lacking(place, *more), "error") for place in (2, 3, 4) for more in ((), ("7",))),
        # the sum alone
        ("# Out of bounds values : 4 FAILED\n", "fail"),
        (SOUND.replace(footer(), footer(wrong=4)), "fail"),
        (SOUND.replace(" 2.50 ", " nan ", 1).replace(footer(), footer(wrong=4)), "fail"),
        # values that were not compared; in place in some rows only: no version prints that
        *((whole(table=rows(wrong=wrong)), "error") for wrong in (("N/A", "N/A"), ("N/A", 0))),
        (whole(OLD, table=rows(OLD, wrong=("N/A", "N/A")), validation=0), "error"),
        (whole(table=rows()[: rows().rindex("0\n")] + "N/A\n"), "error"),
        # sizes
        (
            whole(table=row(8192, 0.02) + row(67112960, 170.0) + row(134217728, 180.0)).replace(
                STEP, "step: 67104768(bytes)"
            ),
            "pass",
        ),
        (ONE_SIZE, "pass"),
        (ONE_SIZE.replace(STEP, "step: 1048576(bytes)"), "pass"),
        (
            REDUCED.replace(
                "# Using devices",
                "# Reducing maxBytes to 2097152 due to memory limitation\n# Using devices",
            ),
            "pass",
        ),
        # several programs
        (SOUND + WRONG_GATHER, "fail"),
        (WRONG_GATHER + SOUND, "fail"),
        (SOUND + whole(GATHER).replace(footer(GATHER), ""), "error"),
        (  # of one rank each, because MPI was not built in
            settings(MIDDLE, gpus=1) * 2
            + (device(0, MIDDLE) * 2 + header(MIDDLE) + rows(MIDDLE) + footer(MIDDLE)),
            "error",
        ),
        # a row that another program splits
        (SOUND.replace(FIRST, f"{FIRST[:60]}{NCCL}\nwarning: of another\n{FIRST[60:]}"), "error"),
        (SOUND.replace(FIRST, f"{FIRST[:60]}{NCCL}\n"), "error"),
        *((f"{BEGUN}{FIRST[:60]}{NCCL}{end}", "error") for end in ("", "\n")),
        # the bandwidth that its user asked for
        (ASKED.replace("60.8417 OK", "60.8417 FAILED"), "fail"),
        (ONE_RANK.replace("60.8417 ", "0 FAILED"), "error"),
        # an average that the rows contradict: one that is cut says a tenth of it
        *(
            (
                SOUND.replace(
                    footer(), f"# Out of bounds values : 0 OK\n# Avg bus bandwidth : {average}\n"
                ),
                due,
            )
            for average, due in (
                *(("6", "error"), ("0", "error"), ("121.8", "error"), ("60.8", "pass")),
            )
        ),
        # a rate of 0 that time and size contradict
        *(
            (timed(half, time), due)
            for half in (0, 1)
            for time, due in (("900.00", "pass"), ("81.92", "error"), ("0.00", "error"))
        ),
        (BEGUN, "error"),
    ],
)
def test_what_a_text_is_worth(text: str, due: str) -> None:
    assert outcome(text) == due


@each(
    "text, codes, gone",
    [
        (whole(ALL_TO_ALL, table=OUT_OF_PLACE), ["in_place_unchecked"], set()),
        (
            whole(
                ALL_TO_ALL,
                table="".join(
                    "  ".join([*line.split()[:9], *["N/A"] * 4]) + "\n"
                    for line in OUT_OF_PLACE.splitlines()
                ),
            ),
            ["in_place_unchecked"],
            {"bus_bandwidth_in_place"},
        ),
        (ONE_RANK, ["one_rank"], {"bus_bandwidth", "average_bus_bandwidth"}),
        # the program's room ends before its devices do
        (of_hosts(23, 32, device(23)[:20] + "...\n"), ["ranks_shortened"], set()),
        (SOUND.replace(rows(), f"{WARN}{HARMLESS}\n{rows()}"), [], set()),
    ],
)
def test_notes_of_a_pass(text: str, codes: list[str], gone: set[str]) -> None:
    output = nccl_tests.parse(text)
    assert (output.outcome, notes(output)) == ("pass", [f"nccl_tests_{one}" for one in codes])
    assert not {f"nccl_tests_{one}" for one in gone} & {one.name for one in output.readings}
    assert [event["class"] for event in output.events] == ["harmless"] * (HARMLESS in text)


@each(
    "text, name, due",
    [
        *((of_hosts(ranks, 1), "ranks", {"gpus": ranks}) for ranks in (16, 24)),
        *(
            (whole(table=rows() + rows(kind="half", redop="max") + rows(root=1)), name, due)
            for name, due in (
                (
                    "bus_bandwidth",
                    dict.fromkeys(("float sum", "half max", "float sum root 1"), 180.0),
                ),
                ("wrong", {"gpus": 0}),
            )
        ),
        # several cycles: the last counts
        (
            whole(table=rows() + rows(rates=(0.02, 2.5, 170.0))),
            "bus_bandwidth",
            {"gpus": 170.0},
        ),
        (SOUND + OF_GATHER, "ranks", {"all_reduce": 2, "all_gather": 2}),
        (SOUND + OF_GATHER, "bus_bandwidth", {"all_reduce": 180.0, "all_gather": 180.0}),
        (
            f"$ ./build/all_reduce_perf -g 2\n{whole(MIDDLE)}{whole(MIDDLE)}",
            "ranks",
            {"all_reduce": 2, "all_reduce (2)": 2},
        ),
        (
            SOUND + whole(GATHER, table=rows(GATHER) + rows(GATHER, kind="int8")),
            "bus_bandwidth",
            dict.fromkeys(("all_reduce", "all_gather float sum", "all_gather int8 sum"), 180.0),
        ),
    ],
)
def test_readings(text: str, name: str, due: dict[str, float]) -> None:
    output = nccl_tests.parse(text)
    assert output.outcome == "pass", why_of(output)
    assert values(output, name) == due


OLD_ROW = row(SIZES[0], RATES[0], OLD, wrong=("0e+00", "0e+00"))
BEHIND = OLD_ROW.index("sum") + 3
LATER = (
    "# Blocking Enabled: wait for completion and barrier after each collective \n"
    "# Parallel Init Enabled: threads call into NcclInitRank concurrently \n"
)


@each(
    "text, same",
    [
        # a line of NCCL behind the operation
        (
            whole(OLD).replace(OLD_ROW, f"{OLD_ROW[:BEHIND]} {NCCL}\n{OLD_ROW[BEHIND:]}"),
            whole(OLD),
        ),
        # lines that later versions print
        (
            "# Writing JSON output to x.json\n"
            + whole(more=LATER).replace(
                "#\n# Coll", "# GPU memory usage     : A 1 GB | Total  1 GB\n#\n# Coll"
            ),
            SOUND,
        ),
        (ASKED, SOUND),
    ],
)
def test_what_changes_nothing(text: str, same: str) -> None:
    assert nccl_tests.parse(text) == nccl_tests.parse(same)


def test_why_nothing_is_proved() -> None:
    output = nccl_tests.parse(whole(table=rows(wrong=("N/A", "N/A"))))
    assert why_of(output).startswith("values were not compared")
    failed = f"{BEGUN}node: Test NCCL failure common.cu:1 'internal error'\n"
    assert "Test NCCL failure" in why_of(nccl_tests.parse(failed))


@each(
    "tag",
    [
        "[prterun-node-1-4711@1,0]<stdout>: ",
        "[1,0]<stdout>:",
        "[1,0]<stdout>: ",
        "0: ",
        "[0] ",
        "2026-01-02T03:04:05Z ",
    ],
)
def test_prefixes_of_launchers(tag: str) -> None:
    text = "".join(f"{tag}{line}\n" for line in SOUND.splitlines())
    assert nccl_tests.parse(text) == nccl_tests.parse(SOUND)
    others = tag.replace("0", "1", 1) if "Z" not in tag else tag
    other = others.replace("1,1", "1,1").replace("[1,0]", "[1,1]")
    mixed = text.replace(f"{tag}# Using", f"{other}{NCCL}\n{tag}# Using")
    assert nccl_tests.parse(mixed) == nccl_tests.parse(SOUND)


@each("place", range(6))
def test_lines_of_nccl_within_a_row(place: int) -> None:
    first = row(SIZES[0], RATES[0])
    words = first.split()
    head, half = "   ".join(words[:5]), "   ".join(words[5:9])
    rest = "   ".join(words[9:])
    split = [
        f"  {head}{NCCL}\n   {half}   {rest}\n",
        f"  {head} {NCCL}\n{NCCL}\n   {half}   {rest}\n",
        f"  {head}   {half}{NCCL}\n   {rest}\n",
        f"  {head}{NCCL}\n   {half}{NCCL}\n   {rest}\n",
        f"  {head}   {half}   {rest}{NCCL}\n\n",
        f"{first}{NCCL}\n",
    ][place]
    assert nccl_tests.parse(SOUND.replace(first, split)) == nccl_tests.parse(SOUND)


@each(
    "line, due",
    [
        ("node: Test NCCL failure common.cu:392 'unhandled cuda error'", "error"),
        (" .. node pid 5068: Test failure common.cu:590", "error"),
        ("node: Test CUDA failure common.cu:291 'out of memory'", "error"),
        ("node: Test CUDA failure common.cu:291 'uncorrectable ECC error encountered'", "fail"),
        ("Test timeout (20s) all_reduce.cu:90", "error"),
        ("mpirun noticed that process rank 3 with PID 1 exited on signal 9 (Killed).", "error"),
        ("srun: error: node1: task 3: Killed", "error"),
        ("Segmentation fault (core dumped)", "error"),
        ("Bus error", "error"),
        ("Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.", "fail"),
        (f"{WARN}NET/IB : mlx5_0:1 Got async error event: port error", "error"),
        (f"{WARN}NET/IB : mlx5_0:1 async fatal event: local catastrophic error", "fail"),
        (f"{WARN}Cuda failure 214 'uncorrectable ECC error encountered'", "fail"),
        (f"{WARN}Cuda failure 1 'invalid argument'", "error"),
    ],
)
def test_a_failure_beside_a_whole_table_is_no_pass(line: str, due: str) -> None:
    for text in (
        f"{line}\n{SOUND}",
        f"{SOUND}{line}\n",
        SOUND.replace(rows(), f"{line}\n{rows()}"),
    ):
        assert outcome(text) == due
    # wrong values are the stronger word
    if due == "error":
        assert outcome(f"{whole(table=rows(wrong=(1, 0)))}{line}\n") == "fail"


@each(
    "line, note",
    [
        ("WARNING: There was an initialisation of a fabric that nobody needs.", "unknown_lines"),
        ("# a comment of a later version", "unknown_lines"),
        ("# error: something that NCCL remembers", "unknown_lines"),
        (f"{WARN}a sentence of a later version", ""),
    ],
)
def test_what_is_not_known_is_a_note(line: str, note: str) -> None:
    output = nccl_tests.parse(SOUND.replace(rows(), f"{rows()}{line}\n"))
    assert output.outcome == "pass"
    assert notes(output) == [f"nccl_tests_{note}" if note else "nccl_warning_unknown"]
    assert line[:30] in why_of(output)


@each("text", ["", "a text of somebody", "./all_reduce_perf -g 8", "Result = PASS"])
def test_a_foreign_text(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        nccl_tests.parse(text)
