"""What is looked at on GPUs before anything is heated: readiness, memory, ways and links, with
the limits that they really have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cases import each
from gpu_machine import (
    COUNTERS,
    SOMEBODY,
    TRAITS,
    answer,
    device,
    link,
    look,
    machine,
    pairs,
    tree_of,
)
from product_session import collected
from suite_box import Box, Said, ask, planned

from acceptance.core.message import Message, Unmeasured
from acceptance.core.parts import Gpu, Pair
from acceptance.core.record import Skipped
from acceptance.expect import components, gpu_limits, plan_builder
from acceptance.expect.plan_builder import MachineUnderTest, Request
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NvmlAnswer, NvmlDevice, NvmlPair
from acceptance.machine.machine_file import Machine
from acceptance.observe import nvml
from acceptance.run import planning
from acceptance.suites import gpu as suites_gpu
from acceptance.suites import link as link_suite
from acceptance.suites import watch

BEFORE = ("gpu.ready", "gpu.memory_health", "link.paths")


def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *devices: NvmlDevice) -> Box:
    apart = pairs(len(devices), "not-supported", "not-supported")
    return Box(tmp_path, monkeypatch, machine(*devices, found=apart))


def test_a_machine_that_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = device(1, traits=replace(TRAITS, display_active=True))
    box = before(tmp_path, monkeypatch, device(0), shown)
    outcomes = box.run(*BEFORE, name="host-before")
    assert outcomes == {"gpu.ready": "pass", "gpu.memory_health": "pass", "link.paths": "pass"}
    assert [note.split(":")[0] for note in box.notes()] == ["gpu1 drives the display"]
    assert box.measured("gpu_ready") == {Gpu(0): 1.0, Gpu(1): 1.0}
    assert box.measured("p2p_supported") == {Pair(Gpu(0), Gpu(1)): 0.0, Pair(Gpu(1), Gpu(0)): 0.0}
    assert box.measured("gpu_retired_pages") == {Gpu(0): 0.0, Gpu(1): 0.0}


def test_what_gpus_counted_in_all_is_recorded_of_those_that_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = replace(COUNTERS, ecc_corrected_total=12, remapped_corrected=1, pcie_replays=345)
    silent = replace(COUNTERS, ecc_corrected_total=None, remapped_corrected=None, pcie_replays=None)
    box = before(tmp_path, monkeypatch, device(0, counters=counting), device(1, counters=silent))
    assert box.run("totals.counted", name="host-before") == {"totals.counted": "pass"}
    assert box.measured("gpu_ecc_corrected_total") == {Gpu(0): 12.0}
    assert box.measured("gpu_remapped_corrected") == {Gpu(0): 1.0}
    assert box.measured("gpu_pcie_replays_total") == {Gpu(0): 345.0}


def test_a_gpu_that_is_not_ready_stops_the_session_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = device(
        1, traits=replace(TRAITS, compute_mode="prohibited", compute_processes=(SOMEBODY,))
    )
    box = before(tmp_path, monkeypatch, device(0), busy)
    assert box.run(*BEFORE, name="host-before") == {"gpu.ready": "error"}
    assert box.measured("gpu_ready") == {Gpu(0): 1.0}
    assert "gpu1: compute mode is prohibited: `sudo nvidia-smi -i GPU-00000001" in box.message()
    assert "gpu1: python3 (process 4711, 1.5 GiB) computes on it" in box.message()


@pytest.mark.parametrize(("lost", "outcome"), [(None, "pass"), (0, "pass"), (1, "error")])
def test_where_the_loads_run_in_place_the_other_gpus_are_seen_as_well(
    monkeypatch: pytest.MonkeyPatch, lost: int | None, outcome: str
) -> None:
    seen = machine(*(device(index) for index in range(3)))
    inside = replace(
        seen.nvml, devices=tuple(one for one in seen.nvml.devices if one.index != lost)
    )
    monkeypatch.setattr(nvml, "probe", lambda **_: inside)
    made = planned(seen, (Gpu(1),), ("gpu.granted",), "d")
    due = gpus(seen)[1:2]
    said = ask(
        made,
        "gpu.granted",
        suites_gpu.test_granted,
        inventory=seen,
        due_gpus=due,
        deadline=None,
    )
    assert said.outcome == outcome
    assert ("cannot be seen from where the loads run: gpu1" in said.message) == (outcome == "error")


def asked(seen: Inventory, name: str, function: Callable[..., None], **given: object) -> Said:
    """Run a check that only looks."""
    made = planned(seen, [gpu.name for gpu in gpus(seen)], (name,), "d")
    given |= {"model_sheets": gpu_limits.sheets()} if name == "gpu.memory_health" else {}
    given |= {"inventory": seen} if name != "link.nvlinks" else {}
    return ask(made, name, function, due_gpus=gpus(seen), **given)


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        ({"ecc_uncorrected": 1}, "gpu_ecc_uncorrected on gpu1: measured 1, limit <= 0"),
        ({"remap_pending": True}, "gpu_remap_pending on gpu1: measured 1, limit <= 0"),
        ({"remap_failed": True}, "gpu_remap_failed on gpu1: measured 1, limit <= 0"),
        (
            {"remapped_uncorrected": 513},
            "gpu_remapped_uncorrected on gpu1: measured 513, limit <= 512",
        ),
        ({"retired_pending": True}, "gpu_retirement_pending on gpu1: measured 1, limit <= 0"),
        (
            {"retired_single": 40, "retired_double": 20},
            "gpu_retired_pages on gpu1: measured 60, limit <= 59",
        ),
    ],
)
def test_a_memory_that_was_through_something(counters: dict[str, int], told: str) -> None:
    seen = machine(device(0), device(1, counters=replace(COUNTERS, **counters)))
    said = asked(seen, "gpu.memory_health", suites_gpu.test_memory_health)
    assert said.outcome == "fail"
    assert said.message.startswith(told)
    assert len(said.message.splitlines()) == 1


def test_ecc_that_is_off_where_the_model_has_it_is_an_error_with_its_cure(tmp_path: Path) -> None:
    """In a part of a run too, which knows no gaps: to that card nothing of the
    check is due but its remaps.
    """
    tree = tree_of(tmp_path, 0)
    for bus in (1, 2):
        tree.gpu(bus, device="0x2335")
    on, off = replace(TRAITS, ecc_enabled=True), replace(TRAITS, ecc_enabled=False)
    blind = device(
        1, name="NVIDIA H200", traits=off, counters=replace(COUNTERS, ecc_uncorrected=None)
    )
    seen = look(tree, [device(0, name="NVIDIA H200", traits=on), blind])
    said = asked(seen, "gpu.memory_health", suites_gpu.test_memory_health)
    assert said.outcome == "error"
    assert said.message.startswith(
        "gpu1: ECC is off, and an H200 SXM 141GB has it on: `sudo nvidia-smi -i GPU-00000001-"
    )


def test_counters_that_are_gone_when_they_are_due_are_an_error() -> None:
    seen = machine(device(0), device(1))
    made = planned(seen, (Gpu(0), Gpu(1)), ("gpu.memory_health",), "d")
    gone = replace(seen, nvml=replace(seen.nvml, devices=(device(0), device(1, counters=None))))
    pages = replace(
        seen,
        nvml=replace(
            seen.nvml,
            devices=(device(0), device(1, counters=replace(COUNTERS, retired_double=None))),
        ),
    )
    for found, told in (
        (gone, "gpu_ecc_uncorrected on gpu1 was not measured"),
        (pages, "gpu_retired_pages on gpu1 was not"),
    ):
        said = ask(
            made,
            "gpu.memory_health",
            suites_gpu.test_memory_health,
            inventory=found,
            due_gpus=gpus(found),
            model_sheets=gpu_limits.sheets(),
        )
        assert said.outcome == "error"
        assert said.message.startswith(told)


def test_peer_access_that_this_model_does_not_have() -> None:
    said = asked(machine(device(0), device(1)), "link.paths", link_suite.test_paths, machine=None)
    assert said.outcome == "fail"
    assert (
        "p2p_supported on gpu0->gpu1: measured 1 (path PHB; read ok, write ok), limit = 0"
        in said.message
    )


BOTH_WAYS = {
    ("p2p_supported", Pair(Gpu(0), Gpu(1))),
    ("p2p_supported", Pair(Gpu(1), Gpu(0))),
}
UNANSWERED = tuple(replace(pair, error="GPU is lost") for pair in pairs(2, None, None))


@pytest.mark.parametrize(
    ("told", "why", "outcome"),
    [
        (pairs(2, None, None), Unmeasured.NOT_OFFERED, "pass"),
        (pairs(2, "ok", None), Unmeasured.NOT_OFFERED, "pass"),
        (UNANSWERED, Unmeasured.NO_ANSWER, "error"),
        ((), Unmeasured.NO_ANSWER, "error"),
    ],
)
def test_pairs_of_which_nvml_does_not_speak_are_skipped_with_the_reason(
    told: tuple[NvmlPair, ...], why: Unmeasured, outcome: str
) -> None:
    said = asked(
        machine(device(0), device(1), found=told), "link.paths", link_suite.test_paths, machine=None
    )
    assert said.measured("p2p_supported") == {}
    assert said.skipped() == BOTH_WAYS
    gaps = [(body.why, body.reason) for body in said.written if isinstance(body, Skipped)]
    assert gaps == [(why, Message("peer_access_unknown"))] * 2
    assert said.outcome == outcome, "the fold calls a skip that nobody waived unjudged"


def test_pairs_of_a_gpu_that_nvml_does_not_know_are_skipped_too() -> None:
    seen = machine(device(0), device(1))
    due = tuple(replace(gpu, device=None) if gpu.name == Gpu(1) else gpu for gpu in gpus(seen))
    made = planned(seen, (Gpu(0), Gpu(1)), ("link.paths",), "d")
    said = ask(
        made, "link.paths", link_suite.test_paths, inventory=seen, due_gpus=due, machine=None
    )
    assert said.skipped() == BOTH_WAYS


def declared_paths(seen: Inventory, pair: dict[str, object]) -> Said:
    """What `link.paths` says where a machine file declares this of a pair."""
    names = tuple(gpu.name for gpu in gpus(seen))
    declared = msgspec.convert(
        {"schema": 1, "name": "m", "gpus": len(names), "gpu_pair": [pair]}, Machine
    )
    made = plan_builder.build(
        collected().checks,
        "d",
        MachineUnderTest(
            components=components.resolve(declared, seen, frozenset(), names),
            book=planning.book(declared, "m.toml", seen, names),
            siblings=components.siblings(declared, seen, names),
            file="m.toml",
        ),
        Request(profile="smoke", loads_s={}, memory_gib=1.0, only=("link.paths",)),
    )
    return ask(
        made,
        "link.paths",
        link_suite.test_paths,
        inventory=seen,
        due_gpus=gpus(seen),
        machine=declared,
    )


def test_a_path_that_is_another_than_the_declared_one() -> None:
    seen = machine(device(0), device(1), found=pairs(2, "not-supported", "not-supported"))
    said = declared_paths(seen, {"between": [0, 1], "path": "NV4"})
    assert said.outcome == "fail"
    assert "gpu_path_differs on gpu1->gpu0: measured 1 (found PHB)" in said.message
    assert said.measured("p2p_supported") == {Pair(Gpu(0), Gpu(1)): 0.0, Pair(Gpu(1), Gpu(0)): 0.0}


# NVLinks from each V100 of a DGX-1 to each: a hybrid cube mesh (NVIDIA/nccl#671).
CUBE_MESH = (
    "01122000", "10210200", "12020010", "21200001", "20000112", "02001021", "00101202", "00012120",
)  # fmt: skip


def v100s(
    folder: Path, wires: Sequence[str] = CUBE_MESH, *, refused: frozenset[int] = frozenset()
) -> Inventory:
    """V100s joined so; the driver offers peer access where NVLinks are, but none to the GPUs of
    `refused`.
    """
    tree = tree_of(folder, 0)
    devices, found = [], []
    for index, row in enumerate(wires):
        tree.gpu(index + 1, device="0x1db1")
        to = [other for other, count in enumerate(row) for _ in range(int(count))]
        links = [link(number, to=other) for number, other in enumerate(to)]
        links += [link(number, active=False) for number in range(len(to), 6)]
        devices.append(device(index, name="Tesla V100-SXM2-16GB", links=tuple(links)))
        for other, count in enumerate(row):
            offered = count != "0" and not {index, other} & refused
            state = "ok" if offered else "topology-not-supported"
            path = "PXB" if index // 4 == other // 4 else "SYS"
            if other != index:
                found.append(NvmlPair(index, other, path, state, state, "not-supported"))
    return look(tree, devices, found)


def test_a_cube_mesh_is_sound_though_not_all_pairs_are_joined(tmp_path: Path) -> None:
    seen = v100s(tmp_path)
    said = asked(seen, "link.paths", link_suite.test_paths, machine=None)
    assert said.outcome == "pass", said.message
    offered = said.measured("p2p_supported")
    assert (offered[Pair(Gpu(0), Gpu(4))], offered[Pair(Gpu(0), Gpu(5))]) == (1.0, 0.0)
    links = asked(seen, "link.nvlinks", link_suite.test_nvlinks)
    assert links.outcome == "pass", links.message
    assert set(links.measured("nvlink_active").values()) == {6.0}


def test_a_joined_pair_of_a_cube_mesh_without_peer_access_fails(tmp_path: Path) -> None:
    seen = v100s(tmp_path, refused=frozenset({5}))
    said = asked(seen, "link.paths", link_suite.test_paths, machine=None)
    assert said.outcome == "fail"
    assert "p2p_supported on gpu1->gpu5: measured 0" in said.message
    assert "gpu0->gpu5" not in said.message


def test_a_pair_of_a_cube_mesh_that_is_declared_joined_and_is_not(tmp_path: Path) -> None:
    said = declared_paths(v100s(tmp_path), {"between": [0, 5], "path": "NV2", "p2p": True})
    assert said.outcome == "fail"
    assert "gpu_path_differs on gpu0->gpu5: measured 1 (found SYS)" in said.message
    assert "p2p_supported on gpu5->gpu0: measured 0" in said.message
    assert "gpu0->gpu6" not in said.message


@each(
    "wires, failed",
    [
        (CUBE_MESH, set()),
        (("01112000", *CUBE_MESH[1:]), {"gpu0"}),
        (("0222", "2022", "2202", "2220"), set()),  # four cards, each joined to each by two
        (("0222", "2012", "2102", "2220"), {"gpu1", "gpu2"}),
        # of these the board, or what a VM has of it, decides
        (("02", "20"), set()),
        (("0112", "1021", "1202", "2120"), set()),
        (("00", "00"), {"gpu0", "gpu1"}),
    ],
)
def test_a_v100_that_has_less_links_than_its_equals(
    tmp_path_factory: pytest.TempPathFactory, wires: tuple[str, ...], failed: set[str]
) -> None:
    seen = v100s(tmp_path_factory.mktemp("mesh"), wires)
    said = asked(seen, "link.nvlinks", link_suite.test_nvlinks)
    told = set(re.findall(r"nvlink_active on (gpu\d): measured", said.message))
    assert (said.outcome, told) == ("fail" if failed else "pass", failed), said.message


def bridged(
    index: int, *, up: int = 4, speed_gbs: float | None = 14.0625, name: str = "GeForce RTX 3090"
) -> NvmlDevice:
    links = tuple(
        link(n, active=n < up, to=1 - index if n < up else None, speed_gbs=speed_gbs)
        for n in range(4)
    )
    return device(index, name=f"NVIDIA {name}", links=links)


def wired(folder: Path, *cards: NvmlDevice, device: str = "0x2204") -> Inventory:
    """A machine with these two cards."""
    tree = tree_of(folder, 0)
    for bus in (1, 2):
        tree.gpu(bus, device=device)
    return look(tree, cards, pairs(2))


def after(patch: pytest.MonkeyPatch, seen: Inventory, now: NvmlAnswer) -> Said:
    """The links of a machine looked at after the load, when NVML says this."""
    patch.setattr(nvml, "probe", lambda **_: now)
    made = planned(seen, (Gpu(0), Gpu(1)), ("watch.nvlinks",), "d")
    return ask(made, "watch.nvlinks", watch.test_nvlinks, due_gpus=gpus(seen), deadline=None)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ({}, None),
        ({"up": 3}, "nvlink_active on gpu1: measured 3 (4 links, down: 3), limit = 4"),
        ({"speed_gbs": 7.0}, "nvlink_speed on gpu1: measured 7 GB/s, limit >= "),
    ],
)
def test_nvlinks_before_and_after_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: dict[str, Any], told: str | None
) -> None:
    cards = bridged(0), bridged(1, **second)
    before = asked(wired(tmp_path / "ill", *cards), "link.nvlinks", link_suite.test_nvlinks)
    sound = wired(tmp_path / "sound", bridged(0), bridged(1))
    for said in (before, after(monkeypatch, sound, answer(cards))):
        assert said.outcome == ("fail" if told else "pass")
        assert said.message.startswith(told or "")
        assert said.measured("nvlink_active")[Gpu(0)] == 4.0


LOST = replace(bridged(1), error="NVML says: GPU is lost")
UNKNOWN = {"name": "Future 1"}  # a card without a sheet


@pytest.mark.parametrize(
    ("then", "now", "outcome", "told", "active", "speeds"),
    [
        ({}, [bridged(0), bridged(1, up=0)], "fail", "down: 0, 1, 2, 3", [4, 0], 1),
        ({}, [bridged(0), LOST], "error", "gpu1: NVML says: GPU is lost: ", [4], 1),
        ({}, [bridged(0)], "error", "gpu1: NVML does not list it any more: ", [4], 1),
        ({}, [], "error", "the driver hangs", [], 0),
        # A link that came up under load is no stray.
        ({"up": 0}, [bridged(0), bridged(1)], "pass", "", [4, 4], 1),
        (UNKNOWN, [bridged(0), bridged(1)], "pass", "", [4, 4], 2),
        (UNKNOWN, [bridged(0), bridged(1, up=3)], "error", "gpu1: 4 NVLinks were up", [4, 3], 2),
    ],
)
def test_links_after_the_load(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    then: dict[str, Any],
    now: list[NvmlDevice],
    outcome: str,
    told: str,
    active: list[float],
    speeds: int,
) -> None:
    known = "0x9999" if then is UNKNOWN else "0x2204"
    seen = wired(tmp_path, bridged(0, **then | {"up": 4}), bridged(1, **then), device=known)
    found = answer(now) if now else nvml.failed_answer("the driver hangs")
    said = after(monkeypatch, seen, found)
    assert said.outcome == outcome
    assert told in said.message
    assert [*said.measured("nvlink_active").values()] == active
    assert len(said.measured("nvlink_speed")) == speeds


@pytest.mark.parametrize("name", ["link.nvlinks", "watch.nvlinks"])
def test_the_speed_of_links_is_measured_where_their_number_is_not_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen = wired(tmp_path, bridged(0), bridged(1, up=3))
    (check,) = (made := planned(seen, (Gpu(0), Gpu(1)), (name,), "d")).checks
    speeds = tuple(due for due in check.due if due.measurement == "nvlink_speed")
    made = msgspec.structs.replace(made, checks=(msgspec.structs.replace(check, due=speeds),))
    monkeypatch.setattr(nvml, "probe", lambda **_: seen.nvml)
    function, more = link_suite.test_nvlinks, {}
    if name == "watch.nvlinks":
        function, more = watch.test_nvlinks, {"deadline": None}
    said = ask(made, name, function, due_gpus=gpus(seen), **more)
    assert (said.outcome, said.measured("nvlink_active")) == ("pass", {})
    assert set(said.measured("nvlink_speed")) == {Gpu(0), Gpu(1)}


def test_nvlinks_whose_speed_nobody_tells_are_an_error(tmp_path: Path) -> None:
    seen = wired(tmp_path, bridged(0), bridged(1, speed_gbs=None))
    said = asked(seen, "link.nvlinks", link_suite.test_nvlinks)
    assert (said.outcome, said.message) == ("error", "nvlink_speed on gpu1 was not measured")
