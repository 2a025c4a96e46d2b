"""The contract of the matrix load of one GPU; `load` says what it measures and what not."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.dtype import GEMM_READINGS, DtypeName
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds
from acceptance.loads.protocol import LoadOutput

LARGEST = 32768
# Maximum share of the GPU's total memory; the driver, the library and a display use the rest.
ROOM = 0.75
COLUMNS = ("n", "TFLOP/s")
# They change how the libraries multiply.
MULTIPLYING = frozenset(
    {
        "NVIDIA_TF32_OVERRIDE",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "CUBLAS_WORKSPACE_CONFIG",
        "CUBLASLT_WORKSPACE_SIZE",
    }
)
SIZES = tuple(2**power for power in range(7, 16))  # sizes that builders publish, a row each

Size = Annotated[int, Meta(ge=64, le=LARGEST, multiple_of=16)]
TableSize = Annotated[int, Meta(ge=32, le=LARGEST, multiple_of=16)]
Dtypes = Annotated[tuple[DtypeName, ...], Meta(min_length=1, description="number formats")]


class Ask(contract.Ask, tag="gpu_gemm", frozen=True, kw_only=True):
    """Multiply matrices on one GPU, briefly and sustained, and verify the results."""

    dtypes: Dtypes
    seconds: Annotated[Seconds, Meta(description="of sustained load, for each format")]
    size: Annotated[Size, Meta(description="rows and columns of what is judged")] = 8192
    table: Annotated[
        tuple[TableSize, ...], Meta(description="sizes of the table, such as 128,512: rising")
    ] = ()
    inject: Literal["wrong", "slow"] | None = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"size"})  # a small GPU's is smaller
    CLEARED: ClassVar[frozenset[str]] = MULTIPLYING

    def __post_init__(self) -> None:
        contract.require_each_once("dtypes", self.dtypes)
        contract.require_each_once("table", self.table)
        if self.table != tuple(sorted(self.table)):
            raise ValueError("the sizes of the table do not rise")

    def due(self, output: LoadOutput) -> Due:
        """Rates and count of each format, or that the GPU lacks it; tables of what fits."""
        units = ("TFLOP/s", "TFLOP/s", "count")
        return Due(
            choices=[
                {
                    (name.format(dtype), OWN): unit
                    for name, unit in zip(GEMM_READINGS, units, strict=True)
                }
                for dtype in self.dtypes
            ],
            more_tables={by_size(dtype): COLUMNS for dtype in self.dtypes if self.table},
        )

    def least_s(self, output: LoadOutput) -> float:
        """The sustained load of the measured formats."""
        return len(self.due(output).measured(output)) * self.seconds


def by_size(dtype: str) -> str:
    """The name of a format's table of sizes."""
    return f"gemm_{dtype}_by_size"
