"""What is held against people: the run's own labels, its values above a threshold, and what needs no rollouts at all.

Whoever reads a figure of labels wants to know what is to be had for nothing. Two of these baselines know which final answers
are right, as the run does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.agree.human import NEUTRAL
from pipeline.analysis.agree.match import LabelledChain
from pipeline.analysis.agree.rating import NO_ERROR, first_error
from pipeline.analysis.agree.settings import Neutral

_LABELS: dict[int | None, bool | None] = {1: True, 0: False, None: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """`errors`: for each chain how probable each first error is: a step from 0, NO_ERROR, or None for undecided.

    `goods`: what is said of each step; None for a baseline, which says nothing of single steps.
    """

    name: str
    threshold: float | None = None
    errors: tuple[Mapping[int | None, float], ...]
    goods: tuple[tuple[bool | None, ...], ...] | None = None


def by_label(chains: Sequence[LabelledChain], name: str, neutral: Neutral) -> Ruling:
    """The column `label`."""
    meaning = {**_LABELS, 2: NEUTRAL[neutral]}
    return _of_steps(name, [tuple(meaning[label] for label in chain.labels) for chain in chains])


def by_threshold(chains: Sequence[LabelledChain], threshold: float) -> Ruling:
    """A step is good if its value is above `threshold`, and undecided if it has none."""
    goods = [tuple(None if value is None else value > threshold for value in chain.values) for chain in chains]
    return _of_steps(f"value > {threshold:g}", goods, threshold)


def baselines(chains: Sequence[LabelledChain]) -> list[Ruling]:
    """`random`: each answer, a step or none, is as likely as any other; a random step of a wrong chain likewise."""
    sizes = [len(chain.labels) for chain in chains]
    return [
        Ruling(name="never an error", errors=tuple({NO_ERROR: 1.0} for _ in chains)),
        Ruling(name="random", errors=tuple(_even(range(NO_ERROR, size)) for size in sizes)),
        Ruling(
            name="wrong answer: any step",
            errors=tuple(_if_wrong(chain, _even(range(size))) for chain, size in zip(chains, sizes, strict=True)),
        ),
        Ruling(
            name="wrong answer: last step",
            errors=tuple(_if_wrong(chain, {size - 1: 1.0}) for chain, size in zip(chains, sizes, strict=True)),
        ),
    ]


def _of_steps(name: str, goods: Sequence[tuple[bool | None, ...]], threshold: float | None = None) -> Ruling:
    errors = tuple({first_error(chain): 1.0} for chain in goods)
    return Ruling(name=name, threshold=threshold, errors=errors, goods=tuple(goods))


def _even(answers: Sequence[int]) -> dict[int | None, float]:
    return {answer: 1 / len(answers) for answer in answers}


def _if_wrong(chain: LabelledChain, errors: Mapping[int | None, float]) -> Mapping[int | None, float]:
    if chain.outcome is None:
        return {None: 1.0}
    return {NO_ERROR: 1.0} if chain.outcome else errors
