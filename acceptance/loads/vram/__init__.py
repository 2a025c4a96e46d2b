"""Pattern tests over one GPU's memory."""
