"""The fixtures that run our own GPU loads: what each process is told, which GPU it sees first,
and what runs beside what.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from gpu_machine import TRAITS, device, gpu, machine, uuid

from acceptance.core.dtype import DTYPES
from acceptance.core.parts import Gpu
from acceptance.expect import gpu_limits
from acceptance.expect.sheet import find
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.process.command import ProgramResult
from acceptance.session.stage import Part
from acceptance.suites.fixtures import gpu_loads
from acceptance.tools import load_output
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.proof import ToolError

AMPERE = ("f64", "f32", "tf32", "f16", "bf16", "i8")
FORMATS = {Gpu(0): DTYPES, Gpu(1): AMPERE}


def asked(name: str, *arguments: object) -> Any:
    """What a fixture gives."""
    fixture: Any = getattr(gpu_loads, name)
    return fixture.__wrapped__(*arguments)


def printed(argv: Sequence[str], own: str) -> str:
    """The output of a load that was started so on this GPU and went well; its rates are 1."""
    words = dict(zip(argv[3::2], argv[4::2], strict=True))
    told: dict[str, Any] = {"seconds": float(words["--seconds"]), "uuid": own}
    told |= {"link": words["--link"]} if "--link" in words else {}
    readings = [("copy_own_d2d", "GB/s", 1.0)]
    lines: list[dict[str, Any]] = [
        {
            "rigproof_load": 1,
            "load": "gpu_copy",
            "parameters": told,
        }
    ]
    lines += [
        {"reading": name, "unit": unit, "component": "gpu0", "value": value}
        for name, unit, value in readings
    ]
    return "".join(
        json.dumps(line) + "\n" for line in [*lines, {"end": True, "readings": len(readings)}]
    )


@dataclass
class Loads:
    """Stands for the check's programs: every load goes well, but for those
    whose number is in `dead`. `folder` is where they may write.
    """

    dead: tuple[int, ...] = ()
    stray: str | None = None
    folder: Path = Path(tempfile.gettempdir())
    calls: list[list[tuple[tuple[str, ...], Mapping[str, str]]]] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, env: Mapping[str, str]) -> ProgramResult:
        return self.run_stage([Part(None, tuple(argv), env)])[0]

    def run_stage(self, parts: Sequence[Part]) -> tuple[ProgramResult, ...]:
        before = sum(map(len, self.calls))
        self.calls.append([(part.argv, part.env) for part in parts])
        return tuple(
            ProgramResult(
                part.argv,
                int(before + n in self.dead),
                printed(part.argv, self.own(part.env)),
                "",
                1e9,
            )
            for n, part in enumerate(parts)
        )

    def own(self, env: Mapping[str, str]) -> str:
        """The GPU that the process says it ran on: the first that it was shown,
        unless it strays.
        """
        return self.stray or env["CUDA_VISIBLE_DEVICES"].partition(",")[0]

    def visible(self) -> list[list[str]]:
        """The GPUs that the processes of each call were shown."""
        assert all(
            env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID" for call in self.calls for _, env in call
        )
        return [[env["CUDA_VISIBLE_DEVICES"] for _, env in call] for call in self.calls]

    def word(self, name: str) -> list[list[str]]:
        """What the processes of each call were told by this option."""
        return [[argv[argv.index(name) + 1] for argv, _ in call] for call in self.calls]


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


def test_each_gpu_is_the_first_that_its_process_sees_and_the_others_are_its_peers() -> None:
    seen, loads = on_nodes(0, 1, 0), Loads()
    found = asked("gpu_copies", loads, gpus(seen), {"gpu_copy": 1.0}, seen)()
    first, second, third = (uuid(index) for index in range(3))
    assert loads.visible() == [
        [f"{first},{second},{third}", f"{second},{first},{third}", f"{third},{first},{second}"]
    ]
    assert loads.word("--seconds") == [["1.0"] * 3]
    assert found.values("copy_own_d2d") == dict.fromkeys((Gpu(0), Gpu(1), Gpu(2)), 1.0)


@pytest.mark.parametrize(
    ("nodes", "links"),
    [
        ((0, 1, 0), ["gpu0", "gpu1", "gpu0"]),
        ((0, 1, None), ["gpu0"] * 3),
        ((1, 1), ["gpu0"] * 2),
        ((0,), ["gpu0"]),
    ],
)
def test_copies_take_turns_in_a_folder_of_theirs_by_the_link_that_they_share(
    nodes: tuple[int | None, ...], links: list[str], tmp_path: Path
) -> None:
    seen, loads = on_nodes(*nodes), Loads(folder=tmp_path)
    asked("gpu_copies", loads, gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert loads.word("--link") == [links]
    ((folder,),) = {tuple(set(call)) for call in loads.word("--turns")}
    assert Path(folder).parent == tmp_path
    assert list(tmp_path.iterdir()) == []  # it is gone with the loads


def test_the_load_that_held_the_others_up_is_named_and_not_those_that_waited(
    seen: Inventory,
) -> None:
    """A GPU that hangs in its turn keeps the others from theirs until the time is over."""
    waited = '{"waits": "exclusive turn on machine"}\n'
    ended = {
        gpu.name: ProgramResult(("load",), -15, text, "", 250.0, timed_out=True)
        for gpu, text in zip(gpus(seen), (waited, '{"note": "copies"}\n'), strict=True)
    }
    found = gpu_loads.collect_loads(
        gpus(seen), ended, lambda _, done: load_output.read(done, "gpu_copy", {"seconds": 1.0})
    )
    assert list(found.failed) == [Gpu(1), Gpu(0)]
    assert "it waited for exclusive turn on machine" in str(found.failed[Gpu(0)])
    with pytest.raises(LoadFailed, match="gpu1"):
        found.raise_failed()


def test_two_checks_of_one_run_share_no_turns(seen: Inventory, tmp_path: Path) -> None:
    loads = Loads(folder=tmp_path)
    for _ in range(2):
        asked("gpu_copies", loads, gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert len({word for call in loads.word("--turns") for word in call}) == 2


def test_copies_that_took_turns_by_another_link_prove_nothing(
    seen: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = printed
    monkeypatch.setitem(
        globals(), "printed", lambda argv, own: told(argv, own).replace(', "link": "gpu0"', "")
    )
    found = asked("gpu_copies", Loads(), gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert "ran with link = None, and 'gpu0' was asked for" in str(found.failed[Gpu(0)])


def test_copies_of_another_length_than_asked_prove_nothing(
    seen: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = Loads(dead=(0,))
    found = asked("gpu_copies", loads, gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert set(found.outputs) == {Gpu(1)}
    told = printed
    monkeypatch.setitem(
        globals(),
        "printed",
        lambda argv, own: told(argv, own).replace('"seconds": 1.0', '"seconds": 0.1'),
    )
    short = asked("gpu_copies", Loads(), gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert set(short.failed) == {Gpu(0), Gpu(1)}
    assert "ran with seconds = 0.1, and 1.0 was asked for" in str(short.failed[Gpu(0)])


def test_a_load_is_held_to_its_own_gpu(seen: Inventory) -> None:
    found = asked("gpu_copies", Loads(stray=uuid(0)), gpus(seen), {"gpu_copy": 1.0}, seen)()
    assert set(found.outputs) == {Gpu(0)}
    assert f"ran with uuid = '{uuid(0)}', and '{uuid(1)}' was asked for" in str(
        found.failed[Gpu(1)]
    )
    torch_name = uuid(0).removeprefix("GPU-").upper()
    torchs = asked("gpu_copies", Loads(stray=torch_name), gpus(seen)[:1], {"gpu_copy": 1.0}, seen)()
    assert set(torchs.outputs) == {Gpu(0)}
