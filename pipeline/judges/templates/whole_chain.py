"""Puts a chain to a model by one prompt with all of its steps, or with as many whole steps as fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.core.records import ChainText, Finish
from pipeline.judges.templates.base import (
    Messages,
    Writer,
    Written,
    WrittenCritique,
    WrittenCritiques,
    failed,
    tokens,
    unwritten_critiques,
)

Prompted = Callable[[str, Sequence[str]], tuple[Messages, str]]
"""(problem, steps) -> the conversation, and how the assistant's turn begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfWholeChain:
    """The critiques, and what they are from. `written`: None where nothing was asked."""

    critiques: WrittenCritiques
    written: Written | None = None


async def critiques_of_whole(chain: ChainText, writer: Writer, prompted: Prompted) -> OfWholeChain:
    """The critiques of a chain, or of the first steps that fit. Raises EngineDied."""
    steps = len(chain.steps)
    prompt, fitting = writer.prompt(*prompted(chain.problem, chain.steps)), steps
    if prompt is None and not writer.whole_chains:
        prompt, fitting = _most(chain, writer, prompted)
    if prompt is None:
        none = unwritten_critiques(writer.votes, Finish.TOO_LONG)
        return OfWholeChain(critiques=WrittenCritiques(critiques=none, left_out=steps))
    written = await writer.write(chain, prompt, writer.votes)
    critiques = [
        WrittenCritique(
            turns=(each.text,), finish=each.finish, n_tokens=each.n_tokens, n_prompt_tokens=len(written.prompt)
        )
        for each in written.completions
    ]
    if failed(written):
        return OfWholeChain(critiques=WrittenCritiques(critiques=critiques, failed=True, left_out=steps))
    return OfWholeChain(
        critiques=WrittenCritiques(critiques=critiques, left_out=steps - fitting, tokens=tokens(written)),
        written=written,
    )


def _most(chain: ChainText, writer: Writer, prompted: Prompted) -> tuple[tuple[int, ...] | None, int]:
    """The prompt of as many first steps as fit, and their number. None if not even one does."""
    low, high, best = 1, len(chain.steps) - 1, None
    while low <= high:
        middle = (low + high) // 2
        prompt = writer.prompt(*prompted(chain.problem, chain.steps[:middle]))
        if prompt is None:
            high = middle - 1
        else:
            best, low = prompt, middle + 1
    return best, high
