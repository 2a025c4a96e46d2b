"""What the copy load is asked, and what proves copies: each path, each peer and each product."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import each
from load_texts import printed, refusal
from sound_loads import sound
from wrong_results import TRANSFERRED

from acceptance.core.parts import Gpu, Pair
from acceptance.loads import asks
from acceptance.loads.__main__ import parsed
from acceptance.loads.copy.contract import (
    ELEMENTS,
    PATHS,
    PEER_READINGS,
    PRODUCT_COLUMNS,
    PRODUCTS,
    READINGS,
    Ask,
    pair_seconds,
)
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import parse

ASK = Ask(seconds=2.0, peers=2, turns="/logs/turns", link="gpu4")
OWN = {"uuid": "GPU-1"}
THIRD = Pair(Gpu(0), Gpu(3))
SIZES = sound(ASK).tables[PRODUCTS]


def code(ask: Ask = ASK, about: dict[str, Any] = OWN, ran_s: float = 100.0, **more: Any) -> str:
    return refusal(ask, printed(ask, about, **more), OWN, ran_s)


@each(
    "more, ran_s, why",
    [
        *(({"absent": absent}, 100.0, "") for absent in ((), (0,), (1,), (0, 1))),
        ({"ask": Ask(seconds=2.0)}, 100.0, ""),
        ({"values": {"copy_own_miscompares": 1.0}, "wrong": (read(TRANSFERRED),)}, 100.0, ""),
        # each path takes its time
        *(
            ({"absent": absent}, least_s - less, "load_ended_early" if less else "")
            for absent, least_s in (((), 16.0), ((1,), 16.0), ((0, 1), 14.0))
            for less in (0.0, 0.1)
        ),
    ],
)
def test_whole_copies_are_proof_whichever_peers_are_in_reach(
    more: dict[str, Any], ran_s: float, why: str
) -> None:
    assert code(ran_s=ran_s, **more) == why


@each(
    "more, why",
    [
        *(({"without": (name,)}, "load_unmeasured") for name in (*READINGS, *PEER_READINGS)),
        *(({"more": {(name, THIRD): unit}}, "load_stray") for name, unit in PEER_READINGS.items()),
        ({"more": {("copy_own_h2d", Gpu(1)): "GB/s"}}, "load_stray"),
        ({"ask": Ask(seconds=2.0), "more": {("copy_own_p2p", THIRD): "GB/s"}}, "load_stray"),
        ({"values": {"copy_own_d2d": -1.0}}, "load_unit"),
        ({"values": {"elementwise_miscompares": -1.0}}, "load_unit"),
        ({"wrong": (read(TRANSFERRED),)}, "load_uncounted"),
        ({"about": {"uuid": "GPU-2"}}, "load_parameter"),
        ({"about": {**OWN, "seconds": 0.1}}, "load_parameter"),
        ({"about": {**OWN, "mib": 1}}, "load_parameter"),
        ({"about": {**OWN, "link": "gpu0"}}, "load_parameter"),
        ({"about": {**OWN, "link": None}}, "load_parameter"),
        ({"about": {**OWN, "inject": "slow"}}, "load_fault_injected"),
        *(
            ({"tables": {PRODUCTS: (PRODUCT_COLUMNS, found)}}, why)
            for found, why in (
                ((), "load_without_table"),
                (SIZES[:-1], "load_rows"),
                ((*SIZES, SIZES[0]), "load_rows"),
                ((("all", *SIZES[0][1:]), *SIZES[1:]), "load_rows"),
            )
        ),
        ({"tables": {PRODUCTS: (("n", "GB/s"), [(128.0, 1.0)])}}, "load_columns"),
        ({"tables": {"elementwise_by_size": (PRODUCT_COLUMNS, SIZES)}}, "load_stray"),
    ],
)
def test_anything_else_proves_nothing(more: dict[str, Any], why: str) -> None:
    assert code(**more) == why


@each("name", PEER_READINGS)
def test_a_peer_is_measured_whole_or_absent_whole(name: str) -> None:
    found = parse(printed(ASK, OWN, absent=(0,)))
    half = tuple(one for one in found.absences if one.name != name)
    assert refusal(ASK, replace(found, absences=half), OWN) == "load_unmeasured"


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


def test_each_path_and_each_peer_is_due() -> None:
    assert len(PATHS) == 7
    due = ASK.due(parse(printed(ASK, OWN)))
    assert due.choices == [
        {("copy_own_p2p", peer): "GB/s", ("copy_own_p2p_miscompares", peer): "count"}
        for peer in (Pair(Gpu(0), Gpu(1)), Pair(Gpu(0), Gpu(2)))
    ]
    assert ELEMENTS == (65536, 262144, 1048576, 4194304, 16777216, 67108864)


def test_it_is_asked_in_argv_and_by_people() -> None:
    assert asks.of_argv(asks.argv("python3", ASK)) == ASK
    typed = ["gpu_copy", "seconds=2", "peers=2", "turns=/logs/turns", "link=gpu4"]
    assert parsed(typed) == ASK
    assert parsed(["gpu_copy", "seconds=2"]) == Ask(seconds=2.0, peers=0, mib=512)
