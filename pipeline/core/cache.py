"""The folder on this machine for what is made once and used again: converted models, indexes of fact tables."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`STEPVALUE_CACHE`, else `XDG_CACHE_HOME/stepvalue`, else `~/.cache/stepvalue`. It may not exist yet."""
    if chosen := os.environ.get("STEPVALUE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepvalue"
