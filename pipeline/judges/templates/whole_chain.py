"""Puts a chain to a model by one prompt with all of its steps, or with as many whole steps as fit."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence

from pipeline.core.records import ChainText, Finish
from pipeline.judges.templates.base import (
    Messages,
    Shares,
    Template,
    Writer,
    WrittenCritique,
    WrittenCritiques,
    failed,
    tokens,
)


class OfWholeChain(Template):
    """See the module. A template defines `prompted`."""

    @abstractmethod
    def prompted(self, chain: ChainText, steps: Sequence[str]) -> tuple[Messages, str]:
        """The conversation about a chain, of which these are the first steps, and how the assistant's turn begins."""
        ...

    async def with_shares(
        self, critique: WrittenCritique, chain: ChainText, prompt: tuple[int, ...], steps: int, shares: Shares
    ) -> WrittenCritique:
        """The critique of the first steps of a chain with the probabilities of its verdicts. For templates with `words`."""
        return critique

    async def write(self, chain: ChainText, writer: Writer, shares: Shares | None = None) -> WrittenCritiques:
        steps = fitting = len(chain.steps)
        prompt = writer.prompt(*self.prompted(chain, chain.steps))
        if prompt is None and not writer.whole_chains:
            prompt, fitting = self._most(chain, writer)
        if prompt is None:
            none = WrittenCritique(turns=(), finish=Finish.TOO_LONG)
            return WrittenCritiques(critiques=[none] * writer.votes, left_out=steps)
        written = await writer.write(chain, prompt, writer.votes)
        critiques = [
            WrittenCritique(turns=(each.text,), finish=each.finish, n_tokens=each.n_tokens, n_prompt_tokens=len(prompt))
            for each in written
        ]
        if failed(written):
            return WrittenCritiques(critiques=critiques, failed=True, left_out=steps)
        if shares is not None:
            asked = (self.with_shares(each, chain, prompt, fitting, shares) for each in critiques)
            critiques = await asyncio.gather(*asked)
        return WrittenCritiques(critiques=critiques, left_out=steps - fitting, tokens=tokens(written))

    def _most(self, chain: ChainText, writer: Writer) -> tuple[tuple[int, ...] | None, int]:
        """The prompt of as many first steps as fit, and their number. None if not even one does."""
        low, high, best = 1, len(chain.steps) - 1, None
        while low <= high:
            middle = (low + high) // 2
            prompt = writer.prompt(*self.prompted(chain, chain.steps[:middle]))
            if prompt is None:
                high = middle - 1
            else:
                best, low = prompt, middle + 1
        return best, high
