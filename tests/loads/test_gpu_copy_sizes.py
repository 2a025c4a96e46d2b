"""What the copy load asks of the machine before it begins."""

from __future__ import annotations

import re
import sys
from io import StringIO

import pytest

from acceptance.loads.copy import elementwise, load
from acceptance.loads.copy.contract import Ask
from acceptance.loads.copy.load import (
    background_copies,
    local_words,
    require_host_memory,
)
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output

MIB = 1 << 20


def test_each_way_is_busy_for_longer_than_the_other() -> None:
    assert background_copies(50.0, 50.0) == 3
    assert background_copies(25.0, 6.0) == 3
    assert background_copies(6.0, 25.0) == 7


def test_local_buffers_are_beyond_the_cache() -> None:
    assert local_words(140 << 30, 60 * MIB) == (4 << 30) // 8
    assert local_words(8 << 30, 60 * MIB) == (2 << 30) // 8
    assert local_words(960 * MIB, 60 * MIB) == 240 * MIB // 8
    with pytest.raises(
        LoadError, match=r"only 0.94 GiB of the GPU's memory are free.* 4 times its L2 cache"
    ):
        local_words(960 * MIB - 1, 60 * MIB)
    with pytest.raises(LoadError):
        local_words(0, 0)


def test_host_buffers_take_half_of_what_is_available_at_most() -> None:
    require_host_memory(512, 4 << 30)
    with pytest.raises(
        LoadError, match=r"need 2.00 GiB of host memory, more than half of the 4.00 GiB"
    ):
        require_host_memory(512, (4 << 30) - 1)


def test_the_hump_is_explained() -> None:
    assert elementwise.hump(60 * MIB) == (
        "elementwise product: the L2 cache holds 60.0 MiB, the vectors of up to 4194304 elements "
        "fit into it; "
        "only larger ones show the memory"
    )
    assert "no vectors of the table fit into it" in elementwise.hump(0)


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LoadError, match=re.escape("torch cannot be imported (")):
        load.run(Ask(seconds=1.0), Output(StringIO()))
