"""The container's image: built from this checkout where it is not here yet, found where it is, and
what is in it.

`python -m acceptance.station.image` (`make image`) does it from the command line.
"""

from __future__ import annotations
