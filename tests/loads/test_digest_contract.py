"""What proves the training run whose bits are compared: the same run on every GPU, whole."""

from __future__ import annotations

import sys
from typing import Any

from cases import each
from load_texts import (
    Change,
    Lines,
    cell,
    changed,
    drop,
    hello,
    line_of,
    printed,
    reading,
    refusal,
    rows,
)
from sound_loads import Flip, digest_run

from acceptance.loads.miscompare import REPEATS_DIFFER, DigestFormat
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train.digest_contract import STEPS, TABLE, Ask, formats, runs

ASK = Ask(seconds=20.0)
ABOUT = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}


def output(*changes: Change, capability: str = "9.0", **more: Any) -> LoadOutput:
    about = {**ABOUT, "capability": capability}
    return changed(printed(ASK, about, **more), *changes)


def code(*changes: Change, **more: Any) -> str:
    return refusal(ASK, output(*changes, **more), {"uuid": "GPU-1"})


def test_a_sound_output() -> None:
    assert code() == code(capability="7.5") == ""
    found = runs(output())
    assert (found.versions.gpu, found.versions.multiprocessors) == ("NVIDIA H200", 132)
    assert (found.versions.cublas, found.versions.recipe) == ("12.8.4", 1)
    assert (found.repeats, found.differing) == (12, ())
    assert set(found.first) == {"bf16", "tf32"}
    assert {one.steps for one in found.first.values()} == {STEPS}
    assert set(runs(output(capability="7.5")).first) == {"f16", "f32"}


def test_repeats_that_differ_are_counted_by_format() -> None:
    wrong = Flip()
    differing = [("bf16", 1, wrong), ("bf16", 2, wrong), ("tf32", 11, wrong)]
    assert code(differing=differing) == ""
    found = runs(output(differing=differing))
    assert (found.differing_in("bf16"), found.differing_in("tf32")) == (2, 1)


def log(old: str, new: str) -> Change:
    def change(lines: Lines) -> None:
        one = line_of(lines, "log")
        assert old in one["text"]
        one["text"] = one["text"].replace(old, new, 1)

    return change


def fewer_layers(lines: Lines) -> None:
    """A run of a smaller model, whose row agrees with it."""
    run = digest_run("bf16")
    tensors = run.tensors[:-1]
    rows = tuple(
        row if row.part == "loss" else row._replace(stamps=row.stamps[:-1]) for row in run.rows
    )
    small = type(run)(tensors, rows)
    line_of(lines, "log")["text"] = small.text()
    line_of(lines, "table")["rows"][0][3:6] = small.summaries


def of_another_gpu(lines: Lines) -> None:
    line_of(lines, "log")["component"] = "gpu1"


@each(
    "change, why",
    [
        *(
            (hello(**{name: value}), "load_parameter")
            for name, value in (
                ("device", "cpu"),
                ("steps", 10),
                ("batch", 1),
                ("recipe", 2),
                ("sequence", 32),
                ("model", "tiny"),
                ("seconds", 1.0),
                ("formats", ["f16", "tf32"]),
                ("formats", ["bf16"]),
                ("formats", None),
                ("capability", "new"),
                ("capability", None),
                ("uuid", "GPU-2"),
            )
        ),
        (hello(capability=None, formats=None), "load_parameter"),
        (hello(capability=None, formats=[]), "load_parameter"),
        *(
            (hello(**{name: value}), "load_library_untold")
            for name, value in (
                ("library", ""),
                ("library", None),
                ("cublas", None),
                ("gpu", 7),
                ("multiprocessors", 0),
                ("multiprocessors", "132"),
            )
        ),
        (cell(TABLE, 0, 0, "f16"), "load_digest_rows"),
        (cell(TABLE, 0, 1, 19), "load_digest_rows"),
        (cell(TABLE, 0, 2, 11), "load_digest_rows"),
        (rows(TABLE, lambda found: [[*row[:2], 1, *row[3:]] for row in found]), "load_repeats"),
        (rows(TABLE, lambda found: [[*row[:2], 2.5, *row[3:]] for row in found]), "load_repeats"),
        (rows(TABLE, lambda found: [[*row[:2], "2", *row[3:]] for row in found]), "load_repeats"),
        (cell(TABLE, 0, 3, "0" * 16), "load_digest_rows"),
        (cell(TABLE, 0, 4, "0" * 16), "load_digest_rows"),
        (cell(TABLE, 0, 5, "0" * 16), "load_digest_rows"),
        (cell(TABLE, 0, 6, 0.0), "load_digest_rows"),
        (cell(TABLE, 0, 6, -1.0), "load_digest_rows"),
        (cell(TABLE, 0, 6, "-"), "load_digest_rows"),
        (cell(TABLE, 0, 6, float(sys.maxsize)), "load_digest_rows"),
        (log("tensors", "names"), "load_digests_unread"),
        (log("0 loss ", "0 loss f"), "load_digests_unread"),
        (log("norm.weight", "norm.wait"), "load_digest_rows"),
        (fewer_layers, "load_digest_rows"),
        (drop("log"), "load_without_log"),
        (of_another_gpu, "load_without_log"),
        (drop("table"), "load_without_table"),
        (drop("reading"), "load_unmeasured"),
        (reading(REPEATS_DIFFER, 1), "load_uncounted"),
    ],
)
def test_what_is_not_the_run_of_every_gpu_proves_nothing(change: Change, why: str) -> None:
    assert code(change) == why


@each(
    "differing, change, why",
    [
        ([("bf16", 1, Flip())], reading(REPEATS_DIFFER, 0), "load_uncounted"),
        ([("bf16", 1, Flip())], reading(REPEATS_DIFFER, 2), "load_uncounted"),
        ([("bf16", 1, Flip())] * 2, reading(REPEATS_DIFFER, 2), "load_uncounted"),
        ([("bf16", 12, Flip())], reading(REPEATS_DIFFER, 1), "load_digest_rows"),
        ([("f16", 1, Flip())], reading(REPEATS_DIFFER, 1), "load_digest_rows"),
    ],
)
def test_wrong_repeats_and_their_count_must_agree(
    differing: list[tuple[DigestFormat, int, Flip]], change: Change, why: str
) -> None:
    assert code(change, differing=differing) == why


@each(
    "capability, due",
    [
        ("9.0", ("bf16", "tf32")),
        ("8.0", ("bf16", "tf32")),
        ("7.5", ("f16", "f32")),
        ("6.1", ("f16", "f32")),
    ],
)
def test_an_older_gpu_takes_other_formats(capability: str, due: tuple[DigestFormat, ...]) -> None:
    assert formats(capability) == due
