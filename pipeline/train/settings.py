"""Settings of `train`. Pure: this module does not import torch."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.chain_filter import Bound, check_bounds
from pipeline.config.choices import ValueColumn
from pipeline.config.fields import Settings, check

EMBEDDED = "embedded"
"""The value of `model` that selects the model included in the package."""


class TrainTarget(Enum):
    """The kind of reward model."""

    step = "step"
    """A process reward model: every step has a target."""
    outcome = "outcome"
    """An outcome reward model: only the last step has a target, whether the chain's answer is correct."""


class Loss(Enum):
    """The loss function; see `losses`."""

    hard = "hard"
    soft = "soft"


class TrainNeutral(Enum):
    """How a neutral step (label 2) counts: the model has only the classes good and bad."""

    positive = "positive"
    negative = "negative"
    uncertain = "uncertain"


@dataclass(kw_only=True, slots=True)
class TrainConfig(Settings):
    """All settings of `train`."""

    run_dir: str = "???"
    """The run directory with the labels to train on."""
    model: str = "???"
    """The model to start from: a Hugging Face name, a local folder, or `embedded`."""
    out: str = "???"
    """The folder of the trained model. The same command continues a training that is there."""
    revision: str | None = None
    """The revision of the model on the Hugging Face Hub: a branch, a tag or a commit."""
    target: TrainTarget = TrainTarget.step
    """The kind of model: a process reward model, which scores every step, or an outcome reward model."""
    loss: Loss = Loss.soft
    """The loss of a step: against its label or its value."""
    soft: ValueColumn = ValueColumn.value
    """The column of step values. value: to choose by and to search. unbiased_value: noisier. p_no_drop: to point at
    errors. p_error_free: the same, of labels by consensus."""
    threshold: Annotated[float | None, Range(ge=0, lt=1)] = None
    """A step is good if its value is above this. `soft` names the column of the value. null: the run's labels count."""
    neutral: TrainNeutral | None = None
    """How neutral steps count. Required for loss=hard if there are any."""
    min_p_outcome: Bound = None
    """Leave out chains with a smaller `p_outcome`: right answers by luck, and slips at the end. null: none."""
    min_root_value: Bound = None
    """Leave out chains of problems with a smaller `root_value`: too hard for the policy. null: none."""
    max_root_value: Bound = None
    """Leave out chains of problems with a larger `root_value`: too easy for the policy. null: none."""
    validation: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Share of the problems that go, with all their chains, into the validation set."""
    seed: Annotated[int, Range(ge=0, le=2**32 - 1)] = 0
    """The seed of the validation set, the order of the chains, and the initial weights of the head."""
    separator: str = "\n\n"
    """The text after the problem and every step; `\\n` means a newline. The model's config.json records it for `score`."""
    max_length: Annotated[int, Ge(1)] = 2048
    """The largest number of tokens of a chain; the model's own limit applies too. Steps that do not fit are left out."""
    layers: Annotated[int | None, Ge(0)] = None
    """Train the head and this number of the top layers. null: the whole model."""
    epochs: Annotated[int, Ge(1)] = 3
    """Number of passes over all chains."""
    patience: Annotated[int | None, Ge(1)] = None
    """Stop after this number of epochs without a smaller loss on the held-out problems, and keep the weights of the epoch with
    the smallest. null: train all epochs and keep the last weights."""
    batch: Annotated[int, Ge(1)] = 16
    """Chains per forward pass and device."""
    gradient_accumulation_steps: Annotated[int, Ge(1)] = 1
    """Forward passes per update."""
    learning_rate: Annotated[float, Gt(0)] = 2e-5
    """The peak learning rate. It falls linearly to 0 after the warm-up."""
    warmup_ratio: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Share of all updates during which the learning rate rises."""
    weight_decay: Annotated[float, Ge(0)] = 0.01
    """Weight decay of AdamW."""
    max_grad_norm: Annotated[float, Gt(0)] = 1.0
    """Gradients are clipped to this norm."""
    checkpoint_steps: Annotated[int | None, Ge(1)] = None
    """Updates between checkpoints. null: one checkpoint per epoch."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: slower, but needs less memory."""
    partial: bool = False
    """Also accept an unfinished run, and train on the labels that it has."""

    def check(self) -> None:
        check(self.separator != "", "separator", repr(self.separator), "a text")
        if self.patience is not None and not self.validation:
            raise ValueError("patience needs held-out problems: give validation above 0, or leave patience out")
        check_bounds(self)
