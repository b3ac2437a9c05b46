"""MLflow's server with the site beside it, so that descriptions of experiments can link to the pages.

`make ui` names this app to `mlflow server`, which finds it among the entry points `mlflow.app` of this package.
"""

import os

from mlflow.server.fastapi_app import app
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from agglearn.tracking.overview import SITE, SITE_FOLDER

folder = os.environ.get(SITE_FOLDER, "results/site")
# Before MLflow's own routes, the last of which takes every address.
app.router.routes.insert(0, Mount(SITE, StaticFiles(directory=folder, html=True, check_dir=False)))
