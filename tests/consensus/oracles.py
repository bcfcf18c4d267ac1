"""Worlds whose first errors are known: a policy with rollouts, and judges with votes.

A chain has a true first error T, or none. The policy's value falls at M: at T if the policy is a calibrated one, before it if
the policy is weak, never if it repairs the error. Before M all prefixes have one value above the threshold, then one below it.
Rollouts are Bernoulli trials of these values, and Monte Carlo is the exact posterior of M given the rollouts and the outcome.
A judge's votes are draws from Polya's urn over a row of its confusion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, logsumexp

from pipeline.consensus.evidence import ChainEvidence, PositionClaim
from pipeline.consensus.monte_carlo import monte_carlo_claim
from pipeline.core.statistics import Floats, Ints

THRESHOLD = 0.1
_HIGH = np.linspace(0.15, 0.95, 17)
_LOW = np.array([0.0, 0.02, 0.05, 0.08])
_LOW_SHARES = np.array([0.7, 0.1, 0.1, 0.1])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWorld:
    """How a judge errs. `exact`, `early`, `late`: of chains with an error, the rest names none. `alarm`: of chains without.
    `votes`: of each chain. `correlation`: of two votes, 1 repeats the first. `heard`: share of chains that it speaks of.
    `always`: the place that it names whatever the chain is, 1 to K; 0 for none. `anywhere`: it knows nothing, and alarms as
    often with an error as without. `missed_if_right`: share of the votes for a step that name none instead, on chains with an
    error and a right answer. `shared`: share of the chains in which it takes the place where the policy's value falls for
    that of the first error."""

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
    shared: float = 0.0

    def row(self, steps: int, error: int, right: bool) -> Floats:
        """(K + 1,) probabilities of one vote. `error`: index of the true first error, K for none."""
        found = np.zeros(steps + 1)
        if self.always is not None:
            found[min(self.always, steps) - 1 if self.always else steps] = 1
            return found
        if error == steps or self.anywhere:
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
    """`early`, `late`, `repaired`: shares of chains with an error whose value falls before it, after it, or never. `alarm`:
    share of chains without an error whose value falls all the same. `hard`: share of problems that are never solved. `sharp`:
    how often Monte Carlo counts each rollout: 1 is calibrated. `gold`: share of right answers that are graded wrong.
    `skew`: how much rarer late errors are. `independent`: Monte Carlo treats prefixes as independent, as `fixed` does."""

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
    independent: bool = False
    judges: Mapping[str, JudgeWorld] = field(default_factory=lambda: {"judge": JudgeWorld()})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """`truth`: index of the true first error, K for none. `fall`: of the true fall, K for none, -1 if the problem is hard."""

    evidence: list[ChainEvidence]
    truth: Ints
    fall: Ints

    def without(self, *names: str) -> list[ChainEvidence]:
        return [
            replace(chain, witnesses={name: claim for name, claim in chain.witnesses.items() if name not in names})
            for chain in self.evidence
        ]


def sample(world: World, chains: int, seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    lengths = rng.choice(world.steps, size=chains)
    evidence: list[ChainEvidence | None] = [None] * chains
    truths, falls = np.zeros(chains, np.int64), np.zeros(chains, np.int64)
    for steps in sorted(set(world.steps)):
        which = np.flatnonzero(lengths == steps)
        truth, fall, right, hard = _lives(world, steps, len(which), rng)
        places = _monte_carlo(world, steps, fall, hard, right, rng)
        said = {
            name: _votes(judge, steps, _believed(judge, truth, fall, rng), right, rng)
            for name, judge in world.judges.items()
        }
        for row, number in enumerate(which.tolist()):
            evidence[number] = ChainEvidence(
                steps=steps,
                outcome=bool(right[row]),
                monte_carlo=None if places[row] is None else places[row],
                witnesses={
                    name: PositionClaim(tuple(votes[row].tolist())) for name, votes in said.items() if votes[row].any()
                },
            )
        truths[which], falls[which] = truth, np.where(hard, -1, fall)
    return Sample(evidence=[chain for chain in evidence if chain is not None], truth=truths, fall=falls)


def _lives(
    world: World, steps: int, chains: int, rng: np.random.Generator
) -> tuple[Ints, Ints, NDArray[np.bool_], NDArray[np.bool_]]:
    """The first error and the fall of each chain, as indices, whether its answer is right, and whether its problem is hard."""
    weights = np.exp(-world.skew * np.arange(steps) / steps)
    truth = rng.choice(steps, size=chains, p=weights / weights.sum())
    free = rng.random(chains) >= world.error
    draw = rng.random(chains)
    repaired, draw = draw < world.repaired, (draw - world.repaired) / (1 - world.repaired)
    early = (draw < world.early) & (truth > 0)
    late = (draw >= world.early) & (draw < world.early + world.late) & (truth < steps - 1)
    fall = np.where(early, (rng.random(chains) * truth).astype(np.int64), truth)
    fall = np.where(late, truth + 1 + (rng.random(chains) * (steps - 1 - truth)).astype(np.int64), fall)
    fall = np.where(repaired, steps, fall)
    alarmed = rng.random(chains) < world.alarm
    fall = np.where(free, np.where(alarmed, rng.integers(steps, size=chains), steps), fall)
    truth = np.where(free, steps, truth)
    hard = rng.random(chains) < world.hard
    p_right = np.where(fall < steps, world.lucky, 0.9) * np.where(hard, 0.2, 1.0)
    # Without an error the answer is right, whatever the policy thinks of the chain.
    right = rng.random(chains) < np.where(free, 1 - world.gold, p_right)
    # The end of a chain is its outcome: a wrong one falls at the last step at the latest, a right one not there.
    fall = np.where(~right & (fall == steps), steps - 1, fall)
    fall = np.where(right & (fall == steps - 1), steps, fall)
    return truth, fall, right, hard


def _monte_carlo(
    world: World, steps: int, fall: Ints, hard: NDArray[np.bool_], right: NDArray[np.bool_], rng: np.random.Generator
) -> list[tuple[float, ...] | None]:
    """Rollouts, and what Monte Carlo makes of them."""
    chains = len(fall)
    high, low = rng.choice(_HIGH, size=chains), rng.choice(_LOW, size=chains, p=_LOW_SHARES)
    # Prefix k of 0 to K - 1 has the steps before the index k.
    above = (np.arange(steps) <= fall[:, None]) & ~hard[:, None]
    correct = rng.binomial(world.rollouts, np.where(above, high[:, None], low[:, None]))
    if world.independent:
        p_above = betaincc(correct + 0.5, world.rollouts - correct + 0.5, THRESHOLD)
        ends = np.column_stack([p_above, right])
        before = float(betaincc(0.5, 0.5, THRESHOLD))
        return [
            monte_carlo_claim(bool(good), row.tolist(), prior=before) for good, row in zip(right, ends, strict=True)
        ]
    good, bad = correct * world.sharp, (world.rollouts - correct) * world.sharp
    begin = [np.concatenate([np.zeros((chains, 1)), np.cumsum(each, axis=1)], axis=1) for each in (good, bad)]
    rest = [each[:, -1:] - each for each in begin]
    even = np.full(len(_HIGH), 1 / len(_HIGH))
    before = np.minimum(np.arange(steps + 1) + 1, steps)
    logs = _log_marginal(begin[0][:, before], begin[1][:, before], _HIGH, even)
    logs += _log_marginal(rest[0][:, before], rest[1][:, before], _LOW, _LOW_SHARES)
    lost = _log_marginal(begin[0][:, -1:], begin[1][:, -1:], _LOW, _LOW_SHARES)
    prior = np.zeros((2, steps + 2))
    prior[0, :steps], prior[0, -1] = (1 - 0.15) / steps, 0.15
    prior[1, : steps - 1], prior[1, steps], prior[1, -1] = 0.03 / max(steps - 1, 1), 0.95, 0.02
    with np.errstate(divide="ignore"):
        logs = np.column_stack([logs, lost]) + np.log(prior[right.astype(np.int64)])
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return [tuple(row) for row in found[:, :-1].tolist()]


def _log_marginal(good: Floats, bad: Floats, grid: Floats, shares: Floats) -> Floats:
    """Log-likelihood of rollouts of prefixes with one value, which is one of `grid`. (n, K + 1)."""
    logs = good[..., None] * np.log(np.maximum(grid, 1e-9)) + bad[..., None] * np.log(1 - grid) + np.log(shares)
    return np.asarray(logsumexp(logs, axis=-1))


def _believed(judge: JudgeWorld, truth: Ints, fall: Ints, rng: np.random.Generator) -> Ints:
    """What the judge takes for the first errors."""
    return np.where(rng.random(len(truth)) < judge.shared, fall, truth) if judge.shared else truth


def _votes(judge: JudgeWorld, steps: int, truth: Ints, right: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """(n, K + 1) votes for each place. Polya's urn with the concentration (1 - rho) / rho."""
    rows = np.array([[judge.row(steps, at, good) for at in range(steps + 1)] for good in (False, True)])
    bounds = np.cumsum(rows[right.astype(np.int64), truth], axis=1)
    chains, rho = len(truth), judge.correlation
    named = np.zeros((chains, judge.votes), np.int64)
    for vote in range(judge.votes):
        fresh = np.minimum((rng.random((chains, 1)) * bounds[:, -1:] > bounds).sum(axis=1), steps)
        again = rng.random(chains) * ((1 - rho) + rho * vote) < rho * vote
        earlier = named[np.arange(chains), rng.integers(max(vote, 1), size=chains)]
        named[:, vote] = np.where(again, earlier, fresh)
    found = np.zeros((chains, steps + 1))
    np.add.at(found, (np.repeat(np.arange(chains), judge.votes), named.reshape(-1)), 1.0)
    found[rng.random(chains) >= judge.heard] = 0.0
    return found


Cells = dict[tuple[str, str], float]
"""(truth, way) -> share, as in `learning.Cell`."""


def judge_cells(judge: JudgeWorld, found: Sample, right: bool) -> Cells:
    """The true cells of a judge on the chains with this outcome: expected shares of one vote."""
    pairs = zip(found.evidence, found.truth.tolist(), strict=True)
    return _cells(found, right, [judge.row(chain.steps, truth, right) for chain, truth in pairs])


def monte_carlo_cells(found: Sample, right: bool) -> Cells:
    """The shares of falls on chains with this outcome whose problem is not hard."""
    pairs = zip(found.evidence, found.fall.tolist(), strict=True)
    return _cells(found, right, [None if fall < 0 else np.eye(chain.steps + 1)[fall] for chain, fall in pairs])


def _cells(found: Sample, right: bool, rows: Sequence[Floats | None]) -> Cells:
    """`rows`: of each chain that counts, the probabilities of its places."""
    ways = {"error": ("exact", "early", "late", "none"), "free": ("none", "alarm")}
    said = {(truth, way): 0.0 for truth, named in ways.items() for way in named}
    chains = {"error": 0, "free": 0}
    for chain, truth, row in zip(found.evidence, found.truth.tolist(), rows, strict=True):
        if row is None or chain.outcome is not right:
            continue
        if truth == chain.steps:
            chains["free"] += 1
            said["free", "none"] += row[-1]
            said["free", "alarm"] += row[:-1].sum()
        else:
            chains["error"] += 1
            said["error", "exact"] += row[truth]
            said["error", "early"] += row[:truth].sum()
            said["error", "late"] += row[truth + 1 : -1].sum()
            said["error", "none"] += row[-1]
    return {key: value / max(chains[key[0]], 1) for key, value in said.items()}
