"""NCCL's warnings by what they prove, with the sentences of its sources and of public issues."""

from __future__ import annotations

from cases import each
from nccl_texts import HOST, V2_18, processes
from reasons import why_of

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import nccl_transports, nccl_warnings
from acceptance.tools.reading import ToolOutput
from acceptance.wording import words

# NVIDIA/nccl#230, #905, #1071, #1405, #1488, #1710, #1814, #1919; pytorch/pytorch#58155
FAULTS = [
    "NET/IB : Got async event : local catastrophic error",
    "NET/IB : mlx5_0:1 async fatal event: local catastrophic error",
    "Cuda failure 'uncorrectable NVLink error detected during the execution'",
    "Cuda failure 214 'uncorrectable ECC error encountered'",
]
FAILURES = [
    "NET/IB : Got async event : port error",
    "NET/IB : mlx5_2:1 Got async error event: port error",
    "NET/IB : mlx5_1:1 async fatal event on QP (0x7309dc3bb338): invalid request local work queue "
    "error",
    "NET/IB : mlx5_1:1 async fatal event on CQ (0x7309dc3bb338): CQ error",
    "NET/IB : Got completion from peer 10.1.3.201<33057> with status=12 opcode=0 len=0 vendor err "
    "129 (Recv)",
    "Cuda failure 1 'invalid argument'",
    "Cuda failure 'out of memory'",
    "Call to ibv_modify_qp failed with error Connection timed out",
    "Call to connect to 10.0.0.1<41000> failed : Connection refused",
    "[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 3",
    "[Service thread] Accept failed Resource temporarily unavailable",
    "Error: network AWS Libfabric not found.",
    "Mismatched collective detected, please check your collective calls",
    "socketFinalizeAccept: wrong type 4 != 3",
    "NET/Socket : peer 10.0.0.1<41000> message truncated : receiving 65536 bytes instead of 0. If "
    "you believe your socket network is in a healthy state, there may be a mismatch in collective",
    "Connection closed by remote peer box<51000>",
    "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given "
    "their connectivity, and is probably due to a hardware issue.",
]
HARMLESS = [
    "NET/IB : mlx5_0:1 Got async error event: client reregistration",
    "NET/IB : Got async event : port active",
    "NET/IB : mlx5_0:1 Got async error event: SM change",
    "NET/IB : mlx5_0:1 GID table changed",
    "P2P is disabled between connected GPUs 1 and 0. You can repress this message with "
    "NCCL_IGNORE_DISABLED_P2P=1.",
]
UNKNOWN = ["a sentence of a later version", "NET/IB : mlx5_0:1 Got something else : x"]
ALL = [
    *((message, "fault") for message in FAULTS),
    *((message, "failure") for message in FAILURES),
    *((message, "harmless") for message in HARMLESS),
    *((message, "unknown") for message in UNKNOWN),
]
OUTCOME = {"fault": "fail", "failure": "error", "harmless": "pass", "unknown": "pass"}


def line(message: str) -> str:
    return f"{HOST}:100:200 [0] transport/net_ib.cc:94 NCCL WARN {message}\n"


@each("message, kind", ALL)
def test_the_kind_of_a_warning(message: str, kind: str) -> None:
    for said in (
        line(message),
        f"NCCL WARN {message}",
        f"[1,3]<stderr>:[2026-01-02 03:04:05] {line(message)}",
    ):
        assert nccl_warnings.find([said]).lines == ((kind, said),)
    assert nccl_warnings.find(["box:1:2 [0] NCCL INFO all is well", ""]).lines == ()


@each("message, kind", ALL)
def test_a_whole_log_with_a_warning(message: str, kind: str) -> None:
    texts = "".join(processes(version=V2_18))
    for text in (texts + line(message), line(message) + texts):
        output = nccl_transports.parse(text)
        assert output.outcome == OUTCOME[kind], why_of(output)
        # an event always, quoted where it changes what the log is worth or is not known
        assert (message[:40] in why_of(output)) == (kind != "harmless")
        told = [str(event["text"]) for event in output.events if "text" in event]
        assert any(message[:40] in one for one in told)


@each("message, kind", ALL)
def test_a_part_of_a_log_with_a_warning(message: str, kind: str) -> None:
    text = f"{line(message)}{HOST}:100:200 [0] NCCL INFO init.cc:1196 -> 1\n"
    output = read(text)
    assert output.outcome == ("fail" if kind == "fault" else "error")
    if kind != "harmless":
        assert message[:40] in why_of(output)
    assert "was NCCL_DEBUG=INFO set" not in why_of(output)


def read(text: str) -> ToolOutput:
    """As `rigproof read` reads it."""
    try:
        return nccl_transports.parse(text)
    except UnreadableOutput as error:
        return ToolOutput("nccl-log", "error", error.message)


def test_the_worst_warning_is_quoted_and_the_others_are_counted() -> None:
    texts = "".join(processes())
    text = texts + line(UNKNOWN[0]) + line(FAILURES[0]) + line(FAULTS[0]) + line(FAULTS[2])
    output = nccl_transports.parse(text)
    assert output.outcome == "fail"
    assert FAULTS[0] in why_of(output)
    assert "1 more" in why_of(output)
    assert len(output.events) == 4
    failed = nccl_transports.parse(texts + line(FAILURES[0]) + line(UNKNOWN[0]))
    assert failed.outcome == "error"
    assert "lost its link" in why_of(failed)


def test_gpus_that_nvlink_joins_and_p2p_does_not() -> None:
    said = (
        "P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case given "
        "their connectivity, and is probably due to a hardware issue."
    )
    output = nccl_transports.parse("".join(processes(extra=[said])))
    assert output.outcome == "error"
    assert "NVLINK connected GPUs 1 and 0" in why_of(output)


def test_a_log_without_info_lines_is_asked_for_them() -> None:
    assert "was NCCL_DEBUG=INFO set" in words.text(read("NCCL version 2.18.5+cuda12.2\n").reason)
