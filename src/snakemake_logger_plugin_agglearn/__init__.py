"""Snakemake's name for the progress lines of `make reproduce`: it finds logger plugins by the name of their package."""

from agglearn.reporting.progress import LogHandler

__all__ = ["LogHandler"]
