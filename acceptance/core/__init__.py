"""The vocabulary: units, limits, records, plan, findings, fold, verdict. Pure."""
