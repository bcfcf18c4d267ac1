"""The bisect estimator: it finds the first error of a chain by binary search over its prefixes (OmegaPRM, Luo et al. 2024).

A probe samples up to N rollouts of a prefix and stops at the first correct one. About log2(K) probes label K steps.

It is fragile, because it assumes that V drops to 0 at the first error and stays there. Where V is 0.6 before the error and 0
after it, and the error is equally likely at each step, it finds 99.8 % of the errors at K = 8, 16 and 32 with N = 8. With a
policy that recovers 1 time in 20, it finds 57, 48 and 40 %. More rollouts make it worse: 37, 27 and 19 % with N = 16.

Not covered: a chain with a correct outcome counts as free of errors and is not probed, however it reached its answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config.choices import LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.estimators import first_success, fixed
from pipeline.estimators.base import Need, RolloutRange, adapt
from pipeline.estimators.first_success import Stopping
from pipeline.estimators.labels import with_advantages
from pipeline.estimators.settings import BisectConfig, StoppingConfig
from pipeline.estimators.tree import NONE, Tree


class Bisect(Stopping):
    """See the module."""

    Config = BisectConfig
    needs = frozenset({Need.PROBES})

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        found = []
        for tree in problems:
            of_problem: dict[str, int] = {}
            for chain in tree.chains:
                for prefix, more in rollouts_owed(chain, trials, rollouts, self.settings).items():
                    of_problem[prefix] = max(more, of_problem.get(prefix, 0))
            found.append(of_problem)
        return found

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        return [with_advantages(values(chain, trials, self.settings)) for chain in chains]

    def labels(
        self, chain: ChainShape, trials: Mapping[str, Trials], values: Sequence[StepValue]
    ) -> tuple[int | None, ...]:
        return labels(chain, trials)

    def rollout_range(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=0, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        why = "only the prefixes that the search visited were sampled (estimator.name=bisect)"
        return {Need.EVERY_PREFIX: why, **self.order_lacks()}

    @classmethod
    def adapt(cls, given: EstimatorConfig) -> EstimatorConfig:
        return adapt(cls.Config, given, successes=1, rule=LabelRule.any)


def rollouts_owed(
    chain: ChainShape, trials: Mapping[str, Trials], rollouts: int, config: StoppingConfig
) -> dict[str, int]:
    """The next round of the current probe, by prefix id. Empty when the search is over."""

    def more(prefix: str) -> int:
        return first_success.rollouts_owed(trials.get(prefix, NONE), rollouts, config)

    probe = _search(chain, lambda prefix: None if more(prefix) else _verdict(trials.get(prefix, NONE))).probe
    return {probe: more(probe)} if probe is not None and more(probe) else {}


def values(chain: ChainShape, trials: Mapping[str, Trials], config: StoppingConfig) -> list[StepValue]:
    """Values of the bare problem and the K steps. A prefix with rollouts has the value of `first_success`.

    The other prefixes have no value. Their origin is `implied` where the search decided their labels, else `unmeasured`. The
    end of a chain with an outcome has the `fixed.terminal_value`.
    """
    decided = [label is not None for label in labels(chain, trials)]
    known = [
        first_success.measured_value(trials[prefix], config)
        if prefix in trials
        else StepValue(value=None, origin=Origin.IMPLIED if implied else Origin.UNMEASURED, counts=Counts())
        for prefix, implied in zip(chain.prefix_ids, (any(decided), *decided), strict=True)
    ]
    if chain.outcome is not None:
        known[-1] = fixed.terminal_value(chain.outcome, config.threshold)
    return known


def labels(chain: ChainShape, trials: Mapping[str, Trials]) -> tuple[int | None, ...]:
    """Labels of the K steps: 1 before the first error and 0 from it on. All are None while the first error is unknown.

    It stays unknown where no rollout of a probe could be graded. A log does not record the planned size of a probe, so a probe
    with graded rollouts but no correct one counts as failed. A promoted chain was not searched: see `_labels_between`.
    """
    n_steps = len(chain.prefix_ids) - 1
    if chain.grown:
        return _labels_between(chain, trials)
    first_error = _search(chain, lambda prefix: _verdict(trials.get(prefix, NONE))).first_error
    if first_error is None:
        return (None,) * n_steps
    return tuple(int(step < first_error) for step in range(1, n_steps + 1))


def _labels_between(chain: ChainShape, trials: Mapping[str, Trials]) -> tuple[int | None, ...]:
    """Labels of a chain that `grow` promoted, from the prefixes of it that happen to be measured.

    1 up to the last prefix with a correct rollout, 0 from the next one without any, and None between them, because the first
    error may be there."""
    found = [_verdict(trials.get(prefix, NONE)) for prefix in chain.prefix_ids]
    right = max((place for place, verdict in enumerate(found) if verdict), default=0)
    wrong = next((place for place, verdict in enumerate(found) if place > right and verdict is False), len(found))
    return tuple(1 if step <= right else 0 if step >= wrong else None for step in range(1, len(found)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Either the number of the first wrong step (K + 1: no step is wrong), or the prefix to probe next."""

    first_error: int | None = None
    probe: str | None = None


def _search(chain: ChainShape, verdict: Callable[[str], bool | None]) -> _Search:
    n_steps = len(chain.prefix_ids) - 1
    if chain.outcome:
        return _Search(first_error=n_steps + 1)
    right, wrong = 0, n_steps if chain.outcome is False else n_steps + 1
    while wrong - right > 1:
        middle = (right + wrong) // 2
        match verdict(chain.prefix_ids[middle]):
            case True:
                right = middle
            case False:
                wrong = middle
            case None:
                return _Search(probe=chain.prefix_ids[middle])
    return _Search(first_error=wrong)


def _verdict(trials: Trials) -> bool | None:
    """Whether any rollout was correct. None where none was graded."""
    if True in trials.outcomes:
        return True
    return False if False in trials.outcomes else None
