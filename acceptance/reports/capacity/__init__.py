"""The capacity card: what a machine trains, from the measured figures of a run."""
