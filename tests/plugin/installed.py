"""Distributions with plug-ins, as an installer leaves them in a folder, found by this process and by its children."""

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipeline.core import registry
from pipeline.core.registry import Registry
from pipeline.export.registry import EXPORTS
from pipeline.runtime.objects import REGISTRIES
from pipeline.storage.tasks import TASKS
from pipeline.witnesses.registry import WITNESSES
from tests.checkout import ROOT
from tests.oracles import SITE

PROJECT = ROOT / "tests" / "plugin"
ALL: tuple[Registry[Any], ...] = (*(each for _, each in REGISTRIES.values()), EXPORTS, WITNESSES, TASKS)

Points = Mapping[str, Mapping[str, str]]
"""Group of entry points -> name -> `module:attribute`."""


def example() -> Points:
    """The entry points of `tests/plugin`, an implementation of each kind."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    points: Points = project["entry-points"]
    return points


def distribution(site: Path, name: str, version: str, points: Points) -> Path:
    """Add a distribution with entry points to a folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in of.items()) for group, of in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return site


@contextmanager
def installed(*sites: Path) -> Iterator[None]:
    """Within the block, what lies in these folders is installed."""
    paths = os.pathsep.join([*map(str, sites), str(ROOT), os.environ.get("PYTHONPATH", "")])
    with patch.object(sys, "path", [*map(str, sites), *sys.path]), patch.dict(os.environ, {"PYTHONPATH": paths}):
        _forget()
        try:
            yield
        finally:
            _forget()


@contextmanager
def ours_alone() -> Iterator[None]:
    """Within the block, no oracle of the tests is installed."""
    path = os.environ["PYTHONPATH"].replace(str(SITE), "")
    with (
        patch.object(sys, "path", [each for each in sys.path if each != str(SITE)]),
        patch.dict(os.environ, {"PYTHONPATH": path}),
        installed(),
    ):
        yield


def _forget() -> None:
    """Have each registry look again at what is installed."""
    invalidate_caches()
    registry._installed.cache_clear()
    for each in ALL:
        each.__dict__.pop("_foreign", None)
        for name in each._loaded.keys() - each.ours.keys():
            del each._loaded[name]
