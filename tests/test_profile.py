from __future__ import annotations

from pathlib import Path

import pytest

from acceptance import fixtures, profile
from acceptance.profile import BURNS, Profile, ProfileError

SHIPPED = profile.read(fixtures.locate("profiles.toml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profiles.toml"


def test_the_shipped_profiles() -> None:
    assert list(SHIPPED) == ["smoke", "accept", "nightly", "soak"]
    smoke, *others = (set(one.seconds) for one in SHIPPED.values())
    assert all(named == others[0] and named >= set(BURNS) for named in others)
    assert others[0] - smoke == {"gpu_burn_tensor", "gpu_burn_double"}, "minutes more, for a test that takes one or two"
    for one in SHIPPED.values():
        assert one.summary
        assert one.cannot_detect
    totals = [sum(one.seconds.values()) for one in SHIPPED.values()]
    assert totals == sorted(totals)


def test_one_is_chosen_by_name() -> None:
    assert profile.choose(SHIPPED, "smoke") is SHIPPED["smoke"]
    told = "there is no profile 'Smoke': choose one of smoke, accept, nightly, soak"
    with pytest.raises(ProfileError, match=f"^{told}$"):
        profile.choose(SHIPPED, "Smoke")


def test_burns_are_stretched_and_nothing_else() -> None:
    one = Profile("x", (), {"stress_ng": 8.0, "cpu_gemm": 4.0, "memory_bandwidth": 3.0})
    assert profile.seconds(one, None) == one.seconds
    assert profile.seconds(one, 600.0) == {"stress_ng": 600.0, "cpu_gemm": 600.0, "memory_bandwidth": 3.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[x", "Expected ']'"),
        ("[x]\nsummary = 'x'\n", "missing required field `cannot_detect`"),
        ("[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {a = 0}\n", r"Expected `float` > 0"),
        ("[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {a = '1'}\n", r"Expected `float`, got `str`"),
        ("[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {}\ntypo = 1\n", "unknown field `typo`"),
        ("\xff", "invalid start byte"),
    ],
)
def test_a_file_that_is_wrong(file: Path, text: str, told: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ProfileError, match=rf"profiles\.toml: .*{told}"):
        profile.read(file)


def test_a_file_that_is_missing(file: Path) -> None:
    with pytest.raises(ProfileError, match="No such file"):
        profile.read(file)
