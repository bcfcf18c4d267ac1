"""`run.json`: what a run directory is the result of. Starting a different run on the same directory is refused."""

import json
from collections.abc import Mapping

from pipeline.errors import Absent, RunConflict, StoreError
from pipeline.store.commits import FOLDER, INPUT, UNIT, chains
from pipeline.store.shards import set_aside_damaged
from pipeline.store.storage import Storage, sha256_of

_NAME = "run.json"
_CHECK = "check"
STAGED_INPUT = "staged_input"
"""Key of the id under which the input of the run is committed."""


def claim(storage: Storage, identity: Mapping[str, object]) -> list[str]:
    """Record `identity` in a fresh directory, or check that it is the recorded one; the caller holds the lock.

    Returns the names of what was damaged and is set aside.

    A run of which no unit was committed has nothing to lose: its directory goes over to the new one. Where the record is
    lost or damaged, the copy beside the staged input stands for it, and it is written anew. Raises RunConflict, naming each
    differing key, when the directory belongs to another run or holds something else; nothing in it is touched then.
    """
    refuse_strangers(storage)
    damaged: list[str] = []
    try:
        recorded = recorded_identity(storage)
    except StoreError:
        recorded = _copy(storage, identity)
        if recorded == identity:
            if _NAME in storage.names(""):
                set_aside_damaged(storage, _NAME)
                damaged.append(_NAME)
            storage.create(_NAME, _encoded(identity))
    differing = [key for key in sorted({*recorded, *identity}) if recorded.get(key) != identity.get(key)]
    if differing and not _has_units(storage):
        storage.replace(_NAME, _encoded(identity))
    elif differing:
        changes = "; ".join(
            f"{key} was {_shown(recorded.get(key))}, now {_shown(identity.get(key))}" for key in differing
        )
        raise RunConflict(f"{storage.place} belongs to another run: {changes}. Use the old settings or another run_dir")
    return damaged


def settings_copy(identity: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The identity as it is kept beside the staged input."""
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(identity.items()))


def _copy(storage: Storage, identity: Mapping[str, object]) -> dict[str, object]:
    """`identity` where a staged input was made for it, else that of the last input, else it: nothing was begun."""
    copies = [commit.settings for chain in chains(storage, INPUT) for commit in chain.commits if commit.settings]
    if not copies or settings_copy(identity) in copies:
        return dict(identity)
    return {key: json.loads(value) for key, value in copies[-1]}


def refuse_strangers(storage: Storage) -> None:
    """Raise RunConflict, touching nothing, when the directory is no run directory and holds something else."""
    names = storage.names("")
    if names and _NAME not in names and FOLDER not in names:
        raise RunConflict(f"{storage.place} holds other files ({names[0]}, ...): choose an empty or new run_dir")


def recorded_identity(storage: Storage) -> dict[str, object]:
    """The content of `run.json`. Raises StoreError when there is none or it cannot be read."""
    try:
        fields = json.loads(storage.read(_NAME))
        check = fields.pop(_CHECK, None)
    except Absent as error:
        raise StoreError(f"{storage.place} is not a run directory: it has no {_NAME}") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(_damaged(storage, str(error))) from error
    # Runs before schema 2 have no checksum; they are told apart by their schema.
    if check != _check(fields) and not (check is None and fields.get("schema") == 1):
        raise StoreError(_damaged(storage, "it does not match its checksum"))
    return dict(fields)


def _has_units(storage: Storage) -> bool:
    return any(name.startswith(f"{FOLDER}/{UNIT}-") for name in storage.names(FOLDER))


def _encoded(identity: Mapping[str, object]) -> bytes:
    fields = {**identity, _CHECK: _check(identity)}
    return json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _check(fields: Mapping[str, object]) -> str:
    return sha256_of(json.dumps(fields, sort_keys=True).encode())


def _damaged(storage: Storage, fault: str) -> str:
    return (
        f"{storage.place}/{_NAME} is damaged ({fault}): put back a copy of it, or move it away and start the same command "
        "again, which writes it anew"
    )


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
