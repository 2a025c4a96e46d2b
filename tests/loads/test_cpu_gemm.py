from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from cases import each
from load_program import COMPONENTS, CPUS, ON_CORES, ROOT, forked, gone, run, start, wait_for
from thoroughness import some
from wrong_results import CORE_REPEATED, all_of

from acceptance.core import parts
from acceptance.core.parts import CPU
from acceptance.loads import contract
from acceptance.loads.__main__ import parsed
from acceptance.loads.cpu.cores import Core, cores_of
from acceptance.loads.cpu.gemm import LoopResult, WorkerReady, conclude, ratios
from acceptance.loads.protocol import LoadOutput, Output, parse, salvage
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


@each("kind", some(["bitflip", "nan", "stuck"], 2))
def test_a_wrong_result_is_found_and_told_apart(kind: str) -> None:
    done = forked(*TINY, f"inject={kind}")
    assert done.returncode == 0
    output = parse(done.stdout)
    assert output.injected == kind
    (found,) = output.miscompares
    assert found.component == COMPONENTS[-1]
    if kind == "stuck":
        assert found.check == "exact"
        assert values(output, "cpu_gemm_miscompares_f64")[CPU] > 1
    else:
        assert (found.check, found.nan) == ("repeat", int(kind == "nan"))
        assert values(output, "cpu_gemm_miscompares_f64") == {CPU: 1}


def test_a_worker_that_dies_leaves_no_end() -> None:
    done = forked(*TINY, "inject=die")
    assert done.returncode == 1
    assert done.stderr.startswith(f"cpu_gemm: the worker on {COMPONENTS[-1]} was ended by signal 9")
    assert '"end"' not in done.stdout
    assert '"reading"' not in done.stdout


def test_a_worker_that_hangs_is_given_up() -> None:
    done = forked(*TINY, "inject=hang", "grace=1")
    assert done.returncode == 1
    assert f"{COMPONENTS[-1]} has not answered" in done.stderr
    assert '"end"' not in done.stdout


def test_a_slowed_run_is_stamped() -> None:
    assert parse(forked(*TINY, "inject=slow:50").stdout).injected == "slow:50"


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


@each("number", some([signal.SIGKILL, signal.SIGINT, signal.SIGTERM], 2))
def test_no_worker_outlives_its_parent(number: signal.Signals) -> None:
    load, workers = begun()
    with load:
        assert len(workers) == len(CPUS)
        load.send_signal(number)
        out, _ = load.communicate(timeout=30)
        assert load.returncode == -number
        assert '"end"' not in out
        wait_for(lambda: all(gone(pid) for pid in workers))


def test_a_worker_killed_from_outside_ends_the_load() -> None:
    load, workers = begun()
    with load:
        os.kill(workers[0], signal.SIGKILL)
        out, err = load.communicate(timeout=30)
        assert load.returncode == 1
        assert "was ended by signal 9" in err
        assert '"end"' not in out
        wait_for(lambda: all(gone(pid) for pid in workers))


def test_a_core_that_is_not_ours_is_refused_before_anything_is_heated() -> None:
    done = forked(*TINY[:-1], 'cores={"all": [[999999]]}')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "this process may not run on CPU 999999" in done.stderr


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
    stream = io.StringIO()
    output = Output(stream)
    output.hello("cpu_gemm", {})
    conclude(output, "float64", 100, ready, laps)
    return parse(stream.getvalue())


def test_rates_count_two_operations_for_each_of_size_cubed() -> None:
    output = concluded(
        {core: WorkerReady("d", True, "numpy") for core in CORE[:2]},
        {CORE[0]: LoopResult(1000, 0, 2.0), CORE[1]: LoopResult(500, 1, 1.0)},
    )
    assert values(output, "cpu_gemm_core_f64") == {parts.Core(0): 1.0, parts.Core(1): 1.0}
    assert values(output, "cpu_gemm_f64") == {CPU: 2.0}
    assert values(output, "cpu_gemm_miscompares_f64") == {CPU: 1}
    assert values(output, "cpu_gemm_products_f64") == {CPU: 1501}
    assert output.notes == (
        "products made by numpy",
        "sha256 of the first product on every core: d",
    )


def test_a_core_with_other_bits_than_the_rest_is_a_miscompare() -> None:
    ready = {core: WorkerReady("d", True, "numpy") for core in CORE}
    ready[CORE[4]] = WorkerReady("other", True, "numpy")
    output = concluded(ready, {core: LoopResult(1, 0, 1.0) for core in CORE})
    (found,) = output.miscompares
    assert found.check == "digest"
    assert found.digests["other"] == (parts.Core(4),)
    assert values(output, "cpu_gemm_miscompares_f64") == {CPU: 1}
    assert output.notes == ("products made by numpy",)


def test_a_core_whose_first_product_was_wrong_has_no_say_and_no_verified_product() -> None:
    ready = {
        CORE[0]: WorkerReady("d", True, "numpy"),
        CORE[1]: WorkerReady("wrong", False, "numpy"),
    }
    output = concluded(ready, {CORE[0]: LoopResult(10, 0, 1.0), CORE[1]: LoopResult(20, 20, 1.0)})
    assert values(output, "cpu_gemm_miscompares_f64") == {CPU: 21}
    assert values(output, "cpu_gemm_products_f64") == {CPU: 11}


def test_what_was_found_before_a_death_is_on_standard_output() -> None:
    lines = [json.dumps({"miscompare": CORE_REPEATED}), '{"note": "x"']
    assert salvage("\n".join(lines)) == all_of(CORE_REPEATED)
