"""NCCL's log: which transport each pair of GPUs has, and what makes a log worth nothing."""

from __future__ import annotations

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from nccl_texts import (
    HOST,
    SHM,
    V2_18_OLD,
    V2_28,
    V2_30,
    VERSIONS,
    Version,
    address,
    kinds,
    processes,
)

from acceptance.core.message import Message
from acceptance.machine.transport import Transport
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import nccl_log
from acceptance.tools.read.nccl_log import Choice, NcclLog, Remark


def line(message: str, rank: int = 0) -> str:
    return f"{HOST}:{100 + rank}:{200 + rank} [{rank}] NCCL INFO {message}\n"


def refused(texts: list[str]) -> tuple[str, str]:
    """Why a log is worth nothing: the code, and the line that is quoted."""
    with pytest.raises(UnreadableOutput) as fault:
        nccl_log.parse(texts)
    why = fault.value.message.values["why"]
    assert isinstance(why, Message)
    return why.code, str(fault.value.message.values.get("line", ""))


def bridged(first: int, second: int) -> str:
    """Of four GPUs, 0 and 1 as well as 2 and 3 have a bridge."""
    return "P2P/CUMEM/read" if first // 2 == second // 2 else SHM


# --- what a whole log says ---


@each("version", VERSIONS, told=lambda version: version.name)
def test_every_version(version: Version) -> None:
    found = nccl_log.parse(processes(version=version))
    there, back = (address(0), address(1)), (address(1), address(0))
    assert found == NcclLog(
        version=version.name,
        communicators=(there,),
        transports=dict.fromkeys((there, back), Transport("P2P", ("CUMEM",))),
        choices=(
            Choice(
                None if version.algorithms.startswith("{") else "AllReduce",
                1 << 30,
                "RING",
                "SIMPLE",
            ),
        ),
        multicast=dict.fromkeys(there, False),
    )


def without(text: str, *words: str) -> str:
    """The text without the lines with one of these words."""
    lines = text.splitlines(keepends=True)
    return "".join(one for one in lines if not any(word in one for word in words))


def replaced(old: str, new: str) -> list[str]:
    return [text.replace(old, new) for text in processes()]


def more(*messages: str) -> list[str]:
    """A sound log with more lines of the first rank."""
    first, second = processes()
    return [first + "".join(map(line, messages)), second]


def cut_trees(letters: int) -> list[str]:
    """With many trees, whose line has so many letters: NCCL cuts a line after 1023."""
    first, second = processes(channels=64)
    (trees,) = [one for one in first.splitlines() if "Trees" in one]
    return [first.replace(trees, trees[:letters]), second]


FIRST, SECOND = processes()
THERE, BACK = (address(0), address(1)), (address(1), address(0))
AGAIN = "AllReduce: {0} Bytes -> Algo NVLS proto SIMPLE channel{{Lo..Hi}}={{0..15}}"
CHOSEN = Choice("AllReduce", 8, "NVLS", "SIMPLE")
SET = ("NCCL_P2P_DISABLE set by environment to 1", "NCCL_NVLS_ENABLE set by environment to 0.")
NVLS = "NVLS multicast support is {0}available on dev {1}"
OF_BRIDGES = {
    (address(one), address(other)): Transport("P2P", ("CUMEM/read",))
    if one // 2 == other // 2
    else Transport("SHM", ("direct/direct",))
    for one in range(4)
    for other in range(4)
    if one != other
}
IN_A_RING = {(address(one), address((one + way) % 4)) for one in range(4) for way in (1, -1)}


@each(
    "texts, name, due",
    [
        # a domain has four digits and more: Hyper-V invents some of eight
        (
            replaced("busId 10000 ", "busId c05c00b0f1 "),
            "communicators",
            (("c05c0:0b:0f.1", address(1)),),
        ),
        (
            replaced("busId 10000 ", "busId 101000 "),
            "communicators",
            (("0001:01:00.0", address(1)),),
        ),
        (processes(4, bridged, exchange=True), "transports", OF_BRIDGES),
        (
            more("Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM/read"),
            "transports",
            {
                THERE: Transport("P2P", ("CUMEM", "CUMEM/read")),
                BACK: Transport("P2P", ("CUMEM",)),
            },
        ),
        # a communicator that was not used
        ([without(text, " via ", "Connected") for text in processes()], "transports", {}),
        (
            processes(via=lambda *_: SHM, extra=SET),
            "environment",
            {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"},
        ),
        *(
            (
                [
                    text.replace(NVLS.format("not ", rank), NVLS.format("", rank) + said)
                    for rank, text in enumerate(processes())
                ],
                "multicast",
                dict.fromkeys(THERE, True),
            )
            for said in (
                "",
                " (NVLS_NCHANNELS 16)",
                ", transport enabled, symmetric multimem disabled",
            )
        ),
        # what is chosen again is there once
        (
            more(AGAIN.format(8), AGAIN.format(16), AGAIN.format(8)),
            "choices",
            (
                *nccl_log.parse(processes()).choices,
                CHOSEN,
                Choice("AllReduce", 16, "NVLS", "SIMPLE"),
            ),
        ),
        (  # the version alone has no prefix
            [
                f"NCCL version {V2_28.name}\n{without(FIRST, 'NCCL version')}",
                without(SECOND, "NCCL version"),
            ],
            "version",
            V2_28.name,
        ),
    ],
)
def test_what_a_log_says(texts: list[str], name: str, due: object) -> None:
    assert getattr(nccl_log.parse(texts), name) == due


def test_only_pairs_with_a_connection_are_there() -> None:
    found = nccl_log.parse(processes(4, bridged)).transports
    assert found == {ends: OF_BRIDGES[ends] for ends in found}
    assert found.keys() < IN_A_RING


@each(
    "texts, same",
    [
        # one process with a thread for each rank
        ([FIRST + SECOND.replace(":101:", ":100:")], [FIRST, SECOND]),
        # trees that are left out have no ways due
        (cut_trees(1020), processes(channels=64)),
    ],
)
def test_what_changes_nothing(texts: list[str], same: list[str]) -> None:
    assert nccl_log.parse(texts) == nccl_log.parse(same)


@each(
    "via, kind, way",
    (
        ("P2P/direct pointer", "P2P", "direct pointer"),
        ("P2P/direct pointer/read", "P2P", "direct pointer/read"),
        ("P2P/IPC", "P2P", "IPC"),
        ("P2P/IPC/read/CE", "P2P", "IPC/read/CE"),
        ("P2P/CUMEM/CE", "P2P", "CUMEM/CE"),
        ("P2P/MNNVL", "P2P", "MNNVL"),
        ("P2P/indirect/2[2]/read", "indirect", "indirect/2[2]/read"),
        ("SHM/direct/direct", "SHM", "direct/direct"),
        ("SHM/CE/direct", "SHM", "CE/direct"),
        ("NET/Socket/0", "NET", "Socket/0"),
        ("NET/IB/3/GDRDMA(PCI)/Shared", "NET", "IB/3/GDRDMA(PCI)/Shared"),
        ("NET/AWS Libfabric/0(1)/GDRDMA", "NET", "AWS Libfabric/0(1)/GDRDMA"),
    ),
)
def test_transports(via: str, kind: str, way: str) -> None:
    found = nccl_log.parse(processes(via=lambda _first, _second: via))
    assert {(one.kind, one.ways) for one in found.transports.values()} == {(kind, (way,))}


def test_communicators_of_some_gpus() -> None:
    """A second communicator has GPUs 1 and 0, in that order, and was not used."""
    texts = processes(4, bridged)
    for rank in (0, 1):
        own = (
            f"ncclCommInitRank comm 0x7f00 rank {1 - rank} nranks 2 cudaDev {rank} nvmlDev {rank} "
            f"busId {0x10 + rank:x}000 commId 0x99 - Init "
        )
        ring = line("Channel 00/01 : 0 1", rank) if rank == 1 else ""
        tree = "1/-1/-1->0->-1" if rank == 1 else "-1/-1/-1->1->0"
        texts[rank] += (line(own + "START", rank) + ring + line(f"Trees [0] {tree}", rank)) + line(
            own + "COMPLETE", rank
        )
    found = nccl_log.parse(texts)
    assert found.communicators == (
        tuple(map(address, range(4))),
        (address(1), address(0)),
    )
    assert found.transports == nccl_log.parse(processes(4, bridged)).transports


def test_remarks() -> None:
    """NCCL says a thing often; it is there once."""
    disabled = (
        "P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1."
    )
    refused_by_cuda = "Could not enable P2P between dev 1(=11000) and dev 0(=10000)"
    texts = processes(via=lambda *_: SHM, extra=(disabled, refused_by_cuda, disabled))
    texts[0] += (
        f"\n[2026-09-09 11:29:56] {HOST}:100:200 [0] ras/client_support.cc:181 NCCL WARN Call to "
        "bind failed: Address already in use\n"
        f"\n{HOST}:100:200 [0] graph/paths.cc:310 (check) NCCL WARN P2P is disabled between NVLINK "
        "connected GPUs 0 and 1. This should not be the case given their connectivity.\n"
    )
    back = address(1), address(0)
    assert [(one.kind, one.ends) for one in nccl_log.parse(texts).remarks] == [
        ("p2p-disabled", back),
        ("p2p-disabled-nvlink", (address(0), address(1))),
        ("p2p-refused", back),
        ("warning", None),
    ]
    assert nccl_log.parse(texts).remarks[2] == Remark("p2p-refused", refused_by_cuda, back)


# --- what makes it worth nothing ---

(BEGUN,) = [one for one in FIRST.splitlines(keepends=True) if "Init START" in one]
WITHOUT_PEERS = processes(via=lambda *_: SHM)
WARNING = f"{HOST}:100:200 [0] init.cc:1 NCCL WARN Cuda failure 'out of memory'"
THRESHOLDS = line("threadThresholds 8/8/64 | 16/8/64 | 512 | 512")


def second_group(device: int, bus: str) -> list[str]:
    """A second communicator of one GPU, with this number and address."""
    own = f"comm 0x7f00 rank 0 nranks 1 cudaDev 0 nvmlDev {device} busId {bus} commId 0x99 - Init "
    return more(own + "START", "Channel 00/01 : 0", "Trees [0] -1/-1/-1->0->-1", own + "COMPLETE")


@each(
    "texts, code, quoted",
    [
        *(
            (texts, "nccl_no_rank", None)
            for texts in ([], [""], [line("NCCL version 2.28.9+cuda13.0")])
        ),
        ([FIRST[:-4], SECOND], "nccl_line_cut", FIRST.splitlines()[-1][:-3]),
        (processes(4)[:3], "nccl_rank_missing", None),
        (
            [f"{FIRST.partition(THRESHOLDS)[0]}\n{WARNING}\n", SECOND],
            "nccl_rank_incomplete",
            WARNING,
        ),
        *(
            ([FIRST, SECOND, text], code, None)
            for text, code in (
                ("Traceback (most recent call last):\n", "nccl_line_unknown"),
                (f"{HOST}:100:200 [0] NCCL TRACE 0 -> 1\n", "nccl_line_unknown"),
                ("other:100:200 [0] NCCL INFO Using network Socket\n", "nccl_two_hosts"),
            )
        ),
        (cut_trees(300), "nccl_line_unknown", None),
        # a rank that two threads initialise
        (
            [FIRST.replace(BEGUN, BEGUN + BEGUN.replace(":100:200 ", ":100:999 ")), SECOND],
            "nccl_contradiction",
            None,
        ),
        ([FIRST, without(SECOND, "Trees")], "nccl_tree_missing", None),
        # two runs in one log: the one with peer access and the control without it
        *(
            (
                [one + two for one, two in zip((FIRST, SECOND), other, strict=True)],
                "nccl_contradiction",
                None,
            )
            for other in (
                WITHOUT_PEERS,
                [text.replace("0xc4cf3e318640a470", "0xc5") for text in WITHOUT_PEERS],
            )
        ),
        # two processes that disagree on the environment
        (
            [
                FIRST + line("NCCL_P2P_LEVEL set by environment to SYS"),
                SECOND + line("NCCL_P2P_LEVEL set by environment to PIX", 1),
            ],
            "nccl_contradiction",
            None,
        ),
        # a second communicator has another GPU of the same number, or the same of another
        (second_group(1, "10000"), "nccl_contradiction", "[1] 0000:10:00.0"),
        (second_group(0, "11000"), "nccl_contradiction", "[0] 0000:11:00.0"),
    ],
)
def test_what_proves_nothing(texts: list[str], code: str, quoted: str | None) -> None:
    found, said = refused(texts)
    assert (found, quoted or said) == (code, said)


@each("version", VERSIONS, told=lambda version: version.name)
def test_cut_anywhere(version: Version) -> None:
    """A log that lost its end in any process is worth nothing, unless all is connected by then."""
    texts = processes(version=version)
    whole = nccl_log.parse(texts)
    for rank, text in enumerate(texts):
        lines = text.splitlines(keepends=True)
        last = max(place for place, one in enumerate(lines) if "COMPLETE" in one and "Init" in one)
        for place in range(len(lines)):
            cut = [*texts[:rank], "".join(lines[:place]), *texts[rank + 1 :]]
            connected = any("Connected all trees" in one for one in lines[:place])
            if place <= last or not connected:
                refused(cut)
            else:
                assert nccl_log.parse(cut).transports == whole.transports


@each(
    "message, code",
    (
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/common device", "nccl_transport_unknown"),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/write", "nccl_transport_unknown"),
        ("Channel 00 : 0[0] -> 1[1] via SHM/direct", "nccl_transport_unknown"),
        ("Channel 00 : 0[10000] -> 1[11000] via direct shared memory", "nccl_transport_unknown"),
        ("Channel 00/0 : 0[0] -> 1[1] [send] via P2P/CUMEM", "nccl_transport_unknown"),
        ("Channel 00/0 : 0[0] -> 1[1] via NET/Socket/0", "nccl_transport_unknown"),
        ("Channel 00/0 : 0[0] -> 1[1] via QUIC/0", "nccl_transport_unknown"),
        ("CollNet 00/0 : 0 [send] via COLLNET/SHARP/1", "nccl_transport_unknown"),
        ("Ring 00 : 0 -> 1 [send] via NET/Socket/0", "nccl_transport_unknown"),
        ("Channel 00/0 : 0[0] -> 1[1] vía P2P/CUMEM", "nccl_line_unknown"),
        ("Channel 07/0 : 0[3] -> 1[1] via P2P/CUMEM", "nccl_of_no_rank"),
        ("Channel 07/0 : 0[0] -> 0[0] via P2P/CUMEM", "nccl_contradiction"),
        (f"Channel 00 : 0[0] -> 1[1] via {SHM}", "nccl_contradiction"),
        ("Channel 00/02 : 0 1", "nccl_of_no_rank"),
        ("Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1", "nccl_of_no_rank"),
        ("Connected all the rings", "nccl_line_unknown"),
        ("NCCL version 2.28.8+cuda13.0", "nccl_no_version"),
        ("NCCL version 2.28", "nccl_line_unknown"),
        ("NVLS multicast support is available on dev 0", "nccl_contradiction"),
        ("NVLS multicast support is available on dev 5", "nccl_of_no_rank"),
        ("NVLS multicast support is perhaps available on dev 0", "nccl_line_unknown"),
        ("P2P is disabled between connected GPUs 0 and 7. Yes.", "nccl_of_no_rank"),
        ("P2P is disabled between GPUs 0 and 1.", "nccl_line_unknown"),
        ("Could not enable P2P between dev 1(=11000) and dev 0(=ff000)", "nccl_of_no_rank"),
        ("Could not enable P2P between dev 1(=11000) and dev 0(=ff008)", "nccl_address_unknown"),
        ("AllReduce: 8 Bytes -> Algo 9 proto 2 time 1.0", "nccl_line_unknown"),
        (
            "AllReduce: 8 Bytes -> Algo RING proto SIMPEL channel{Lo..Hi}={0..1}",
            "nccl_line_unknown",
        ),
        ("AllReduce: many Bytes -> Algo RING proto SIMPLE", "nccl_line_unknown"),
        (
            "ncclCommSplit comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 10000 parent 0x2 "
            "childCount 1 color 0 key 0 - Init START",
            "nccl_line_unknown",
        ),
        (
            "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 10000 commId 0xc4cf3e318640a470 - "
            "Init START",
            "nccl_contradiction",
        ),
        (
            "comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 10000 commId 0x5 - Init START",
            "nccl_rank_incomplete",
        ),
        (
            "comm 0x1 rank 1 nranks 1 cudaDev 0 nvmlDev 0 busId 10000 commId 0x5 - Init START",
            "nccl_contradiction",
        ),
        ("Using network Soc" + line("Using network Socket").strip(), "nccl_line_unknown"),
    ),
)
def test_a_line_that_is_wrong(message: str, code: str) -> None:
    texts = processes()
    assert refused([texts[0] + line(message), texts[1]])[0] == code


@each(
    "old, new, code",
    (
        # two GPUs that are one, a rank that is complete on another GPU than it began
        ("busId 11000", "busId 10000", "nccl_contradiction"),
        ("nvmlDev 1", "nvmlDev 0", "nccl_contradiction"),
        (
            "busId 11000 commId 0xc4cf3e318640a470 - Init C",
            "busId 12000 commId 0xc4cf3e318640a470 - Init C",
            "nccl_contradiction",
        ),
        (
            "commId 0xc4cf3e318640a470 - Init C",
            "commId 0xc4cf3e318640a471 - Init C",
            "nccl_contradiction",
        ),
        ("busId 11000", "busId 11008", "nccl_address_unknown"),
        ("rank 1 nranks 2 cudaDev", "rank 1 nranks 3 cudaDev", "nccl_contradiction"),
        ("Channel 01/02 : 0 1", "Channel 01/02 : 0 0", "nccl_contradiction"),
        ("Channel 01/02 : 0 1", "Channel 00/02 : 0 1", "nccl_contradiction"),
        ("Channel 01/02 : 0 1", "Channel 01/03 : 0 1", "nccl_contradiction"),
        ("Channel 01/02 : 0 1", "Using network", "nccl_ring_missing"),
        ("Trees [0] -1/-1/-1->1->0", "Trees [0] -1/-1/-1->0->1", "nccl_contradiction"),
        ("Trees [0] -1/-1/-1->1->0", "Trees [0] 5/-1/-1->1->0", "nccl_contradiction"),
        ("Trees [0] -1/-1/-1->1->0", "Trees [1] -1/-1/-1->1->0", "nccl_contradiction"),
        ("Connected all trees", "Using network", "nccl_rank_unconnected"),
    ),
)
def test_contradictions(old: str, new: str, code: str) -> None:
    texts = processes()
    altered = [
        text.replace(old, new) if rank == 1 or "Channel" in old else text
        for rank, text in enumerate(texts)
    ]
    assert altered != texts
    assert refused(altered)[0] == code


def test_every_way_of_the_rings_is_needed() -> None:
    """The other channel has the same transport; one that is gone may have had another."""
    texts = processes(4, bridged)
    for rank, text in enumerate(texts):
        lines = text.splitlines(keepends=True)
        for place, one in enumerate(lines):
            if " via " in one:
                less = [*lines[:place], *lines[place + 1 :]]
                altered = [*texts[:rank], "".join(less), *texts[rank + 1 :]]
                assert refused(altered)[0] == "nccl_way_missing", one


# --- altered logs ---


@given(
    st.sampled_from((V2_18_OLD, V2_28, V2_30)),
    st.integers(0, 3),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.sampled_from(("letter", "cut", "drop", "twice", "swap", "move")),
            st.characters(codec="ascii"),
            st.integers(1, 40),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_an_altered_log_gives_no_other_transport(
    version: Version, rank: int, alterations: list[tuple[float, str, str, int]]
) -> None:
    texts = processes(4, kinds, version, exchange=True)
    whole = nccl_log.parse(texts)
    for share, kind, letter, size in alterations:
        text = texts[rank]
        place = int(share * len(text))
        lines = text.splitlines(keepends=True)
        at = int(share * (len(lines) - 1))
        if kind == "letter":
            text = text[:place] + letter + text[place + 1 :]
        elif kind == "cut":
            text = text[:place] + text[place + size :]
        elif kind == "drop":
            text = "".join([*lines[:at], *lines[at + size :]])
        elif kind == "twice":
            text = "".join([*lines[: at + size], *lines[at:]])
        elif kind == "swap":
            text = "".join([*lines[:at], *lines[at + size :], *lines[at : at + size]])
        else:
            other = (rank + 1) % 4
            texts[other] += "".join(lines[at : at + size])
        texts[rank] = text
    try:
        found = nccl_log.parse(texts)
    except UnreadableOutput:
        return
    assert found.communicators == whole.communicators
    for ends, transport in found.transports.items():
        assert transport.kind == whole.transports[ends].kind, ends
