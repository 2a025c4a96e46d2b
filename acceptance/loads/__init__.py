"""Programs of ours that load the hardware. They import each other and nothing of ours besides."""
