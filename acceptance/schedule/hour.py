"""When a night begins where nobody says it. A module of its own: `--help` tells it, and is to answer at once."""

from __future__ import annotations

from datetime import time

AT = time(4, 30)  # where clocks are put on, they skip an hour of those before: systemd would skip the night with it
