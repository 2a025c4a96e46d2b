"""Telling people: the textfile that node-exporter reads, a command for what is not PASS, a webhook for every verdict.

It comes last and decides nothing: what does not work here is told in a sentence, and the verdict stays what it is.
"""

from acceptance.telling.news import skipped, tell, textfile, trouble
from acceptance.telling.settings import Settings, TellingError, read, usable

__all__ = ["Settings", "TellingError", "read", "skipped", "tell", "textfile", "trouble", "usable"]
