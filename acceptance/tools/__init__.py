"""One file per upstream program: `argv()` and a pure `parse()`."""
