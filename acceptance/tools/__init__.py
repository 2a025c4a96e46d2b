"""One file for each upstream program: `argv()` and a pure `parse()`."""
