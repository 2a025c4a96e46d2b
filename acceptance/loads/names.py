"""Names of the loads' readings, and columns of their tables, for loads and readers alike.

`{}` in a name is a format of `acceptance.core.dtype`.
"""

from __future__ import annotations

OWN = "gpu0"  # a load's name for its own GPU

# Readings of the burn and of the memory test, with their units.
BURN_READINGS = {"burn_{}": "TFLOP/s", "burn_{}_kept": "ratio", "burn_{}_miscompares": "count"}
BURN_OF_GPU = {"burn_filled": "ratio", "burn_copied": "GiB", "burn_copy_miscompares": "count"}
BURN_OF_PEER = {"burn_peer_copied": "GiB", "burn_peer_miscompares": "count"}
VRAM_READINGS = {
    "vram_tested": "ratio",
    "vram_rate": "ratio",
    "vram_copy": "GB/s",
    "vram_miscompares": "count",
}

BURN_LAPS = "burn_laps"
LAPS = ("lap", "format", "TFLOP/s", "products", "seconds", "from s", "to s")
LAP_ROWS = 500  # most rows in the table of laps; of more turns it has the first and last 250
BURN_DIGESTS = "burn_digests"
DIGESTS = ("format", "shape", "inputs", "result")
VRAM_PASSES = "vram_passes"
PASSES = ("pattern", "passes", "GB/s", "wrong")
# The patterns of the memory test, in their order.
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
