"""The readers of the loads of training: what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import train_layer_texts as texts
from cases import each

from acceptance.loads.train.layer_grid import GRID
from acceptance.loads.train.layer_load import arguments
from acceptance.process.command import ProgramResult
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.train_output import (
    read_train_layer_table,
    read_train_layers,
    train_layers_argv,
)

UUID = "GPU-1"
ABOUT = {"uuid": UUID, "gpu": "NVIDIA H200", "capability": "9.0"}
Lines = list[dict[str, Any]]


def completed(lines: Lines, seconds: float = 20.0) -> ProgramResult:
    return ProgramResult(("load",), 0, texts.printed(lines), "", seconds)


def judged(lines: Lines, **asked: Any) -> Any:
    given: dict[str, Any] = {"dtype": "bf16", "seconds": 8.0, "also": {"uuid": UUID}, **asked}
    return read_train_layers(completed(lines), **given)


def tabled(lines: Lines, **asked: Any) -> Any:
    given: dict[str, Any] = {"dtype": "bf16", "seconds": 8.0, "also": {"uuid": UUID}, **asked}
    return read_train_layer_table(completed(lines), **given)


def layers(**given: Any) -> Lines:
    return texts.lines(ABOUT, seconds=8.0, **given)


def table(**given: Any) -> Lines:
    return texts.table_lines(ABOUT, seconds=8.0, **given)


def test_the_command_line_is_what_the_load_reads() -> None:
    argv = train_layers_argv("python3", dtype="f16", seconds=6, table=True, inject="slow")
    assert argv[:3] == ("python3", "-m", "acceptance.loads.train.layer_load")
    options = arguments().parse_args(argv[3:])
    told = options.device, options.dtype, options.seconds, options.table, options.inject
    assert told == ("cuda", "f16", 6.0, True, "slow")
    options = arguments().parse_args(train_layers_argv("python3", dtype="bf16", seconds=8)[3:])
    assert (options.table, options.inject) == (False, None)


def test_whole_output_is_read() -> None:
    output = judged(layers())
    assert {one.name: one.value for one in output.readings}["layer_bert"] == 436.0
    assert len(tabled(table()).tables[0].rows) == 176
    assert judged(layers(), dtype=None, seconds=None, also=None).load == "train_layers"
    assert tabled(table(), dtype=None, seconds=None).load == "train_layers"


def test_wrong_results_are_read_and_counted() -> None:
    assert len(judged(layers(wrong=[texts.WRONG])).miscompares) == 1
    for read, lines in (
        (judged, layers(wrong=[texts.WRONG])),
        (tabled, table(wrong=[texts.WRONG])),
    ):
        _reading(lines, "layer_miscompares")["value"] = 0.0
        with pytest.raises(LoadFailed, match="told of wrong results and counted none") as caught:
            read(lines)
        assert len(caught.value.miscompares) == 1


def test_a_smaller_gpu_has_a_smaller_batch() -> None:
    lines = layers()
    lines[0]["parameters"]["batches"]["llama"] = 2
    _of(lines, "rows")["rows"][4][3] = 2
    assert judged(lines).tables[0].rows[4][3] == 2


def _of(lines: Lines, key: str) -> dict[str, Any]:
    return next(one for one in lines if key in one)


def _reading(lines: Lines, name: str) -> dict[str, Any]:
    return next(one for one in lines if one.get("reading") == name)


def test_what_is_not_as_it_must_be_is_refused() -> None:
    def refused(said: str, read: Any, lines: Lines, **asked: Any) -> None:
        with pytest.raises(LoadFailed, match=said):
            read(lines, **asked)

    refused("ran with dtype = 'bf16', and 'f16' was asked for", judged, layers(), dtype="f16")
    refused("ran with seconds = 8.0, and 9.0 was asked", judged, layers(), seconds=9.0)
    refused("ran with uuid", judged, layers(), also={"uuid": "GPU-2"})
    refused("ran with table = True", judged, table())
    refused("ran with table = False", tabled, layers())
    lines = layers()
    lines[0]["parameters"]["device"] = "cpu"
    refused("ran with device = 'cpu', and 'cuda' was asked for", judged, lines)
    lines = layers()
    lines.remove(_reading(lines, "layer_gpt2"))
    lines[-1]["readings"] -= 1
    refused("layer_gpt2 of gpu0", judged, lines)
    for batches in (None, {"bert": 64}, {**layers()[0]["parameters"]["batches"], "gpt2": 48}):
        lines = layers()
        lines[0]["parameters"]["batches"] = batches
        refused("ran with batches", judged, lines)
    lines = layers()
    _reading(lines, "layer_bert_share")["value"] = 0.9
    refused(r"layer_bert_share is 0\.9, which is not 436 / 658", judged, lines)
    lines = layers()
    _reading(lines, "layer_matmul")["value"] = 0.0
    refused("layer_matmul is 0, so nothing was done in its time", judged, lines)
    lines = layers(share=0.0)
    refused("layer_bert_forward is 0, so nothing was done in its time", judged, lines)
    lines = layers()
    lines[0]["parameters"]["dtype"] = "f16"
    refused("ran with dtype = 'f16', and 'bf16' was asked for", judged, lines, dtype=None)
    for capability in ("7.5", "none", None):
        lines = layers()
        lines[0]["parameters"]["capability"] = capability
        refused("ran with dtype = 'bf16'", judged, lines)
    for read, made in ((judged, layers), (tabled, table)):
        lines = made()
        lines.remove(_of(lines, "note"))
        refused("did not show that all (155|300) tensors were compared", read, lines)
        lines = made(wrong=[texts.WRONG])
        note = _of(lines, "note")
        note["note"] = note["note"].replace("1 of them", "0 of them")
        refused("did not show that all (155|300) tensors were compared", read, lines)
    for place, value in ((0, "llama"), (1, "f16"), (2, 128), (3, 32), (4, 1.0), (5, 1.0), (6, 1)):
        lines = layers()
        _of(lines, "rows")["rows"][0][place] = value
        refused("does not have exactly the due layers", judged, lines)
    lines = layers()
    _of(lines, "rows")["rows"].pop()
    refused("does not have exactly the due layers", judged, lines)


def test_a_run_that_was_too_short_is_refused() -> None:
    done = completed(layers(), seconds=7.0)
    with pytest.raises(LoadFailed, match="7"):
        read_train_layers(done, dtype="bf16", seconds=8.0)
    read_train_layer_table(completed(table(), seconds=1.0), dtype="bf16", seconds=8.0)


@each("reason", ["no time", "no memory"])
def test_a_cell_without_a_rate_says_why(reason: str) -> None:
    lines = table(without={("llama", "bf16", 2048, 8): reason})
    assert tabled(lines).tables[0].rows[43][4:] == (reason,) * 3


def test_an_older_gpu_has_fewer_formats() -> None:
    older = {**ABOUT, "capability": "7.5"}
    lines = texts.table_lines(older, seconds=8.0, dtype="f16", formats=("f16", "f32"))
    assert len(tabled(lines, dtype="f16").tables[0].rows) == 88


def test_what_is_not_as_it_must_be_in_the_table_is_refused() -> None:
    def refused(lines: Lines, said: str = "does not have exactly the due layers") -> None:
        with pytest.raises(LoadFailed, match=said):
            tabled(lines)

    refused(table(without={("llama", "bf16", 2048, 8): "too lazy"}))
    every = [(name, "bf16", s, b) for name, s, batches in GRID for b in batches]
    refused(table(without=dict.fromkeys(every, "no time")))  # nothing in the judged format
    refused(table(formats=("bf16",)), "ran with formats = .'bf16'., and .*'f32'. was asked for")
    for formats in (None, ["f32", "bf16", "f16", "tf32"], ["f64"]):
        lines = table()
        lines[0]["parameters"]["formats"] = formats
        refused(lines, "ran with formats")
    for row in ("pop", "twice"):
        lines = table()
        rows = _of(lines, "rows")["rows"]
        rows.pop() if row == "pop" else rows.append(rows[0])
        refused(lines)
    for place, value in ((4, "no time"), (5, 0.0), (6, -1.0)):
        lines = table()
        _of(lines, "rows")["rows"][7][place] = value
        refused(lines)
    lines = table()
    _reading(lines, "layer_dense")["value"] = 0.0
    refused(lines, "layer_dense is 0")
    lines = table()
    lines.remove(_reading(lines, "layer_dense"))
    lines[-1]["readings"] -= 1
    refused(lines, "layer_dense of gpu0")
