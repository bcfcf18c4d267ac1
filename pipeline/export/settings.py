"""Settings of `export`."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge
from annotated_types import Interval as Range

from pipeline.config.chain_filter import Bound, check_bounds
from pipeline.config.choices import ValueColumn
from pipeline.config.fields import OWN, Settings
from pipeline.core.suggestions import choice_hint

HUB_LICENSES = (
    "apache-2.0", "mit", "openrail", "bigscience-openrail-m", "creativeml-openrail-m", "bigscience-bloom-rail-1.0",
    "bigcode-openrail-m", "afl-3.0", "artistic-2.0", "bsl-1.0", "bsd", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear",
    "c-uda", "cc", "cc0-1.0", "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0",
    "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cdla-sharing-1.0", "cdla-permissive-1.0", "cdla-permissive-2.0", "wtfpl", "ecl-2.0",
    "epl-1.0", "epl-2.0", "etalab-2.0", "eupl-1.1", "eupl-1.2", "agpl-3.0", "gfdl", "gpl", "gpl-2.0", "gpl-3.0", "lgpl",
    "lgpl-2.1", "lgpl-3.0", "isc", "h-research", "intel-research", "lppl-1.3c", "ms-pl", "apple-ascl", "apple-amlr", "mpl-2.0",
    "odc-by", "odbl", "openmdw-1.0", "openmdw-1.1", "openrail++", "osl-3.0", "postgresql", "ofl-1.1", "ncsa", "unlicense",
    "zlib", "pddl", "lgpl-lr", "deepfloyd-if-license", "fair-noncommercial-research-license", "llama2", "llama3", "llama3.1",
    "llama3.2", "llama3.3", "llama4", "grok2-community", "gemma", "unknown", "other",
)  # fmt: skip
"""The licences that the Hugging Face Hub knows, by the identifiers of cards: https://huggingface.co/docs/hub/repositories-licenses.
`huggingface_hub` has no such list, and the Hub takes any other text without a word, but shows no licence then."""
OTHER = "other"
"""What the Hub wants for a licence that it does not list."""


_PART = r"(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_HUB_NAME = re.compile(rf"{_PART}/{_PART}(?<!\.git)")


class TargetKind(Enum):
    """The target of a step."""

    hard = "hard"
    """1 or 0, by the run's label rule or by `threshold`."""
    soft = "soft"
    """The value, a probability."""
    counts = "counts"
    """Correct and graded rollouts."""


class UncertainSteps(Enum):
    """How a step without a label is exported."""

    ignore = "ignore"
    """The step is kept without a label."""
    merge = "merge"
    """The step is merged into the next one. That step's label is valid for both, because a label refers to the end of a step.
    An uncertain step at the end of a chain is removed."""
    cut = "cut"
    """The step and all steps after it are removed."""
    drop = "drop"
    """The chain is left out."""
    positive = "positive"
    negative = "negative"


class NeutralSteps(Enum):
    """How a neutral step (label 2) counts; data sets and trainers differ."""

    keep = "keep"
    positive = "positive"
    negative = "negative"
    uncertain = "uncertain"


class Balance(Enum):
    """Which classes have equal size."""

    none = "none"
    chains = "chains"
    """Equal numbers of chains with and without a bad step."""
    steps = "steps"
    """Equal numbers of good and bad steps, as nearly as possible by leaving out whole chains."""


class InvalidChains(Enum):
    """What happens to chains that the trainer would misread."""

    stop = "stop"
    """Nothing is written but a list of these chains."""
    drop = "drop"
    """They are left out."""
    keep = "keep"
    """They are written if possible, for example those that the trainer would cut."""


class FileType(Enum):
    """The type of the files of rows."""

    jsonl = "jsonl"
    json = "json"
    """One array."""
    parquet = "parquet"


@dataclass(kw_only=True, slots=True)
class DecontaminateConfig(Settings):
    SECTION: ClassVar[str] = "decontaminate"
    paths: list[str] = field(default_factory=list)
    """Files of problems that must not be trained on: JSONL, JSON or Parquet, or `.txt` with one problem per line."""
    column: str = "problem"
    """The column of these files that holds the problem."""
    ngram: Annotated[int, Ge(1)] = 13
    """A problem that shares this many words in a row with one of them is left out (Brown et al. 2020, appendix C). A problem
    with fewer words is left out if it is equal to one of them."""


class PairReader(Enum):
    """The trainer that reads the pairs."""

    trl = "trl"
    """TRL's DPOTrainer: `prompt` holds the problem and the previous steps."""
    step_dpo = "step_dpo"
    """Step-DPO's `train.py`, which puts its template in between: `prompt` is the problem, `initial_reason_steps` the previous
    steps."""


class PairSpan(Enum):
    """What `chosen` and `rejected` hold."""

    step = "step"
    """The step alone. A trainer that appends an end-of-text token, such as TRL's, then teaches the model to stop there."""
    rest = "rest"
    """The step and the rest of a chain: a right chain for `chosen`, a wrong chain for `rejected`."""


class PairSiblings(Enum):
    """Which steps after a prefix are paired."""

    chains = "chains"
    """Those of labelled chains, by their labels or values."""
    rollouts = "rollouts"
    """Those that chains and rollouts wrote, labelled or not, by what all rollouts through them say."""


CERTAINTY = 0.9
"""The default certainty of pairs of rollout trees."""


@dataclass(kw_only=True, slots=True)
class PreferenceConfig(Settings):
    """Settings of format=preference."""

    SECTION: ClassVar[str] = "preference"
    siblings: PairSiblings = PairSiblings.chains
    """Which steps are paired: those of labelled chains, or all that chains and rollouts wrote."""
    margin: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Pair steps whose values differ by at least this. 0: pair steps labelled good with steps labelled bad; with
    siblings=rollouts, pair steps by certainty alone."""
    certainty: Annotated[float | None, Range(ge=0.5, le=1)] = None
    """With siblings=rollouts: the smallest probability that the value of the chosen step is the larger one. null: 0.9."""
    pairs_per_branch: Annotated[int, Ge(1)] = 4
    """The largest number of pairs from one prefix; those with the largest difference are kept."""
    reader: PairReader = PairReader.trl
    span: PairSpan | None = None
    """null: rest for TRL, whose trainer appends an end-of-text token, and step for Step-DPO, whose trainer does not."""


@dataclass(kw_only=True, slots=True)
class PpmConfig(Settings):
    """Settings of format=ppm."""

    SECTION: ClassVar[str] = "ppm"
    margin: Annotated[float, Range(ge=0, le=1)] = 0.25
    """Pair steps whose values differ by at least this. rStar-Math asks for 0.5 between values from -1 to 1, which is 0.25
    between probabilities."""
    certainty: Annotated[float, Range(ge=0.5, le=1)] = 0.9
    """The smallest probability that the value of the positive step is the larger one. 0.5: the margin alone decides, as in
    rStar-Math, whose values come from more rollouts."""
    edit_distance: Annotated[int, Ge(0)] = 0
    """Leave out pairs of steps that differ by fewer characters. rStar-Math asks for 20, for steps of several lines of code.
    Where a step is one line, the wrong number in it is the whole difference, so the default keeps all."""
    template: str | None = None
    """The text before the first step, with `{problem}` in it; `\\n` means a newline. null: that of rStar-Math."""

    def check(self) -> None:
        if self.template is not None and self.template.count("{problem}") != 1:
            raise ValueError(f"ppm.template={self.template!r} must hold {{problem}} once")


@dataclass(kw_only=True, slots=True)
class HubConfig(Settings):
    SECTION: ClassVar[str] = "hub"
    private: bool = True
    """With push_to_hub: whether a data set that is created is private. A data set that exists stays as it is."""
    license: str | None = None
    """The licence that the card names, as the Hub writes it: `cc-by-4.0`, or `other` for one that the Hub does not list. It is
    that of the problems and chains."""

    def check(self) -> None:
        if self.license is not None and self.license not in HUB_LICENSES:
            hint = choice_hint(self.license.lower(), HUB_LICENSES)
            raise ValueError(
                f"hub.license={self.license}: the Hub knows no such licence, {hint}; {OTHER} is for a licence that it does not "
                "list"
            )


@dataclass(kw_only=True, slots=True)
class ExportConfig(Settings):
    """All settings of `export`. null: the default of the format's trainer."""

    run_dir: str = "???"
    """The run directory whose current labels are written."""
    format: str = "???"
    """The trainer or layout to write for."""
    out: str = "???"
    """The folder that the data is written to."""
    file: FileType | None = None
    """The type of file. null: the one that the format's trainer reads."""
    target: TargetKind | None = None
    """The target of a step: its label, its value, or its counts of rollouts. null: soft if the released trainer takes values,
    else hard; with format=parquet, the columns of `labels` unchanged, which hold all three."""
    soft: ValueColumn | None = None
    """The column of step values. value: to choose by and to search. unbiased_value: noisier. p_no_drop: to point at
    errors. p_error_free: the same, of labels by consensus. null: `value`."""
    threshold: Annotated[float | None, Range(ge=0, lt=1)] = None
    """A step is good if its value is above this. `soft` names the column of the value. null: the run's labels count."""
    uncertain: UncertainSteps | None = None
    """How a step without a label is exported. null: ignore if the format supports that, else merge."""
    neutral: NeutralSteps | None = None
    """How a neutral step counts. Required if there are any, unless the format has a class for them."""
    after_error: bool | None = None
    """Keep the steps after the first bad one. null: only for soft targets and counts."""
    min_p_outcome: Bound = None
    """Leave out chains with a smaller `p_outcome`: right answers by luck, and slips at the end. null: none."""
    min_root_value: Bound = None
    """Leave out chains of problems with a smaller `root_value`: too hard for the policy. null: none."""
    max_root_value: Bound = None
    """Leave out chains of problems with a larger `root_value`: too easy for the policy. null: none."""
    balance: Balance = Balance.none
    """Leave out chains so that classes have equal size."""
    validation: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Share of problems, with all chains, for validation."""
    seed: int = 0
    """The seed of the validation set and of the chains that `balance` leaves out."""
    decontaminate: DecontaminateConfig = field(default_factory=DecontaminateConfig)
    own: Settings | None = field(default=None, metadata=OWN)
    """The format's own settings, such as PreferenceConfig. null: their defaults."""
    separator: str | None = None
    """The text between steps; `\\n` means a newline."""
    placeholder: str | None = None
    """The token at which the trainer reads or predicts a step's label."""
    tokenizer: str | None = None
    """The tokenizer of the model to train: a Hugging Face name or a local folder. Without it, tokens and lengths are not
    checked."""
    max_length: Annotated[int | None, Ge(1)] = None
    """The largest number of tokens of a row that the trainer uses."""
    invalid: InvalidChains = InvalidChains.stop
    """What happens to chains that the trainer would misread: stop and list them, drop them, or keep those that can be
    written."""
    partial: bool = False
    """Also accept an unfinished run, and export the labels that it has."""
    overwrite: bool = False
    """Replace an earlier export in `out`."""
    push_to_hub: str | None = None
    """OWNER/NAME of a data set of the Hugging Face Hub. The files of rows and the card are uploaded once all is written."""
    hub: HubConfig = field(default_factory=HubConfig)
    """What the card and the Hub say of the data set."""

    def check(self) -> None:
        check_bounds(self)
        if self.push_to_hub is not None and not _HUB_NAME.fullmatch(self.push_to_hub):
            raise ValueError(
                f"push_to_hub={self.push_to_hub!r} is no name of a data set: write OWNER/NAME, such as my-name/my-steps"
            )
