"""Settings of the scorers. Pure: this module loads no library."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, REFUSED, check
from pipeline.config.oracle_world import WorldSettings
from pipeline.config.score import ScorerConfig

FOVER_FIRST_TURN = """\
** Problem **
{problem}

** Task **
Your task is to evaluate the accuracy of each step in the provided solution to the above question. For each step, respond with \
"correct" if the reasoning is logically valid and mathematically sound, or if the step is a general statement or transition \
that does not contain reasoning. Respond with "incorrect" if the step includes any errors or flawed logic.

** Sotluion **
{step}"""
"""`src/prm/preprocessing.py` of psunlpgroup/FoVer, word for word."""


class ModelEngine(Enum):
    """What computes a model."""

    auto = "auto"
    """vLLM on a GPU where it is installed and serves the architecture, else transformers."""
    vllm = "vllm"
    transformers = "transformers"


@dataclass(kw_only=True, slots=True)
class ModelScorerConfig(ScorerConfig):
    """The settings that scorers share which load a model."""

    model: Annotated[str, REFUSED] = "???"
    """The model: a local folder, such as one that `train` has written, or a Hugging Face name. `model=` is short for it."""
    revision: str | None = None
    """Revision of the model on the Hugging Face Hub: a branch, a tag or a commit."""
    engine: ModelEngine = ModelEngine.auto
    """What computes the model. auto: vLLM where it is installed and serves the architecture, on a GPU, or to read newest steps
    alone; else transformers."""
    dtype: str = "auto"
    """Number format of the weights. auto: float32 with transformers, whose passes are in bfloat16 on GPUs that have it; with
    vLLM the model's own, or float32 on a CPU."""
    max_length: Annotated[int | None, Ge(1)] = None
    """The largest number of tokens of a chain. null: the model's own limit. Steps beyond it have no score."""
    batch_tokens: Annotated[int, Ge(1), FREE] = 4096
    """engine=transformers: tokens per forward pass, padding included. A longer chain has a pass of its own."""
    tensor_parallel: Annotated[int | None, Ge(1), FREE] = None
    """GPUs per worker, all on one node. null: as few as the model needs."""
    memory_share: Annotated[float | None, Range(gt=0, le=1), FREE] = None
    """engine=vllm: share of the GPU's memory that vLLM may use. null: 0.9, or less if several workers share the GPU."""
    kv_cache_gib: Annotated[float, Gt(0), FREE] = 2.0
    """engine=vllm: memory of the KV cache in GiB, on a CPU."""
    max_num_seqs: Annotated[int | None, Ge(1), FREE] = None
    """engine=vllm: chains that run at once. null: a default for the device."""
    max_num_batched_tokens: Annotated[int | None, Ge(1), FREE] = None
    """engine=vllm: tokens of one forward pass. null: a default for the device."""


@dataclass(kw_only=True, slots=True)
class OwnConfig(ModelScorerConfig):
    """Models that `train` writes, and those of TRL's PRMTrainer: two classes at the last token of every step."""

    kind: Annotated[str, BY_GROUP] = "own"
    separator: str | None = None
    """The text after the problem and after every step; `\\n` means a newline. null: as the model's config.json records it."""

    def check(self) -> None:
        check(self.separator != "", "scorer.separator", repr(self.separator), "a text, or null")


@dataclass(kw_only=True, slots=True)
class QwenConfig(ModelScorerConfig):
    """Qwen2.5-Math-PRM, ReasonFlux-PRM and others of their class: two classes at a tag after every step of a chat."""

    kind: Annotated[str, BY_GROUP] = "qwen"
    system: str | None = "Please reason step by step, and put your final answer within \\boxed{}."
    """The text of the system's turn. null: no such turn."""
    tag: str = "<extra_0>"
    """The tag after every step: one token."""

    def check(self) -> None:
        check(self.tag != "", "scorer.tag", repr(self.tag), "a text")


@dataclass(kw_only=True, slots=True)
class MathShepherdConfig(ModelScorerConfig):
    """Math-Shepherd and others of its format: a tag after every step, where the model says + or -."""

    kind: Annotated[str, BY_GROUP] = "math_shepherd"
    tag: str = " ки"
    """The tag after every step: one token, with the blank before it."""
    good: str = "+"
    """The word for a good step: one token."""
    bad: str = "-"
    """The word for a bad step: one token."""
    between: str = "\n"
    """The text after the tag, before the next step; `\\n` means a newline."""
    numbered: bool = False
    """Begin step K with `Step K: `, as in the data that Math-Shepherd was trained on, unless it begins with that already."""

    def check(self) -> None:
        _check_words(self.good, self.bad)
        check(self.tag != "", "scorer.tag", repr(self.tag), "a text")
        check(self.between != "", "scorer.between", repr(self.between), "a text")


@dataclass(kw_only=True, slots=True)
class RlhflowConfig(ModelScorerConfig):
    """The PRMs of RLHFlow and others of their format: a turn for each step, which the model answers with + or -."""

    kind: Annotated[str, BY_GROUP] = "rlhflow"
    good: str = "+"
    """The answer to a good step: one token."""
    bad: str = "-"
    """The answer to a bad step: one token."""
    between: str = " "
    """The text between the problem and the first step; `\\n` means a newline. RLHFlow has a blank, the evaluation of
    ProcessBench `\\n\\n`."""
    system: str | None = None
    """The text of the system's turn. null: no such turn but the template's own."""

    def check(self) -> None:
        _check_words(self.good, self.bad)


@dataclass(kw_only=True, slots=True)
class FoverConfig(ModelScorerConfig):
    """The PRMs of FoVer: a turn for each step, which the model answers with "correct" or "incorrect"."""

    kind: Annotated[str, BY_GROUP] = "fover"
    first_turn: str = FOVER_FIRST_TURN
    """The first turn, with `{problem}` and `{step}` where the problem and the first step stand. The default is FoVer's, with
    its spelling of "Solution", which the models are trained with; `\\n` means a newline."""
    good: str = "correct"
    """The answer to a good step. Its first token is read."""
    bad: str = "incorrect"
    """The answer to a bad step. Its first token is read."""

    def check(self) -> None:
        _check_words(self.good, self.bad)
        counts = (self.first_turn.count("{problem}"), self.first_turn.count("{step}"))
        in_order = self.first_turn.find("{problem}") < self.first_turn.find("{step}")
        wanted = "a text with one {problem} and, after it, one {step}"
        check(counts == (1, 1) and in_order, "scorer.first_turn", repr(self.first_turn), wanted)


@dataclass(kw_only=True, slots=True)
class SkyworkConfig(ModelScorerConfig):
    """Skywork-o1-Open-PRM: a value at the end of every step."""

    kind: Annotated[str, BY_GROUP] = "skywork"
    step_token: str = "\n"
    """The token after every step, at which its value is read; `\\n` means a newline. Inside a step it ends a line, where
    nothing is read."""

    def check(self) -> None:
        check(self.step_token != "", "scorer.step_token", repr(self.step_token), "a text")


def _check_words(good: str, bad: str) -> None:
    for name, word in (("good", good), ("bad", bad)):
        check(word != "", f"scorer.{name}", repr(word), "a word")
    check(good != bad, "scorer.bad", repr(bad), "another word than scorer.good")


@dataclass(kw_only=True, slots=True)
class OracleScores(WorldSettings):
    """What the oracle answers, and how well. `seed` and `world` are those of the policy whose values are the truth."""

    SECTION: ClassVar[str] = "scorer.oracle"
    seed: int = 0
    """Seed of the true values and of the noise. With that of `policy.oracle`, chains of `run_dir` have the values of its
    prefixes. Chains of `data.path` have values of their own, but for those of a tree."""
    auc: Annotated[float, Range(gt=0.5, le=1)] = 1.0
    """How well the scores tell steps with a value above 0.5 from the others: the area under the ROC curve. 1: the scores are
    the values. With world=tree it is over inner steps. Last steps have the values 0 and 1, and their AUC is higher: 0.92 at
    auc=0.7, 0.995 at 0.8, 1.000 at 0.9."""


@dataclass(kw_only=True, slots=True)
class OracleScorerConfig(ScorerConfig):
    kind: Annotated[str, BY_GROUP] = "oracle"
    oracle: OracleScores = field(default_factory=OracleScores)


def unescaped(text: str) -> str:
    """Replace `\\n` by a newline, which a command line cannot contain."""
    return text.replace("\\n", "\n")
