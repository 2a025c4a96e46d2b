from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from cases import each

from acceptance import resources
from acceptance.core.parts import Gpu
from acceptance.core.waiver import Waiver
from acceptance.machine import machine_file
from acceptance.machine.machine_file import DeclaredDisk, Machine

EVERYTHING = Path(__file__).with_name("everything.toml")
HEAD = 'schema = 1\nname = "box"\n'


def read(folder: Path, text: str) -> Machine:
    file = folder / "box.toml"
    file.write_text(text, encoding="utf-8")
    return machine_file.read(file)


def keys_of(kind: type[msgspec.Struct]) -> set[str]:
    """Every key of a table and of the tables in it, as `gpu.model`."""
    found: set[str] = set()
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        found.add(field.name)
        inner = getattr(field.type, "item_type", field.type)
        if isinstance(inner, msgspec.inspect.StructType):
            found |= {f"{field.name}.{name}" for name in keys_of(inner.cls)}
    return found


def keys_in(table: dict[str, object]) -> set[str]:
    found = set()
    for key, value in table.items():
        found.add(key)
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, dict):
                found |= {f"{key}.{name}" for name in keys_in(member)}
    return found


def test_a_file_may_use_every_key_there_is() -> None:
    assert keys_in(tomllib.loads(EVERYTHING.read_text(encoding="utf-8"))) == keys_of(Machine)
    found = machine_file.read(EVERYTHING)
    assert (found.order.number, found.order.asset_tag) == ("PO-4711", "AT-0815")
    assert (found.psu.watts, found.cpu.watts) == (2000, 560)
    assert (found.power.pulses, found.collectives.multicast) == (False, True)
    assert (found.cpu.threads, found.memory.dimm[0].slot, found.memory.test_share) == (
        128,
        "A1",
        0.5,
    )
    assert (found.gpu[0].link_width, found.disk[1].count, found.network[0].speed_mbps) == (
        16,
        2,
        10000,
    )
    assert (found.gpu[0].nvlink_links, found.gpu_pair[0].between, found.gpu_pair[1].p2p) == (
        4,
        (0, 1),
        False,
    )
    assert found.limit[1].limit().high == 200.5
    assert [str(waiver) for waiver in found.waiver] == [
        "disk_faults on disk:nvme0",
        "kernel_log on system",
    ]


@each("file", sorted(resources.locate("machines").glob("*.toml")), told=lambda file: file.name)
def test_every_shipped_machine_file_is_read(file: Path) -> None:
    assert machine_file.read(file).schema == machine_file.SCHEMA


def test_what_is_not_declared_is_absent(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD)
    assert found == Machine(schema=1, name="box")
    assert found.gpus is None
    assert found.gpu_count() is None
    assert found.memory.total_gib is None


@each(
    "text, count",
    [
        ("gpus = 0\n", 0),
        ("gpus = 2\n", 2),
        ("[[gpu]]\ncount = 3\n[[gpu]]\n", 4),
        ("gpus = 1\n[[gpu]]\n", 1),
    ],
)
def test_the_number_of_gpus(tmp_path: Path, text: str, count: int) -> None:
    assert read(tmp_path, HEAD + text).gpu_count() == count


@each(
    "text",
    [
        "cpu.cores = 4\n",
        "cpu = { cores = 4 }\n",
        "[cpu]\ncores = 4\n",
        '["cpu"]\n"cores" = 4\n',
        "[ cpu ] # the processor\n\tcores=4\n",
        '[cpu]\n"\\u0063ores" = 4\n',
    ],
)
def test_the_same_key_in_all_of_tomls_spellings(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, HEAD + text).cpu.cores == 4


def test_windows_line_ends_and_byte_order_mark_are_weather(tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode())
    assert machine_file.read(tmp_path / "box.toml").name == "box"


def test_a_long_pci_domain_is_the_kernels_only_where_it_must_be(tmp_path: Path) -> None:
    assert (
        read(tmp_path, HEAD + '[[gpu]]\naddress = "10000:e1:00.0"\n').gpu[0].address
        == "10000:e1:00.0"
    )


def test_a_limit_for_one_component_may_go_before_the_general_one(tmp_path: Path) -> None:
    row = '[[limit]]\nmeasurement = "heat"\nunit = "degC"\nhigh = 90\nbasis = "b"\n'
    found = read(tmp_path, HEAD + row + 'component = "gpu0"\n' + row)
    assert [limit.component for limit in found.limit] == [Gpu(0), None]


def test_a_waiver_as_text_and_the_names_that_stay() -> None:
    assert str(Waiver("known", skip="kernel_log")) == "kernel_log"
    assert DeclaredDisk("x").count == 1
