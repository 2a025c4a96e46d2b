"""rigproof: the acceptance test for a newly built NVIDIA GPU machine."""
