"""Matrix products on one GPU."""
