"""The parts of our GPU loads that need torch, tried in the image on tensors of the processor: no
GPU is needed for their arithmetic.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from acceptance.process.deadline import Deadline
from acceptance.station.image import build
from acceptance.station.image import engine as image_engine
from acceptance.wording import words

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
HERE = Path(__file__).resolve().parents[1] / "loads"
FOLDER = "/tried"


@each(
    "name",
    [
        "torch_gpu_gemm.py",
        "torch_burn.py",
        "torch_kernels.py",
        "torch_ranks.py",
        "torch_collective.py",
        "torch_train_layers.py",
        "torch_train_digest.py",
        "torch_train_parallel.py",
        "torch_train_step.py",
    ],
)
def test_torch_does_what_the_load_takes_it_to_do(name: str, tmp_path: Path) -> None:
    engine = image_engine.find()
    built = build.build(log_dir=tmp_path, say=print, deadline=Deadline.after(3000.0))
    grants = [
        "--rm",
        "--network",
        "none",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--tmpfs",
        "/tmp",
        "--user",
        "12345:12345",
    ]
    told = [
        "-c",
        "/dev/null",
        "--rootdir",
        FOLDER,
        "-p",
        "no:cacheprovider",
        "-q",
        f"{FOLDER}/{name}",
    ]
    argv = ["python", "-B", "-W", "error", "-m", "pytest", *told]
    done = engine.ask(
        "run", *grants, "--volume", f"{HERE}:{FOLDER}:ro", built.tag, *argv, seconds=2400.0
    )
    assert done.returncode == 0, words.message(done.describe()) + done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
