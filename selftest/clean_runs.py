"""The clean runs: whole machines, disks and network cards without a fault."""

from __future__ import annotations

import itertools
import tomllib

import fake_driver
import msgspec

from selftest import fault
from selftest.fault import Fault, Named, NetworkCard, NvmeDrive, Scratch, WrongDisk

# What needs no torch, also in the container. Whole profiles, with every check and all loads
# replayed, are played in place by the end-to-end tests (tests/e2e/test_e2e_profiles.py).
CHECKS = "gpu,link.[!c]*,burn,watch,kernel_log"


def healthy() -> tuple[str, ...]:
    """The described machines that a right harness finds healthy, by the index of fixtures/nvml."""
    listed = tomllib.loads((fake_driver.DESCRIPTIONS / "INDEX.toml").read_text(encoding="utf-8"))[
        "machine"
    ]
    return tuple(
        one["path"].removesuffix(".json") for one in listed if one["expect"].startswith("healthy")
    )


def every_clean_run() -> tuple[Named, ...]:
    """Each clean run once: every healthy machine at both stations, and the parts."""
    return (*runs(2 * len(healthy())), *parts())


def runs(count: int) -> tuple[Named, ...]:
    """So many clean runs: each healthy machine in turn, first in a container, where its only
    stain is the named image, then in place; and so again.
    """
    names = healthy()
    found = []
    for number, name in enumerate(itertools.islice(itertools.cycle(names), count)):
        docker = number // len(names) % 2 == 0
        clean = Fault(
            "nothing",
            (),
            3 if docker else 0,
            machine=name,
            only=CHECKS,
            burn=2.0,
            profile="accept",
            station="docker" if docker else "host",
        )
        found.append(Named("harness", f"clean-{number + 1}-{name}", clean))
    return tuple(found)


_SCRATCH = """\
schema = 1
name = "self-test"
gpus = 0
[[scratch]]
path = "SCRATCH"
write_gib = 1
allow = ["overlay", "tmpfs"]
"""


def parts() -> tuple[Named, ...]:
    """Clean runs of network cards, and of the storage checks: files written and read back, a drive
    with a sheet whose link has two lanes of the first generation, paced below what these carry, and
    a drive whose report is the same before and after.
    """
    link = "2.5 GT/s PCIe"
    # Its vendor states no random reads of this size, so how many the self-test's busy disk answers
    # is not judged.
    slow_slot = NvmeDrive(
        "KIOXIA KCM7XRUG3T84",
        size_bytes=3_840_755_982_336,
        speed=link,
        slot_max_speed=link,
        width=2,
        slot_max_width=2,
    )
    written = Fault(
        "nothing",
        (),
        0,
        only="storage.write,storage.verify,storage.write_random,storage.checkpoint",
        profile="soak",
        station="host",
        declared=_SCRATCH,
        scratch=Scratch(),
    )
    read = Fault(
        "nothing",
        (),
        0,
        only="storage.kept,storage.read,storage.link,storage.raid",
        profile="nightly",
        station="host",
        declared=_SCRATCH,
        scratch=Scratch(sealed_mib=64),
        nvme=slow_slot,
        wrong_disk=WrongDisk("pace", 430),
    )
    ports = (NetworkCard("ens7"), NetworkCard("ens8"), NetworkCard("mlx9_0/1"))
    cards = Fault("nothing", (), 0, only="network", station="host", cards=ports)
    return (
        Named("harness", "clean-disk-written", written),
        Named("harness", "clean-disk-read", read),
        Named("harness", "clean-disk-report", _reported()),
        Named("harness", "clean-network-cards", cards),
    )


def _reported() -> Fault:
    """The drive whose report changes in the middle of a run, with a report that stays as it is."""
    changing = next(
        one.fault
        for one in fault.read()
        if (one.family, one.name) == ("disk health", "media-errors-grow")
    )
    same = msgspec.structs.replace(changing.programs["smartctl"], script="cat TEXT")
    return msgspec.structs.replace(
        changing, what="nothing", expect=(), code=0, programs={"smartctl": same}
    )
