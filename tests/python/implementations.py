"""Classes as a user writes them in a notebook: `test_objects` runs this text as a main program."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline import label, open_run
from pipeline.config.label import GraderConfig
from pipeline.core.records import Trials
from pipeline.estimators import fixed
from pipeline.estimators.tree import Tree
from pipeline.examples import estimator, grader, policy
from pipeline.examples.estimator import HalvesConfig
from pipeline.examples.export_format import GOOD_STEPS
from pipeline.examples.policy import EchoConfig
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Marks, Row

WORDS = ("yes", "no")


def first_round(share: float, rollouts: int) -> int:
    return max(1, round(share * rollouts))


class Halves(estimator.Halves):
    """The first round alone."""

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        first = first_round(self.settings.share, rollouts)
        return fixed.per_prefix(problems, trials, lambda have: max(0, first - len(have.outcomes)))


class Echo(policy.Echo):
    pass


class YesNo(grader.YesNo):
    """Without settings of its own, and with a state."""

    Config = GraderConfig  # type: ignore[assignment]

    def __init__(self, settings: GraderConfig, words: Sequence[str] = WORDS) -> None:
        super().__init__(settings)
        self.words = tuple(words)

    def parses(self, golds: Sequence[str]) -> list[bool]:
        return [gold in self.words for gold in golds]


def row(example: TrainingExample, _marks: Marks) -> Row:
    return {"problem": example.problem, "good": sum(target == 1 for target in example.targets)}


ROWS = [
    {"problem": f"Is {number} even? Say yes or no.", "answer": "yes" if number % 2 == 0 else "no",
     "steps": ["Look at the last digit.", f"It is {number % 10}.", "The answer is yes"]}
    for number in range(4)
]  # fmt: skip


def main() -> None:
    run_dir, out = sys.argv[1:]
    objects: dict[str, Any] = {
        "policy": Echo(EchoConfig(prefix="yes ")),
        "estimator": Halves(HalvesConfig(share=0.25)),
        "grader": YesNo(GraderConfig()),
    }
    run = label(ROWS, run_dir=run_dir, progress=False, **objects, **{"run.report": False})
    stated = {
        "recorded": run.settings,
        "rollouts": run.labels()["n_rollouts"].to_list(),
        "texts": run.rollouts()["text"].unique().to_list(),
        "verdicts": sorted(run.rollouts()["verdict"].unique().to_list()),
        "now": run.summary.now.rollouts,
        "sound": open_run(run_dir, **objects).audit().sound,
        "relabelled": run.relabel(**{"estimator.rule": "threshold"}).chains,
        "regraded": run.regrade(**{"grader.timeout_is": "ungraded"}).chains,
        "exported": run.export(replace(GOOD_STEPS.layout, row=row), out).chains,
    }
    print(json.dumps(stated))


if __name__ == "__main__":
    main()
