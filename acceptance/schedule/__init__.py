"""The schedule: systemd units and a cron line that start a nightly run."""
