"""The check of training runs whose bits must agree, with a load that prints what it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import suite_box
from cases import each
from gpu_machine import device, machine
from load_texts import printed
from sound_loads import LIBRARY, Flip
from wrong_results import RUN

from acceptance.core.parts import Gpu
from acceptance.diagnosis import digest_agreement
from acceptance.expect import components
from acceptance.loads import asks
from acceptance.loads.miscompare import DifferingRun, read
from acceptance.loads.train.digest_contract import Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import Part
from acceptance.suites import train
from acceptance.wording import words

Options = Mapping[str, Any]
SOUND: Options = {}
BIT = Flip()
ODD: Options = {"flips": {"bf16": BIT}}


def asked(
    seen: Inventory,
    stage: Sequence[Options | str | None],
    alone: Mapping[int, Options | None] = {},
    tables: list[Any] | None = None,
) -> suite_box.Said:
    """What the check says of loads with these options; those of `alone` run again, one by one.

    None is one that dies, and a text what it prints before.
    """
    due = gpus(seen)
    options = dict(zip(due, stage, strict=True))
    again = {due[number]: one for number, one in alone.items()}

    def say(part: Part) -> tuple[str, int]:
        (gpu,) = [one for one in due if one.name == part.component]
        first = len(programs.asked) == 1
        own = (options if first else again)[gpu]
        if own is None or isinstance(own, str):
            return own or "", 1
        ask = asks.of_argv(part.argv)
        assert isinstance(ask, Ask)
        assert ask.seconds == (suite_box.LOADS_S["train_digest"] if first else train.AGAIN_S)
        assert part.env["CUDA_VISIBLE_DEVICES"] == gpu.uuid
        assert gpu.traits is not None
        about = {"uuid": gpu.uuid, "gpu": gpu.model, "capability": gpu.traits.compute_capability}
        return printed(ask, about, **own), 0

    programs = suite_box.Printed(say)
    said = suite_box.ask(
        suite_box.planned(seen, tuple(gpu.name for gpu in due), ("train.digest",), "digest"),
        "train.digest",
        train.test_digest,
        loads=programs.loads(),
        due_gpus=due,
        siblings=components.of_one_model(due),
        load_s=suite_box.LOADS_S,
        inventory=seen,
        table=lambda *words: None if tables is None else tables.append(words),
    )
    places = [[part.component for part in stage] for stage in programs.asked]
    assert places == [[gpu.name for gpu in due], *([gpu.name] for gpu in again)]
    return said


def box(count: int) -> Inventory:
    return machine(*(device(index) for index in range(count)))


def test_equal_gpus_that_agree_pass() -> None:
    seen, tables = box(2), list[Any]()
    said = asked(seen, [SOUND, SOUND], tables=tables)
    assert (said.outcome, said.message) == ("pass", "")
    zero = {Gpu(0): 0.0, Gpu(1): 0.0}
    assert said.measured("digest_repeats_differ") == zero
    assert said.measured("digest_differs") == zero
    assert [(one.component, one.name) for one in said.tables()] == [
        (Gpu(0), "train_digests"),
        (Gpu(1), "train_digests"),
    ]
    assert [(gpu, name) for gpu, name, _, _ in tables] == [
        (Gpu(0), "train_versions"),
        (Gpu(1), "train_versions"),
    ]
    rows = dict(tables[0][3])
    assert rows["libraries"] == LIBRARY
    assert rows["cuBLAS"] == "12.8.4"
    assert rows["driver"] == seen.nvml.driver_version


def test_one_gpu_is_held_against_itself_alone() -> None:
    said = asked(box(1), [SOUND])
    assert said.outcome == "pass"
    assert said.measured("digest_differs") == {}


WHERE = (
    "bfloat16 from step 7 on, first in the gradient of blocks.3.feed_forward.up.weight, as one "
    "flipped bit 12 of one element, beside "
)
STEADY = {"tf32": Flip(19, "weight", "positions", 3)}
BOTH: Options = {"flips": {"bf16": BIT, **STEADY}}
RESTLESS: Options = {**ODD, "differing": [("bf16", 1, BIT)]}
OTHER = "NVIDIA GeForce RTX 3090"
MIXED = machine(device(0), device(1), device(2, name=OTHER), device(3, name=OTHER))
UNSTEADY = "it does not repeat its own bits"
AGAIN = "each gave its own bits again"


@each(
    "seen, stage, alone, differs, notes",
    [
        # The odd one of three, that repeats its bits, or does not.
        (
            *(box(3), [SOUND, ODD, SOUND], {1: ODD}, [0.0, 1.0, 0.0]),
            {"gpu1": f"persistent: {WHERE}gpu0, as 2 of 3 have it; run again alone, it gave the "},
        ),
        *(
            (
                *(box(3), [SOUND, ODD, SOUND], {1: again}, [0.0, 1.0, 0.0]),
                {"gpu1": f"transient: {WHERE}gpu0, as 2 of 3 have it; {UNSTEADY}"},
            )
            for again in (SOUND, RESTLESS)
        ),
        # Of two that repeat their bits neither is cleared; one that does not clears the other.
        (
            *(box(2), [SOUND, ODD], {0: SOUND, 1: ODD}, [1.0, 1.0]),
            {
                "gpu0": f"persistent: {WHERE}gpu1; {AGAIN}",
                "gpu1": f"persistent: {WHERE}gpu0; {AGAIN}",
            },
        ),
        (
            *(box(2), [SOUND, ODD], {0: SOUND, 1: SOUND}, [0.0, 1.0]),
            {"gpu1": f"transient: {WHERE}gpu0; {UNSTEADY}"},
        ),
        # Every run differs in itself.
        (
            *(box(2), [SOUND, RESTLESS], {0: SOUND, 1: RESTLESS}, [0.0, 1.0]),
            {"gpu1": "transient: "},
        ),
        # One that repeats one format of two clears the other GPU in the other format.
        (
            *(box(2), [SOUND, BOTH], {0: SOUND, 1: {"flips": STEADY}}, [1.0, 2.0]),
            {"gpu0": "", "gpu1": ""},
        ),
        # A tie of another model accuses nobody of this one.
        (
            *(MIXED, [SOUND, ODD, SOUND, ODD], {0: SOUND, 1: SOUND, 2: SOUND, 3: ODD}),
            *([0.0, 1.0, 1.0, 1.0], {"gpu1": "", "gpu2": "", "gpu3": ""}),
        ),
        (box(3), [BOTH, SOUND, SOUND], {0: BOTH}, [2.0, 0.0, 0.0], {"gpu0": ""}),
        # A tie of two and two that stays accuses all.
        (
            *(box(4), [SOUND, ODD, SOUND, ODD], {0: SOUND, 1: ODD, 2: SOUND, 3: ODD}, [1.0] * 4),
            dict.fromkeys(("gpu0", "gpu1", "gpu2", "gpu3"), ""),
        ),
    ],
)
def test_gpus_that_differ(
    seen: Inventory,
    stage: list[Options],
    alone: dict[int, Options],
    differs: list[float],
    notes: dict[str, str],
) -> None:
    said = asked(seen, stage, alone)
    assert said.outcome == "fail"
    assert [*said.measured("digest_differs").values()] == differs
    found = said.notes("digest_differs")
    assert found.keys() == notes.keys()
    assert all(found[gpu].startswith(note) for gpu, note in notes.items())
    weights = "TF32 from step 20 on, first in the weights positions"
    assert any(weights in note for note in found.values()) == (BOTH in stage)


def test_a_repeat_that_differs_is_transient() -> None:
    said = asked(box(2), [SOUND, {"differing": [("tf32", 3, BIT), ("bf16", 5, BIT)]}])
    assert said.outcome == "fail"
    assert said.measured("digest_repeats_differ") == {Gpu(0): 0.0, Gpu(1): 2.0}
    assert said.measured("digest_differs") == {Gpu(0): 0.0, Gpu(1): 0.0}
    (note,) = said.notes("digest_repeats_differ").values()
    assert note.startswith("transient: run 4 differs from the first: TF32 from step 7 on, ")


def test_a_suspect_whose_second_run_dies_is_named_and_the_run_proves_nothing_of_it() -> None:
    said = asked(box(2), [SOUND, ODD], {0: SOUND, 1: None})
    assert said.measured("digest_differs") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert "whether it repeats them is unknown" in said.notes("digest_differs")["gpu1"]
    assert said.outcome == "error"  # the session folds what was measured: it fails by that
    assert "gpu1: the load train_digest" in said.message


def test_a_gpu_whose_load_died_is_not_compared() -> None:
    said = asked(box(3), [SOUND, None, SOUND])
    assert said.outcome == "error"
    assert said.measured("digest_differs") == {Gpu(0): 0.0, Gpu(2): 0.0}
    assert asked(box(2), [SOUND, None]).measured("digest_differs") == {}


def test_gpus_with_other_versions_are_not_compared() -> None:
    seen = box(2)
    said = asked(seen, [SOUND, {**ODD, "multiprocessors": 130}])
    assert said.outcome == "error"
    assert said.measured("digest_differs") == {}
    assert "gpu1 torch 2.10.0+cu128, CUDA 12.8, cuBLAS 12.8.4, 130 multiprocessors" in said.message
    assert seen.nvml.devices[0].name in said.message


def test_without_a_driver_the_versions_are_unknown() -> None:
    seen, tables = box(1), list[Any]()
    untold = replace(seen, nvml=replace(seen.nvml, driver_version=None))
    assert asked(untold, [SOUND], tables=tables).outcome == "pass"
    assert tables == []


@each(
    "told, said",
    [
        (
            {"part": "loss", "tensor": "loss", "kind": "several"},
            "first in the loss, several bits",
        ),
        (
            {"part": "gradient", "tensor": "positions", "kind": "not_finite"},
            "first in the gradient of positions, values that are no finite numbers",
        ),
        (
            {"part": "second_moment", "tensor": "norm.bias", "kind": "bit", "bit": 7},
            "first in a moment of norm.bias, as one flipped bit 7 of one element",
        ),
    ],
)
def test_place_and_kind_of_a_difference(told: Mapping[str, Any], said: str) -> None:
    fact = {name: value for name, value in RUN.items() if name != "bit"}
    one = read({**fact, **told})
    assert isinstance(one, DifferingRun)
    assert words.text(digest_agreement.repeats_note([one])) == (
        f"transient: run 4 differs from the first: bfloat16 from step 8 on, {said}"
    )


def test_a_wrong_result_of_a_load_that_died_counts_all_the_same() -> None:
    seen = box(1)
    unread = json.dumps({"miscompare": {"check": "another"}})
    for line, note in (
        (json.dumps({"miscompare": RUN}), "transient: run 4 differs from the first"),
        (unread, "a wrong result that cannot be read"),
    ):
        said = asked(seen, [f"{line}\n"])
        assert said.outcome == "error"
        assert said.measured("digest_repeats_differ") == {Gpu(0): 1.0}
        assert said.notes("digest_repeats_differ")["gpu0"].startswith(note)


def test_no_waiver_excuses_it() -> None:
    (check,) = suite_box.planned(box(2), (Gpu(0), Gpu(1)), ("train.digest",), "digest").checks
    assert check.gpu_load_s == 0.0  # the bits prove the work
    assert not any(one.waivable for one in check.due)
