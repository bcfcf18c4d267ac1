"""The first lap of the loop: how large everything is, where it lies, and its commands in order. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.loop.commands import ONE_THREAD, Stage, labelled, scored, selected, trained
from tests.tiny.arithmetic import Size
from tests.tiny.policy import LONG, SHORT, TinyPolicy

SEED = 11
"""Decides the problems alone: what is sampled and learned for them differs from loop to loop."""
SIZE = Size(operators=range(2, 4), max_value=20, max_term=12)
"""Small numbers: few enough sums that a model learns from some thousand chains which are right. On all that the policy was
trained on, models that were shown 11,658 chains chose no better than chance. Few operators: with three to five, most right
answers came by luck after wrong steps, and a perfect checker of steps chose right among 16 for 0.32 of the problems."""
TEST_PROBLEMS = 200
OTHER_PROBLEMS = 800
"""Of the second lap."""
SOLUTIONS = 6
"""Chains that are sampled for a problem to train on. Equal ones are one."""
ROLLOUTS = 1
"""Of every prefix. A student learns more from one rollout of each prefix of many chains than from several of few: see
`python -m tests.bench loop`."""
CANDIDATES = 16
FRESH_ROLLOUTS = 4
"""Of every prefix of the candidates, to calibrate the PRM with."""
TRAINING: Mapping[str, Any] = {"separator": "\\n", "epochs": 4, "learning_rate": 3e-4}
"""Settings of `train`. The separator is what stands between the steps that the policy was trained on."""
SIZES = (1, 2, 4, 8, 16)
CHAINS_ALONE = ("estimator=pooled", "estimator.run_budget=1")
"""A budget that is spent before the first rollout is the cheapest `label` there is."""
LABELLED = "sample and label"
SAMPLED = "sample candidates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The policy of a loop, what it is asked, and for how many problems a student sees its chains. `other_problems`: as many
    are labelled in a second lap, with the first lap's PRM as a witness (`transfer`), and a third one follows (`steered`); 0:
    there is neither."""

    policy: TinyPolicy
    size: Size
    train_problems: int
    other_problems: int = 0


SHORT_LOOP = Loop(policy=SHORT, size=SIZE, train_problems=3_200, other_problems=OTHER_PROBLEMS)
LONG_LOOP = Loop(policy=LONG, size=LONG.size, train_problems=400)
"""Chains have about four times as many tokens, and as many more prefixes, as those of the short loop."""
LOOPS = {loop.policy.name: loop for loop in (SHORT_LOOP, LONG_LOOP)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What the loop's folder holds."""

    folder: Path

    @property
    def train_problems(self) -> Path:
        return self.folder / "train.jsonl"

    @property
    def test_problems(self) -> Path:
        return self.folder / "test.jsonl"

    @property
    def train_run(self) -> Path:
        return self.folder / "train-run"

    @property
    def test_run(self) -> Path:
        return self.folder / "test-run"

    @property
    def other_problems(self) -> Path:
        return self.folder / "others.jsonl"

    @property
    def other_run(self) -> Path:
        """The run of the second lap."""
        return self.folder / "other-run"

    @property
    def other_scores(self) -> Path:
        """Of the chains of the second lap, by the first lap's PRM."""
        return self.folder / "other-scores.parquet"

    def kept_labels(self, name: str) -> Path:
        """Labels of the second lap by consensus that later ones have replaced in its run."""
        return self.folder / f"{name}-labels.parquet"

    def model(self, target: str) -> Path:
        return self.folder / f"{target}-model"

    def scores(self, target: str) -> Path:
        return self.folder / f"{target}-scores.parquet"

    @property
    def judged(self) -> Path:
        """The distinct candidates, with what arithmetic says about their steps, in ProcessBench's layout."""
        return self.folder / "judged.jsonl"

    @property
    def fresh_run(self) -> Path:
        return self.folder / "fresh-run"

    @property
    def fresh_scores(self) -> Path:
        return self.folder / "fresh-scores.parquet"

    @property
    def agreement(self) -> Path:
        return self.folder / "agree.json"

    @property
    def calibration(self) -> Path:
        return self.folder / "calibration.json"

    @property
    def calibrated_scores(self) -> Path:
        return self.folder / "calibrated-scores.parquet"

    @property
    def searches(self) -> Path:
        """Runs of `search` by all methods, in the loop's own process."""
        return self.folder / "searches"

    def search_run(self, method: str) -> Path:
        """A run of the command `search`."""
        return self.folder / f"{method}-run"

    @property
    def compared_searches(self) -> Path:
        return self.folder / "searches.json"

    def selected(self, target: str) -> Path:
        return self.folder / f"{target}-select.json"


STEP, OUTCOME = "step", "outcome"
"""The models of the first lap, by the target that they are trained for."""


def stages(files: Files, policy: TinyPolicy = SHORT, write_judged: Callable[[], None] = lambda: None) -> list[Stage]:
    """From problems to a table of accuracies. `write_judged`: makes the file `judged` from the candidates."""
    prm, orm = files.model(STEP), files.model(OUTCOME)
    return [
        Stage(
            name=LABELLED,
            command=labelled(
                policy,
                files.train_problems,
                files.train_run,
                f"sampling.solutions={SOLUTIONS}",
                f"sampling.rollouts={ROLLOUTS}",
                "estimator=fixed",
            ),
        ),
        Stage(
            name=SAMPLED,
            command=labelled(
                policy,
                files.test_problems,
                files.test_run,
                f"sampling.solutions={CANDIDATES}",
                *CHAINS_ALONE,
            ),
        ),
        Stage(
            name="train the PRM",
            command=trained(policy, files.train_run, prm, {"target": STEP, "loss": "soft", **TRAINING}),
            environment=ONE_THREAD,
        ),
        Stage(
            name="train the ORM",
            command=trained(policy, files.train_run, orm, {"target": OUTCOME, "loss": "hard", **TRAINING}),
            environment=ONE_THREAD,
        ),
        *(
            Stage(
                name=f"score by the {name}",
                command=scored(files.model(of), files.test_run, files.scores(of)),
                environment=ONE_THREAD,
            )
            for name, of in (("PRM", STEP), ("ORM", OUTCOME))
        ),
        Stage(
            name="fresh rollouts",
            command=labelled(
                policy, files.judged, files.fresh_run, f"sampling.rollouts={FRESH_ROLLOUTS}", "estimator=fixed"
            ),
            before=write_judged,
        ),
        Stage(name="score by vLLM", command=scored(prm, files.fresh_run, files.fresh_scores, "scorer.engine=vllm")),
        Stage(
            name="judge the PRM by arithmetic",
            command=(
                "agree",
                f"scores={files.fresh_scores}",
                "data=processbench",
                f"data.path={files.judged}",
                f"out={files.agreement}",
            ),
        ),
        Stage(
            name="calibrate the PRM",
            command=(
                "calibrate",
                f"scores={files.fresh_scores}",
                f"run_dir={files.fresh_run}",
                f"out={files.calibration}",
            ),
        ),
        Stage(
            name="score with the calibration",
            command=scored(prm, files.fresh_run, files.calibrated_scores, f"calibration={files.calibration}"),
        ),
        Stage(
            name="select",
            command=selected(
                files.scores(STEP),
                files.test_run,
                files.selected(STEP),
                f"outcome_scores={files.scores(OUTCOME)}",
                f"n=[{','.join(map(str, SIZES))}]",
            ),
            shown_again=True,
        ),
    ]
