from __future__ import annotations

from pathlib import Path

from cases import each
from machine_tree import Tree
from refusal import raised

from acceptance.machine.inventory import Cache, CoreGroup
from acceptance.observe import cpu
from acceptance.observe.sysfs import SysfsError


def zone(tree: Tree, folder: str, name: str, **limits: str) -> None:
    """A zone of powercap with its constraints, in microwatts by name."""
    files = {"name": name}
    for number, (constraint, limit) in enumerate(limits.items()):
        files |= {f"constraint_{number}_name": constraint}
        files |= {f"constraint_{number}_power_limit_uw": limit}
    tree.files(f"sys/class/powercap/{folder}", **files)


def test_the_power_limit_is_that_of_every_package_for_long(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert cpu.power_limit_w(tree.root) is None
    zone(tree, "intel-rapl:0", "package-0", long_term="125000000", short_term="253000000")
    zone(tree, "intel-rapl:0:0", "core", long_term="999000000")
    zone(tree, "intel-rapl-mmio:0", "package-0", long_term="115000000")
    zone(tree, "intel-rapl:1", "package-1", peak_power="300000000", long_term="125000000")
    assert cpu.power_limit_w(tree.root) == 240.0
    zone(tree, "intel-rapl:1", "package-1", peak_power="0", long_term="4095875000")
    assert cpu.power_limit_w(tree.root) is None, "one of them is not limited"


def test_one_socket_with_two_threads_a_core(tree: Tree) -> None:
    cores = [(core, core + 16) for core in range(16)]
    tree.cpus(cores, model="AMD Ryzen 9 7950X  16-Core Processor")
    seen = cpu.read(tree.root)
    assert (seen.model, seen.vendor) == ("AMD Ryzen 9 7950X 16-Core Processor", "AuthenticAMD")
    assert (seen.sockets, seen.cores, seen.threads) == (1, 16, 32)
    assert seen.core_groups == (CoreGroup("all", tuple(cores)),)
    assert seen.caches == (Cache(1, "data", 32768, 16),)
    assert (seen.governor, seen.max_mhz, seen.virtualised) == ("performance", 5700.0, False)


TWO = (CoreGroup("socket0", ((0, 4), (1, 5))), CoreGroup("socket1", ((2, 6), (3, 7))))
ONE = (CoreGroup("socket0", ((0, 4), (1, 5), (2, 6), (3, 7))),)


@each(
    "nodes, groups",
    [
        (("0-1,4-5", "2-3,6-7"), TWO),
        (("0,4", "1,5", "2,6", "3,7"), TWO),  # nodes within a socket (NPS, sub-NUMA clusters)
        (("0-1,4-5", "2-3,6-7", ""), TWO),  # a node of memory alone
        (("0-7",), ONE),  # memory interleaved over the sockets by the firmware
        (("0-1,4-5", "2,6"), ONE),  # a core that no node names
        ((), ONE),
    ],
)
def test_cores_by_the_socket_whose_memory_is_their_own(
    tmp_path: Path, nodes: tuple[str, ...], groups: tuple[CoreGroup, ...]
) -> None:
    tree = Tree(tmp_path)
    tree.cpus([(core, core + 4) for core in range(4)], sockets=2)
    for number, listed in enumerate(nodes):
        tree.files(f"sys/devices/system/node/node{number}", cpulist=listed)
    assert cpu.read(tree.root).socket_cores == groups


@each(
    "cores, files, count, groups",
    [
        (
            [(0, 4), (1, 5), (2, 6), (3, 7)],
            {"system/cpu/online": "0-3\n"},
            (4, 4),
            (CoreGroup("all", ((0,), (1,), (2,), (3,))),),
        ),
        (
            [(0, 1), (2, 3), (4,), (5,), (6,), (7,), (8,)],
            {"cpu_core/cpus": "0-3\n", "cpu_atom/cpus": "4-7\n"},
            (7, 9),
            (
                CoreGroup("performance", ((0, 1), (2, 3))),
                CoreGroup("efficiency", ((4,), (5,), (6,), (7,))),
                CoreGroup("other", ((8,),)),
            ),
        ),
        (
            [(0, 1), (2, 3)],
            {"cpu_core/cpus": "0-3\n"},
            (2, 4),
            (CoreGroup("all", ((0, 1), (2, 3))),),
        ),
    ],
    told=[
        "SMT switched off in the system",
        "hybrid cores are kept apart",
        "a hybrid with its small cores switched off is of one kind",
    ],
)
def test_groups_of_cores(
    tmp_path: Path,
    cores: list[tuple[int, ...]],
    files: dict[str, str],
    count: tuple[int, int],
    groups: tuple[CoreGroup, ...],
) -> None:
    tree = Tree(tmp_path)
    tree.cpus(cores)
    for path, text in files.items():
        tree.write(f"sys/devices/{path}", text)
    seen = cpu.read(tmp_path)
    assert (seen.cores, seen.threads) == count
    assert seen.core_groups == groups


def test_caches_of_several_sizes_and_sharing(tree: Tree) -> None:
    tree.cpus([(0,), (1,)])
    for number in (0, 1):
        shared = f"sys/devices/system/cpu/cpu{number}/cache/index3"
        tree.files(shared, level=3, type="Unified", size="32M", shared_cpu_list="0-1")
        tree.files(
            f"sys/devices/system/cpu/cpu{number}/cache/index9",
            level=4,
            type="Unified",
            shared_cpu_list="0-1",
        )
    assert cpu.read(tree.root).caches == (
        Cache(1, "data", 32768, 2),
        Cache(3, "unified", 32 << 20, 1),
        Cache(4, "unified", None, 1),
    )
    tree.write("sys/devices/system/cpu/cpu0/cache/index0/size", "much\n")
    assert "not a cache size" in raised(SysfsError, cpu.read, tree.root)


def test_governors_that_differ_are_named(tree: Tree) -> None:
    tree.cpus([(0,), (1,)])
    tree.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")
    assert cpu.read(tree.root).governor == "mixed: performance, powersave"


def test_a_virtual_machine_without_frequency_or_topology(tree: Tree) -> None:
    tree.write(
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Virtual\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n",
    )
    seen = cpu.read(tree.root)
    assert (seen.sockets, seen.cores, seen.core_groups, seen.caches) == (None, None, (), ())
    assert (seen.threads, seen.governor, seen.max_mhz, seen.virtualised) == (2, None, None, True)


def test_arm_has_numbers_instead_of_names(tree: Tree) -> None:
    tree.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
    tree.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0\n")
    tree.write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1\n")
    seen = cpu.read(tree.root)
    assert (seen.model, seen.vendor) == ("Arm implementer 0x41 part 0xd4f", "0x41")
    assert (seen.cores, seen.sockets, seen.virtualised) == (1, None, None)


def test_no_cpuinfo_leaves_the_model_absent(tree: Tree) -> None:
    tree.write("sys/devices/system/cpu/online", "0\n")
    seen = cpu.read(tree.root)
    assert (seen.model, seen.vendor, seen.threads) == (None, None, 1)


def test_no_cpu_at_all_and_a_torn_topology_are_refused(tree: Tree) -> None:
    assert "names a CPU" in raised(SysfsError, cpu.read, tree.root)
    tree.cpus([(0,), (1,)])
    (tree.root / "sys/devices/system/cpu/cpu1/topology/core_cpus_list").unlink()
    assert "switched off just now" in raised(SysfsError, cpu.read, tree.root)


GRACE = """\
processor\t: {cpu}
BogoMIPS\t: 2000.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid sve sve2 bf16 i8mm
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd4f
CPU revision\t: 0

"""


def grace(tree: Tree) -> None:
    """Made up: two Grace processors of two cores each, and the GPUs' memory as nodes of no CPU."""
    tree.cpus([(0,), (1,), (2,), (3,)], sockets=2)
    tree.write("proc/cpuinfo", "".join(GRACE.format(cpu=cpu) for cpu in range(4)))
    for node, cpus in enumerate(("0-1", "2-3", "", "")):
        tree.write(f"sys/devices/system/node/node{node}/cpulist", f"{cpus}\n")


def test_two_grace_processors_beside_nodes_that_are_the_memory_of_gpus(tree: Tree) -> None:
    grace(tree)
    seen = cpu.read(tree.root)
    assert (seen.model, seen.vendor) == ("Arm implementer 0x41 part 0xd4f", "0x41")
    assert (seen.sockets, seen.cores, seen.threads, seen.virtualised) == (2, 4, 4, None)
    assert [(group.name, group.cores) for group in seen.socket_cores] == [
        ("socket0", ((0,), (1,))),
        ("socket1", ((2,), (3,))),
    ]


@each(
    "vendor, product, virtual",
    [
        ("QEMU", "KVM Virtual Machine", True),
        ("Microsoft Corporation", "Virtual Machine", True),
        ("VMware, Inc.", "VMware20,1", True),
        ("NVIDIA", "GH200 P5042", None),
        ("Amazon EC2", "g5g.metal", None),
        ("", "", None),
    ],
)
def test_arm_has_no_flag_so_firmware_may_name_a_virtual_machine(
    tree: Tree, vendor: str, product: str, virtual: bool | None
) -> None:
    grace(tree)
    tree.files("sys/class/dmi/id", sys_vendor=vendor, product_name=product)
    assert cpu.read(tree.root).virtualised is virtual
    tree.cpus([(0,)])  # a line of flags without that flag decides against the firmware's name
    assert cpu.read(tree.root).virtualised is False
