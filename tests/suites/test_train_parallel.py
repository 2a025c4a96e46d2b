"""The checks of parallel training, with a load that prints what it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import suite_box
from boxes import BOXES
from cases import each
from load_texts import printed
from synthetic_machines import inventory
from wrong_results import DIGESTS_OF_GPUS, UNEQUAL

from acceptance.core.parts import GPUS
from acceptance.loads import asks
from acceptance.loads.miscompare import Miscompare, details, read
from acceptance.loads.train.parallel_contract import COUNTS, EFFICIENCIES, Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import Part
from acceptance.suites import train

SHORT = "train.parallel"
TABLE = "train.parallel_table"
FUNCTIONS = {SHORT: train.test_parallel, TABLE: train.test_parallel_table}


def linked() -> Inventory:
    """Two H200s of a board."""
    return inventory(replace(BOXES["8xh200.toml"], count=2))


def asked(
    seen: Inventory, name: str = SHORT, *, died: bool = False, turned: bool = False, **more: Any
) -> suite_box.Said:
    """What a check says of a load that prints this, or dies after what was wrong.

    `turned` numbers the GPUs the other way.
    """
    due = gpus(seen)[::-1] if turned else gpus(seen)

    def say(part: Part) -> tuple[str, int]:
        ask = asks.of_argv(part.argv)
        assert isinstance(ask, Ask)
        text = printed(ask, {"uuids": part.env["CUDA_VISIBLE_DEVICES"].split(",")}, **more)
        lines = text.splitlines(keepends=True)
        return "".join(lines[: 1 + len(more["wrong"])] if died else lines), int(died)

    programs = suite_box.Printed(say)
    said = suite_box.ask(
        suite_box.planned(seen, tuple(gpu.name for gpu in due), (name,), "digest"),
        name,
        FUNCTIONS[name],
        loads=programs.loads(),
        due_gpus=due,
        load_s={"train_parallel": 1.0, "train_parallel_table": 2.0},
    )
    ((part,),) = programs.asked
    assert (part.component, programs.shown) == (GPUS, [{GPUS: [gpu.name for gpu in due]}])
    assert part.env["CUDA_VISIBLE_DEVICES"] == ",".join(str(gpu.uuid) for gpu in due)
    short = Ask(ranks=2, seconds=1.0, ways=("ddp",), accumulate=(1,))
    assert asks.of_argv(part.argv) == (short if name == SHORT else Ask(ranks=2, seconds=2.0))
    return said


@each("name", [SHORT, TABLE])
def test_sound_training_passes_and_leaves_its_tables(name: str) -> None:
    said = asked(linked(), name)
    assert (said.outcome, said.message) == ("pass", "")
    for one in (*(train.PARALLEL if name == SHORT else train.PARALLEL_REST), *COUNTS):
        assert said.measured(one).keys() == {GPUS}, one
    assert [(one.component, one.name) for one in said.tables()] == [
        (GPUS, "train_parallel"),
        (GPUS, "train_parallel_values"),
    ]


def test_the_checks_share_all_efficiencies_and_none_twice() -> None:
    found = [name for name in (*train.PARALLEL, *train.PARALLEL_REST) if "efficiency" in name]
    assert sorted(found) == sorted(EFFICIENCIES)


def test_through_host_memory_although_linked_is_too_slow() -> None:
    said = asked(linked(), efficiency=lambda _arm, way, count: 0.543)
    assert said.outcome == "fail"
    assert "parallel_ddp_efficiency on gpus: measured 0.543, limit >= 0.85" in said.message
    assert "p2p_off" not in said.message


def test_sharded_training_over_slow_links_fails() -> None:
    said = asked(linked(), TABLE, efficiency=lambda _arm, way, count: 0.65)
    assert said.outcome == "fail"
    for name in ("parallel_zero2_efficiency", "parallel_zero3_efficiency_accumulated"):
        assert f"{name} on gpus: measured 0.65, limit >= 0.7" in said.message
    assert "parallel_tp" not in said.message


def test_several_cards_that_do_more_than_each_alone_prove_nothing() -> None:
    assert asked(linked(), efficiency=lambda _arm, way, count: 1.3).outcome == "error"


@each(
    "wrong, name",
    [
        (read(UNEQUAL), "parallel_miscompares"),
        (
            read({**UNEQUAL, "tensor": "loss", "check": "parallel_loss"}),
            "parallel_miscompares",
        ),
        (read(DIGESTS_OF_GPUS), "parallel_disagreements"),
    ],
)
def test_what_is_wrong_is_counted_also_of_a_load_that_died(wrong: Miscompare, name: str) -> None:
    said = asked(linked(), wrong=[wrong], values={name: 3.0})
    assert said.outcome == "fail"
    assert f"{name} on gpus: measured 3, limit <= 0" in said.message
    assert details(wrong)["check"] in said.notes(name)["gpus"]
    dead = asked(linked(), wrong=[wrong], died=True)
    assert dead.outcome == "error"
    assert dead.message.startswith("the load train_parallel ended with exit code 1")
    assert dead.measured(name) == {GPUS: 1.0}
    (other,) = {*COUNTS} - {name}
    assert dead.measured(other) == dead.measured("parallel_ddp") == {}


def test_a_note_names_the_gpu_as_the_run_does() -> None:
    wrong = {"wrong": [read(UNEQUAL)], "values": {"parallel_miscompares": 1.0}}
    for turned, name in ((False, "gpu1"), (True, "gpu0")):
        assert name in asked(linked(), turned=turned, **wrong).notes("parallel_miscompares")["gpus"]
