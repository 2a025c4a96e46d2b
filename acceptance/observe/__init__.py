"""The machine as it shows itself."""
