"""Patterns of wrong results and telemetry, and what they point to. Pure."""
