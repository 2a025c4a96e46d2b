"""The watch over a run: GPU sampler and its supervisor, host sensors, kernel events."""
