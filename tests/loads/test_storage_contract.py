"""What proves a storage load: all its figures, of this disk and as it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases import each
from load_texts import printed, refusal
from wrong_results import FILE

from acceptance.loads.miscompare import FileCheck, read
from acceptance.loads.storage.contract import (
    LEAST,
    MEMMAP,
    MEMMAP_COLUMNS,
    Canary,
    Checkpoint,
    Feed,
    Memmap,
    OnDisk,
)

ON: dict[str, Any] = {"folder": "/d", "component": "disk:md0", "bytes": LEAST}
OWN = {"uuid": "GPU-1", "gpu": "NVIDIA H200"}
MAPPED = Memmap(seconds=3.0, **ON)
FED, FED_TO_GPU = Feed(seconds=2.0, **ON), Feed(seconds=2.0, gpu=True, **ON)
SAVED = Checkpoint(**ON)
SEALED = Canary(way="write", machine="m1", **ON)
ASKS: tuple[OnDisk, ...] = (MAPPED, FED, FED_TO_GPU, SAVED, SEALED)


def code(
    ask: Any,
    *,
    said: Any = None,
    about: Mapping[str, Any] = {},
    due: Mapping[str, Any] = {},
    ran_s: float = 3.0,
    **more: Any,
) -> str:
    """Why what the load prints that was asked `said`, by default the same, proves nothing."""
    return refusal(ask, printed(said or ask, about, **more), due, ran_s)


@each(
    "ask, more",
    [
        *((ask, {}) for ask in ASKS),
        (FED_TO_GPU, {"about": OWN, "due": OWN}),
        (Canary(way="read", machine="m1", **ON), {"said": SEALED}),
        (FED, {"ran_s": 2.0}),
        *((ask, {"ran_s": 0.0}) for ask in (SAVED, SEALED)),
    ],
)
def test_a_whole_run_is_proof_whatever_its_folder_is(ask: OnDisk, more: dict[str, Any]) -> None:
    assert code(ask, **more) == ""
    assert "folder" not in ask.parameters()


@each(
    "ask, more, why",
    [
        *(
            (ask, {"said": said}, "load_parameter")
            for ask, said in (
                (SAVED, Checkpoint(**{**ON, "component": "disk:sda"})),
                (SAVED, Checkpoint(**{**ON, "bytes": LEAST + 4096})),
                (MAPPED, Memmap(seconds=2.0, **ON)),
                (FED, Feed(seconds=3.0, **ON)),
                (SEALED, Canary(way="write", machine="m2", **ON)),
            )
        ),
        (FED_TO_GPU, {"about": OWN, "due": {"uuid": "GPU-2"}}, "load_parameter"),
        (FED_TO_GPU, {"due": OWN}, "load_parameter"),
        # Tokens arrive where they were asked to.
        (FED, {"said": FED_TO_GPU}, "load_unmeasured"),
        (FED_TO_GPU, {"said": FED}, "load_unmeasured"),
        (SAVED, {"said": SEALED}, "load_of_another"),
        (MAPPED, {"tables": {MEMMAP: (MEMMAP_COLUMNS, ())}}, "load_without_table"),
        (MAPPED, {"tables": {MEMMAP: (("arm",), [("cold",)])}}, "load_columns"),
        (MAPPED, {"ran_s": 2.9}, "load_ended_early"),
        (FED, {"ran_s": 1.9}, "load_ended_early"),
        (Checkpoint(inject="rest", **ON), {}, "load_fault_injected"),
    ],
)
def test_anything_else_proves_nothing(ask: OnDisk, more: dict[str, Any], why: str) -> None:
    assert code(ask, **more) == why


@each(
    "ask, check",
    [(MAPPED, "memmap"), (FED, "feed"), (SAVED, "checkpoint"), (SEALED, "kept")],
)
def test_a_wrong_file_belongs_to_the_count_of_its_load(ask: OnDisk, check: FileCheck) -> None:
    wrong = read({**FILE, "check": check})
    (count,) = wrong.counts
    assert code(ask, wrong=(wrong,)) == "load_uncounted"
    assert code(ask, wrong=(wrong,), values={count: 1.0}) == ""
