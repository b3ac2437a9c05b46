"""From configuration files to finished runs: configuration, plan, products, runs, what is measured. Imports nothing when it is imported."""
