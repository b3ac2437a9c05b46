"""Pages on results."""
