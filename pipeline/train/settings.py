"""Settings of `train` and `score`. Nothing here loads torch."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.choices import Aggregation, ValueColumn
from pipeline.config.fields import Settings, check
from pipeline.config.label import DataConfig, GraderConfig

EMBEDDED = "embedded"
"""As `model`: the shipped one."""


class TrainTarget(Enum):
    """What is labelled."""

    step = "step"
    """Every step: a process reward model."""
    outcome = "outcome"
    """The last step alone, with whether the chain's answer is right: an outcome reward model."""


class Loss(Enum):
    """See `losses`."""

    hard = "hard"
    soft = "soft"
    beta_binomial = "beta_binomial"


class Weight(Enum):
    """What a step counts for."""

    none = "none"
    """As much as any other."""
    confidence = "confidence"
    """1 - 4 posterior_sd^2: no spread of a probability is wider than a variance of 1/4, and this is the share of it that
    the evidence has removed."""


class TrainNeutral(Enum):
    """What becomes of a neutral step, labelled 2: the model knows good and bad."""

    positive = "positive"
    negative = "negative"
    undecided = "undecided"


@dataclass(kw_only=True, slots=True)
class TrainConfig(Settings):
    """Everything `train` needs."""

    run_dir: str = "???"
    """The run directory whose current labels the model is trained on."""
    model: str = "???"
    """A Hugging Face name, a local folder, or `embedded`."""
    out: str = "???"
    """The folder of the trained model; the same command goes on with what is there."""
    revision: str | None = None
    """Of the model on the Hugging Face Hub: a branch, a tag or a commit."""
    target: TrainTarget = TrainTarget.step
    """What is trained: a process reward model, which grades every step, or an outcome reward model."""
    loss: Loss = Loss.hard
    """What a step is trained towards."""
    weight: Weight = Weight.none
    """How much a step counts."""
    soft: ValueColumn | None = None
    """null: `value` for labels of estimator=fixed, else `posterior_mean`."""
    threshold: Annotated[float | None, Range(ge=0, lt=1)] = None
    """A step is good if its value (the column `soft`) is above it; null: as the run labelled."""
    neutral: TrainNeutral | None = None
    """Has to be given for loss=hard where there are neutral steps."""
    validation: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Share of the problems that go, with all their chains, into the validation set."""
    seed: Annotated[int, Range(ge=0, le=2**32 - 1)] = 0
    """Decides which problems those are, the order of the chains, and how the head begins."""
    separator: str = "\n\n"
    """Behind the problem and every step; `\\n` stands for a line end. The model's config.json records it for `score`."""
    max_length: Annotated[int, Ge(1)] = 2048
    """Tokens of a chain, or fewer where the model takes fewer. Steps that do not fit are left out."""
    layers: Annotated[int | None, Ge(0)] = None
    """Train the head and so many of the uppermost layers; null: all of the model."""
    epochs: Annotated[int, Ge(1)] = 3
    """How often the model sees every chain."""
    batch: Annotated[int, Ge(1)] = 16
    """Chains of a forward pass, on each device."""
    accumulate: Annotated[int, Ge(1)] = 1
    """Forward passes of an update."""
    learning_rate: Annotated[float, Gt(0)] = 2e-5
    """Falls to 0 in a line behind the warm-up."""
    warmup: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Share of all updates in which the learning rate rises."""
    weight_decay: Annotated[float, Ge(0)] = 0.01
    """Of AdamW."""
    clip: Annotated[float, Gt(0)] = 1.0
    """Largest norm of a gradient."""
    checkpoint_steps: Annotated[int | None, Ge(1)] = None
    """Updates between checkpoints; null: an epoch's."""
    recompute: bool = False
    """Compute activations anew in the backward pass, which takes longer and less memory."""
    partial: bool = False
    """Train on what an unfinished run has so far."""

    def check(self) -> None:
        check(self.separator != "", "separator", repr(self.separator), "a text")


@dataclass(kw_only=True, slots=True)
class ScoreConfig(Settings):
    """Everything `score` needs: chains come from `run_dir` or from `data.path`."""

    model: str = "???"
    """A folder that `train` has written, or the Hugging Face name of such a model."""
    out: str = "???"
    """A file that ends in .parquet or .jsonl."""
    run_dir: str | None = None
    """A run directory whose chains are scored."""
    data: DataConfig = field(default_factory=lambda: DataConfig(path=""))
    """The layout of the rows of `data.path`."""
    grader: GraderConfig = field(default_factory=GraderConfig)
    """Checks the chains of `data.path` that come with a known answer."""
    aggregation: Aggregation = Aggregation.last
    """What `score` is: models trained on Monte Carlo values tell a chain's worth best by its last step (arXiv:2501.07301)."""
    separator: str | None = None
    """null: the one that the model was trained with; `\\n` stands for a line end."""
    max_length: Annotated[int | None, Ge(1)] = None
    """Tokens of a chain; null: what the model takes."""
    batch_tokens: Annotated[int, Ge(1)] = 4096
    """Tokens of a forward pass, padding included; a chain that is longer has one of its own."""
    partial: bool = False
    """Score what an unfinished run has so far."""

    def check(self) -> None:
        check(self.separator != "", "separator", repr(self.separator), "a text, or null")
        if bool(self.run_dir) == bool(self.data.path):
            raise ValueError("give either run_dir=FOLDER, to score a run's chains, or data.path=FILE, for others")


def written_out(separator: str) -> str:
    """A separator as it is meant: the command line cannot say a line end but as `\\n`."""
    return separator.replace("\\n", "\n")
