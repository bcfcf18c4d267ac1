"""Computes values and labels from stored rollouts and their verdicts under any estimator, without an engine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pyarrow as pa

from pipeline.config.label import EstimatorConfig
from pipeline.core.records import GROWN, Chain, ChainShape, ChainValues, RolloutOutcome, StepValue, Trials, Verdict
from pipeline.core.table import records_of
from pipeline.core.tables import LABELS, LABELS_GROWN, rollout_outcomes
from pipeline.data.steps import step_texts
from pipeline.estimators.base import Estimator
from pipeline.estimators.labels import after_error, p_outcome, rule_name

_OF_PREFIXES = {
    **{name: name for name in ("value", "value_sd", "low", "high", "p_above", "unbiased_value", "unbiased_rollouts")},
    "n_correct": "counts.correct",
    "n_rollouts": "counts.graded",
    "n_ungraded": "counts.ungraded",
    "n_truncated": "counts.truncated",
    "origin": "origin",
}
"""Column of a prefix -> where it is in its value."""
_OF_STEPS = _OF_PREFIXES | {name: name for name in ("advantage", "advantage_sd", "p_no_drop", "nothing_to_lose")}


def stored_chains(labels: pa.Table) -> list[Chain]:
    """The chains of a labels table in its order. Their solutions have no token ids, and count as complete unless `grow`
    promoted them."""
    return [
        replace(chain, solution=replace(chain.solution, complete=False, as_written=True)) if chain.grown else chain
        for chain in records_of(Chain, labels)
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
    return {rollout: outcome._replace(verdict=judged[rollout]) for rollout, outcome in found.items()}


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
    """The labels table of chains whose values and labels are known. All are marked (`Chain.grown`), or none of them."""
    grown = [chain.grown for chain in chains]
    solutions = [chain.solution for chain in chains]
    return (LABELS if None in grown or not grown else LABELS_GROWN).of_columns(
        {
            GROWN: grown,
            "chain_id": [solution.chain_id for solution in solutions],
            "problem_id": [chain.problem.problem_id for chain in chains],
            "source_id": [solution.source_id for solution in solutions],
            "problem": [chain.problem.text for chain in chains],
            "gold_answer": [chain.problem.golds[0] for chain in chains],
            "gold_answers": [chain.problem.golds for chain in chains],
            "solution": [solution.text for solution in solutions],
            "steps": [step_texts(solution.text, solution.ends) for solution in solutions],
            "step_ends": [solution.ends for solution in solutions],
            "root_prefix_id": [chain.root_prefix_id for chain in chains],
            "prefix_ids": [chain.prefix_ids for chain in chains],
            "final_answer": [chain.final_answer for chain in chains],
            "outcome": [chain.outcome for chain in chains],
            "p_outcome": [found.p_outcome for found in values],
            **{
                name: [list(map(attrgetter(place), found.steps)) for found in values]
                for name, place in _OF_STEPS.items()
            },
            "label": [found.labels for found in values],
            **{
                f"root_{name}": [attrgetter(place)(found.root) for found in values]
                for name, place in _OF_PREFIXES.items()
            },
            "estimator": [settings.name] * len(chains),
            "label_rule": [rule_name(settings)] * len(chains),
            "policy": [chains[0].policy if chains else ""] * len(chains),
            "rollout_tokens": [sum(step.counts.tokens for step in (found.root, *found.steps)) for found in values],
        }
    )
