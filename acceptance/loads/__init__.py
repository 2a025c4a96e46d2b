"""Our own load programs. They import each other and nothing else of the package."""
