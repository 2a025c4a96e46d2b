"""The schedule of nightly runs: systemd units, a cron line, and the report of a failed night."""
