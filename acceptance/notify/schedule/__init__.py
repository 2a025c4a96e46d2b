"""The schedule: systemd units and a cron line that start a nightly run, and
what is told when a night fails.
"""
