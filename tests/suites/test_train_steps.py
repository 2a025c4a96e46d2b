"""The checks of training steps, with loads that print what they are given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import suite_box
import train_step_texts
from gpu_machine import device, machine
from msgspec.structs import replace

from acceptance.core.evidence import Table
from acceptance.core.parts import Gpu
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Measured
from acceptance.expect import components, gpu_limits
from acceptance.expect.sheet import Sheet, find
from acceptance.loads import asks
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadTable
from acceptance.loads.train.step_contract import STEP_COLUMNS, STEP_LOAD_COLUMNS, Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.process.command import ProgramResult
from acceptance.session.loads import Loads
from acceptance.session.stage import Part
from acceptance.suites import train
from acceptance.suites.fixtures import train as fixtures

GIB = 1 << 30
SECONDS = {"train_step": 6.0, "train_step_table": 100.0}


def seen(gib: int = 141, count: int = 2) -> Inventory:
    """GPUs of one model that no sheet knows."""
    return machine(
        *(
            device(index, name="a card without a sheet", memory_bytes=gib * GIB)
            for index in range(count)
        )
    )


@dataclasses.dataclass
class Machine:
    """Stands for the check's programs, one a GPU; `neo` is whether they have memory for the largest
    model, where that is not as they are asked.
    """

    shares: Sequence[float] = (1.0, 1.0)
    wrong: Mapping[int, list[Miscompare]] = dataclasses.field(default_factory=dict)
    memory: frozenset[int] = frozenset()
    neo: bool | None = None
    asked: list[Part] = dataclasses.field(default_factory=list)

    def run_stage(self, parts: Sequence[Part], *, on_line: object) -> tuple[ProgramResult, ...]:
        assert on_line == "heard"
        self.asked += parts
        return tuple(self._done(index, part) for index, part in enumerate(parts))

    def _done(self, index: int, part: Part) -> ProgramResult:
        asked: Any = asks.of_argv(part.argv)
        made = asked if self.neo is None else replace(asked, neo=self.neo)
        about = {"uuid": part.env["CUDA_VISIBLE_DEVICES"], "capability": "9.0"}
        matmul = 100.0  # an Ada cannot have more than 180
        text = train_step_texts.printed(
            made, about, share=self.shares[index], matmul=matmul, wrong=self.wrong.get(index, [])
        )
        if index in self.memory:
            said = f"train_step: {train_step_texts.TOO_LARGE}\n"
            return ProgramResult(part.argv, 1, text.splitlines(keepends=True)[0], said, 9.0)
        return ProgramResult(part.argv, 0, text, "", 200.0)


def ask(inventory: Inventory, machine: Machine, *, table: bool = False) -> suite_box.Said:
    due, name = gpus(inventory), "train.step_table" if table else "train.step"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_box, "LOADS_S", SECONDS)
        made = suite_box.planned(inventory, [gpu.name for gpu in due], (name,), "digest")
    shown: list[object] = []

    def listening(what: object) -> Any:
        shown.append(what)
        return "heard"

    found = suite_box.ask(
        made,
        name,
        train.test_step_table if table else train.test_step,
        loads=Loads(machine, listening),
        due_gpus=due,
        load_s=SECONDS,
        own_sheets={},
    )
    assert shown == [{gpu.name: [gpu.name] for gpu in due}]
    return found


def tables(found: suite_box.Said) -> list[Table]:
    return [one for one in found.written if isinstance(one, Table)]


def test_equal_gpus_pass_and_all_train_at_once() -> None:
    loads = Machine()
    said = ask(seen(), loads)
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("step_gpt2_ratio") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert said.measured("step_matmul") == dict.fromkeys((Gpu(0), Gpu(1)), 100.0)
    assert [part.component for part in loads.asked] == [Gpu(0), Gpu(1)]
    assert [asks.of_argv(part.argv) for part in loads.asked] == [Ask(seconds=6.0)] * 2
    assert [(one.component, one.name) for one in tables(said)] == [
        (gpu, f"train_step{end}") for gpu in (Gpu(0), Gpu(1)) for end in ("s", "_checks")
    ]


def test_one_gpu_alone_has_no_ratio() -> None:
    said = ask(seen(count=1), Machine())
    assert said.outcome == "pass"
    assert said.measured("step_gpt2_ratio") == {}


def test_a_slow_gpu_fails_by_name() -> None:
    said = ask(seen(), Machine(shares=(1.0, 0.9)))
    assert said.outcome == "fail"
    assert said.message.startswith("step_gpt2_ratio on gpu1: measured 0.9, limit >= 0.92; basis: ")
    assert len(said.message.splitlines()) == 1


def test_a_wrong_update_fails_with_its_note() -> None:
    said = ask(seen(), Machine(wrong={1: [train_step_texts.WRONG]}))
    assert said.outcome == "fail"
    assert said.message.startswith("step_miscompares on gpu1: measured 1, limit <= 0")
    (note,) = [one.note for one in said.written if isinstance(one, Measured) and one.note]
    assert "tokens.weight" in str(note)


def test_memory_that_does_not_suffice_is_an_error_and_the_other_gpu_counts() -> None:
    said = ask(seen(), Machine(memory=frozenset({1})))
    assert said.outcome == "error"
    assert said.message.startswith("gpu1: ")
    assert "end what else uses it" in said.message
    assert said.measured("step_gpt2").keys() == {Gpu(0)}


def test_the_table_judges_the_larger_models() -> None:
    loads = Machine()
    said = ask(seen(), loads, table=True)
    assert (said.outcome, said.message) == ("pass", "")
    for name in ("step_bert", "step_neo", "step_bert_share", "step_neo_share", "step_neo_ratio"):
        assert said.measured(name).keys() == {Gpu(0), Gpu(1)}
    due = Ask(seconds=100.0, table=True, neo=True)
    assert [asks.of_argv(part.argv) for part in loads.asked] == [due] * 2
    assert len(tables(said)[0].rows) == 21
    slow = ask(seen(), Machine(shares=(0.9, 1.0)), table=True)
    assert slow.outcome == "fail"
    assert [line.split(":")[0] for line in slow.message.splitlines()] == [
        "step_bert_ratio on gpu0",
        "step_neo_ratio on gpu0",
    ]


def test_the_largest_model_is_not_due_on_small_gpus() -> None:
    small = seen(24)
    loads = Machine()
    said = ask(small, loads, table=True)
    due = Ask(seconds=100.0, table=True, neo=False)
    assert [asks.of_argv(part.argv) for part in loads.asked] == [due] * 2
    assert (said.outcome, said.message) == ("pass", "")
    assert said.measured("step_neo") == said.measured("step_neo_ratio") == {}
    assert said.measured("step_bert_ratio") == {Gpu(0): 1.0, Gpu(1): 1.0}
    lying = ask(seen(141), Machine(neo=False), table=True)
    assert lying.outcome == "error"
    assert "step_neo" in lying.message
    larger = ask(small, Machine(neo=True), table=True)
    assert larger.outcome == "error"


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


def test_a_table_has_the_share_of_the_peak_and_what_was_published() -> None:
    h200 = sheet("NVIDIA H200")
    found = fixtures.step_table(
        table_of(
            row("GPT-2 medium", "bfloat16", 16.0, 494.7),
            row("GPT-2 medium", "float32", 16.0, 33.45),
            row("BERT-large", "bfloat16, 4 accumulated", 16.0, 98.94),
        ),
        h200,
    )
    assert found.columns == (*STEP_COLUMNS, "published TFLOP/s")
    place = found.columns.index("MFU")
    assert [one[place] for one in found.rows] == [0.5, 0.5, 0.1]
    assert [one[-1] for one in found.rows] == [375.0, "-", "-"]


def test_a_published_rate_is_of_the_same_batch_or_the_best() -> None:
    """Of a 3090 Ti with batch 11 and 16; of a 4090 in float32 too."""
    older = sheet("NVIDIA GeForce RTX 3090 Ti")
    rows = [row("BERT-large", "bfloat16", batch, 30.0) for batch in (8.0, 11.0, 16.0)]
    assert [one[-1] for one in fixtures.step_table(table_of(*rows), older).rows] == [
        44.59,
        27.9,
        44.59,
    ]
    ada = sheet("NVIDIA GeForce RTX 4090")
    (found,) = fixtures.step_table(table_of(row("BERT-large", "float32", 8.0, 30.0)), ada).rows
    assert found[-1] == 10.0


def test_a_format_without_a_peak_has_no_share() -> None:
    turing = sheet("Tesla T4")
    (found,) = fixtures.step_table(table_of(row("BERT-large", "TF32", 8.0, 30.0)), turing).rows
    assert found[STEP_COLUMNS.index("MFU")] == "-"


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
