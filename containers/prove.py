"""The last step of the image's build: test every program in it, and write image.json.

A program passes if it misses no library but the driver's, starts, and prints what it should.
Without a driver it starts with stubs of those libraries, which are not part of the image.

Writes image.json: `{"base", "pins": [{"place", "name", "pinned", "used"}], "python": {NAME:
VERSION}, "proofs": {PROGRAM: LINE}}`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording import words

DRIVER = frozenset({"libcuda.so.1", "libnvidia-ml.so.1"})
RECORDS = Path("/opt/rigproof/pins")


class NotProved(Exception):
    """A program of the image does not work; the message says which, and how it fails."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One program: its command line, and the line that it must print. ldd
    checks `binary` (None: no ELF file).
    """

    name: str
    argv: tuple[str, ...]
    prints: str
    binary: str | None = None
    codes: tuple[int, ...] = (0,)


_COMPILE = """
from cuda.bindings import nvrtc
for arch in ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"):
    error, program = nvrtc.nvrtcCreateProgram(b"__global__ void one(int *x) { *x = 1; }", b"one.cu", 0, [], [])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, error
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={arch}".encode()])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, (arch, error)
    error, size = nvrtc.nvrtcGetCUBINSize(program)
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS and size > 0, (arch, error, size)
print("cubins from sm_70 to sm_120")
"""  # noqa: E501
_TORCH = """
import torch
a = torch.eye(64, dtype=torch.float64)
assert bool((a @ a == a).all())
print("torch", torch.__version__, "CUDA", torch.version.cuda)
"""
# A block written by its engine libaio: a file of this stage, which is not in the image.
_FIO = (
    "fio",
    "--name=proof",
    "--rw=write",
    "--ioengine=libaio",
    "--size=4096",
    "--filename=/tmp/fio-proof",
    "--output-format=json",
)


def proofs(python: str) -> list[Proof]:
    """Every program of the image.

    The samples also start without a driver, and say that there is none.
    """
    no_driver = (
        r"(driver version is insufficient|no CUDA-capable device|cudaGetDeviceCount returned)"
    )
    return [
        Proof("gpu-burn", ("gpu-burn", "-h"), r"Usage: ", "gpu-burn", (0, 1)),
        Proof("nvbandwidth", ("nvbandwidth", "--help"), r"nvbandwidth", "nvbandwidth"),
        Proof("deviceQuery", ("deviceQuery",), no_driver, "deviceQuery", (0, 1)),
        Proof("bandwidthTest", ("bandwidthTest", "--help"), r"Usage: ", "bandwidthTest"),
        Proof(
            "p2pBandwidthLatencyTest",
            ("p2pBandwidthLatencyTest",),
            no_driver,
            "p2pBandwidthLatencyTest",
            (0, 1),
        ),
        Proof("stress-ng", ("stress-ng", "--version"), r"stress-ng, version [\d.]+", "stress-ng"),
        Proof("stressapptest", ("stressapptest", "--help"), r"Usage: ", "stressapptest", (0, 1)),
        Proof("fio", _FIO, r'"fio version" : "fio-[\d.]+', "fio"),
        Proof("smartctl", ("smartctl", "--version"), r"smartctl [\d.]+", "smartctl"),
        Proof("dmidecode", ("dmidecode", "--version"), r"[\d.]+", "dmidecode"),
        Proof("lscpu", ("lscpu", "--version"), r"util-linux [\d.]+", "lscpu"),
        Proof("lsblk", ("lsblk", "--version"), r"util-linux [\d.]+", "lsblk"),
        Proof("nvrtc", (python, "-c", _COMPILE), r"cubins from sm_70 to sm_120"),
        Proof("torch", (python, "-c", _TORCH), r"torch [\d.]+\S* CUDA 12\.8"),
        Proof("rigproof", ("rigproof", "--version"), r"rigproof [\d.]+\S*"),
    ]


def missing(ldd: str) -> list[str]:
    """Missing libraries and missing versions of libraries, from the output of ldd."""
    lacks = []
    for line in ldd.splitlines():
        if found := re.fullmatch(r"\s*(\S+) => not found", line):
            lacks.append(found[1])
        elif "not found" in line:
            lacks.append(line.strip())
    return sorted(set(lacks))


def prove(proof: Proof, stubs: Path) -> str:
    """Start a program and return its expected line. Raises NotProved."""
    deadline = Deadline.after(120.0)
    if proof.binary is not None:
        looked = command.run(["ldd", command.find(proof.binary)], deadline=deadline)
        lacks = [name for name in missing(looked.stdout + looked.stderr) if name not in DRIVER]
        if lacks or looked.returncode != 0:
            raise NotProved(f"{proof.name} lacks {', '.join(lacks) or looked.last_lines(2)}")
    done = command.run(proof.argv, deadline=deadline, env={"LD_LIBRARY_PATH": str(stubs)})
    text = done.stdout + done.stderr
    line = next((line.strip() for line in text.splitlines() if re.search(proof.prints, line)), None)
    if line is None or done.returncode not in proof.codes:
        raise NotProved(
            f"{proof.name} does not run: it {words.message(done.describe())}, and its last lines "
            f"are:\n{done.last_lines()}"
        )
    return line


def pins(text: str, records: Path, installed: dict[str, str]) -> list[dict[str, str | None]]:
    """Pinned and used versions. Raises NotProved for an unused pin of the tools or of Python."""
    rows: list[dict[str, str | None]] = []
    for path in sorted(records.iterdir()):
        place, name, pinned, used = path.read_text(encoding="utf-8").rstrip("\n").split("\t")
        rows.append({"place": place, "name": name, "pinned": pinned or None, "used": used})
    known = {(row["place"], row["name"]) for row in rows}
    for line in text.splitlines():
        match line.partition("#")[0].split():
            case ["pypi", "torch" as name, version]:
                rows.append(
                    {"place": "pypi", "name": name, "pinned": version, "used": installed[name]}
                )
            case ["trixie" | "sid" as place, name, _] if (place, name) not in known:
                raise NotProved(f"{name} is pinned for {place} in pins.txt and nothing took it")
    return rows


def main() -> int:
    """Test the programs, write image.json, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pins", type=Path, required=True)
    parser.add_argument("--stubs", type=Path, required=True)
    parser.add_argument("--write", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        lines = {}
        for proof in proofs(sys.executable):
            lines[proof.name] = prove(proof, arguments.stubs)
            print(f"proved {proof.name}: {lines[proof.name]}", flush=True)
        installed = {found.name: found.version for found in importlib.metadata.distributions()}
        image = {
            "base": platform.freedesktop_os_release()["PRETTY_NAME"],
            "pins": pins(arguments.pins.read_text(encoding="utf-8"), RECORDS, installed),
            "python": {"python": platform.python_version(), **dict(sorted(installed.items()))},
            "proofs": lines,
        }
    except (NotProved, command.CommandError) as error:
        print(f"rigproof: {error}", file=sys.stderr)
        return 1
    arguments.write.write_text(json.dumps(image, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
