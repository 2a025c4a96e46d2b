"""What the host tools' texts must agree with: what was asked of them, and how
long their process lived.
"""

from __future__ import annotations

import pytest
from replay import host
from wrong_results import ARRAY, all_of, vram

from acceptance.diagnosis.wrong_result import in_words
from acceptance.process.command import ProgramResult
from acceptance.suites.fixtures import host_tools
from acceptance.tools.proof import ToolError
from acceptance.wording import words

STRESS_NG = host.printed("stress-ng", ["--timeout", "10s", "--cpu", "2"])
STRESSAPPTEST = host.printed("stressapptest", ["-s", "10", "-M", "4096", "-m", "2", "-W"])


def done(text: str, seconds: float) -> ProgramResult:
    return ProgramResult(("tool",), 0, text, "", seconds)


@pytest.mark.parametrize(
    ("asked", "lived", "why"),
    [
        (10.0, 10.1, None),
        (60.0, 60.1, "says that it worked for 10 s, and was to work for 60 s"),
        (1.0, 1.2, r"says that it worked for 10 s, and ended after 1\.2 s"),
    ],
)
def test_the_time_of_another_run(asked: float, lived: float, why: str | None) -> None:
    def stress_ng() -> str:
        return host_tools.of_stress_ng(done(STRESS_NG, lived), seconds=asked, threads=2).outcome

    def stressapptest() -> str:
        return host_tools.of_stressapptest(
            done(STRESSAPPTEST, lived), seconds=asked, gib=4.0
        ).outcome

    for run in (stress_ng, stressapptest):
        if why is None:
            assert run() == "pass"
        else:
            with pytest.raises(ToolError, match=why):
                run()


def test_another_stressor_beside_cpu() -> None:
    two = STRESS_NG.replace("2 cpu", "2 cpu, 1 vm").replace(
        "stress-ng: info:  [4543] successful",
        "stress-ng: metrc: [4543] vm                 5      10.00      1.98      0.00      "
        "3535.83        1773.96\n"
        "stress-ng: info:  [4543] successful",
    )
    with pytest.raises(
        ToolError, match="tells of the stressors cpu, vm, and cpu alone was started"
    ):
        host_tools.of_stress_ng(done(two, 10.1), seconds=10.0, threads=2)


def test_wrong_words_of_memory_are_told_by_what_they_have_in_common() -> None:
    ram = all_of(*({**vram([(64, 0, 4)], number=number), "check": "ram"} for number in (1, 2)))
    note = host_tools.wrong_note(ram)
    assert note is not None
    assert words.text(note).startswith(
        "The same bit at the same address in 2 of 2 passes (byte 0x40, bit 2)"
    )
    assert host_tools.wrong_note((*ram, *all_of(ARRAY))) == in_words(ram[0])
    assert host_tools.wrong_note(()) is None
