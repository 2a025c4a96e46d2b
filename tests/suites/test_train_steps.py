"""The checks of training steps, with loads that print what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import suite_box
from gpu_machine import device, machine
from load_texts import printed
from msgspec.structs import replace
from sound_loads import TOO_LARGE, WRONG_WEIGHT

from acceptance.core.parts import Gpu
from acceptance.core.plan import PlannedCheck
from acceptance.expect import components, gpu_limits
from acceptance.expect.sheet import Sheet, find
from acceptance.loads import asks
from acceptance.loads.protocol import LoadTable
from acceptance.loads.train.step_contract import STEP_LOAD_COLUMNS, Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import Part
from acceptance.suites import train
from acceptance.suites.fixtures import train as fixtures

GIB = 1 << 30
SECONDS = {"train_step": 6.0, "train_step_table": 100.0}
ONE = Ask(seconds=6.0)
TABLE = Ask(seconds=100.0, table=True)


def seen(gib: int = 141, count: int = 2) -> Inventory:
    """GPUs of one model that no sheet knows."""
    return machine(
        *(
            device(index, name="a card without a sheet", memory_bytes=gib * GIB)
            for index in range(count)
        )
    )


def ask(
    inventory: Inventory,
    own: Mapping[int, Mapping[str, Any]] = {},
    *,
    due: Ask = ONE,
    neo: bool | None = None,
    short: int | None = None,
) -> suite_box.Said:
    """What the check says of GPUs whose loads print this of their `own`.

    `neo` is whether they have memory for the largest model, where that is not as they are asked;
    the GPU `short` has none for any.
    """

    def say(part: Part) -> tuple[str, int]:
        assert asks.of_argv(part.argv) == due
        about = {"uuid": part.env["CUDA_VISIBLE_DEVICES"], "capability": "9.0"}
        number = names.index(part.component)
        made = due if neo is None else replace(due, neo=neo)
        # an Ada cannot have more than 180
        text = printed(made, about, matmul=100.0, **own.get(number, {}))
        return (text.partition("\n")[0] + "\n" + TOO_LARGE, 1) if number == short else (text, 0)

    names = [gpu.name for gpu in gpus(inventory)]
    programs, name = suite_box.Printed(say), "train.step_table" if due.table else "train.step"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", SECONDS)
        plan = suite_box.planned(inventory, names, (name,), "digest")
    found = suite_box.ask(
        plan,
        name,
        train.test_step_table if due.table else train.test_step,
        loads=programs.loads(),
        due_gpus=gpus(inventory),
        load_s=SECONDS,
        own_sheets={},
    )
    assert programs.shown == [{name: [name] for name in names}]
    assert [[part.component for part in stage] for stage in programs.asked] == [names]
    return found


def test_equal_gpus_pass_and_all_train_at_once() -> None:
    said = ask(seen())
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("step_gpt2_ratio") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert said.measured("step_matmul") == dict.fromkeys((Gpu(0), Gpu(1)), 100.0)
    assert [(one.component, one.name) for one in said.tables()] == [
        (gpu, f"train_step{end}") for gpu in (Gpu(0), Gpu(1)) for end in ("s", "_checks")
    ]


def test_one_gpu_alone_has_no_ratio() -> None:
    said = ask(seen(count=1))
    assert said.outcome == "pass"
    assert said.measured("step_gpt2_ratio") == {}


def test_a_slow_gpu_fails_by_name() -> None:
    said = ask(seen(), {1: {"share": 0.9}})
    assert said.outcome == "fail"
    assert said.message.startswith("step_gpt2_ratio on gpu1: measured 0.9, limit >= 0.92; basis: ")
    assert len(said.message.splitlines()) == 1


def test_a_wrong_update_fails_with_its_note() -> None:
    said = ask(seen(), {1: {"wrong": [WRONG_WEIGHT]}})
    assert said.outcome == "fail"
    assert said.message.startswith("step_miscompares on gpu1: measured 1, limit <= 0")
    assert "tokens.weight" in said.notes("step_miscompares")["gpu1"]


def test_memory_that_does_not_suffice_is_an_error_and_the_other_gpu_counts() -> None:
    said = ask(seen(), short=1)
    assert said.outcome == "error"
    assert said.message.startswith("gpu1: ")
    assert "end what else uses it" in said.message
    assert said.measured("step_gpt2").keys() == {Gpu(0)}


def test_the_table_judges_the_larger_models() -> None:
    said = ask(seen(), due=TABLE)
    assert (said.outcome, said.message) == ("pass", "")
    for name in ("step_bert", "step_neo", "step_bert_share", "step_neo_share", "step_neo_ratio"):
        assert said.measured(name).keys() == {Gpu(0), Gpu(1)}
    assert len(said.tables()[0].rows) == 21
    slow = ask(seen(), {0: {"share": 0.9}}, due=TABLE)
    assert slow.outcome == "fail"
    assert [line.split(":")[0] for line in slow.message.splitlines()] == [
        "step_bert_ratio on gpu0",
        "step_neo_ratio on gpu0",
    ]


def test_the_largest_model_is_not_due_on_small_gpus() -> None:
    small = seen(24)
    due = replace(TABLE, neo=False)
    said = ask(small, due=due)
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("step_neo") == said.measured("step_neo_ratio") == {}
    assert said.measured("step_bert_ratio") == {Gpu(0): 1.0, Gpu(1): 1.0}
    lying = ask(seen(141), due=TABLE, neo=False)
    assert lying.outcome == "error"
    assert "step_neo" in lying.message
    assert ask(small, due=due, neo=True).outcome == "error"


def test_which_gpus_have_memory_for_the_largest_model() -> None:
    mixed = machine(
        device(0, memory_bytes=24 * GIB),
        device(1, memory_bytes=30 * GIB),
        device(2, memory_bytes=None),
    )
    names = tuple(map(Gpu, range(3)))
    found = components.resolve(None, mixed, frozenset(), names)
    assert found["gpu-neo"] == (Gpu(1), Gpu(2))
    assert set(found["gpu-neo-with-peers"]) == {Gpu(1), Gpu(2)} & set(found["gpu-with-peers"])


# --- tables ---


def table_of(*rows: tuple[str | float, ...], name: str = "train_steps") -> LoadTable:
    return LoadTable(name, STEP_LOAD_COLUMNS, rows)


def row(model: str, option: str, batch: float, rate: float) -> tuple[str | float, ...]:
    return (model, option, batch, 1.0, 1.0, 1.0, rate, 20.0, 100.0, 99.0, 101.0)


def sheet(name: str) -> Sheet:
    found = find(gpu_limits.sheets(), nvml_name=name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "rows", "shares", "published"),
    [
        (
            "NVIDIA H200",
            [
                ("GPT-2 medium", "bfloat16", 16.0, 494.7),
                ("GPT-2 medium", "float32", 16.0, 33.45),
                ("BERT-large", "bfloat16, 4 accumulated", 16.0, 98.94),
            ],
            *([0.5, 0.5, 0.1], [375.0, "-", "-"]),
        ),
        # Of a 3090 Ti with batch 11 and 16, or the best; of a 4090 in float32 too.
        (
            "NVIDIA GeForce RTX 3090 Ti",
            [("BERT-large", "bfloat16", batch, 30.0) for batch in (8.0, 11.0, 16.0)],
            *(None, [44.59, 27.9, 44.59]),
        ),
        ("NVIDIA GeForce RTX 4090", [("BERT-large", "float32", 8.0, 30.0)], None, [10.0]),
        # A format without a peak has no share.
        ("Tesla T4", [("BERT-large", "TF32", 8.0, 30.0)], ["-"], None),
    ],
)
def test_a_table_has_the_share_of_the_peak_and_what_was_published(
    name: str,
    rows: list[tuple[str, str, float, float]],
    shares: list[float | str] | None,
    published: list[float | str] | None,
) -> None:
    found = fixtures.step_table(table_of(*(row(*one) for one in rows)), sheet(name))
    place = found.columns.index("MFU")
    assert shares in (None, [one[place] for one in found.rows])
    assert published in (None, [one[-1] for one in found.rows])
    assert published is None or found.columns[-1] == "published TFLOP/s"


def test_other_tables_and_cards_without_a_sheet_stay_as_they_are() -> None:
    plain = table_of(row("BERT-large", "bfloat16", 8.0, 30.0))
    assert fixtures.step_table(plain, None) == plain
    checks = LoadTable("train_step_checks", ("a",), (("b",),))
    assert fixtures.step_table(checks, sheet("NVIDIA H200")) == checks


def test_a_plan_names_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_box, "LOADS_S", {"train_step": 6.0})
    made = suite_box.planned(seen(), (Gpu(0), Gpu(1)), ("train",), "digest")
    checks: tuple[PlannedCheck, ...] = made.checks
    assert [one.id for one in checks if one.id.startswith("train.step")] == ["train.step"]
