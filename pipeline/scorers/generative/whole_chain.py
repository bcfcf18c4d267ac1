"""Judges a chain by one prompt with all of its steps, or with as many whole steps as fit."""

from collections.abc import Awaitable, Callable, Sequence

from pipeline.core.records import ChainText
from pipeline.scorers.generative.base import Judged, Messages, Vote, Writer, Written, failed, tokens

Prompted = Callable[[str, Sequence[str]], tuple[Messages, str]]
"""(problem, steps) -> the conversation, and how the assistant's turn begins."""
Read = Callable[[Written, int], Awaitable[Sequence[Vote]]]
"""(what was written, number of steps) -> the votes."""


async def judge_whole(chain: ChainText, writer: Writer, prompted: Prompted, read: Read) -> Judged:
    """The votes on the steps that fit."""
    steps = len(chain.steps)
    for_all = writer.prompt(*prompted(chain.problem, chain.steps))
    prompt, fitting = (for_all, steps) if for_all is not None else _most(chain, writer, prompted)
    if prompt is None:
        return Judged(votes=[], left_out=steps)
    written = await writer.write(chain, prompt, writer.votes)
    if failed(written):
        return Judged(votes=[], failed=True, left_out=steps)
    votes = await read(written, fitting)
    return Judged(votes=votes, left_out=steps - fitting, tokens=tokens(written))


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
