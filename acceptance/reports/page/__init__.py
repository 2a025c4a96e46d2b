"""report.html, the page that a builder keeps with the machine."""
