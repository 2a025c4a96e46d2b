"""Comparisons to render: two runs of one machine with something of every kind, and two whose
every text is hostile.
"""

from __future__ import annotations

from dataclasses import replace

import journals
import samples

from acceptance import resources
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.parts import CPU, ITSELF, Component, Gpu, Named, Part
from acceptance.history import comparison, noise
from acceptance.history.comparison import ComparedRun, Comparison, compare

BOOK = noise.read_rules(resources.locate("drift.toml"), noise.read(resources.locate("noise.toml")))
NONE_ALLOWED = Limit("count", "none", high=0.0)


def _run(
    name: str,
    values: dict[tuple[str, Component], float],
    *more: journals.PlannedCheck,
    serials: str,
) -> ComparedRun:
    copies = journals.check("link.copy", *(journals.due("copy_h2d", Gpu(n)) for n in range(3)))
    heat = journals.check("watch.heat", journals.due("cpu_temperature", CPU, "degC", None))
    faults = journals.check(
        "vram.patterns", journals.due("vram_miscompares", Gpu(0), "count", NONE_ALLOWED)
    )
    burn = journals.check(
        "together.burn", journals.due("burn_copied", Gpu(0), "GiB", Limit("GiB", "basis", low=1.0))
    )
    plan = journals.plan(copies, heat, faults, burn, *more)
    identities = {Gpu(place): f"GPU-{serial}" for place, serial in enumerate(serials)}
    verdict = fold(journals.entries(journals.bodies(plan, values)))
    return ComparedRun(name, verdict, "machine-1", identities=identities)


def one_machine() -> Comparison:
    """A run, and a later one: gpu0 slower, gpu1 faster, gpu2 the same; hotter; a wrong word; a
    check that only the later one has.
    """
    usual = {("copy_h2d", Gpu(n)): 200.0 for n in range(3)} | {("cpu_temperature", CPU): 50.0}
    later = usual | {
        ("copy_h2d", Gpu(0)): 150.0,
        ("copy_h2d", Gpu(1)): 220.0,
        ("cpu_temperature", CPU): 70.0,
        ("vram_miscompares", Gpu(0)): 2.0,
    }
    first = _run("reports/one", usual, serials="abc")
    second = _run(
        "reports/two",
        later,
        journals.check("cpu.gemm", journals.due("cpu_gemm_f64", CPU)),
        serials="abc",
    )
    first = replace(first, facts={(ITSELF, "kernel"): "6.1", (Gpu(0), "vbios"): "96"}, seconds=90.0)
    return compare([first, replace(second, facts={(ITSELF, "kernel"): "6.2"}, seconds=400.0)], BOOK)


def moved() -> Comparison:
    """Two cards that have changed places, and a third that is another one."""
    return compare([_run("one", {}, serials="abc"), _run("two", {}, serials="bax")], BOOK)


def hostile(text: str) -> Comparison:
    """Two runs in which everything that comes from outside is this text; one of them is of
    another machine.
    """
    run = comparison.run_of(samples.hostile(text), text)
    facts = {(Named(f"gpu {text}"), f"name {text}"): f"value {text}"}
    first = replace(run, identities={Part("disk", text): f"one {text}"}, facts=facts)
    second = replace(
        run,
        identities={Part("disk", text): f"two {text}"},
        machine_id=f"other {text}",
        name=f"second {text}",
    )
    return compare([first, second], BOOK)
