"""The loads of collectives, every element verified: between all GPUs, and between two nodes."""
