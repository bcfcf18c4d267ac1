"""What the records of a run directory amount to, for commands that read it: its settings, units, and current labels."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.storage.commits import FOLDER, INPUT, UNIT, Commit, CommitChain, chain, chains, refuse_damage, resolve
from pipeline.storage.editions import current_edition, edition_chain, edition_settings, repaired_editions
from pipeline.storage.run_record import NAME, STAGED_INPUT, recorded_identity
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, units_of

_MAKING = ("estimator.", "grader.", "grader_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """`units` in the order of the input; `wholes` holds the records of those that are whole, by unit id."""

    identity: Settings
    units: tuple[UnitRef, ...]
    wholes: Mapping[str, Commit]
    editions: CommitChain

    @property
    def owed(self) -> int:
        """How many units have no labels yet."""
        return len(self.units) - len(self.wholes)

    @property
    def edition(self) -> Commit | None:
        """The edition that holds the current labels; None where those are the run's own."""
        return current_edition(self.editions, self.wholes)

    @property
    def settings(self) -> Settings:
        """The settings that the current labels and their verdicts were made with."""
        if self.edition is not None:
            return edition_settings(self.edition)
        return {key: value for key, value in self.identity.items() if key.startswith(_MAKING)}


def stored_run(storage: Storage) -> StoredRun:
    """Raises UsageError for a directory that is no run of this version, StoreError for a damaged or unstarted one."""
    identity = readable_identity(storage)
    staged = resolve(chain(storage, INPUT, str(identity[STAGED_INPUT]))).whole
    if staged is None:
        raise StoreError(f"{storage.place} has no intact input: start `label` on it again")
    units = tuple(units_of(storage, staged))
    wholes = {found.chain_id: whole for found in chains(storage, UNIT) if (whole := _whole(storage, found))}
    return StoredRun(
        identity=identity,
        units=units,
        wholes={unit.unit_id: wholes[unit.unit_id] for unit in units if unit.unit_id in wholes},
        editions=edition_chain(storage),
    )


def finished_run(storage: Storage) -> StoredRun:
    """A run of which nothing is owed, its editions mended; for who holds the lock. Raises as `refuse_unfinished` does."""
    run = refuse_unfinished(storage)
    return replace(run, editions=repaired_editions(storage, run.wholes)[0])


def refuse_unfinished(storage: Storage) -> StoredRun:
    """A run of which nothing is owed; nothing is touched. Raises as `stored_run` does, and UsageError for an unfinished run."""
    run = stored_run(storage)
    if run.owed:
        raise UsageError(
            f"{storage.place} is not finished, {run.owed} of its {len(run.units)} units are owed: finish it with `label`"
        )
    return run


def readable_run(storage: Storage, *, partial: bool) -> StoredRun:
    """A run whose labels are to be read; an unfinished one only with `partial`. Raises as `refuse_unfinished` does."""
    run = stored_run(storage)
    if run.owed and not partial:
        raise UsageError(
            f"{storage.place} is not finished, {run.owed} of its {len(run.units)} units are owed: finish it with `label`, or "
            "use what it has so far with partial=true"
        )
    return run


def readable_identity(storage: Storage) -> dict[str, object]:
    """What the run is the result of. Raises UsageError for a directory that is no run of this version, StoreError."""
    refuse_no_run(storage)
    identity = recorded_identity(storage)
    if identity.get("schema") != SCHEMA_VERSION:
        raise UsageError(
            f"{storage.place} was written with schema {identity.get('schema')}, this is {SCHEMA_VERSION}: use the version of "
            "stepvalue that wrote it"
        )
    return identity


def refuse_no_run(storage: Storage) -> None:
    """Raise UsageError for a directory that no run was ever begun in."""
    if not {NAME, FOLDER} & set(storage.names("")):
        raise UsageError(f"run_dir={storage.place} holds no run: name a directory that `label` has written")


def _whole(storage: Storage, found: CommitChain) -> Commit | None:
    refuse_damage(found, storage.place)
    return resolve(found).whole
