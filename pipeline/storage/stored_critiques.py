"""The judges of a run directory: the runs of `judge` in its folder `judges/`, their critiques and how these are read.

Critiques never change. `regrade` may read them again: an edition of the judge's run then has their readings, and counts as long
as the judge's log is the one that it was made from. Readers here take the newest readings.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.judge import JUDGE_NAME
from pipeline.core.errors import StoreError
from pipeline.core.ids import content_id
from pipeline.core.records import ReadingKind, Tally
from pipeline.core.table import Table
from pipeline.core.tables import CRITIQUES, READINGS
from pipeline.storage.editions import current_shards
from pipeline.storage.run_record import JUDGE
from pipeline.storage.shards import ShardRecord, read_shard
from pipeline.storage.stored_run import RunFolder, StoredTask
from pipeline.storage.units import UnitRef

_ID = "critique_id"
_OF_READING = frozenset(READINGS.schema.names) - {_ID}


class StoredJudge(StoredTask):
    """A run of `judge`. `tally` is that of `critique_tally`, of the critiques as they were read when they were written;
    `tables` has the newest readings."""

    @property
    def name(self) -> str:
        return str(self.identity["judge.name"])

    @property
    def votes(self) -> int:
        """Critiques of each chain."""
        return int(str(self.identity["judge.votes"]))

    @property
    def digest(self) -> str:
        """The identity of all critiques and of their newest readings. It changes when a chain is judged or read again."""
        newest = self._newest()
        found = [shard.sha256 for unit_id in self.wholes for shard in newest.get(unit_id, ())]
        return content_id(
            "critiques", self.name, *(shard.sha256 for shard in self.shards(CRITIQUES)), READINGS.name, *found
        )

    def tables(self, table: Table[Any], columns: Sequence[str] | None = None) -> Iterator[tuple[UnitRef, pa.Table]]:
        """As of every run; critiques have their newest readings."""
        newest = self._newest()
        reads = columns is None or not _OF_READING.isdisjoint(columns)
        needed = [*columns, _ID] if columns is not None and reads and _ID not in columns else columns
        for unit, found in super().tables(table, needed):
            if reads and unit.unit_id in newest:
                found = self._with_readings(found, newest[unit.unit_id][0])
            yield unit, found if columns is None else found.select(list(columns))

    def _newest(self) -> Mapping[str, Sequence[ShardRecord]]:
        """The files with the newest readings, by finished unit. Empty: those in the critiques count."""
        edition = self.edition
        return {} if edition is None else current_shards(self.wholes, edition, READINGS.name)

    def _with_readings(self, table: pa.Table, newest: ShardRecord) -> pa.Table:
        readings = read_shard(self.storage, newest)
        if readings[_ID].to_pylist() != table[_ID].to_pylist():
            raise StoreError(
                f"{self.storage.run_dir}/{newest.file} has the readings of other critiques: make them again with `regrade`"
            )
        for at, field in enumerate(table.schema):
            if field.name in _OF_READING:
                table = table.set_column(at, field, readings[field.name])
        return table


JUDGE_RUNS = RunFolder(
    noun="judge",
    folder="judges",
    command=JUDGE,
    kind=StoredJudge,
    pattern=JUDGE_NAME,
    misnamed="judge.name={name!r} is no name of a judge: it has 1 to 64 lower-case letters, digits, dots, dashes or "
    "underscores, and begins with a letter or digit",
    absent="{run_dir} has no judge {name}",
    remedy="make one: judge run_dir={run_dir} judge.name={name}",
)


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
    unanimous = 0
    says = pl.col("reading").is_in([ReadingKind.ERROR.value, ReadingKind.NO_ERROR.value])
    for frame in judge.frames(CRITIQUES, ["row", "reading", "first_error"]):
        kinds.update({ReadingKind(kind): number for kind, number in frame["reading"].value_counts().iter_rows()})
        of_chains = frame.group_by("row").agg(alike=says.all() & (pl.struct("reading", "first_error").n_unique() == 1))
        unanimous += int(of_chains["alike"].sum())
    return CritiqueCounts(
        chains=judge.tally["chains"],
        critiques=judge.tally["critiques"],
        votes=judge.votes,
        kinds={kind: kinds[kind] for kind in ReadingKind},
        unanimous=unanimous,
    )
