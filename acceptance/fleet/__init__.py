"""Many machines: their verdicts together, beside the verdict of each, which is never altered."""
