"""What a template is: how a chain is put to a model that writes, what its texts say, and how chains stand in prompts."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pipeline.config.label import SamplingConfig
from pipeline.core.records import ChainText, Completion, Finish, Reading
from pipeline.judges.verdicts import unwritten
from pipeline.judges.writer import Writer

Shares = Callable[[ChainText, tuple[int, ...], str, tuple[str, str]], Awaitable[float | None]]
"""(chain, prompt, text, words) -> P(first word) against P(second word) as the continuation of the prompt and the text. None if
it cannot be read. Raises EngineDied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCritique:
    """One critique. `turns`, `finish`, `n_tokens`, `n_prompt_tokens`: see `Critique`. `shares`: P(the good word) of the verdict
    on each step, where they were asked for."""

    turns: tuple[str, ...]
    finish: Finish
    n_tokens: int = 0
    n_prompt_tokens: int = 0
    shares: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCritiques:
    """The critiques of the first steps of a chain, one for each vote. `left_out`: last steps that did not fit. `failed`:
    whether the model could not be asked. `tokens`: read and written; a prompt of several votes counts once."""

    critiques: Sequence[WrittenCritique]
    left_out: int = 0
    failed: bool = False
    tokens: int = 0


class Template(Protocol):
    """A way to put a chain to a model."""

    sampling: ClassVar[SamplingConfig] = SamplingConfig()
    """How the publication samples votes, where there are several."""
    stop: ClassVar[tuple[str, ...]] = ()
    """Texts at which the model may stop writing."""
    base: ClassVar[int]
    """The published index of the first step."""
    words: ClassVar[tuple[str, str] | None] = None
    """The words of a verdict on a step, good and bad, of which a probability can be read. None for other verdicts."""
    stops_at_error: ClassVar[bool] = True
    """Whether a critique need not judge the steps after the first one with an error."""

    index_base: int
    """The number of the first step in prompts and answers."""

    def __init__(self, index_base: int | None = None) -> None:
        """`index_base`: None: the published one."""
        self.index_base = self.base if index_base is None else index_base

    @abstractmethod
    async def write(self, chain: ChainText, writer: Writer, shares: Shares | None = None) -> WrittenCritiques:
        """The critiques of a chain. `shares`: verdicts are probabilities of their words besides (or in place of) the words.
        Raises EngineDied."""
        ...

    @abstractmethod
    def verdict(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        """`read` of a critique that has a text."""
        ...

    def read(self, turns: Sequence[str], finish: Finish, steps: int) -> Reading:
        """See `Judge.read`."""
        return unwritten(turns, finish) or self.verdict(turns, finish, steps)

    @classmethod
    def sampled(
        cls, votes: int, *, temperature: float | None, top_p: float | None, top_k: int | None, max_tokens: int
    ) -> SamplingConfig:
        """How votes are sampled. What is None is as published, but for one vote, which is not sampled."""
        if temperature is None:
            temperature = cls.sampling.temperature if votes > 1 else 0.0
        sampled = temperature > 0
        return SamplingConfig(
            temperature=temperature,
            top_p=(cls.sampling.top_p if top_p is None else top_p) if sampled else 1.0,
            top_k=(cls.sampling.top_k if top_k is None else top_k) if sampled else 0,
            max_tokens=max_tokens,
            stop=list(cls.stop),
        )


def failed(written: Sequence[Completion]) -> bool:
    """Whether no completion could be written at all."""
    return all(not completion.text and not completion.n_tokens for completion in written)


def tokens(written: Sequence[Completion]) -> int:
    """The number of tokens read and written, of completions of one prompt."""
    return len(written[0].request.prefix.prompt_ids) + sum(completion.n_tokens for completion in written)


def tagged_steps(steps: Sequence[str], base: int) -> str:
    """The steps, each between `<step_K>` and `</step_K>`. `base`: the number of the first one."""
    return "\n\n".join(f"<step_{number}>\n{step}\n</step_{number}>" for number, step in enumerate(steps, start=base))


def numbered_steps(steps: Sequence[str], base: int) -> str:
    """The steps, each after `Step K: `. `base`: the number of the first one."""
    return "\n".join(f"Step {number}: {step}" for number, step in enumerate(steps, start=base))


def shown_answer(chain: ChainText) -> str:
    """The known answers of a chain's problem, for a judge that may see them."""
    return " or ".join(chain.golds) or "(unknown)"
