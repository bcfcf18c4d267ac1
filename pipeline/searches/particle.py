"""Particle filtering: n chains grow step by step, and are drawn again by their scores.

With weights s ** (1 / temperature), where s is the score of a chain's beginning, it samples from the policy's chains with
probabilities in proportion to the weights of their ends (twisted sequential Monte Carlo, Zhao et al. 2024): of a particle that
was copied because of its weight, only what the weight has changed since then counts.
"""

import math
import random
from collections.abc import Sequence
from itertools import accumulate

from pipeline.searches.base import Found, Search, Steps, Task, together
from pipeline.searches.choice import Candidates, Scored, next_step
from pipeline.searches.settings import ParticleConfig


class Particle(Search):
    """After every step, the n particles are drawn again, with systematic resampling, where the effective sample size of their
    weights is below `resample_below` * n. A particle that has ended keeps its weight, and may be drawn too. Without a score, a
    particle has the weight 0. If all have 0, all weigh the same. The search ends when all particles have ended, and chooses the
    best-scored chain."""

    Config = ParticleConfig
    settings: ParticleConfig

    def search(self, task: Task) -> Steps[Found]:
        own = self.settings
        made = Candidates(own)
        particles = [Scored(node=task.root)] * own.n
        bases = [0.0] * own.n
        for number in range(own.max_steps):
            particles = yield from together(
                [self._step(task, each, copy) for each, copy in zip(particles, copies(particles), strict=True)]
            )
            made.add(particles)
            if made.accepted or all(each.node.ended for each in particles):
                break
            shares = relative_weights([self._log_weight(each) for each in particles], bases)
            if effective_size(shares) < own.resample_below * own.n:
                drawn = systematic(shares, task.random(task.root, f"resampling {number}"))
                particles = [particles[at] for at in drawn]
                bases = [self._log_weight(each) for each in particles]
        return made.found()

    def _step(self, task: Task, before: Scored, draw: int) -> Steps[Scored]:
        if before.node.ended:
            return before
        return (yield from next_step(task, before, draw))

    def _log_weight(self, particle: Scored) -> float:
        return math.log(particle.score) / self.settings.temperature if particle.score else -math.inf


def copies(particles: Sequence[Scored]) -> list[int]:
    """For each particle, how many before it are at the same node: copies differ in their draws."""
    seen: dict[str, int] = {}
    numbers = []
    for each in particles:
        number = seen.get(each.node.node_id, 0)
        numbers.append(number)
        seen[each.node.node_id] = number + 1
    return numbers


def relative_weights(weights: Sequence[float], bases: Sequence[float]) -> list[float]:
    """Each particle's share of all weights. Of these, what is in `bases` was accounted for when the particle was drawn; -inf:
    nothing was. Weights and bases are logarithms: powers of small scores are too small for numbers."""
    changes = [weight - (0.0 if base == -math.inf else base) for weight, base in zip(weights, bases, strict=True)]
    most = max(changes)
    if most == -math.inf:
        return [1 / len(changes)] * len(changes)
    ratios = [math.exp(change - most) for change in changes]
    total = sum(ratios)
    return [ratio / total for ratio in ratios]


def effective_size(shares: Sequence[float]) -> float:
    """The effective sample size of particles whose shares add up to 1, from 1 to their number."""
    return 1 / sum(share * share for share in shares)


def systematic(shares: Sequence[float], rng: random.Random) -> list[int]:
    """As many numbers of particles as there are, in order: particle i floor or ceiling of n * shares[i] times."""
    n = len(shares)
    offset = rng.random()
    drawn: list[int] = []
    for at, reached in enumerate(accumulate(shares)):
        while len(drawn) < n and (offset + len(drawn)) / n < reached:
            drawn.append(at)
    # Rounding may leave the last share's end below 1.
    last = max(at for at, share in enumerate(shares) if share)
    return drawn + [last] * (n - len(drawn))
