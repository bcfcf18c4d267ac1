"""The bisect estimator: the first error of a chain by binary search over its prefixes (OmegaPRM, Luo et al. 2024).

A probe asks whether any of N rollouts of a prefix is right, and stops at the first; about log2(K) probes label K steps.

It is fragile, for it assumes that V drops to 0 at the first error and stays there. Where V is 0.6 before an error that is
equally likely at each step, and 0 behind it, 99.8 % of the errors are found at K = 8, 16 and 32 with N = 8. With a policy that
recovers 1 time in 20 it is 57, 48 and 40 %, and more rollouts make it worse: 37, 27 and 19 % with N = 16.

Not covered: a chain whose outcome is right is taken to have no error, unprobed, however it came by its answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.config.choices import LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, Counts, Origin, StepValue, Trials
from pipeline.estimators import first_success, fixed
from pipeline.estimators.base import Need, RolloutRange, adapted
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

    def planned(self, rollouts: int) -> RolloutRange:
        return RolloutRange(least=0, most=rollouts)

    def lacks(self) -> Mapping[Need, str]:
        why = "only the prefixes that a search came by were sampled (estimator.name=bisect)"
        return {Need.EVERY_PREFIX: why, **self.order_lacks()}

    @classmethod
    def adapted(cls, given: EstimatorConfig) -> EstimatorConfig:
        return adapted(cls.Config, given, successes=1, rule=LabelRule.any)


def rollouts_owed(
    chain: ChainShape, trials: Mapping[str, Trials], rollouts: int, config: StoppingConfig
) -> dict[str, int]:
    """The next round of the one probe that is under way, by prefix id; empty when the search is over."""

    def more(prefix: str) -> int:
        return first_success.rollouts_owed(trials.get(prefix, NONE), rollouts, config)

    probe = _search(chain, lambda prefix: None if more(prefix) else _verdict(trials.get(prefix, NONE))).probe
    return {probe: more(probe)} if probe is not None and more(probe) else {}


def values(chain: ChainShape, trials: Mapping[str, Trials], config: StoppingConfig) -> list[StepValue]:
    """Of the bare problem and the K steps: a prefix with rollouts has the value of `first_success`, whoever asked for them.

    The others have none: their origin is `implied` where the search is over, else `unmeasured_value`. The end of a chain with an
    outcome is `terminal_value`.
    """
    found = _search_log(chain, trials).first_error is not None
    rest = replace(fixed.unmeasured_value(Counts()), origin=Origin.IMPLIED if found else Origin.UNMEASURED)
    known = [
        first_success.measured_value(trials[prefix], config) if prefix in trials else rest
        for prefix in chain.prefix_ids
    ]
    if chain.outcome is not None:
        known[-1] = fixed.terminal_value(chain.outcome, config.threshold)
    return known


def labels(chain: ChainShape, trials: Mapping[str, Trials]) -> tuple[int | None, ...]:
    """Of the K steps: 1 before the first error and 0 from it on; all None while it is not known.

    It stays unknown where none of a probe's rollouts could be graded. A log does not say how many rollouts a probe was to
    have: one with some that are graded and none that is right has failed.
    """
    n_steps = len(chain.prefix_ids) - 1
    first_error = _search_log(chain, trials).first_error
    if first_error is None:
        return (None,) * n_steps
    return tuple(int(step < first_error) for step in range(1, n_steps + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Either the number of the first wrong step (K + 1: none is), or the prefix whose probe is yet to tell."""

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


def _search_log(chain: ChainShape, trials: Mapping[str, Trials]) -> _Search:
    return _search(chain, lambda prefix: _verdict(trials.get(prefix, NONE)))


def _verdict(trials: Trials) -> bool | None:
    """Whether any rollout was right; None where none was graded."""
    if True in trials.outcomes:
        return True
    return False if False in trials.outcomes else None
