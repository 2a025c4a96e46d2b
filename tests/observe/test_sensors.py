from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cases import each
from machine_tree import Tree

from acceptance.core.evidence import Sample
from acceptance.core.limit import UNITS as KNOWN_UNITS
from acceptance.observe import sensors as observe_sensors
from acceptance.observe.sensors import SampleThinner, Sensors

CPU = "sys/devices/system/cpu"


def intel(tree: Tree) -> None:
    """Two packages of two cores with two threads each; siblings show the same counters."""
    for cpu in range(8):
        package, core = cpu % 4 // 2, cpu % 2
        tree.files(f"{CPU}/cpu{cpu}/topology", physical_package_id=package, core_id=core)
        throttle = f"{CPU}/cpu{cpu}/thermal_throttle"
        tree.files(
            throttle, core_throttle_count=1 + core, package_throttle_count=10 * (1 + package)
        )
        tree.files(f"{CPU}/cpu{cpu}/cpufreq", scaling_cur_freq=1_000_000 + 100_000 * cpu)
    tree.write(f"{CPU}/cpufreq/policy0/x", "")
    for package in range(2):
        hwmon = f"sys/class/hwmon/hwmon{package + 1}"
        tree.files(
            hwmon,
            name="coretemp",
            temp1_input=60_000 + package,
            temp2_input=55_000,
            temp1_max=100_000,
        )
    tree.files("sys/class/hwmon/hwmon0", name="nvme", temp1_input=95_000)


def test_an_intel_server(tree: Tree) -> None:
    intel(tree)
    found = Sensors.find(tree.root).read()
    assert found == {
        "cpu_temperature_c": 60.001,
        # cores 1 + 2 in each package, packages 10 + 20, each once
        "cpu_throttle_count": (1 + 2) * 2 + 10 + 20,
        "cpu_mhz_min": 1000.0,
        "cpu_mhz_mean": 1350.0,
        "cpu_mhz_max": 1700.0,
    }
    assert Sensors.find(tree.root).offered() == set(found)


@pytest.mark.parametrize("impossible", [0, -128_000, 127_000, 255_000])
def test_one_of_several_sensors_that_is_dead(tree: Tree, impossible: int) -> None:
    """From the start it is left out; later it may be the hottest, and all are dead together."""
    intel(tree)
    whole = Sensors.find(tree.root)
    tree.files("sys/class/hwmon/hwmon1", temp1_input=impossible)
    assert "cpu_temperature_c" not in whole.read()
    assert Sensors.find(tree.root).read()["cpu_temperature_c"] == 60.001
    for package in (1, 2):
        tree.files(
            f"sys/class/hwmon/hwmon{package}", temp1_input=impossible, temp2_input=impossible
        )
    assert Sensors.find(tree.root).read()["cpu_temperature_c"] == impossible / 1000
    assert whole.read()["cpu_temperature_c"] == impossible / 1000


ZONES = {
    "thermal/thermal_zone0": {"type": "acpitz", "temp": 27_800},
    "thermal/thermal_zone1": {"type": "x86_pkg_temp", "temp": 51_000},
}
ZEN = {"hwmon/hwmon0": {"name": "zenpower", "temp1_input": 39_000}}
AMD = {"hwmon/hwmon3": {"name": "k10temp", "temp1_input": 48_625, "temp3_input": 45_000}}


@each("shown, celsius", [(AMD, 48.625), (ZONES, 51.0), ({**ZONES, **ZEN}, 39.0)])
def test_a_driver_goes_before_thermal_zones(
    tmp_path: Path, shown: dict[str, dict[str, Any]], celsius: float
) -> None:
    tree = Tree(tmp_path)
    for folder, files in shown.items():
        tree.files(f"sys/class/{folder}", **files)
    assert Sensors.find(tree.root).read() == {"cpu_temperature_c": celsius}


def test_load_memory_and_stolen_time(tree: Tree) -> None:
    assert Sensors.find(tree.root).read() == {}
    assert Sensors.find(tree.root).offered() == frozenset()
    tree.write(
        "proc/stat", "cpu  10 20 30 40 50 60 70 250 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n"
    )
    tree.write("proc/loadavg", "1.25 0.80 0.60 2/345 6789\n")
    tree.write(
        "proc/meminfo", "MemTotal:  2097152 kB\nMemFree: 1 kB\nMemAvailable:    1572864 kB\n"
    )
    assert Sensors.find(tree.root).read() == {
        "cpu_steal_s": 250 / os.sysconf("SC_CLK_TCK"),
        "load_1m": 1.25,
        "memory_available_gib": 1.5,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpu",
        "cpu 1 2 3",
        "intr 1 2 3 4 5 6 7 8 9",
        "MemAvailable:",
        "MemAvailable: lots kB",
        "nan inf",
    ],
)
def test_what_is_cut_short_is_absent(tree: Tree, text: str) -> None:
    for path in ("proc/stat", "proc/loadavg", "proc/meminfo"):
        tree.write(path, text)
    assert Sensors.find(tree.root).read() == {}


def test_a_sensor_that_fails_for_a_moment(tree: Tree) -> None:
    intel(tree)
    sensors = Sensors.find(tree.root)
    # The hottest sensor may be the one that is missing.
    (tree.root / "sys/class/hwmon/hwmon2/temp1_input").unlink()
    assert "cpu_temperature_c" not in sensors.read()
    tree.files("sys/class/hwmon/hwmon2", temp1_input=60_001)
    assert sensors.read()["cpu_temperature_c"] == 60.001
    tree.write("sys/class/hwmon/hwmon1/temp1_input", "")
    assert "cpu_temperature_c" not in sensors.read()
    # A sum without one of its counters would look like a counter that went back.
    tree.write(f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "nan\n")
    assert "cpu_throttle_count" not in sensors.read()
    for cpu in range(8):
        (tree.root / f"{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq").unlink()
    assert not {name for name in sensors.read() if "mhz" in name}


def test_cpus_without_topology_count_nothing(tree: Tree) -> None:
    tree.files(f"{CPU}/cpu0/thermal_throttle", core_throttle_count=5)
    assert observe_sensors.throttle_files(tree.root) == ()


def test_every_reading_has_a_unit(tree: Tree) -> None:
    intel(tree)
    assert Sensors.find().offered() <= set(observe_sensors.UNITS)
    assert set(observe_sensors.UNITS.values()) <= KNOWN_UNITS


# --- thinning ---


def thinned(
    samples: dict[float, float], *, began_s: float = 100.0
) -> tuple[list[Sample], SampleThinner]:
    kept: list[Sample] = []
    thinning = SampleThinner(kept.append, began_s)
    for moment, value in samples.items():
        thinning.put(moment, {"x": value})
    return kept, thinning


def test_the_first_hour_is_kept_whole() -> None:
    kept, thinning = thinned({100.0: 1.0, 101.0: 2.0, 3699.9: 3.0})
    assert kept == [Sample({"x": value}) for value in (1.0, 2.0, 3.0)]
    thinning.flush(3700.0)
    assert len(kept) == 3


def test_then_one_of_each_ten_seconds() -> None:
    values = {3700.0 + second: float(second % 7) for second in range(25)}
    kept, thinning = thinned(values)
    assert [one.span_s for one in kept] == [10.0, 10.0]
    first = [float(second % 7) for second in range(11)]
    assert kept[0] == Sample({"x": sum(first) / 11}, 10.0, {"x": 0.0}, {"x": 6.0})
    thinning.flush(3725.0)
    assert kept[2] == Sample({"x": (1 + 2 + 3) / 3}, 3.0, {"x": 1.0}, {"x": 3.0})
    thinning.flush(3726.0)
    assert len(kept) == 3


def test_a_reading_that_is_not_always_there() -> None:
    kept, thinning = thinned({})
    thinning.put(4000.0, {"x": 1.0})
    thinning.put(4001.0, {"x": 3.0, "y": 7.0})
    thinning.put(4002.0, {})
    thinning.flush(4002.0)
    assert kept == [Sample({"x": 2.0, "y": 7.0}, 2.0, {"x": 1.0}, {"x": 3.0})]


def test_what_did_not_change_is_kept_once_and_exactly() -> None:
    kept, thinning = thinned({})
    for second in range(10):
        thinning.put(4000.0 + second, {"x": 0.1})  # the sum of ten of them by ten is another number
    thinning.flush(4010.0)
    assert kept == [Sample({"x": 0.1}, 10.0, {}, {})]
