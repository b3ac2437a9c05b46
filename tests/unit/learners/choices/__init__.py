"""Classes that choose a parameter, a module for each package: what they fit, what they are judged by, and what they chose."""
