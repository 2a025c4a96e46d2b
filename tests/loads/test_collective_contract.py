"""What proves collectives: every operation in its table, and every element compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cases import each
from load_texts import Lines, lines_of, printed, refusal_message, text_of
from pair_outputs import asked

from acceptance.core.parts import Gpu
from acceptance.loads import asks
from acceptance.loads.__main__ import parsed
from acceptance.loads.collective.contract import (
    COLLECTIVE_VARIANTS,
    SIZES,
    WITH_MULTICAST,
    Ask,
    PairAsk,
)
from acceptance.loads.miscompare import COLLECTIVE_MISCOMPARES, CollectiveVariant
from acceptance.loads.protocol import parse
from acceptance.wording import words

SUMS = [
    (arm, name, dtype)
    for arm in COLLECTIVE_VARIANTS
    for name in ("all_reduce", "reduce_scatter")
    for dtype in ("bf16", "f16", "i32")
]


def ask(ranks: int = 2, arms: tuple[CollectiveVariant, ...] = COLLECTIVE_VARIANTS) -> Ask:
    return Ask(backend="nccl", ranks=ranks, seconds=1.0, arms=arms)


def lines(of: Ask, **more: Any) -> Lines:
    return lines_of(printed(of, {"uuids": [f"GPU-{one}" for one in range(of.ranks)]}, **more))


def code(text: str, of: Ask | PairAsk, what: str = "") -> str:
    """Why an output proves nothing, if that is of `what`; "" where it is proof."""
    every = {} if isinstance(of, PairAsk) else {"uuids": [f"GPU-{one}" for one in range(of.ranks)]}
    message = refusal_message(of, text, every, 0.1)
    told = "" if message is None else words.text(message)
    return message.code if message is not None and what in told else told


def without(found: Lines, *cells: str, **keys: str) -> str:
    """The text without the lines with these keys, or without the rows with these cells."""
    kept = [one for one in found if not keys or any(one.get(key) != keys[key] for key in keys)]
    for table in (one for one in kept if "table" in one):
        table["rows"] = [row for row in table["rows"] if not cells or {*cells} - {*row[:4]}]
    kept[-1]["readings"] -= len(found) - len(kept)
    return text_of(kept)


@each("arms", [COLLECTIVE_VARIANTS, WITH_MULTICAST, ("p2p_off",), ("multicast",)])
def test_a_whole_output_is_proof(arms: Any) -> None:
    for of in (ask(2, arms), ask(3, arms), ask(8, arms)):
        assert code(text_of(lines(of)), of) == ""
        assert code(text_of(lines(of, rate=lambda *_: 20.12345)), of) == ""


def test_one_element_is_whole_too() -> None:
    old, new = 'bf16", 4800, 1, 9600', 'bf16", 2, 1, 4'
    assert code(text_of(lines(ask())).replace(old, new, 1), ask()) == ""


def test_paths_that_were_tried_again_have_a_table() -> None:
    *rest, end = lines(ask())
    columns = ["arm", "slow path", "tried", "GB/s", "again GB/s"]
    row = ["default", "gpu0->gpu1", "gpu0->gpu1", 10.0, 11.0]
    table = {"table": "collective_slow_paths", "columns": columns, "rows": [row]}
    text = text_of([*rest, table, {**end, "readings": end["readings"] + 1}])
    assert code(text, ask()) == ""
    assert code(text.replace("again GB/s", "GB/s again"), ask()) == "load_columns"


@each(
    "old, new, why, what",
    [
        ('"uuids": ["GPU-0", "GPU-1"]', '"uuids": ["GPU-0", "GPU-2"]', "load_parameter", "uuids"),
        ('"uuids": ["GPU-0", "GPU-1"]', '"uuids": []', "load_parameter", "uuids"),
        ('"ranks": 2', '"ranks": 3', "load_parameter", "ranks"),
        ('"arms": ["default", "p2p_off"]', '"arms": ["default"]', "load_parameter", "arms"),
        ('"seconds": 1.0', '"seconds": 0.5', "load_parameter", "seconds"),
        ('"turns": 5', '"turns": 1', "load_parameter", "turns"),
        (f'"most": {SIZES[-1]}', '"most": 4096', "load_parameter", "most"),
        ('"backend": "nccl"', '"backend": "gloo"', "load_parameter", "backend"),
        ('"uuids"', '"inject": "lost", "uuids"', "load_fault_injected", "lost"),
        (
            '"collective_broadcast", "unit": "GB/s", "component": "gpus", "value": 20.0',
            '"collective_broadcast", "unit": "GB/s", "component": "gpus", "value": 40.0',
            "load_rate_untold",
            "collective_broadcast",
        ),
        ('bf16", 4800, 1, 9600', 'bf16", 4800, 1, 9599', "load_uncompared", "all_reduce bf16"),
        ('bf16", 4800, 1, 9600', 'bf16", 4800, 0, 4800', "load_uncompared", "all_reduce bf16"),
        ('bf16", 4800, 1, 9600', 'bf16", 0, 1, 0', "load_uncompared", "all_reduce bf16"),
        ('bf16", 4800, 1, 9600', 'bf16", "all", 1, 9600', "load_uncompared", "all_reduce bf16"),
        ('bf16", 4800, 1, 9600', 'bf16", 4800, "all", 9600', "load_uncompared", "all_reduce bf16"),
        ('f32", 9600, 1, 4800', 'f32", 9600, 1, 4801', "load_uncompared", "send_receive f32"),
        ('[["default", "all_reduce"', '[["default", "gather"', "load_uncompared", "gather bf16"),
        ("nccl_p2p_off", "nccl_multicast", "load_without_log", "gpu0"),
    ],
)
def test_anything_else_proves_nothing(old: str, new: str, why: str, what: str) -> None:
    text = text_of(lines(ask()))
    assert old in text
    assert code(text.replace(old, new, 1), ask(), what) == why


@each(
    "cells, keys, why, what",
    [
        (("p2p_off",), {}, "load_rate_untold", "collective_all_reduce_p2p_off"),
        (("default", "gpu1->gpu0"), {}, "load_rate_untold", "collective_send_receive"),
        ((), {"reading": "collective_latency"}, "load_unmeasured", ""),
        ((), {"table": "collectives"}, "load_without_table", "collectives"),
        ((), {"log": "nccl_p2p_off", "component": "gpu1"}, "load_without_log", "gpu1"),
        *((one, {}, "load_uncompared", "{1} {2} ({0})".format(*one)) for one in SUMS),
    ],
)
def test_anything_less_proves_nothing(
    cells: tuple[str, ...], keys: Mapping[str, str], why: str, what: str
) -> None:
    assert code(without(lines(ask()), *cells, **keys), ask(), what) == why


@each("ranks, dtype, why", [(11, "bf16", "load_uncompared"), (12, "bf16", "")])
def test_a_format_without_exact_sums_of_so_many_ranks_is_not_due(
    ranks: int, dtype: str, why: str
) -> None:
    assert code(without(lines(ask(ranks)), dtype), ask(ranks)) == why


def test_processors_have_neither_a_latency_nor_logs() -> None:
    due = Ask(backend="gloo", ranks=2, seconds=1.0).due(parse(printed(asked(0))))
    assert not due.logs
    assert not any("latency" in name for name, _ in due.readings)


# --- between two nodes ---


@each("rank, backend", [(0, "nccl"), (1, "nccl"), (0, "gloo"), (1, "gloo")])
def test_a_whole_output_of_a_node_is_proof(rank: int, backend: Any) -> None:
    of = asked(rank, backend=backend)
    assert (of.ranks, of.seconds) == (2, of.within)
    assert code(printed(of, values={COLLECTIVE_MISCOMPARES: 7}), of) == ""
    found = parse(printed(of))
    assert [one.component for one in found.logs] == ([Gpu(rank)] if backend == "nccl" else [])
    assert {(one.name, str(one.component)) for one in found.readings} == {
        ("collective_all_reduce", "gpus"),
        ("collective_all_gather", "gpus"),
        ("collective_send_receive", "gpu0->gpu1"),
        ("collective_send_receive", "gpu1->gpu0"),
        ("collective_miscompares", f"gpu{rank}"),
        ("collective_send_receive_miscompares", f"gpu{1 - rank}->gpu{rank}"),
    }


@each(
    "old, new, why",
    [
        ('"value": 10.0', '"value": 0.0', "load_rate_none"),
        ('"value": 10.0', '"value": 9.0', "load_rate_untold"),
        ('"host"', '"home"', "load_without_host"),
        ('"host": "h0"', '"host": ""', "load_without_host"),
        ('"host": "h0"', '"host": 7', "load_without_host"),
        ('"collective_pair"', '"collective"', "load_of_another"),
        ('"rank": 0', '"rank": 1', "load_parameter"),
        ('"test": "t"', '"test": "other"', "load_parameter"),
        ('"backend": "nccl"', '"backend": "gloo"', "load_parameter"),
        ('"uuids"', '"inject": "wrong", "uuids"', "load_fault_injected"),
        ("collective_all_gather", "collective_broadcast", "load_unmeasured"),
        ("collective_miscompares", "collective_disagreements", "load_unmeasured"),
        ('"log": "nccl"', '"log": "nccl_p2p_off"', "load_without_log"),
        ('"table": "collectives"', '"table": "others"', "load_without_table"),
        ('"compared"', '"others"', "load_columns"),
        ("12288, 9.0", "0, 9.0", "load_uncompared"),
        ("12288, 9.0", "12287, 9.0", "load_uncompared"),
        ('"all_gather", "gpus"', '"all_gather", "gpu0"', "load_rate_untold"),
    ],
)
def test_a_node_that_says_less_proves_nothing(old: str, new: str, why: str) -> None:
    text = printed(asked(0))
    assert old in text
    assert code(text.replace(old, new, 1), asked(0)) == why


# --- what is asked ---

GROUP = ["collective", "backend=gloo", "seconds=1", "ranks=2"]
PAIR = ["collective_pair", "backend=gloo", "address=n1", "within=9", "rank=0", "test=t"]


@each(
    "words, values",
    [
        (GROUP, {"turns": 5, "most": 4 << 30, "grace": 60.0, "arms": ("default", "p2p_off")}),
        (PAIR, {"turns": 5, "most": 16 << 20, "grace": 30.0, "port": 29500, "gpu": 0}),
        ([*GROUP[:-1], "ranks=64", "turns=1"], {"ranks": 64, "turns": 1}),
        ([*GROUP, "turns=999", "most=8"], {"turns": 999, "most": 8}),
        ([*PAIR, "port=1"], {"port": 1}),
        ([*PAIR, "port=65535"], {"port": 65535}),
    ],
)
def test_what_is_asked_otherwise(words: list[str], values: dict[str, Any]) -> None:
    one = parsed(words)
    assert {name: getattr(one, name) for name in values} == values


@each("one", [asked(1), asked(0, inject="wrong", address="10.0.0.1"), ask(3, WITH_MULTICAST)])
def test_a_person_types_what_a_program_starts_on_another_node(one: Ask | PairAsk) -> None:
    """No word needs a quote, as `ssh` hands all of them to a shell."""
    words = asks.typed(one)
    assert parsed(list(words)) == one
    assert not set("".join(words)) & set("{}[]\"'$`\\ ;&|<>()*?~#")


def test_a_text_is_taken_as_it_is() -> None:
    one = asked(0, address="[fe80::1]", test='{"a": 1}')
    assert parsed(list(asks.typed(one))) == one


def test_the_first_line_says_neither_the_grace_nor_where_the_nodes_meet() -> None:
    assert ask().parameters().keys() == {"backend", "ranks", "seconds", "most", "turns", "arms"}
    assert asked(1).parameters().keys() == {"backend", "rank", "test", "gpu", "most", "turns"}
