"""A chain's values and labels from the counts of its prefixes: the one way there, for labelling, re-labelling and proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config import EstimatorConfig
from pipeline.estimate import fixed
from pipeline.estimate.counts import NOTHING
from pipeline.estimate.labels import step_labels
from pipeline.records import Counts, StepValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainValues:
    """Of a chain of K steps: the value of the bare problem, K values and K labels."""

    root: StepValue
    steps: tuple[StepValue, ...]
    labels: tuple[int | None, ...]


def measured_prefixes(prefix_ids: Sequence[str], outcome: bool | None) -> Sequence[str]:
    """The prefixes that rollouts decide: all but the whole chain, where that states an answer that can be graded."""
    return prefix_ids if outcome is None else prefix_ids[:-1]


def chain_values(
    root_prefix_id: str,
    prefix_ids: Sequence[str],
    outcome: bool | None,
    counts: Mapping[str, Counts],
    config: EstimatorConfig,
) -> ChainValues:
    """Values of a chain; a prefix without counts has no value."""
    root = fixed.measured(counts.get(root_prefix_id, NOTHING), config)
    steps = [
        fixed.measured(counts.get(prefix_id, NOTHING), config) for prefix_id in measured_prefixes(prefix_ids, outcome)
    ]
    if outcome is not None:
        steps.append(fixed.terminal(outcome))
    return ChainValues(root=root, steps=tuple(steps), labels=step_labels(root, steps, config))
