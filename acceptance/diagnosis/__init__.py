"""What wrong results and telemetry look like, and what they point to. Pure."""
