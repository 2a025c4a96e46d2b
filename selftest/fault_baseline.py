"""A baseline laid beside the runs of a fault: of its machine before the fault, as rigproof
itself sees that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import journals

from acceptance.baseline import facts
from acceptance.core import version as versions
from acceptance.core.evidence import Observed
from acceptance.core.record import RunStarted
from acceptance.history import baseline
from acceptance.history import baseline_file as files
from acceptance.history.baseline import Certificate
from acceptance.journal import clock

RUN = "accepted"


def lay(out: Path, inventory: Mapping[str, Any]) -> Path:
    """Write the baseline of this machine into the folder of the runs: this inventory, and no
    figures.

    Raises ValueError for no inventory.
    """
    machine_id = clock.machine_id()
    start = RunStarted(RUN, journals.plan(), {}, machine_id)
    birth = facts.facts_of(journals.entries([start, Observed(dict(inventory))]))
    if birth is None:
        raise ValueError("rigproof showed no inventory to make a baseline of")
    made = Certificate(
        machine_id=machine_id,
        folder=RUN,
        accepted_utc=clock.utc(),
        rigproof=versions.UNKNOWN,
        profile=start.plan.profile,
        inventory_declared=False,
        machine=birth,
        figures=(),
        waived=(),
        set_aside=(),
        warnings=(),
        provenance={},
        era=(),
    )
    path = files.path(out, machine_id)
    path.parent.mkdir(parents=True)
    path.write_bytes(baseline.encode_certificate(made))
    return path
