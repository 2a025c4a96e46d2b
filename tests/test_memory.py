"""What is remembered of a machine, from run to run: through the supervisor, the history, and the plan of the next run."""
