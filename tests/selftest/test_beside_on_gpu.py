"""What runs side by side on a GPU machine: the table of what moved. The runs need a GPU."""

from __future__ import annotations

from boxes import BOXES
from synthetic_machines import inventory, planned

from acceptance import resources
from acceptance.core.plan import GPU_LOAD, HOST_LOAD
from acceptance.history import noise
from selftest import beside_on_gpu
from selftest.beside_on_gpu import compared, figures


def verdict(rate: float | None, errors: float = 0.0) -> dict[str, object]:
    row = {"measurement": "gemm_bf16", "component": "gpu0", "unit": "TFLOP/s"}
    count = {"measurement": "gemm_bf16_miscompares", "component": "gpu0", "unit": "count"}
    told = row if rate is None else row | {"value": rate}
    return {"checks": [{"id": "compute.gemm", "measurements": [told, count | {"value": errors}]}]}


def table(alone: list[float], beside: list[float]) -> list[str]:
    book = noise.read(resources.locate("noise.toml"))
    found = [[figures(verdict(one)) for one in runs] for runs in (alone, beside)]
    return [one.row() for one in compared(found[0], found[1], book, virtual=False)]


def test_a_figure_that_moves_beyond_its_noise_is_told() -> None:
    (within,) = table([650.0, 652.0, 651.0], [648.0, 650.0, 649.0])
    assert "| 650 652 651 | 648 650 649 | TFLOP/s | -0.31 % |" in within
    assert within.endswith("| within |")
    for rates in ([500.0] * 3, [900.0] * 3, [float("nan")] * 3):
        (moved,) = table([650.0, 652.0, 651.0], rates)
        assert moved.endswith("| **moved** |")


def test_a_figure_that_a_run_lacks_has_moved() -> None:
    book = noise.read(resources.locate("noise.toml"))
    alone = [figures(verdict(650.0))] * 3
    assert alone[0].keys() == {("compute.gemm", "gemm_bf16", "gpu0", "TFLOP/s")}
    for beside in ([*alone[:2], figures(verdict(None))], [{}, {}, {}]):
        (one,) = compared(alone, beside, book, virtual=False)
        assert one.too_far


def test_the_checks_of_either_side_are_those_that_are_due() -> None:
    box = BOXES["2x4090.toml"]
    for profile, burns in (("accept", {"burn.gpu_burn[tensor]"}), ("nightly", set())):
        found = beside_on_gpu.sides(planned(box, inventory(box), name=profile))
        assert {one for one in found[GPU_LOAD] if one.startswith("burn.")} == burns
        assert {"compute.gemm_together", "vram.patterns"} <= set(found[GPU_LOAD])
        assert found[HOST_LOAD] == ("cpu.stress_ng", "memory.stressapptest")


def test_what_runs_on_several_gpus_at_once_also_runs_on_each_alone() -> None:
    two = BOXES["2x4090.toml"]
    found = beside_on_gpu.kinds(planned(two, inventory(two)))
    assert list(found) == ["both", "all-gpus"]
    assert list(found["both"]) == ["gpu-load", "host-load", "both"]
    assert set(found["all-gpus"]["all-gpus"][1].split(",")) == set(beside_on_gpu.EACH)
    alone = {kind: which[2:] for kind, which in found["all-gpus"].items()}
    assert alone == {"gpu0": ("--gpus", "gpu0"), "gpu1": ("--gpus", "gpu1"), "all-gpus": ()}
    assert {which[:2] for which in found["all-gpus"].values()} == {
        found["all-gpus"]["all-gpus"],
    }


def test_one_gpu_is_not_compared_with_itself() -> None:
    one = BOXES["1xh200.toml"]
    assert list(beside_on_gpu.kinds(planned(one, inventory(one)))) == ["both"]
