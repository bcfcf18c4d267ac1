"""Which chain of people's is which of the run's: the one with the same problem and the same steps, but for white space.

An id alone proves nothing. It decides only where the run has a text more than once, as of problems with several known answers.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.analysis.agree.human import HumanChain

MAX_SUBSETS = 12
"""Ids that fall into more subsets than this name none."""
_SUBSET = re.compile(r"(.*\D)[-_/:]\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledChain:
    """A row of `labels`: `values` and `labels` have an entry per step, `outcome` is whether its final answer is right.
    `terminal`: the last value is that outcome, and rests on no rollouts."""

    source_id: str | None
    problem: str
    steps: tuple[str, ...]
    values: tuple[float | None, ...]
    labels: tuple[int | None, ...]
    outcome: bool | None
    terminal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    human: HumanChain
    labelled: LabelledChain


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """`repeated`: rows of people's about a chain that an earlier row is about; the first counts. `contradicting` of them say
    something else than it. `other_text`: unmatched rows whose id the run knows."""

    pairs: tuple[Pair, ...]
    unmatched_human: int
    unmatched_labelled: int
    other_text: int
    repeated: int
    contradicting: int


def match(humans: Iterable[HumanChain], labelled: Sequence[LabelledChain]) -> Matched:
    """Every chain of people's with its labels, in people's order."""
    by_text: dict[tuple[str, ...], list[LabelledChain]] = defaultdict(list)
    for chain in labelled:
        by_text[_key(chain)].append(chain)
    ids = {chain.source_id for chain in labelled if chain.source_id is not None}
    first: dict[tuple[str, ...], HumanChain] = {}
    pairs = []
    repeated = contradicting = other_text = 0
    for human in humans:
        key = _key(human)
        if key in first:
            repeated += 1
            contradicting += human.goods != first[key].goods
            continue
        first[key] = human
        if found := by_text.get(key):
            same_id = [chain for chain in found if chain.source_id == human.source_id]
            pairs.append(Pair(human=human, labelled=(same_id or found)[0]))
        else:
            other_text += human.source_id in ids
    return Matched(
        pairs=tuple(pairs),
        unmatched_human=len(first) - len(pairs),
        unmatched_labelled=len(labelled) - len(pairs),
        other_text=other_text,
        repeated=repeated,
        contradicting=contradicting,
    )


def subsets(pairs: Sequence[Pair]) -> list[str | None]:
    """What stands before the number in each id by people, `gsm8k` of `gsm8k-40`; None for an id of another shape."""
    shapes = [_SUBSET.fullmatch(pair.human.source_id or "") for pair in pairs]
    names = [shape[1] if shape else None for shape in shapes]
    return names if len(set(names)) <= MAX_SUBSETS else [None] * len(pairs)


def _key(chain: HumanChain | LabelledChain) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in (chain.problem, *chain.steps))
