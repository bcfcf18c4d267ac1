"""The model: the place of the first error is latent, and given it Monte Carlo and witnesses speak independently. Pure.

    P(place, claims) = P(place | outcome) P(Monte Carlo | place) prod over witnesses P(claim | place)

`P(place | outcome)`: no error, or an error at a step, by position relative to the chain's length.

`P(Monte Carlo | place) = sum over M of P(M | place) q(M) / base(M) + P(silent)`: M is the step at which the true value falls.
q(M) is the posterior of Monte Carlo, which holds its own prior base(M); that is the average of q over the run, as it is for
every calibrated posterior. P(M | place) is a confusion: a weak policy loses chains before their error, a strong one repairs
errors.

`P(claim | place)`: correlated votes through a confusion (`votes`, `confusion`), or independent verdicts on steps. Errors of
chains with a right answer may be harder to see: there a witness misses a share of those that it would see elsewhere. A proof
rules places out, and nothing is learned from it about its witness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.consensus import votes
from pipeline.consensus.blocks import OUTCOMES, Block, Outcome, Verdicts
from pipeline.consensus.confusion import Confusion, Support
from pipeline.consensus.parameters import (
    AFTER,
    BINS,
    ERROR,
    FIRST_BAD,
    FREE,
    GOOD,
    MISSED,
    Key,
    Parameters,
    concentration_key,
    densities,
    monte_carlo_key,
    outcome_key,
    place_key,
    witness_key,
)
from pipeline.core.statistics import Floats, Ints

_WEIGHT = 10.0
"""Weight, in chains, of equal parts of a chain and of as many errors as not in the average of what Monte Carlo says."""
_NEARLY_ALL, _FEW = 0.98, 20
"""A witness with this share of one thing, on this many chains, says one thing."""
_NEVER = 1e-9
_LEAST = 1e-300
_RULED_OUT = -1e9
"""Logarithm of the likelihood of a place that a proof rules out: its probability is 0 after rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """What Monte Carlo says of chains with one outcome on average. `none`: that there is no error; `parts`: in which part of
    the chain it is, else; `says_last`, `says_none`: whether it ever names the last step and no error."""

    none: float = 0.5
    parts: tuple[float, ...] = (1 / BINS,) * BINS
    says_last: bool = True
    says_none: bool = True

    @property
    def support(self) -> Support:
        return Support(last=self.says_last, none=self.says_none)

    def places(self, steps: int) -> Floats:
        """(K + 1,): the probabilities of the places."""
        found = np.append((1 - self.none) * (densities(steps) @ np.array(self.parts)), self.none)
        found *= self.support.places(steps)
        return np.asarray(found / max(found.sum(), _LEAST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is read off the run before anything is learned. `averages`: by outcome. `one_thing`: what a witness says with nearly
    all of its votes, such as "no error", if there is such a thing."""

    averages: Mapping[Outcome, Average]
    one_thing: Mapping[str, str] = field(default_factory=dict)


def overview_of(blocks: Sequence[Block]) -> Overview:
    """The averages of what Monte Carlo and witnesses say."""
    averages = {outcome: _average([block for block in blocks if block.outcome is outcome]) for outcome in OUTCOMES}
    one_thing = {name: thing for name in voters_in(blocks) if (thing := _one_thing(_said(blocks, name)))}
    return Overview(averages=averages, one_thing=one_thing)


def voters_in(blocks: Sequence[Block]) -> list[str]:
    """The names of the witnesses that vote."""
    return sorted({name for block in blocks for name in block.votes})


def _said(blocks: Sequence[Block], name: str) -> list[Floats]:
    """For each block of which a witness speaks, how many chains it says each place of, (K + 1,). A chain counts once."""
    found = []
    for block in blocks:
        if name in block.votes:
            own = block.votes[name]
            chains = np.diff(np.append(own.heard.begins, len(own.heard.chains)))
            shares = own.patterns.count * (chains / own.patterns.total)[own.patterns.pattern]
            found.append(np.bincount(own.patterns.place, weights=shares, minlength=block.steps + 1).astype(np.float64))
    return found


def _one_thing(said: Sequence[Floats]) -> str:
    total = sum(float(row.sum()) for row in said)
    shares = {
        "no error": sum(float(row[-1]) for row in said),
        "the first step": sum(float(row[0]) for row in said),
        "the last step": sum(float(row[-2]) for row in said),
    }
    most = max(shares, key=lambda thing: shares[thing])
    return most if total >= _FEW and shares[most] >= _NEARLY_ALL * total else ""


def _average(blocks: Sequence[Block]) -> Average:
    parts, none, last = np.zeros(BINS), 0.0, 0.0
    for block in blocks:
        said = block.places.sum(axis=0)
        parts += said[:-1] @ densities(block.steps) * block.steps / BINS
        none, last = none + said[-1], last + said[-2]
    said_all = parts.sum() + none
    if not said_all:
        return Average()
    shares = (parts + _WEIGHT / BINS) / (parts.sum() + _WEIGHT)
    return Average(
        none=float((none + _WEIGHT / 2) / (said_all + _WEIGHT)),
        parts=tuple(shares.tolist()),
        says_last=bool(last > _NEVER),
        says_none=bool(none > _NEVER),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """What Monte Carlo says of the m chains of a block on which it speaks. `chains` (m,): their positions. `ratios` (m, K + 1):
    q(M) / base(M). `silent` (m,): the probability that it says nothing."""

    chains: Ints
    ratios: Floats
    silent: Floats


def loss_in(block: Block, overview: Overview) -> Loss:
    """What Monte Carlo says of a block."""
    chains = np.flatnonzero(block.silent < 1)
    base, said = overview.averages[block.outcome].places(block.steps), block.places[chains]
    ratios = np.divide(said, base, out=np.zeros_like(said), where=base > 0)
    return Loss(chains=chains, ratios=ratios, silent=block.silent[chains])


@dataclass(slots=True, eq=False)
class Expected:
    """What is expected of the latent places, given parameters: `rows`, counts of each row with phantoms; `tables`, independent
    draws of each witness's votes; `exposures`, see `votes.exposure`; `log_likelihood`, of the evidence."""

    rows: dict[Key, Floats] = field(default_factory=dict)
    tables: dict[Key, float] = field(default_factory=dict)
    exposures: dict[Key, float] = field(default_factory=dict)
    log_likelihood: float = 0.0

    def add(self, key: Key, counts: Floats) -> None:
        self.rows[key] = self.rows[key] + counts if key in self.rows else counts


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The parameters with the averages of the run."""

    parameters: Parameters
    overview: Overview
    _tables: dict[tuple[str | None, Outcome, int], Floats] = field(default_factory=dict, init=False, repr=False)

    def table(self, witness: str | None, outcome: Outcome, steps: int) -> Floats:
        """The table of a confusion (see `Confusion.table`) on chains of this outcome and length. None: that of Monte Carlo."""
        key = (witness, outcome, steps)
        if key not in self._tables:
            confusion = self.monte_carlo(outcome) if witness is None else self.witness(witness)
            table = confusion.table(steps)
            if witness is not None and outcome is Outcome.RIGHT:
                missed = self.missed(witness)
                table[:-1] *= 1 - missed
                table[:-1, -1] += missed
            self._tables[key] = table
        return self._tables[key]

    def missed(self, name: str) -> float:
        """Of the errors of chains with a right answer, the share that a witness misses and would see elsewhere."""
        return float(self.parameters.rows[witness_key(name, MISSED)][0])

    def witness(self, name: str) -> Confusion:
        """How a witness that votes errs, but for errors that it misses where the answer is right."""
        rows = self.parameters.rows
        return Confusion(rows[witness_key(name, ERROR)], rows[witness_key(name, FREE)])

    def monte_carlo(self, outcome: Outcome) -> Confusion:
        """How Monte Carlo errs on chains with this outcome."""
        rows = self.parameters.rows
        support = self.overview.averages[outcome].support
        return Confusion(rows[monte_carlo_key(outcome, ERROR)], rows[monte_carlo_key(outcome, FREE)], support)

    def places(self, steps: int) -> Floats:
        """(K,): where the first error of a chain with an error is."""
        return np.asarray(densities(steps) @ self.parameters.rows[place_key()])

    def posterior(self, block: Block) -> Floats:
        """(n, K + 1): the probability of each place."""
        return _normalized(self._logs(block, loss_in(block, self.overview)))[0]

    def expect(self, blocks: Sequence[tuple[Block, Loss]]) -> Expected:
        """The step E of EM. `blocks`: each with its `loss_in`."""
        found = Expected()
        for block, loss in blocks:
            posterior, total = _normalized(self._logs(block, loss))
            found.log_likelihood += float(total.sum())
            self._count_places(block, posterior, found)
            self._count_losses(block, loss, posterior, found)
            self._count_votes(block, posterior, found)
            self._count_verdicts(block, posterior, found)
        return found

    def _logs(self, block: Block, loss: Loss) -> Floats:
        logs = np.repeat(np.log(np.maximum(self._prior(block), _LEAST))[None], len(block.number), axis=0)
        if len(loss.chains):
            logs[loss.chains] += np.log(self._of_loss(block, loss))
        for name, own in block.votes.items():
            table = self.table(name, block.outcome, block.steps)
            of_patterns = votes.log_likelihood(own.patterns, table, self._concentration(name))
            logs[own.heard.chains] += of_patterns[own.heard.said]
        for name, said in block.verdicts.items():
            logs[said.heard.chains] += self._verdict_logs(name, said)[said.heard.said]
        # Where all places are ruled out, proofs contradict each other, and none of them counts.
        logs[block.ruled_out & ~block.ruled_out.all(axis=1, keepdims=True)] += _RULED_OUT
        return logs

    def _prior(self, block: Block) -> Floats:
        """(K + 1,)."""
        free, error = self.parameters.rows[outcome_key(block.outcome)]
        return np.append(error * self.places(block.steps), free)

    def _concentration(self, name: str) -> float:
        return self.parameters.concentrations[concentration_key(name)]

    def _of_loss(self, block: Block, loss: Loss) -> Floats:
        """(m, K + 1): the likelihood of what Monte Carlo says."""
        table = self.table(None, block.outcome, block.steps)
        return np.maximum(loss.ratios @ table.T + loss.silent[:, None], _LEAST)

    def _verdict_logs(self, name: str, said: Verdicts) -> Floats:
        """(U, K + 1): log-likelihood of the verdicts, given the place."""
        rows = self.parameters.rows
        good, bad, after = (np.log(rows[witness_key(name, row)])[said.steps] for row in (GOOD, FIRST_BAD, AFTER))
        before = np.cumsum(good, axis=1)
        rest = np.cumsum(after[:, ::-1], axis=1)[:, ::-1]
        return np.column_stack([before - good + bad + rest - after, before[:, -1]])

    def _count_places(self, block: Block, posterior: Floats, found: Expected) -> None:
        shares = densities(block.steps) * self.parameters.rows[place_key()]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), _LEAST)
        places = posterior.sum(axis=0)
        found.add(place_key(), places[:-1] @ shares)
        found.add(outcome_key(block.outcome), np.array([places[-1], places[:-1].sum()]))

    def _count_losses(self, block: Block, loss: Loss, posterior: Floats, found: Expected) -> None:
        if not len(loss.chains):
            return
        confusion = self.monte_carlo(block.outcome)
        weights = posterior[loss.chains] / self._of_loss(block, loss)
        named = weights.T @ loss.ratios * self.table(None, block.outcome, block.steps)
        error, free = confusion.counts(block.steps, named)
        found.add(monte_carlo_key(block.outcome, ERROR), error)
        found.add(monte_carlo_key(block.outcome, FREE), free)

    def _count_votes(self, block: Block, posterior: Floats, found: Expected) -> None:
        for name, own in block.votes.items():
            weights = own.heard.by_pattern(posterior)
            concentration = self._concentration(name)
            table = self.table(name, block.outcome, block.steps)
            named = votes.tables(own.patterns, table, concentration, weights)
            key, draws = concentration_key(name), float(named.sum())
            if block.outcome is Outcome.RIGHT:
                missed = named[:-1, -1] * self.missed(name) / table[:-1, -1]
                errors = float(named[:-1].sum())
                found.add(witness_key(name, MISSED), np.array([missed.sum(), errors - missed.sum()]))
                named[:-1, -1] -= missed
            error, free = self.witness(name).counts(block.steps, named)
            found.add(witness_key(name, ERROR), error)
            found.add(witness_key(name, FREE), free)
            found.tables[key] = found.tables.get(key, 0.0) + draws
            exposed = votes.exposure(own.patterns, concentration, weights)
            found.exposures[key] = found.exposures.get(key, 0.0) + exposed

    def _count_verdicts(self, block: Block, posterior: Floats, found: Expected) -> None:
        for name, said in block.verdicts.items():
            weights = said.heard.by_pattern(posterior)
            bad = weights[:, :-1]
            until = np.cumsum(bad, axis=1)
            after = until - bad
            good = weights.sum(axis=1, keepdims=True) - until
            for row, share in ((GOOD, good), (FIRST_BAD, bad), (AFTER, after)):
                counts = [float(share[said.steps == verdict].sum()) for verdict in range(3)]
                found.add(witness_key(name, row), np.array(counts))


def _normalized(logs: Floats) -> tuple[Floats, Floats]:
    """Probabilities from logarithms, and the logarithm of their sum for each row."""
    most = logs.max(axis=1, keepdims=True)
    found = np.exp(logs - most)
    total = found.sum(axis=1, keepdims=True)
    return found / total, (np.log(total) + most)[:, 0]
