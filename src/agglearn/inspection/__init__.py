"""What the text of modules tells: digests of code, classes, signatures. Nothing is imported to find out."""
