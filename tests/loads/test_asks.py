"""What a load is asked: as JSON in argv, and typed by people."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from cases import each
from load_program import run

from acceptance.loads import asks
from acceptance.loads.__main__ import main, parsed
from acceptance.loads.asks import ASKS, MODULES, AnyAsk
from acceptance.loads.contract import Ask as BaseAsk
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm.contract import SIZES, Ask
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.pulse.contract import Step
from acceptance.loads.storage.contract import KINDS, LEAST, Feed
from acceptance.loads.train import layer_contract as layers

GEMM = Ask(dtypes=("f64", "bf16"), seconds=6.0, size=4096, table=SIZES, inject="slow")
ONE = 'cores={"all": [[0]]}'
OF_SOCKET = 'cores={"socket0": [[0]]}'
ON_DISK = ["folder=/d", "component=disk:md0"]
GROUP = ["collective", "backend=gloo", "seconds=1", "ranks=2"]
PAIR = ["collective_pair", "backend=gloo", "address=n1", "within=9", "rank=0", "test=t"]
TYPED = ["gpu_gemm", "dtypes=f64,bf16", "seconds=6", "size=4096", "inject=slow"]


def test_argv_is_the_ask() -> None:
    for ask in (GEMM, Ask(dtypes=("i8",), seconds=0.5, size=64)):
        assert asks.of_argv(asks.argv("/usr/bin/python3", ask)) == ask
    assert asks.of_argv(("gpu-burn", "-tc", "60", "1")) is None


def test_people_type_the_same() -> None:
    assert parsed(["storage_feed", *ON_DISK, f"bytes={LEAST}", "seconds=1", "gpu=true"]) == Feed(
        folder="/d", component="disk:md0", bytes=LEAST, seconds=1.0, gpu=True
    )
    typed = parsed(["train_layers", "dtype=f16", "seconds=8", "table=true"])
    assert typed == layers.Ask(dtype="f16", seconds=8.0, table=True)
    assert parsed([*TYPED, f"table={','.join(map(str, SIZES))}"]) == GEMM
    assert parsed([*TYPED, f"table={list(SIZES)}"]) == GEMM
    both = pulse.Ask(gpus=2, steps=(Step("cold", 8.0, gpus=1), Step("square", 9.0, 0.5)))
    for typed in ("cold,8,,1/square,9,0.5", '[["cold", 8, null, 1], ["square", 9, 0.5]]'):
        assert parsed(["pulse", "gpus=2", f"steps={typed}"]) == both
    assert parsed(['{"load": "gpu_gemm", "dtypes": ["i8"], "seconds": 1}']) == Ask(
        dtypes=("i8",), seconds=1.0
    )
    kinds = 'cores={"performance": [[0, 1], [2, 3]], "efficiency": [[4]]}'
    assert parsed(["cpu_gemm", "dtype=float64", "seconds=8", kinds]) == cpu.Gemm(
        dtype="float64",
        seconds=8.0,
        cores={"performance": ((0, 1), (2, 3)), "efficiency": ((4,),)},
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
        *(
            ["burn", "dtypes=f64,bf16", "seconds=1", one]
            for one in (
                *("peers=-1", "peers=32", "peers=1.5", "peers=", "plain=perhaps", "laps=3"),
                *("inject=fire", "inject=slow", "inject=slow:0", "inject=slow:91", "inject=bit "),
            )
        ),
        *(["burn", f"dtypes={one}", "seconds=1"] for one in ("f64,f64", "[]")),
        *(
            ["train_digest", *one.split()]
            for one in (
                "device=cuda",
                "seconds=0",
                "seconds=1 device=tpu",
                "seconds=1 inject=fire",
                "seconds=1 inject_seed=-1",
                "seconds=1 trials=2",
            )
        ),
        *(
            ["train_parallel", "seconds=1", *one.split()]
            for one in (
                "ranks=1",
                "ranks=17",
                "ranks=x",
                "ranks=2 ways=ddp,pipeline",
                "ranks=2 ways=tp,tp",
                "ranks=2 ways=",
                "ranks=2 accumulate=2",
                "ranks=2 accumulate=1,1",
                "ranks=2 arms=multicast",
                "ranks=2 grace=0",
                "ranks=2 inject=order",
                "ranks=2 backend=mpi",
            )
        ),
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", f"cores={one}"]
            for one in (
                "",
                "0;1",
                "{}",
                "{0}",
                '{"all": []}',
                '{"all": [[]]}',
                '{"all": [0]}',
                '{"all": [[-1]]}',
                '{"all": [[1000000]]}',
                '{"all": [["0-3"]]}',
                '{"A": [[0]]}',
                '{"": [[0]]}',
                '{"all": [[0], [0]]}',
                '{"a": [[0]], "b": [[1, 0]]}',
            )
        ),
        ["cpu_gemm", "dtype=float16", "seconds=1", ONE],
        ["cpu_gemm", "seconds=1", ONE],
        *(["cpu_gemm", "dtype=float64", f"seconds={one}", ONE] for one in ("nan", "0", "inf", "x")),
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", ONE, f"size={one}"]
            for one in ("7", "9000", "64.5")
        ),
        *(
            ["cpu_gemm", "dtype=float64", "seconds=1", ONE, f"inject={one}"]
            for one in ("slow:0", "slow:100", "fire", "bitflip,")
        ),
        *(
            ["memory_bandwidth", "seconds=1", ONE, f"llc_bytes={one}"]
            for one in ("0", "32M", "1.5", str(10**15))
        ),
        ["memory_bandwidth", "seconds=1", ONE],
        ["memory_bandwidth", "seconds=1", ONE, "llc_bytes=1", "megabytes_per_core=0"],
        ["memory_bandwidth", "seconds=1", ONE, "llc_bytes=1", "inject=nan"],
        *(
            ["memory_random", "seconds=1", OF_SOCKET, "llc_bytes=1", f"gib={one}"]
            for one in ("nan", "inf", "0", "-1")
        ),
        ["memory_random", "seconds=1", ONE, "llc_bytes=1", "gib=1"],
        *(
            ["storage_checkpoint", *ON_DISK, f"bytes={one}"]
            for one in ("0", "262143", "-5", "1.5", "x", "", str((1 << 37) + 1))
        ),
        *(
            ["storage_checkpoint", "folder=/d", f"component={one}", f"bytes={LEAST}"]
            for one in ("dimm:A1", "disk:", "vda", "")
        ),
        ["storage_checkpoint", "folder=", "component=disk:md0", f"bytes={LEAST}"],
        ["storage_checkpoint", *ON_DISK, f"bytes={LEAST}", "seconds=1"],
        ["storage_memmap", *ON_DISK, f"bytes={LEAST}"],
        ["storage_feed", *ON_DISK, f"bytes={LEAST}", "seconds=1", "gpu=2"],
        *(
            ["storage_kept", *ON_DISK, f"bytes={LEAST}", *more]
            for more in (
                ("machine=m", "way=both"),
                ("machine=", "way=read"),
                ("way=read",),
                ("machine=m", "way=write", "inject=fire"),
                *(("machine=m", "way=read", f"inject={one}") for one in KINDS if one != "flight"),
            )
        ),
        ["gpu_copy", "peers=1"],
        *(["gpu_copy", "seconds=1", f"peers={one}"] for one in ("-1", "256", "1.5", "")),
        *(["gpu_copy", "seconds=1", f"mib={one}"] for one in ("0", "16385", "1.5")),
        *(
            ["gpu_copy", "seconds=1", "turns=/tmp", f"link={one}"]
            for one in ("../machine", "", "GPU0", "gpu0\n", "x" * 33)
        ),
        ["gpu_copy", "seconds=1", "turns=", "link=gpu0"],
        ["gpu_copy", "seconds=1", "turns=/tmp"],
        ["gpu_copy", "seconds=1", "link=gpu0"],
        ["gpu_copy", "seconds=0"],
        ["gpu_copy", "seconds=1", "inject=die"],
        *(
            [*GROUP, one]
            for one in ("most=9", "inject=slow", "turns=0", "turns=1000", "arms=", "arms=on")
        ),
        *([*GROUP[:-1], f"ranks={one}"] for one in ("1", "65", "x")),
        [*GROUP, "arms=default,default"],
        *([*PAIR, one] for one in ("port=0", "port=65536", "gpu=-1", "most=9")),
        [*PAIR[:-1], "test="],
        [*PAIR[:-2], "rank=2", "test=t"],
        ["train_layers", "dtype=f32", "seconds=1"],
        ["train_layers", "dtype=bf16", "seconds=1", "device=tpu"],
        ["train_layers", "dtype=bf16", "seconds=1", "table=perhaps"],
        ["train_step", "seconds=0"],
        ["train_step", "seconds=1", "inject=fire"],
        ["train_step", "seconds=1", "tables=true"],
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
    with pytest.raises(LoadError):
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
        assert named == {field.encode_name for field in msgspec.structs.fields(ask)}
    assert main(["gpu_gem", "--help"]) == 2


@each(
    "words",
    [
        ["gpu_gemm", "dtypes=f64", "seconds=1"],
        ["train_layers", "dtype=bf16", "seconds=1"],
        ["train_step", "seconds=1"],
    ],
)
def test_without_torch_or_a_gpu_a_load_says_so_and_prints_nothing(words: list[str]) -> None:
    done = run("-m", "acceptance.loads", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{words[0]}: torch ")
    assert len(done.stderr.splitlines()) == 1


def test_neither_an_ask_nor_its_reader_loads_torch_or_numpy() -> None:
    done = run(
        "-c",
        "import sys, acceptance.loads.__main__, acceptance.session.loads;"
        "print({'torch', 'numpy'} & sys.modules.keys())",
    )
    assert done.stdout == "set()\n", done.stderr


def test_each_ask_has_its_load() -> None:
    assert set(get_args(AnyAsk)) == set(MODULES) == set(ASKS.values())
    for ask, name in MODULES.items():
        load = import_module(f"acceptance.loads.{name}")
        taken = get_type_hints(load.run)["ask"]
        assert ask in (get_args(taken) or (taken,))


def test_a_load_owes_nothing_that_its_contract_does_not_say() -> None:
    class Nothing(BaseAsk, tag="nothing", frozen=True, kw_only=True):
        """A load without readings."""

    output: Any = LoadOutput("nothing", {}, (), (), ())
    ask = Nothing()
    assert (ask.parameters(), ask.least_s(output)) == ({}, 0.0)
    assert not ask.due(output).readings
    ask.prove(output)
