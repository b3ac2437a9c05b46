"""The scales of the workflow. `scale.json` notes the largest that has rendered into the results folder. Smaller ones
work in a folder below it, and so overwrite nothing. Results from the archive overwrite none that were computed."""

import json
from pathlib import Path

from agglearn import storage
from agglearn.errors import ConfigError

SCALES = ("smoke", "quick", "default", "paper")  # the smallest first
FROM_ARCHIVE = "archive"  # takes the place of the scale where nothing is computed
ORDER = (FROM_ARCHIVE, *SCALES)  # results of a later one overwrite those of an earlier one, which can be rendered again
NOTE = "scale.json"


def scale_folder(results: str, scale: str) -> str:
    """The results folder itself, or `<results>/<scale>` where a larger scale has rendered its tables there."""
    return results if ORDER.index(scale) >= _noted(results) else f"{results}/{scale}"


def measured_folder(config: dict) -> str:
    """Folder of measurements. Those of the archive have one of their own: among those of fits Snakemake would take them for
    what a fit has made. It asks what a file was made from only where it has a record of all files of the job."""
    return "archived" if config["from"] == FROM_ARCHIVE else "measurements"


def note_scale(results: str, scale: str) -> None:
    """Note that tables of a scale are about to lie in the results folder."""
    if ORDER.index(scale) > _noted(results):
        storage.write_json(Path(results) / NOTE, {"scale": scale})


def _noted(results: str) -> int:
    """Place in `ORDER` of the scale that is noted, -1 where none is."""
    path = Path(results) / NOTE
    try:
        return ORDER.index(json.loads(path.read_text())["scale"]) if path.exists() else -1
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f'{path}: names no scale; write {{"scale": "default"}} into it, or delete it') from None
