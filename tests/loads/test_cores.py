from __future__ import annotations

import os

import pytest
from cases import each

from acceptance.core import parts
from acceptance.loads.cpu.cores import Core, CoresError, by_group, parse_cores, require_allowed


@each(
    "text, cores",
    [
        ("0", (Core("all", (0,)),)),
        ("0,1;2,3", (Core("all", (0, 1)), Core("all", (2, 3)))),
        ("all=7", (Core("all", (7,)),)),
        (
            "performance=0,1;2,3  efficiency=4;5",
            (
                Core("performance", (0, 1)),
                Core("performance", (2, 3)),
                Core("efficiency", (4,)),
                Core("efficiency", (5,)),
            ),
        ),
    ],
)
def test_cores_are_read(text: str, cores: tuple[Core, ...]) -> None:
    assert parse_cores(text) == cores


@each(
    "text, said",
    [
        ("", "no core is named"),
        ("  ", "no core is named"),
        ("0;", "'0;' is not a group of cores"),
        ("0,,1", "is not a group"),
        ("0-3", "is not a group"),
        ("-1", "is not a group"),
        ("a=", "is not a group"),
        ("A=1", "is not a group"),
        ("٣", "is not a group"),
        ("0 1", "'0' is not a group of cores"),
        ("a=0 1", "'1' is not a group of cores"),
        ("a=0 a=1", "group of cores 'a' is named twice"),
        ("0;0", "CPU 0 is named twice"),
        ("a=0 b=1,0", "CPU 0 is named twice"),
    ],
)
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(CoresError, match=said):
        parse_cores(text)


def test_a_core_goes_by_its_first_cpu() -> None:
    core = Core("all", (6, 14))
    assert (core.cpu, core.component) == (6, parts.Core(6))


def test_groups_are_kept_for_the_record() -> None:
    assert by_group(parse_cores("p=0,1;2,3 e=4")) == {"p": [[0, 1], [2, 3]], "e": [[4]]}


def test_only_the_first_cpu_of_a_core_must_be_allowed() -> None:
    require_allowed(parse_cores("0,9;1"), {0, 1})
    with pytest.raises(CoresError, match="may not run on CPU 8, 9: name other cores"):
        require_allowed(parse_cores("0;8;9"), {0, 1})
    require_allowed(parse_cores(str(min(os.sched_getaffinity(0)))))
