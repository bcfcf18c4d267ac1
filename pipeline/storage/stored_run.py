"""A run directory as its commit records describe it: settings, units, tables and current labels. For commands that read it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.recorded_settings import Settings
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.core.records import GROWN, Tally
from pipeline.core.suggestions import choice_hint
from pipeline.core.table import Table
from pipeline.core.tables import CONSENSUS, DROPS, LABELS, PROMOTIONS, ROLLOUTS
from pipeline.data.grown import grown_id
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
    current_shards,
    edition_command,
    edition_sequence,
    edition_settings,
    repaired_editions,
)
from pipeline.storage.growths import growth_sequence, growths_needed, growths_of, has_grown
from pipeline.storage.location import storage_at
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
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, units_of

_MAKING = ("estimator.", "grader.", "grader_version")
_LABEL = "`label`"
_SOMETIMES = LABELS.with_extra(GROWN, *CONSENSUS).schema
"""All columns of labels: files may lack those of `CONSENSUS` and `DROPS`, and `grown`."""
_LOOKED_AT = 20
"""How many entries of a folder that is no run are looked into for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask:
    """A run of a task. `planned`: the records of its input, and of growths. `units`: in the order of the input. `wholes`: the
    records of the finished units, by unit id. What reads a table raises StoreError for a missing or damaged file."""

    storage: Storage
    identity: Settings
    planned: tuple[Commit, ...]
    units: tuple[UnitRef, ...]
    wholes: Mapping[str, Commit]
    editions: RecordSequence

    @property
    def unfinished(self) -> int:
        """The number of unfinished units."""
        return len(self.units) - len(self.wholes)

    @property
    def owed(self) -> str:
        """How many units are unfinished, in words."""
        return format_unfinished(self.unfinished, len(self.units))

    @property
    def remedy(self) -> str:
        """What finishes the run, as a clause."""
        return f"finish the run with `{command_of(self.identity)}`"

    def refuse_unfinished(self, alternative: str = "") -> None:
        """Raise UsageError for an unfinished run. `alternative`: to its remedy."""
        if self.unfinished:
            raise UsageError(f"{self.storage.run_dir}: {self.owed}: {self.remedy}{alternative}")

    @property
    def tally(self) -> Tally:
        """The counts of all finished units."""
        return sum((whole.tally for whole in self.wholes.values()), Tally())

    @property
    def edition(self) -> Commit | None:
        """The edition with the current labels, or readings. None where these are the run's own."""
        return current_edition(self.editions, self.wholes)

    @property
    def current_files(self) -> frozenset[str]:
        """The files that belong in the folders of the run, if it is finished."""
        return current_files((*self.planned, *self.wholes.values()), self.edition)

    def shards(self, table: Table[Any]) -> list[ShardRecord]:
        """The files of a table of all finished units, in the order of the input."""
        of_units = (self.wholes[unit.unit_id].shards for unit in self.units if unit.unit_id in self.wholes)
        return [shard for shards in of_units for shard in shards if shard.table == table.name]

    def of_unit(self, unit_id: str, table: Table[Any], columns: Sequence[str] | None = None) -> list[pa.Table]:
        """The files of a table of a finished unit, with these columns, or with all."""
        shards = (shard for shard in self.wholes[unit_id].shards if shard.table == table.name)
        return [read_shard(self.storage, shard, columns) for shard in shards]

    def tables(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[tuple[UnitRef, pa.Table]]:
        """A table of each finished unit that has files of it, in the order of the input."""
        for unit in self.units:
            if unit.unit_id in self.wholes and (found := self.of_unit(unit.unit_id, table, columns)):
                yield unit, pa.concat_tables(found).unify_dictionaries()

    def unit_frames(
        self, table: Table[Any], columns: Sequence[str] | None = None
    ) -> Iterator[tuple[UnitRef, pl.DataFrame]]:
        """`tables` as polars frames."""
        for unit, found in self.tables(table, columns):
            # Words of a vocabulary as strings, so that frames of several units fit each other.
            yield unit, pl.DataFrame(found).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))

    def frames(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The same without the units."""
        return (frame for _, frame in self.unit_frames(table, columns))

    def rows(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The same row by row, as dicts of column name -> value."""
        for frame in self.frames(table, columns):
            yield from frame.iter_rows(named=True)

    def frame(self, table: Table[Any], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The same as one frame."""
        frames = list(self.frames(table, columns))
        return pl.concat(frames) if frames else pl.DataFrame(table.schema.empty_table())


Stored = TypeVar("Stored", bound=StoredTask)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder(Generic[Stored]):
    """A folder of a run directory that holds runs of a `command` by name. `noun`: what such a run is. `pattern`: of names;
    None: the folder is itself the run. `misnamed`: said of a name that is none; `absent`: of one without a run, with the
    `remedy` where there is no other run."""

    noun: str
    folder: str
    command: str
    kind: type[Stored]
    pattern: re.Pattern[str] | None = None
    misnamed: str = ""
    absent: str = ""
    remedy: str = ""

    def at(self, storage: Storage, name: str) -> Storage:
        """The directory of a run of the run directory `storage`. Raises UsageError for a name that none can have."""
        if self.pattern is None:
            return storage_at(f"{storage.run_dir}/{self.folder}")
        if self.pattern.fullmatch(name) is None:
            raise UsageError(self.misnamed.format(name=name))
        return storage_at(f"{storage.run_dir}/{self.folder}/{name}")

    def names(self, storage: Storage) -> list[str]:
        """The names of the runs in a run directory, sorted. Raises StoreError for a directory that cannot be read."""
        found = storage_at(f"{storage.run_dir}/{self.folder}").names("")
        if self.pattern is None:
            return [self.folder] if found else []
        return [name for name in found if self.pattern.fullmatch(name)]

    def read(self, storage: Storage, name: str, *, partial: bool = False) -> Stored:
        """The run of this name. One that has not done all of its chains yet is accepted only with `partial`.

        Raises UsageError where there is none, and for an unfinished one; StoreError for a damaged one.
        """
        own = self.at(storage, name)
        if not own.names("") and self.absent:
            names = self.names(storage)
            said = {"run_dir": storage.run_dir, "name": name}
            others = choice_hint(name, names) if names else self.remedy.format(**said)
            raise UsageError(f"{self.absent.format(**said)}: {others}")
        return stored_task(own, self.command, self.kind, partial=partial)


def stored_task(storage: Storage, command: str, kind: type[Stored], *, partial: bool = False) -> Stored:
    """The run of `command` in a directory. An unfinished one is accepted only with `partial`.

    Raises UsageError for a directory without such a run, StoreError for a damaged one.
    """
    identity = readable_identity(storage, f"`{command}`")
    if (found := command_of(identity)) != command:
        raise UsageError(
            f"{storage.run_dir} is a run of `{found}`: give a file or a folder that `{command}` has written"
        )
    run = _stored(storage, command, identity, kind)
    if not partial:
        run.refuse_unfinished()
    return run


def _stored(storage: Storage, command: str, identity: Settings, kind: type[Stored]) -> Stored:
    staged = resolve(record_sequence(storage, INPUT, str(identity[STAGED_INPUT]))).whole
    if staged is None:
        raise StoreError(f"{storage.run_dir} has no intact input: start `{command}` on it again to repair it")
    units = tuple(units_of(storage, staged))
    wholes = {}
    for found in record_sequences(storage, UNIT):
        refuse_damage(found, storage.run_dir)
        if (whole := resolve(found).whole) is not None:
            wholes[found.sequence_id] = whole
    return kind(
        storage=storage,
        identity=identity,
        planned=(staged,),
        units=units,
        wholes={unit.unit_id: wholes[unit.unit_id] for unit in units if unit.unit_id in wholes},
        editions=edition_sequence(storage),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownCounts:
    """The promoted prefixes of a run, and the rollouts and tokens of theirs."""

    promoted: int
    rollouts: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(StoredTask):
    """A run of `label`. `growths`: what `UnitTarget.growths` is in a unit that owes no growth."""

    growths: int = 0

    @property
    def unfinished(self) -> int:
        """The number of unfinished units. One that owes a growth is unfinished, although it has labels."""
        return len(self.units) - has_grown(self.wholes.values(), self.growths)

    @property
    def remedy(self) -> str:
        if len(self.wholes) == len(self.units):
            return "finish its growth with the same `grow`, or with `label`"
        return super(StoredRun, self).remedy

    @property
    def present(self) -> Settings:
        """See `with_present_input`."""
        return _with_input_of(self.planned[0], self.identity) if self.planned else self.identity

    @property
    def edition_command(self) -> str:
        """The command by which a user has made the current labels, empty for those of `label` itself."""
        return edition_command(self.edition)

    @property
    def settings(self) -> Settings:
        """The settings of the current labels and of their verdicts."""
        if self.edition is not None:
            return edition_settings(self.edition)
        return {key: value for key, value in self.identity.items() if key.startswith(_MAKING)}

    def tables(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[tuple[UnitRef, pa.Table]]:
        """As of every run; labels are the current ones, with all chains of a problem in one table. Of the columns that are
        asked for, those that some labels do not have are null there; `grown` is false."""
        if table.name != LABELS.name:
            yield from super(StoredRun, self).tables(table, columns)
            return
        current = current_shards(self.wholes, self.edition)
        for unit in self.units:
            for shard in current.get(unit.unit_id, ()):
                yield unit, _with_lacking(read_shard(self.storage, shard, columns), columns or ())

    def grown_counts(self) -> GrownCounts:
        """What all growths have promoted, in finished units."""
        promoted = rollouts = tokens = 0
        for unit_id in self.wholes:
            promotions = (PROMOTIONS.from_table(table) for table in self.of_unit(unit_id, PROMOTIONS))
            ends = {grown_id(each, len(each.ends)) for of_file in promotions for each in of_file}
            promoted += len(ends)
            for table in self.of_unit(unit_id, ROLLOUTS, ("prefix_id", "n_tokens")) if ends else ():
                counts = table.filter(pc.is_in(table["prefix_id"], pa.array([*ends])))["n_tokens"]
                rollouts, tokens = rollouts + len(counts), tokens + (pc.sum(counts).as_py() or 0)
        return GrownCounts(promoted=promoted, rollouts=rollouts, tokens=tokens)


def _with_lacking(labels: pa.Table, columns: Sequence[str]) -> pa.Table:
    lacking = {GROWN, *CONSENSUS, *DROPS}.intersection(columns).difference(labels.column_names)
    for name in lacking:
        none = pa.nulls(labels.num_rows, _SOMETIMES.field(name).type)
        labels = labels.append_column(name, pc.fill_null(none, False) if name == GROWN else none)
    return labels.select(list(columns)) if lacking else labels


def stored_run(storage: Storage) -> StoredRun:
    """A run of `label`. Raises UsageError for a directory without a run of this version, StoreError for a damaged or unstarted
    run."""
    identity = readable_identity(storage)
    if (command := command_of(identity)) != LABEL:
        raise UsageError(f"{storage.run_dir} is a run of `{command}`: give a directory that `label` has written")
    run = _stored(storage, LABEL, identity, StoredRun)
    growths = growths_of(growth_sequence(storage))
    return replace(run, planned=(*run.planned, *growths), growths=growths_needed(growths))


def finished_run(storage: Storage) -> StoredRun:
    """A finished run with its editions repaired. The caller must hold the lock. Raises as `refuse_unfinished` does."""
    run = refuse_unfinished(storage)
    return replace(run, editions=repaired_editions(storage, run.wholes)[0])


def refuse_unfinished(storage: Storage) -> StoredRun:
    """A finished run. Changes nothing. Raises as `stored_run` does, and UsageError for an unfinished run."""
    run = stored_run(storage)
    run.refuse_unfinished()
    return run


def readable_run(storage: Storage, *, partial: bool) -> StoredRun:
    """A run to read labels from. An unfinished run is accepted only with `partial`. Raises as `refuse_unfinished` does."""
    run = stored_run(storage)
    if not partial:
        run.refuse_unfinished(", or use the labels that it has with partial=true")
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
    return with_input(identity, staged.recorded)
