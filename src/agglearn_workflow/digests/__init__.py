"""Facts about code: digests of modules from their text, classes by their names."""
