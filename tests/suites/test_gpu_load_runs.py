"""What our own GPU loads are asked: formats, peers, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpu_machine import TRAITS, device, gpu, machine
from journals import check as planned

from acceptance.core.dtype import DTYPES
from acceptance.core.parts import Gpu
from acceptance.expect import gpu_limits
from acceptance.expect.sheet import find
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.check import Check
from acceptance.session.loads import Loads, Place, Results
from acceptance.suites import compute
from acceptance.suites.fixtures import gpu_loads
from acceptance.tools.proof import ToolError

AMPERE = ("f64", "f32", "tf32", "f16", "bf16", "i8")
FORMATS = {Gpu(0): DTYPES, Gpu(1): AMPERE}


def asked(name: str, *arguments: object) -> Any:
    """What a fixture gives."""
    fixture: Any = getattr(gpu_loads, name)
    return fixture.__wrapped__(*arguments)


@dataclass
class Asking:
    """In place of the loads of a check: where they run, and what each is asked."""

    places: Sequence[Place] = ()
    asks: tuple[Any, ...] = ()

    def run(self, ask: Callable[[Place], Any], on: Sequence[Place]) -> Results:
        self.places, self.asks = on, tuple(map(ask, on))
        return Results(tuple(on))


@pytest.fixture
def seen() -> Inventory:
    return machine(device(0), device(1, traits=replace(TRAITS, compute_capability="8.6")))


# --- what each GPU has ---


def test_formats_that_a_gpu_has_itself(seen: Inventory) -> None:
    assert asked("formats", gpus(seen)) == FORMATS
    assert asked("formats", gpus(seen)[1:]) == {Gpu(1): AMPERE}


@pytest.mark.parametrize("traits", [None, replace(TRAITS, compute_capability=None)])
def test_a_gpu_that_does_not_tell_what_it_can_is_an_error(traits: Any) -> None:
    silent = machine(device(0), device(1, traits=traits))
    with pytest.raises(ToolError, match="does not tell the compute capability of gpu1: update it"):
        asked("formats", gpus(silent))


def test_peaks_are_those_of_each_gpus_own_sheet(seen: Inventory) -> None:
    known, unknown = (
        gpus(seen)[0],
        gpu(1, name="NVIDIA Unheard Of"),
    )
    own = find(gpu_limits.sheets(), nvml_name="NVIDIA GeForce RTX 4090")
    assert own is not None
    assert asked("peaks", (known, unknown), gpu_limits.sheets()) == {
        Gpu(0): own.peak.by_dtype(),
        Gpu(1): {},
    }
    assert set(own.peak.by_dtype()) == set(DTYPES)


# --- copies ---


def on_nodes(*nodes: int | None) -> Inventory:
    """A machine with a GPU on each of these NUMA nodes."""
    return machine(
        *(device(index, traits=replace(TRAITS, numa_node=node)) for index, node in enumerate(nodes))
    )


def copied(seen: Inventory, turns: str = "/logs/turns") -> Asking:
    """What the copies of these GPUs are asked."""
    loads, check = Asking(), Check(planned("compute.copies"), (), print)
    compute.test_copies(cast(Loads, loads), gpus(seen), seen, turns, {"gpu_copy": 1.0}, check)
    return loads


def test_each_gpu_is_the_first_that_its_program_sees_and_the_others_are_its_peers() -> None:
    loads = copied(on_nodes(0, 1, 0))
    assert [[gpu.name for gpu in place.gpus] for place in loads.places] == [
        [Gpu(0), Gpu(1), Gpu(2)],
        [Gpu(1), Gpu(0), Gpu(2)],
        [Gpu(2), Gpu(0), Gpu(1)],
    ]
    assert {(one.seconds, one.peers, one.mib) for one in loads.asks} == {(1.0, 2, 512)}
    assert [one.peers for one in copied(on_nodes(0)).asks] == [0]


@pytest.mark.parametrize(
    ("nodes", "links"),
    [
        ((0, 1, 0), ["gpu0", "gpu1", "gpu0"]),
        ((0, 1, None), ["gpu0"] * 3),
        ((1, 1), ["gpu0"] * 2),
        ((0,), ["gpu0"]),
    ],
)
def test_copies_take_turns_in_one_folder_by_the_link_that_they_share(
    nodes: tuple[int | None, ...], links: list[str]
) -> None:
    loads = copied(on_nodes(*nodes))
    assert [one.link for one in loads.asks] == links
    assert {one.turns for one in loads.asks} == {"/logs/turns"}


def test_each_check_has_a_folder_of_turns_that_is_gone_with_it(tmp_path: Path) -> None:
    programs = SimpleNamespace(folder=tmp_path)
    folders = [asked("turns", programs) for _ in range(2)]
    made = [Path(next(one)) for one in folders]
    assert {one.parent for one in made} == {tmp_path}
    assert set(tmp_path.iterdir()) == set(made)
    assert len(set(made)) == 2
    assert [next(one, None) for one in folders] == [None, None]
    assert list(tmp_path.iterdir()) == []
