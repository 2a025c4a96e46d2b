"""Notifications of a verdict: a textfile for node-exporter, a command and a webhook.

The textfile and the webhook get every verdict; the command is started for FAIL and UNJUDGED.
Notifications come last and decide nothing: a failed one is reported in one sentence, and the
verdict stays what it is.
"""
