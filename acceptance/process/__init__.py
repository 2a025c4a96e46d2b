"""Starts and ends programs: the only user of `subprocess`."""
