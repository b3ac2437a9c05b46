"""From measurements to tables, figures, verdicts and pages."""
