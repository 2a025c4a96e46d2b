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


def names(output: ToolOutput) -> set[str]:
    return {reading.name.removeprefix("nccl_tests_") for reading in output.readings}


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


def test_a_text_that_is_cut_after_a_wrong_value() -> None:
    begun = settings() + device(0) + device(1) + header()
    line = "  ".join(row(SIZES[0], RATES[0], wrong=(12, 0)).split()[:9])
    assert outcome(begun + line) == "fail"
    assert outcome(begun + line.replace(" 12", " 0")) == "error"
    # words that were lost move the others: nothing is proved
    for place in (2, 3, 4):
        words = row(SIZES[0], RATES[0]).split()
        del words[place]
        assert outcome(begun + " ".join(words)) == "error"
        assert outcome(begun + " ".join([*words[:8], "7"])) == "error"


def test_the_sum_alone_is_a_fault() -> None:
    assert outcome("# Out of bounds values : 4 FAILED\n") == "fail"
    assert outcome(SOUND.replace(footer(), footer(wrong=4))) == "fail"
    unreadable = SOUND.replace(" 2.50 ", " nan ", 1).replace(footer(), footer(wrong=4))
    assert outcome(unreadable) == "fail"


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


@each("wrong", [("N/A", "N/A"), ("N/A", 0)])
def test_values_that_were_not_compared_prove_nothing(wrong: tuple[object, object]) -> None:
    output = nccl_tests.parse(whole(table=rows(wrong=wrong)))
    assert (output.outcome, why_of(output)[:24]) == ("error", "values were not compared")
    old = nccl_tests.parse(whole(OLD, table=rows(OLD, wrong=("N/A", "N/A")), validation=0))
    assert old.outcome == "error"


def test_in_place_alone_is_a_note() -> None:
    form = Form("alltoall")
    output = nccl_tests.parse(whole(form, table=rows(form, redop="none", wrong=(0, "N/A"))))
    assert (output.outcome, notes(output)) == ("pass", ["nccl_tests_in_place_unchecked"])
    nothing = rows(form, redop="none", wrong=(0, "N/A"))
    for line in nothing.splitlines():
        nothing = nothing.replace(line, "  ".join([*line.split()[:9], *["N/A"] * 4]))
    output = nccl_tests.parse(whole(form, table=nothing))
    assert (output.outcome, notes(output)) == ("pass", ["nccl_tests_in_place_unchecked"])
    assert "bus_bandwidth_in_place" not in names(output)
    # in some rows only: no version prints that
    assert outcome(whole(table=rows()[: rows().rindex("0\n")] + "N/A\n")) == "error"


def test_one_rank_sends_nothing() -> None:
    output = nccl_tests.parse(whole(ranks=1, table=rows(rates=(0.0, 0.0, 0.0))))
    assert (output.outcome, notes(output)) == ("pass", ["nccl_tests_one_rank"])
    assert names(output) == {"wrong", "ranks"}


def test_ranks_of_many_nodes() -> None:
    for ranks in (16, 24):
        devices = "".join(device(rank, host=f"node{rank // 8}") for rank in range(ranks))
        output = nccl_tests.parse(settings(gpus=1) + devices + header() + rows() + footer())
        assert (output.outcome, values(output, "ranks")) == ("pass", {"gpus": ranks})
    # the program's room ends before its devices do
    devices = "".join(map(device, range(23))) + device(23)[:20] + "...\n"
    output = nccl_tests.parse(settings(gpus=32) + devices + header() + rows() + footer())
    assert (output.outcome, notes(output)) == ("pass", ["nccl_tests_ranks_shortened"])


def test_several_types_and_operations() -> None:
    table = rows() + rows(kind="half", redop="max") + rows(root=1)
    output = nccl_tests.parse(whole(table=table))
    assert output.outcome == "pass", why_of(output)
    names_of = {"float sum", "half max", "float sum root 1"}
    assert values(output, "bus_bandwidth") == dict.fromkeys(names_of, 180.0)
    assert values(output, "wrong") == {"gpus": 0}
    # several cycles: the last counts
    twice = rows() + rows(rates=(0.02, 2.5, 170.0))
    assert values(nccl_tests.parse(whole(table=twice)), "bus_bandwidth") == {"gpus": 170.0}


def test_sizes_by_bytes_and_one_size() -> None:
    step = "step: 67104768(bytes)"
    table = row(8192, 0.02) + row(67112960, 170.0) + row(134217728, 180.0)
    assert outcome(whole(table=table).replace("step: 128(factor)", step)) == "pass"
    one = whole(table=row(8192, 0.02)).replace("maxBytes 134217728", "maxBytes 8192")
    one = one.replace("60.8417", "0.025")
    assert outcome(one.replace("step: 128(factor)", "step: 1048576(bytes)")) == "pass"
    assert outcome(one) == "pass"
    reduced = whole(table=rows()[: rows().rindex("   134217728")]).replace(
        "# Using devices",
        "# Reducing maxBytes to 2097152 due to memory limitation\n# Using devices",
    )
    reduced = reduced.replace("60.8417", "1.26")
    assert outcome(reduced) == "pass"


def test_several_programs_one_behind_the_other() -> None:
    gather = Form("all_gather")
    output = nccl_tests.parse(SOUND + whole(gather, table=rows(gather, redop="none")))
    assert output.outcome == "pass"
    assert values(output, "ranks") == {"all_reduce": 2, "all_gather": 2}
    assert values(output, "bus_bandwidth") == {"all_reduce": 180.0, "all_gather": 180.0}
    same = nccl_tests.parse(f"$ ./build/all_reduce_perf -g 2\n{whole(MIDDLE)}{whole(MIDDLE)}")
    assert values(same, "ranks") == {"all_reduce": 2, "all_reduce (2)": 2}
    types = nccl_tests.parse(SOUND + whole(gather, table=rows(gather) + rows(gather, kind="int8")))
    assert set(values(types, "bus_bandwidth")) == {
        *("all_reduce", "all_gather float sum", "all_gather int8 sum")
    }
    wrong = whole(gather, table=rows(gather, wrong=(1, 0)))
    assert outcome(SOUND + wrong) == "fail"
    assert outcome(wrong + SOUND) == "fail"
    assert outcome(SOUND + whole(gather).replace(footer(gather), "")) == "error"
    # programs of one rank each, because MPI was not built in
    apart = settings(MIDDLE, gpus=1) * 2 + device(0, MIDDLE) * 2 + header(MIDDLE)
    assert outcome(apart + rows(MIDDLE) + footer(MIDDLE)) == "error"


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


def test_a_row_that_another_program_splits_is_cut() -> None:
    first = row(SIZES[0], RATES[0])
    split = f"{first[:60]}{NCCL}\nwarning: of another\n{first[60:]}"
    assert outcome(SOUND.replace(first, split)) == "error"
    assert outcome(SOUND.replace(first, f"{first[:60]}{NCCL}\n")) == "error"
    begun = settings() + device(0) + device(1) + header()
    assert outcome(f"{begun}{first[:60]}{NCCL}\n") == "error"
    assert outcome(f"{begun}{first[:60]}{NCCL}") == "error"


def test_a_line_of_nccl_behind_the_operation() -> None:
    first = row(SIZES[0], RATES[0], OLD, wrong=("0e+00", "0e+00"))
    head, rest = first[: first.index("sum") + 3], first[first.index("sum") + 3 :]
    text = whole(OLD)
    assert nccl_tests.parse(text.replace(first, f"{head} {NCCL}\n{rest}")) == nccl_tests.parse(text)


WARN = "node:1:2 [0] transport/net_ib.cc:94 NCCL WARN "


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


def test_a_warning_that_is_harmless_is_an_event() -> None:
    line = f"{WARN}NET/IB : mlx5_0:1 Got async error event: client reregistration"
    output = nccl_tests.parse(SOUND.replace(rows(), f"{line}\n{rows()}"))
    assert (output.outcome, notes(output)) == ("pass", [])
    assert [event["class"] for event in output.events] == ["harmless"]


def test_lines_that_later_versions_print() -> None:
    more = (
        "# Blocking Enabled: wait for completion and barrier after each collective \n"
        "# Parallel Init Enabled: threads call into NcclInitRank concurrently \n"
    )
    text = whole(more=more).replace(
        "#\n# Coll", "# GPU memory usage     : A 1 GB | Total  1 GB\n#\n# Coll"
    )
    text = f"# Writing JSON output to x.json\n{text}"
    assert nccl_tests.parse(text) == nccl_tests.parse(SOUND)


def test_the_bandwidth_that_its_user_asked_for() -> None:
    asked = SOUND.replace("60.8417 ", "60.8417 OK")
    assert nccl_tests.parse(asked) == nccl_tests.parse(SOUND)
    assert outcome(asked.replace("60.8417 OK", "60.8417 FAILED")) == "fail"
    one = whole(ranks=1, table=rows(rates=(0.0, 0.0, 0.0))).replace("60.8417 ", "0 FAILED")
    assert outcome(one) == "error"


@each("text", ["", "a text of somebody", "./all_reduce_perf -g 8", "Result = PASS"])
def test_a_foreign_text(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        nccl_tests.parse(text)


def test_a_program_that_did_not_start() -> None:
    text = settings() + device(0) + device(1) + header()
    assert nccl_tests.parse(text).outcome == "error"
    failed = f"{text}node: Test NCCL failure common.cu:1 'internal error'\n"
    assert "Test NCCL failure" in why_of(nccl_tests.parse(failed))


@each("average, due", [("6", "error"), ("0", "error"), ("121.8", "error"), ("60.8", "pass")])
def test_an_average_that_the_rows_contradict(average: str, due: str) -> None:
    """A text that is cut within the number says a tenth of it."""
    text = whole().replace(
        footer(), f"# Out of bounds values : 0 OK\n# Avg bus bandwidth : {average}\n"
    )
    assert outcome(text) == due


@each("half", [0, 1])
@each("time, due", [("900.00", "pass"), ("81.92", "error"), ("0.00", "error")])
def test_a_rate_of_0_that_time_and_size_contradict(time: str, due: str, half: int) -> None:
    words = row(SIZES[0], RATES[0]).split()
    words[5 + 4 * half : 8 + 4 * half] = [time, "0.00", "0.00"]
    table = " ".join(words) + "\n" + rows().split("\n", 1)[1]
    assert outcome(whole(table=table)) == due
