"""Views of a fleet: each a pure function of its report."""
