"""What a load is asked: as JSON in argv, and typed by people."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cases import each
from load_program import run

from acceptance.loads import asks
from acceptance.loads.__main__ import UsageError, main, parsed
from acceptance.loads.asks import ASKS
from acceptance.loads.contract import Ask as BaseAsk
from acceptance.loads.gemm.contract import SIZES, Ask
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.pulse.contract import Step

GEMM = Ask(dtypes=("f64", "bf16"), seconds=6.0, size=4096, table=SIZES, inject="slow")
TYPED = ["gpu_gemm", "dtypes=f64,bf16", "seconds=6", "size=4096", "inject=slow"]


def test_argv_is_the_ask() -> None:
    for ask in (GEMM, Ask(dtypes=("i8",), seconds=0.5)):
        assert asks.of_argv(asks.argv("/usr/bin/python3", ask)) == ask
    assert asks.of_argv(("gpu-burn", "-tc", "60", "1")) is None


def test_people_type_the_same() -> None:
    assert parsed([*TYPED, f"table={','.join(map(str, SIZES))}"]) == GEMM
    assert parsed([*TYPED, f"table={list(SIZES)}"]) == GEMM
    both = pulse.Ask(gpus=2, steps=(Step("cold", 8.0, gpus=1), Step("square", 9.0, 0.5)))
    for typed in ("cold,8,,1/square,9,0.5", '[["cold", 8, null, 1], ["square", 9, 0.5]]'):
        assert parsed(["pulse", "gpus=2", f"steps={typed}"]) == both
    assert parsed(['{"load": "gpu_gemm", "dtypes": ["i8"], "seconds": 1}']) == Ask(
        dtypes=("i8",), seconds=1.0
    )


@each(
    "words",
    [
        ["gpu_gem", "seconds=1"],
        ["gpu_gemm"],
        ["gpu_gemm", "seconds=1"],
        ["gpu_gemm", "dtypes=i8", "seconds=1", "seconds=2"],
        ["gpu_gemm", "dtypes=i8", "seconds"],
        ["gpu_gemm", "dtypes=i8", "seconds=1", "load=gpu_gemm"],
        ["gpu_gemm", "dtypes=i8,i8", "seconds=1"],
        ["gpu_gemm", "dtypes=float64", "seconds=1"],
        ["gpu_gemm", "dtypes=", "seconds=1"],
        ["gpu_gemm", "dtypes=[i8", "seconds=1"],
        *(
            ["gpu_gemm", "dtypes=i8", f"seconds={one}"]
            for one in ("0", "nan", "inf", "-1", "", "x")
        ),
        *(
            ["gpu_gemm", "dtypes=i8", "seconds=1", f"size={one}"]
            for one in ("32", "8190", "1e3", "65536")
        ),
        *(
            ["gpu_gemm", "dtypes=i8", "seconds=1", f"table={one}"]
            for one in ("512,128", "128,128", "16", "100", "128,", "-128")
        ),
        ["gpu_gemm", "dtypes=i8", "seconds=1", "inject=fire"],
        *(["pulse", f"gpus={one}", "steps=cold,8"] for one in ("0", "65", "x")),
        *(
            ["pulse", "gpus=2", f"steps={one}"]
            for one in (
                *("", "square", "square,x,5", "sine,1,5", "square,1", "cold,8,1", "cold,2"),
                *("square,1,5,3", "square,1,5,0", "square,1,5,1,1", "anti_phase,1,2,1", "cold,8/"),
                '[["cold"]]',
            )
        ),
        ["pulse", "gpus=2", "steps=cold,8", "inject=fire"],
        ['{"load": "gpu_gemm", "dtypes": ["i8"], "seconds": NaN}'],
        ['{"load": "gpu_gemm", "dtypes": ["i8"], "seconds": 1, "size": 8192, "more": 1}'],
        ['{"dtypes": ["i8"]}'],
        ['{"load": "gpu_gemm", "dtypes": ["i8"], "seconds": 1}', "size=64"],
        ["{"],
    ],
)
def test_a_mistake_is_one_sentence_before_anything_starts(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError):
        parsed(words)
    assert main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_help_names_every_load_and_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    said = capsys.readouterr().out
    for name, ask in ASKS.items():
        assert f"\n{name}: " in said
        assert main([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        named = {line.partition(":")[0] for line in lines[2:]}
        assert named == {field.name for field in msgspec.structs.fields(ask)}
    assert main(["gpu_gem", "--help"]) == 2


def test_without_torch_or_a_gpu_a_load_says_so_and_prints_nothing() -> None:
    done = run("-m", "acceptance.loads", "gpu_gemm", "dtypes=f64", "seconds=1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("gpu_gemm: torch ")
    assert len(done.stderr.splitlines()) == 1


def test_neither_an_ask_nor_its_reader_loads_torch_or_numpy() -> None:
    done = run(
        "-c",
        "import sys, acceptance.loads.__main__, acceptance.session.loads;"
        "print({'torch', 'numpy'} & sys.modules.keys())",
    )
    assert done.stdout == "set()\n", done.stderr


def test_a_load_owes_nothing_that_its_contract_does_not_say() -> None:
    class Nothing(BaseAsk, tag="nothing", frozen=True, kw_only=True):
        """A load without readings."""

    output: Any = LoadOutput("nothing", {}, (), (), ())
    ask = Nothing()
    assert (ask.parameters(), ask.least_s(output)) == ({}, 0.0)
    assert not ask.due(output).readings
    ask.prove(output)
