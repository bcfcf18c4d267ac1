"""Settings of the scorers. Pure: this module loads no library."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, REFUSED, check, refuse_equal
from pipeline.config.oracle_world import WorldSettings
from pipeline.config.score import ScorerConfig
from pipeline.engines.settings import HfConfig, OpenAiConfig

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
NAMES: Mapping[str, str] = {
    "policy": "scorer",
    "policy.tokenizer": "scorer.tokenizer",
    **{f"policy.{each.name}": f"scorer.{each.name}" for each in fields(HfConfig)},
    "policy.max_model_len": "scorer.max_length",
    "sampling.max_tokens": "scorer.max_tokens",
}
"""Settings of policies -> those of a scorer whose model is loaded, or served, as that of a policy."""


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


class ServedApi(Enum):
    """How a served model is asked for scores."""

    completions = "completions"
    """The log-probabilities of two words as the next token, at each step."""
    pooling = "pooling"
    """vLLM's /pooling with the task token_classify: the classes of all tokens of a chain."""
    classify = "classify"
    """vLLM's /classify: the classes of the last token, for each step; it reads the server's prefix cache."""


@dataclass(kw_only=True, slots=True)
class ScorerServers(OpenAiConfig):
    """How requests are sent to the servers of a scorer."""

    SECTION: ClassVar[str] = "scorer.openai"


@dataclass(kw_only=True, slots=True)
class ServedScorerConfig(ScorerConfig):
    """The settings that scorers share whose model may run on servers."""

    model: Annotated[str, REFUSED] = "???"
    """The model: the name by which the servers know it. `model=` is short for it."""
    tokenizer: Annotated[str | None, REFUSED] = None
    """The model's tokenizer and config.json: a local folder or a Hugging Face name. null: the same as scorer.model."""
    revision: str | None = None
    """Revision of the model or tokenizer on the Hugging Face Hub: a branch, a tag or a commit."""
    max_length: Annotated[int | None, Ge(16)] = None
    """The largest number of tokens of a chain. null: the model's own limit. Steps beyond it have no score."""
    openai: ScorerServers = field(default_factory=ScorerServers)


@dataclass(kw_only=True, slots=True)
class OpenAiScorerConfig(ServedScorerConfig):
    """A process reward model on servers that run already: `vllm serve` and others with the OpenAI-compatible API."""

    kind: Annotated[str, BY_GROUP] = "openai"
    layout: str = "own"
    """The scorer for models of this format, such as own: how a chain is written and where it is read."""
    api: ServedApi | None = None
    """How the servers are asked. null: completions where the format is read from a next token, else pooling."""
    separator: str | None = None
    """As `separator` of the scorer that `layout` names; null: as there. So are the settings below."""
    tag: str | None = None
    """As `tag` of the scorer that `layout` names."""
    good: str | None = None
    """As `good` of the scorer that `layout` names."""
    bad: str | None = None
    """As `bad` of the scorer that `layout` names."""
    between: str | None = None
    """As `between` of the scorer that `layout` names."""
    numbered: bool | None = None
    """As `numbered` of the scorer that `layout` names."""
    first_turn: str | None = None
    """As `first_turn` of the scorer that `layout` names."""
    system: str | None = None
    """As `system` of the scorer that `layout` names, but for null, which is that scorer's default here."""

    def check(self) -> None:
        check(self.separator != "", "scorer.separator", repr(self.separator), "a text, or null")


class JudgeStyle(Enum):
    """How a chain is put to a model that judges it in words."""

    process_bench = "process_bench"
    """The critique prompt of ProcessBench, for any chat model: the index of the first wrong paragraph."""
    think_prm = "think_prm"
    """ThinkPRM: a verdict on every step, in one critique."""
    gen_prm = "gen_prm"
    """GenPRM: a turn with an analysis and a judgement for every step. Its code is not run."""


class VerdictRead(Enum):
    """What the score of a step is read from."""

    parsed = "parsed"
    """The verdict that the model wrote: 1 or 0, or the mean over votes."""
    probability = "probability"
    """The probability of the verdict's word where it stands, which servers state (scorer.openai.urls)."""


@dataclass(kw_only=True, slots=True)
class GenerativeConfig(ServedScorerConfig):
    """ThinkPRM, GenPRM, or any chat model as a judge: the model writes verdicts. It runs on servers where `scorer.openai.urls`
    names some, else vLLM runs it here."""

    kind: Annotated[str, BY_GROUP] = "generative"
    style: JudgeStyle = JudgeStyle.process_bench
    """The prompt, and the form of the verdicts."""
    index_base: Annotated[int | None, Range(ge=0, le=1)] = None
    """The number of the first step in prompts and answers. null: that of the style: 0 for process_bench, 1 for think_prm and
    gen_prm."""
    votes: Annotated[int, Range(ge=1, le=1000)] = 1
    """Critiques of each chain. The score of a step is the mean of their verdicts; the column `reliability` says how many
    agree."""
    verdict: VerdictRead = VerdictRead.parsed
    """What the score is read from: the written verdict, or the probability of its word (think_prm and gen_prm)."""
    temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature. null: 0 for one vote; for several as the style is published (1.0 process_bench, 0.7 think_prm, 0.6
    gen_prm)."""
    top_p: Annotated[float | None, Range(gt=0, le=1)] = None
    """Only the most likely tokens that together have this probability are sampled. null: as the style is published."""
    max_tokens: Annotated[int, Ge(1)] = 4096
    """Longest critique in tokens. One that is cut says nothing of steps that it has not judged."""
    dtype: str = "auto"
    """Without servers: number format of the weights. auto: the model's own."""
    tensor_parallel: Annotated[int | None, Ge(1), FREE] = None
    """Without servers: GPUs per worker, all on one node. null: as few as the model needs."""
    memory_share: Annotated[float | None, Range(gt=0, le=1), FREE] = None
    """Without servers: share of the GPU's memory that vLLM may use. null: 0.9, or less if several workers share the GPU."""
    kv_cache_gib: Annotated[float, Gt(0), FREE] = 2.0
    """Without servers: memory of the KV cache in GiB, on a CPU."""
    max_num_seqs: Annotated[int | None, Ge(1), FREE] = None
    """Without servers: critiques that are written at once. null: a default for the device."""
    max_num_batched_tokens: Annotated[int | None, Ge(1), FREE] = None
    """Without servers: tokens of one forward pass, prompts included. null: a default for the device."""

    def check(self) -> None:
        refuse_equal("scorer.votes", self.votes, "votes", self.temperature, "scorer.temperature")


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
