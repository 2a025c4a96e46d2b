"""gpu-burn on all GPUs at once, hot: wrong results, and each GPU's rate against its siblings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from acceptance.core.message import Message, after_fault, english
from acceptance.machine.gpu import Gpu, uuids
from acceptance.session.check import Check
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.reading import ToolOutput

# Of every mode: the errors, the compares, the rate, and its ratio to the siblings' rates.
NAMES: Mapping[Mode, tuple[str, str, str, str]] = {
    "float": (
        "gpu_burn_errors_float",
        "gpu_burn_compares_float",
        "gpu_burn_float",
        "gpu_burn_ratio_float",
    ),
    "tensor": (
        "gpu_burn_errors_tensor",
        "gpu_burn_compares_tensor",
        "gpu_burn_tensor",
        "gpu_burn_ratio_tensor",
    ),
    "double": (
        "gpu_burn_errors_double",
        "gpu_burn_compares_double",
        "gpu_burn_double",
        "gpu_burn_ratio_double",
    ),
}


@pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=pytest.mark.measures(*names)) for mode, names in NAMES.items()],
)
@pytest.mark.session("gpu-load")
# Beyond its own time gpu-burn needs some seconds to start, and half a minute to stop.
@pytest.mark.costs(36.0, load="gpu_burn_{mode}", slack=150.0)
def test_gpu_burn(
    mode: Mode,
    gpu_burn: Callable[[Mode], ToolOutput],
    due_gpus: tuple[Gpu, ...],
    check: Check,
) -> None:
    """gpu-burn on all GPUs together: products of 8192 x 8192 matrices, compared with the first of
    them.

    Measured: errors over all compares of a GPU, the compares made, and the median of its rates. Not
    measured: NaN, which gpu-burn's tolerance lets pass, errors that repeat in every product, and
    the memory that the product ring does not fill.
    """
    output = gpu_burn(mode)
    failed = output.outcome == "fail"
    found = {reading.name: reading.values for reading in output.readings}
    errors, faulty = dict(found.get("gpu_burn_errors", {})), found.get("gpu_burn_faulty", {})
    if failed:
        # gpu-burn's table may call a GPU faulty whose last count was 0, because the counts restart
        # with each summary.
        named = [gpu.name for gpu in due_gpus if faulty.get(gpu.name) or errors.get(gpu.name)]
        errors |= {
            name: errors.get(name) or 1.0 for name in named or [gpu.name for gpu in due_gpus]
        }
    reasons = {name: output.reason for name, count in errors.items() if count}
    serials = uuids(due_gpus)
    wrong, compares, rate, ratio = NAMES[mode]
    check(wrong, errors, notes=reasons, serials=serials)
    unshown = after_fault(
        Message(english("not_shown_after_fault", "a run with a fault need not show it"))
    )
    unread = {gpu.name: unshown for gpu in due_gpus} if failed else {}
    made = found.get("gpu_burn_compares", {})
    check(compares, made, skipped=unread, serials=serials)
    check(rate, found.get("gpu_burn_rate", {}), skipped=unread, serials=serials)
    check.ratio(ratio, skipped=unread, serials=serials)
