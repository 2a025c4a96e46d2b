"""How a container is given the GPUs, as tables: what the engine and the host
have, and what is asked for.
"""

from __future__ import annotations

import dataclasses

import gpu_machine
import pytest
from cases import each

from acceptance.machine.gpu import Gpu
from acceptance.station import container_args
from acceptance.station.container_args import DriverFiles, EngineFacts, Grant
from acceptance.wording.errors import WordedError


def gpu(number: int, uuid: str | None = "") -> Gpu:
    return gpu_machine.gpu(number, uuid=f"GPU-{number}-aaaa" if uuid == "" else uuid)


TWO = (gpu(0), gpu(1))
YAML_BY_INDEX = """\
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, create-symlinks, --link, "GPU-0-aaaa::/x"]
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
- name: '1'
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
- name: all
"""
YAML_BY_UUID = YAML_BY_INDEX.replace('"0"\n', "GPU-0-aaaa\n").replace("'1'", "GPU-1-aaaa")
JSON_BY_UUID = (
    '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"GPU-0-aaaa","containerEdits":{}},'
    '{"name":"GPU-1-aaaa"}]}'
)
JSON_BY_INDEX = JSON_BY_UUID.replace("GPU-0-aaaa", "0").replace("GPU-1-aaaa", "1")
PRETTY_JSON = """\
{
  "kind" : "nvidia.com/gpu",
  "devices" : [
    { "name" : "0", "containerEdits" : {} },
    {
      "name" : "1"
    }
  ]
}
"""
BY_UUID = ("nvidia.com/gpu=GPU-0-aaaa", "nvidia.com/gpu=GPU-1-aaaa")
BY_INDEX = ("nvidia.com/gpu=0", "nvidia.com/gpu=1")


@each(
    "specs, names",
    [
        ([YAML_BY_UUID], BY_UUID),
        ([YAML_BY_UUID.replace("\n", "\r\n")], BY_UUID),
        ([JSON_BY_UUID], BY_UUID),
        ([YAML_BY_INDEX], BY_INDEX),
        ([YAML_BY_INDEX.replace('"0"', "0  # the first")], BY_INDEX),
        ([JSON_BY_INDEX], BY_INDEX),
        ([PRETTY_JSON], BY_INDEX),
        ([YAML_BY_INDEX, JSON_BY_UUID], BY_UUID),
        (["kind: vendor.com/nic\ndevices:\n- name: x\n", PRETTY_JSON], BY_INDEX),
        (
            [YAML_BY_INDEX.replace('"0"', "GPU-0-aaaa")],
            ("nvidia.com/gpu=GPU-0-aaaa", "nvidia.com/gpu=1"),
        ),
    ],
)
def test_cdi_names(specs: list[str], names: tuple[str, ...]) -> None:
    assert container_args.cdi_names(TWO, specs) == names


@each(
    "specs",
    [
        [],
        [""],
        ["\0\0 rubbish {{{"],
        [YAML_BY_UUID.replace("GPU-1-aaaa", "GPU-7-aaaa")],
        [YAML_BY_INDEX.replace("'1'", "'10'")],
        [YAML_BY_INDEX.replace("- name: '1'", "# - name: '1'")],
        [YAML_BY_INDEX.replace("nvidia.com/gpu", "nvidia.com/gpu-vgpu")],
        [YAML_BY_INDEX.replace("kind: ", "# kind: ")],
        [JSON_BY_INDEX.replace("nvidia.com/gpu", "vendor.com/gpu")],
        [JSON_BY_INDEX.replace('"name":"1"', '"hookName":"1"')],
    ],
)
def test_a_specification_that_does_not_name_every_gpu_is_none(specs: list[str]) -> None:
    assert container_args.cdi_names(TWO, specs) is None


def test_a_gpu_that_nvml_does_not_know_has_no_cdi_name() -> None:
    assert (
        container_args.cdi_names((dataclasses.replace(gpu(0), device=None),), [YAML_BY_INDEX])
        is None
    )
    assert container_args.cdi_names((gpu(0, uuid=None),), [YAML_BY_INDEX]) == ("nvidia.com/gpu=0",)


NODES = frozenset(
    {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset"}
)
DRIVER = DriverFiles(
    nodes=NODES,
    node_of={"0000:01:00.0": "/dev/nvidia1", "0000:02:00.0": "/dev/nvidia0"},
    libraries={
        "libcuda.so.1": "/usr/lib/libcuda.so.570.86",
        "libnvidia-ml.so.1": "/usr/lib/libnvidia-ml.so.570.86",
        "libnvidia-gpucomp.so.570.86": "/usr/lib/libnvidia-gpucomp.so.570.86",
    },
)
RUNTIME = EngineFacts(frozenset({"runc", "nvidia"}))


def test_without_gpus_nothing_is_asked_for() -> None:
    assert container_args.choose((), RUNTIME, DRIVER) == Grant(
        "none", environment={"NVIDIA_VISIBLE_DEVICES": "void"}
    )


def test_cdi_goes_before_the_runtime() -> None:
    facts = EngineFacts(frozenset({"nvidia"}), (YAML_BY_UUID,))
    found = container_args.choose(TWO, facts, DriverFiles())
    assert (found.mode, found.cdi_devices, found.runtime, found.nodes) == ("cdi", BY_UUID, None, ())
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_the_runtime_is_given_uuids() -> None:
    found = container_args.choose(
        TWO, dataclasses.replace(RUNTIME, cdi_specs=("kind: nvidia.com/gpu\n",)), DRIVER
    )
    assert (found.mode, found.runtime, found.nodes, found.cdi_devices) == (
        "nvidia",
        "nvidia",
        (),
        (),
    )
    assert found.environment == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-0-aaaa,GPU-1-aaaa",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }


def test_device_nodes_are_the_last_way() -> None:
    for facts, due in (
        (EngineFacts(frozenset({"runc"})), TWO),
        (RUNTIME, (gpu(0, uuid=None), gpu(1))),
    ):
        found = container_args.choose(due, facts, DRIVER)
        assert found == Grant(
            "devices",
            nodes=("/dev/nvidia1", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"),
            files=(
                ("/usr/lib/libcuda.so.570.86", "/opt/host-driver/libcuda.so.1"),
                (
                    "/usr/lib/libnvidia-gpucomp.so.570.86",
                    "/opt/host-driver/libnvidia-gpucomp.so.570.86",
                ),
                ("/usr/lib/libnvidia-ml.so.570.86", "/opt/host-driver/libnvidia-ml.so.1"),
            ),
            environment={"NVIDIA_VISIBLE_DEVICES": "void", "LD_LIBRARY_PATH": "/opt/host-driver"},
        )


def test_nvidia_smi_and_the_tools_node_go_along_where_the_host_has_them() -> None:
    """gpu-burn crashes where there is no nvidia-smi: seen in a container that was given device
    nodes and libraries alone.
    """
    nodes = NODES | {"/dev/nvidia-uvm-tools"}
    driver = dataclasses.replace(DRIVER, smi="/usr/bin/nvidia-smi.570", nodes=nodes)
    found = container_args.by_nodes(TWO, driver)
    assert found.files[-1] == ("/usr/bin/nvidia-smi.570", "/usr/bin/nvidia-smi")
    assert found.nodes[-1] == "/dev/nvidia-uvm-tools"


@pytest.mark.parametrize(
    ("driver", "told"),
    [
        (DriverFiles(), ["there is no device node for gpu0, gpu1", "`nvidia-smi` as root"]),
        (
            dataclasses.replace(DRIVER, node_of={"0000:01:00.0": "/dev/nvidia1"}),
            ["no device node for gpu1"],
        ),
        (dataclasses.replace(DRIVER, nodes=NODES - {"/dev/nvidia1"}), ["no device node for gpu0:"]),
        (
            dataclasses.replace(DRIVER, nodes=NODES - {"/dev/nvidia-uvm"}),
            ["/dev/nvidia-uvm is missing", "nvidia-modprobe"],
        ),
        (
            dataclasses.replace(DRIVER, nodes=NODES - {"/dev/nvidia-uvm", "/dev/nvidiactl"}),
            ["/dev/nvidiactl, /dev/nvidia-uvm is missing"],
        ),
        (
            dataclasses.replace(DRIVER, libraries={"libcuda.so.1": "/x"}),
            ["library libnvidia-ml.so.1 is not", "install"],
        ),
        (
            dataclasses.replace(DRIVER, libraries={}),
            ["library libcuda.so.1, libnvidia-ml.so.1 is not"],
        ),
    ],
)
def test_what_is_missing_is_named_with_its_cure(driver: DriverFiles, told: list[str]) -> None:
    with pytest.raises(WordedError) as caught:
        container_args.choose(TWO, EngineFacts(), driver)
    for words in told:
        assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("soname", "ours"),
    [
        ("libcuda.so.1", True),
        ("libnvidia-gpucomp.so.580.159.04", True),
        ("libnvidia-glcore.so.580.159.04", False),
        ("libcudart.so.12", False),
        ("libcuda.so", False),
    ],
)
def test_the_drivers_libraries(soname: str, *, ours: bool) -> None:
    assert container_args.is_driver_library(soname) is ours
