"""What the copy load asks of its command line and of the machine before it begins."""

from __future__ import annotations

import re
import sys
from io import StringIO

import pytest
from cases import each
from load_program import run

from acceptance.loads.card import CardError
from acceptance.loads.copy import elementwise, load
from acceptance.loads.copy.load import (
    CopyError,
    background_copies,
    local_words,
    pair_seconds,
    require_host_memory,
)
from acceptance.loads.cpu.memory_bandwidth import ArraysError
from acceptance.loads.protocol import Output

MIB = 1 << 20


def test_each_way_is_busy_for_longer_than_the_other() -> None:
    assert background_copies(50.0, 50.0) == 3
    assert background_copies(25.0, 6.0) == 3
    assert background_copies(6.0, 25.0) == 7


def test_local_buffers_are_beyond_the_cache() -> None:
    assert local_words(140 << 30, 60 * MIB) == (4 << 30) // 8
    assert local_words(8 << 30, 60 * MIB) == (2 << 30) // 8
    assert local_words(960 * MIB, 60 * MIB) == 240 * MIB // 8
    with pytest.raises(
        CopyError, match=r"only 0.94 GiB of the GPU's memory are free.* 4 times its L2 cache"
    ):
        local_words(960 * MIB - 1, 60 * MIB)
    with pytest.raises(CopyError):
        local_words(0, 0)


@each(
    "seconds, peers, each_s",
    [
        (1.0, 1, 1.0),
        (1.0, 4, 0.25),
        (1.0, 7, 1 / 7),
        (0.3, 7, 0.1),
        (0.05, 1, 0.05),
        (0.05, 7, 0.05),
    ],
)
def test_the_paths_to_the_peers_share_the_time_of_one(
    seconds: float, peers: int, each_s: float
) -> None:
    assert pair_seconds(seconds, peers) == pytest.approx(each_s)


def test_host_buffers_take_half_of_what_is_available_at_most() -> None:
    require_host_memory(512, 4 << 30)
    with pytest.raises(
        ArraysError, match=r"need 2.00 GiB of host memory, more than half of the 4.00 GiB"
    ):
        require_host_memory(512, (4 << 30) - 1)


def test_the_hump_is_explained() -> None:
    assert elementwise.hump(60 * MIB) == (
        "elementwise product: the L2 cache holds 60.0 MiB, the vectors of up to 4194304 elements "
        "fit into it; "
        "only larger ones show the memory"
    )
    assert "no vectors of the table fit into it" in elementwise.hump(0)
    assert elementwise.ELEMENTS == (65536, 262144, 1048576, 4194304, 16777216, 67108864)


@each(
    "extra, said",
    [
        (("--seconds", "0"), "'0' is not a number of seconds above 0"),
        (("--mib", "0"), "'0' is not a number of MiB"),
        (("--mib", "16385"), "'16385' is not a number of MiB"),
        (("--mib", "1.5"), "'1.5' is not a number of MiB"),
        (("--inject", "die"), "invalid choice: 'die'"),
        (("--link", "../machine"), "'../machine' is not a name of small letters and digits"),
        (("--link", ""), "'' is not a name of small letters and digits"),
    ],
)
def test_bad_arguments_get_one_sentence(
    extra: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        load.arguments().parse_args(["--seconds", "1", *extra])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@each("half", [("--turns", "/tmp"), ("--link", "gpu0")])
def test_a_folder_of_turns_and_a_link_go_together(
    half: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        load.main(["--seconds", "1", *half])
    assert ended.value.code == 2
    assert "--turns and --link go together" in capsys.readouterr().err


def test_it_is_a_program_and_asks_for_its_arguments() -> None:
    done = run("-m", "acceptance.loads.copy.load")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the following arguments are required: --seconds" in done.stderr


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CardError, match=re.escape("torch cannot be imported (")):
        load.run(load.arguments().parse_args(["--seconds", "1"]), Output(StringIO()))
