"""Chains' values and labels from the trials of their prefixes: the one way there, for labelling, re-labelling and proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.config.choices import EstimatorName
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators import bisect, first_success, fixed, pooled_values
from pipeline.estimators.advantage import with_advantages
from pipeline.estimators.kernel import Kernel
from pipeline.estimators.labels import after_error, step_labels
from pipeline.estimators.tree import measured_prefixes
from pipeline.estimators.trials import NONE


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
        found = pooled_values.values(chains, trials, config, kernel)
    else:
        found = [_VALUES[config.name](chain, trials, config) for chain in chains]
    return [_labelled(chain, trials, values, config) for chain, values in zip(chains, found, strict=True)]


def _labelled(
    chain: ChainShape, trials: Mapping[str, Trials], values: Sequence[StepValue], config: EstimatorConfig
) -> ChainValues:
    root, *steps = values
    searched = config.name is EstimatorName.bisect
    labels = bisect.labels(chain, trials) if searched else step_labels(root, steps, config)
    return ChainValues(root=root, steps=tuple(steps), labels=after_error(labels, config))


def _fixed(chain: ChainShape, trials: Mapping[str, Trials], config: EstimatorConfig) -> list[StepValue]:
    values = [fixed.measured(trials.get(prefix, NONE).counts, config) for prefix in measured_prefixes(chain)]
    return _to_the_end(values, chain, config)


def _first_success(chain: ChainShape, trials: Mapping[str, Trials], config: EstimatorConfig) -> list[StepValue]:
    values = [first_success.measured(trials.get(prefix, NONE), config) for prefix in measured_prefixes(chain)]
    return _to_the_end(values, chain, config)


def _bisect(chain: ChainShape, trials: Mapping[str, Trials], config: EstimatorConfig) -> list[StepValue]:
    return with_advantages(bisect.values(chain, trials, config))


def _to_the_end(values: list[StepValue], chain: ChainShape, config: EstimatorConfig) -> list[StepValue]:
    end = [] if chain.outcome is None else [fixed.terminal(chain.outcome, config.threshold)]
    return with_advantages([*values, *end])


_VALUES = {
    EstimatorName.fixed: _fixed,
    EstimatorName.first_success: _first_success,
    EstimatorName.bisect: _bisect,
}
