"""Every limit does what the second book says: it passes what sound machines
show, and fails what sick ones do.
"""

from __future__ import annotations

from pathlib import Path

from cases import each
from limit_book import problems

from acceptance import resources

FILES = sorted(resources.locate("models").glob("*.toml"))


@each("file", FILES, told=lambda file: file.stem)
def test_the_limits_and_the_book_agree(file: Path) -> None:
    assert list(problems(file)) == []


@each(
    "name, old, new, told",
    [
        (
            "host.toml",
            'measurement = "gpu_burn_ratio_float"\nunit = "ratio"\nlow = 0.90',
            "low = 0.09",
            "is sick",
        ),
        (
            "host.toml",
            'measurement = "disk_faults"\nunit = "count"\nhigh = 0',
            "high = 10",
            "is sick",
        ),
        (
            "host.toml",
            'measurement = "burn_filled"\nunit = "ratio"\nlow = 0.7',
            "low = 0.97",
            "is sound",
        ),
        ("gh200-96gb.toml", "\nwarn_low = 3010", "", "remarks on"),
        ("gh200-96gb.toml", "warn_low = 3010", "warn_low = 2700", "a remark at 2700"),
    ],
)
def test_a_limit_that_was_changed_in_one_place_only(
    tmp_path: Path, name: str, old: str, new: str, told: str
) -> None:
    text = (resources.locate("models") / name).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / name).write_text(
        text.replace(old, old.rpartition("\n")[0] + "\n" + new), encoding="utf-8"
    )
    assert any(told in line for line in problems(tmp_path / name))
