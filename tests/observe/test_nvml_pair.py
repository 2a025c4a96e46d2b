from __future__ import annotations

from cases import each
from fake_nvml import LOST, FakeNvml, Refusal

from acceptance.machine.inventory import NvmlPair
from acceptance.observe import nvml_pair


def test_a_pair_that_tells_everything() -> None:
    answers = {
        "nvmlDeviceGetTopologyCommonAncestor": 50,
        "nvmlDeviceGetP2PStatus": {
            (1, 0): 0,
            (1, 1): 4,
            (1, 2): 5,
            (0, 0): 1,
            (0, 1): 2,
            (0, 2): 3,
        },
    }
    assert nvml_pair.read(FakeNvml(2, answers), [0, 1], [True, True]) == (
        NvmlPair(0, 1, "SYS", "ok", "disabled-by-regkey", "not-supported"),
        NvmlPair(
            1, 0, "SYS", "chipset-not-supported", "gpu-not-supported", "topology-not-supported"
        ),
    )


PATHS = {
    0: "INTERNAL",
    10: "PIX",
    20: "PXB",
    30: "PHB",
    40: "NODE",
    50: "SYS",
    60: None,
}


@each(
    "function, answer, path, p2p_read",
    [
        *(
            ("nvmlDeviceGetTopologyCommonAncestor", level, path, None)
            for level, path in PATHS.items()
        ),
        ("nvmlDeviceGetP2PStatus", 6, None, "unknown"),
        ("nvmlDeviceGetP2PStatus", 77, None, "unknown"),
        ("nvmlDeviceGetP2PStatus", Refusal(LOST), None, None),
    ],
)
def test_one_answer_alone(
    function: str, answer: int | Refusal, path: str | None, p2p_read: str | None
) -> None:
    """Also a state that nobody knows, and a GPU that is lost meanwhile."""
    found = nvml_pair.read(FakeNvml(2, {function: answer}), [0, 1], [True, True])
    assert {(pair.path, pair.p2p_read) for pair in found} == {(path, p2p_read)}


def test_no_pair_with_a_gpu_that_does_not_answer() -> None:
    assert nvml_pair.read(FakeNvml(2), [0, None], [True, False]) == ()
