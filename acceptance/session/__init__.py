"""One pytest session: plugin, checks, context, programs."""
