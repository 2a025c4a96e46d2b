from __future__ import annotations

from typing import Any

import gpu_machine
import pytest
from cases import each

from acceptance.core.message import UserError
from acceptance.core.parts import Gpu
from acceptance.machine import gpu_selection
from acceptance.machine.gpu_selection import Job
from acceptance.wording import words

UUIDS = ("GPU-a0000000-1", "GPU-a0000000-2", "GPU-b0000000-3", None)
FOUND = tuple(gpu_machine.gpu(index, uuid=uuid) for index, uuid in enumerate(UUIDS))
ALL = (Gpu(0), Gpu(1), Gpu(2), Gpu(3))


def test_cuda_counts_the_gpus_that_are_due_in_their_order() -> None:
    assert gpu_selection.environment(FOUND[1:3]) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "GPU-a0000000-2,GPU-b0000000-3",
    }
    assert gpu_selection.environment(()) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert gpu_selection.environment(FOUND[3:])["CUDA_VISIBLE_DEVICES"] == "", (
        "what is not known is hidden, not shown"
    )


@each("value", ["0", "", "GPU-1", "-1"])
def test_gpus_that_are_hidden_from_outside_are_refused(value: str) -> None:
    with pytest.raises(
        UserError,
        match=f"^CUDA_VISIBLE_DEVICES={value} hides GPUs from CUDA: unset it .*GPUS=0,1",
    ):
        gpu_selection.refuse_outside((), {"CUDA_VISIBLE_DEVICES": value})


@each(
    "asked, environ, told",
    [
        (
            ("0", "gpu2"),
            {"CUDA_VISIBLE_DEVICES": "1"},
            "CUDA_VISIBLE_DEVICES=1 is set and not used: --gpus 0,gpu2 says which GPUs are tested",
        ),
        (
            (),
            {"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7"},
            "CUDA_VISIBLE_DEVICES=1: these GPUs were given to Slurm job 7, and these are tested",
        ),
        ((), {"PATH": "/bin"}, None),
        (("0",), {"PATH": "/bin"}, None),
    ],
    told=["with a list of GPUs", "in a Slurm job", "not set", "not set, with a list of GPUs"],
)
def test_what_is_said_of_a_variable_that_hides_gpus(
    asked: tuple[str, ...], environ: dict[str, str], told: str | None
) -> None:
    found = gpu_selection.refuse_outside(asked, environ)
    assert (found and words.message(found)) == told


@each(
    "environ, threads, whole",
    [
        ({"SLURM_CPUS_ON_NODE": "8"}, 8, True),
        ({"SLURM_CPUS_ON_NODE": "4"}, 8, False),
        ({"SLURM_CPUS_ON_NODE": "8"}, None, False),
        ({"SLURM_CPUS_ON_NODE": "8(x2)"}, 8, False),
        ({"SLURM_CPUS_ON_NODE": "\u0668"}, 8, False),
        ({}, 8, False),
        ({"SLURM_CPUS_ON_NODE": "4", "RIGPROOF_EXCLUSIVE_JOB": "7"}, 8, True),
        ({"SLURM_CPUS_ON_NODE": "4", "RIGPROOF_EXCLUSIVE_JOB": "6"}, 8, False),
    ],
)
def test_whether_a_job_has_the_whole_node(
    environ: dict[str, str], threads: int | None, whole: bool
) -> None:
    assert gpu_selection.job({"SLURM_JOB_ID": "7", **environ}, threads) == Job("7", None, whole)
    assert gpu_selection.job({**environ, "SLURM_JOB_ID": ""}, threads) is None


@each(
    "visible, found, names",
    [
        (None, FOUND, ALL),
        ("0,2", FOUND, (Gpu(0), Gpu(2))),
        ("GPU-b0000000-3,0", FOUND, (Gpu(0), Gpu(2))),
        ("0,1,2", FOUND[:3], ALL[:3]),
        # Slurm hides the others from the job, whose own ones are 0 and 1.
        ("0,1", (FOUND[3], FOUND[1], FOUND[2]), (Gpu(1), Gpu(2))),
    ],
)
def test_the_gpus_of_a_job(
    visible: str | None, found: tuple[Any, ...], names: tuple[Gpu, ...]
) -> None:
    count = 3 if names == ALL[:3] else 4
    assert gpu_selection.names_of_job(Job("7", visible, True), found, count) == names


@each("visible", ["", "NoDevFiles", "-1"])
def test_a_job_without_gpus_on_a_machine_that_has_some(visible: str) -> None:
    job = Job("7", visible, True)
    with pytest.raises(UserError, match=r"^Slurm job 7 has .* no GPU: ask for GPUs with"):
        gpu_selection.names_of_job(job, FOUND, 4)
    assert gpu_selection.names_of_job(job, (), 0) == ()


@each("visible", ["3", "MIG-1", "GPU-a", "0,", "\u0663"])
def test_a_word_of_a_job_that_names_no_gpu(visible: str) -> None:
    with pytest.raises(UserError, match=r"name the GPUs with --gpus$"):
        gpu_selection.names_of_job(Job("7", visible, True), FOUND, 4)


@each(
    "asked, names",
    [
        ((), ALL),
        (("0",), (Gpu(0),)),
        (("2", "gpu0", "2"), (Gpu(0), Gpu(2))),  # in the machine's order, each once
        (("03",), (Gpu(3),)),
        (("GPU-b",), (Gpu(2),)),
        (("gpu-B0000000-3", "1"), (Gpu(1), Gpu(2))),
        (("GPU-a0000000-2",), (Gpu(1),)),
    ],
)
def test_gpus_by_index_and_uuid(asked: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert gpu_selection.names(asked, FOUND, 4) == names


def test_a_gpu_that_is_declared_and_not_there_can_be_asked_for() -> None:
    assert gpu_selection.names(("4",), FOUND, 5) == (Gpu(4),)
    assert gpu_selection.names((), FOUND, 5) == (*ALL, Gpu(4))


@each(
    "word, count, told",
    [
        ("4", 4, "--gpus 4: there is no gpu4: this machine has gpu0 to gpu3"),
        ("gpu1", 1, "--gpus gpu1: there is no gpu1: this machine has gpu0"),
        ("0", 0, "--gpus 0: there is no gpu0: this machine has no GPU"),
        (
            "GPU-a",
            4,
            (
                "--gpus GPU-a: more than one GPU begins so: gpu0 GPU-a0000000-1, gpu1 "
                "GPU-a0000000-2, gpu2 GPU-b"
            ),
        ),
        ("GPU-", 4, "--gpus GPU-: more than one GPU begins so: gpu0 GPU-a"),
        ("GPU-c", 4, "--gpus GPU-c: no GPU has this index or UUID: gpu0 GPU-a"),
        ("-1", 4, "--gpus -1: no GPU has this index or UUID: "),
        ("\u0663", 4, "no GPU has this index or UUID: "),  # a digit, and no ASCII one
        ("", 4, "--gpus : more than one GPU begins so: "),
    ],
)
def test_words_that_name_no_gpu(word: str, count: int, told: str) -> None:
    with pytest.raises(UserError) as caught:
        gpu_selection.names((word,), FOUND, count)
    assert told in str(caught.value)


def test_a_word_that_says_nothing_names_not_even_the_only_gpu() -> None:
    for word in ("", "GPU", "GPU-"):
        with pytest.raises(UserError, match="no GPU has this index or UUID: gpu0 GPU-a0000000-1"):
            gpu_selection.names((word,), FOUND[:1], 1)
    with pytest.raises(UserError, match="no GPU has this index or UUID: no GPU reports a UUID"):
        gpu_selection.names(("GPU-a",), FOUND[3:], 1)
