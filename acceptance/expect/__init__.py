"""What a machine should do: model sheets, architectures and declarations, as limits. Pure."""
