"""A picker of your own: the prefixes first of which it is the least sure whether they are good.

    python -m pipeline.examples.picker

labels two problems in the folder `grown`, measures prefixes that their rollouts wrote, and prints what is known of these. The
oracle stands in for a policy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Interval

from pipeline import label
from pipeline.config.choices import BudgetUnit
from pipeline.config.fields import BY_GROUP
from pipeline.config.grow import PickerConfig
from pipeline.pickers.base import Pick, Picker, Problem


@dataclass(kw_only=True, slots=True)
class DoubtfulConfig(PickerConfig):
    pick: Annotated[str, BY_GROUP] = "doubtful"
    least: Annotated[float, Interval(ge=0, le=0.5)] = 0.1
    """Prefixes whose chance to be good is nearer to 0 or 1 are not measured."""


class Doubtful(Picker):
    Config = DoubtfulConfig
    settings: DoubtfulConfig

    def picks(self, problem: Problem) -> Iterator[Pick]:
        doubts = {at: min(problem.above[at], 1 - problem.above[at]) for at in problem.candidates}
        for at in sorted(doubts, key=lambda at: (-doubts[at] / problem.costs[at], at)):
            if doubts[at] >= self.settings.least:
                yield Pick(at, doubts[at])


ROWS = [{"problem": "What is 2 + 3 + 4?", "answer": "9"}, {"problem": "What is 5 + 6?", "answer": "11"}]
TREE: dict[str, Any] = {"kind": "oracle", "oracle": {"world": "tree"}}


def main() -> None:
    """Label what the policy writes, then measure more of it."""
    kept: dict[str, Any] = {"sampling.store_tokens": True, "sampling.solutions": 2}
    run = label(ROWS, policy=TREE, estimator="fixed", run_dir="grown", **kept)
    picker = Doubtful(DoubtfulConfig(least=0.2, budget_unit=BudgetUnit.rollouts))
    print(run.grow(80, pick=picker))
    print(run.labels().filter("grown").select("steps", "value", "label"))
    assert run.audit().sound


if __name__ == "__main__":
    main()
