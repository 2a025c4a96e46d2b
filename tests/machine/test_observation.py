"""The inventory that a journal holds, decoded: of any version, and of another shape."""

from __future__ import annotations

import functools
from typing import Any

import journals
import msgspec
import sample_machines
import sample_runs
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from refusal import raised
from runs import RECORDED
from runs import recorded as recorded_run

from acceptance.baseline.facts import identities
from acceptance.core.evidence import Observed
from acceptance.core.parts import Gpu, Part
from acceptance.core.record import Note
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, known
from acceptance.machine.observation import NOTHING, decode, inventory_of, matrix_of
from selftest import drawn_runs


def function(address: str, **more: object) -> dict[str, Any]:
    return {"address": address, "is_display": True, "is_virtual_function": False, **more}


@functools.cache
def recorded() -> dict[str, Any]:
    """The plain data of all recorded runs that hold an inventory."""
    found = {}
    for name in RECORDED:
        for entry in recorded_run(name).entries:
            if isinstance(entry.body, Observed):
                found[name] = entry.body.inventory
    return found


def test_a_recorded_inventory_is_decoded_whole() -> None:
    assert len(recorded()) > 6
    for name, plain in recorded().items():
        assert decode(plain) == msgspec.convert(plain, Inventory), name
        assert all(gpu.uuid and gpu.model for gpu in gpus(decode(plain))), name
        assert gpus(decode(plain)), name


def test_what_is_observed_is_what_is_read_back() -> None:
    for name, made in sample_runs.MADE.items():
        seen = sample_machines.inventory(drawn_runs.named(made.machine), made.dead_links)
        assert decode(msgspec.json.decode(msgspec.json.encode(seen))) == seen, name


@each(
    "plain",
    [
        {"address": "0000:01:00.0"},
        function("0000:01:00.0", is_display=False),
        function("0000:01:00.0", is_virtual_function=True),
        function("0000:01:00.0", is_display="yes"),
        {"is_display": True},
        "0000:01:00.0",
    ],
    told=["says nothing", "sound", "cut out", "another shape", "without address", "no table"],
)
def test_what_does_not_say_that_it_is_a_gpu_is_none(plain: object) -> None:
    (gpu,) = gpus(decode({"pci": [plain, function("0000:02:00.0")]}))
    assert (gpu.name, gpu.pci_address, gpu.device_id, gpu.device) == (
        Gpu(0),
        "0000:02:00.0",
        None,
        None,
    )
    assert (gpu.links, gpu.traits, gpu.counters, gpu.slot_link) == ((), None, None, (None, None))


@each(
    "plain",
    [{}, None, [], "x", {"pci": None, "nvml": []}, {"pci": "x", "nvml": {"devices": "y"}}],
)
def test_nothing_is_known_of_what_has_another_shape(plain: object) -> None:
    assert decode(plain) == NOTHING
    assert gpus(NOTHING) == ()
    assert identities(NOTHING) == {}
    assert (NOTHING.pci, NOTHING.disks, NOTHING.links, NOTHING.memory.dimms) == (None,) * 4
    assert (NOTHING.cpu.threads, NOTHING.memory.total_bytes) == (None, None)
    assert (NOTHING.board.nouveau_loaded, NOTHING.board.device_nodes) == (None, ())
    assert (NOTHING.nvml.devices, NOTHING.places) == ((), {})


def test_a_value_of_another_shape_is_absent_and_the_others_stay() -> None:
    found = decode(
        {
            "cpu": {"model": 7, "cores": 4, "threads": True},
            "memory": {"total_bytes": "much", "ecc": "None", "dimms": [{"slot": 1}, {"slot": "A"}]},
            "disks": [],
            "links": [{"name": "eth0", "up": 1, "speed_mbps": 10}, {"up": True}],
            "nvml": {
                "devices": [{"index": "0", "uuid": "GPU-1", "links": [{"active": True}, 3]}],
                "pairs": [{"a": 0}, {"a": 0, "b": 1}],
            },
            "board": {"nvidia_driver": "580.1", "device_nodes": 5, "gpu_nodes": {"x": 1}},
            "places": {
                "x": {"address": "x", "host_bridge": "pci0000:00", "bridges": ["y"], "cpus": ["z"]},
                "y": {"address": "y", "host_bridge": "pci0000:00"},
            },
        }
    )
    assert (found.cpu.model, found.cpu.cores, found.cpu.threads) == (None, 4, None)
    assert (found.memory.total_bytes, found.memory.ecc) == (None, "None")
    assert [dimm.component for dimm in found.memory.dimms or ()] == [Part("dimm", "A")]
    assert (found.pci, found.disks) == (None, ())
    (link,) = found.links or ()
    assert (link.component, link.up, link.speed_mbps) == (Part("net", "eth0"), None, 10)
    assert link.is_virtual_function is None
    (device,) = found.nvml.devices
    assert (device.index, device.uuid, device.traits) == (None, "GPU-1", None)
    assert [(one.link, one.active) for one in device.links] == [(None, True)]
    assert [(pair.a, pair.b, pair.path) for pair in found.nvml.pairs] == [(0, 1, None)]
    board = found.board
    assert (board.nvidia_driver, board.device_nodes, board.gpu_nodes) == ("580.1", (), {})
    assert list(found.places) == ["x"]
    assert (found.places["x"].bridges, found.places["x"].cpus) == (("y",), None)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@given(st.dictionaries(st.sampled_from(Inventory.__slots__), _plain))
def test_no_journal_is_refused(plain: dict[str, Any]) -> None:
    assert isinstance(decode(plain), Inventory)


def test_a_part_is_identified_by_its_uuid_or_serial_number() -> None:
    inventory = {
        "pci": [function(f"0000:0{number}:00.0") for number in range(1, 4)],
        "nvml": {
            "devices": [
                {"pci_address": "0000:01:00.0", "uuid": "GPU-1", "serial": "11"},
                {"pci_address": "0000:02:00.0", "uuid": None, "serial": "22"},
                {"pci_address": None, "uuid": "GPU-9"},
            ]
        },
        "disks": [
            {"name": "sda", "serial": "D1"},
            {"name": "sdb", "serial": None},
            {"name": "sdc", "serial": ""},
        ],
        "memory": {"dimms": [{"slot": "A1", "serial": "M1"}, {"slot": "A2"}]},
    }
    assert identities(decode(inventory)) == {
        Gpu(0): "GPU-1",
        Gpu(1): "22",
        Part("disk", "sda"): "D1",
        Part("dimm", "A1"): "M1",
    }


def test_the_first_look_at_the_machine_counts() -> None:
    entries = journals.entries(
        [
            Note("x"),
            Observed({"cpu": {"cores": 1}}, (("", Gpu(0)),)),
            Observed({"cpu": {"cores": 2}}),
        ]
    )
    assert inventory_of(entries).cpu.cores == 1
    assert matrix_of(entries) == (("", Gpu(0)),)
    assert (inventory_of(()), matrix_of(())) == (NOTHING, ())


def test_a_value_that_only_a_journal_lacks() -> None:
    assert known(0) == 0
    assert "not observed on this machine" in raised(ValueError, known, NOTHING.cpu.threads)
