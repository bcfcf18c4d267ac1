"""Writes critiques with the engine of a policy: prompts in tokens, and completions for them.

Chains are judged independently, so as many prompts as the engine takes are under way at once.
"""

from collections.abc import Sequence

from pipeline.core.errors import EngineDied
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import ChainText, Completion, Prefix, Problem, Request
from pipeline.data.prompts import ChatTokenizer
from pipeline.engines.base import Engine

Messages = Sequence[dict[str, str]]
"""A conversation: `role` and `content` of each turn."""


class Writer:
    """Continues conversations. `votes`: the number of completions of each prompt. `max_tokens`: of the longest completion.
    `whole_chains`: a chain that does not fit into the model's context is left alone; if not, as many first steps are judged as
    fit."""

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
