"""The journal of a run: segments, reader, samples, clocks, provenance."""
