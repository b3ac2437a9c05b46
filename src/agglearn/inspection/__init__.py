"""Facts about modules from their text: digests of code, classes, signatures. No module is imported for them."""
