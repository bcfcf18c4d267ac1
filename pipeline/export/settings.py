"""Settings of `export`."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.choices import ValueColumn
from pipeline.config.fields import OWN, Settings


class TargetKind(Enum):
    """What a step is trained towards."""

    hard = "hard"
    """1 or 0, by the run's label rule or by `threshold`."""
    soft = "soft"
    """The value, a probability."""
    counts = "counts"
    """Right and graded rollouts."""


class UncertainSteps(Enum):
    """What becomes of a step without a label."""

    ignore = "ignore"
    """It stays, without a label."""
    merge = "merge"
    """It becomes part of the next step, whose label is about both: a label belongs to where a step ends. At a chain's end it
    goes."""
    cut = "cut"
    """It goes, and what is behind it."""
    drop = "drop"
    """The chain goes."""
    positive = "positive"
    negative = "negative"


class NeutralSteps(Enum):
    """What becomes of a neutral step, labelled 2: data sets and trainers disagree."""

    keep = "keep"
    positive = "positive"
    negative = "negative"
    uncertain = "uncertain"


class Balance(Enum):
    none = "none"
    chains = "chains"
    """As many chains with a bad step as without."""
    steps = "steps"
    """As many good steps as bad ones, as near as leaving out whole chains comes."""


class InvalidChains(Enum):
    """What becomes of chains that the trainer would misread."""

    stop = "stop"
    drop = "drop"
    keep = "keep"
    """They are written all the same where they can be, such as those that the trainer would cut."""


class FileType(Enum):
    jsonl = "jsonl"
    json = "json"
    """One array."""
    parquet = "parquet"


@dataclass(kw_only=True, slots=True)
class DecontaminateConfig(Settings):
    SECTION: ClassVar[str] = "decontaminate"
    paths: list[str] = field(default_factory=list)
    """Files of problems that must not be trained on: JSONL, JSON or Parquet, or `.txt` with a problem a line."""
    column: str = "problem"
    """The column of those files that holds the problem."""
    ngram: Annotated[int, Ge(1)] = 13
    """A problem that shares so many words in a row with one of them is left out (Brown et al. 2020, appendix C); a shorter one
    if it is the same."""


class PairReader(Enum):
    """Who joins a pair's prompt."""

    trl = "trl"
    """`prompt` holds the problem and the steps before, as TRL's DPOTrainer reads it."""
    step_dpo = "step_dpo"
    """`prompt` is the problem, and `initial_reason_steps` the steps before: Step-DPO's `train.py` puts its template between."""


class PairSpan(Enum):
    """What `chosen` and `rejected` hold."""

    step = "step"
    """The step alone. A trainer that puts an end of text behind it, such as TRL's, teaches a model to stop there."""
    rest = "rest"
    """The step and what follows in a chain that ends as the step's label says: right behind the chosen one, wrong behind the
    rejected."""


@dataclass(kw_only=True, slots=True)
class PreferenceConfig(Settings):
    """Of format=preference."""

    SECTION: ClassVar[str] = "preference"
    margin: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Pair steps whose scores differ by so much at least; 0: one that is labelled good with one that is labelled bad."""
    pairs_per_branch: Annotated[int, Ge(1)] = 4
    """From one prefix at most, those with the largest difference."""
    reader: PairReader = PairReader.trl
    span: PairSpan | None = None
    """null: rest for TRL, whose trainer puts an end of text behind it, step for Step-DPO, whose trainer does not."""


@dataclass(kw_only=True, slots=True)
class ExportConfig(Settings):
    """Everything `export` needs; null: what the format's trainer is used to."""

    run_dir: str = "???"
    """The run directory whose current labels are written."""
    format: str = "???"
    """Whose layout is written."""
    out: str = "???"
    """A folder, made by the command."""
    file: FileType | None = None
    """Kind of file; null: what the format's trainer reads."""
    target: TargetKind | None = None
    """What a step is trained towards; null: hard where the format can."""
    soft: ValueColumn | None = None
    """null: `value` for labels of estimator=fixed, else `posterior_mean`."""
    threshold: Annotated[float | None, Range(ge=0, lt=1)] = None
    """A step is good if its value (the column `soft`) is above it; null: as the run labelled."""
    uncertain: UncertainSteps | None = None
    """null: ignore where the format can, else merge."""
    neutral: NeutralSteps | None = None
    """Has to be given where there are neutral steps, unless the format has such a class."""
    after_error: bool | None = None
    """Keep the steps behind the first bad one; null: only for soft targets and counts."""
    balance: Balance = Balance.none
    """Which chains are left out so that classes are of like size."""
    validation: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of the problems that go, with all their chains, into a validation file."""
    seed: int = 0
    """Decides which problems those are, and which chains `balance` leaves out."""
    decontaminate: DecontaminateConfig = field(default_factory=DecontaminateConfig)
    own: Settings | None = field(default=None, metadata=OWN)
    """The format's own, such as PreferenceConfig; null: its defaults."""
    separator: str | None = None
    """Between steps; `\\n` stands for a line end."""
    placeholder: str | None = None
    """The token that stands for a step's reward."""
    tokenizer: str | None = None
    """The trained model's, a Hugging Face name or a local folder; without it nothing is known of tokens and lengths."""
    max_length: Annotated[int | None, Ge(1)] = None
    """Tokens that the trainer takes of a row."""
    invalid: InvalidChains = InvalidChains.stop
    """What becomes of chains that the trainer would misread."""
    columns: list[str] = field(default_factory=list)
    """format=parquet: columns of `labels` to write; empty: all."""
    partial: bool = False
    """Export what an unfinished run has so far."""
    overwrite: bool = False
    """Replace an earlier export in `out`."""
