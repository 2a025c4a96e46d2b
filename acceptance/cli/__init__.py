"""The command line: one file a verb, its arguments beside what it does."""
