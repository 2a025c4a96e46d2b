"""Single faults, as what they change in the values that a machine gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from acceptance.core.parts import Component, Pair
from acceptance.core.plan import Due, PlannedCheck

# By check, due measurement and sound value: the value in its place, None where it cannot be
# measured any more.
Change = Callable[[str, Due, float], float | None]


def slow(gpu: Component, share: float = 0.85) -> Change:
    """One GPU that computes slower than it should, in every product of matrices."""

    def change(_check: str, due: Due, value: float) -> float:
        return share * value if due.component == gpu and due.unit == "TFLOP/s" else value

    return change


def wrong_result(measurement: str, gpu: Component) -> Change:
    """A GPU one of whose results is not what it should be."""

    def change(_check: str, due: Due, value: float) -> float:
        return 1.0 if (due.measurement, due.component) == (measurement, gpu) else value

    return change


def few_lanes(gpu: Component, lanes: int, of: int) -> Change:
    """A GPU whose link trained with fewer lanes than card and slot have."""

    def change(_check: str, due: Due, value: float) -> float:
        if due.component != gpu:
            return value
        if due.measurement == "gpu_link_width":
            return lanes
        host = due.unit == "GB/s" and ("h2d" in due.measurement or "d2h" in due.measurement)
        return value * lanes / of if host else value

    return change


def missing(gpu: Component) -> Change:
    """A declared GPU that is not there: one less is counted, and nothing is measured of it."""

    def change(_check: str, due: Due, value: float) -> float | None:
        if due.measurement == "gpu_count":
            return value - 1
        return None if gpu in due.component.ends else value

    return change


def without_bridge(_check: str, due: Due, value: float) -> float:
    """What NVML says where no bridge is; copies go through the host."""
    told = {
        "nvlink_active": 0.0,
        "p2p_supported": 0.0,
        "gpu_path_differs": 1.0,
        "p2p_gain": 1.0,
        "p2p_write": 6.23,
    }
    return told.get(due.measurement, value)


def false_claim(checks: Sequence[PlannedCheck]) -> Change:
    """Peer access that the driver claims, and data that arrives changed."""
    peers: Mapping[str, bool] = {
        one.id: any(isinstance(due.component, Pair) and due.unit == "GB/s" for due in one.due)
        for one in checks
    }

    def change(check: str, due: Due, value: float) -> float:
        if due.measurement == "p2p_supported":
            return 1.0
        wrong = due.measurement == "copy_faults" or due.measurement.endswith("miscompares")
        return (
            1.0 if wrong and peers[check] and due.measurement.startswith(("copy", "p2p")) else value
        )

    return change
