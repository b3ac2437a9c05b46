"""Tables: means over seeds beside the printed numbers."""
