"""The accepted run: facts of its machine, and what differs in another run."""
