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


def test_a_pair_without_a_connection_is_absent() -> None:
    found = nccl_log.parse(processes(4, bridged))
    assert found.transports[address(0), address(1)] == Transport("P2P", ("CUMEM/read",))
    assert found.transports[address(1), address(2)] == Transport("SHM", ("direct/direct",))
    assert (address(0), address(2)) not in found.transports


def test_every_pair_after_an_exchange() -> None:
    found = nccl_log.parse(processes(4, bridged, exchange=True))
    every = {ends: one.kind for ends, one in found.transports.items()}
    ranks = {address(rank): rank for rank in range(4)}
    assert len(every) == 12
    assert all(
        kind == ("P2P" if ranks[first] // 2 == ranks[second] // 2 else "SHM")
        for (first, second), kind in every.items()
    )


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


def test_connections_of_a_pair_may_differ_in_their_ways() -> None:
    texts = processes()
    texts[0] += line("Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM/read")
    found = nccl_log.parse(texts)
    assert found.transports[address(0), address(1)] == Transport("P2P", ("CUMEM", "CUMEM/read"))


def test_pci_addresses() -> None:
    """A domain has four digits and more: Hyper-V invents some of eight."""
    texts = [text.replace("busId 10000 ", "busId c05c00b0f1 ") for text in processes()]
    assert nccl_log.parse(texts).communicators[0][0] == "c05c0:0b:0f.1"
    texts = [text.replace("busId 10000 ", "busId 101000 ") for text in processes()]
    assert nccl_log.parse(texts).communicators[0][0] == "0001:01:00.0"


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


def test_a_communicator_that_was_not_used_has_no_transports() -> None:
    unused = [
        "".join(
            one
            for one in text.splitlines(keepends=True)
            if " via " not in one and "Connected" not in one
        )
        for text in processes()
    ]
    assert nccl_log.parse(unused).transports == {}


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


def test_settings_of_the_environment() -> None:
    said = ("NCCL_P2P_DISABLE set by environment to 1", "NCCL_NVLS_ENABLE set by environment to 0.")
    found = nccl_log.parse(processes(via=lambda *_: SHM, extra=said))
    assert found.environment == {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}


@each(
    "said",
    (
        "NVLS multicast support is available on dev {0}",
        "NVLS multicast support is available on dev {0} (NVLS_NCHANNELS 16)",
        (
            "NVLS multicast support is available on dev {0}, transport enabled, symmetric multimem "
            "disabled"
        ),
    ),
)
def test_multicast(said: str) -> None:
    texts = [
        text.replace(f"NVLS multicast support is not available on dev {rank}", said.format(rank))
        for rank, text in enumerate(processes())
    ]
    assert nccl_log.parse(texts).multicast == {address(0): True, address(1): True}


def test_what_is_chosen_again_is_there_once() -> None:
    texts = processes()
    chosen = "AllReduce: {0} Bytes -> Algo NVLS proto SIMPLE channel{{Lo..Hi}}={{0..15}}"
    texts[0] += line(chosen.format(8)) + line(chosen.format(16)) + line(chosen.format(8))
    found = nccl_log.parse(texts).choices
    assert [one.size_bytes for one in found] == [1 << 30, 8, 16]
    assert found[1] == Choice("AllReduce", 8, "NVLS", "SIMPLE")


def test_one_process_with_a_thread_for_each_rank() -> None:
    first, second = processes(via=lambda *_: "P2P/direct pointer")
    text = first + second.replace(":101:", ":100:")
    assert nccl_log.parse([text]) == nccl_log.parse([first, second])


def test_the_version_alone_has_no_prefix() -> None:
    texts = processes()
    for rank in (0, 1):
        texts[rank] = texts[rank].replace(line(f"NCCL version {V2_28.name}", rank), "")
    texts[0] = f"NCCL version {V2_28.name}\n" + texts[0]
    assert nccl_log.parse(texts).version == V2_28.name


def test_many_trees_are_cut_by_nccl() -> None:
    """NCCL cuts a line after 1023 characters; trees that are left out have no ways due."""
    texts = processes(channels=64)
    lines = texts[0].splitlines(keepends=True)
    (place,) = [place for place, one in enumerate(lines) if "Trees" in one]
    lines[place] = lines[place][:1020] + "\n"
    assert nccl_log.parse(["".join(lines), texts[1]]) == nccl_log.parse(texts)
    lines[place] = lines[place][:300] + "\n"
    assert refused(["".join(lines), texts[1]])[0] == "nccl_line_unknown"


# --- what makes it worth nothing ---


def test_no_rank() -> None:
    assert refused([])[0] == "nccl_no_rank"
    assert refused([""])[0] == "nccl_no_rank"
    assert refused([line("NCCL version 2.28.9+cuda13.0")])[0] == "nccl_no_rank"


def test_a_line_without_its_end() -> None:
    first, second = processes()
    code, quoted = refused([first[:-4], second])
    assert (code, quoted) == ("nccl_line_cut", first.splitlines()[-1][:-3])


def test_a_process_without_a_log() -> None:
    with pytest.raises(UnreadableOutput) as fault:
        nccl_log.parse(processes(4)[:3])
    assert fault.value.message.values["why"] == Message(
        "nccl_rank_missing", {"rank": 3, "ranks": 4}
    )


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


def test_initialising_that_failed_quotes_the_warning() -> None:
    first, second = processes()
    head, _, _ = first.partition(line("threadThresholds 8/8/64 | 16/8/64 | 512 | 512"))
    warning = f"{HOST}:100:200 [0] init.cc:1 NCCL WARN Cuda failure 'out of memory'\n"
    code, quoted = refused([f"{head}\n{warning}", second])
    assert (code, quoted) == ("nccl_rank_incomplete", warning.strip())


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
    "text, code",
    (
        ("Traceback (most recent call last):\n", "nccl_line_unknown"),
        (f"{HOST}:100:200 [0] NCCL TRACE 0 -> 1\n", "nccl_line_unknown"),
        ("other:100:200 [0] NCCL INFO Using network Socket\n", "nccl_two_hosts"),
    ),
)
def test_a_line_that_is_foreign(text: str, code: str) -> None:
    assert refused([*processes(), text])[0] == code


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


def test_a_rank_that_two_threads_initialise() -> None:
    first, second = processes()
    (begun,) = [one for one in first.splitlines(keepends=True) if "Init START" in one]
    other = begun.replace(":100:200 ", ":100:999 ")
    assert refused([first.replace(begun, begun + other), second])[0] == "nccl_contradiction"


@each("device, bus", ((1, "10000"), (0, "11000")))
def test_communicators_number_the_gpus_alike(device: int, bus: str) -> None:
    """A second communicator has another GPU of the same number, or the same GPU of another."""
    own = f"comm 0x7f00 rank 0 nranks 1 cudaDev 0 nvmlDev {device} busId {bus} commId 0x99 - Init "
    more = ("Channel 00/01 : 0", "Trees [0] -1/-1/-1->0->-1", own + "COMPLETE")
    first, second = processes()
    code, quoted = refused([first + "".join(map(line, (own + "START", *more))), second])
    assert (code, quoted) == ("nccl_contradiction", f"[{device}] 0000:{bus[:2]}:00.0")


def test_trees_of_a_rank_are_missing() -> None:
    first, second = processes()
    lines = [one for one in second.splitlines(keepends=True) if "Trees" not in one]
    assert refused([first, "".join(lines)])[0] == "nccl_tree_missing"


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


def test_two_runs_in_one_log() -> None:
    """The run with peer access and the control without it contradict each other."""
    both = [
        first + second
        for first, second in zip(
            processes(), processes(via=lambda _first, _second: SHM), strict=True
        )
    ]
    assert refused(both)[0] == "nccl_contradiction"
    again = [text.replace("0xc4cf3e318640a470", "0xc5") for text in processes(via=lambda *_: SHM)]
    both = [first + second for first, second in zip(processes(), again, strict=True)]
    assert refused(both)[0] == "nccl_contradiction"


def test_two_processes_disagree_on_the_environment() -> None:
    texts = processes()
    texts[0] += line("NCCL_P2P_LEVEL set by environment to SYS")
    texts[1] += line("NCCL_P2P_LEVEL set by environment to PIX", 1)
    assert refused(texts)[0] == "nccl_contradiction"


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
