"""Loads of ours as a check runs them: what each program is told, and what its answer is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from cases import each
from gpu_machine import gpu, uuid
from load_texts import printed
from suite_box import Printed
from wrong_results import (
    ARRAY,
    COPIED,
    CORE_REPEATED,
    DIGESTS,
    DIGESTS_OF_GPUS,
    INEXACT,
    INPUTS,
    REPEATED,
    TRANSFERRED,
    UNEQUAL,
    VECTOR,
    Fact,
    all_of,
    one_bit,
    vram,
)

from acceptance.core.parts import CPU, GPUS, MEMORY, Component, Core, Gpu, Pair, Socket
from acceptance.diagnosis.wrong_result import in_words
from acceptance.loads import asks
from acceptance.loads.asks import AnyAsk
from acceptance.loads.cpu.contract import Gemm, MemoryBandwidth, MemoryRandom
from acceptance.loads.gemm.contract import Ask
from acceptance.loads.miscompare import read as read_wrong
from acceptance.loads.protocol import LoadOutput, LoadReading
from acceptance.process.command import ProgramResult
from acceptance.session import loads
from acceptance.session.loads import (
    LoadFailed,
    Part,
    Place,
    Results,
    alone,
    first_wrong,
    with_peers,
)

ASK = Ask(dtypes=("f64", "f16"), seconds=2.0)
OTHER = Ask(dtypes=("f64",), seconds=2.0)
FIRST, SECOND = gpu(0), gpu(2)


def ended(text: str, **more: Any) -> ProgramResult:
    return replace(ProgramResult(asks.argv("python", ASK), 0, text, "", 1e3), **more)


def whole(index: int = 0, **more: Any) -> str:
    return printed(ASK, {"uuid": uuid(index)}, **more)


def trouble(done: ProgramResult) -> LoadFailed:
    with pytest.raises(LoadFailed) as caught:
        loads.read(done, *alone([FIRST]))
    return caught.value


def sound(part: Part) -> tuple[str, int]:
    """All went well, on the GPU that the program was shown."""
    ask = asks.of_argv(part.argv)
    assert ask is not None
    return printed(ask, {"uuid": part.env["CUDA_VISIBLE_DEVICES"].partition(",")[0]}), 0


def test_each_program_is_asked_and_sees_its_own_gpu() -> None:
    programs = Printed(sound)
    own = {Gpu(0): ASK, Gpu(2): OTHER}
    results = programs.loads().run(lambda place: own[place.component], alone([FIRST, SECOND]))
    (parts,) = programs.asked
    assert [asks.of_argv(one.argv) for one in parts] == list(own.values())
    assert [one.env["CUDA_VISIBLE_DEVICES"] for one in parts] == [uuid(0), uuid(2)]
    assert programs.shown == [{Gpu(0): [Gpu(0)], Gpu(2): [Gpu(2)]}]
    assert programs.heard != [None]
    assert results.values("gemm_f64") == {Gpu(0): 1.0, Gpu(2): 1.0}
    assert results.values("gemm_f16") == {Gpu(0): 1.0}
    results.raise_failed()


FOUND = (read_wrong(REPEATED),)
COUNTED = whole(wrong=FOUND, values={"gemm_f16_miscompares": 1.0})
OPEN = "".join(COUNTED.splitlines(keepends=True)[:-1])
TROUBLE = '{"trouble": {"is": "message", "code": "kept_unknown", "values": {"file": "sealed"}}}\n'
FAULT = "CUDA error: an illegal memory access was encountered"


@each(
    "text, more, code",
    [
        (COUNTED, {"returncode": -9, "timed_out": True}, "timed_out"),
        (COUNTED, {"timed_out": True}, "timed_out"),
        (COUNTED, {"returncode": 1}, "ended_with_code"),
        (COUNTED, {"returncode": -11}, "ended_by_signal"),
        (COUNTED, {"truncated": True}, "load_output_lost"),
        (COUNTED, {"stderr": FAULT}, "load_cuda_error"),
        (COUNTED, {"seconds": 3.9}, "load_ended_early"),
        (
            COUNTED,
            {"argv": asks.argv("python", Ask(dtypes=("f64",), seconds=2.0))},
            "load_parameter",
        ),
        (COUNTED.replace("gpu_gemm", "burn"), {}, "load_of_another"),
        (COUNTED.replace('"uuid"', '"inject": "wrong", "uuid"'), {}, "load_fault_injected"),
        (COUNTED.replace('"uuid"', '"gpu": "Tesla T4", "uuid"'), {}, "load_parameter"),
        (COUNTED + "rubbish\n", {}, "load_output_unread"),
        (OPEN, {}, "load_output_unread"),
        (OPEN, {"returncode": 1}, "ended_with_code"),
        (OPEN, {"returncode": -9}, "ended_by_signal"),
        (OPEN + TROUBLE, {}, "load_output_unread"),
        (OPEN + TROUBLE, {"returncode": 1}, "load_trouble"),
        (OPEN + TROUBLE, {"returncode": 1, "timed_out": True}, "timed_out"),
    ],
)
def test_a_load_that_did_not_end_as_asked_proves_nothing_but_what_it_found_wrong(
    text: str, more: dict[str, Any], code: str
) -> None:
    assert loads.read(ended(COUNTED), *alone([FIRST])).miscompares == FOUND
    failure = trouble(ended(text, **more))
    assert failure.message.code == "load_failed"
    assert failure.message.values["why"].code == code  # type: ignore[union-attr]
    assert failure.miscompares == FOUND


def test_torn_and_empty_output_and_that_of_another_program_prove_nothing() -> None:
    assert trouble(ended(whole()[:-30])).message.code == "load_failed"
    assert trouble(ended("rubbish\n")).message.code == "load_failed"
    assert trouble(ended("")).message.code == "load_failed_silently"
    assert trouble(ended(whole(), argv=("gpu-burn", "60"))).message.code == "load_failed"
    none = (*asks.argv("python", ASK)[:3], '{"load": "gpu_gemm", "dtypes": [], "seconds": 2}')
    assert "dtypes" in str(trouble(ended(whole(), argv=none)))
    assert trouble(ended(whole(2))).message.code == "load_failed"


def test_the_last_words_are_the_turn_that_it_waited_for() -> None:
    text = '{"waits": "exclusive turn on machine"}\n'
    failure = trouble(ended(text, returncode=-15, timed_out=True))
    assert failure.message.values["last"].code == "load_waited"  # type: ignore[union-attr]
    said = trouble(ended('{"note": "x"}\nit broke\n', returncode=1, stderr="so it did"))
    assert said.message.values["last"] == "it broke\nso it did"
    assert "last" not in trouble(ended('{"note": "x"}\n{"tor', returncode=1)).message.values


def results(outputs: Mapping[Any, LoadOutput], failed: Mapping[Any, LoadFailed] = {}) -> Results:
    three = (FIRST, gpu(1), SECOND)
    places = [Place(one.name, (one, *(other for other in three if other != one))) for one in three]
    return Results(tuple(places), outputs, failed)


def output(*readings: LoadReading, wrong: tuple[Any, ...] = ()) -> LoadOutput:
    return LoadOutput("gpu_copy", {}, readings, wrong, ())


def test_a_program_counts_its_own_gpu_first() -> None:
    """The third saw gpu2 first, so its gpu0 is the machine's gpu2."""
    pair = LoadReading("p2p", "GB/s", Pair(Gpu(0), Gpu(1)), 2.0)
    given = results({Gpu(0): output(pair), Gpu(2): output(pair)})
    assert given.values("p2p") == {Pair(Gpu(0), Gpu(1)): 2.0, Pair(Gpu(2), Gpu(0)): 2.0}
    stray = results({Gpu(0): output(LoadReading("copy", "GB/s", Gpu(7), 1.0))})
    with pytest.raises(LoadFailed, match="gpu7, and was given 3 GPUs"):
        stray.values("copy")


def test_wrong_results_of_a_load_that_died_are_counted() -> None:
    count, due = "gemm_f16_miscompares", {Gpu(0), Gpu(2)}
    sound = output(LoadReading(count, "count", Gpu(0), 0.0))
    died = LoadFailed("load_failed", (read_wrong(REPEATED),))
    given = results({Gpu(0): sound}, {Gpu(2): died})
    counts, notes = given.counts(count, due, first_wrong)
    assert (counts, set(notes)) == ({Gpu(0): 0.0, Gpu(2): 1.0}, {Gpu(2)})
    assert given.counts("gemm_f64_miscompares", due, first_wrong) == ({}, {})
    with pytest.raises(LoadFailed, match="gpu2"):
        given.raise_failed()


OF_PAIR = {**TRANSFERRED, "component": "gpu0->gpu1", "check": "copy_own_p2p"}
AGAIN = {**TRANSFERRED, "copy": 8}


def test_the_note_of_a_count_is_of_the_first_wrong_result_that_belongs_to_it() -> None:
    own = LoadReading("copy_own_miscompares", "count", Gpu(0), 2.0)
    given = results({Gpu(0): output(own, wrong=all_of(OF_PAIR, TRANSFERRED, AGAIN))})
    assert given.counts("copy_own_miscompares", {Gpu(0)}, first_wrong) == (
        {Gpu(0): 2.0},
        {Gpu(0): in_words(*all_of(TRANSFERRED))},
    )


@each(
    "found",
    [
        {"row": 7},
        {**REPEATED, "dtype": "f128"},
        {"component": "gpu0", "check": "else"},
        {"dtype": "f16"},
        {**REPEATED, "dtype": ["f16"], "check": 3},
    ],
)
def test_a_wrong_result_that_names_no_count_speaks_against_every_due_one(found: Fact) -> None:
    given = results({}, {Gpu(2): LoadFailed("load_failed", all_of(found))})
    for count in ("gemm_f16_miscompares", "copy_own_miscompares", "elementwise_miscompares"):
        assert given.counts(count, {Gpu(2)}, first_wrong)[0] == {Gpu(2): 1.0}
    assert given.wrong("copy_own_p2p_miscompares", {Pair(Gpu(2), Gpu(0))}) == {}


def test_the_load_that_held_the_others_up_is_named_and_not_those_that_waited() -> None:
    """A GPU that hangs in its turn keeps the others from theirs until the time is over."""
    waited, copied = '{"waits": "exclusive turn on machine"}\n', '{"note": "copies"}\n'
    places = with_peers([FIRST, SECOND])
    late = [ended(text, returncode=-15, timed_out=True) for text in (waited, copied)]
    found = loads.read_all(places, late)
    assert list(found.failed) == [Gpu(2), Gpu(0)]
    assert found.failed[Gpu(0)].message.values["last"].code == "load_waited"  # type: ignore[union-attr]
    with pytest.raises(LoadFailed, match="gpu2"):
        found.raise_failed()


def test_a_program_may_see_the_other_gpus_after_its_own() -> None:
    places = with_peers([FIRST, SECOND])
    assert [one.environment()["CUDA_VISIBLE_DEVICES"] for one in places] == [
        f"{uuid(0)},{uuid(2)}",
        f"{uuid(2)},{uuid(0)}",
    ]
    assert [one.about()["uuid"] for one in places] == [uuid(0), uuid(2)]


def test_a_count_of_all_gpus_has_the_wrong_results_of_each_and_those_of_none() -> None:
    wrong, differing = read_wrong(UNEQUAL), read_wrong(DIGESTS_OF_GPUS)
    (unread,) = all_of({"row": 7})
    failure = LoadFailed("load_failed", (wrong, differing, unread))
    given = Results((Place(GPUS, (FIRST, SECOND)),), {}, {GPUS: failure})
    assert given.wrong("parallel_miscompares", {GPUS}) == {GPUS: [wrong, unread]}
    assert given.wrong("parallel_disagreements", {GPUS}) == {GPUS: [differing, unread]}
    assert given.wrong("parallel_miscompares", ()) == {Gpu(2): [wrong]}
    with pytest.raises(LoadFailed) as caught:
        given.raise_failed()
    assert caught.value is failure


OF_CORES = Gemm(dtype="float64", seconds=2.0, cores={"all": ((0,), (1,))})
OF_RAM = MemoryRandom(seconds=2.0, cores={"socket0": ((0,),)}, llc_bytes=1, gib=1.0)
OF_ARRAYS = MemoryBandwidth(seconds=2.0, cores={"all": ((0,),)}, llc_bytes=1)
WORDS = {**vram([(64, 0, 4)]), "check": "ram", "component": "socket0"}
FAR = {**WORDS, "component": "socket0->socket1"}


def died(ask: AnyAsk, place: Place, wrong: Any) -> Results:
    """What a load of processors or RAM leaves that found this and died."""
    text = printed(ask, {}, wrong=(read_wrong(wrong),))
    return loads.read_all([place], [ProgramResult(asks.argv("python", ask), 1, text, "", 10.0)])


@each(
    "ask, place, wrong, count, due, counts",
    [
        *(
            (OF_CORES, Place(CPU), one, "cpu_gemm_miscompares_f64", CPU, {CPU: 1.0})
            for one in (CORE_REPEATED, INEXACT, DIGESTS)
        ),
        (OF_RAM, Place(MEMORY), WORDS, "memory_random_miscompares", Socket(0), {Socket(0): 1.0}),
        (OF_RAM, Place(MEMORY), FAR, "memory_random_miscompares", Socket(0), {}),
        (OF_ARRAYS, Place(MEMORY), ARRAY, "memory_triad_miscompares", MEMORY, {MEMORY: 1.0}),
        (OF_ARRAYS, Place(MEMORY), ARRAY, "memory_copy_miscompares", MEMORY, {}),
    ],
)
def test_wrong_results_of_the_host_count_for_what_is_counted(
    ask: AnyAsk,
    place: Place,
    wrong: Any,
    count: str,
    due: Component,
    counts: dict[Component, float],
) -> None:
    left = died(ask, place, wrong)
    noted = {name: first_wrong(name, all_of(wrong)) for name in counts}
    assert left.counts(count, {due}, first_wrong) == (counts, noted)
    with pytest.raises(LoadFailed) as caught:
        left.raise_failed()
    assert caught.value is left.failed[place.component]


def test_what_a_load_of_the_host_reports_is_heard_at_its_end() -> None:
    programs = Printed(sound)
    results = programs.loads().run(lambda _: OF_CORES, [Place(CPU)])
    assert (programs.shown, programs.heard) == ([], [None])
    assert [[one.component for one in stage] for stage in programs.asked] == [[CPU]]
    assert results.values("cpu_gemm_core_f64") == {Core(0): 1.0, Core(1): 1.0}


RING = {**one_bit(3), "dtype": "f16"}
TO_PEER = {**COPIED, "found_s": 5.0}
TO_GPU = {**COPIED, "component": "gpu0", "check": "copy_h2d"}
GPUS_DUE = (Gpu(0), Gpu(1), Gpu(2))
PAIRS_DUE = (Pair(Gpu(2), Gpu(0)), Pair(Gpu(2), Gpu(1)))


SEVERAL = (REPEATED, TRANSFERRED, OF_PAIR, VECTOR, REPEATED)
ANY = {"component": "gpu0"}


@each(
    "wrong, reading, counts",
    [
        ((RING,), "burn_f16_miscompares", {Gpu(2): 1.0}),
        ((RING,), "burn_f32_miscompares", {}),
        (({**INPUTS, "dtype": "f16"},), "burn_f16_miscompares", {Gpu(2): 1.0}),
        ((RING,), "burn_copy_miscompares", {}),
        ((TO_GPU,), "burn_copy_miscompares", {Gpu(2): 1.0}),
        (({**TO_GPU, "check": "copy_d2h"},), "burn_copy_miscompares", {Gpu(2): 1.0}),
        ((TO_GPU,), "burn_peer_miscompares", {}),
        ((TO_PEER,), "burn_peer_miscompares", {Pair(Gpu(2), Gpu(0)): 1.0}),
        ((TO_PEER,), "burn_copy_miscompares", {}),
        ((vram([(64, 0, 4)]),), "vram_miscompares", {Gpu(2): 1.0}),
        ((ANY,), "burn_f16_miscompares", {Gpu(2): 1.0}),
        ((ANY,), "vram_miscompares", {Gpu(2): 1.0}),
        ((ANY,), "burn_peer_miscompares", {}),
        (SEVERAL, "gemm_f16_miscompares", {Gpu(2): 2.0}),
        (SEVERAL, "gemm_f32_miscompares", {}),
        (SEVERAL, "copy_own_miscompares", {Gpu(2): 1.0}),
        (SEVERAL, "copy_own_p2p_miscompares", {Pair(Gpu(2), Gpu(0)): 1.0}),
        (SEVERAL, "elementwise_miscompares", {Gpu(2): 1.0}),
    ],
)
def test_a_wrong_result_speaks_against_its_own_count(
    wrong: tuple[dict[str, Any], ...], reading: str, counts: dict[str, float]
) -> None:
    given = results({}, {Gpu(2): LoadFailed("load_failed", all_of(*wrong))})
    due = PAIRS_DUE if reading.endswith(("peer_miscompares", "p2p_miscompares")) else GPUS_DUE
    made, notes = given.counts(reading, due, first_wrong)
    assert (made, notes.keys()) == (counts, counts.keys())
    found = given.wrong(reading, due)
    assert {name: float(len(one)) for name, one in found.items()} == counts
    assert all(one in all_of(*wrong) for own in found.values() for one in own)


def test_a_program_that_saw_some_of_the_gpus_counts_those() -> None:
    on = (Place(Gpu(0), (FIRST, SECOND)),)
    pair = LoadReading("p2p", "GiB", Pair(Gpu(0), Gpu(1)), 2.0)
    given = Results(on, {Gpu(0): output(pair, wrong=all_of(TO_PEER))})
    assert given.values("p2p") == {Pair(Gpu(0), Gpu(2)): 2.0}
    assert set(given.wrong("burn_peer_miscompares", ())) == {Pair(Gpu(0), Gpu(2))}
    stray = LoadReading("p2p", "GiB", Pair(Gpu(0), Gpu(2)), 2.0)
    with pytest.raises(LoadFailed, match="gpu0->gpu2, and was given 2 GPUs"):
        Results(on, {Gpu(0): output(stray)}).values("p2p")


def test_the_load_of_all_gpus_names_them_all_and_one_of_the_host_none() -> None:
    assert Place(GPUS, (FIRST, SECOND)).about() == {"uuids": [uuid(0), uuid(2)]}
    host = Place(GPUS, ())
    assert host.environment()["CUDA_VISIBLE_DEVICES"] == ""
    assert Place(Gpu(0)).about() == {}
