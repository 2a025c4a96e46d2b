"""Readers of texts that the product does not produce itself: old versions, logs, users' texts."""
