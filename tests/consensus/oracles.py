"""Worlds whose first errors are known: a policy with rollouts, and judges with votes.

A chain has a true first error T, or none. The policy's value falls at M: at T if the policy is a calibrated one, before it if the
policy is weak, never if it repairs the error. Before M all prefixes have one value above the threshold, from M on one below it.
Rollouts are Bernoulli trials of these values, and Monte Carlo is the exact posterior of M given the rollouts and the outcome.
A judge's votes are draws from Polya's urn over a row of its confusion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.consensus.evidence import ChainEvidence, PositionClaim
from pipeline.core.statistics import Floats, Ints

THRESHOLD = 0.1
_HIGH = np.linspace(0.15, 0.95, 17)
_LOW = np.array([0.0, 0.02, 0.05, 0.08])
_LOW_SHARES = np.array([0.7, 0.1, 0.1, 0.1])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWorld:
    """How a judge errs. `exact`, `early`, `late`: of chains with an error, the rest names none. `alarm`: of chains without one.
    `votes`: of each chain. `correlation`: of two votes, 1 repeats the first. `heard`: share of chains that it speaks of.
    `always`: the place that it names whatever the chain is, 1 to K; 0 for none. `missed_if_right`: share of the votes for a step
    that name none instead, on chains with an error and a right answer."""

    exact: float = 0.6
    early: float = 0.1
    late: float = 0.1
    alarm: float = 0.15
    votes: int = 4
    correlation: float = 0.3
    heard: float = 1.0
    always: int | None = None
    anywhere: bool = False
    missed_if_right: float = 0.0

    def row(self, steps: int, error: int | None, right: bool) -> Floats:
        """(K + 1,) probabilities of one vote. `error`: index of the true first error, from 0."""
        found = np.zeros(steps + 1)
        if self.always is not None:
            found[min(self.always, steps) - 1 if self.always else steps] = 1
            return found
        if error is None:
            found[:-1] = self.alarm / steps
            found[-1] = 1 - self.alarm
            return found
        if self.anywhere:
            found[:-1] = self.alarm / steps
            found[-1] = 1 - self.alarm
            return found
        early, late = self.early * (error > 0), self.late * (error < steps - 1)
        found[:error] = early / max(error, 1)
        found[error] = self.exact
        found[error + 1 : -1] = late / max(steps - 1 - error, 1)
        found[-1] = 1 - self.exact - self.early - self.late
        found /= found.sum()
        if right:
            found[-1] += self.missed_if_right * found[:-1].sum()
            found[:-1] *= 1 - self.missed_if_right
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`early`, `late`, `repaired`: shares of chains with an error whose value falls before it, after it, or never. `alarm`: share
    of chains without an error whose value falls all the same. `hard`: share of problems that the policy never solves. `sharp`:
    how often Monte Carlo counts each rollout: 1 is calibrated. `gold`: share of right answers that are graded wrong."""

    error: float = 0.5
    early: float = 0.0
    late: float = 0.0
    repaired: float = 0.05
    alarm: float = 0.02
    hard: float = 0.1
    lucky: float = 0.03
    rollouts: int = 8
    sharp: float = 1.0
    gold: float = 0.01
    steps: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10, 12)
    skew: float = 0.0
    judges: Mapping[str, JudgeWorld] = field(default_factory=lambda: {"judge": JudgeWorld()})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """`truth`: index of the true first error, K for none. `fall`: of the true fall, K for none, -1 where the problem is hard."""

    evidence: list[ChainEvidence]
    truth: Ints
    fall: Ints

    def without(self, *names: str) -> list[ChainEvidence]:
        """The evidence without these witnesses."""
        return [
            replace(chain, witnesses={name: claim for name, claim in chain.witnesses.items() if name not in names})
            for chain in self.evidence
        ]


def sample(world: World, chains: int, seed: int) -> Sample:
    """Chains of this world."""
    rng = np.random.default_rng(seed)
    evidence, truths, falls = [], [], []
    for _ in range(chains):
        steps = int(rng.choice(world.steps))
        truth = _truth(world, steps, rng)
        fall = _fall(world, steps, truth, rng)
        hard = rng.random() < world.hard
        right = _outcome(world, steps, truth, fall, hard, rng)
        if not right and fall == steps:
            fall = steps - 1
        if right and fall == steps - 1:
            fall = steps
        claim = _monte_carlo(world, steps, fall, hard, right, rng)
        witnesses = {
            name: PositionClaim(votes=votes)
            for name, judge in world.judges.items()
            if rng.random() < judge.heard and (votes := _votes(judge, steps, truth, right, rng))
        }
        evidence.append(ChainEvidence(steps=steps, outcome=right, monte_carlo=claim, witnesses=witnesses))
        truths.append(truth)
        falls.append(-1 if hard else fall)
    return Sample(evidence=evidence, truth=np.array(truths), fall=np.array(falls))


def _truth(world: World, steps: int, rng: np.random.Generator) -> int:
    if rng.random() >= world.error:
        return steps
    weights = np.exp(-world.skew * np.arange(steps) / steps)
    return int(rng.choice(steps, p=weights / weights.sum()))


def _fall(world: World, steps: int, truth: int, rng: np.random.Generator) -> int:
    draw = rng.random()
    if truth == steps:
        return int(rng.integers(steps)) if draw < world.alarm else steps
    if draw < world.repaired:
        return steps
    early, late = world.early * (truth > 0), world.late * (truth < steps - 1)
    draw = (draw - world.repaired) / (1 - world.repaired)
    if draw < early:
        return int(rng.integers(truth))
    if draw < early + late:
        return int(rng.integers(truth + 1, steps))
    return truth


def _outcome(world: World, steps: int, truth: int, fall: int, hard: bool, rng: np.random.Generator) -> bool:
    right = world.lucky if fall < steps else 0.9
    if truth == steps:
        # Without an error the answer is right, whatever the policy thinks of the chain.
        right = 1 - world.gold
    elif hard:
        right *= 0.2
    return bool(rng.random() < right)


def _monte_carlo(
    world: World, steps: int, fall: int, hard: bool, right: bool, rng: np.random.Generator
) -> tuple[float, ...]:
    """The exact posterior of the fall: uniform over steps a priori; one in ten right chains falls."""
    high, low = rng.choice(_HIGH), rng.choice(_LOW, p=_LOW_SHARES)
    values = np.where((np.arange(steps) <= fall) & (not hard), high, low)
    # Values of prefixes 0 to K - 1: prefix k has the steps before the index k.
    correct = rng.binomial(world.rollouts, values) * world.sharp
    wrong = world.rollouts * world.sharp - correct
    begins, ends = np.cumsum(np.append(0.0, correct)), np.cumsum(np.append(0.0, wrong))

    def log_marginal(good: float, bad: float, grid: Floats, shares: Floats) -> float:
        with np.errstate(divide="ignore"):
            logs = good * np.log(np.maximum(grid, 1e-9)) + bad * np.log(1 - grid)
        most = logs.max()
        return float(most + np.log(shares @ np.exp(logs - most)))

    even = np.full(len(_HIGH), 1 / len(_HIGH))
    total_c, total_w = begins[-1], ends[-1]

    def of_fall(at: int) -> float:
        before = min(at + 1, steps)
        return log_marginal(begins[before], ends[before], _HIGH, even) + log_marginal(
            total_c - begins[before], total_w - ends[before], _LOW, _LOW_SHARES
        )

    lost = log_marginal(total_c, total_w, _LOW, _LOW_SHARES)
    logs = np.array([of_fall(at) for at in range(steps + 1)] + [lost])
    prior = np.zeros(steps + 2)
    if right:
        prior[: steps - 1], prior[steps] = 0.03 / max(steps - 1, 1), 0.95
        prior[-1] = 0.02
    else:
        prior[:steps], prior[-1] = (1 - 0.15) / steps, 0.15
    with np.errstate(divide="ignore"):
        logs = logs + np.log(prior)
    found = np.exp(logs - logs.max())
    found /= found.sum()
    return tuple(found[:-1].tolist())


def _votes(judge: JudgeWorld, steps: int, truth: int, right: bool, rng: np.random.Generator) -> tuple[float, ...]:
    row = judge.row(steps, None if truth == steps else truth, right)
    named: list[int] = []
    for _ in range(judge.votes):
        # Polya's urn with concentration (1 - rho) / rho.
        rho = judge.correlation
        again = rng.random() * ((1 - rho) + rho * len(named)) < rho * len(named)
        named.append(int(rng.choice(named)) if again else int(rng.choice(steps + 1, p=row)))
    return tuple(np.bincount(named, minlength=steps + 1).astype(float).tolist())


def judge_cells(judge: JudgeWorld, found: Sample) -> dict[tuple[str, str], float]:
    """The true cells of a judge on a sample: expected shares of one vote."""
    sums = dict.fromkeys(
        [("error", w) for w in ("exact", "early", "late", "none")] + [("free", w) for w in ("none", "alarm")], 0.0
    )
    errors = free = 0
    for chain, truth in zip(found.evidence, found.truth.tolist(), strict=True):
        row = judge.row(chain.steps, None if truth == chain.steps else truth, bool(chain.outcome))
        if truth == chain.steps:
            free += 1
            sums["free", "none"] += row[-1]
            sums["free", "alarm"] += row[:-1].sum()
        else:
            errors += 1
            sums["error", "exact"] += row[truth]
            sums["error", "early"] += row[:truth].sum()
            sums["error", "late"] += row[truth + 1 : -1].sum()
            sums["error", "none"] += row[-1]
    return {key: value / (errors if key[0] == "error" else free) for key, value in sums.items()}


def monte_carlo_cells(found: Sample, right: bool) -> dict[tuple[str, str], float]:
    """The shares of falls on chains with this outcome whose problem is not hard."""
    sums = dict.fromkeys(
        [("error", w) for w in ("exact", "early", "late", "none")] + [("free", w) for w in ("none", "alarm")], 0.0
    )
    errors = free = 0
    for chain, truth, fall in zip(found.evidence, found.truth.tolist(), found.fall.tolist(), strict=True):
        if fall < 0 or chain.outcome is not right:
            continue
        none = fall == chain.steps
        if truth == chain.steps:
            free += 1
            sums["free", "none" if none else "alarm"] += 1
        else:
            errors += 1
            way = "none" if none else "exact" if fall == truth else "early" if fall < truth else "late"
            sums["error", way] += 1
    return {key: value / max(errors if key[0] == "error" else free, 1) for key, value in sums.items()}
