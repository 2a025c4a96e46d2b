"""The container's image: built from this checkout where it is missing, and its contents.

`python -m acceptance.station.image` (`make image`) builds it from the command line.
"""

from __future__ import annotations
