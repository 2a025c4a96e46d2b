"""Views of a journal."""
