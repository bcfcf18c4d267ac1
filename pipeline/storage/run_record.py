"""`run.json`: the identity of the run in a directory. A different run on the same directory is refused.

The identity has the input of the first start. A run that only has another input (`GROWING`) is the same run, whose input may
have grown; the records of the staged input say what it was at each time.
"""

import json
from collections.abc import Mapping
from enum import Enum, auto

from pipeline.config.recorded_settings import RUN_RECORD, change_lines
from pipeline.core.errors import RUN_DIR, Absent, Name, RunConflict, StoreError, Unreachable, UsageError
from pipeline.core.tables import SCHEMA_VERSION, TASK_SCHEMA_VERSION
from pipeline.storage.commits import FOLDER, INPUT, UNIT, Commit, checksum, record_sequences
from pipeline.storage.lock import MARKER
from pipeline.storage.shards import set_aside_damaged
from pipeline.storage.storage import Storage

NAME = RUN_RECORD
_CHECK = "check"
_OF_RECORDS = "sequence_id"
"""A key of commit records on disk, which have the same kind of checksum."""
SCHEMA = "schema"
COMMAND = "command"
"""Key of the command whose run it is; missing in the runs of `label`."""
LABEL, SCORE, JUDGE, CHECK, SEARCH = "label", "score", "judge", "check", "search"
"""The commands that write run directories."""
CHECKS = "checks"
"""Folder of the runs of `check` in a run directory, or in a folder for findings on rows without a run."""
PROVES = "proves"
"""Key of whether the verdicts of a verifier on whole steps are proofs; missing where they are not."""
STAGED_INPUT = "staged_input"
"""Key of the id under which the input of the run is committed."""
_OF_INPUT = ("input", "data.limit")
"""Keys that say how much input there is."""
GROWING = frozenset({*_OF_INPUT, STAGED_INPUT})
"""Keys in which two starts of one run may differ: its input may grow."""
OTHER_RUN = Name("belongs to another run: use another run_dir")
"""What a conflict says of a directory, and its remedy."""


class _Found(Enum):
    """The state of a directory from the view of a run that wants to use it."""

    FRESH = auto()
    OURS = auto()
    OURS_WITHOUT_RECORD = auto()
    UNUSED = auto()


def as_recorded(storage: Storage, identity: Mapping[str, object], *, alone: bool = True) -> dict[str, object]:
    """The identity of this start in the form that the run in the directory has.

    It gets the run's first input, where only the input differs and a unit has begun. If the record is lost, that is the one of
    the copy with the staged input. `alone`: see `claim`.
    """
    recorded = _recorded(storage, identity)
    # Without a unit the input is staged afresh, which `claim` allows to a driver that is alone.
    if recorded and _differing(recorded, identity) <= GROWING and (_has_units(storage) or not alone):
        identity = {**identity, **{key: recorded[key] for key in GROWING & recorded.keys()}}
    return dict(identity)


def _recorded(storage: Storage, identity: Mapping[str, object]) -> dict[str, object]:
    """The content of `run.json`, or of the first copy that may be of this run; empty if there is none."""
    try:
        return recorded_identity(storage)
    except Unreachable:
        raise
    except StoreError:
        copies = [copy.recorded for copy in _copies(storage)]
        fitting = [copy for copy in copies if _differing(copy, identity) <= GROWING]
        exact = [copy for copy in fitting if not _differing(copy, identity)]
        return (exact or fitting or [{}])[0]


def refuse_other_schema(storage: Storage, identity: Mapping[str, object]) -> None:
    """Raise UsageError for a run that was written with another schema."""
    ours = SCHEMA_VERSION if command_of(identity) == LABEL else TASK_SCHEMA_VERSION
    if identity.get(SCHEMA) != ours:
        raise UsageError(
            f"{storage.run_dir} was written with schema {identity.get(SCHEMA)}, but this version of stepvalue uses {ours}: use "
            "the version that wrote it"
        )


def command_of(identity: Mapping[str, object]) -> str:
    """The command whose run has this identity."""
    return str(identity.get(COMMAND, LABEL))


def differs_in_input(recorded: Mapping[str, object], identity: Mapping[str, object]) -> bool:
    """Whether two identities are those of runs that only have other inputs."""
    differing = _differing(recorded, identity)
    return bool(differing) and differing <= GROWING


def _differing(left: Mapping[str, object], right: Mapping[str, object]) -> set[str]:
    return {key for key in {*left, *right} if left.get(key) != right.get(key)}


def _has_units(storage: Storage) -> bool:
    return any(name.startswith(f"{FOLDER}/{UNIT}-") for name in storage.names(FOLDER))


def with_input(identity: Mapping[str, object], start: Mapping[str, object]) -> dict[str, object]:
    """The identity of a run with the input of another start of it, as the record of a grown input copies it."""
    return {**identity, **{key: start[key] for key in _OF_INPUT if key in start}}


def has_input(recorded: Mapping[str, object], identity: Mapping[str, object], start: Mapping[str, object]) -> bool:
    """Whether a record of the input, with these settings, has the input of a start. Without settings it has that of the run's
    identity."""
    recorded = recorded or identity
    return all(recorded.get(key) == start.get(key) for key in _OF_INPUT)


def check_claim(storage: Storage, identity: Mapping[str, object]) -> None:
    """Raise what `claim` would raise for the only driver. Changes nothing."""
    _found(storage, identity, alone=True)


def claim(storage: Storage, identity: Mapping[str, object], *, alone: bool = True) -> list[str]:
    """Record `identity` in a fresh directory, or check that it is the recorded one. Returns the names of damaged files.

    The new run takes over the directory of a run without committed units, if the caller is `alone` in it, so that no other
    driver can commit a unit meanwhile. A lost or damaged record is rewritten if the copy with the staged input matches
    `identity`. Raises RunConflict, which names what differs, when the directory belongs to another run or contains other
    files, and StoreError when the record is damaged and has no copy. Nothing is changed in these cases.
    """
    damaged: list[str] = []
    found = _found(storage, identity, alone=alone)
    if found is _Found.OURS_WITHOUT_RECORD and NAME in storage.names(""):
        set_aside_damaged(storage, NAME)
        damaged = [NAME]
    if found is _Found.UNUSED:
        storage.replace(NAME, encode_identity(identity))
    elif found is not _Found.OURS and not storage.create(NAME, encode_identity(identity)):
        _found(storage, identity, alone=False)
    return damaged


def _found(storage: Storage, identity: Mapping[str, object], *, alone: bool) -> _Found:
    names = [name for name in storage.names("") if name != MARKER]
    if not names:
        return _Found.FRESH
    try:
        recorded = recorded_identity(storage)
    except Unreachable:
        raise
    except StoreError:
        copies = _copies(storage)
        if settings_copy(identity) in [copy.settings for copy in copies]:
            return _Found.OURS_WITHOUT_RECORD
        if not copies and NAME in names:
            raise
        if not copies:
            raise RunConflict(
                f"{storage.run_dir} contains other files ({names[0]}, ...): choose an empty or new ", RUN_DIR
            ) from None
        recorded = copies[-1].recorded
    differing = _differing(recorded, identity)
    if not differing:
        return _Found.OURS
    if recorded.get(SCHEMA) != identity.get(SCHEMA) and COMMAND not in differing:
        raise RunConflict(
            f"{storage.run_dir} was written with schema {recorded.get(SCHEMA)}, but this version of stepvalue uses "
            f"{identity.get(SCHEMA)}: continue with the version that wrote it, or use another ",
            RUN_DIR,
        )
    if alone and not _has_units(storage):
        return _Found.UNUSED
    if COMMAND in differing:
        raise RunConflict(
            f"{storage.run_dir} belongs to a run of `{command_of(recorded)}`, and this is `{command_of(identity)}`: use "
            "another ",
            RUN_DIR,
        )
    if COMMAND in identity and not differing <= GROWING:
        # Another input alone would be no conflict, and new labels of the same chains are one.
        identity = {**identity, **{key: recorded[key] for key in GROWING & recorded.keys()}}
    changes = "".join(f"\n  {line}" for line in change_lines(recorded, identity))
    raise RunConflict(
        f"{storage.run_dir} ", OTHER_RUN, f", or give the settings of that run again. They differ:{changes}"
    )


def settings_copy(identity: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """The identity in the form of the copy in the record of the staged input."""
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(identity.items()))


def _copies(storage: Storage) -> list[Commit]:
    """The records of the staged input that have a copy of the identity."""
    return [commit for found in record_sequences(storage, INPUT) for commit in found.commits if commit.settings]


def recorded_identity(storage: Storage) -> dict[str, object]:
    """The content of `run.json`. Raises StoreError when it is missing or unreadable."""
    try:
        fields = json.loads(storage.read(NAME))
        check = fields.pop(_CHECK, None)
    except Absent as error:
        raise StoreError(f"{storage.run_dir} is not a run directory: it has no {NAME}") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise StoreError(_damaged(storage, str(error))) from error
    if check != checksum(fields):
        raise StoreError(_damaged(storage, "it does not match its checksum"))
    if _OF_RECORDS in fields:
        raise StoreError(_damaged(storage, "it is another file under this name"))
    return dict(fields)


def encode_identity(identity: Mapping[str, object]) -> bytes:
    """The content of `run.json`."""
    fields = {**identity, _CHECK: checksum(identity)}
    return json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _damaged(storage: Storage, fault: str) -> str:
    return (
        f"{storage.run_dir}/{NAME} is damaged ({fault}): restore it from a copy, or choose another run_dir if this is not a "
        "run directory"
    )
