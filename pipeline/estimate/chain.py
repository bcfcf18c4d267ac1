"""Chains' values and labels from the trials of their prefixes: the one way there, for labelling, re-labelling and proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.choices import EstimatorName
from pipeline.config import EstimatorConfig
from pipeline.estimate import fixed, pooled_values
from pipeline.estimate.advantage import with_advantages
from pipeline.estimate.kernel import Kernel
from pipeline.estimate.labels import step_labels
from pipeline.estimate.tree import measured_prefixes
from pipeline.estimate.trials import NONE
from pipeline.records import ChainShape, StepValue, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainValues:
    """Of a chain of K steps: the value of the bare problem, K values and K labels."""

    root: StepValue
    steps: tuple[StepValue, ...]
    labels: tuple[int | None, ...]


def chain_values(
    chains: Sequence[ChainShape], trials: Mapping[str, Trials], config: EstimatorConfig, kernel: Kernel
) -> list[ChainValues]:
    """Values of the chains of a unit. `kernel`, which the pooled estimator alone uses, is the one learnt from them."""
    if config.name is EstimatorName.pooled:
        return [_labelled(values, config) for values in pooled_values.values(chains, trials, config, kernel)]
    return [_labelled(_VALUES[config.name](chain, trials, config), config) for chain in chains]


def _labelled(values: Sequence[StepValue], config: EstimatorConfig) -> ChainValues:
    root, *steps = values
    return ChainValues(root=root, steps=tuple(steps), labels=step_labels(root, steps, config))


def _fixed(chain: ChainShape, trials: Mapping[str, Trials], config: EstimatorConfig) -> list[StepValue]:
    values = [fixed.measured(trials.get(prefix, NONE).counts, config) for prefix in measured_prefixes(chain)]
    if chain.outcome is not None:
        values.append(fixed.terminal(chain.outcome, config.threshold))
    return with_advantages(values)


_VALUES = {EstimatorName.fixed: _fixed}
