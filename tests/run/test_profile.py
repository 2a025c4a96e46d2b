from __future__ import annotations

from pathlib import Path

import pytest

from acceptance import resources
from acceptance.core.message import UserError
from acceptance.core.plan import Reduction
from acceptance.run import profile
from acceptance.run.profile import BURN, SINGLE, Profile

SHIPPED = profile.read(resources.locate("profiles.toml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profiles.toml"


def test_the_shipped_profiles() -> None:
    assert list(SHIPPED) == ["smoke", "accept", "nightly", "train", "soak"]
    smoke, accept, nightly, train, soak = (set(one.seconds) for one in SHIPPED.values())
    assert accept - soak == {"storage_keep"}, "only an acceptance leaves a file for the nights"
    longest = {"storage_full_cache", "gpu_burn_float", "gpu_burn_double"}
    assert soak - accept == longest, "only a soak fills a drive's cache, and runs gpu-burn whole"
    assert soak >= {BURN, *SINGLE}
    modes = {"gpu_burn_float", "gpu_burn_tensor", "gpu_burn_double"}
    assert [one & modes for one in (smoke, nightly, train)] == [set()] * 3
    assert (accept & modes, soak & modes) == ({"gpu_burn_tensor"}, modes)
    # Nights and smoke write nothing to a disk; they read what is kept there.
    writing = {
        "storage_write",
        "storage_verify",
        "storage_write_random",
        "storage_keep",
        "storage_memmap",
        "storage_feed",
        "storage_checkpoint",
    }
    training = {"train_layers", "train_step", "train_digest", "train_parallel"}
    longer = {
        "gpu_burn_tensor",
        "gpu_gemm_table",
        "gpu_copy",
        "disk_self_test",
        "storage_read",
        *training,
    }
    assert accept - smoke == longer | writing, "minutes more, for a test that takes one or two"
    left_out = {
        "gpu_burn_tensor",
        "gpu_gemm_table",
        "gpu_copy",
        *(training - {"train_digest"}),
    }
    assert accept - nightly == left_out | writing, (
        "minutes more on eight GPUs, for a test that takes ten"
    )
    assert nightly < accept
    whole_tables = {"train_layer_table", "train_step_table", "train_parallel_table"}
    assert train - accept == whole_tables, "the whole tables of training are for those who ask"
    assert train & accept == training | {"gpu_gemm", "gpu_gemm_table", "collective"}
    assert [name for name, one in SHIPPED.items() if one.nights] == ["nightly"]
    for one in SHIPPED.values():
        assert one.summary
        assert one.cannot_detect
    totals = {name: sum(one.seconds.values()) for name, one in SHIPPED.items()}
    assert min(totals, key=totals.__getitem__) == "smoke"
    assert max(totals, key=totals.__getitem__) == "soak"
    assert all(
        one.seconds[BURN] > max(one.seconds[name] for name in SINGLE if name in one.seconds)
        for name, one in SHIPPED.items()
        if name != "train"
    )
    assert BURN not in train


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_not_filled_is_told(name: str) -> None:
    most = SHIPPED[name].memory_gib_max
    told = [line for line in SHIPPED[name].cannot_detect if line.startswith("memory faults")]
    assert bool(told) is (most is not None)
    assert all(f"{most:g} GiB" in line for line in told)


def test_one_is_chosen_by_name() -> None:
    assert profile.choose(SHIPPED, "smoke") is SHIPPED["smoke"]
    with pytest.raises(UserError, match=r"there is no profile 'acept': did you mean accept[?]$"):
        profile.choose(SHIPPED, "acept")
    told = "there is no profile 'x': choose one of smoke, accept, nightly, train, soak"
    with pytest.raises(UserError, match=f"^{told}$"):
        profile.choose(SHIPPED, "x")


def test_the_burn_of_the_whole_machine_takes_the_time_that_is_asked_for() -> None:
    one = Profile(
        "x",
        (),
        {
            "burn": 20.0,
            "stress_ng": 8.0,
            "gpu_burn_float": 30.0,
            "vram": 5.0,
            "memory_bandwidth": 3.0,
        },
    )
    assert profile.seconds(one, None) == one.seconds
    assert profile.seconds(one, 600.0) == {**one.seconds, "burn": 600.0}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_profile_at_its_own_seconds_or_longer_is_not_shortened(name: str) -> None:
    chosen = SHIPPED[name]
    own_s = chosen.seconds.get(BURN, 1.0)
    for asked in (None, own_s, own_s + 1.0):
        assert profile.reductions(chosen, profile.seconds(chosen, asked)) == ()


@pytest.mark.parametrize("name", [name for name, one in SHIPPED.items() if BURN in one.seconds])
def test_a_shorter_burn_is_less_than_the_profile_and_stands_first(name: str) -> None:
    chosen = SHIPPED[name]
    own_s = chosen.seconds[BURN]
    assert profile.reductions(chosen, profile.seconds(chosen, own_s - 0.5)) == (
        Reduction(BURN, own_s - 0.5, own_s, "s"),
    )
    first, *others = profile.reductions(chosen, profile.seconds(chosen, 1.0))
    assert first == Reduction(BURN, 1.0, own_s, "s")
    assert {one.load for one in others} == {*SINGLE} & {
        load for load, seconds in chosen.seconds.items() if seconds > 1.0
    }


def test_single_burns_last_no_longer_than_the_burn_and_nothing_else_is_cut() -> None:
    one = Profile(
        "x",
        (),
        {
            "burn": 20.0,
            "stress_ng": 8.0,
            "gpu_burn_float": 1.0,
            "vram": 5.0,
            "memory_bandwidth": 3.0,
        },
    )
    cut = {
        "burn": 2.0,
        "stress_ng": 2.0,
        "gpu_burn_float": 1.0,
        "vram": 2.0,
        "memory_bandwidth": 3.0,
    }
    assert profile.seconds(one, 2.0) == cut


def test_a_profile_without_a_burn_has_none_with_any_time() -> None:
    assert profile.seconds(Profile("x", (), {"stress_ng": 8.0}), 600.0) == {"stress_ng": 8.0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[x", "Expected ']'"),
        ("[x]\nsummary = 'x'\n", "missing required field `cannot_detect`"),
        ("[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {a = 0}\n", r"Expected `float` > 0"),
        (
            "[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {a = '1'}\n",
            r"Expected `float`, got `str`",
        ),
        (
            "[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {}\ntypo = 1\n",
            "unknown field `typo`",
        ),
        (
            "[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {}\ngoal_s = {one = 0}\n",
            r"Expected `float` > 0",
        ),
        (
            "[x]\nsummary = 'x'\ncannot_detect = []\nseconds = {}\ngoal_s = {one = 1, two = 2}\n",
            "missing required field `eight`",
        ),
        ("\xff", "invalid start byte"),
    ],
)
def test_a_file_that_is_wrong(file: Path, text: str, told: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=rf"profiles\.toml: .*{told}"):
        profile.read(file)


def test_a_file_that_is_missing(file: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        profile.read(file)
