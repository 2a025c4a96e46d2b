"""The storage loads: token files and checkpoints as training reads and writes them, verified."""
