"""Settings of the scorers whose model may run on servers. Pure: this module loads no library."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt
from annotated_types import Interval as Range

from pipeline.config.fields import BY_GROUP, FREE, REFUSED, check, refuse_equal
from pipeline.config.score import ScorerConfig
from pipeline.engines.settings import HfConfig, OpenAiConfig

NAMES: Mapping[str, str] = {
    "policy": "scorer",
    "policy.tokenizer": "scorer.tokenizer",
    **{f"policy.{each.name}": f"scorer.{each.name}" for each in fields(HfConfig)},
    "policy.max_model_len": "scorer.max_length",
    "sampling.max_tokens": "scorer.max_tokens",
}
"""Settings of policies -> those of a scorer whose model is loaded, or served, as that of a policy."""


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
