"""Values grouped by a key."""

from __future__ import annotations

from acceptance.core.grouping import grouped


def test_keys_and_their_values_keep_the_order_in_which_they_come() -> None:
    found = grouped([("b", 1), ("a", 2), ("b", 1), ("b", 0)])
    assert list(found.items()) == [("b", [1, 1, 0]), ("a", [2])]


def test_without_values_there_is_no_key() -> None:
    assert grouped(iter(())) == {}
