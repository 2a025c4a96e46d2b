"""The suspicion that an Xid raises against a GPU under test."""

from __future__ import annotations

import re
from collections.abc import Iterable

from acceptance.core.parts import Component
from acceptance.core.record import Suspicion
from acceptance.observe.event import own_load, pci_function
from acceptance.watch.targets import WatchTarget

# `pid=4121, name=gpu_burn, `; without a process `pid='<unknown>', name=<unknown>`.
_PROCESS = re.compile(r"\bpid=\'?(?P<pid>\d{1,10})\'?(?:, name=(?P<name>[^,<]+))?")


def suspicion(
    kind: str,
    code: int | str | None,
    where: Component | None,
    text: str,
    targets: Iterable[WatchTarget],
) -> Suspicion | None:
    """The suspicion; None for an event of another kind, or not of a GPU under test."""
    suspects, consequence = own_load(kind, code)
    if not suspects or where is None:
        return None
    for target in targets:
        if pci_function(target.pci_address) == where:
            match = _PROCESS.search(text)
            pid = int(match["pid"]) if match else None
            command = (match["name"] or "").strip() or None if match else None
            return Suspicion(target.name, pid, command, consequence)
    return None
