"""Sustained load on one GPU, every result verified."""
