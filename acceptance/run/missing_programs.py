"""The programs that a plan needs and that are not installed here, each with how to get it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from acceptance.core.message import Listed, Message, Text, english
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan, PlannedCheck, matches_patterns
from acceptance.observe import dmi, smart
from acceptance.process import command
from acceptance.wording.errors import said

TORCH = "torch"  # a package of Python's, which the GPU loads import
WITH_TORCH = "rigproof[gpu]"  # what to install for it
# Each program with its package, None where the distribution has none, and the checks that run it.
_Programs = tuple[tuple[str, str | None, tuple[str, ...]], ...]
# They run on the host, whatever the station.
ON_HOST: _Programs = (
    (
        smart.PROGRAM,
        smart.PACKAGE,
        (
            "storage.smart_health",
            "storage.health",
            "storage.self_test_begun",
            "storage.self_test",
        ),
    ),
    (dmi.PROGRAM, dmi.PACKAGE, ("inventory.memory", "inventory.dimms")),
)
# They are loads, which the image has.
OF_LOADS: _Programs = (
    ("stress-ng", "stress-ng", ("cpu.stress_ng", "together.burn")),
    ("stressapptest", "stressapptest", ("memory.stressapptest", "together.burn")),
    (
        "fio",
        "fio",
        ("storage.write", "storage.verify", "storage.read", "storage.write_random"),
    ),
    ("gpu-burn", None, ("burn.gpu_burn",)),
    ("nvbandwidth", None, ("link.host_copies", "link.device_alone", "link.peer_copies")),
    ("deviceQuery", None, ("gpu.device_query",)),
    ("bandwidthTest", None, ("link.bandwidth_test",)),
    ("p2pBandwidthLatencyTest", None, ("link.p2p",)),
    (TORCH, None, ("compute", "vram", "together.burn", "link.collectives", "train", "power")),
)


def find(plan: Plan, *, in_place: bool) -> Iterator[Message]:
    """What is missing for this plan, each with the checks that need it.

    `in_place` says that its loads run without a container.
    """
    of_image: dict[str, tuple[str, ...]] = {}
    for program, package, checks in (*ON_HOST, *(OF_LOADS if in_place else ())):
        needed = tuple(
            check.id
            for check in plan.checks
            if matches_patterns(check.id, checks) and _runs(check, program)
        )
        why = _why_missing(program, package) if needed else None
        if why is not None and package is None:
            of_image[program] = needed
        elif why is not None:
            yield Message(
                english("needed_by", "{why} (needed by {checks})"),
                {"why": why, "checks": Listed(needed)},
            )
    if of_image:
        every = tuple(dict.fromkeys(check for needed in of_image.values() for check in needed))
        programs = Listed(tuple(of_image))
        told = Message(
            english(
                "programs_of_image",
                "not installed here: {programs}: the container has them (`sudo apt install "
                "docker.io`; in a checkout `sudo make engine`); without it put them on PATH; "
                "torch comes with `{install}`, installed in place of rigproof",
            ),
            {"programs": programs, "install": WITH_TORCH},
        )
        yield Message("needed_by", {"why": told, "checks": Listed(every)})


def _runs(check: PlannedCheck, program: str) -> bool:
    """Whether a check that may run a program does so for what is due from it."""
    if program == dmi.PROGRAM:
        return any(due.measurement.startswith("dimm_") for due in check.due)
    if program == TORCH:
        return any(isinstance(end, Gpu) for due in check.due for end in due.component.ends)
    return True


def _why_missing(program: str, package: str | None) -> Text | None:
    """That a program is missing, with how to get its package; None where it is here."""
    if program == TORCH:
        there = importlib.util.find_spec(TORCH) is not None
        return (
            None
            if there
            else Message(
                english("program_not_on_path", "{program} is not installed: put it on PATH"),
                {"program": program},
            )
        )
    try:
        command.find(program, package)
    except command.ProgramMissing as missing:
        return said(missing)
    return None
