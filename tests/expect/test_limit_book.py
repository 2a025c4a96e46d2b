"""Every limit does what the second book says: it passes what sound machines
show, and fails what sick ones do.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from cases import each
from limit_book import BOOK, problems

from acceptance import resources
from acceptance.expect import measurements

FILES = [
    file
    for name in ("models", "measurements")
    for file in sorted(resources.locate(name).glob("*"))
    if file.suffix == ".toml"
]


@each("file", FILES, told=lambda file: file.stem)
def test_the_limits_and_the_book_agree(file: Path) -> None:
    assert list(problems(file)) == []


@each(
    "name, old, new, told",
    [
        ("measurements/gpu-burn.toml", "low = 0.9", "low = 0.09", "is sick"),
        ("measurements/stressapptest.toml", "high = 0", "high = 10", "is sick"),
        ("measurements/burn.toml", "low = 0.7", "low = 0.97", "is sound"),
        ("models/gh200-96gb.toml", "warn_low = 3010", "", "remarks on"),
        ("models/gh200-96gb.toml", "warn_low = 3010", "warn_low = 2700", "a remark at 2700"),
    ],
)
def test_a_limit_that_was_changed_in_one_place_only(
    tmp_path: Path, name: str, old: str, new: str, told: str
) -> None:
    folder, _, file = name.partition("/")
    place = shutil.copytree(resources.locate(folder), tmp_path / folder)
    text = (place / file).read_text(encoding="utf-8")
    assert text.count(f"\n{old}\n") == 1
    (place / file).write_text(text.replace(f"\n{old}\n", f"\n{new}\n"), encoding="utf-8")
    assert any(told in line for line in problems(place / file))


def test_the_book_names_nothing_that_no_family_limits() -> None:
    booked = {name for row in BOOK["judged"] for name in row["measurements"]}
    assert booked <= measurements.shipped().by_name.keys()
