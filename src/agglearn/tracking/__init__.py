"""MLflow: runs sent by key, once."""
