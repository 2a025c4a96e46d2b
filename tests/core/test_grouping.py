"""Values by a key that several of them share."""

from __future__ import annotations

from acceptance.core.grouping import grouped


def test_keys_and_values_keep_their_order() -> None:
    found = grouped([("b", 3), ("a", 1), ("b", 2)])
    assert list(found.items()) == [("b", (3, 2)), ("a", (1,))]


def test_nothing_has_no_groups() -> None:
    assert grouped([]) == {}
