from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from cases import each
from load_program import COMPONENTS, CPUS, ON_CORES, ROOT, forked, gone, run, start, wait_for, whole
from thoroughness import some
from written import written

from acceptance.core import parts
from acceptance.core.parts import CPU
from acceptance.loads import contract
from acceptance.loads.__main__ import parsed
from acceptance.loads.cpu.cores import Core, cores_of
from acceptance.loads.cpu.gemm import LoopResult, WorkerReady, conclude, ratios
from acceptance.loads.protocol import LoadOutput, Output, parse
from acceptance.process.reaper import descendants

LOAD = ("-m", "acceptance.loads", "cpu_gemm")
TINY = (*LOAD, "dtype=float64", "seconds=0.05", "size=64", ON_CORES)


def values(output: LoadOutput, name: str) -> dict[str, float]:
    return {reading.component: reading.value for reading in output.readings if reading.name == name}


@pytest.mark.parametrize(("dtype", "short"), [("float64", "f64"), ("float32", "f32")])
def test_a_clean_run(dtype: str, short: str) -> None:
    argv = ["cpu_gemm", f"dtype={dtype}", "seconds=0.05", "size=64", ON_CORES]
    done = run("-m", "acceptance.loads", *argv)
    assert (done.returncode, done.stderr) == (0, "")
    output = parse(done.stdout)
    contract.prove(parsed(argv), output, {}, 1.0)
    assert output.miscompares == ()
    rates = values(output, f"cpu_gemm_core_{short}")
    assert list(rates) == COMPONENTS
    assert values(output, f"cpu_gemm_{short}") == {CPU: pytest.approx(sum(rates.values()))}
    assert values(output, f"cpu_gemm_miscompares_{short}") == {CPU: 0}
    assert values(output, f"cpu_gemm_products_{short}")[CPU] >= 2 * len(CPUS)


@each("kind", some(["bitflip", "nan", "stuck", "slow:50"], 3))
def test_a_fault_is_stamped_found_and_told_apart(kind: str) -> None:
    output = whole(forked(*TINY, f"inject={kind}"))
    assert output.injected == kind
    told = [(one.check, one.component, getattr(one, "nan", None)) for one in output.miscompares]
    count = values(output, "cpu_gemm_miscompares_f64")[CPU]
    last = COMPONENTS[-1]
    assert (told, min(count, 2)) == {
        "bitflip": ([("repeat", last, 0)], 1),
        "nan": ([("repeat", last, 1)], 1),
        "stuck": ([("exact", last, None)], 2),
        "slow:50": ([], 0),
    }[kind]


@each(
    "words, said",
    [
        ((*TINY, "inject=die"), f"the worker on {COMPONENTS[-1]} was ended by signal 9"),
        ((*TINY, "inject=hang", "grace=1"), f"{COMPONENTS[-1]} has not answered"),
        ((*TINY[:-1], 'cores={"all": [[999999]]}'), "this process may not run on CPU 999999"),
    ],
)
def test_a_load_that_cannot_go_on_ends_with_a_sentence_and_no_figures(
    words: tuple[str, ...], said: str
) -> None:
    done = forked(*words)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert '"end"' not in done.stdout
    assert '"reading"' not in done.stdout


def begun() -> tuple[subprocess.Popen[str], list[int]]:
    """A load that would work for minutes, once its workers are pinned."""
    load = start(*LOAD, "dtype=float32", "seconds=600", "size=64", ON_CORES)

    def pinned() -> bool:
        found = set()
        for pid in descendants(load.pid):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            found |= {line.split()[1] for line in lines if line.startswith("Cpus_allowed_list")}
        return found == {str(cpu) for cpu in CPUS}

    wait_for(pinned)
    return load, descendants(load.pid)


@each(
    "number, who",
    some([(signal.SIGKILL, 0), (signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, 1)], 3),
)
def test_no_worker_outlives_its_parent_or_another(number: signal.Signals, who: int) -> None:
    load, workers = begun()
    with load:
        assert len(workers) == len(CPUS)
        os.kill([load.pid, *workers][who], number)
        out, err = load.communicate(timeout=30)
        assert (load.returncode, "was ended by signal 9" in err) == (1 if who else -number, who > 0)
        assert '"end"' not in out
        wait_for(lambda: all(gone(pid) for pid in workers))


def test_the_parents_do_not_load_numpy() -> None:
    every = sorted(path.stem for path in (ROOT / "acceptance/loads/cpu").glob("*.py"))
    modules = [f"acceptance.loads.cpu.{name}" for name in every if not name.endswith("_worker")]
    assert "acceptance.loads.cpu.memory_bandwidth" in modules
    done = run(
        "-c",
        f"import sys, acceptance.loads.__main__, {', '.join(modules)};"
        "print('numpy' in sys.modules)",
    )
    assert done.stdout == "False\n", done.stderr


CORE = cores_of({"p": ((0,), (1,), (2,)), "e": ((3,), (4,)), "x": ((5,),)}, set(range(6)))


def test_a_core_is_held_against_the_others_of_its_group() -> None:
    rates = dict(zip(CORE, [100.0, 80.0, 110.0, 30.0, 60.0, 1.0], strict=True))
    found = {core.cpu: ratio for core, ratio in ratios(rates).items()}
    assert found == {0: 100 / 95, 1: 80 / 105, 2: 110 / 90, 3: 0.5, 4: 2.0}


def concluded(ready: dict[Core, WorkerReady], laps: dict[Core, LoopResult]) -> LoadOutput:
    def whole_output(output: Output) -> None:
        output.hello("cpu_gemm", {})
        conclude(output, "float64", 100, ready, laps)

    return parse(written(whole_output))


def ready(digest: str = "d", right: bool = True) -> WorkerReady:
    return WorkerReady(digest, right, "numpy")


@each(
    "first, laps, wrong, products, notes",
    [
        (  # two operations for each of size cubed
            [ready(), ready()],
            [LoopResult(1000, 0, 2.0), LoopResult(500, 1, 1.0)],
            1,
            1501,
            ["sha256 of the first product on every core: d"],
        ),
        # a core with other bits than the rest is a miscompare
        ([*[ready()] * 4, ready("other")], [LoopResult(1, 0, 1.0)] * 5, 1, 9, []),
        # one whose first product was wrong has no say and no verified product
        (
            [ready(), ready("wrong", right=False)],
            [LoopResult(10, 0, 1.0), LoopResult(20, 20, 1.0)],
            21,
            11,
            [],
        ),
    ],
)
def test_what_all_cores_make(
    first: list[WorkerReady], laps: list[LoopResult], wrong: int, products: int, notes: list[str]
) -> None:
    cores = CORE[: len(laps)]
    output = concluded(dict(zip(cores, first, strict=True)), dict(zip(cores, laps, strict=True)))
    rates = values(output, "cpu_gemm_core_f64")
    assert rates == {
        core.component: 2 * 100**3 * lap.products / lap.seconds / 1e9
        for core, lap in zip(cores, laps, strict=True)
    }
    assert values(output, "cpu_gemm_f64") == {CPU: pytest.approx(sum(rates.values()))}
    assert values(output, "cpu_gemm_miscompares_f64") == {CPU: wrong}
    assert values(output, "cpu_gemm_products_f64") == {CPU: products}
    assert output.notes == ("products made by numpy", *notes)
    told = [(one.check, one.digests["other"]) for one in output.miscompares]
    assert told == ([("digest", (parts.Core(4),))] if len(first) == 5 else [])
