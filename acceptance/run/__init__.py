"""One run from lock to verdict."""
