"""What every rollout would be that any method may ask for: all methods are replayed on the same ones.

Rollouts are drawn step by step from the policy, in blocks of BLOCK per prefix, a fixed seed each. Whether an answer is right is
what the real checker says of its text.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from pipeline.core.records import Verdict
from pipeline.graders.shared import grade
from tests.synthetic.chains import Chains
from tests.synthetic.draw import alias
from tests.synthetic.families import Family
from tests.synthetic.language import QUESTIONS, RENDERINGS, WORDINGS, answer_text, answer_tokens, step_tokens

BLOCK = 32
RIGHT, WRONG, UNGRADED = 1, 0, -1

Outcomes = npt.NDArray[np.int8]


@cache
def verdicts() -> Outcomes:
    """Whether the checker takes an answer for right, by question, truth and rendering: (questions, 2, RENDERINGS)."""
    return np.array(
        [
            [
                [
                    grade(question.gold, answer_text(place, right, rendering)).verdict is Verdict.CORRECT
                    for rendering in range(RENDERINGS)
                ]
                for right in (False, True)
            ]
            for place, question in enumerate(QUESTIONS)
        ],
        dtype=np.int8,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rollouts of all prefixes, shape (C, K, n), in the order of issue. `outcomes`: RIGHT, WRONG or UNGRADED. `reached`: how
    many steps of the chain behind its prefix a rollout repeated token for token."""

    outcomes: Outcomes
    tokens: npt.NDArray[np.int32]
    reached: npt.NDArray[np.uint8]


class Rollouts:
    """All rollouts of a family's chains, drawn when first asked for."""

    def __init__(self, family: Family, chains: Chains, seed: int) -> None:
        self._family = family
        self._chains = chains
        self._seed = seed
        self._blocks: list[Block] = []
        self._moves = alias(family.policy.moves)
        self._blocks.append(self._block(0))
        self._all = self._blocks[0]

    def first(self, count: int) -> Block:
        """The first rollouts of every prefix, at least `count` of each."""
        while len(self._blocks) * BLOCK < count:
            self._blocks.append(self._block(len(self._blocks)))
        if len(self._blocks) * BLOCK > self._all.outcomes.shape[2]:
            self._all = _joined(self._blocks)
        return self._all

    def _block(self, number: int) -> Block:
        random = np.random.default_rng([self._seed, 1, number])
        chains, policy = self._chains, self._family.policy
        shape = (chains.count, chains.steps, BLOCK)
        states = np.broadcast_to(chains.states[:, :, None], shape).copy()
        tokens = np.zeros(shape, dtype=np.int32)
        follows = np.ones(shape, dtype=bool)
        reached = np.zeros(shape, dtype=np.uint8)
        lengths = step_tokens(len(policy.moves)).astype(np.int32)
        for step in range(1, policy.steps):
            before = np.s_[:, :step]
            moved = self._moves.draw(states[before], random)
            worded = random.integers(WORDINGS, size=moved.shape, dtype=np.uint8)
            states[before] = moved
            tokens[before] += lengths[moved, worded]
            same = (moved == chains.states[:, step, None, None]) & (worded == chains.wordings[:, step, None, None])
            follows[before] &= same
            reached[before] += follows[before]
        right = random.random(shape) < policy.right[states]
        rendering = random.integers(RENDERINGS, size=shape)
        asked = np.broadcast_to(chains.questions[:, None, None], shape)
        tokens += answer_tokens()[asked, right.astype(int), rendering].astype(np.int32)
        if self._family.repeats_wrong:
            tokens[~right] *= 2
        outcomes = verdicts()[asked, right.astype(int), rendering]
        outcomes[random.random(shape) < self._family.timeouts] = UNGRADED
        return Block(outcomes=outcomes, tokens=tokens, reached=reached)


def _joined(blocks: list[Block]) -> Block:
    return Block(
        outcomes=np.concatenate([block.outcomes for block in blocks], axis=2),
        tokens=np.concatenate([block.tokens for block in blocks], axis=2),
        reached=np.concatenate([block.reached for block in blocks], axis=2),
    )
