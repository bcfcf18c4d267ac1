"""Chains to be valued, with the true value of every prefix."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.core.records import ChainShape
from tests.synthetic.draw import Integers, alias
from tests.synthetic.families import Family, starts
from tests.synthetic.language import QUESTIONS, RENDERINGS, WORDINGS, answer_tokens, step_tokens
from tests.synthetic.policy import LEVELS, Floats, exact_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """C chains of K steps, one of each problem. `states`, `wordings` and `values` have the shape (C, K), one entry per prefix
    before the last; entry k of `wordings` is that of step k, of which prefix 0 has none. `outcomes` and `questions`: (C,)."""

    states: Integers
    wordings: Integers
    values: Floats
    outcomes: npt.NDArray[np.bool_]
    questions: Integers

    @property
    def count(self) -> int:
        return len(self.states)

    @property
    def steps(self) -> int:
        return len(self.states[0])


def chains_of(family: Family, count: int, seed: int) -> Chains:
    random = np.random.default_rng([seed, 0])
    steps = family.policy.steps
    states = np.empty((count, steps), dtype=np.int64)
    states[:, 0] = starts(count, random)
    if family.author is None:
        states[:, 1:] = random.integers(len(LEVELS), size=(count, steps - 1))
        chances = np.full(count, 0.5)
    else:
        moves = alias(family.author.moves)
        for step in range(1, steps):
            states[:, step] = moves.draw(states[:, step - 1], random)
        chances = family.author.right[states[:, -1]]
    return Chains(
        states=states,
        wordings=random.integers(WORDINGS, size=(count, steps)),
        values=exact_values(family.policy)[np.arange(steps), states],
        outcomes=random.random(count) < chances,
        questions=random.integers(len(QUESTIONS), size=count),
    )


def prefix_id(chain: int, step: int) -> str:
    return f"{chain}.{step}"


def shapes(chains: Chains) -> list[ChainShape]:
    """The chains as estimators see them; prices are the tokens that each chain itself has behind a prefix."""
    own = np.zeros((chains.count, chains.steps + 1))
    own[:, 1:-1] = step_tokens(len(LEVELS))[chains.states[:, 1:], chains.wordings[:, 1:]]
    own[:, -1] = answer_tokens()[chains.questions, chains.outcomes.astype(int), chains.questions % RENDERINGS]
    behind = own[:, ::-1].cumsum(axis=1)[:, ::-1]
    return [
        ChainShape(
            prefix_ids=tuple(prefix_id(chain, step) for step in range(chains.steps + 1)),
            outcome=bool(chains.outcomes[chain]),
            prices=tuple(behind[chain, 1:].tolist()),
        )
        for chain in range(chains.count)
    ]
