"""What a template is: how a chain is put to a model that writes, what its texts say, and how chains stand in prompts."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pipeline.config.label import SamplingConfig
from pipeline.core.errors import EngineDied
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import ChainText, Completion, Finish, Prefix, Problem, Reading, Request
from pipeline.data.prompts import ChatTokenizer
from pipeline.engines.base import Engine
from pipeline.judges.verdicts import unwritten

Messages = Sequence[dict[str, str]]
"""A conversation: `role` and `content` of each turn."""
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


class Writer:
    """Continues conversations with the engine of a policy. Chains are judged independently, so as many prompts as the engine
    takes are under way at once.

    `votes`: the number of completions of each prompt. `max_tokens`: of the longest completion. `whole_chains`: a chain that
    does not fit into the model's context is left alone; if not, as many first steps are judged as fit.
    """

    def __init__(self, text_engine: Engine, *, votes: int, max_tokens: int, whole_chains: bool) -> None:
        self._text_engine = text_engine
        self._max_tokens = max_tokens
        self._under_way: set[str] = set()
        self.votes = votes
        self.whole_chains = whole_chains

    @property
    def capacity(self) -> int:
        """The number of chains that keep the engine busy. Known after its start."""
        return max(1, self._text_engine.capacity // self.votes)

    def prompt(self, messages: Messages, opening: str) -> tuple[int, ...] | None:
        """The token ids of a conversation up to the assistant's turn, which begins with `opening`. None where prompt and
        completion do not fit into the model's context."""
        tokenizer = self._text_engine.tokenizer
        if isinstance(tokenizer, ChatTokenizer):
            # As published code does.
            ids = tokenizer.encode_opened(messages, opening)
        else:
            ids = tokenizer.encode_chat(messages) + (tokenizer.encode(opening) if opening else [])
        fits = len(ids) + self._max_tokens <= self._text_engine.max_model_len
        return tuple(ids) if fits else None

    async def write(self, chain: ChainText, prompt: tuple[int, ...], votes: int) -> tuple[Completion, ...]:
        """What the model writes after a prompt, for a chain. Raises EngineDied."""
        problem = Problem(problem_id=chain.problem_id, text=chain.problem, golds=())
        prefix_id = self._free_id(prompt)
        prefix = Prefix(prefix_id=prefix_id, step_index=len(chain.steps), text="", prompt_ids=prompt)
        requests = [
            Request(request_id=rollout_id(prefix_id, index), issue_index=index, problem=problem, prefix=prefix)
            for index in range(votes)
        ]
        done: dict[int, Completion] = {}
        try:
            async for batch in self._text_engine.generate(requests):
                done |= {completion.request.issue_index: completion for completion in batch}
        finally:
            self._under_way.discard(prefix_id)
        if len(done) != votes:
            raise EngineDied(f"the engine returned {len(done)} of {votes} completions")
        return tuple(done[index] for index in range(votes))

    def _free_id(self, prompt: tuple[int, ...]) -> str:
        """An id of the prompt that no request under way has: equal chains may be judged at once."""
        again = 0
        while (found := content_id("critique", ",".join(map(str, prompt)), str(again))) in self._under_way:
            again += 1
        self._under_way.add(found)
        return found


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
