"""The content of a run directory as tables that fit in memory (about 70 bytes per step), read once and unit by unit.

Commit records say which files to read; texts are left out. `aggregates` computes the figures from these tables. Of unfinished
units, only committed rollouts and their tokens are counted.

`first_chains` and `rejected_rows` read separately what the terminal shows: some chains, and why rows were rejected.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypedDict

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.analysis.consensus import TABLE as RELIABILITIES
from pipeline.analysis.consensus import learned_from
from pipeline.analysis.report.aggregates import COLUMNS, chains_of, given_outcomes, makers_of, steps_of
from pipeline.analysis.report.warnings import repeated_texts
from pipeline.config.consensus import cap_text, made_up_witnesses
from pipeline.config.recorded_settings import Settings
from pipeline.consensus.kept import COLUMNS as OF_CONSENSUS
from pipeline.consensus.kept import ConsensusCounter, ConsensusSummary
from pipeline.consensus.reliability import Reliability, reliabilities
from pipeline.core.forecast import Forecast
from pipeline.core.ids import is_shard_file
from pipeline.core.records import UNGRADED, Finish, Reject, Tally, Totals, Verdict
from pipeline.core.tables import LABELS, LABELS_GROWN, REJECTS, ROLLOUTS
from pipeline.engines.registry import made_up_text
from pipeline.storage.commits import (
    INPUT,
    UNIT,
    Commit,
    log_tally,
    record_sequence,
    record_sequences,
    resolve,
    sequence_lengths,
)
from pipeline.storage.editions import VERDICTS, current_shards
from pipeline.storage.objects import each
from pipeline.storage.run_record import STAGED_INPUT, recorded_identity
from pipeline.storage.shards import read_shard
from pipeline.storage.starts import Start, read_starts
from pipeline.storage.storage import Storage, sha256_of
from pipeline.storage.stored_labels import has_consensus
from pipeline.storage.stored_run import StoredRun, stored_run

_LOG = ["rollout_id", "step_index", "finish", "verdict", "n_tokens"]
_LOG_BY = ["step_index", "finish", "verdict"]
_REJECTS = "rejects"
_MAKERS = ["policy", "estimator", "label_rule"]
_UNITS_WITH_TEXTS = 8
"""Units whose rollouts are read with their texts: enough to see whether texts are repeated, at a bounded cost."""
EXAMPLES = 200
"""Rejects that are kept with their texts; all of them are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """`settings`: those of the `run`, with those of its current labels. `totals`: of the input and of the finished units, with
    the verdicts of the current labels. `unfinished`: rollouts and tokens that are committed beyond the finished units.

    `steps`, `chains`, `makers`, `given_outcomes`: see `aggregates`. `log`: `rollouts` and their `tokens` by step_index, finish
    and verdict. `repeats`: see `_repeats`. `rejects`: the first ones. `reject_counts`: all of them by reason, separately
    for rows and for single prefixes. If no row was usable, both come from the reject files, which no record lists.
    `damaged_starts` names unreadable files, which are not in `starts`. `made_up`: see `made_up_text`; empty without labels.
    `consensus`: what consensus made of the labels, None for other labels. `capped`: see `cap_text`. `reliabilities`: what it
    has learned of its witnesses, if it has. `made_up_opinions`: why what its witnesses say is no evidence."""

    run: StoredRun
    settings: Settings
    totals: Totals
    unfinished: Totals
    steps: pl.DataFrame
    chains: pl.DataFrame
    makers: pl.DataFrame
    given_outcomes: int
    log: pl.DataFrame
    repeats: tuple[int, int]
    rejects: pl.DataFrame
    reject_counts: pl.DataFrame
    starts: tuple[Start, ...]
    damaged_starts: tuple[str, ...]
    plan: Forecast | None
    made_up: str = ""
    consensus: ConsensusSummary | None = None
    reliabilities: Sequence[Reliability] = ()
    made_up_opinions: tuple[str, ...] = ()
    capped: str = ""


def load_run_data(run: StoredRun, plan: Forecast | None) -> RunData:
    """Raises StoreError for a missing or damaged file."""
    storage = run.storage
    commits = [each for each in (staged_input(storage, run.identity), *run.wholes.values()) if each]
    labels, log = _labels(run), _log(run)
    rejects, counts = _rejects(_committed(storage, commits) if commits else _uncommitted(storage))
    unused = sum(counts["rejects"])
    starts = read_starts(storage)
    nothing_staged = Totals() if commits else Totals(rows=unused, rejected=unused)
    totals = sum((commit.totals for commit in commits), nothing_staged)
    return RunData(
        run=run,
        settings={**run.present, **run.settings},
        totals=regraded_totals(totals, log) if run.edition else totals,
        unfinished=_unfinished(storage, run),
        **labels,
        log=log,
        repeats=_repeats(run),
        rejects=rejects,
        reject_counts=counts,
        starts=starts.starts,
        damaged_starts=starts.damaged,
        plan=plan,
        made_up=made_up_text(run.identity) if labels["chains"].height else "",
        reliabilities=_reliabilities(run),
        made_up_opinions=tuple(made_up_witnesses(run.settings)),
        capped=cap_text(run.settings),
    )


def _reliabilities(run: StoredRun) -> Sequence[Reliability]:
    shards = [shard for shard in run.edition.shards if shard.table == RELIABILITIES] if run.edition else []
    return reliabilities(learned_from(read_shard(run.storage, shards[0]))) if shards else ()


def first_chains(storage: Storage, count: int, first_unit: str = "") -> list[dict[str, object]]:
    """The first `count` label rows, from the unit `first_unit` on if one is given; chains of one problem are adjacent."""
    run = stored_run(storage)
    begin = next((at for at, unit in enumerate(run.units) if unit.unit_id == first_unit), 0)
    return list(islice(replace(run, units=run.units[begin:]).rows(LABELS), count))


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRows:
    """Number of rejected rows by reason, most frequent first, and the `first` of them in the order in which they were found."""

    counts: dict[str, int]
    first: tuple[Reject, ...]


def rejected_rows(storage: Storage, count: int) -> RejectedRows:
    """The rejected rows, `count` of them at most as examples. Raises StoreError."""
    counts: Counter[str] = Counter()
    first: list[Reject] = []
    staged = staged_input(storage, recorded_identity(storage))
    for table in _committed(storage, [staged, *(resolve(found).whole for found in record_sequences(storage, UNIT))]):
        whole_rows = table.filter(pc.is_null(table["step_index"]))
        counts.update(map(str, whole_rows["reason"].to_pylist()))
        first += REJECTS.from_table(whole_rows.slice(0, count - len(first)))
    return RejectedRows(counts=dict(counts.most_common()), first=tuple(first))


def staged_input(storage: Storage, identity: Settings) -> Commit | None:
    """The commit record of the input; None if no row of it was usable, or if it was not read to its end yet."""
    return resolve(record_sequence(storage, INPUT, str(identity.get(STAGED_INPUT)))).whole


def _unfinished(storage: Storage, run: StoredRun) -> Totals:
    """Counted as in `status`."""

    def beyond(unit_id: str) -> Totals:
        whole = run.wholes.get(unit_id)
        if whole and whole.number == lengths.get(unit_id, 0) - 1:
            return Totals()
        logged, known = log_tally(record_sequence(storage, UNIT, unit_id)).totals, whole.totals if whole else Totals()
        return Totals(rollouts=logged.rollouts - known.rollouts, tokens=logged.tokens - known.tokens)

    lengths = sequence_lengths(storage, UNIT)
    return sum(each(storage, beyond, [unit.unit_id for unit in run.units if unit.unit_id in lengths]), Totals())


def regraded_totals(totals: Totals, log: pl.DataFrame) -> Totals:
    """The totals with the verdicts of the log, counted as `runtime.planner.totals_of` does."""
    counted = log.filter(pl.col("finish") != Finish.ABORT.value)
    by_verdict = Tally(counted.group_by("verdict").agg(pl.sum("rollouts")).iter_rows())
    return replace(
        totals,
        correct=by_verdict[Verdict.CORRECT],
        incorrect=by_verdict[Verdict.INCORRECT],
        no_answer=by_verdict[Verdict.NO_ANSWER],
        ungraded=sum(by_verdict[verdict] for verdict in UNGRADED),
    )


class _Labels(TypedDict):
    """The parts of `RunData` that come from labels."""

    steps: pl.DataFrame
    chains: pl.DataFrame
    makers: pl.DataFrame
    given_outcomes: int
    consensus: ConsensusSummary | None


def _labels(run: StoredRun) -> _Labels:
    labels = _empty(LABELS_GROWN.schema)
    steps = [steps_of(labels, 0)]
    chains = [chains_of(steps[0])]
    makers = [makers_of(labels)]
    agreed = ConsensusCounter()
    first = given = 0
    by_consensus = has_consensus(run)
    for labels in run.frames(LABELS, tuple(dict.fromkeys([*COLUMNS, *(OF_CONSENSUS if by_consensus else ())]))):
        steps.append(steps_of(labels, first))
        chains.append(chains_of(steps[-1]))
        makers.append(makers_of(labels))
        if by_consensus:
            agreed.add(labels)
        given += given_outcomes(labels)
        first += labels.height
    made = pl.concat(makers).group_by(_MAKERS).agg(pl.sum("chains"))
    return _Labels(
        steps=pl.concat(steps),
        chains=pl.concat(chains),
        makers=made.sort("chains", *_MAKERS, descending=[True, False, False, False]),
        given_outcomes=given,
        consensus=agreed.summary(),
    )


def _log(run: StoredRun) -> pl.DataFrame:
    verdicts = current_shards(run.wholes, run.edition, VERDICTS) if run.edition else {}
    counted = [_counted(_empty(ROLLOUTS.schema))]
    for unit, log in run.tables(ROLLOUTS, _LOG):
        judged = pl.DataFrame(log)
        if later := verdicts.get(unit.unit_id):
            frames = [pl.DataFrame(read_shard(run.storage, shard, ["rollout_id", "verdict"])) for shard in later]
            judged = judged.drop("verdict").join(pl.concat(frames), on="rollout_id", how="left", validate="1:1")
        counted.append(_counted(judged))
    return pl.concat(counted).group_by(_LOG_BY).agg(pl.sum("rollouts", "tokens")).sort(_LOG_BY)


def _repeats(run: StoredRun) -> tuple[int, int]:
    """The sums of `repeated_texts` over the first units."""
    read = islice(run.tables(ROLLOUTS, ["prefix_id", "text", "n_tokens"]), _UNITS_WITH_TEXTS)
    found = [repeated_texts(pl.DataFrame(log)) for _, log in read]
    return sum(repeated for repeated, _ in found), sum(long for _, long in found)


def _counted(log: pl.DataFrame) -> pl.DataFrame:
    texts = log.with_columns(pl.col("finish", "verdict").cast(pl.String))
    return texts.group_by(_LOG_BY).agg(rollouts=pl.len().cast(pl.Int64), tokens=pl.sum("n_tokens").cast(pl.Int64))


def _rejects(tables: Iterable[pa.Table]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The first rejects with their texts, and the number of all by reason, whole rows before single prefixes."""
    first = [_empty(REJECTS.schema)]
    by = ["of_prefix", "reason"]
    counts = []
    for found in (first[0], *map(pl.DataFrame, tables)):
        first.append(found.head(EXAMPLES - sum(frame.height for frame in first)))
        reasons = found.select(pl.col("step_index").is_not_null().alias("of_prefix"), "reason")
        counts.append(reasons.group_by(by).agg(rejects=pl.len()))
    summed = pl.concat(counts).group_by(by).agg(pl.sum("rejects"))
    return pl.concat(first), summed.sort("of_prefix", "rejects", "reason", descending=[False, True, False])


def _uncommitted(storage: Storage) -> Iterator[pa.Table]:
    """Rejects of an input without a usable row. No record lists them, but the name of a complete file has the hash of its
    content."""
    for name in storage.names(_REJECTS):
        data = storage.read(name)
        if is_shard_file(name) and sha256_of(data).startswith(name.removesuffix(".parquet").rpartition("-")[2]):
            yield pq.read_table(pa.BufferReader(data))


def _committed(storage: Storage, commits: Iterable[Commit | None]) -> Iterator[pa.Table]:
    """The rejects that these records name."""
    for commit in commits:
        for shard in commit.shards if commit else ():
            if shard.table == _REJECTS:
                yield read_shard(storage, shard)


def _empty(schema: pa.Schema) -> pl.DataFrame:
    return pl.DataFrame(schema.empty_table())
