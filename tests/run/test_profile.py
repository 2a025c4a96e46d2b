from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from refusal import assert_raises, raised

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.core.plan import Reduction
from acceptance.run import profile
from acceptance.run.profile import BURN, SINGLE, Profile

SHIPPED = profile.read(resources.locate("profiles.toml"))


def test_the_shipped_profiles() -> None:
    """What a profile promises by its name."""
    assert list(SHIPPED) == ["smoke", "accept", "nightly", "train", "soak"]
    smoke, accept, nightly, train, soak = (set(one.seconds) for one in SHIPPED.values())
    assert accept - soak == {"storage_keep"}, "only an acceptance leaves a file for the nights"
    assert soak >= {BURN, *SINGLE}
    assert smoke | nightly <= accept
    # Nights and smoke write nothing to a disk; they read what is kept there.
    assert not any(load.startswith(WRITING) for load in smoke | nightly)
    assert [name for name, one in SHIPPED.items() if one.nights] == ["nightly"]
    assert all(one.summary and one.cannot_detect for one in SHIPPED.values())
    totals = {name: sum(one.seconds.values()) for name, one in SHIPPED.items()}
    assert sorted(totals, key=totals.__getitem__)[:: len(totals) - 1] == ["smoke", "soak"]
    for name in {*SHIPPED} - {"train"}:
        seconds = SHIPPED[name].seconds
        assert seconds[BURN] > max(seconds[load] for load in SINGLE if load in seconds)
    assert BURN not in train


WRITING = ("storage_write", "storage_verify", "storage_keep", "storage_memmap", "storage_feed",
           "storage_checkpoint", "storage_full_cache")  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_not_filled_is_told(name: str) -> None:
    most = SHIPPED[name].memory_gib_max
    told = [line for line in SHIPPED[name].cannot_detect if line.startswith("memory faults")]
    assert bool(told) is (most is not None)
    assert all(f"{most:g} GiB" in line for line in told)


def test_one_is_chosen_by_name() -> None:
    assert profile.choose(SHIPPED, "smoke") is SHIPPED["smoke"]
    for name, cure in (("acept", "did you mean accept?"), ("x", "choose one of smoke, accept")):
        assert f"there is no profile '{name}': {cure}" in raised(
            UserError, profile.choose, SHIPPED, name
        )


ONE = Profile(
    "x",
    (),
    {"burn": 20.0, "stress_ng": 8.0, "gpu_burn_float": 1.0, "vram": 5.0, "memory_bandwidth": 3.0},
)


@each(
    "asked_s, changed",
    [
        (None, {}),
        (600.0, {"burn": 600.0}),
        # single burns last no longer than the burn, and nothing else is cut
        (2.0, {"burn": 2.0, "stress_ng": 2.0, "vram": 2.0}),
    ],
)
def test_the_burn_of_the_whole_machine_takes_the_time_that_is_asked_for(
    asked_s: float | None, changed: dict[str, float]
) -> None:
    assert profile.seconds(ONE, asked_s) == {**ONE.seconds, **changed}
    bare = Profile("x", (), {"stress_ng": 8.0})
    assert profile.seconds(bare, 600.0) == bare.seconds


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shorter_burn_is_less_than_the_profile_and_stands_first(name: str) -> None:
    """At the profile's own seconds or longer nothing is shortened."""
    chosen = SHIPPED[name]
    own_s = chosen.seconds.get(BURN, 1.0)

    def less(asked_s: float | None) -> tuple[Reduction, ...]:
        return profile.reductions(chosen, profile.seconds(chosen, asked_s))

    assert less(None) == less(own_s) == less(own_s + 1.0) == ()
    if BURN not in chosen.seconds:
        return
    assert less(own_s - 0.5) == (Reduction(BURN, own_s - 0.5, own_s, "s"),)
    first, *others = less(1.0)
    assert first == Reduction(BURN, 1.0, own_s, "s")
    longer = {load for load, seconds in chosen.seconds.items() if seconds > 1.0}
    assert {one.load for one in others} == {*SINGLE} & longer


HEAD = "[x]\nsummary = 'x'\ncannot_detect = []\n"


@each(
    "text, told",
    [
        ("[x", "Expected ']'"),
        ("[x]\nsummary = 'x'\n", "missing required field `cannot_detect`"),
        (f"{HEAD}seconds = {{a = 0}}\n", r"Expected `float` > 0"),
        (f"{HEAD}seconds = {{a = '1'}}\n", r"Expected `float`, got `str`"),
        (f"{HEAD}seconds = {{}}\ntypo = 1\n", "unknown field `typo`"),
        (f"{HEAD}seconds = {{}}\ngoal_s = {{one = 0}}\n", r"Expected `float` > 0"),
        (f"{HEAD}seconds = {{}}\ngoal_s = {{one = 1, two = 2}}\n", "required field `eight`"),
        ("\udcff", "invalid start byte"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "profiles.toml"
    assert "No such file" in raised(UserError, profile.read, file)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert_raises(UserError, profile.read, file, match=rf"profiles\.toml: .*{told}")
