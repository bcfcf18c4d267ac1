"""Settings of the scorers whose model may run on servers. This module loads no library."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, ClassVar

from annotated_types import Ge

from pipeline.config.fields import BY_GROUP, REFUSED, check
from pipeline.config.score import ScorerConfig
from pipeline.engines.settings import OpenAiConfig


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
    """As `separator` of the scorer that `layout` names."""

    def check(self) -> None:
        check(self.separator != "", "scorer.separator", repr(self.separator), "a text, or null")
