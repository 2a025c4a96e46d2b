"""The container's image: built from this checkout where it is not here yet, found where it is, and what is in it.

`python -m acceptance.image` (`make image`) does it from the command line.
"""

from __future__ import annotations

from acceptance.image.build import build
from acceptance.image.engine import Engine, find
from acceptance.image.errors import ImageError
from acceptance.image.record import ImageRef, Used, inspect

__all__ = ["Engine", "ImageError", "ImageRef", "Used", "build", "find", "inspect"]
