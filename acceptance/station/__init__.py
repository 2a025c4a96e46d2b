"""Where loads run: in place, or in a container."""
