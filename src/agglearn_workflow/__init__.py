"""The workflow that reproduces the tables and figures of the sources: configuration, runs, reports, commands."""
