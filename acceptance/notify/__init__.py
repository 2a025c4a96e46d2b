"""Telling people: the textfile that node-exporter reads, a command for what is not PASS, a webhook for every verdict.

It comes last and decides nothing: what does not work here is told in a sentence, and the verdict stays what it is.
"""
