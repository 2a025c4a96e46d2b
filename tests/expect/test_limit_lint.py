"""Every shipped limit stands the lint, and a slip of any kind does not."""

from __future__ import annotations

import shutil
from pathlib import Path

from cases import each
from limit_lint import READINGS, problems

from acceptance import resources
from acceptance.expect import measurements

FILES = [
    file
    for name in ("models", "measurements")
    for file in sorted(resources.locate(name).glob("*"))
    if file.suffix == ".toml"
]


@each("file", FILES, told=lambda file: file.stem)
def test_every_shipped_limit_stands_the_lint(file: Path) -> None:
    assert list(problems(file)) == []


@each(
    "name, old, new, told",
    [
        ("measurements/gpu-burn.toml", "low = 0.9", "low = 0.09", "is sick"),
        ("measurements/stressapptest.toml", "high = 0", "high = 10", "is sick"),
        ("measurements/burn.toml", "low = 0.7", "low = 0.97", "is sound"),
        ("models/gh200-96gb.toml", "warn_low = 3010", "", "one of basis and bounds"),
        ("models/gh200-96gb.toml", "warn_low = 3010", "warn_low = 2700", "low is 2700"),
        ("models/a10.toml", "low = 5.3", "low = 0.53", "low is 0.53"),
        ("models/a100-pcie-40gb.toml", "low = 176", "low = 17.6", "next to nothing"),
        ("models/rtx-a6000.toml", "low = 0.44", "low = 0.4", "low is 0.4"),
        (
            "models/architectures.toml",
            "short = { f32 = 0.4, f16 = 0.16, i8 = 0.1 }\n"
            "sustained = { f32 = 0.3, f16 = 0.12, i8 = 0.07 }",
            "short = { f32 = 0.4, f16 = 0.09, i8 = 0.1 }\n"
            "sustained = { f32 = 0.3, f16 = 0.08, i8 = 0.07 }",
            "0.09 in f16 asks for next to nothing",
        ),
        (
            "models/architectures.toml",
            "sustained = { f64 = 0.42, f32 = 0.55, f16 = 0.4 }",
            "sustained = { f64 = 0.42, f32 = 0.11, f16 = 0.4 }",
            "0.11 in f32 asks for next to nothing",
        ),
    ],
)
def test_a_limit_that_slipped(tmp_path: Path, name: str, old: str, new: str, told: str) -> None:
    folder, _, file = name.partition("/")
    place = shutil.copytree(resources.locate(folder), tmp_path / folder)
    text = (place / file).read_text(encoding="utf-8")
    assert text.count(f"\n{old}\n") == 1
    (place / file).write_text(text.replace(f"\n{old}\n", f"\n{new}\n"), encoding="utf-8")
    assert any(told in line for line in problems(place / file))


def test_readings_are_of_measurements_that_a_family_has() -> None:
    named = {name for row in READINGS["judged"] for name in row["measurements"]}
    assert named <= measurements.shipped().by_name.keys()
