"""The copies beside the burn on a real GPU: what arrives is compared, and what arrives wrong is found."""

from __future__ import annotations

import io
import time

import pytest

from acceptance.loads.burn_compare import KernelComparator
from acceptance.loads.burn_copies import Copies
from acceptance.loads.protocol import LoadOutput, Output, parse

pytestmark = pytest.mark.gpu


def copied(spoil: str | None) -> LoadOutput:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("burn", {})
    copies = Copies(output, KernelComparator(), (), time.monotonic)
    h2d, d2h = copies._host
    if spoil == "copy_h2d":
        h2d._patterns.own[0][12345] ^= 1 << 7  # what arrives from the host is then not what the GPU has
        h2d._patterns.own[1][-1] ^= 1
    end = time.monotonic() + 30
    while min(h2d.pieces, d2h.pieces) < 6:
        assert time.monotonic() < end
        copies.step()
        time.sleep(0.001)
    copies.finish()
    output.end()
    return parse(stream.getvalue())


def test_clean_copies() -> None:
    output = copied(None)
    found = {one.name: one.value for one in output.readings}
    assert found["burn_copy_miscompares"] == 0
    assert found["burn_copied"] >= 12 * 64 / 1024
    assert output.miscompares == ()


def test_what_arrives_wrong_is_found_both_ways() -> None:
    output = copied("copy_h2d")
    found = {one.name: one.value for one in output.readings}
    assert found["burn_copy_miscompares"] >= 12
    assert {one["check"] for one in output.miscompares} == {"copy_h2d", "copy_d2h"}
    assert {one["first"][0]["word"] for one in output.miscompares} == {12345, (64 << 20) // 8 - 1}
    assert all(one["words"] == 1 for one in output.miscompares)
