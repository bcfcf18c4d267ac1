"""What settings choose among: names that a configuration may say, and nothing else."""

from enum import Enum


class Layout(Enum):
    """How an input row is laid out before its columns are read."""

    rows = "rows"
    prm800k = "prm800k"
    processbench = "processbench"
    math_shepherd = "math_shepherd"


class Splitter(Enum):
    """How a solution text is cut into steps."""

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


class Keep(Enum):
    """Which problems go on after the policy has sampled its own solutions."""

    all = "all"
    mixed = "mixed"


class Fallback(Enum):
    """What counts as the final answer where a text states none."""

    none = "none"
    last_number = "last_number"
    closing_statement = "closing_statement"


class Sandbox(Enum):
    """What the machine must keep programs from, for them to be run at all. What else it can enforce, it does."""

    full = "full"
    """Network, new processes, and files outside of a temporary folder."""
    standard = "standard"
    """Network and new processes."""
    limits = "limits"
    """Nothing: memory, time and size have limits, but programs can do what the account can do."""


class ValueColumn(Enum):
    """The column of `labels` that is a step's value."""

    posterior_mean = "posterior_mean"
    value = "value"


class Aggregation(Enum):
    """How step scores make the score of a chain."""

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


class AfterError(Enum):
    """What becomes of the labels behind a chain's first 0."""

    keep = "keep"
    uncertain = "uncertain"
    negative = "negative"


class BudgetUnit(Enum):
    tokens = "tokens"
    rollouts = "rollouts"


class Tracker(Enum):
    """A system that draws how a run goes."""

    none = "none"
    tensorboard = "tensorboard"
    mlflow = "mlflow"
    wandb = "wandb"
