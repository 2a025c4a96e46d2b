from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from executable import executable


@pytest.fixture(scope="module")
def prove() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "containers" / "prove.py"
    spec = importlib.util.spec_from_file_location("containers_prove", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_what_a_program_lacks_is_read_from_ldd(prove: ModuleType) -> None:
    text = (
        "./x: /lib/libc.so.6: version `GLIBC_2.43' not found (required by ./x)\n"
        "\tlinux-vdso.so.1 (0x0)\n\tlibcuda.so.1 => not found\n\tlibcuda.so.1 => not "
        "found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"
    )
    assert prove.missing(text) == [
        "./x: /lib/libc.so.6: version `GLIBC_2.43' not found (required by ./x)",
        "libcuda.so.1",
    ]
    assert prove.missing("\tstatically linked\n") == []


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program, and an `ldd` that prints what lies beside it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, text in {
        "ldd": '#!/bin/sh\ncat "$(dirname "$0")/ldd.txt"\n',
        "tool": (
            '#!/bin/sh\n[ "$1" = --help ] && { echo; echo "  Usage: tool $LD_LIBRARY_PATH"; '
            "exit "
            "1; }\necho nothing\n"
        ),
    }.items():
        executable(tmp_path / name, text)
    (tmp_path / "ldd.txt").write_text(
        "\tlibcuda.so.1 => not found\n\tlibnvidia-ml.so.1 => not found\n"
    )
    return tmp_path


def test_a_program_that_lacks_the_driver_only_and_prints_its_line_is_proved(
    prove: ModuleType, program: Path
) -> None:
    proof = prove.Proof("tool", ("tool", "--help"), "Usage: ", "tool", (0, 1))
    assert prove.prove(proof, Path("/stubs/lib")) == "Usage: tool /stubs/lib"


def test_a_program_that_lacks_anything_else_is_not(prove: ModuleType, program: Path) -> None:
    (program / "ldd.txt").write_text(
        "\tlibcuda.so.1 => not found\n\tlibcublas.so.12 => not found\n"
    )
    with pytest.raises(prove.NotProved, match=r"tool lacks libcublas\.so\.12$"):
        prove.prove(
            prove.Proof("tool", ("tool", "--help"), "Usage: ", "tool", (0, 1)), Path("/stubs")
        )


@pytest.mark.parametrize(("argv", "codes"), [(("tool",), (0,)), (("tool", "--help"), (0,))])
def test_a_program_that_prints_or_ends_otherwise_is_not(
    prove: ModuleType, program: Path, argv: tuple[str, ...], codes: tuple[int, ...]
) -> None:
    with pytest.raises(prove.NotProved, match="tool does not run: it ended with exit code"):
        prove.prove(prove.Proof("tool", argv, "Usage: ", None, codes), Path("/stubs"))


def test_every_pin_comes_with_what_was_used(prove: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "1").write_text("sid\tnvbandwidth\t0.9\t0.10\n")
    (tmp_path / "2").write_text("ubuntu:26.04\tpython3\t\t3.14\n")
    text = (
        "# x\nimage base a:1\nsid nvbandwidth 0.9\ndebian:13 python3 3.13\npypi torch "
        "2.10.0\npypi hatchling 1\n"
    )
    assert prove.pins(text, tmp_path, {"torch": "2.10.0"}) == [
        {"place": "sid", "name": "nvbandwidth", "pinned": "0.9", "used": "0.10"},
        {"place": "ubuntu:26.04", "name": "python3", "pinned": None, "used": "3.14"},
        {"place": "pypi", "name": "torch", "pinned": "2.10.0", "used": "2.10.0"},
    ]
    with pytest.raises(
        prove.NotProved, match=r"gpu-burn is pinned for trixie in pins\.txt and nothing took it"
    ):
        prove.pins(text + "trixie gpu-burn 1\n", tmp_path, {"torch": "2.10.0"})


@pytest.mark.parametrize("works", [True, False])
def test_the_record_is_written_only_when_all_is_proved(
    prove: ModuleType,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    works: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ("tool", "--help") if works else ("tool",)
    monkeypatch.setattr(
        prove, "proofs", lambda _python: [prove.Proof("tool", argv, "Usage: ", "tool", (0, 1))]
    )
    (program / "records").mkdir()
    (program / "pins.txt").write_text("")
    monkeypatch.setattr(prove, "RECORDS", program / "records")
    target = program / "image.json"
    monkeypatch.setattr(
        sys,
        "argv",
        ["prove", "--pins", str(program / "pins.txt"), "--stubs", "/s", "--write", str(target)],
    )
    assert prove.main() == (0 if works else 1)
    assert target.exists() is works
    if works:
        assert set(json.loads(target.read_text())) == {"base", "pins", "python", "proofs"}
    else:
        assert capsys.readouterr().err.startswith("rigproof: tool does not run")
