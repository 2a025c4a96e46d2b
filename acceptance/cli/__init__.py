"""The command line: one file a verb, with its options beside its code."""
