"""Many machines: their verdicts collected and judged night by night. Never alters a verdict."""
