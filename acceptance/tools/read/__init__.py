"""Readers of texts that the product does not run itself: old versions, logs,
what others printed.
"""
