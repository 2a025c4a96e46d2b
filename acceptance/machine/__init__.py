"""The machine: as its machine file declares it, and as it was observed."""
