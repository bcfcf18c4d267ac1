"""Makes an edition: values and labels of all units of a finished run, from its log and without an engine.

`label` makes one as its last step, because each of its units only knows what units before it have learned. `relabel` and
`regrade` make the others. An estimator that learns has learned from all units, in the order of the input: the labels depend on
the log alone, not on the order in which units were finished.

An edition is made unit by unit, with one unit in memory, and then published as a whole. Its files are written into `aside/`,
where no reader of `labels/*.parquet` looks. When the record is published, they are the current files, and `editions.arrange`
moves them. A crash before the record leaves files that no record names. A crash after it leaves a move, which the next command
on the directory completes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.config.recorded_settings import Settings
from pipeline.core.ids import content_id
from pipeline.core.progress import RelabelResult
from pipeline.core.records import Chain, Trials
from pipeline.core.tables import OUTCOMES, PROMOTIONS, ROLLOUTS
from pipeline.data.grown import in_rounds, with_passed
from pipeline.estimators.base import Estimator
from pipeline.estimators.labelling import labels_of, rollout_outcomes_of, stored_chains, with_verdicts
from pipeline.estimators.tree import trees_of, trials_of
from pipeline.storage.commits import publish_or_refuse
from pipeline.storage.editions import LABELS, VERDICTS, common_state, current_shards, new_edition
from pipeline.storage.shards import ASIDE, ShardRecord, read_shard, write_shard
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import StoredRun
from pipeline.storage.units import UnitRef

Judging = Callable[[UnitRef, Sequence[Chain], Sequence[pa.Table]], tuple[Sequence[Chain], pa.Table]]
"""From a unit, its chains and its rollouts: the chains with new outcomes, and the new verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedUnit:
    """What the new labels of a unit are made from. `own`: the trials of each prefix itself, which the estimator learns from;
    `trials`: with those that had passed through promoted prefixes."""

    chains: Sequence[Chain]
    own: Mapping[str, Trials]
    trials: Mapping[str, Trials]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The new verdicts of a unit, and for each chain its new final answer and outcome. `changes`: see `RelabelResult`."""

    verdicts: Sequence[ShardRecord]
    outcomes: Sequence[tuple[str | None, bool | None]]
    changes: Counter[str]


class EditionWriter:
    """Writes an edition of the labels of `run`, with values by `estimator`. `judge` makes new verdicts; None: the current ones
    count. `look` is called before each unit, and may raise."""

    def __init__(
        self,
        storage: Storage,
        run: StoredRun,
        estimator: Estimator,
        judge: Judging | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._run = run
        self._estimator = estimator
        self._judge = judge
        self._look = look
        self._labels = current_shards(run.wholes, run.edition, LABELS)
        self._verdicts = current_shards(run.wholes, run.edition, VERDICTS)
        self._judged: dict[str, _Judged] = {}
        self._shards: list[ShardRecord] = []
        self._learned_from = 0
        self._edited = RelabelResult(run_dir=storage.run_dir)

    def learned(self) -> Any:
        """The state of the estimator, which becomes part of the edition: that of the current labels if it was learned from all
        units and no verdict changes, or else what is learned from them now. None for an estimator that does not learn."""
        learner = self._estimator.learner
        if learner is None:
            return None
        state = None
        for shard in common_state(self._run.wholes, self._run.edition) if self._judge is None else ():
            # The state of another estimator or version cannot be used.
            with suppress(ValueError):
                if shard.table == learner.table:
                    state = learner.from_table(read_shard(self._storage, shard))
                    self._shards.append(shard)
        if state is None:
            state = learner.initial()
            for ref in self._run.units:
                if (unit := self.prepare(ref)) is not None:
                    trees = trees_of([chain.shape for chain in unit.chains if not chain.grown])
                    state = learner.learn(state, trees, unit.own)
            self.write_learned(learner.to_table(state), learner.table)
        self._learned_from = state.chains
        return state

    def prepare(self, ref: UnitRef) -> PreparedUnit | None:
        """What the labels of a unit are made from, with new verdicts if there is a judge. None: it has no labels."""
        self._look()
        if not (labels := self._labels[ref.unit_id]):
            return None
        chains = stored_chains(read_shard(self._storage, labels[0]))
        verdicts: Sequence[ShardRecord] = self._verdicts[ref.unit_id]
        if self._judge is not None:
            judged = self._judged.get(ref.unit_id) or self._judgement(self._judge, ref, chains)
            self._judged[ref.unit_id] = judged
            verdicts = judged.verdicts
            chains = [
                replace(chain, final_answer=answer, outcome=outcome)
                for chain, (answer, outcome) in zip(chains, judged.outcomes, strict=True)
            ]
        log = self._run.of_unit(ref.unit_id, ROLLOUTS, OUTCOMES)
        outcomes = with_verdicts(rollout_outcomes_of(log), self._table(verdicts))
        promoted = self._run.of_unit(ref.unit_id, PROMOTIONS)
        promotions = in_rounds(each for table in promoted for each in PROMOTIONS.from_table(table))
        own = trials_of(outcomes.values())
        trials = trials_of(with_passed(outcomes, promotions).values()) if promotions else own
        return PreparedUnit(chains=chains, own=own, trials=trials)

    def write(self, ref: UnitRef, new: pa.Table) -> None:
        """Write the labels of a prepared unit, unless they are the current ones."""
        labels, judged = self._labels[ref.unit_id], self._judged.get(ref.unit_id)
        old = read_shard(self._storage, labels[0])
        before, now = (pc.list_flatten(table["label"]).to_pylist() for table in (old, new))
        if new.equals(old):
            self._shards += labels
        else:
            self._add(LABELS, content_id(LABELS, ref.unit_id), new)
        self._shards += self._verdicts[ref.unit_id] if judged is None else judged.verdicts
        done = self._edited
        self._edited = replace(
            done,
            chains=done.chains + new.num_rows,
            labels=done.labels + len(now),
            labels_changed=done.labels_changed + sum(left != right for left, right in zip(before, now, strict=True)),
            rollouts=done.rollouts + self._run.wholes[ref.unit_id].totals.rollouts,
            verdict_changes=done.verdict_changes + (judged.changes if judged else Counter()),
        )

    def write_all(self) -> None:
        """Write the labels that the estimator makes of all units."""
        state = self.learned()
        for ref in self._run.units:
            if (unit := self.prepare(ref)) is not None:
                self.write(ref, labels_of(unit.chains, unit.trials, self._estimator, state))

    def write_learned(self, table: pa.Table, name: str) -> None:
        """Write what was learned from all units, as the table `name`."""
        self._add(name, content_id(name), table)

    def publish(self, settings: Settings, command: str = "") -> RelabelResult:
        """Make what was written the current labels; `editions.arrange` moves them. `command`: see `editions.edition_command`.

        Raises RunConflict."""
        run = self._run
        edition = new_edition(
            run.editions, run.wholes, settings, self._shards, command=command, learned_from=self._learned_from
        )
        publish_or_refuse(self._storage, edition)
        return replace(self._edited, number=edition.number)

    def _add(self, name: str, part: str, table: pa.Table) -> None:
        shard = write_shard(self._storage, name, part, [table], folder=ASIDE)
        self._shards.append(replace(shard, file=shard.file.replace(ASIDE, name, 1)))

    def _judgement(self, judge: Judging, ref: UnitRef, chains: Sequence[Chain]) -> _Judged:
        rollouts = self._run.of_unit(ref.unit_id, ROLLOUTS)
        regraded, verdicts = judge(ref, chains, rollouts)
        old, outcomes = self._table(self._verdicts[ref.unit_id]), rollout_outcomes_of(rollouts)
        before, after = with_verdicts(outcomes, old), with_verdicts(outcomes, verdicts)
        read, now = _answers(rollouts if old is None else [old]), _answers([verdicts])
        # Equal verdicts have the name of the file that is there.
        return _Judged(
            verdicts=[write_shard(self._storage, VERDICTS, content_id(VERDICTS, ref.unit_id), [verdicts])],
            outcomes=[(chain.final_answer, chain.outcome) for chain in regraded],
            changes=Counter(
                f"{before[key].verdict.value} to {after[key].verdict.value}, "
                + ("of the same answer" if read[key] == now[key] else "of another answer in the text")
                for key in after
                if after[key].verdict is not before[key].verdict
            ),
        )

    def _table(self, shards: Sequence[ShardRecord]) -> pa.Table | None:
        return read_shard(self._storage, shards[0]) if shards else None


def _answers(tables: Sequence[pa.Table]) -> dict[str, str]:
    """The answer that was found in each rollout."""
    return {
        str(rollout): str(answer)
        for table in tables
        for rollout, answer in zip(table["rollout_id"].to_pylist(), table["answer"].to_pylist(), strict=True)
    }
