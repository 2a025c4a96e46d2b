"""Components: every name is read and printed as it is, and nobody else takes names apart."""

from __future__ import annotations

import copy
import itertools
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core import parts
from acceptance.core.parts import (
    CPU,
    GPUS,
    ITSELF,
    MACHINE,
    MEMORY,
    SYSTEM,
    Component,
    Core,
    Function,
    Gpu,
    Named,
    Pair,
    Part,
    Renamed,
    Socket,
    parse,
    part,
    renamed,
)

NAMES = {
    "gpu0": Gpu(0),
    "gpu15": Gpu(15),
    "socket1": Socket(1),
    "core:127": Core(127),
    "gpu0->gpu1": Pair(Gpu(0), Gpu(1)),
    "socket1->socket0": Pair(Socket(1), Socket(0)),
    "machine": MACHINE,
    "system": SYSTEM,
    "cpu": CPU,
    "memory": MEMORY,
    "gpus": GPUS,
    "": ITSELF,
    "disk:nvme0n1": Part("disk", "nvme0n1"),
    "declared-disk:2": Part("declared-disk", "2"),
    "dimm:P0 CHANNEL A": Part("dimm", "P0 CHANNEL A"),
    "dimm:a->b": Part("dimm", "a->b"),
    "net:mlx5_0/1": Part("net", "mlx5_0/1"),
    "0000:01:00.0": Function("0000:01:00.0"),
    "sda": Named("sda"),
    "cpu3": Named("cpu3"),
    "mc0": Named("mc0"),
    # of no kind, and so that they print as they were written
    "gpu": Named("gpu"),
    "gpu01": Named("gpu01"),
    "gpu٣": Named("gpu٣"),
    "core:": Named("core:"),
    "disk:*": Part("disk", "*"),
}


@pytest.mark.parametrize("text", NAMES)
def test_every_name_is_read_and_printed(text):
    assert parse(text) == NAMES[text]
    assert type(parse(text)) is type(NAMES[text])
    assert str(parse(text)) == f"{NAMES[text]}" == text


@pytest.mark.parametrize("text", ["gpu0->", "->gpu0", "gpu0->gpu1->gpu2", "->", "disk:", "net:"])
def test_what_no_component_has_is_refused(text):
    with pytest.raises(ValueError, match=r"is no (component|end of a path): "):
        parse(text)


@given(st.text())
def test_a_name_is_printed_as_it_was_read_or_refused(text):
    try:
        found = parse(text)
    except ValueError:
        assert "->" in text or text.endswith(":")
    else:
        assert str(found) == text
        assert parse(str(found)) == found


@pytest.mark.parametrize(
    "made",
    [
        lambda: Gpu(-1),
        lambda: Part("disk", ""),
        lambda: Pair(Pair(Gpu(0), Gpu(1)), Gpu(2)),
        lambda: Pair(Gpu(0), ITSELF),
    ],
    ids=["below 0", "no name", "a path of a path", "an end without a name"],
)
def test_a_component_that_could_not_be_read_back_is_not_made(made):
    with pytest.raises(ValueError, match="is no "):
        made()


def test_kind_and_name_are_compared():
    for (one, first), (other, second) in itertools.product(NAMES.items(), repeat=2):
        assert (first == second) == (one == other)
        assert first != one
    assert Named("gpu0") != Gpu(0)
    assert {Gpu(1): "a"}[parse("gpu1")] == "a"


def test_numbers_are_in_their_order():
    texts = ["gpu10", "gpu2->gpu10", "gpu2", "gpu2->gpu9", "core:10", "core:9", "gpu02", "cpu"]
    assert [str(one) for one in sorted(map(parse, texts))] == [
        "core:9",
        "core:10",
        "cpu",
        "gpu02",
        "gpu2",
        "gpu2->gpu9",
        "gpu2->gpu10",
        "gpu10",
    ]
    assert Gpu(2) < Gpu(10)
    assert not Gpu(10) < Gpu(10)
    assert max(Named("a" + "9" * 5000), Named("a10")) == Named("a" + "9" * 5000)


@given(st.lists(st.from_regex(r"[a-z]{0,2}[0-9]{0,3}[a-z]?", fullmatch=True), unique=True))
def test_the_order_is_total(texts):
    found = [Named(text) for text in texts]
    assert sorted(found) == sorted(reversed(found))


def test_a_part_that_shows_no_name_is_named_by_its_kind():
    assert part("disk", "vda") == Part("disk", "vda")
    assert part("dimm", "") == parse("dimm")


def test_a_component_does_not_change():
    gpu = Gpu(0)
    with pytest.raises(AttributeError):
        gpu.number = 1
    with pytest.raises(AttributeError):
        del gpu.number
    assert copy.deepcopy(gpu) == pickle.loads(pickle.dumps(gpu)) == gpu


def test_a_path_has_two_ends_and_is_renamed_by_them():
    names = {Gpu(0): Gpu(4), Gpu(1): Gpu(5)}
    assert Pair(Gpu(0), Gpu(1)).ends == (Gpu(0), Gpu(1))
    assert renamed(Pair(Gpu(0), Gpu(1)), names.__getitem__) == Pair(Gpu(4), Gpu(5))
    assert Gpu(1).ends == (Gpu(1),)
    assert renamed(Gpu(1), names.__getitem__) == Gpu(5)
    assert str(Pair(Renamed(Gpu(0)), Gpu(1))) == "gpu0'->gpu1"


@pytest.mark.parametrize(
    ("pattern", "fits"), [("disk:*", True), ("disk:vda", True), ("disk:vdb", False), ("*", True)]
)
def test_patterns_are_of_names(pattern, fits):
    assert Part("disk", "vda").matches(pattern) is fits
    assert Part("disk", "[a]").matches("disk:[a]")


def test_a_list_for_people():
    assert parts.listed([Gpu(0), CPU]) == "gpu0, cpu"
    assert parts.listed([]) == ""


class _Held(msgspec.Struct, frozen=True):
    one: Component
    of: dict[Component, float]
    gpu: Gpu | None = None


def test_files_hold_names():
    held = _Held(Pair(Gpu(0), Gpu(1)), {CPU: 1.0, Gpu(3): 2.0})
    text = msgspec.json.encode(held, enc_hook=parts.encode)
    assert text == b'{"one":"gpu0->gpu1","of":{"cpu":1.0,"gpu3":2.0},"gpu":null}'
    assert msgspec.json.decode(text, type=_Held, dec_hook=parts.decode) == held


@pytest.mark.parametrize(
    "text", [b'{"one":1,"of":{}}', b'{"one":[],"of":{}}', b'{"one":"gpu0","of":{},"gpu":"cpu"}']
)
def test_what_is_no_name_is_not_decoded(text):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=_Held, dec_hook=parts.decode)


def test_other_types_are_not_converted():
    with pytest.raises(NotImplementedError):
        parts.decode(complex, "1")
    with pytest.raises(NotImplementedError):
        parts.encode(1j)
