"""Many machines: their verdicts collected, judged and compared. Never alters a verdict."""
