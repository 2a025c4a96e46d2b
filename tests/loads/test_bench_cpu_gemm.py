from __future__ import annotations

import re

from load_program import run


def test_the_benchmark_prints_one_line_a_dtype() -> None:
    done = run("-m", "benchmarks.cpu_gemm", "--seconds", "0.01", "--pairs", "2", "--size", "64")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["float64", "float32"]
    assert all(
        re.search(r"ratio \d+\.\d{4} \(\d+\.\d{4} to \d+\.\d{4}, 2 pairs\)$", line)
        for line in lines
    )
