"""Claims of the sources, each with its verdict."""
