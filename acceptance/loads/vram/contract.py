"""The contract of the memory load of one GPU; `load` says what it measures and what not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.message import Listed, english
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.miscompare import VRAM_MISCOMPARES
from acceptance.loads.protocol import LoadOutput

READINGS: Mapping[str, str] = {
    "vram_tested": "ratio",
    "vram_rate": "ratio",
    "vram_copy": "GB/s",
    VRAM_MISCOMPARES: "count",
}
PASSES = "vram_passes"
PASS_COLUMNS = ("pattern", "passes", "GB/s", "wrong")
MAP = "vram_map"
MAP_COLUMNS = ("from MiB", "to MiB", "wrong", "bits")
# The patterns, in their order.
PATTERNS = (
    "own_address",
    "walking_bits",
    "moving_inversions",
    "random_inverse",
    "march_c",
    "block_move",
    "neighbours",
    "retention",
)
# Share of the requested time: after the first round the load does not start a pattern that would
# end too late, and the longest takes a third of a round.
LEAST_SHARE = 0.5
Fault = Literal["bit", "stuck", "address", "slow", "hang"]


class Ask(contract.Ask, tag="vram", frozen=True, kw_only=True):
    """Write and verify patterns in nearly all memory of one GPU."""

    seconds: Annotated[
        Seconds, Meta(description="of all patterns together; each comes at least once")
    ]
    inject: Fault | None = None

    # They change how torch allocates memory: the tested memory must be one plain allocation.
    CLEARED: ClassVar[frozenset[str]] = frozenset(
        {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"}
    )

    def due(self, output: LoadOutput) -> Due:
        """Its readings, and the table of passes; where words were wrong also where they lie."""
        return Due(
            readings={(name, OWN): unit for name, unit in READINGS.items()},
            tables={PASSES: PASS_COLUMNS},
            more_tables={MAP: MAP_COLUMNS},
        )

    def least_s(self, output: LoadOutput) -> float:
        """Half of the time."""
        return LEAST_SHARE * self.seconds

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for a pattern without a pass, and for wrong words that are not counted."""
        rows = contract.table(output, PASSES).rows
        made = {row[0] for row in rows if isinstance(row[1], float) and row[1] >= 1}
        known = tuple(str(one) for one in dict.fromkeys((*PATTERNS, *(row[0] for row in rows))))
        if missing := [pattern for pattern in known if pattern not in made]:
            raise Unproved(
                english("load_pattern_missing", "made no pass of the pattern {patterns}"),
                patterns=Listed(tuple(missing)),
            )
        (counted,) = (one.value for one in output.readings if one.name == VRAM_MISCOMPARES)
        wrong = next((str(row[0]) for row in rows if row[3] != 0), None)
        if wrong is not None and not counted:
            raise Unproved(
                english(
                    "load_words_uncounted",
                    "found words of the pattern {pattern} wrong and counted none",
                ),
                pattern=wrong,
            )
