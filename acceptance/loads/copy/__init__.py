"""Copies to, from and inside one GPU."""
