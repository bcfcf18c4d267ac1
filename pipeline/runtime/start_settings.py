"""The settings of a start that the record of the run lacks: those that may differ from start to start, and where the input is.

With them `grow` continues a run by its directory alone. They are kept with the start, because another start may have others.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import flatten_settings
from pipeline.data.rows import lasting_path

_PATH = "data.path"
_MISSING = object()


def start_settings(config: LabelConfig, identity: Mapping[str, object]) -> dict[str, object]:
    """The settings by dotted key, and those that the identity has in another form. `data.path` is absolute, and left
    out where the rows are those of a Python call."""
    settings = {section: value for section, value in asdict(config).items() if isinstance(value, dict)}
    settings["data"]["path"] = lasting_path(config.data.path)
    found = {
        key: value
        for section, own in settings.items()
        for key, value in flatten_settings(section, own).items()
        if identity.get(key, _MISSING) != value and not (key == _PATH and value is None)
    }
    return {key: value for key, value in found.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    """Whether a value can be recorded. Settings of a plug-in may have types of their own."""
    with suppress(TypeError, ValueError):
        json.dumps(value)
        return True
    return False
