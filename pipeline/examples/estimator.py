"""An estimator of your own: N rollouts for every prefix in two rounds, the second only where the first was not unanimous.

    python -m pipeline.examples.estimator

labels two chains with it in the folder `halves`. The oracle stands in for a model, so it takes seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Interval

from pipeline import label
from pipeline.config.fields import RELABEL
from pipeline.config.label import EstimatorConfig
from pipeline.core.records import ChainShape, StepValue, Trials
from pipeline.estimators import fixed
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree


@dataclass(kw_only=True, slots=True)
class HalvesConfig(EstimatorConfig):
    name: Annotated[str, RELABEL] = "halves"
    share: Annotated[float, Interval(gt=0, le=1)] = 0.5
    """The first round's share of all rollouts."""


class Halves(Estimator):
    Config = HalvesConfig
    settings: HalvesConfig
    replayable = True

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        first = max(1, round(self.settings.share * rollouts))

        def owed(have: Trials) -> int:
            unanimous = len(set(have.outcomes)) == 1
            return max(0, (first if not have.outcomes or unanimous else rollouts) - len(have.outcomes))

        return fixed.per_prefix(problems, trials, owed)

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        own = self.settings
        return [
            fixed.chain_step_values(chain, trials, lambda have: fixed.posterior_value(have.counts, own), own)
            for chain in chains
        ]


ROWS = [
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."]},
    {"problem": "What is 2 + 3 + 4?", "answer": "9", "steps": ["2 + 3 = 6.", "6 + 4 = 10.", "The answer is 10."]},
]


def main() -> None:
    """Label with a quarter of the rollouts in the first round, then make other labels from the same rollouts."""
    estimator = Halves(HalvesConfig(share=0.25))
    run = label(ROWS, policy="oracle", estimator=estimator, run_dir="halves", **{"sampling.rollouts": 16})
    print(run.settings["estimator.plugin"])
    print(run.labels().select("value", "n_rollouts", "label"))
    run.relabel(**{"estimator.rule": "threshold", "estimator.threshold": 0.9})
    print(run.labels().select("value", "n_rollouts", "label"))
    assert run.audit().sound


if __name__ == "__main__":
    main()
