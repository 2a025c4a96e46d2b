"""The check of collective operations, with a load that prints what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nccl_texts
import suite_box
from cases import each
from gpu_machine import device, link, machine, pairs
from load_texts import lines_of, printed, text_of

from acceptance.core.parts import GPUS, Gpu, Pair
from acceptance.core.parts import parse as parse_component
from acceptance.expect import gpu_limits
from acceptance.loads import asks
from acceptance.loads.collective.contract import COLLECTIVE_VARIANTS, WITH_MULTICAST, Ask
from acceptance.loads.miscompare import of_variant
from acceptance.loads.protocol import parse
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.machine.machine_file import DeclaredCollectives, Machine
from acceptance.session.loads import Place, Results
from acceptance.suites import link as links
from acceptance.suites.fixtures import collectives

Result = tuple[str, int]
Spoil = Callable[[list[dict[str, Any]]], None]


def linked(count: int, read: str = "ok") -> Inventory:
    """GPUs of which each has an NVLink to each other."""
    return machine(
        *(
            device(
                index,
                name="a card without a sheet",
                links=tuple(link(other, to=other) for other in range(count) if other != index),
            )
            for index in range(count)
        ),
        found=pairs(count, read, read),
    )


def done(
    seen: Inventory,
    spoil: Spoil = lambda _told: None,
    code: int = 0,
    arms: Any = COLLECTIVE_VARIANTS,
    **more: Any,
) -> Result:
    due = gpus(seen)
    ask = Ask(backend="nccl", ranks=len(due), seconds=1.0 / len(arms), arms=arms)
    about = {"uuids": [str(gpu.uuid) for gpu in due]}
    told = lines_of(printed(ask, about, addresses=[gpu.pci_address for gpu in due], **more))
    spoil(told)
    return text_of(told), code


def asked(
    seen: Inventory,
    result: Result,
    declared: Machine | None = None,
    programs: suite_box.Printed | None = None,
) -> suite_box.Said:
    """What the check says of a load that prints this, with this exit code."""
    due, programs = gpus(seen), programs or suite_box.Printed(lambda _part: result)
    names = tuple(gpu.name for gpu in due)
    made = suite_box.planned(seen, names, ("link.collectives",), "digest", declared)
    return suite_box.ask(
        made,
        "link.collectives",
        links.test_collectives,
        loads=programs.loads(),
        due_gpus=due,
        load_s={"collective": 1.0},
        inventory=seen,
        model_sheets=gpu_limits.sheets(),
    )


def via(first: int, second: int) -> str:
    return nccl_texts.P2P


def test_linked_gpus_whose_data_goes_over_the_links_pass() -> None:
    seen = linked(3)
    said = asked(seen, done(seen, via=via))
    assert (said.outcome, said.message) == ("pass", "")
    every = {Pair(Gpu(a), Gpu(b)) for a in range(3) for b in range(3) if a != b}
    for name in links.TRANSPORTS:
        assert said.measured(name) == dict.fromkeys(every, 0.0)
    assert said.measured("collective_send_receive_ratio") == dict.fromkeys(every, 1.0)
    for name in links.COLLECTIVE_RATES[:-1]:
        assert said.measured(name).keys() == {GPUS}
    assert [(one.component, one.name) for one in said.tables()] == [(GPUS, "collectives")]


MULTICAST = Machine(schema=1, name="m", collectives=DeclaredCollectives(multicast=True))


def test_multicast_is_a_third_arm_where_the_machine_file_asks_for_it() -> None:
    seen = linked(3)
    arms = WITH_MULTICAST
    said = asked(seen, done(seen, via=via, arms=arms), declared=MULTICAST)
    assert (said.outcome, said.message) == ("pass", "")
    for name in (*links.MULTICAST_RATES, "collective_disagreements_multicast"):
        assert said.measured(name).keys() == {GPUS}
    assert set(said.measured("collective_miscompares_multicast").values()) == {0.0}
    counts = {("collective_miscompares_multicast", Gpu(1)): 2.0}
    wrong_one = asked(seen, done(seen, via=via, arms=arms, values=counts), declared=MULTICAST)
    assert wrong_one.outcome == "fail"
    assert "collective_miscompares_multicast on gpu1: measured 2" in wrong_one.message
    assert asked(seen, done(seen, via=via), declared=MULTICAST).outcome == "error"
    assert asked(seen, done(seen, via=via, arms=arms)).outcome == "error"


@each(
    "instead, said",
    [("AllReduce: 8 Bytes -> Algo RING proto LL time 1.0", "it used RING"), ("Other line", "log")],
)
def test_multicast_that_nccl_did_not_use_proves_nothing(instead: str, said: str) -> None:
    seen = linked(3)
    line = "AllReduce: 1073741824 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}"
    spoil = changed_log(line, instead)
    told = asked(seen, done(seen, spoil, via=via, arms=WITH_MULTICAST), declared=MULTICAST)
    assert told.outcome == "error"
    assert "shows no all-reduce that used it" in told.message
    assert said in told.message
    assert told.measured("collective_all_reduce_multicast") == {}


def two(name: str, *told: str | None, path: str = "PHB") -> Inventory:
    """Two cards of a model, and what the driver tells of reads and writes between them."""
    cards = (device(index, name=name) for index in range(2))
    return machine(*cards, found=pairs(2, *told, path=path))


GEFORCE = "NVIDIA GeForce RTX 4090"
UNKNOWN = "a card without a sheet"


@each(
    "seen, faults, doubts",
    [
        (two(GEFORCE, "chipset-not-supported", "not-supported"), 0.0, 0.0),
        (linked(2), 1.0, 0.0),
        # Peer access within reach that is not used.
        (two(GEFORCE, "ok", "ok", path="PIX"), 0.0, 1.0),
        # A driver that does not tell leaves the path unjudged.
        (two(UNKNOWN, None, None), None, None),
    ],
)
def test_data_that_goes_through_host_memory(
    seen: Inventory, faults: float | None, doubts: float | None
) -> None:
    said = asked(seen, done(seen))
    assert said.outcome == ("fail" if faults else "pass")
    both = {Pair(Gpu(0), Gpu(1)), Pair(Gpu(1), Gpu(0))}
    for name, value in (("transport_faults", faults), ("transport_doubts", doubts)):
        assert said.measured(name) == ({} if value is None else dict.fromkeys(both, value))
        assert ((name, Pair(Gpu(0), Gpu(1))) in said.skipped()) == (value is None)
    assert said.measured("transport_faults_p2p_off") == dict.fromkeys(both, 0.0)
    joined = [one for one in said.notes("transport_faults").values() if "1 NVLinks join" in one]
    assert len(joined) == (2 if faults else 0)


def test_a_slow_path_fails_and_says_what_it_points_to() -> None:
    seen = linked(4)

    def rate(arm: str, first: int, second: int) -> float:
        return 10.0 if (arm, first, second) == ("default", 0, 1) else 20.0

    said = asked(seen, done(seen, via=via, rate=rate))
    assert said.outcome == "fail"
    assert "collective_send_receive_ratio on gpu0->gpu1: measured 0.5" in said.message
    for name in links.PATH_RATE:
        (path, told), *others = said.notes(name).items()
        assert (path, others) == ("gpu0->gpu1", [])
        assert told.startswith("points to what joins gpu0 (")
        assert "(1 x NVLink)" in told


WRONG = {
    "all_reduce": ("collective_miscompares", "gpu1", Gpu(1)),
    "send_receive": (
        "collective_send_receive_miscompares",
        "gpu0->gpu1",
        Pair(Gpu(0), Gpu(1)),
    ),
}


def wrong(check: str, arm: str) -> dict[str, Any]:
    first = {"index": [3], "expected": "5.0", "got": "-1.0"}
    return {
        "miscompare": {
            "component": WRONG[check][1],
            "check": check,
            "format": "f32",
            "arm": arm,
            "size": 4096,
            "turn": 7,
            "elements": 1,
            "unwritten": 1,
            "first": [first],
        }
    }


@each("check, arm", [(check, arm) for check in WRONG for arm in COLLECTIVE_VARIANTS])
def test_a_wrong_element_is_counted_where_it_was(check: str, arm: Any) -> None:
    seen = linked(2)
    base, told, component = WRONG[check]
    name = of_variant(base, arm)

    def spoil(lines: list[dict[str, Any]]) -> None:
        lines.insert(1, wrong(check, arm))

    said = asked(seen, done(seen, spoil, via=via, values={(name, parse_component(told)): 1.0}))
    assert said.outcome == "fail"
    assert f"{name} on {told}: measured 1" in said.message
    assert ": -1.0 instead of " in said.notes(name)[told]
    dead = asked(seen, done(seen, spoil, 1, via=via))
    assert dead.outcome == "error"
    assert dead.measured(name) == {component: 1.0}
    assert ": -1.0 instead of " in dead.notes(name)[told]


def test_ranks_that_hold_other_bits_fail() -> None:
    seen = linked(2)
    digests = {"0" * 16: ["gpu0"], "1" * 16: ["gpu1"]}
    differing = {"check": "digest", "found": "sums that differ", "digests": digests}

    def spoil(lines: list[dict[str, Any]]) -> None:
        lines.insert(1, {"miscompare": differing})

    counts = {("collective_disagreements_p2p_off", GPUS): 3.0}
    said = asked(seen, done(seen, spoil, via=via, values=counts))
    assert said.outcome == "fail"
    assert "collective_disagreements_p2p_off on gpus: measured 3" in said.message
    assert said.notes("collective_disagreements_p2p_off").keys() == {"gpus"}
    assert said.notes("collective_disagreements") == {}
    dead = asked(seen, done(seen, spoil, 1, via=via))
    assert dead.outcome == "error"
    assert dead.measured("collective_disagreements") == {GPUS: 1.0}


def changed_log(old: str, new: str) -> Spoil:
    def spoil(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if "log" in line:
                line["text"] = line["text"].replace(old, new)

    return spoil


@each(
    "old, new, said",
    [
        ("busId 1000 ", "busId 7000 ", "has a group of the GPUs 0000:07:00.0"),
        ("Init COMPLETE", "Init COMPLET", "NCCL"),
    ],
)
def test_a_log_of_other_gpus_or_one_not_understood_proves_nothing(
    old: str, new: str, said: str
) -> None:
    seen = linked(2)
    told = asked(seen, done(seen, changed_log(old, new), via=via))
    assert told.outcome == "error"
    assert said in told.message


def test_paths_that_were_tried_again_are_told_by_their_names_in_the_run() -> None:
    seen = linked(3)
    row = ["default", "gpu0->gpu1", "gpu0->gpu1", 10.0, 11.0]

    def spoil(lines: list[dict[str, Any]]) -> None:
        columns = ["arm", "slow path", "tried", "GB/s", "again GB/s"]
        rows = [row, ["p2p_off", *row[1:]]]
        lines.insert(-1, {"table": "collective_slow_paths", "columns": columns, "rows": rows})
        lines[-1]["readings"] += 1

    output = parse(done(seen, spoil, via=via)[0])
    due = gpus(seen)
    for order, tried in ((due, "gpu0->gpu1"), (due[::-1], "gpu2->gpu1")):
        (trial,) = collectives.trials(Results((Place(GPUS, order),), {GPUS: output}))
        assert (str(trial.slow), str(trial.tried)) == (tried, tried)
        assert (trial.first, trial.again) == (10.0, 11.0)


def test_the_load_is_one_program_that_sees_the_gpus_that_are_due() -> None:
    seen = linked(3)
    for declared, arms in ((None, COLLECTIVE_VARIANTS), (MULTICAST, WITH_MULTICAST)):
        result = done(seen, via=via, arms=arms)
        programs = suite_box.Printed(lambda _part, result=result: result)
        assert asked(seen, result, declared, programs).outcome == "pass"
        ((part,),) = programs.asked
        ask = Ask(backend="nccl", ranks=3, seconds=1.0 / len(arms), arms=arms)
        assert (part.component, asks.of_argv(part.argv)) == (GPUS, ask)
        assert part.env is not None
        assert part.env["CUDA_VISIBLE_DEVICES"] == ",".join(str(gpu.uuid) for gpu in gpus(seen))
