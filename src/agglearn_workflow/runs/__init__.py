"""Runs: observed, computed, kept."""
