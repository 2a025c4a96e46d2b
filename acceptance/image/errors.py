"""What can go wrong with the image, in one sentence with its cure."""

from __future__ import annotations


class ImageError(Exception):
    """The image cannot be built, found or read; the message is one sentence, with the last lines of a log where there is one."""
