"""Can a program in CUDA be compiled here, and does it compute what it should?"""

from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("saxpy.cu")


@pytest.mark.costs(60, slack=60)
@pytest.mark.measures("site_cuda_wrong", "site_cuda_seconds")
def test_saxpy(check, program, tmp_path, settings):
    """A program in CUDA is compiled by nvcc, runs on a GPU, and computes every element right.

    The program compares each of its elements with the exact result, and prints how many differ and
    how long the kernel took.
    """
    nvcc = program.find("nvcc", "nvidia-cuda-toolkit")
    binary = tmp_path / "saxpy"
    program(nvcc, "-O2", f"-arch={settings['arch']}", "-o", binary, SOURCE, seconds=100)
    lines = program(binary, seconds=30).stdout.split("\n")
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if found["elements"] != "16777216":
        raise RuntimeError(f"it computed {found['elements']} elements, not 16777216")
    check("site_cuda_wrong", int(found["wrong"]))
    check("site_cuda_seconds", float(found["seconds"]))
