"""What a release would cost in accuracy: measured on records, or predicted for records that nobody has seen."""
