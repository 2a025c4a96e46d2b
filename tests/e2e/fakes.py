"""Programs that stand in for stress-ng and stressapptest, as shell scripts, each with one fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executable import executable
from replay import host

STRESS_NG = host.printed("stress-ng", ["--timeout", "1s", "--cpu", "0"])
STRESS_NG_FAILING = STRESS_NG.replace(
    "stress-ng: metrc: [4543] stressor",
    (
        "stress-ng: fail:  [4544] cpu: float80 error detected, failed calculation "
        "checksum\nstress-ng: metrc: [4543] stressor"
    ),
)
STRESSAPPTEST = host.printed("stressapptest", ["-s", "1", "-M", "4096", "-m", "2", "-W"])
STRESSAPPTEST_FAILING = STRESSAPPTEST.replace(
    "PASS - please verify no corrected errors", "FAIL - test discovered HW problems"
)

# Fault -> the script; TEXT and FAILING are files that hold what the tool would have printed.
SCRIPTS: Mapping[str, str] = {
    "healthy": "sleep 1; cat TEXT",
    "hangs": "head -n 2 TEXT; sleep 900",
    "failing text, exit 0": "sleep 1; cat FAILING",
    "leaves a daemon": (
        "(setsid sh -c 'sleep 900 >/dev/null 2>&1 </dev/null &') ; sleep 1; cat TEXT"
    ),
}


def write(folder: Path, tool: str, fault: str) -> Path:
    """Put the tool with this fault into the folder."""
    texts = {
        "stress-ng": (STRESS_NG, STRESS_NG_FAILING),
        "stressapptest": (STRESSAPPTEST, STRESSAPPTEST_FAILING),
    }
    script = SCRIPTS[fault]
    for name, text in zip(("TEXT", "FAILING"), texts[tool], strict=True):
        file = folder / f"{tool}.{name}"
        file.write_text(text, encoding="utf-8")
        script = script.replace(name, f"'{file}'")
    return program(folder, tool, script)


def program(folder: Path, name: str, script: str) -> Path:
    """Put a shell script of this name into the folder."""
    return executable(folder / name, f"#!/bin/sh\n{script}\n")


def dmidecode(folder: Path, slots: list[str]) -> Path:
    """A dmidecode that lists a DDR5 module of 32 GiB in each of the slots."""
    handles = [
        f"""\
Handle 0x{0x1100 + index:04X}, DMI type 17, 92 bytes
Memory Device
\tArray Handle: 0x1000
\tTotal Width: 64 bits
\tData Width: 64 bits
\tSize: 32 GB
\tForm Factor: DIMM
\tLocator: {slot}
\tBank Locator: BANK {index}
\tType: DDR5
\tSpeed: 5600 MT/s
\tManufacturer: Maker
\tSerial Number: 0000{index}
\tPart Number: PART-5600
\tConfigured Memory Speed: 5600 MT/s
"""
        for index, slot in enumerate(slots)
    ]
    array = f"""\
Handle 0x1000, DMI type 16, 23 bytes
Physical Memory Array
\tLocation: System Board Or Motherboard
\tUse: System Memory
\tError Correction Type: None
\tMaximum Capacity: 192 GB
\tNumber Of Devices: {len(slots)}
"""
    text = folder / "dmidecode.TEXT"
    text.write_text(
        "# dmidecode 3.4\nSMBIOS 3.5.0 present.\n\n" + "\n".join([array, *handles]),
        encoding="utf-8",
    )
    return program(folder, "dmidecode", f"cat '{text}'")
