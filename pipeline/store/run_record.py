"""`run.json`: what a run directory is the result of. Starting a different run on the same directory is refused."""

import json
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import RunConflict, StoreError
from pipeline.store.commits import UNIT, committed_ids
from pipeline.store.files import publish_if_absent, read, replace

_NAME = "run.json"
STAGED_INPUT = "staged_input"
"""Key of the id under which the input of the run is committed."""


def claim(run_dir: Path, identity: Mapping[str, object]) -> None:
    """Record `identity` in a fresh directory, or check that it is the recorded one; the caller holds the lock.

    A run of which no unit was committed has nothing to lose: its directory goes over to the new one. Raises RunConflict,
    naming each differing key, when the directory belongs to another run or holds something else; nothing in it is touched
    then.
    """
    path = run_dir / _NAME
    data = json.dumps(identity, indent=1, sort_keys=True, ensure_ascii=False).encode()
    refuse_strangers(run_dir)
    if not path.exists():
        publish_if_absent(path, data)
    recorded = recorded_identity(run_dir)
    differing = [key for key in sorted({*recorded, *identity}) if recorded.get(key) != identity.get(key)]
    if differing and not committed_ids(run_dir, UNIT):
        replace(path, data)
    elif differing:
        changes = "; ".join(
            f"{key} was {_shown(recorded.get(key))}, now {_shown(identity.get(key))}" for key in differing
        )
        raise RunConflict(f"{run_dir} belongs to another run: {changes}. Use the old settings or another run_dir")


def refuse_strangers(run_dir: Path) -> None:
    """Raise RunConflict, touching nothing, when the directory is no run directory and holds something else."""
    if run_dir.is_dir() and not (run_dir / _NAME).exists():
        strangers = sorted(entry.name for entry in run_dir.iterdir() if not entry.name.startswith("."))
        if strangers:
            raise RunConflict(f"{run_dir} holds other files ({strangers[0]}, ...): choose an empty or new run_dir")


def recorded_identity(run_dir: Path) -> dict[str, object]:
    """The content of `run.json`. Raises StoreError when there is none or it cannot be read."""
    path = run_dir / _NAME
    if not path.exists():
        raise StoreError(f"{run_dir} is not a run directory: it has no {_NAME}")
    try:
        fields = json.loads(read(path))
    except ValueError as error:
        raise StoreError(
            f"{path} is damaged ({error}): move it away only if you know what made the directory"
        ) from error
    if not isinstance(fields, dict):
        raise StoreError(f"{path} is damaged: it holds no settings")
    return fields


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
