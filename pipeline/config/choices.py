"""Enums of the values that settings choose from."""

from enum import Enum


class Layout(Enum):
    """The layout of an input row."""

    rows = "rows"
    prm800k = "prm800k"
    processbench = "processbench"
    math_shepherd = "math_shepherd"
    prmbench = "prmbench"


class Splitter(Enum):
    """Where a solution text is cut into steps."""

    newline = "newline"
    blank_line = "blank_line"
    step_label = "step_label"
    sentence = "sentence"
    regex = "regex"
    math_shepherd = "math_shepherd"
    whole = "whole"


class PromptStyle(Enum):
    chat = "chat"
    plain = "plain"


class Thinking(Enum):
    """Where steps stand whose prompt opens a tag of thinking before them."""

    close = "close"
    inside = "inside"


class Keep(Enum):
    """Which problems are kept after the policy has sampled solutions for them."""

    all = "all"
    mixed = "mixed"


class Fallback(Enum):
    """What counts as the final answer if a text does not state one explicitly."""

    none = "none"
    last_number = "last_number"
    closing_statement = "closing_statement"


class Sandbox(Enum):
    """What the machine must be able to block before programs are run. Everything else that it can block is blocked too."""

    full = "full"
    """Network access, new processes, files outside a temporary folder, and a 65th thread at any moment."""
    standard = "standard"
    """Network access and new processes."""
    limits = "limits"
    """Nothing. Memory, time and size are limited, but a program can do everything that the account can do."""


class TimeoutIs(Enum):
    """The verdict on an answer that does not end in time, or that crashes its checker, also when it is graded once more."""

    wrong = "wrong"
    """Incorrect, unless the machine may be the cause."""
    ungraded = "ungraded"
    """Not graded."""


class UnreadableIs(Enum):
    """The verdict on an answer that cannot be read or compared, or is too large for it, where the known answers can be read."""

    wrong = "wrong"
    """Incorrect."""
    ungraded = "ungraded"
    """Not graded."""


class ValueColumn(Enum):
    """The column of `labels` that is used as the value of a step."""

    value = "value"
    """The best estimate."""
    unbiased_value = "unbiased_value"
    """The estimate that is unbiased for every single prefix, but noisier, and null for some prefixes."""
    p_no_drop = "p_no_drop"
    """The probability that the value has not dropped for good up to the step: where errors are."""
    p_error_free = "p_error_free"
    """Of labels by consensus=posterior: the probability that neither the step nor an earlier one has an error."""


class Aggregation(Enum):
    """How the scores of the steps are combined into the score of the chain."""

    last = "last"
    min = "min"
    product = "product"
    mean = "mean"


class Interval(Enum):
    clopper_pearson = "clopper_pearson"
    jeffreys = "jeffreys"
    posterior = "posterior"


class LabelRule(Enum):
    any = "any"
    threshold = "threshold"
    relative = "relative"
    posterior = "posterior"
    three_class = "three_class"
    first_error = "first_error"
    lasting_drop = "lasting_drop"
    consensus = "consensus"


class ConsensusHow(Enum):
    """How Monte Carlo and the witnesses make one label."""

    exact = "exact"
    """Chains on which all name the same first error, or none, keep their labels; the others are left out."""
    side = "side"
    """Chains of which all say that they have an error, or that they have none, have labels where the opinions on a step
    agree."""
    posterior = "posterior"
    """The place of the first error is inferred from all opinions, each as reliable as it is in the run."""


class AfterError(Enum):
    """The labels of the steps after the first step with label 0."""

    keep = "keep"
    uncertain = "uncertain"
    negative = "negative"


class Goal(Enum):
    """What the rollouts of `pooled` are for."""

    train = "train"
    """Values of all steps, at the lowest cost."""
    locate = "locate"
    """Where values change: the step with the error. Changes count as much as values."""


class BudgetUnit(Enum):
    tokens = "tokens"
    rollouts = "rollouts"


class Tracker(Enum):
    """A system that plots the progress of a run."""

    none = "none"
    tensorboard = "tensorboard"
    mlflow = "mlflow"
    wandb = "wandb"
