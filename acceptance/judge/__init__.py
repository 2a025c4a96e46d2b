"""Pure decisions: limits, expectations, the plan, the verdict. No I/O but reading TOML."""
