"""The judges of a run directory: the runs of `judge` in its folder `judges/`, their critiques and how these are read.

Critiques never change. `regrade` may read them again: an edition of the judge's run then has their readings, and counts as long
as the judge's log is the one that it was made from. Readers here take the newest readings.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.judge import JUDGE_NAME
from pipeline.core.errors import StoreError, UsageError
from pipeline.core.ids import content_id
from pipeline.core.records import ReadingKind, Tally
from pipeline.core.suggestions import choice_hint
from pipeline.core.tables import READINGS as READINGS_TABLE
from pipeline.storage.commits import Commit, RecordSequence
from pipeline.storage.editions import current_edition, current_shards, edition_sequence
from pipeline.storage.location import storage_at
from pipeline.storage.run_record import JUDGE
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_chain_run import StoredChainRun, stored_chain_run

FOLDER = "judges"
TABLE = "critiques"
READINGS = "readings"
_ID = "critique_id"
_KEY = (_ID,)
_OF_READING = frozenset(READINGS_TABLE.schema.names) - {_ID}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJudge:
    """A judge of a run. `storage`: its own run directory. `editions`: of its readings.

    `tally` is that of `critique_tally`, of the critiques as they were read when they were written. `editions` may read them
    otherwise.
    """

    name: str
    storage: Storage
    run: StoredChainRun
    editions: RecordSequence

    @property
    def votes(self) -> int:
        """Critiques of each chain."""
        return int(str(self.run.identity["judge.votes"]))

    @property
    def edition(self) -> Commit | None:
        """The edition with the newest readings. None: the critiques are read as when they were written."""
        return current_edition(self.editions, self.run.wholes)

    @property
    def shards(self) -> tuple[ShardRecord, ...]:
        """The files of critiques of all finished units, in the order of the chains."""
        return tuple(self.run.shards(TABLE))

    def readings(self, unit_id: str) -> tuple[ShardRecord, ...]:
        """The files with the newest readings of a finished unit. Empty: those in its critiques count."""
        edition = self.edition
        return () if edition is None else current_shards(self.run.wholes, edition, READINGS)[unit_id]

    @property
    def digest(self) -> str:
        """The identity of all critiques and of their newest readings. It changes when a chain is judged or read again."""
        found = [shard.sha256 for unit_id in self.run.wholes for shard in self.readings(unit_id)]
        return content_id("critiques", self.name, *(shard.sha256 for shard in self.shards), READINGS, *found)


def judge_storage(storage: Storage, name: str) -> Storage:
    """The run directory of a judge of the run directory `storage`. Raises UsageError for a name that no judge can have."""
    if JUDGE_NAME.fullmatch(name) is None:
        raise UsageError(
            f"judge.name={name!r} is no name of a judge: it has 1 to 64 lower-case letters, digits, dots, dashes or "
            "underscores, and begins with a letter or digit"
        )
    return storage_at(f"{storage.run_dir}/{FOLDER}/{name}")


def judge_names(storage: Storage) -> list[str]:
    """The names of the judges of a run directory, sorted. Raises StoreError for a directory that cannot be read."""
    return [name for name in storage_at(f"{storage.run_dir}/{FOLDER}").names("") if JUDGE_NAME.fullmatch(name)]


def stored_judge(storage: Storage, name: str, *, partial: bool = False) -> StoredJudge:
    """The judge of this name of the run directory `storage`. One that has not judged all of its chains yet is accepted only
    with `partial`.

    Raises UsageError for a run without this judge, and for an unfinished one; StoreError for a damaged one.
    """
    own = judge_storage(storage, name)
    if not own.names(""):
        names = judge_names(storage)
        others = choice_hint(name, names) if names else f"make one: judge run_dir={storage.run_dir} judge.name={name}"
        raise UsageError(f"{storage.run_dir} has no judge {name}: {others}")
    return judge_at(own, partial=partial)


def judge_at(own: Storage, *, partial: bool = False) -> StoredJudge:
    """The judge whose run directory is `own`. Raises as `stored_judge` does."""
    run = stored_chain_run(own, JUDGE, partial=partial)
    return StoredJudge(name=str(run.identity["judge.name"]), storage=own, run=run, editions=edition_sequence(own))


def critique_tables(judge: StoredJudge, columns: Sequence[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a finished unit and its critiques with their newest readings, in the order of the chains. `columns`: those of
    the table `critiques` that are wanted; None: all. Raises StoreError for a damaged file."""
    needed = None if columns is None else list(dict.fromkeys([*columns, *(_KEY if _reads(columns) else ())]))
    for unit_id in (unit.unit_id for unit in judge.run.units if unit.unit_id in judge.run.wholes):
        shards = [shard for shard in judge.run.wholes[unit_id].shards if shard.table == TABLE]
        if not shards:
            continue
        table = pa.concat_tables([read_shard(judge.storage, shard, needed) for shard in shards]).unify_dictionaries()
        newest = judge.readings(unit_id)
        if newest and _reads(table.column_names):
            table = _with_readings(judge, table, newest[0])
        yield unit_id, table if columns is None else table.select(list(columns))


def critique_frames(judge: StoredJudge, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """`critique_tables` as polars frames: one for each finished unit, one row per vote, sorted by chain and vote."""
    for _, table in critique_tables(judge, columns):
        yield pl.DataFrame(table)


def critique_tally(critiques: pa.Table, votes: int) -> Tally:
    """The counts of critiques, `votes` of each chain: judged `chains`, their `critiques`, the `tokens` that were written and
    `tokens_read`, and critiques by their reading; `engine_failed` are those of chains that kill engines."""
    kinds = Counter(critiques["reading"].to_pylist())
    return Tally(
        {kind.value: kinds[kind] for kind in ReadingKind if kind is not ReadingKind.FAILED},
        chains=critiques.num_rows // votes,
        critiques=critiques.num_rows,
        tokens=pc.sum(critiques["n_tokens"]).as_py() or 0,
        tokens_read=pc.sum(critiques["n_prompt_tokens"]).as_py() or 0,
        engine_failed=kinds[ReadingKind.FAILED],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CritiqueCounts:
    """`kinds`: critiques by their newest reading; every kind is there. `unanimous`: chains of which all votes say the same, and
    say something."""

    chains: int
    critiques: int
    votes: int
    kinds: Mapping[ReadingKind, int]
    unanimous: int


def critique_counts(judge: StoredJudge) -> CritiqueCounts:
    """The critiques of all finished units in numbers. Raises StoreError for a damaged file."""
    kinds: Counter[ReadingKind] = Counter()
    chains = critiques = unanimous = 0
    says = pl.col("reading").is_in([ReadingKind.ERROR.value, ReadingKind.NO_ERROR.value])
    for frame in critique_frames(judge, ["row", "reading", "first_error"]):
        frame = frame.with_columns(pl.col("reading").cast(pl.String))
        kinds.update({ReadingKind(kind): number for kind, number in frame["reading"].value_counts().iter_rows()})
        of_chains = frame.group_by("row").agg(alike=says.all() & (pl.struct("reading", "first_error").n_unique() == 1))
        chains += of_chains.height
        critiques += frame.height
        unanimous += int(of_chains["alike"].sum())
    return CritiqueCounts(
        chains=chains,
        critiques=critiques,
        votes=judge.votes,
        kinds={kind: kinds[kind] for kind in ReadingKind},
        unanimous=unanimous,
    )


def _reads(columns: Sequence[str]) -> bool:
    """Whether one of the columns is part of a reading."""
    return not _OF_READING.isdisjoint(columns)


def _with_readings(judge: StoredJudge, table: pa.Table, newest: ShardRecord) -> pa.Table:
    """The table with the readings of an edition in place of its own."""
    readings = read_shard(judge.storage, newest)
    if readings[_ID].to_pylist() != table[_ID].to_pylist():
        raise StoreError(
            f"{judge.storage.run_dir}/{newest.file} has the readings of other critiques: make them again with `regrade`"
        )
    for at, field in enumerate(table.schema):
        if field.name in _OF_READING:
            table = table.set_column(at, field, readings[field.name])
    return table
