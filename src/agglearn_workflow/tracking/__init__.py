"""MLflow: runs sent by its client, by key, once."""

import os

SETTINGS = {  # before MLflow is imported: it gives up soon on a server that does not answer, and sends nothing but results
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)
