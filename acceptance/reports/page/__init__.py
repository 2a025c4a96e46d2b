"""report.html, the page that a builder keeps with the machine."""

from acceptance.reports.page.render import render

__all__ = ["render"]
