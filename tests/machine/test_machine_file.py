from __future__ import annotations

import re
import tempfile
import tomllib
from pathlib import Path

import msgspec
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import examples

from acceptance import resources
from acceptance.core.finding import Waiver
from acceptance.core.message import UserError
from acceptance.core.parts import Gpu
from acceptance.machine import machine_file
from acceptance.machine.machine_file import DeclaredDisk, Machine, key_error

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


LIMIT = '[[limit]]\nmeasurement = "heat"\nunit = "degC"\nbasis = "b"\nhigh = 90\n'
SKIP = '[[waiver]]\nskip = "kernel_log"\nreason = "known"\n'
PAIR = "gpus = 2\n[[gpu_pair]]\nbetween = [0, 1]\np2p = true\n"
WAIVER = '[[waiver]]\nmeasurement = "heat"\ncomponent = "gpu0"\nreason = "known"\nworst = 95\n'


def refused(folder: Path, content: bytes) -> str:
    file = folder / "box.toml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        machine_file.read(file)
    sentence = str(caught.value)
    assert sentence.startswith(f"{file}")
    assert len(sentence.splitlines()) == 1
    assert "None" not in sentence
    return sentence.removeprefix(f"{file}")


@each(
    "text, line, told",
    [
        # wrong types
        ('gpus = "3"', 3, "gpus must be a whole number, not text in quotes"),
        ("gpus = 1.5", 3, "gpus must be a whole number, not 1.5"),
        ("[psu]\nwatts = nan", 4, "psu.watts must be a whole number, not nan"),
        (
            "[[gpu]]\n[[gpu]]\ncount = -inf",
            5,
            "gpu (number 2).count must be a whole number, not -inf",
        ),
        ("gpus = true", 3, "gpus must be a whole number, not true or false"),
        ("description = [1]", 3, "description must be text in quotes, not a list"),
        ("[cpu]\nmodel = 1979-05-27", 4, "cpu.model must be text in quotes, not a date"),
        ("cpu = 3", 3, "cpu must be a table, not a whole number"),
        ("[[cpu]]\ncores = 3", 3, "cpu must be a table, not a list"),
        ("[gpu]\ncount = 3", 3, "gpu must be a list, not a table"),
        ("disk = [\n  3,\n]", 4, r"disk (number 1) must be a table, not a whole number"),
        (
            LIMIT + LIMIT.replace("90", '"90"').replace("heat", "cold"),
            12,
            "limit (number 2).high must be a number, not text",
        ),
        # out of range
        ("gpus = -1", 3, "gpus must be at least 0"),
        (
            "gpus = 65",
            3,
            "65 GPUs are declared, and a machine has at most 32 (NVIDIA's driver): correct it",
        ),
        (
            "[[gpu]]\ncount = 40\n[[gpu]]\ncount = 40",
            3,
            "80 GPUs are declared, and a machine has at most 32",
        ),
        ("[[gpu]]\ncount = 0", 4, "gpu (number 1).count must be at least 1"),
        ("[[gpu]]\ncount = 100000", 4, "gpu (number 1).count must be at most 64"),
        ("[cpu]\n\ncores = 0", 5, "cpu.cores must be at least 1"),
        ("cpu.cores = -4", 3, "cpu.cores must be at least 1"),
        ("cpu = { sockets = 1, cores = -4 }", 3, "cpu.cores must be at least 1"),
        ("[memory]\ntotal_gib = 10000000000", 4, "memory.total_gib must be at most 1e+09"),
        ("[memory]\ntest_share = 1", 4, "memory.test_share must be at most 0.95"),
        ("[memory]\ntest_share = 0", 4, "memory.test_share must be more than 0"),
        ("[memory]\ntest_share = nan", 4, "memory.test_share must be more than 0"),
        (
            '[memory]\n[[memory.dimm]]\nslot = "A"\n[[memory.dimm]]\nslot = "B"\nsize_gib = -1',
            8,
            "memory.dimm (number 2).size_gib",
        ),
        (
            'memory.dimm = [\n  { slot = "A" },\n  { slot = "B",\tsize_gib = -1 },\n]',
            5,
            "memory.dimm (number 2).size_gib",
        ),
        # forms of their own
        ("[[gpu]]\nlink_width = 3", 4, "gpu (number 1).link_width must be 1, 2, 4, 8 or 16"),
        ("[[gpu]]\nlink_gen = 7", 4, "gpu (number 1).link_gen must be 1, 2, 3, 4, 5 or 6"),
        (
            '[[gpu]]\npci_id = "10DE:2684"',
            4,
            'pci_id must be vendor and device as `lspci -n` prints them, such as "10de:2684"',
        ),
        (
            '[[gpu]]\naddress = "00000000:65:00.0"',
            4,
            "address must be a PCI address as `lspci -D` prints it",
        ),
        ("[[gpu]]\nnvlink_links = -1", 4, "gpu (number 1).nvlink_links must be at least 0"),
        ("[[gpu]]\nnvlink_links = 145", 4, "gpu (number 1).nvlink_links must be at most 144"),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [0]",
            5,
            "gpu_pair (number 1).between must be the numbers of two GPUs, such as [0, 1]",
        ),
        (
            'gpus = 2\n[[gpu_pair]]\nbetween = [0, "1"]',
            5,
            "gpu_pair (number 1).between (number 2) must be a whole number, not text",
        ),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [0, -1]\np2p = true",
            5,
            "gpu_pair (number 1).between (number 2) must be at least 0",
        ),
        (
            "gpus = 64\n[[gpu_pair]]\nbetween = [0, 64]\np2p = true",
            5,
            "gpu_pair (number 1).between (number 2) must be at most 63",
        ),
        (
            'gpus = 2\n[[gpu_pair]]\nbetween = [0, 1]\npath = "NV"',
            6,
            "gpu_pair (number 1).path must be what `nvidia-smi topo -m` prints",
        ),
        ('gpus = 2\n[[gpu_pair]]\nbetween = [0, 1]\npath = "NV0"', 6, 'such as "NV12"'),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [0, 1]\np2p = 1",
            6,
            "gpu_pair (number 1).p2p must be true or false, not a whole number",
        ),
        # unknown and missing keys
        (
            "gpu_count = 3",
            3,
            "gpu_count is no key that rigproof knows: correct its spelling or remove it",
        ),
        ('"a b\\nc" = 3', 3, r'"a b\nc" is no key'),
        ("[cpu]\nmodell = 3", 4, "cpu.modell is no key"),
        ("cpu.modell = 3", 3, "cpu.modell is no key"),
        ("[cpu.cache]\nl3 = 3", 3, "cpu.cache is no key"),
        (LIMIT + "[limit.more]\nx = 1", 8, "limit (number 1).more is no key"),
        ("# [cpu]\n[colour]\nred = 1", 4, "colour is no key"),
        ('[system]\nboard = """\n[cpu]\ncores = 3"""\nbios = "1"', 7, "system.bios is no key"),
        (SKIP + WAIVER + "wurst = 3", 11, "waiver (number 2).wurst is no key"),
        # the key that is meant
        ("gpu = 2", 3, "gpu must be a list, not a whole number: did you mean gpus? [[gpu]] begins"),
        ('gpu = "RTX 4090"', 3, "gpu must be a list, not text in quotes: begin a table with [[gpu"),
        ("[gpu]\nmodel = 'x'", 3, "gpu must be a list, not a table: write [[gpu]], not [gpu]"),
        ("gpu.model = 'x'", 3, "gpu must be a list, not a table: write [[gpu]], not [gpu]"),
        ("[memory.dimm]\nslot = 'A'", 3, "write [[memory.dimm]], not [memory.dimm]"),
        ("[[memory]]\ndimms = 2", 3, "memory must be a table, not a list: write [memory], not [["),
        (
            "memory = 64",
            3,
            "memory must be a table, not a whole number: begin a table with [memory]",
        ),
        ("disk = ['x']", 3, "disk (number 1) must be a table, not text in quotes: begin a table "),
        (
            "[gpus]\nmodel = 'x'",
            3,
            "gpus must be a whole number, not a table: did you mean [[gpu]]?",
        ),
        (
            "[[gpus]]\nmodel = 'x'",
            3,
            "gpus must be a whole number, not a list: did you mean [[gpu]]?",
        ),
        ("[cpu.model]\nx = 1", 3, "cpu.model must be text in quotes, not a table"),
        ("[memori]\ndimms = 2", 3, "memori is no key that rigproof knows: did you mean [memory]?"),
        ("[Memory]\ndimms = 2", 3, "Memory is no key that rigproof knows: did you mean [memory]?"),
        (
            "[[memory.dim]]\nslot = 'A'",
            3,
            "memory.dim is no key that rigproof knows: did you mean [[",
        ),
        ("[disks]\nmodel = 'x'", 3, "disks is no key that rigproof knows: did you mean [[disk]]?"),
        ("[[gpu-pair]]\nbetween = [0, 1]", 3, "did you mean [[gpu_pair]]?"),
        ("[[net]]\nname = 'x'", 3, "net is no key that rigproof knows: did you mean [[network]]?"),
        ("[[gpu]]\nLink-Width = 8", 4, "did you mean link_width?"),
        ("cores = 16", 3, "cores is no key that rigproof knows: did you mean cores in [cpu]?"),
        ("[[gpu]]\nwatts = 1", 4, "did you mean watts in [psu] or in [cpu]?"),
        ("[order]\ngpus = 2", 4, "did you mean gpus before the first table or in [[network]]?"),
        (
            "memory.dimms.x = 3",
            3,
            "memory.dimms must be a whole number, not a table: did you mean [[",
        ),
        (
            LIMIT.replace("degC", "degc"),
            5,
            "unit 'degc' is none that rigproof knows: did you mean d",
        ),
        (LIMIT + 'component = "disc:sda"', 8, "'disc:sda' is no component: did you mean disk:sda?"),
        (LIMIT + 'component = "rack:1"', 8, "'rack:1' is no component: name one such as gpu0"),
        (LIMIT.replace('basis = "b"\n', ""), 3, "limit (number 1).basis is missing: add it"),
        ("[[disk]]\ncount = 1", 3, "disk (number 1).model is missing"),
        (SKIP.replace('reason = "known"', ""), 3, "waiver (number 1).reason is missing"),
        ('[system]\nboard = ""', 4, "system.board is empty: fill it in or remove it"),
        # limits
        (
            LIMIT + LIMIT.replace("degC", "C").replace("heat", "cold"),
            10,
            "limit (number 2) for cold: unit 'C' is none that rigproof knows: correct it (one of",
        ),
        (
            LIMIT.replace("90", "nan"),
            7,
            "limit (number 1) for heat: high is nan: a limit must be a finite number",
        ),
        (LIMIT.replace("90", "-inf"), 7, "high is -inf"),
        (
            LIMIT.replace("degC", "GB/s") + "low = 0",
            8,
            "low is 0, and nothing measured in GB/s is ever below 0",
        ),
        (
            LIMIT.replace("degC", "ratio") + "warn_low = -0.5",
            8,
            "warn_low is -0.5, and nothing measured in ratio is",
        ),
        (LIMIT + "warn_low = nan", 8, "warn_low is nan"),
        (
            LIMIT.replace('"b"', '"  "'),
            6,
            "basis is empty: say in one sentence where the limit comes from",
        ),
        (LIMIT.replace('"b"', '""'), 6, "limit (number 1).basis is empty"),
        (LIMIT.replace("high", "warn_high"), 3, "a limit needs low, high, or both"),
        (LIMIT + "low = 91", 3, "bounds are out of order"),
        (
            LIMIT + LIMIT,
            8,
            "limit (number 2) for heat never holds, because limit (number 1) goes before it",
        ),
        (LIMIT + LIMIT + 'component = "gpu0"', 8, "limit (number 2) for heat never holds"),
        # waivers
        (WAIVER.replace("known", " "), 3, "waiver (number 1): reason is empty: say why"),
        (WAIVER.replace("known", ""), 6, "waiver (number 1).reason is empty"),
        (
            SKIP + WAIVER.replace("worst = 95\n", ""),
            6,
            "waiver (number 2): a waiver without a bound would excuse anything: add worst",
        ),
        (WAIVER.replace('component = "gpu0"\n', ""), 3, "waiver (number 1): add component"),
        (WAIVER + 'skip = "kernel_log"', 3, "give either measurement (with worst) or skip"),
        ('[[waiver]]\nreason = "known"', 3, "give either measurement (with worst) or skip"),
        (SKIP + "worst = 3", 3, "a skip has no value, so worst means nothing here: remove it"),
        (
            SKIP.replace("kernel_log", "*"),
            3,
            "a pattern would excuse whatever could not be done: name one check",
        ),
        (WAIVER.replace("95", "nan"), 3, "worst is nan: it must be a finite number"),
        (WAIVER.replace("95", "inf"), 3, "worst is inf"),
        # components
        *(
            (
                LIMIT + f'component = "{name}"',
                8,
                f"limit (number 1).component: '{name}' is no component: did you mean {near}?",
            )
            for name, near in (
                ("core99", "core:99"),
                ("core:03", "core:3"),
                ("GPU 7", "gpu7"),
                ("socket:1", "socket1"),
                ("gpu", "gpus"),
                ("Memory", "memory"),
            )
        ),
        (LIMIT + 'component = ""', 8, "'' is no component: name one such as gpu0, gpu0->gpu1,"),
        (LIMIT + 'component = "0000:01:00.0"', 8, "'0000:01:00.0' is no component: name one"),
        (LIMIT + 'component = "gpu0->gpu-1"', 8, "'gpu-1' is no component: did you mean gpu1?"),
        (
            SKIP + WAIVER.replace("gpu0", "core99"),
            8,
            "waiver (number 2).component: 'core99' is no component: did you mean core:99?",
        ),
        (WAIVER.replace("gpu0", "foo"), 5, "'foo' is no component: name one such as gpu0"),
        (
            SKIP + 'component = "core:0->"',
            6,
            "waiver (number 1).component: '' is no end of a path: it needs one name: correct it",
        ),
        # contradictions
        (
            '[[memory.dimm]]\nslot = "A"\n[[memory.dimm]]\nslot = "A"',
            5,
            "memory.dimm (number 2) names A again: name each once",
        ),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [1, 1]\np2p = true",
            5,
            "gpu_pair (number 1) names GPU 1 twice: name two",
        ),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [0, 2]\np2p = true",
            5,
            "names GPU 2, but the declared GPUs are numbered from 0 to 1",
        ),
        (
            "gpus = 0\n[[gpu_pair]]\nbetween = [0, 1]\np2p = true",
            5,
            "names GPU 1, but the declared GPUs are none: correct it",
        ),
        (
            "[[gpu_pair]]\nbetween = [0, 1]\np2p = true",
            4,
            "names GPUs, and the file does not say how many there are: add gpus",
        ),
        (
            "gpus = 2\n[[gpu_pair]]\nbetween = [0, 1]",
            4,
            "gpu_pair (number 1) declares nothing: add path, p2p or write_gbs",
        ),
        (
            PAIR + "[[gpu_pair]]\nbetween = [1, 0]\np2p = true",
            8,
            "gpu_pair (number 2) names GPUs 0 and 1 again: name each pair once",
        ),
        (
            '[[network]]\nname = "eth0"\n[[network]]\nname = "eth0"',
            5,
            "network (number 2) names eth0 again",
        ),
        (
            'gpus = 2\n[[network]]\nname = "eth0"\ngpus = [0, 2]',
            6,
            "network (number 1).gpus names GPU 2, but the declared GPUs are numbered from 0 to 1",
        ),
        (
            'gpus = 0\n[[network]]\nname = "eth0"\ngpus = [0]',
            6,
            "network (number 1).gpus names GPU 0, but the declared GPUs are none: correct it",
        ),
        (
            '[[network]]\nname = "eth0"\ngpus = [0]',
            5,
            "names GPUs, and the file does not say how many there are: add gpus",
        ),
        (
            '[[gpu]]\naddress = "0000:01:00.0"\n[[gpu]]\n[[gpu]]\naddress = "0000:01:00.0"',
            6,
            "gpu (number 3) names 0000:01:00.0",
        ),
        (
            '[[gpu]]\naddress = "0000:01:00.0"\ncount = 2',
            5,
            "gpu (number 1) has one address, so its count cannot be 2",
        ),
        (
            '[[disk]]\nmodel = "x"\nserial = "1"\ncount = 2',
            6,
            "disk (number 1) has one serial, so its count cannot be 2",
        ),
        (
            '[[scratch]]\npath = "/data"\n[[scratch]]\npath = "data"',
            6,
            "scratch (number 2).path is 'data', which is no absolute path: give one such as",
        ),
        ('[[scratch]]\npath = "~/x"', 4, "scratch (number 1).path is '~/x', which is no absolute"),
        ('[[scratch]]\npath = "/a\\u0000b"', 4, "scratch (number 1).path is '/a\\x00b'"),
        ('[[scratch]]\npath = "/data/../etc"', 4, "scratch (number 1).path leads up by '..'"),
        (
            '[[scratch]]\npath = "/data"\n[[scratch]]\npath = "//data/./"',
            5,
            "scratch (number 2) names /data again: name each once",
        ),
        ('[[scratch]]\npath = ""', 4, "scratch (number 1).path is empty"),
        ("[[scratch]]\nkeep = true", 3, "scratch (number 1).path is missing"),
        ('[[scratch]]\npath = "/d"\nwrite_gib = 0', 5, "write_gib must be at least 1"),
        ('[[scratch]]\npath = "/d"\nkeep = 1', 5, "keep must be true or false"),
        ('[[scratch]]\npath = "/d"\nallow = "tmpfs"', 5, "allow must be a list"),
        ('[[scratch]]\npath = "/d"\nsize = 1', 5, "size is no key that rigproof knows"),
        ("gpus = 3\n[[gpu]]\ncount = 2", 3, "gpus is 3 but the gpu tables list 2: make them agree"),
        ("gpus = 0\n[[gpu]]", 3, "gpus is 0 but the gpu tables list 1"),
        ("[memory]\ndimms = 12\nchannels = 3", 5, "a channel takes at most 3 of the 12 modules"),
        (
            '[memory]\ntotal_gib = 8\n[[memory.dimm]]\nslot = "A"\nsize_gib = 16',
            4,
            "memory.total_gib is 8, and the modules have 16 GiB",
        ),
        (
            '[memory]\ndimms = 1\n[[memory.dimm]]\nslot = "A"\n[[memory.dimm]]\nslot = "B"',
            4,
            "memory.dimms is 1 but there are 2",
        ),
        # TOML itself
        (
            "gpus = \nx = 1",
            3,
            "is not valid TOML (Invalid value, column 8): correct it there, or before",
        ),
        ("gpus = 1\ngpus = 2", 4, ": gpus is given twice, first in line 3: keep one of them"),
        ("[cpu]\ncores = 2\n[memory]\n[cpu]", 6, ": cpu is given twice, first in line 3"),
        (LIMIT + "high = 91", 8, ": limit (number 1).high is given twice, first in line 7"),
        # numbers that no computer holds
        (
            LIMIT.replace("90", "1e400"),
            7,
            ": limit (number 1).high is 1e400: no number above 1.8e308 is read: correct it",
        ),
        (WAIVER.replace("95", "-1E400"), 7, ": waiver (number 1).worst is -1E400: no number"),
        ("[cpu]\ncores = 1e999", 4, ": cpu.cores is 1e999: no number"),
        ("[memory]\ntest_share = " + "9" * 400, 4, "memory.test_share is too large: no number"),
        ("gpus = 0x" + "f" * 5000, 3, ": gpus is too large: no number above 1.8e308 is read"),
        (LIMIT.replace("90", "inf"), 7, "high is inf: a limit must be a finite number"),
        ('[cpu]\nmodel = """abc', 4, "is not valid TOML"),
        ("gpus 3", 3, "is not valid TOML"),
    ],
)
def test_each_fault_is_told_with_its_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    sentence = refused(tmp_path, (HEAD + text).encode())
    assert told in sentence
    assert sentence.startswith(f", line {line}: ")


@each(
    "content, told",
    [
        (b'name = "box"\n', ": schema is missing: add schema = 1"),
        (b"", ": is empty, and would declare nothing: draft one under another name with `rigproof"),
        (b"\n# gpus = 2\n", ": holds nothing but comments, and would declare nothing: draft one"),
        (
            b"\n\nschema = 2\nnew_key = 1\n",
            ", line 3: schema 2 is newer than this rigproof reads (1): install a newer",
        ),
        (b'schema = 0\nname = "x"\n', ", line 1: schema must be 1"),
        (b'schema = true\nname = "x"\n', ", line 1: schema must be 1"),
        (b'schema = "1"\nname = "x"\n', ", line 1: schema must be 1"),
        (b"schema = 1\n", ": name is missing: add it"),
        (b'schema = 1\nname = ""\n', ", line 2: name is empty"),
        (
            HEAD.encode() + b'description = "caf\xe9"\n',
            ", line 3: is not UTF-8 text (byte 42): save it as UTF-8",
        ),
        (HEAD.encode("utf-16"), ", line 1: is not UTF-8 text"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, ": is nested too deeply"),
        (b"\ngpus = " + b"9" * 5000, ", line 2: a number of more than 4300 digits: correct it"),
        (b'schema = 1\nname = "\x00"', ", line 2: is not valid TOML"),
    ],
)
def test_files_that_are_wrong_as_a_whole(tmp_path: Path, content: bytes, told: str) -> None:
    assert refused(tmp_path, content).startswith(told)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for file, why in (
        (tmp_path / "none.toml", "No such file or directory"),
        (tmp_path, "it is a folder, not a file"),
    ):
        with pytest.raises(UserError) as caught:
            machine_file.read(file)
        told = f"{file}: cannot be read ({why}): give the path of a machine file with --machine"
        assert str(caught.value) == told


keys = st.sampled_from(
    [
        "schema",
        "name",
        "gpus",
        "cpu",
        "cores",
        "memory",
        "dimm",
        "slot",
        "gpu",
        "limit",
        "unit",
        "x",
        '"x y"',
    ]
)
scalars = st.sampled_from(
    [
        "1",
        "-1",
        "1.5",
        "nan",
        '"text"',
        '""',
        "true",
        "1979-05-27",
        "'l'",
        '"""\n[cpu]\n"""',
        "1e400",
        "9" * 30,
    ]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]")
        | st.lists(st.tuples(keys, inner), max_size=2).map(
            lambda pairs: f"{{{', '.join(f'{k} = {v}' for k, v in pairs)}}}"
        )
    ),
    max_leaves=4,
)
dotted = st.lists(keys, min_size=1, max_size=3).map(".".join)
lines = st.one_of(
    dotted.map("[{}]".format),
    dotted.map("[[{}]]".format),
    st.tuples(dotted, values).map(lambda pair: f"{pair[0]} = {pair[1]}"),
)


def holds(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "box.toml"
        file.write_text(text, encoding="utf-8", errors="replace")
        told = None
        try:
            machine_file.read(file)
        except UserError as error:
            told = str(error)
        assert told is None or re.fullmatch(rf"{re.escape(str(file))}(, line \d+)?: \S.*", told)


@settings(max_examples=examples(150))
@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    holds(text)


@settings(max_examples=examples(250))
@given(st.lists(lines, max_size=6), st.booleans())
def test_no_toml_raises_anything_else(text: list[str], headed: bool) -> None:
    holds((HEAD if headed else "") + "\n".join(text))


def test_a_component_that_may_be_there_is_no_fault(tmp_path: Path) -> None:
    names = ("gpu7", "core:99", "gpu0->gpu1", "disk:sda", "dimm:A1", "machine", "gp[us]*", "foo?")
    text = "".join(WAIVER.replace("gpu0", name) for name in names)
    (tmp_path / "box.toml").write_text(HEAD + text + LIMIT + 'component = "gpu7"\n')
    assert len(machine_file.read(tmp_path / "box.toml").waiver) == len(names)


def test_the_last_gpu_of_the_largest_machine_has_a_number(tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_text(
        f"{HEAD}gpus = 64\n[[gpu_pair]]\nbetween = [0, 63]\np2p = true\n"
    )
    assert machine_file.read(tmp_path / "box.toml").gpu_pair[0].between == (0, 63)


def test_what_does_not_fit_the_checks_is_told_with_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "box.toml"
    file.write_text(
        '\ufeffschema = 1\n\n[[waiver]]\nskip = "cpo"\nreason = "r"\n', encoding="utf-8"
    )
    error = key_error(
        file, ["waiver", 0, "skip"], "a waiver names the check cpo, and there is none"
    )
    assert str(error) == (
        f"{file}, line 4: waiver (number 1).skip: a waiver names the check cpo, and there is none"
    )
