"""What happens to a fake machine while programs look at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fake_driver
import pytest
from questions import GPU_IS_LOST, NOT_SUPPORTED, TIMED_OUT, Child, Question, Session, ask, write

XID = 8
STILL_S = 0.2
TEMPERATURE = ["nvmlDeviceGetTemperatureV", {"gpu": 0}, 0]


def gpu(number: int, **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"GPU-{number}",
        "pci_bus_id": f"00000000:0{number + 1}:00.0",
        "temperature_c": 40,
        **more,
    }


def machine(*gpus: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"synthetic": True, "gpus": list(gpus), **more}


def test_a_step_comes_when_its_time_has_come(library: Path, tmp_path: Path) -> None:
    steps = [
        {
            "after_s": 5.0,
            "gpu": 0,
            "set": {
                "temperature_c": 70,
                "serial": "1",
                "refuse": {"nvmlDeviceGetVbiosVersion": 16},
            },
        },
        {"after_s": 6.0, "set": {"temperature_c": 90}},
    ]
    path = write(tmp_path, machine(gpu(0), gpu(1), timeline=steps))
    questions = [TEMPERATURE, ["nvmlDeviceGetTemperatureV", {"gpu": 1}, 0]]
    assert ask(library, path, *questions, age_s=-1.0).values() == [40, 40]
    assert ask(library, path, *questions).values() == [40, 40]
    assert ask(library, path, *questions, age_s=5.0).values() == [70, 40]
    assert ask(library, path, *questions, age_s=1e6).values() == [90, 90]
    more = [["nvmlDeviceGetSerial", {"gpu": 0}], ["nvmlDeviceGetVbiosVersion", {"gpu": 0}]]
    assert ask(library, path, *more, age_s=5.0).answers == [{"value": "1"}, {"error": 16}]
    assert ask(library, path, *more, age_s=0.0).answers == [{"error": NOT_SUPPORTED}] * 2


def test_time_begins_with_the_first_init_where_no_other_is_given(
    library: Path, tmp_path: Path
) -> None:
    path = write(
        tmp_path,
        machine(gpu(0), timeline=[{"after_s": 0.3, "gpu": 0, "set": {"temperature_c": 70}}]),
    )
    assert ask(library, path, TEMPERATURE, ["sleep", 0.35], TEMPERATURE).values() == [40, None, 70]


def test_time_begins_when_the_file_that_holds_the_epoch_is_there(
    library: Path, tmp_path: Path
) -> None:
    path = write(
        tmp_path,
        machine(gpu(0), timeline=[{"after_s": 0.0, "gpu": 0, "set": {"temperature_c": 70}}]),
    )
    epoch = tmp_path / "epoch"
    variables = {
        **os.environ,
        **fake_driver.environment(library, path),
        "RIGPROOF_FAKE_NVML_EPOCH": str(epoch),
    }
    program = """
import sys, pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
events = pynvml.nvmlEventSetCreate()
for _ in sys.stdin:
    try:
        pynvml.nvmlEventSetWait_v2(events, 10)
    except pynvml.NVMLError_Timeout:
        pass
    print(pynvml.nvmlDeviceGetTemperature(handle, 0), flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for expected in ("40", "40", "70"):
            if expected == "70":
                epoch.write_text(repr(time.clock_gettime(time.CLOCK_BOOTTIME)), encoding="utf-8")
            asked.stdin.write("\n")
            asked.stdin.flush()
            assert asked.stdout.readline().strip() == expected
        asked.stdin.close()


def test_readings_grow(library: Path, tmp_path: Path) -> None:
    link = {"link": 0, "active": True, "replays": 7}
    grow = {"ecc_corrected": 10.0, "energy_j": 300.5, "links": [{"link": 0, "replays": 2.0}]}
    steps = [
        {"after_s": 10.0, "gpu": 0, "grow": grow},
        {"after_s": 1000.0, "gpu": 0, "set": {"ecc_corrected": 5}},
    ]
    path = write(
        tmp_path, machine(gpu(0, ecc_corrected=100, energy_j=50.0, links=[link]), timeline=steps)
    )
    questions = [
        ["nvmlDeviceGetTotalEccErrors", {"gpu": 0}, 0, 0],
        ["nvmlDeviceGetNvLinkErrorCounter", {"gpu": 0}, 0, 0],
        ["nvmlDeviceGetTotalEnergyConsumption", {"gpu": 0}],
    ]
    assert ask(library, path, *questions, age_s=0.0).values() == [100, 7, 50_000]
    errors, replays, energy = ask(library, path, *questions, age_s=110.0).values()
    late_s = 15.0  # the children are young, but the machine may be slow
    assert 1100 <= errors < 1100 + 10 * late_s
    assert 207 <= replays < 207 + 2 * late_s
    assert 30_100_000 <= energy < 30_100_000 + 300_500 * late_s
    assert ask(library, path, questions[0], age_s=5000.0).values() == [5]


def test_a_lost_gpu_answers_nothing_else_and_the_other_one_goes_on(library: Path) -> None:
    path = fake_driver.description("gpu-lost-mid-run")
    asked = ["nvmlDeviceGetTemperatureV", "nvmlDeviceGetPowerUsage"]
    questions = [
        ["nvmlDeviceGetCount"],
        *([function, {"gpu": 0}, *([0] if function.endswith("V") else [])] for function in asked),
        ["nvmlDeviceGetHandleByIndex", 1],
        ["nvmlDeviceGetHandleByPciBusId", "0000:41:00.0"],
        ["nvmlDeviceGetTopologyCommonAncestor", {"gpu": 0}, {"gpu": 1}],
    ]
    assert all(
        "value" in answer for answer in ask(library, path, *questions[:-2], age_s=-100.0).answers
    )
    found = ask(library, path, *questions, age_s=60.0).answers
    assert ["error" in answer for answer in found] == [False, False, False, True, True, True]
    assert [answer["error"] for answer in found[3:]] == [GPU_IS_LOST] * 3


def test_a_handle_of_before_the_loss_answers_so_too(library: Path, tmp_path: Path) -> None:
    path = write(
        tmp_path, machine(gpu(0), timeline=[{"after_s": 0.3, "gpu": 0, "set": {"lost": True}}])
    )
    assert ask(library, path, TEMPERATURE, ["sleep", 0.35], TEMPERATURE).answers[::2] == [
        {"value": 40},
        {"error": GPU_IS_LOST},
    ]


def test_an_xid_comes_once_to_a_set_that_waits_for_it(library: Path, tmp_path: Path) -> None:
    steps = [
        {"after_s": 0.0, "gpu": 0, "xid": 13},
        {"after_s": 0.4, "gpu": 1, "xid": 31},
        {"after_s": 0.4, "gpu": 0, "xid": 79, "set": {"lost": True}},
    ]
    path = write(tmp_path, machine(gpu(0), gpu(1), timeline=steps))
    wait = ["nvmlEventSetWait", {"kept": "set"}, 3000]
    found = ask(
        library,
        path,
        ["nvmlEventSetCreate"],
        ["nvmlDeviceGetSupportedEventTypes", {"gpu": 0}],
        ["nvmlDeviceRegisterEvents", {"gpu": 0}, XID, {"kept": "set"}],
        ["nvmlDeviceRegisterEvents", {"gpu": 0}, 1, {"kept": "set"}],
        ["nvmlEventSetWait", {"kept": "set"}, 0],
        wait,
        wait,
        ["nvmlEventSetFree", {"kept": "set"}],
    ).answers
    assert found[:5] == [
        {"value": None},
        {"value": XID},
        {"value": None},
        {"error": NOT_SUPPORTED},
        {"error": TIMED_OUT},
    ]
    event = found[5]["value"]  # not that of the GPU that was not registered, nor the one of before
    assert (event["device"], event["eventType"], event["eventData"]) == ({"gpu": "lost"}, XID, 79)
    assert found[6:] == [{"error": GPU_IS_LOST}, {"value": None}]


def test_a_wait_ends_in_time_and_an_old_xid_is_not_told(library: Path, tmp_path: Path) -> None:
    path = write(tmp_path, machine(gpu(0), timeline=[{"after_s": 1.0, "gpu": 0, "xid": 31}]))
    register = ["nvmlDeviceRegisterEvents", {"gpu": 0}, XID, {"kept": "set"}]
    begun = time.monotonic()
    found = ask(
        library,
        path,
        ["nvmlEventSetCreate"],
        register,
        ["nvmlEventSetWait", {"kept": "set"}, 200],
        age_s=50.0,
    )
    assert found.answers[2] == {"error": TIMED_OUT}
    assert 0.2 <= time.monotonic() - begun < 15.0


def test_a_gpu_that_hangs_and_the_other_one_goes_on(library: Path, tmp_path: Path) -> None:
    session = Session(library, write(tmp_path, machine(gpu(0, hang=True), gpu(1))))
    assert session.ask(["nvmlDeviceGetUUID", {"gpu": 1}]) == [{"value": "GPU-1"}]
    assert stands_still(session.child, TEMPERATURE)


def test_a_driver_that_hangs(library: Path, tmp_path: Path) -> None:
    assert stands_still(
        Child(library, write(tmp_path, machine(gpu(0), init_hang=True))), ["nvmlInit"]
    )


def stands_still(child: Child, question: Question) -> bool:
    """Whether no answer has come after a while; ends the child."""
    child.put(question)
    silent = not child.answers_within(STILL_S)
    os.kill(child.pid, signal.SIGKILL)
    return child.end()[0] == -signal.SIGKILL and silent


@pytest.mark.parametrize(
    "document", [machine(gpu(0, crash=True)), machine(gpu(0), init_crash=True)]
)
def test_a_gpu_or_a_driver_that_crashes(
    library: Path, tmp_path: Path, document: dict[str, Any]
) -> None:
    found = ask(library, write(tmp_path, document), TEMPERATURE)
    assert (found.returncode, found.answers) == (-signal.SIGABRT, [])


def test_a_driver_that_cannot_be_opened(library: Path, tmp_path: Path) -> None:
    path = write(tmp_path, machine(gpu(0), init_error=18))
    assert ask(library, path, ["nvmlDeviceGetCount"]).answers == [{"error": 18}, {"error": 1}]


def test_functions_and_fields_that_are_refused(library: Path, tmp_path: Path) -> None:
    refusing = machine(
        gpu(
            0,
            refuse={"nvmlDeviceGetTemperatureV": 4, "field 82": 17},
            memory_temperature_c=50,
            pcie_replays=0,
        ),
        gpu(1, memory_temperature_c=50, pcie_replays=0),
        refuse={"nvmlDeviceGetPcieReplayCounter": 13},
    )
    questions = []
    for handle in ({"gpu": 0}, {"gpu": 1}):
        questions += [
            ["nvmlDeviceGetTemperatureV", handle, 0],
            ["nvmlDeviceGetPcieReplayCounter", handle],
        ]
        questions += [["nvmlDeviceGetFieldValues", handle, [82, 94]]]
    found = ask(library, write(tmp_path, refusing), *questions).answers
    good = {"code": 0, "value": 0}
    assert found[:3] == [{"error": 4}, {"error": 13}, {"value": [{"code": 17}, good]}]
    assert found[3:] == [{"value": 40}, {"error": 13}, {"value": [{"code": 0, "value": 50}, good]}]
