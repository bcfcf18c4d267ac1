"""The parameters of the model, their priors, and their form as one vector. Pure.

Every group of probabilities that add up to 1 is a row with a Dirichlet prior, every concentration has a gamma prior. The most
probable values are those of the logarithms, so that a row's is (counts + prior) / total: never 0, and the prior's mean without
data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag

from pipeline.consensus.blocks import OUTCOMES, Outcome
from pipeline.core.statistics import Floats

BINS = 5
"""Equal parts of a chain, from its first to its last step, in which errors are equally likely."""
Key = tuple[str, ...]
OUTCOME, PLACE, MONTE_CARLO, WITNESS = "outcome", "place", "monte_carlo", "witness"
ERROR, FREE, MISSED = "error", "free", "missed"
GOOD, FIRST_BAD, AFTER = "good", "first_bad", "after"


def outcome_key(outcome: Outcome) -> Key:
    """(no error, error) of chains with this outcome."""
    return (OUTCOME, outcome)


def place_key() -> Key:
    """The parts of a chain, see `places`."""
    return (PLACE,)


def monte_carlo_key(outcome: Outcome, row: str) -> Key:
    """The ways in which Monte Carlo errs. `row`: ERROR or FREE."""
    return (MONTE_CARLO, outcome, row)


def witness_key(name: str, row: str) -> Key:
    """Of a witness that votes: the ways in which it errs where there is an error (ERROR) and where there is none (FREE), and
    (missed, seen): of the errors of chains with a right answer, how many it misses that it would see elsewhere (MISSED). Of a
    witness that checks steps: (0, 1, unknown) of steps that are GOOD, FIRST_BAD or AFTER the first bad one."""
    return (WITNESS, name, row)


def concentration_key(name: str) -> Key:
    """How independent the votes of a witness are."""
    return (WITNESS, name)


OUTCOME_PRIOR = {Outcome.WRONG: (1.0, 49.0), Outcome.RIGHT: (17.0, 3.0), Outcome.UNKNOWN: (1.0, 1.0)}
"""A wrong answer has a first error somewhere; a wrong gold answer or a mistake of the grader is the exception. Of chains with a
right answer, people find an error in 4 % (GSM8K) to 52 % (Omni-MATH) (ProcessBench, arXiv 2412.06559)."""
PLACE_PRIOR = (4.0,) * BINS
MONTE_CARLO_PRIOR: Mapping[Outcome, Mapping[str, Sequence[float]]] = {
    Outcome.WRONG: {ERROR: (8.0, 0.0, 0.0, 0.0, 0.5, 0.3, 0.2), FREE: (4.0, 1.0, 0.0, 0.0)},
    Outcome.RIGHT: {ERROR: (1.5, 0.0, 0.0, 0.0, 0.25, 0.25, 3.0), FREE: (9.5, 0.5, 0.0, 0.0)},
    Outcome.UNKNOWN: {ERROR: (7.0, 0.0, 0.0, 0.0, 0.5, 0.3, 1.2), FREE: (9.0, 1.0, 0.0, 0.0)},
}
"""In the order of `ERROR_WAYS` and `FREE_WAYS`. Monte Carlo is nearly taken at its word until the run speaks against it. It is
not where the answer is right in spite of an error: most such errors are those that the policy makes good, so that the value did
not fall."""
WITNESS_PRIOR: Mapping[str, Sequence[float]] = {
    ERROR: (2.0, 0.4, 0.1, 0.1, 0.5, 0.5, 1.5),
    FREE: (4.0, 0.8, 0.1, 0.1),
    MISSED: (0.5, 4.5),
}
STEP_PRIOR: Mapping[str, Sequence[float]] = {GOOD: (0.5, 2.0, 1.5), FIRST_BAD: (1.5, 1.0, 1.5), AFTER: (1.0, 1.0, 1.0)}
CONCENTRATION_PRIOR = (1.0, 0.1)
"""Shape and rate: a tenth of votes repeat, and the prior is worth one chain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """`rows`: probabilities by key. `concentrations`: by key."""

    rows: Mapping[Key, Floats]
    concentrations: Mapping[Key, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priors:
    """Pseudo-counts of rows; shapes and rates of concentrations. An entry 0 is no parameter: its probability is 0."""

    rows: Mapping[Key, Floats]
    concentrations: Mapping[Key, tuple[float, float]]

    def start(self) -> Parameters:
        """The prior's means."""
        return Parameters(
            rows={key: row / row.sum() for key, row in self.rows.items()},
            concentrations={key: shape / rate for key, (shape, rate) in self.concentrations.items()},
        )

    def log_density(self, found: Parameters) -> float:
        """The logarithm of the density of the logarithms of the parameters, up to a constant."""
        rows = sum(float(prior[prior > 0] @ np.log(found.rows[key][prior > 0])) for key, prior in self.rows.items())
        return rows + sum(
            shape * float(np.log(found.concentrations[key])) - rate * found.concentrations[key]
            for key, (shape, rate) in self.concentrations.items()
        )

    def vector(self, found: Parameters) -> Floats:
        """The logarithms of all parameters."""
        logs = [np.log(found.rows[key][row > 0]) for key, row in self.rows.items()]
        return np.concatenate([*logs, np.log([found.concentrations[key] for key in self.concentrations])])

    def directions(self) -> Floats:
        """(v, w): orthonormal directions in which a vector can change and its parameters do too. A constant that is added to a
        whole row changes none."""
        blocks = []
        for row in self.rows.values():
            size = int((row > 0).sum())
            blocks.append(np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, :-1]]))[0][:, 1:])
        return np.asarray(block_diag(*blocks, np.eye(len(self.concentrations))))

    def parameters(self, vector: Floats) -> Parameters:
        """The parameters of a vector, rows normalized."""
        rows, at = {}, 0
        for key, row in self.rows.items():
            size = int((row > 0).sum())
            part = np.exp(vector[at : at + size] - vector[at : at + size].max())
            rows[key] = np.zeros(len(row))
            rows[key][row > 0] = part / part.sum()
            at += size
        rest = np.exp(np.clip(vector[at:], *_LOG_CONCENTRATIONS)).tolist()
        return Parameters(rows=rows, concentrations=dict(zip(self.concentrations, rest, strict=True)))


_LOG_CONCENTRATIONS = (-12.0, 12.0)


def priors_for(vote_witnesses: Sequence[str], step_witnesses: Sequence[str]) -> Priors:
    """The priors of a model with these witnesses."""
    rows: dict[Key, Sequence[float]] = {outcome_key(each): OUTCOME_PRIOR[each] for each in OUTCOMES}
    rows[place_key()] = PLACE_PRIOR
    for outcome in OUTCOMES:
        for row, counts in MONTE_CARLO_PRIOR[outcome].items():
            rows[monte_carlo_key(outcome, row)] = counts
    for name in vote_witnesses:
        for row, counts in WITNESS_PRIOR.items():
            rows[witness_key(name, row)] = counts
    for name in step_witnesses:
        for row, counts in STEP_PRIOR.items():
            rows[witness_key(name, row)] = counts
    return Priors(
        rows={key: np.array(row) for key, row in rows.items()},
        concentrations={concentration_key(name): CONCENTRATION_PRIOR for name in vote_witnesses},
    )


@lru_cache(maxsize=1024)
def densities(steps: int) -> Floats:
    """(K, BINS): the probability of each step, given the part of the chain. A step that two parts share has a share of both."""
    ends = np.arange(steps + 1) / steps
    edges = np.arange(BINS + 1) / BINS
    low, high = np.maximum(ends[:-1, None], edges[:-1]), np.minimum(ends[1:, None], edges[1:])
    return np.asarray(np.maximum(high - low, 0.0) * BINS)
