from __future__ import annotations

from pathlib import Path

import pytest
from cases import each

from acceptance import resources
from acceptance.core.limit import Limit
from acceptance.expect import limit_book
from acceptance.expect.limit_book import (
    LimitBook,
    LimitFileError,
    Override,
    at_least,
    exactly,
    memory_floor,
    must_be_zero,
)

LIMIT = Limit("W", "b", low=1.0)
SHEET = '[[limit]]\nmeasurement = "power"\nunit = "W"\nlow = 1\nbasis = "b"\n'


def sheet(folder: Path, text: str) -> Path:
    path = folder / "sheet.toml"
    path.write_text(text, encoding="utf-8")
    return path


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


def test_a_measurement_is_known_even_to_have_no_limit() -> None:
    book = LimitBook((Override("power", "default", unlimited="no sheet"),))
    assert book.knows("power")
    assert not book.knows("heat")


def test_defaults_are_read_with_origin_and_reason(tmp_path: Path) -> None:
    book = limit_book.read_defaults(
        sheet(tmp_path, SHEET + '[[unlimited]]\nmeasurement = "heat"\nreason = "no sheet"\n')
    )
    assert book.entries == (
        Override("power", "class default", LIMIT),
        Override("heat", "class default", unlimited="no sheet"),
    )


@each(
    "text, told",
    [
        (SHEET + SHEET, "power stands twice"),
        (SHEET + '[[unlimited]]\nmeasurement = "power"\nreason = "x"\n', "power stands twice"),
        (SHEET.replace('"W"', '"Watt"'), "limit for power: unit 'Watt'"),
        (SHEET.replace("low = 1", "low = nan"), "low is nan"),
        (SHEET.replace("low = 1", ""), "needs low, high, or both"),
        (SHEET.replace('basis = "b"', ""), "missing required field `basis`"),
        (SHEET + "worst = 1\n", "unknown field `worst`"),
        ("[[limit", "sheet.toml: "),
    ],
)
def test_a_wrong_sheet_names_itself_and_the_entry(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(LimitFileError, match=told) as caught:
        limit_book.read_defaults(sheet(tmp_path, text))
    assert str(caught.value).startswith("sheet.toml: ")


def test_a_sheet_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(LimitFileError, match=r"^none.toml: "):
        limit_book.read_defaults(tmp_path / "none.toml")
    (tmp_path / "sheet.toml").write_bytes(b"\xff")
    with pytest.raises(LimitFileError, match=r"^sheet.toml: "):
        limit_book.read_defaults(tmp_path / "sheet.toml")


def test_the_shipped_sheet_is_read() -> None:
    assert limit_book.read_defaults(resources.locate("models") / "host.toml").knows("gpu_count")


def test_the_short_ways_to_a_limit() -> None:
    assert exactly(8, "count", "b") == Limit("count", "b", low=8, high=8)
    assert at_least(8, "W", "b") == Limit("W", "b", low=8)
    assert must_be_zero("b") == Limit("count", "b", high=0.0)


def test_the_memory_floor_follows_the_slowest_module_and_shows_its_sum() -> None:
    floor, basis = memory_floor((5600, 4800), 2, 0.5)
    assert floor == 38.4
    assert basis == "0.5 x 4800 MT/s x 64 bit x 2 channels / 8 = 0.5 x 76.8 GB/s"
