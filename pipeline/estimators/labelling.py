"""Computes values and labels from stored rollouts and their verdicts under any estimator, without an engine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import (
    GROWN,
    Chain,
    ChainShape,
    ChainValues,
    Problem,
    RolloutOutcome,
    Solution,
    StepValue,
    Trials,
    Verdict,
)
from pipeline.core.tables import labels_table, rollout_outcomes
from pipeline.data.steps import step_texts
from pipeline.estimators.base import Estimator
from pipeline.estimators.labels import after_error, p_outcome, rule_name

_COLUMNS = (
    "chain_id",
    "problem_id",
    "source_id",
    "problem",
    "gold_answers",
    "solution",
    "step_ends",
    "root_prefix_id",
    "prefix_ids",
    "final_answer",
    "outcome",
    "policy",
)


def stored_chains(labels: pa.Table) -> list[Chain]:
    """The chains of a labels table in its order. Their solutions have no token ids, and count as complete unless `grow`
    promoted them."""
    return [
        Chain(
            problem=Problem(problem_id=row["problem_id"], text=row["problem"], golds=tuple(row["gold_answers"])),
            solution=Solution(
                chain_id=row["chain_id"],
                problem_id=row["problem_id"],
                source_id=row["source_id"],
                text=row["solution"],
                ends=tuple(row["step_ends"]),
                complete=not row.get(GROWN),
                as_written=bool(row.get(GROWN)),
            ),
            root_prefix_id=row["root_prefix_id"],
            prefix_ids=tuple(row["prefix_ids"]),
            final_answer=row["final_answer"],
            outcome=row["outcome"],
            policy=row["policy"],
            grown=row.get(GROWN),
        )
        for row in labels.select([*_COLUMNS, *({GROWN} & {*labels.column_names})]).to_pylist()
    ]


def rollout_outcomes_of(rollouts: Iterable[pa.Table]) -> dict[str, RolloutOutcome]:
    """Rollout id -> outcome, from all files of a log."""
    return {rollout: outcome for table in rollouts for rollout, outcome in rollout_outcomes(table).items()}


def with_verdicts(found: Mapping[str, RolloutOutcome], verdicts: pa.Table | None) -> Mapping[str, RolloutOutcome]:
    """The outcomes with later verdicts in place of the log's, if there are any. Raises KeyError where one is missing."""
    if verdicts is None:
        return found
    ids, later = verdicts["rollout_id"].to_pylist(), verdicts["verdict"].to_pylist()
    judged = {rollout: Verdict(str(verdict)) for rollout, verdict in zip(ids, later, strict=True)}
    return {rollout: replace(outcome, verdict=judged[rollout]) for rollout, outcome in found.items()}


def chain_values(
    chains: Sequence[ChainShape],
    trials: Mapping[str, Trials],
    estimator: Estimator,
    state: Any,
    *,
    ruler: Estimator | None = None,
) -> list[ChainValues]:
    """Values and labels of the chains of a unit. Labelling, re-labelling and `audit` all use it. `state` is the state that the
    estimator has learned. `ruler`: the same estimator with another label rule, which makes the labels."""
    ruling = ruler or estimator
    trials = _with_promoted(chains, trials)
    found = estimator.values(chains, trials, state)
    return [
        _chain_values(chain, values, ruling.labels(chain, trials, values), ruling.settings)
        for chain, values in zip(chains, found, strict=True)
    ]


def _chain_values(
    chain: ChainShape, values: Sequence[StepValue], labels: Sequence[int | None], rule: EstimatorConfig
) -> ChainValues:
    root, *steps = values
    return ChainValues(
        root=root,
        steps=tuple(steps),
        labels=after_error(labels, rule),
        p_outcome=p_outcome(chain.outcome, values, rule.miss_rate),
    )


def _with_promoted(chains: Sequence[ChainShape], trials: Mapping[str, Trials]) -> Mapping[str, Trials]:
    """The trials, with those of promoted prefixes marked."""
    ends = [chain.prefix_ids[-1] for chain in chains if chain.grown]
    return {**trials, **{end: replace(trials[end], promoted=True) for end in ends if end in trials}} if ends else trials


def labels_of(chains: Sequence[Chain], trials: Mapping[str, Trials], estimator: Estimator, state: Any) -> pa.Table:
    """The labels table of a unit's chains, computed from the trials of their prefixes."""
    values = chain_values([chain.shape for chain in chains], trials, estimator, state)
    return valued_labels(chains, values, estimator.settings)


def valued_labels(chains: Sequence[Chain], values: Sequence[ChainValues], settings: EstimatorConfig) -> pa.Table:
    """The labels table of chains whose values and labels are known."""
    return labels_table(
        chains,
        values,
        [step_texts(chain.solution.text, chain.solution.ends) for chain in chains],
        estimator=settings.name,
        label_rule=rule_name(settings),
        policy=chains[0].policy if chains else "",
    )
