from __future__ import annotations

from acceptance.core.limit import Limit
from acceptance.expect import limit_book, measurements
from acceptance.expect.limit_book import (
    CLASS_DEFAULT,
    LimitBook,
    Override,
    at_least,
    exactly,
    must_be_zero,
)

LIMIT = Limit("W", "b", low=1.0)


def test_the_first_entry_that_fits_holds() -> None:
    general, special = (
        Override("power", "general", LIMIT),
        Override("power", "special", LIMIT, "gpu0"),
    )
    assert LimitBook((special, general)).find("power", "gpu0") is special
    assert LimitBook((special, general)).find("power", "gpu1") is general
    assert LimitBook((general, special)).find("power", "gpu0") is general
    assert LimitBook((special,)).find("power", "gpu1") is None
    assert LimitBook((special,)).find("heat", "gpu0") is None
    assert LimitBook().find("power", "gpu0") is None


def test_entries_put_after_go_first() -> None:
    default, own = Override("power", "default", LIMIT), Override("power", "own", LIMIT)
    book = LimitBook((default,)).after([own])
    assert book.find("power", "gpu0") is own
    assert book.entries == (own, default)


def test_class_defaults_are_limits_and_reasons_and_never_facts() -> None:
    """Of the shipped families, which have all three."""
    families = measurements.shipped()
    book = limit_book.class_defaults(families)
    limited, unlimited = families.by_name["gpu_count"], families.by_name["gemm_bf16"]
    assert Override("gpu_count", CLASS_DEFAULT, limited.limit) in book.entries
    assert Override("gemm_bf16", CLASS_DEFAULT, unlimited=unlimited.no_limit) in book.entries
    assert limited.limit is not None
    assert unlimited.no_limit is not None
    facts = {name for name, one in families.by_name.items() if one.fact}
    assert {entry.measurement for entry in book.entries} == families.by_name.keys() - facts


def test_the_short_ways_to_a_limit() -> None:
    assert exactly(8, "count", "b") == Limit("count", "b", low=8, high=8)
    assert at_least(8, "W", "b") == Limit("W", "b", low=8)
    assert must_be_zero("b") == Limit("count", "b", high=0.0)
