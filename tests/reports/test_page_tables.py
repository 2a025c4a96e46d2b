from __future__ import annotations

import drawn

from acceptance.core.evidence import Table
from acceptance.reports.page import tables

GEMM, COPIES = "compute.gemm_together", "compute.copies"
RATE = ("n", "TFLOP/s")


def test_formats_stand_side_by_side() -> None:
    found = tables.text_tables(
        [
            Table(GEMM, "gpu0", "gemm_f64", RATE, ((128.0, 0.31234), (8192.0, 53.6))),
            Table(GEMM, "gpu0", "gemm_bf16", (*RATE, "MFU"), ((8192.0, 814.0, 0.823),)),
            Table(GEMM, "gpu1", "gemm_f64", RATE, ((128.0, 0.3),)),
            Table(
                COPIES,
                "gpu0",
                "elementwise",
                ("elements", "GB/s"),
                ((65536.0, 134.0), ("L2", "none")),
            ),
        ]
    )
    titles = [table.title for table in found]
    assert titles == [f"{GEMM} on gpu0", f"{GEMM} on gpu1", f"{COPIES} on gpu0"]
    assert tuple(found[0].head) == ("n", "gemm_f64 TFLOP/s", "gemm_bf16 TFLOP/s", "gemm_bf16 MFU")
    assert drawn.cells(found[0]) == [("128", "0.3123", "", ""), ("8192", "53.6", "814", "0.823")]
    assert drawn.cells(found[2]) == [("65536", "134"), ("L2", "none")]
    for nothing in ([], [Table("check", "gpu0", "empty", (), ())]):
        assert tables.text_tables(nothing) == ()


def test_a_table_whose_rows_begin_alike_stands_by_itself_whole() -> None:
    laps = Table(
        "together.burn",
        "gpu0",
        "burn_laps",
        ("lap", "format", "TFLOP/s"),
        ((0.0, "f64", 53.0), (0.0, "f32", 51.0)),
    )
    digests = Table(
        "together.burn",
        "gpu0",
        "burn_digests",
        ("format", "result"),
        (("f64", "aa"), ("f64", "bb")),
    )
    unique = Table("together.burn", "gpu0", "other", ("format", "count"), (("f64", 1.0),))
    first, second, third = tables.text_tables([laps, digests, unique])
    assert first.title == "together.burn on gpu0: burn_laps"
    assert first.head == laps.columns
    assert drawn.cells(first) == [("0", "f64", "53"), ("0", "f32", "51")]
    assert drawn.cells(second) == [("f64", "aa"), ("f64", "bb")]
    assert (third.title, list(third.head)) == ("together.burn on gpu0", ["format", "other count"])
