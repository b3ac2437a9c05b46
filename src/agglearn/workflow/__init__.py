"""From configuration files to finished runs: configuration, plan, products, runs, measurements."""
