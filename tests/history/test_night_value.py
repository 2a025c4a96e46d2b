"""A look as it is kept."""

from __future__ import annotations

import msgspec
import pytest

from acceptance.history.reference_builder import NightValue


def test_a_look_is_kept_as_it_was() -> None:
    look = NightValue(20415.25, 667.5, 650.0, outside=True)
    assert msgspec.json.decode(msgspec.json.encode(look), type=NightValue) == look
    plain = NightValue(1.0, 2.0)
    assert (plain.again, plain.outside, plain.unsteady) == (None, False, False)


def test_a_look_does_not_change() -> None:
    with pytest.raises(AttributeError):
        NightValue(1.0, 2.0).value = 3.0  # type: ignore[misc]
