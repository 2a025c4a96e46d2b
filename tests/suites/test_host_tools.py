"""What the host tools' texts must agree with: what was asked of them, and how
long their process lived.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from gpu_machine import machine
from replay import host
from wrong_results import ARRAY, all_of, vram

from acceptance.core.message import Message
from acceptance.core.parts import CPU, MEMORY
from acceptance.diagnosis.wrong_result import in_words
from acceptance.process.command import ProgramResult
from acceptance.session import tools
from acceptance.session.loads import Place
from acceptance.session.tools import Outputs
from acceptance.suites.fixtures import host_tools
from acceptance.tools import stress_ng, stressapptest
from acceptance.tools.proof import ToolError
from acceptance.wording import words

STRESS_NG = host.printed("stress-ng", ["--timeout", "10s", "--cpu", "2"])
STRESSAPPTEST = host.printed("stressapptest", ["-s", "10", "-M", "4096", "-m", "2", "-W"])


def ran(text: str, argv: Sequence[str], lived: float) -> Outputs:
    place = Place(CPU if argv[0] == stress_ng.TOOL else MEMORY)
    done = ProgramResult(tuple(argv), 0, text, "", lived)
    return tools.read_all([place], [done], machine())


def asked(seconds: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each tool says of its ten seconds, and what it was asked."""
    sizes = {"megabytes": 4096, "seconds": seconds, "threads": 2}
    return (
        (STRESS_NG, stress_ng.argv("stress-ng", seconds=seconds, workers=2)),
        (STRESSAPPTEST, stressapptest.argv("stressapptest", **sizes)),
    )


@pytest.mark.parametrize(
    ("seconds", "lived", "why"),
    [
        (10, 10.1, None),
        (60, 60.1, "says that it worked for 10 s, and was to work for 60 s"),
        (1, 1.2, r"says that it worked for 10 s, and ended after 1\.2 s"),
    ],
)
def test_the_time_of_another_run(seconds: int, lived: float, why: str | None) -> None:
    for text, argv in asked(seconds):
        runs = ran(text, argv, lived)
        if why is None:
            assert runs.only().outcome == "pass"
        else:
            with pytest.raises(ToolError, match=why):
                runs.only()


def test_another_number_of_workers() -> None:
    said = stress_ng.parse(STRESS_NG)
    two, four = (stress_ng.argv("stress-ng", seconds=10, workers=one) for one in (2, 4))
    assert stress_ng.shortfall(two, said) is None
    told = {"workers": "2.0", "threads": 4.0}
    assert stress_ng.shortfall(four, said) == Message("workers_differ", told)


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
        ran(two, asked(10)[0][1], 10.1).raise_failed()


def test_wrong_words_of_memory_are_told_by_what_they_have_in_common() -> None:
    ram = all_of(*({**vram([(64, 0, 4)], number=number), "check": "ram"} for number in (1, 2)))
    note = host_tools.wrong_note(ram)
    assert note is not None
    assert words.text(note).startswith(
        "The same bit at the same address in 2 of 2 passes (byte 0x40, bit 2)"
    )
    assert host_tools.wrong_note((*ram, *all_of(ARRAY))) == in_words(ram[0])
    assert host_tools.wrong_note(()) is None
