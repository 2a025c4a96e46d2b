"""Loads of processors and RAM."""
