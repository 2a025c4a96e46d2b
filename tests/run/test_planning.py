from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import secrets
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from machine_tree import NO_DMI, Programs, Tree, completed

from acceptance import resources
from acceptance.core.collection import PlanError
from acceptance.expect import gpu_limits
from acceptance.expect.limit_book import LimitBook
from acceptance.journal import provenance
from acceptance.machine.gpu_selection import SelectionError
from acceptance.machine.inventory import Dimm
from acceptance.machine.machine_file import DeclaredDimm, DeclaredMemory, Machine, MachineFileError
from acceptance.observe.inventory import observe
from acceptance.observe.sysfs import SysfsError
from acceptance.process import orphans
from acceptance.run import planning
from acceptance.run import profile as run_profile
from acceptance.run.planning import PreparationError, PreparedRun
from acceptance.run.profile import Profile, ProfileError
from acceptance.session import context
from acceptance.station.options import Options

GIB = 1 << 30
PYTHON = (sys.executable, "-ISc")
CPU_ONLY = resources.locate("machines") / "cpu-only.toml"


@pytest.fixture(scope="module")
def collected() -> context.Answer:
    """Every check there is, as the product's own session collects it."""
    return planning.collect(Path("/"))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Four cores and 64 GiB."""
    tree = Tree(tmp_path / "root")
    tree.cpus([(core, core + 4) for core in range(4)])
    tree.memory(64)
    return tree


@pytest.fixture
def prepare(
    tree: Tree, tmp_path: Path, collected: context.Answer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., PreparedRun]:
    """Prepares a run on the tree's machine; `declared` is the text of a machine file."""
    programs = Programs(nvml=completed("", "no library", 1), dmidecode=completed(*NO_DMI))
    monkeypatch.setattr(planning, "observe", partial(observe, run=programs, dmidecode="dmidecode"))
    monkeypatch.setattr(
        planning, "start_collection", lambda _root: contextlib.nullcontext(lambda: collected)
    )

    def prepared(declared: str | None = None, **options: object) -> PreparedRun:
        file = None
        if declared is not None:
            file = tmp_path / "box.toml"
            file.write_text(f'schema = 1\nname = "box"\n{declared}')
        return planning.prepare(Options(machine_file=file, root=tree.root, **options))  # type: ignore[arg-type]

    return prepared


def due(prepared: PreparedRun, measurement: str) -> list[str]:
    return [
        one.component
        for check in prepared.plan.checks
        for one in check.due
        if one.measurement == measurement
    ]


def test_the_products_own_checks_are_collected(collected: context.Answer) -> None:
    assert collected.digest == provenance.package_digest()
    ids = [check.id for check in collected.checks]
    assert {"gpu.present", "cpu.stress_ng", "cpu.gemm[f64]", "cpu.cpuburn", "inventory.cpu"} <= set(
        ids
    )
    assert len(set(ids)) == len(ids)


def test_two_gpus_and_no_machine_file(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2)
    made = prepare(profile="smoke")
    assert (made.machine, made.plan.inventory_declared, made.plan.scope) == (None, False, "full")
    assert due(made, "gpu_answers") == ["gpu0", "gpu1"]
    assert (made.plan.gaps, made.plan.gpus) == ((), ("gpu0", "gpu1"))
    assert due(made, "cpu_cores") == []  # nothing declares how many there should be
    assert (
        made.profile_summary == run_profile.read(resources.locate("profiles.toml"))["smoke"].summary
    )


def test_a_machine_without_gpus(prepare: Callable[..., PreparedRun]) -> None:
    for declared in (None, "gpus = 0", "gpus = 2"):
        made = prepare(declared, profile="smoke")
        (check,) = [check for check in made.plan.checks if check.id == "gpu.present"]
        count = next(one for one in check.due if one.measurement == "gpu_count")
        assert (check.gate, count.limit is not None) == (True, True)
        wanted = {None: 1.0, "gpus = 0": 0.0, "gpus = 2": 2.0}[declared]
        assert count.limit is not None
        assert count.limit.low == wanted
        assert due(made, "gpu_answers") == (["gpu0", "gpu1"] if wanted == 2.0 else [])


def test_more_gpus_declared_than_seen(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    tree.gpu(1)
    tree.gpu(2)
    made = prepare('gpus = 3\n[[gpu]]\ncount = 3\npci_id = "10de:2684"\n')
    assert due(made, "gpu_answers") == ["gpu0", "gpu1", "gpu2"]
    assert due(made, "gpu_pci_id_differs") == ["gpu0", "gpu1", "gpu2"]
    assert due(made, "gpu_burn_errors_float") == ["gpu0", "gpu1", "gpu2"]
    assert made.plan.gaps == ()


def test_ecc_that_is_off_is_a_gap(
    prepare: Callable[..., PreparedRun], tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.gpu(1)
    monkeypatch.setattr(
        gpu_limits, "gaps", lambda _, names: [f"{name}: ECC is off" for name in names]
    )
    assert prepare(profile="smoke").plan.gaps == ("gpu0: ECC is off",)


def test_some_of_the_gpus(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    for bus in (1, 2, 3):
        tree.gpu(bus)
    made = prepare(gpus=("2", "gpu0"))
    assert (made.plan.gpus, made.plan.scope, made.plan.gaps) == (("gpu0", "gpu2"), "partial", ())
    for measurement in ("gpu_answers", "gpu_burn_errors_float", "copy_h2d"):
        assert due(made, measurement) == ["gpu0", "gpu2"]
    assert due(made, "p2p_gain") == ["gpu0->gpu2", "gpu2->gpu0"]
    assert prepare(gpus=("0", "1", "2")).plan.scope == "partial", (
        "whoever names GPUs asks for a part"
    )
    with pytest.raises(
        SelectionError, match="--gpus 3: there is no gpu3: this machine has gpu0 to gpu2"
    ):
        prepare(gpus=("3",))
    declared = prepare("gpu = [{count = 4}]", gpus=("3",))
    assert due(declared, "gpu_answers") == ["gpu3"]


def test_the_limits_of_the_gpus_are_in_the_plan(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    made = prepare(profile="smoke")
    (link,) = [
        one
        for check in made.plan.checks
        for one in check.due
        if one.measurement == "gpu_link_width"
    ]
    assert link.limit is not None
    assert (link.limit.low, link.origin) == (16, "derived from card and slot")
    own = prepare(
        'gpu = [{}]\n[[limit]]\nmeasurement = "gpu_link_width"\nunit = "count"\nlow = '
        '8\nbasis = "riser"\n'
    )
    (link,) = [
        one for check in own.plan.checks for one in check.due if one.measurement == "gpu_link_width"
    ]
    assert link.limit is not None
    assert link.limit.low == 8, "the machine file's own goes first"


def test_what_the_machine_file_declares_is_due(prepare: Callable[..., PreparedRun]) -> None:
    made = prepare(
        '[cpu]\ncores = 4\n[memory]\ntotal_gib = 64\n[[memory.dimm]]\nslot = "A1"\nrated_mts '
        "= 5600\n"
    )
    assert due(made, "cpu_cores") == ["cpu"]
    assert due(made, "memory_total") == ["memory"]
    assert due(made, "dimm_rated_speed") == ["dimm:A1"]
    assert made.plan.inventory_declared
    (limit,) = [
        one.limit
        for check in made.plan.checks
        for one in check.due
        if one.measurement == "cpu_cores"
    ]
    assert limit is not None
    assert "box.toml declares cpu.cores = 4" in limit.basis


def test_cpuburn_is_driven_when_it_is_asked_for(prepare: Callable[..., PreparedRun]) -> None:
    assert "cpu.cpuburn" not in [check.id for check in prepare("").plan.checks]
    made = prepare('[cpu]\ncpuburn = "burnP6"\n')
    assert due(made, "cpuburn_failures") == ["cpu"]


def test_what_is_not_offered_is_not_tested(prepare: Callable[..., PreparedRun], tree: Tree) -> None:
    made = prepare("")
    *offers, memory = made.plan.not_tested
    assert [line.split(":")[0] for line in offers] == [
        "processor temperature",
        "processor throttling",
        "disk health",
    ]
    assert re.fullmatch(r"RAM beyond the \d+\.\d of \d+\.\d GiB that the memory test fills", memory)
    assert due(made, "cpu_temperature") == []
    tree.files("sys/class/hwmon/hwmon0", name="k10temp", temp1_input=40_000)
    made = prepare("")
    assert due(made, "cpu_temperature") == ["cpu"]
    assert len(made.plan.not_tested) == 3


@pytest.mark.parametrize(
    ("free_gib", "profile", "gap"),
    [(20, "accept", True), (20, "smoke", False), (400, "accept", False)],
)
def test_memory_that_is_taken_is_a_gap(free_gib: int, profile: str, gap: bool) -> None:
    chosen = run_profile.choose(run_profile.read(resources.locate("profiles.toml")), profile)
    seen = SimpleNamespace(
        memory=SimpleNamespace(total_bytes=512 << 30, available_bytes=free_gib << 30)
    )
    filled = planning.memory_gib(None, chosen, seen)  # type: ignore[arg-type]
    told = planning.memory_gap(filled, None, chosen, seen)  # type: ignore[arg-type]
    assert told == (
        [
            (
                "memory: only 16.0 of 512.0 GiB can be filled: end what holds the rest (`free "
                "-h`), or hugepages"
            )
        ]
        if gap
        else []
    )


def test_the_burn_is_stretched(prepare: Callable[..., PreparedRun]) -> None:
    short, long = prepare(profile="smoke"), prepare(profile="smoke", burn_s=600.0)
    assert long.plan.loads_s == {**short.plan.loads_s, "burn": 600.0}
    assert long.plan.eta_s() == pytest.approx(
        short.plan.eta_s() - short.plan.loads_s["burn"] + 600.0
    )


def test_a_part_of_it(prepare: Callable[..., PreparedRun]) -> None:
    made = prepare(only=("cpu.gemm",))
    assert (made.plan.scope, {check.id for check in made.plan.checks}) == (
        "partial",
        {"cpu.gemm[f64]", "cpu.gemm[f32]"},
    )
    with pytest.raises(PlanError, match="--only nothing matches no check"):
        prepare(only=("nothing",))


def test_what_heats_comes_last_and_has_its_slack(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.gpu(1)
    loads = prepare().plan.share("load")
    burns = [f"burn.gpu_burn[{mode}]" for mode in ("float", "tensor", "double")]
    assert [check.id for check in loads][-4:] == [*burns, "together.burn"]
    assert [check.slack_s for check in loads[-4:]] == [150.0, 150.0, 150.0, 600.0]
    assert loads[0].gate
    names = [check.id for check in loads]
    assert names.index("compute.copies") < names.index("vram.patterns") < names.index(burns[0])


@pytest.mark.parametrize("name", ["smoke", "accept", "nightly", "soak"])
def test_a_plain_vm_in_every_profile(
    prepare: Callable[..., PreparedRun], tree: Tree, name: str
) -> None:
    made = planning.prepare(Options(machine_file=CPU_ONLY, profile=name, root=tree.root))
    assert made.plan.gaps == ()
    assert {check.session for check in made.plan.checks} == {"host-before", "load", "host-after"}
    assert made.plan.cannot_detect
    assert made.machine is not None
    assert made.plan.waivers == made.machine.waiver


def test_mistakes_are_told_before_anything_is_looked_at(
    prepare: Callable[..., PreparedRun], tree: Tree
) -> None:
    tree.write("proc/meminfo", "")  # looking would raise
    with pytest.raises(MachineFileError, match=r"box\.toml"):
        prepare("gpus = -1")
    with pytest.raises(ProfileError, match="there is no profile 'quick'"):
        prepare(profile="quick")


# --- how much RAM is filled ---

UNCAPPED = Profile("x", (), {})


@pytest.mark.parametrize(
    ("share", "cap", "expected"),
    [
        (None, None, 0.8 * (64 - 1 / 1024)),
        (0.5, None, 0.5 * (64 - 1 / 1024)),
        (None, 4.0, 4.0),
        (0.05, 4.0, 0.05 * (64 - 1 / 1024)),
    ],
)
def test_memory_to_fill(
    prepare: Callable[..., PreparedRun], share: float | None, cap: float | None, expected: float
) -> None:
    seen = prepare("").inventory
    declared = Machine(1, "box", memory=DeclaredMemory(test_share=share))
    chosen = Profile("x", (), {}, cap)
    assert planning.memory_gib(declared, chosen, seen) == pytest.approx(expected)
    if share is None:
        assert planning.memory_gib(None, chosen, seen) == pytest.approx(expected)


def test_memory_to_fill_where_the_kernel_does_not_say_what_is_free(
    prepare: Callable[..., PreparedRun],
) -> None:
    seen = prepare("").inventory
    unsaid = replace(seen, memory=replace(seen.memory, available_bytes=None))
    assert planning.memory_gib(None, UNCAPPED, unsaid) == pytest.approx(0.8 * 32)
    none = replace(seen, memory=replace(seen.memory, available_bytes=0))
    assert planning.memory_gib(None, UNCAPPED, none) == 0.0


# --- limits ---


def test_bandwidth_is_judged_where_the_rate_is_known(prepare: Callable[..., PreparedRun]) -> None:
    module = Dimm("A1", 32 * GIB, "DDR5", 5600, 5200, None, None, None, 64, 64, None)
    seen = prepare("").inventory
    known = replace(seen, memory=replace(seen.memory, dimms=(module,), dimms_unread=None))

    def floor(made: Machine, inventory: object) -> float | None:
        book: LimitBook = planning.book(made, "box.toml", inventory, ())  # type: ignore[arg-type]
        held = book.find("memory_copy", "memory")
        return held.limit.low if held and held.limit else None

    two = Machine(1, "box", memory=DeclaredMemory(channels=2))
    assert floor(two, seen) is None
    assert floor(two, known) == pytest.approx(0.5 * 5200 * 8 * 2 / 1000)
    assert floor(Machine(1, "box"), known) is None
    # What the machine file says goes before what was found; a module named without its rate says
    # nothing.
    named = DeclaredMemory(
        channels=2, dimm=(DeclaredDimm("A1", rated_mts=4800), DeclaredDimm("B1"))
    )
    assert floor(Machine(1, "box", memory=named), known) == pytest.approx(0.5 * 4800 * 8 * 2 / 1000)
    unsaid = DeclaredMemory(channels=2, dimm=(DeclaredDimm("A1"),))
    assert floor(Machine(1, "box", memory=unsaid), known) == pytest.approx(
        0.5 * 5200 * 8 * 2 / 1000
    )


def test_the_machine_files_own_limit_goes_first(prepare: Callable[..., PreparedRun]) -> None:
    text = (
        '[[limit]]\nmeasurement = "cpu_gemm_f64"\nunit = "GFLOP/s"\nlow = 300\nbasis = "its twin"\n'
    )
    made = prepare(text)
    (found,) = [
        one for check in made.plan.checks for one in check.due if one.measurement == "cpu_gemm_f64"
    ]
    assert found.origin == "override in box.toml"
    assert found.limit is not None
    assert found.limit.basis == "its twin"
    (default,) = [
        one
        for check in prepare().plan.checks
        for one in check.due
        if one.measurement == "cpu_gemm_f64"
    ]
    assert (default.limit, default.origin) == (None, "class default")


# --- collection that fails ---


@pytest.fixture
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No list of checks is there from an earlier start."""
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))


collects = pytest.mark.usefixtures("nothing_kept")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def assert_full(temporary: object, why: str) -> None:
    with pytest.raises(PreparationError) as caught:
        planning.collect(Path("/"))
    assert str(caught.value) == (
        f"no temporary file can be written in {temporary} ({why}): "
        "free some space, or set TMPDIR to a folder that has some"
    )


@collects
def test_a_full_temporary_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "context.json")

    monkeypatch.setattr(context, "write", full)
    assert_full(temporary, "No space left on device")


@collects
def test_a_temporary_folder_that_fills_up(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session fails over it in words of pytest's own."""
    monkeypatch.setattr(context, "argv", lambda _: [*PYTHON, "raise SystemExit('INTERNALERROR>')"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (planning.ROOM - 1, hard))
    try:
        assert_full(temporary, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@collects
def test_no_temporary_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    assert_full("any folder", "No usable temporary directory found in ['/nowhere']")


@collects
def test_checks_that_cannot_be_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, told in (
        (
            "raise SystemExit('no module named x')",
            r"could not be collected \(ended with exit code 1 .*\): no module named x",
        ),
        ("pass", r"could not be collected \(ended with exit code 0 .*\): install it again"),
    ):
        monkeypatch.setattr(context, "argv", lambda _, code=code: [*PYTHON, code])
        with pytest.raises(PreparationError, match=told):
            planning.collect(Path("/"))


@collects
def test_collecting_does_not_outlive_what_it_was_begun_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = secrets.token_hex(8)
    monkeypatch.setenv("RIGPROOF_RUN", run_id)
    monkeypatch.setattr(context, "argv", lambda _: ["sleep", "600"])

    def beside() -> None:
        with planning.start_collection(Path("/")):
            assert orphans.find(run_id)
            raise SysfsError("no CPU is shown")

    with pytest.raises(SysfsError):
        beside()
    assert not orphans.find(run_id)


@collects
@pytest.mark.parametrize("answer", ["{}", '{"digest": "x", "checks": [{"id": 1}]}', "\xff"])
def test_an_answer_that_is_none(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    program = f"open('answer.json', 'wb').write({answer.encode('latin-1')!r})"
    monkeypatch.setattr(context, "argv", lambda _: [*PYTHON, program])
    with pytest.raises(PreparationError, match="checks are not marked as they should be"):
        planning.collect(Path("/"))


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            '[[waiver]]\nskip = "gpu"\nreason = "r"\n[[waiver]]\nreason = "r"\nskip = "cpo"\n',
            r"8: waiver \(number 2\)\.skip: a waiver names the check cpo",
        ),
        (
            '[[waiver]]\nmeasurement = "heat"\ncomponent = "cpu"\nworst = 1\nreason = "r"\n',
            r"4: waiver \(number 1\)\.measurement: a waiver names heat",
        ),
        (
            (
                '[[waiver]]\nmeasurement = "stress_ng_failures"\ncomponent = "cpu"\nworst = '
                '1\nreason = "r"\n'
            ),
            r"4: .*\.measurement: stress_ng_failures cannot be waived",
        ),
        (
            '[[limit]]\nmeasurement = "heat"\nunit = "degC"\nhigh = 1\nbasis = "b"\n',
            r"4: limit \(number 1\)\.measurement: a limit for heat, which no check measures",
        ),
        (
            '[[limit]]\nmeasurement = "memory_copy"\nunit = "GiB"\nlow = 1\nbasis = "b"\n',
            r"5: limit \(number 1\)\.unit: the limit for memory_copy is in GiB",
        ),
        (
            (
                '[[limit]]\nmeasurement = "stress_ng_failures"\nunit = "count"\nhigh = 9\nbasis '
                '= "b"\n'
            ),
            r"4: .*\.measurement: stress_ng_failures takes no limit of the machine's own",
        ),
    ],
)
def test_what_does_not_fit_the_checks_is_told_with_its_line(
    prepare: Callable[..., PreparedRun], declared: str, told: str
) -> None:
    with pytest.raises(MachineFileError, match=rf"box\.toml, line {told}"):
        prepare(declared)
