"""Every number of `fixtures/derived.toml` decides: changed, it changes the digest and a limit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import limits_page
import msgspec
import pytest
from boxes import BOXES, Box
from cases import each
from known import known
from refusal import assert_raises
from synthetic_machines import inventory
from worded import worded

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.core.message import SetupError
from acceptance.core.parts import Core, Gpu, part
from acceptance.expect import (
    architecture,
    declaration,
    disk_sheet,
    gpu_limits,
    limit_book,
    limit_version,
    measurements,
)
from acceptance.expect.ceiling import gpu_ceilings, host_ceilings
from acceptance.expect.limit_book import FILE, Amount, Book, Override
from acceptance.expect.storage_limits import StorageFacts, ceilings, floors
from acceptance.machine import disk_link, machine_file, pcie
from acceptance.machine.disk_link import SataLink
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Disk

SHIPPED = resources.locate(FILE)
EVERYTHING = Path(__file__).resolve().parents[1] / "machine/everything.toml"
H200 = BOXES["8xh200.toml"]
MACHINES = (
    BOXES["2x3090ti-bridge.toml"],
    BOXES["2x4090.toml"],
    BOXES["2xa100-40gb-7049gp.toml"],
    replace(H200, count=2),
    replace(H200, count=3),
    Box("", "GH200 96GB", 1, (5, 16)),
    Box("", "A10", 1, (4, 16)),
    Box("", "RTX PRO 6000 Blackwell Workstation", 1, (5, 16)),
)
DISKS = (
    ("Samsung SSD 990 PRO 2TB", "nvme", 2000.4),
    ("ST16000NM001G-2KK103", "hdd", 16000.9),
    ("Micron_9550_MTFDLAL6T4THB", "nvme", 6400.1),
)
# Measurement, component, and which of its limits.
Key = tuple[str, str, str]


def _of_gpus(box: Box) -> Iterator[tuple[str, Override]]:
    machine = inventory(box)
    names = tuple(Gpu(index) for index in range(box.count))
    hot = replace(machine.nvml, devices=tuple(map(_thermometer, machine.nvml.devices)))
    of = replace(machine, nvml=hot)
    models = gpu_limits.sheets()
    yield from (("limit", one) for one in gpu_limits.overrides(of, names, None, models))
    yield from (("ceiling", one) for one in gpu_limits.ceilings(of, names, models))
    due = gpus(of, names)
    clockless = [replace(one, max_sm_clock_mhz=None) for one in gpu_limits.compute_facts(due)]
    facts = gpu_limits.gpu_facts(due, None)
    for one in gpu_ceilings(facts, clockless, models, architecture.shipped()):
        yield "ceiling without a clock", one


def _thermometer(device: Any) -> Any:
    traits = replace(device.traits, memory_thermometer=True, memory_max_temperature_c=95.0)
    return replace(device, traits=traits)


def _of_disks() -> Iterator[tuple[str, Override]]:
    links = {"nvme": pcie.data_rate(5, 4), "hdd": disk_link.most(SataLink(None, 6.0, None))}
    for model, kind, gb in DISKS:
        transport = "nvme" if kind == "nvme" else "sata"
        one = Disk(model, model, "S1", round(gb * 1e9), kind, transport, "1")
        facts = StorageFacts((one,), (), known(links[kind]))
        disk = part("disk", kind)
        yield from ((model, one) for one in floors(facts, disk_sheet.shipped(), disk))
        yield from ((f"{model} ceiling", one) for one in ceilings(facts, disk))


def limits() -> dict[Key, Limit]:
    """Every limit of these machines."""
    declared = machine_file.read(EVERYTHING)
    found = [
        *(
            (f"{box.sheet} x {box.count} {which}", one)
            for box in MACHINES
            for which, one in _of_gpus(box)
        ),
        *_of_disks(),
        *(("ceiling", one) for one in host_ceilings(8, (Core(0),), ((4800, 64),) * 2)),
        *(("declared", one) for one in declaration.declared_limits(declared, "x.toml")),
        *(("derived", one) for one in declaration.bandwidth_limits(declared, (4800,), "x.toml")),
    ]
    return {
        (one.measurement, str(one.component), which): one.limit
        for which, one in found
        if one.limit is not None
    }


def numbers() -> list[tuple[str, ...]]:
    """The place of every number of the file: of limits by number, of figures by name."""
    table = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    return [
        *(
            ("derived", str(number), of)
            for number, row in enumerate(table["derived"])
            for of in row["of"]
        ),
        *(("figure", name, "") for name in table["figure"]),
    ]


@pytest.fixture(scope="module")
def before() -> dict[Key, Limit]:
    return limits()


def _changed(place: tuple[str, ...]) -> dict[str, Any]:
    """The file with another number in this place; of a bound between, one past all machines."""
    table = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    kind, name, _ = place
    if kind == "figure":
        one, key = table["figure"][name], "value"
        far = 1e-6 if "most" in name else 1e6 if "least" in name else None
    else:
        one, far = table["derived"][int(name)], None
        key = "low" if "low" in one else "high"
    one[key] = far or one[key] * 0.9
    return table


@each("place", numbers, told=" ".join)
def test_every_number_decides_a_limit_and_is_in_the_digest(
    place: tuple[str, ...],
    before: dict[Key, Limit],
    tmp_path: Path,
) -> None:
    digest = limit_version.digest()
    file = tmp_path / FILE
    file.write_bytes(msgspec.toml.encode(_changed(place)))
    book = resources.read(file, Book)
    locate = resources.locate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "locate", lambda name: file if name == FILE else locate(name))
        assert limit_version.digest() != digest
        patch.setattr(limit_book, "book", lambda: book)
        after = limits()
    moved = {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    if place[0] == "derived":
        patterns = book.derived[int(place[1])].of[place[2]]
        names = measurements.shipped().by_name
        assert set(patterns) & names.keys() <= moved
        for pattern in patterns:
            assert any(re.fullmatch(pattern.replace("*", ".*"), name) for name in moved), pattern
    assert moved


def test_every_basis_is_whole(before: dict[Key, Limit]) -> None:
    """No wording asks for a value that it does not get."""
    codes = {row.wording for row in limit_book.book().derived}
    told = {str(worded(limit.basis)) for limit in before.values()}
    assert told
    assert not [one for one in told if re.search(r"\{\w+\}", one) or one in codes]


@each(
    "old, new",
    [
        (r"low = .*\n", ""),
        (r"(low = .*\n)", r"\1high = 1.0\n"),
        (r"low = .*\n", "low = 0\n"),
        (r"(low = .*\n)", r"\1lw = 1\n"),
        (r"of = \{ nvlink = \[", "of = { nvlnk = ["),
        ("\ncores = ", "\ncoers = "),
        ('"copy_own_h2d"', '"copy_own_h2b"'),
        (r'\["burn_\*"', '["brun_*"'),
        ('basis = "healthy cards', 'bases = "healthy cards'),
        (r"\[figure.core_ghz\]", "[figure.core_mhz]"),
        ("\nshare_of_link = ", "\nshare_of_lnk = "),
    ],
)
def test_a_number_that_judges_nothing_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    changed, found = re.subn(old, new, text, count=1)
    assert found
    file = tmp_path / FILE
    file.write_text(changed, encoding="utf-8")
    assert_raises(SetupError, resources.read, file, Book, match=FILE)


def test_a_quantity_that_the_file_does_not_have_is_an_error() -> None:
    assert_raises(SetupError, limit_book.book().rows, "of nothing", match=FILE)


@each(
    "find, of, names, told",
    [
        (limit_book.floors, "host_link", (), "no low of host_link limits anything"),
        (limit_book.ceilings, "link", (), "no high of link limits anything"),
        (limit_book.floors, "gemm_floor", (), r"no low of gemm_floor limits burn_\*"),
        (limit_book.floors, "gemm_floor", ("burn_f64", "brun_i8"), "no low .* limits brun_i8"),
        (limit_book.ceilings, "peak", ("gemm_f64", "copy_h2d"), "no high of peak limits copy_h2d"),
    ],
)
def test_a_limit_that_is_asked_for_in_vain_is_an_error(
    find: Callable[..., Iterator[Override]], of: str, names: tuple[str, ...], told: str
) -> None:
    where = (Gpu(0), "x") if find is limit_book.floors else (Gpu(0),)
    assert_raises(
        SetupError,
        list,
        find(of, *where, Amount(), names=names),
        match=f"^{FILE}: {told}: install rigproof again$",
    )


def test_the_page_has_every_number() -> None:
    page = limits_page.PAGE.read_text(encoding="utf-8")
    assert page == limits_page.current(page), "run `make measurements`"
    for kind in ("low", "high", "figure"):
        found = list(limits_page.rows(kind))
        assert found
        assert all(f"| {' | '.join(row)} |\n" in page for row in found)
