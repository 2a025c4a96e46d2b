"""Starting and ending programs: the only `subprocess`."""
