"""The families of chains that estimators are measured on: a policy, and who wrote the chains it is to value.

jump         80 % of the steps are routine, the others lead anywhere; chains are the policy's own
smooth       every step moves the value a little, by a variance of V(1-V)/K; chains are the policy's own: the worst of these
independent  steps say nothing about each other: values drawn evenly from (0, 1), and an outcome by a fair coin
off_policy   jump, but the chains are by an author who loses the thread more often than the policy does
length       jump, and the policy says everything twice before a wrong answer
fatal        a step is an error with up to 15 %, after which the value is 0 to 0.04; the other steps raise it
flaky        jump, and the grader runs out of time on half of the answers, whatever they are

Values of a problem before its first step are spread evenly over [0, 1]. In all families a state's value is its level, at every
step: the moves are martingales, and on the policy's own chains the squared increments add up to V_0(1 - V_0) on average.
"""

from dataclasses import dataclass

import numpy as np

from tests.synthetic.policy import LEVELS, Floats, Policy, beta_moves, jump_moves

ROUTINE = 0.8
# From an even chance a jump leads to any level with the same chance.
JUMP_CONCENTRATION = 2.0
# An author who is worth v to the policy moves on as one who is worth v to this power.
AUTHOR_POWER = 1.5
TIMEOUTS = 0.5
ERRORS = 0.15
# Of an error: the value after it, and how much the value varies around its mean after another step.
AFTER_ERROR, PROGRESS_CONCENTRATION = 0.02, 60.0

STEPS = (4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """`policy` samples the rollouts, `author` the chains; without an author their states are independent of each other."""

    name: str
    policy: Policy
    author: Policy | None
    repeats_wrong: bool = False
    timeouts: float = 0.0


def _policy(steps: int, moves: Floats, right: Floats = LEVELS) -> Policy:
    return Policy(steps=steps, moves=moves, right=right)


def jump(steps: int) -> Family:
    policy = _policy(steps, jump_moves(ROUTINE, JUMP_CONCENTRATION))
    return Family(name="jump", policy=policy, author=policy)


def smooth(steps: int) -> Family:
    policy = _policy(steps, beta_moves(LEVELS, steps - 1))
    return Family(name="smooth", policy=policy, author=policy)


def independent(steps: int) -> Family:
    return Family(name="independent", policy=smooth(steps).policy, author=None)


def off_policy(steps: int) -> Family:
    means = LEVELS**AUTHOR_POWER
    author = _policy(steps, jump_moves(ROUTINE, JUMP_CONCENTRATION, means), right=means)
    return Family(name="off_policy", policy=jump(steps).policy, author=author)


def fatal(steps: int) -> Family:
    errors = np.minimum(ERRORS, 1 - LEVELS) * (LEVELS > 2 * AFTER_ERROR)
    means = np.clip((LEVELS - errors * AFTER_ERROR) / (1 - errors), 0.0, 1.0)
    lost = np.zeros(len(LEVELS))
    lost[LEVELS <= 2 * AFTER_ERROR] = 1 / (LEVELS <= 2 * AFTER_ERROR).sum()
    moves = (1 - errors)[:, None] * beta_moves(means, PROGRESS_CONCENTRATION) + errors[:, None] * lost
    policy = _policy(steps, moves)
    return Family(name="fatal", policy=policy, author=policy)


def length(steps: int) -> Family:
    policy = jump(steps).policy
    return Family(name="length", policy=policy, author=policy, repeats_wrong=True)


def flaky(steps: int) -> Family:
    policy = jump(steps).policy
    return Family(name="flaky", policy=policy, author=policy, timeouts=TIMEOUTS)


FAMILIES = {make.__name__: make for make in (jump, smooth, independent, off_policy, fatal, length, flaky)}


def starts(chains: int, random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The states of `chains` problems before their first step."""
    return random.integers(len(LEVELS), size=chains)
