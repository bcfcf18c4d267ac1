"""The commands of the loop, in order, and how large everything is. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tiny.arithmetic import Size
from tests.tiny.policy import LONG, SHORT, TinyPolicy

SEED = 11
"""Decides the problems alone: what is sampled and learned for them differs from loop to loop."""
SIZE = Size(operators=range(2, 4), max_value=20, max_term=12)
"""Small numbers: few enough sums that a model learns from some thousand chains which are right. On all that the policy was
trained on, models that were shown 11,658 chains chose no better than chance. Few operators: with three to five, most right
answers came by luck after wrong steps, and a perfect checker of steps chose right among 16 for 0.32 of the problems."""
TEST_PROBLEMS = 200
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
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""The model is so small that threads wait for each other: on two cores that others used too, training took more than ten
times as long with two."""
LABELLED = "sample and label"
SAMPLED = "sample candidates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The policy of a loop, what it is asked, and for how many problems a student sees its chains."""

    policy: TinyPolicy
    size: Size
    train_problems: int


SHORT_LOOP = Loop(policy=SHORT, size=SIZE, train_problems=3_200)
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
    def selected(self) -> Path:
        return self.folder / "select.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of the loop, as what stands behind `python -m pipeline`, and environment variables it is given. `before`:
    what is called first."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None


def stages(files: Files, policy: TinyPolicy = SHORT, write_judged: Callable[[], None] = lambda: None) -> list[Stage]:
    """From problems to a table of accuracies. `write_judged`: makes the file `judged` from the candidates."""
    return [
        Stage(name=LABELLED, command=_labelled(files, policy)),
        Stage(name=SAMPLED, command=_candidates(files, policy)),
        Stage(name="train the PRM", command=_trained(files, policy, "step", "soft"), environment=ONE_THREAD),
        Stage(name="train the ORM", command=_trained(files, policy, "outcome", "hard"), environment=ONE_THREAD),
        *(
            Stage(name=f"score by the {name}", command=_scored(files, of), environment=ONE_THREAD)
            for name, of in (("PRM", "step"), ("ORM", "outcome"))
        ),
        Stage(name="fresh rollouts", command=_fresh(files, policy), before=write_judged),
        Stage(name="score by vLLM", command=_scored_fresh(files)),
        Stage(name="judge the PRM by arithmetic", command=_judged(files)),
        Stage(name="calibrate the PRM", command=_calibrated(files)),
        Stage(name="score with the calibration", command=_scored_calibrated(files)),
        Stage(name="select", command=_selected(files)),
    ]


def _labelled(files: Files, policy: TinyPolicy) -> tuple[str, ...]:
    return (
        "label",
        *policy.overrides,
        f"data.path={files.train_problems}",
        f"run_dir={files.train_run}",
        f"sampling.solutions={SOLUTIONS}",
        f"sampling.rollouts={ROLLOUTS}",
        "estimator=fixed",
        "run.show_chains=0",
    )


def _candidates(files: Files, policy: TinyPolicy) -> tuple[str, ...]:
    """Chains alone: a budget that is spent before the first rollout is the cheapest `label` there is."""
    return (
        "label",
        *policy.overrides,
        f"data.path={files.test_problems}",
        f"run_dir={files.test_run}",
        f"sampling.solutions={CANDIDATES}",
        "estimator=pooled",
        "estimator.run_budget=1",
        "run.show_chains=0",
    )


def _trained(files: Files, policy: TinyPolicy, target: str, loss: str) -> tuple[str, ...]:
    return (
        "train",
        f"run_dir={files.train_run}",
        f"model={policy.asset}",
        f"out={files.model(target)}",
        f"target={target}",
        f"loss={loss}",
        *(f"{name}='{value}'" if name == "separator" else f"{name}={value}" for name, value in TRAINING.items()),
    )


def _scored(files: Files, target: str) -> tuple[str, ...]:
    return ("score", f"model={files.model(target)}", f"run_dir={files.test_run}", f"out={files.scores(target)}")


def _fresh(files: Files, policy: TinyPolicy) -> tuple[str, ...]:
    return (
        "label",
        *policy.overrides,
        f"data.path={files.judged}",
        f"run_dir={files.fresh_run}",
        f"sampling.rollouts={FRESH_ROLLOUTS}",
        "estimator=fixed",
        "run.show_chains=0",
    )


def _scored_fresh(files: Files) -> tuple[str, ...]:
    return (
        "score",
        f"model={files.model('step')}",
        "scorer.engine=vllm",
        f"run_dir={files.fresh_run}",
        f"out={files.fresh_scores}",
    )


def _judged(files: Files) -> tuple[str, ...]:
    return (
        "agree",
        f"scores={files.fresh_scores}",
        "data=processbench",
        f"data.path={files.judged}",
        f"out={files.agreement}",
    )


def _calibrated(files: Files) -> tuple[str, ...]:
    return ("calibrate", f"scores={files.fresh_scores}", f"run_dir={files.fresh_run}", f"out={files.calibration}")


def _scored_calibrated(files: Files) -> tuple[str, ...]:
    return (
        "score",
        f"model={files.model('step')}",
        f"run_dir={files.fresh_run}",
        f"calibration={files.calibration}",
        f"out={files.calibrated_scores}",
    )


def _selected(files: Files) -> tuple[str, ...]:
    return (
        "select",
        f"scores={files.scores('step')}",
        f"outcome_scores={files.scores('outcome')}",
        f"run_dir={files.test_run}",
        f"n=[{','.join(map(str, SIZES))}]",
        f"out={files.selected}",
    )
