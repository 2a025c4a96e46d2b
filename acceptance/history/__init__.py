"""A machine over time: its runs in a database, its baseline, and drift from both."""
