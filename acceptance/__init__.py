"""rigproof: the acceptance test for a newly built NVIDIA GPU machine."""

__version__ = "0.1.0"
