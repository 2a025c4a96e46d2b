"""What each load works on, against the profiles that run them and the checks that start them."""

from __future__ import annotations

import pytest
from real_checks import collected

from acceptance import resources
from acceptance.loads.work import LOADS, Work, work_of
from acceptance.run import profile

PROFILES = profile.read(resources.locate("profiles.toml"))


def test_every_load_of_a_profile_and_of_a_check_is_listed_and_no_other() -> None:
    named = {load for one in PROFILES.values() for load in one.seconds}
    started = {load for check in collected() for load in (check.load, check.extra_load)}
    assert named <= LOADS.keys()
    assert started - {None} == LOADS.keys()


def test_a_load_that_keeps_gpus_at_work_is_one_of_gpus() -> None:
    assert all(one.gpus for one in LOADS.values() if one.busy or one.heats or one.compares)


def test_without_a_load_nothing_is_at_work() -> None:
    assert work_of(None) == Work()
    with pytest.raises(KeyError):
        work_of("no_such_load")


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_keeps_gpus_at_work(name: str) -> None:
    assert any(LOADS[load].busy for load in PROFILES[name].seconds)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_compares_every_result_of_some_load_of_gpus(name: str) -> None:
    assert any(LOADS[load].compares for load in PROFILES[name].seconds)
