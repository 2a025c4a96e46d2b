"""The words of findings: the only place where a code and its values become a sentence."""
