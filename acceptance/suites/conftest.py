"""The fixtures that run the tools; the checks judge the results."""

from __future__ import annotations

import pytest

from acceptance.core.message import english
from acceptance.loads.cpu.contract import Groups
from acceptance.machine.inventory import Inventory
from acceptance.tools.proof import ToolError

pytest_plugins = [
    "acceptance.suites.fixtures.gpu_tools",
    "acceptance.suites.fixtures.gpu_loads",
    "acceptance.suites.fixtures.burn",
    "acceptance.suites.fixtures.power",
    "acceptance.suites.fixtures.storage",
    "acceptance.suites.fixtures.train",
]


@pytest.fixture
def groups(inventory: Inventory) -> Groups:
    """The physical cores by kind, each with its logical CPUs."""
    return {group.name: group.cores for group in inventory.cpu.core_groups}


@pytest.fixture
def sockets(inventory: Inventory) -> Groups:
    """The physical cores by the socket whose memory is theirs, each with its logical CPUs."""
    return {group.name: group.cores for group in inventory.cpu.socket_cores}


@pytest.fixture
def llc_bytes(inventory: Inventory) -> int:
    """The size of all last-level caches of the machine together; raises ToolError."""
    caches = inventory.cpu.caches
    last = [cache for cache in caches if cache.level == max(cache.level for cache in caches)]
    sizes = [cache.size_bytes * cache.instances for cache in last if cache.size_bytes is not None]
    if not sizes or len(sizes) != len(last):
        raise ToolError(
            english(
                "cache_sizes_unknown",
                "the kernel does not show every cache size, so arrays that leave the caches "
                "cannot be chosen",
            )
        )
    return sum(sizes)
