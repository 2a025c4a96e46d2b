"""What differs from the accepted run: facts of a run, matching, rules and changes."""
