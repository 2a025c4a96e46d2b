"""Described GPU machines through the container station: grant, loads inside, watch outside, JUnit.

The engine gives the container device nodes that do no harm, and of the driver's libraries the fake NVML; replayed tools are in a derived
image.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import box
import docker
import fakes
import pytest
from gpu_box import GPU_CHECKS, PROGRAMS, Document, Edit, GpuBox, install
from rig import Rig
from run_left import Run

from acceptance.image.record import ImageRef
from acceptance.judge.record import Event, ToolRan

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]

NODES = [*(f"nvidia{number}" for number in range(8)), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
TOOLS_INSIDE = Path("/opt/rigproof/tools/bin")
BURNS = [f"burn.gpu_burn[{mode}]" for mode in ("float", "tensor", "double")]


@pytest.fixture(scope="module", autouse=True)
def nodes() -> Iterator[None]:
    """What /dev/null is, under the names of GPUs: the engine looks for them in the machine's own /dev."""
    there = [name for name in NODES if Path("/dev", name).exists()]
    if there:
        pytest.skip(f"this machine has GPUs of its own (/dev/{there[0]}): their nodes are not replaced")
    made = []
    try:
        for name in NODES:
            os.mknod(f"/dev/{name}", 0o020666, os.makedev(1, 3))
            made.append(Path("/dev", name))
            made[-1].chmod(0o666)
        yield
    finally:
        for path in made:
            path.unlink()


class GpuStation:
    """Described machines for the container station, each with an image of its own for as long as it is used."""

    def __init__(self, rig: Rig, library: Path, built: ImageRef) -> None:
        self.rig, self.library, self.built = rig, library, built

    @contextmanager
    def described(
        self, name: str, *, edit: Edit | None = None, faults: Mapping[str, str] | None = None
    ) -> Iterator[GpuBox]:
        """Its box; `box.rig` asks for the image that holds the same machine."""
        found = GpuBox(self.rig, self.library, name, edit=edit)
        for tool in PROGRAMS:  # those of the host must not be what runs
            fakes.program(self.rig.fakes, tool, "exit 99")
        self._driver()
        context = self.rig.home / "image"
        install(context / "tools", "python3", faults or {}, inside=TOOLS_INSIDE)
        (context / "machine.json").write_bytes(found.path.read_bytes())
        steps = (
            f"COPY tools {TOOLS_INSIDE}",
            "COPY machine.json /opt/described/machine.json",
            "ENV RIGPROOF_FAKE_NVML=/opt/described/machine.json",
        )
        with box.derived(self.built, f"rigproof-test:gpus-{os.getpid()}", *steps, folder=context) as image:
            self.image = image
            yield found

    def _driver(self) -> None:
        """An ldconfig that knows the driver's two libraries: NVML, and a CUDA that nothing here loads."""
        (self.rig.home / "libcuda.so.1").write_bytes(b"")
        there = {
            "libcuda.so.1": self.rig.home / "libcuda.so.1",
            "libnvidia-ml.so.1": self.library / "libnvidia-ml.so.1",
        }
        word = {"x86_64": "x86-64", "aarch64": "AArch64"}[os.uname().machine]
        listing = "".join(f"\t{name} (libc6,{word}) => {path}\n" for name, path in there.items())
        (self.rig.home / "ldconfig.txt").write_text(listing, encoding="utf-8")
        fakes.program(self.rig.fakes, "ldconfig", f"cat '{self.rig.home}/ldconfig.txt'")

    def accept(self, found: GpuBox, *more: str, only: str = GPU_CHECKS, burn: int = 2) -> Run:
        """A run in the container, held against what is true of every such run."""
        run = found.accept("--station", "docker", "--image", self.image, *more, only=only, burn=burn)
        run.assert_agrees()
        told = run.verdict["provenance"]
        assert (told["gpu_grant"], told["image"]) == ("devices", f"{self.image} (named by --image)")
        return run


@pytest.fixture
def gpu_station(rig: Rig, library: Path, built: ImageRef) -> GpuStation:
    return GpuStation(rig, library, built)


def tools(run: Run) -> set[str]:
    """The tools that ran, each where the image has it."""
    found = {Path(body.argv[0]) for body in run.bodies(ToolRan)}
    assert {path.parent for path in found} <= {TOOLS_INSIDE}
    return {path.name for path in found}


def only_the_image(run: Run) -> None:
    """Nothing speaks against the machine, and all that keeps the run from passing is that its image was named."""
    assert run.texts("violations") == ""
    (line,) = run.texts("unjudged").splitlines()
    assert "which may hold anything: such a run never passes" in line
    assert run.verdict["verdict"] == "UNJUDGED"


def test_a_healthy_machine_through_the_container(gpu_station: GpuStation, client: docker.DockerClient) -> None:
    with gpu_station.described("2x3090ti-bridged") as found:
        run = gpu_station.accept(found)
    only_the_image(run)
    assert set(run.outcomes().values()) == {"pass"}
    assert tools(run) == set(PROGRAMS)
    assert {"gpu.granted", "link.peer_copies", "burn.gpu_burn[float]", "watch.sampled"} <= set(run.cases())
    assert box.containers(client, run.path.name) == []


def test_one_gpu_of_two_is_given_alone(gpu_station: GpuStation) -> None:
    with gpu_station.described("2x4090") as found:
        # NVML in the container shows what the description holds; a driver would show the node that was given.
        run = gpu_station.accept(found, "--gpus", "1", only="gpu,link.bandwidth_test")
    only_the_image(run)
    assert set(run.outcomes().values()) == {"pass"}


def test_a_dead_nvlink_and_every_burn_through_the_container(gpu_station: GpuStation) -> None:
    with gpu_station.described("8xh200-one-dead-link") as found:
        run = gpu_station.accept(found, "--profile", "accept")
    assert run.verdict["verdict"] == "FAIL"
    before, after = run.texts("violations").splitlines()
    assert before.startswith("link.nvlinks: nvlink_active on gpu5: measured 17")
    assert after.startswith("watch.nvlinks: nvlink_active on gpu5: measured 17")
    failed = {"link.nvlinks": "fail", "watch.nvlinks": "fail"}
    assert {name: outcome for name, outcome in run.outcomes().items() if outcome != "pass"} == failed
    assert set(BURNS) <= set(run.outcomes())


def test_a_gpu_lost_in_the_middle_through_the_container(gpu_station: GpuStation) -> None:
    def later(document: Document) -> None:
        document["timeline"][0]["after_s"] = 8.0

    with gpu_station.described("gpu-lost-mid-run", edit=later, faults={"gpu-burn": "dies"}) as found:
        run = gpu_station.accept(found, only="gpu.present,gpu.granted,burn,watch", burn=16)
    assert run.verdict["verdict"] == "FAIL"
    assert {(one.kind, one.code) for one in run.bodies(Event) if one.source == "nvml"} == {
        ("xid", 79),
        ("gpu-lost", "nvml"),
    }
    told = run.texts("violations")
    assert "burn.gpu_burn[float]: gpu-lost nvml on 0000:41:00.0: " in told
    assert "burn.gpu_burn[float]: gpu_burn_errors_float on gpu1: measured 1 " in told
    assert "on gpu0" not in told


def test_mig_starts_no_container(gpu_station: GpuStation) -> None:
    with gpu_station.described("mig-on") as found:
        run = found.accept("--station", "docker", "--image", gpu_station.image)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert "gpu1: MIG is on" in run.texts("unjudged")
    assert run.bodies(ToolRan) == []
    assert not (run.path / "journal-load.jsonl").exists()
    assert run.cases()["burn.gpu_burn[float]"].result


def test_faulty_through_the_container(gpu_station: GpuStation) -> None:
    with gpu_station.described("2x4090", faults={"gpu-burn": "is FAULTY", "deviceQuery": "is truncated"}) as found:
        run = gpu_station.accept(found)
    assert run.verdict["verdict"] == "FAIL"
    (line,) = run.texts("violations").splitlines()
    assert line.startswith("burn.gpu_burn[float]: gpu_burn_errors_float on gpu1: measured 1 ")
    assert run.outcomes()["gpu.device_query"] == "error"
    assert "the text is cut" in run.texts("unjudged")


def test_a_grant_without_a_node_says_what_to_do(gpu_station: GpuStation) -> None:
    with gpu_station.described("2x4090") as found:
        (found.root / "dev/nvidia1").unlink()
        os.mknod(found.root / "dev/nvidia1", 0o020000, os.makedev(0, 0))  # an overlay's whiteout
        run = found.accept("--station", "docker", "--image", gpu_station.image)
    assert (run.code, run.folder) == (3, None)
    assert "there is no device node for gpu1: run `nvidia-smi` as root" in run.err
