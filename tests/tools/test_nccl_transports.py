"""`rigproof read nccl-log`: the transport of each pair, from a log in which all processes wrote."""

from __future__ import annotations

import pytest
from cases import each
from nccl_texts import HOST, SHM, V2_18, V2_28, address, kinds, processes

from acceptance.core.message import Message
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import nccl_transports
from acceptance.wording import words


def bridged(first: int, second: int) -> str:
    return "P2P/CUMEM/read" if first // 2 == second // 2 else SHM


@each(
    "texts, said",
    [
        (
            processes(),
            "NCCL 2.28.9+cuda13.0, 2 GPUs: 0000:10:00.0->0000:11:00.0, "
            "0000:11:00.0->0000:10:00.0 P2P (CUMEM)",
        ),
        (
            processes(4, bridged),  # rings and trees: of twelve paths five are not used
            "NCCL 2.28.9+cuda13.0, 4 GPUs: 0000:10:00.0->0000:11:00.0, "
            "0000:11:00.0->0000:10:00.0, 0000:12:00.0->0000:13:00.0, 0000:13:00.0->0000:12:00.0 "
            "P2P (CUMEM/read), 0000:11:00.0->0000:12:00.0, 0000:12:00.0->0000:11:00.0, "
            "0000:13:00.0->0000:10:00.0 SHM (direct/direct); paths without one, because "
            "nothing was sent over them: 5",
        ),
        (
            processes(4, exchange=True),
            "NCCL 2.28.9+cuda13.0, 4 GPUs: 12 pairs, all P2P (CUMEM)",
        ),
        (
            processes(4, bridged, V2_18, exchange=True),
            "NCCL 2.18.5+cuda12.2, 4 GPUs: 0000:10:00.0->0000:11:00.0, "
            "0000:11:00.0->0000:10:00.0, 0000:12:00.0->0000:13:00.0, 0000:13:00.0->0000:12:00.0 "
            "P2P (CUMEM/read), 8 pairs SHM (direct/direct)",
        ),
    ],
)
def test_the_transports_are_told(texts: list[str], said: str) -> None:
    found = nccl_transports.parse("".join(texts))
    assert (found.tool, found.outcome) == ("nccl-log", "pass")
    assert words.text(found.reason) == said


def test_every_pair_is_an_event() -> None:
    found = nccl_transports.parse("".join(processes(4, kinds, exchange=True)))
    told = {(one["from"], one["to"]): one["transport"] for one in found.events}
    assert len(told) == 12
    assert told[address(0), address(1)] == "P2P"
    assert told[address(0), address(2)] == "SHM"
    assert told[address(3), address(2)] == "NET"
    assert found.events[0]["ways"] == ("CUMEM",)


def test_what_nccl_remarks_is_an_event() -> None:
    refusal = (
        "P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1."
    )
    found = nccl_transports.parse("".join(processes(via=lambda *_: SHM, extra=[refusal])))
    assert words.text(found.reason).endswith("SHM (direct/direct); NCCL's own remarks: 1")
    assert found.events[-1] == {
        "kind": "p2p-disabled",
        "text": refusal,
        "between": (address(1), address(0)),
    }


def test_peer_access_that_nvlinks_should_have_proves_nothing() -> None:
    refused = (
        "graph/paths.cc:310 (check) NCCL WARN P2P is disabled between NVLINK connected GPUs {} and "
        "{}. This should not be the case given their connectivity."
    )
    for count in (1, 2):
        texts = processes(4, via=lambda *_: SHM)
        for rank in range(count):
            texts[0] += f"{HOST}:100:200 [0] {refused.format(rank, rank + 1)}\n"
        found = nccl_transports.parse("".join(texts))
        assert found.outcome == "error"
        assert isinstance(found.reason, Message)
        assert found.reason.code == "nccl_failed"
        assert found.reason.values.get("more") == (count - 1 or None)


def test_a_log_without_transports_proves_nothing() -> None:
    texts = [
        "".join(
            line
            for line in text.splitlines(keepends=True)
            if " via " not in line and "Connected" not in line
        )
        for text in processes(version=V2_28)
    ]
    found = nccl_transports.parse("".join(texts))
    assert found.outcome == "error"
    assert "names no transport" in words.text(found.reason)


@each("line", ["# nThread 1 nGpus 2", "box:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via QUIC"])
def test_a_line_that_is_not_known_is_quoted(line: str) -> None:
    with pytest.raises(UnreadableOutput) as error:
        nccl_transports.parse("".join([*processes(), f"{line}\n"]))
    assert line in words.text(error.value.message)
