"""Configuration: read, laid over one another, checked."""
