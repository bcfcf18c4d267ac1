"""A run directory as its commit records describe it: settings, units and current labels. For commands that read it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.storage.commits import (
    FOLDER,
    INPUT,
    UNIT,
    Commit,
    RecordSequence,
    record_sequence,
    record_sequences,
    refuse_damage,
    resolve,
)
from pipeline.storage.editions import (
    current_edition,
    current_files,
    edition_command,
    edition_sequence,
    edition_settings,
    repaired_editions,
)
from pipeline.storage.growths import growth_sequence, growths_needed, growths_of, has_grown
from pipeline.storage.run_record import (
    CHECKS,
    LABEL,
    NAME,
    STAGED_INPUT,
    command_of,
    recorded_identity,
    refuse_other_schema,
    with_input,
)
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, units_of

_MAKING = ("estimator.", "grader.", "grader_version")
_LABEL = "`label`"
_LOOKED_AT = 20
"""How many entries of a folder that is no run are looked into for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """`units`: in the order of the input. `wholes`: the records of the finished units, by unit id. `present`: see
    `with_present_input`. `growths`: what `UnitTarget.growths` is in a unit that owes no growth. `planned`: the records of the
    input and of the growths."""

    identity: Settings
    present: Settings
    units: tuple[UnitRef, ...]
    wholes: Mapping[str, Commit]
    editions: RecordSequence
    planned: tuple[Commit, ...] = ()
    growths: int = 0

    @property
    def incomplete(self) -> int:
        """The number of unfinished units. One that owes a growth is unfinished, although it has labels."""
        return len(self.units) - has_grown(self.wholes.values(), self.growths)

    @property
    def edition(self) -> Commit | None:
        """The edition with the current labels. None where these are the run's own labels."""
        return current_edition(self.editions, self.wholes)

    @property
    def edition_command(self) -> str:
        """The command by which a user has made the current labels, empty for those of `label` itself."""
        return edition_command(self.edition)

    @property
    def current_files(self) -> frozenset[str]:
        """The files that belong in the folders of the run, if it is finished."""
        return current_files((*self.planned, *self.wholes.values()), self.edition)

    @property
    def settings(self) -> Settings:
        """The settings of the current labels and of their verdicts."""
        if self.edition is not None:
            return edition_settings(self.edition)
        return {key: value for key, value in self.identity.items() if key.startswith(_MAKING)}


def stored_run(storage: Storage) -> StoredRun:
    """A run of `label`. Raises UsageError for a directory without a run of this version, StoreError for a damaged or unstarted
    run."""
    identity = readable_identity(storage)
    if (command := command_of(identity)) != LABEL:
        raise UsageError(f"{storage.run_dir} is a run of `{command}`: give a directory that `label` has written")
    staged = resolve(record_sequence(storage, INPUT, str(identity[STAGED_INPUT]))).whole
    if staged is None:
        raise StoreError(f"{storage.run_dir} has no intact input: start `label` on it again to repair it")
    units = tuple(units_of(storage, staged))
    wholes = {
        found.sequence_id: whole for found in record_sequences(storage, UNIT) if (whole := _whole(storage, found))
    }
    growths = growths_of(growth_sequence(storage))
    return StoredRun(
        identity=identity,
        present=_with_input_of(staged, identity),
        units=units,
        wholes={unit.unit_id: wholes[unit.unit_id] for unit in units if unit.unit_id in wholes},
        editions=edition_sequence(storage),
        planned=(staged, *growths),
        growths=growths_needed(growths),
    )


def finished_run(storage: Storage) -> StoredRun:
    """A finished run with its editions repaired. The caller must hold the lock. Raises as `refuse_unfinished` does."""
    run = refuse_unfinished(storage)
    return replace(run, editions=repaired_editions(storage, run.wholes)[0])


def refuse_unfinished(storage: Storage) -> StoredRun:
    """A finished run. Changes nothing. Raises as `stored_run` does, and UsageError for an unfinished run."""
    run = stored_run(storage)
    refuse_incomplete(storage, run)
    return run


def refuse_incomplete(storage: Storage, run: StoredRun) -> None:
    """Raise UsageError for an unfinished run."""
    if run.incomplete:
        raise UsageError(f"{storage.run_dir}: {format_unfinished(run.incomplete, len(run.units))}: {_finish(run)}")


def _finish(run: StoredRun) -> str:
    """What finishes a run, as a clause."""
    if len(run.wholes) == len(run.units):
        return "finish its growth with the same `grow`, or with `label`"
    return "finish the run with `label`"


def readable_run(storage: Storage, *, partial: bool) -> StoredRun:
    """A run to read labels from. An unfinished run is accepted only with `partial`. Raises as `refuse_unfinished` does."""
    run = stored_run(storage)
    if run.incomplete and not partial:
        raise UsageError(
            f"{storage.run_dir}: {format_unfinished(run.incomplete, len(run.units))}: {_finish(run)}, or use the labels that "
            "it has with partial=true"
        )
    return run


def readable_identity(storage: Storage, written_by: str = _LABEL) -> dict[str, object]:
    """The run's recorded identity. `written_by`: the commands whose run is wanted, for the message. Raises UsageError for a
    directory without a run of this version, StoreError."""
    refuse_no_run(storage, written_by)
    identity = recorded_identity(storage)
    refuse_other_schema(storage, identity)
    return identity


def refuse_no_run(storage: Storage, written_by: str = _LABEL) -> None:
    """Raise UsageError for a directory in which no run was started. `written_by`: the commands whose run is wanted."""
    if not {NAME, FOLDER} & set(names := storage.names("")):
        if CHECKS in names:
            raise UsageError(
                f"run_dir={storage.run_dir} holds findings on rows without a run: give their folder, "
                f"run_dir={storage.run_dir}/{CHECKS}/VERIFIER"
            )
        inside = [name for name in names[:_LOOKED_AT] if _is_run(storage, name)]
        such = f", such as {storage.run_dir.rstrip('/')}/{inside[0]}" if inside else ""
        raise UsageError(
            f"run_dir={storage.run_dir} does not contain a run: give a directory that {written_by} has written{such}"
        )


def _is_run(storage: Storage, folder: str) -> bool:
    with suppress(StoreError):
        return f"{folder}/{NAME}" in storage.names(folder)
    return False


def with_present_input(storage: Storage, identity: Settings) -> Settings:
    """The recorded identity of a run with its present input, which may have grown since the first start."""
    staged = resolve(record_sequence(storage, INPUT, str(identity.get(STAGED_INPUT)))).whole
    return _with_input_of(staged, identity) if staged else identity


def _with_input_of(staged: Commit, identity: Settings) -> Settings:
    return with_input(identity, {key: json.loads(value) for key, value in staged.settings})


def _whole(storage: Storage, found: RecordSequence) -> Commit | None:
    refuse_damage(found, storage.run_dir)
    return resolve(found).whole
