"""What a style of judging is: how a chain is put to a model, and which votes follow from what it writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pipeline.core.records import ChainText, Completion

Messages = Sequence[dict[str, str]]
"""A conversation: `role` and `content` of each turn."""
Vote = Sequence[float | None]
"""A score for each step that one reading of a chain gives: 1 or 0, or a probability. None where it says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the model wrote after a prompt. `prompt`: the prompt's token ids. `completions`: one for each vote."""

    prompt: tuple[int, ...]
    completions: tuple[Completion, ...]


class Writer(Protocol):
    """A model that continues conversations."""

    votes: int
    """The number of completions of each prompt."""

    def prompt(self, messages: Messages, opening: str) -> tuple[int, ...] | None:
        """The token ids of a conversation up to the assistant's turn, which begins with `opening`. None where prompt and
        completion do not fit into the model's context."""
        ...

    async def write(self, chain: ChainText, prompt: tuple[int, ...], votes: int) -> Written:
        """What the model writes after a prompt, for a chain. Raises EngineDied."""
        ...

    async def probability(
        self, chain: ChainText, prompt: tuple[int, ...], text: str, words: tuple[str, str]
    ) -> float | None:
        """P(first word) against P(second word) as the continuation of `prompt` and `text`. None if it cannot be read. Raises
        EngineDied."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Votes on the first steps of a chain. `left_out`: last steps that did not fit. `failed`: whether the model could not be
    asked. `tokens`: read and written."""

    votes: Sequence[Vote]
    left_out: int = 0
    failed: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How votes are sampled in a style's publication."""

    temperature: float
    top_p: float = 1.0
    top_k: int = 0


class Style(Protocol):
    """A way to put a chain to a model. `index_base`: the number of the first step in prompts and answers."""

    sampling: ClassVar[Sampling]
    """How the publication samples votes, where there are several."""
    stop: ClassVar[tuple[str, ...]] = ()
    """Texts at which the model may stop writing."""
    base: ClassVar[int]
    """The published index of the first step."""
    reads_words: ClassVar[bool]
    """Whether a verdict is one of two words, of which a probability can be read."""

    def __init__(self, index_base: int, *, probability: bool) -> None:
        """`probability`: votes are probabilities of the verdict's words instead of the words."""
        ...

    async def judge(self, chain: ChainText, writer: Writer) -> Judged:
        """The votes on a chain. Raises EngineDied."""
        ...


def failed(written: Written) -> bool:
    """Whether no completion could be written at all."""
    return all(not completion.text and not completion.n_tokens for completion in written.completions)


def tokens(written: Written) -> int:
    """The number of tokens read and written."""
    return len(written.prompt) + sum(completion.n_tokens for completion in written.completions)
