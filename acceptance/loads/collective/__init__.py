"""The load of collective operations between all GPUs, every element verified."""
