"""The checks of parallel training, with a load that prints what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import suite_box
import train_parallel_texts as texts
from boxes import BOXES
from cases import each
from synthetic_machines import inventory

from acceptance.core.parts import GPUS, Gpu
from acceptance.core.record import Measured
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.process.command import ProgramResult
from acceptance.suites import train
from acceptance.suites.fixtures import train_parallel
from acceptance.suites.fixtures.train_parallel import ACCUMULATIONS, WAYS, Extent
from acceptance.tools import train_output
from acceptance.tools.load_output import LoadFailed
from acceptance.wording import words

Spoil = Callable[[list[dict[str, Any]]], None]
SHORT: Extent = "train_parallel"
TABLE: Extent = "train_parallel_table"
FUNCTIONS = {
    SHORT: ("train.parallel", train.test_parallel),
    TABLE: ("train.parallel_table", train.test_parallel_table),
}


def linked() -> Inventory:
    """Two H200s of a board."""
    return inventory(replace(BOXES["8xh200.toml"], count=2))


def done(
    seen: Inventory,
    spoil: Spoil = lambda _told: None,
    code: int = 0,
    extent: Extent = SHORT,
    **more: Any,
) -> ProgramResult:
    told = texts.lines(
        [str(gpu.uuid) for gpu in gpus(seen)],
        seconds=1.0,
        ways=WAYS[extent],
        accumulate=ACCUMULATIONS[extent],
        **more,
    )
    spoil(told)
    return ProgramResult(("python",), code, texts.printed(told), "", 9.0)


def asked(
    seen: Inventory,
    result: ProgramResult,
    extent: Extent = SHORT,
    waited: list[Any] | None = None,
) -> suite_box.Said:
    due = gpus(seen)
    name, function = FUNCTIONS[extent]
    made = suite_box.planned(seen, tuple(gpu.name for gpu in due), (name,), "digest")
    return suite_box.ask(
        made,
        name,
        function,
        parallel_training=lambda part: train_parallel.of_load(result, due, 1.0, part),
        table=lambda *told: None if waited is None else waited.append(told),
    )


@each("extent", [SHORT, TABLE])
def test_sound_training_passes_and_leaves_its_tables(extent: Any) -> None:
    seen, tables = linked(), list[Any]()
    said = asked(seen, done(seen, extent=extent), extent, tables)
    assert (said.outcome, said.message) == ("pass", "")
    names = train.PARALLEL if extent == SHORT else train.PARALLEL_REST
    for name in (*names, *train.PARALLEL_WRONG):
        assert said.measured(name).keys() == {GPUS}, name
    assert [(where, name) for where, name, _, _ in tables] == [
        (GPUS, "train_parallel"),
        (GPUS, "train_parallel_values"),
    ]


def test_the_checks_share_all_efficiencies_and_none_twice() -> None:
    from acceptance.loads.train.names import PARALLEL_EFFICIENCIES

    found = [name for name in (*train.PARALLEL, *train.PARALLEL_REST) if "efficiency" in name]
    assert sorted(found) == sorted(PARALLEL_EFFICIENCIES)


def test_through_host_memory_although_linked_is_too_slow() -> None:
    seen = linked()
    said = asked(seen, done(seen, efficiency=lambda _arm, way, count: 0.543))
    assert said.outcome == "fail"
    assert "parallel_ddp_efficiency on gpus: measured 0.543, limit >= 0.85" in said.message
    assert "p2p_off" not in said.message


def test_sharded_training_over_slow_links_fails() -> None:
    seen = linked()
    result = done(seen, extent=TABLE, efficiency=lambda _arm, way, count: 0.65)
    said = asked(seen, result, TABLE)
    assert said.outcome == "fail"
    for name in ("parallel_zero2_efficiency", "parallel_zero3_efficiency_accumulated"):
        assert f"{name} on gpus: measured 0.65, limit >= 0.7" in said.message
    assert "parallel_tp" not in said.message


def test_several_cards_that_do_more_than_each_alone_prove_nothing() -> None:
    seen = linked()
    said = asked(seen, done(seen, efficiency=lambda _arm, way, count: 1.3))
    assert said.outcome == "error"


def counted(line: dict[str, Any]) -> Spoil:
    return lambda told: told.insert(1, line)


@each(
    "line, name",
    [
        (texts.wrong(), "parallel_miscompares"),
        (texts.wrong("p2p_off", tensor="loss", check="parallel_loss"), "parallel_miscompares"),
        (texts.disagreement(), "parallel_disagreements"),
    ],
)
def test_what_is_wrong_is_counted_also_of_a_load_that_died(line: Any, name: str) -> None:
    seen = linked()
    said = asked(seen, done(seen, counted(line), counts={name: 3.0}))
    assert said.outcome == "fail"
    assert f"{name} on gpus: measured 3, limit <= 0" in said.message
    (note,) = [
        words.text(body.note)
        for body in said.written
        if isinstance(body, Measured) and body.measurement == name and body.note is not None
    ]
    assert line["miscompare"]["check"] in note
    dead = asked(seen, done(seen, counted(line), 1))
    assert dead.outcome == "error"
    assert dead.measured(name) == {GPUS: 1.0}
    assert dead.measured("parallel_ddp") == {}


def test_a_note_names_the_gpu_as_the_run_does() -> None:
    seen = linked()
    found = train_parallel.of_load(
        done(seen, counted(texts.wrong()), counts={"parallel_miscompares": 1.0}),
        gpus(seen)[::-1],
        None,
        SHORT,
    )
    assert found.failed is not None  # other GPUs than the load had
    turned = train_parallel.ParallelTraining(gpus(seen)[::-1], None, found.failed)
    _, notes = turned.counts("parallel_miscompares")
    assert "'component': 'gpu0'" in str(notes[GPUS])


def hello(**parameters: object) -> Spoil:
    return lambda told: told[0]["parameters"].update(parameters)


def cell(table: str, row: int, place: int, value: object) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        (own,) = (line for line in told if line.get("table") == table)
        own["rows"][row][place] = value

    return spoil


def without_row(table: str, number: int = -1) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        (own,) = (line for line in told if line.get("table") == table)
        del own["rows"][number]

    return spoil


def twice(table: str) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        (own,) = (line for line in told if line.get("table") == table)
        own["rows"].append(own["rows"][0])

    return spoil


def drop(**keys: str) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        kept = [line for line in told if any(line.get(key) != value for key, value in keys.items())]
        kept[-1]["readings"] -= len(told) - len(kept)
        told[:] = kept

    return spoil


def reading(name: str, value: float) -> Spoil:
    def spoil(told: list[dict[str, Any]]) -> None:
        (own,) = (line for line in told if line.get("reading") == name)
        own["value"] = value

    return spoil


UNSOUND = "figures do not fit each other"


@each(
    "spoil, said",
    [
        (hello(backend="gloo"), "backend"),
        (hello(ranks=3), "ranks"),
        (hello(arms=["default"]), "arms"),
        (hello(ways=["zero2"]), "ways"),
        (hello(accumulate=[4]), "accumulate"),
        (hello(seconds=0.5), "seconds"),
        (hello(uuids=["GPU-0", "GPU-1"]), "uuids"),
        (hello(uuids=None), "uuids"),
        (hello(model="tiny"), "model"),
        (hello(batch=3), "model"),
        (hello(model="digest", batch=2, tensor_batch=4), UNSOUND),
        (hello(tensor_batch=17), "tensor_batch"),
        (hello(tensor_batch=0), "tensor_batch"),
        (hello(tensor_batch="16"), "tensor_batch"),
        (drop(reading="parallel_ddp"), "did not measure parallel_ddp of gpus"),
        (drop(reading="parallel_miscompares"), "did not measure parallel_miscompares"),
        (drop(table="train_parallel"), "train_parallel"),
        (drop(table="train_parallel_values"), "train_parallel_values"),
        (without_row("train_parallel", 0), "default alone 1"),
        (without_row("train_parallel"), "p2p_off ddp 1"),
        (twice("train_parallel"), "train_parallel"),
        (without_row("train_parallel_values"), "p2p_off ddp 1"),
        (twice("train_parallel_values"), "train_parallel_values"),
        (reading("parallel_ddp", 0.04), "parallel_ddp of gpus is not in its table"),
        (reading("parallel_ddp_efficiency", 0.9), "parallel_ddp_efficiency of gpus is not in its"),
        (cell("train_parallel", 1, 3, 4), UNSOUND),
        (cell("train_parallel", 1, 4, 10.0), UNSOUND),
        (cell("train_parallel", 1, 5, 300.0), UNSOUND),
        (cell("train_parallel", 1, 7, -1.0), UNSOUND),
        (cell("train_parallel", 1, 7, "40"), UNSOUND),
        (cell("train_parallel", 1, 8, 1.0), UNSOUND),
        (cell("train_parallel", 1, 8, 0), UNSOUND),
        (cell("train_parallel", 1, 10, 0.5), UNSOUND),
        (cell("train_parallel", 0, 6, 1.1), UNSOUND),
        (cell("train_parallel", 0, 4, 0), UNSOUND),
        (cell("train_parallel", 0, 8, 100.0), UNSOUND),
        (cell("train_parallel_values", 0, 3, 2), "of ddp 1 .default. was compared"),
        (cell("train_parallel_values", 1, 4, 5), "of ddp 1 .p2p_off. was compared"),
        (cell("train_parallel_values", 0, 5, 5), "of ddp 1 .default. was compared"),
        (cell("train_parallel_values", 0, 6, 0), "of ddp 1 .default. was compared"),
        (cell("train_parallel_values", 0, 7, 1), "of ddp 1 .default. was compared"),
        (cell("train_parallel_values", 0, 9, 1.25), "counted none"),
        (cell("train_parallel_values", 0, 10, "nan"), "counted none"),
        (counted(texts.wrong()), "counted none"),
    ],
)
def test_output_that_is_not_that_of_this_run_proves_nothing(spoil: Spoil, said: str) -> None:
    seen = linked()
    found = train_parallel.of_load(done(seen, spoil), gpus(seen), 1.0, SHORT)
    with pytest.raises(LoadFailed, match=said):
        found.raise_failed()


@each(
    "spoil",
    [
        # compute of one card alone and the optimizer that exceed a step are said by a note
        lambda told: [
            cell("train_parallel", 1, place, value)(told) for place, value in ((9, 1.1), (10, 0))
        ],
        # the mean card's rate beside the slowest card's time
        cell("train_parallel", 0, 8, 320.0),
    ],
)
def test_a_step_that_hides_all_and_cards_that_differ_are_sound(spoil: Spoil) -> None:
    seen = linked()
    assert train_parallel.of_load(done(seen, spoil), gpus(seen), 1.0, SHORT).failed is None


def test_a_difference_above_its_bound_that_was_counted_is_read() -> None:
    seen = linked()

    def spoil(told: list[dict[str, Any]]) -> None:
        cell("train_parallel_values", 0, 9, 1.25)(told)
        told.insert(1, texts.wrong())

    result = done(seen, spoil, counts={"parallel_miscompares": 1.0})
    assert train_parallel.of_load(result, gpus(seen), 1.0, SHORT).failed is None


def test_the_command_line_says_ways_and_accumulations() -> None:
    argv = train_output.train_parallel_argv(
        "python", ranks=3, seconds=2, ways=("ddp", "tp"), accumulate=(1, 4), inject="drop"
    )
    assert argv == (
        *("python", "-m", "acceptance.loads.train.parallel_load", "--backend", "nccl"),
        *("--ranks", "3", "--seconds", "2.0", "--ways", "ddp,tp", "--accumulate", "1,4"),
        *("--inject", "drop"),
    )


def test_other_ways_are_read_without_the_rate_of_data_parallel_training() -> None:
    seen = linked()
    uuids = [str(gpu.uuid) for gpu in gpus(seen)]
    told = texts.lines(uuids, seconds=1.0, ways=("zero2", "tp"), accumulate=(4,))
    result = ProgramResult(("python",), 0, texts.printed(told), "", 9.0)
    output = train_output.read_train_parallel(
        result, uuids=uuids, seconds=None, ways=("zero2", "tp"), accumulate=(4,)
    )
    assert {one.name for one in output.readings} == {
        "parallel_zero2_efficiency_accumulated",
        "parallel_zero2_efficiency_accumulated_p2p_off",
        "parallel_tp_efficiency_accumulated",
        "parallel_tp_efficiency_accumulated_p2p_off",
        *("parallel_miscompares", "parallel_disagreements"),
    }


class Stage:
    """Stands for the programs of the check."""

    def __init__(self, result: ProgramResult) -> None:
        self.result = result
        self.parts: list[Any] = []

    def run_stage(self, parts: list[Any], *, on_line: object) -> tuple[ProgramResult, ...]:
        self.parts += parts
        return (self.result,)


def test_the_load_is_one_program_that_sees_the_gpus_that_are_due() -> None:
    seen = linked()
    stage, told = Stage(done(seen)), dict[Any, Any]()

    def listener(shown: Mapping[Any, Any]) -> None:
        told.update(shown)

    run = train_parallel.parallel_training.__wrapped__(  # type: ignore[attr-defined]
        stage, gpus(seen), {SHORT: 1.0, TABLE: 2.0}, listener
    )
    assert run(SHORT).failed is None
    assert run(TABLE).failed is not None
    short, whole = stage.parts
    assert short.argv[-4:] == ("--ways", "ddp", "--accumulate", "1")
    assert whole.argv[-6:] == (
        *("--seconds", "2.0", "--ways", "ddp,zero2,zero3,tp", "--accumulate", "1,4"),
    )
    assert short.env["CUDA_VISIBLE_DEVICES"] == ",".join(str(gpu.uuid) for gpu in gpus(seen))
    assert told == {GPUS: [Gpu(0), Gpu(1)]}
