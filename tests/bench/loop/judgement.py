"""How often labels are right by arithmetic, and how figures of steps rank. Pure.

A label says whether a chain is error-free up to its step: 1 yes, 0 no, null unknown. So a 0 after the first error is right too;
whether the first error is found is counted by chain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.consensus.filters import first_error
from pipeline.train.result import auc


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsCount:
    """`steps`: with or without a label. `right_ones`: of the labels 1, those of error-free steps; `right_zeros` likewise.
    `chains`: in all; `located`: those whose labels name a first error, or none; `right_located`: those that name the true
    one."""

    steps: int = 0
    ones: int = 0
    zeros: int = 0
    right_ones: int = 0
    right_zeros: int = 0
    chains: int = 0
    located: int = 0
    right_located: int = 0

    @property
    def labelled(self) -> float:
        """The share of steps with a label."""
        return _share(self.ones + self.zeros, self.steps)

    @property
    def right(self) -> float:
        """The share of labels that are right."""
        return _share(self.right_ones + self.right_zeros, self.ones + self.zeros)

    def shown(self) -> str:
        """In a line."""
        return (
            f"{self.labelled:6.1%} of steps, {self.right:6.1%} of them right (1: {_share(self.right_ones, self.ones):6.1%} of "
            f"{self.ones:,}, 0: {_share(self.right_zeros, self.zeros):6.1%} of {self.zeros:,}); first error named in "
            f"{_share(self.located, self.chains):6.1%} of chains, {_share(self.right_located, self.located):6.1%} of them right"
        )


def counted(chains: Iterable[tuple[Sequence[int | None], Sequence[bool]]]) -> LabelsCount:
    """`chains`: per chain the labels of its steps, and whether it is error-free up to each."""
    steps = ones = zeros = right_ones = right_zeros = number = located = right_located = 0
    for labels, free in chains:
        number += 1
        steps += len(labels)
        ones += labels.count(1)
        zeros += labels.count(0)
        right_ones += sum(label == 1 and flag for label, flag in zip(labels, free, strict=True))
        right_zeros += sum(label == 0 and not flag for label, flag in zip(labels, free, strict=True))
        place = first_error(labels)
        if place is not None:
            located += 1
            right_located += place == sum(free)
    return LabelsCount(
        steps=steps,
        ones=ones,
        zeros=zeros,
        right_ones=right_ones,
        right_zeros=right_zeros,
        chains=number,
        located=located,
        right_located=right_located,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How figures of steps rank error-free ones above others: areas under the curve over all steps, and over inner ones, whose
    outcome does not say it. None: there are no two kinds of steps."""

    every: float | None
    inner: float | None

    def shown(self) -> str:
        """In a line."""
        every, inner = ("-" if found is None else f"{found:.3f}" for found in (self.every, self.inner))
        return f"AUC {every} over all steps, {inner} over all but the last of each chain"


def ranking(chains: Iterable[tuple[Sequence[float | None], Sequence[bool]]]) -> Ranking:
    """`chains`: per chain a figure of each step, and whether it is error-free up to there. Steps without a figure do not
    count."""
    every: list[tuple[float, int, bool]] = []
    for figures, free in chains:
        last = len(figures) - 1
        every += [
            (figure, int(flag), at < last)
            for at, (figure, flag) in enumerate(zip(figures, free, strict=True))
            if figure is not None
        ]
    inner = [each for each in every if each[2]]
    return Ranking(
        every=auc([figure for figure, _, _ in every], [flag for _, flag, _ in every]),
        inner=auc([figure for figure, _, _ in inner], [flag for _, flag, _ in inner]),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
