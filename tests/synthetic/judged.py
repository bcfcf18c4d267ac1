"""What labels say of bad steps and of the step with the error, against known values."""

from dataclasses import dataclass

import numpy as np

from tests.synthetic.chains import Chains
from tests.synthetic.draw import Integers
from tests.synthetic.policy import Floats
from tests.synthetic.replayed import Replayed

BAD = 0.1
"""A step with a value up to this is bad, as by default."""
FALL = 0.2
"""Chains in which the value decreases by at least this at one step have a step with the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardLabels:
    """`tokens`: per labelled step. `recall`: share of the bad inner steps with label 0. `precision`: share of the inner
    labels 0 whose step is bad. `located`: share of the chains with a large fall whose estimated one is at the same step.
    `covered`: share of the values before that fall within their interval. `error_over_claim`: mean squared error of the values
    over the mean variance that is claimed; None without a claim."""

    family: str
    steps: int
    method: str
    tokens: float
    rmse: float
    recall: float
    precision: float
    located: float
    covered: float
    error_over_claim: float | None


def judged(chains: Chains, said: Replayed, family: str, method: str) -> HardLabels:
    truth = chains.values
    fixed = method.startswith("fixed")
    mean = np.where(np.isnan(said.unbiased), 0.5, said.unbiased) if fixed else said.mean
    labels = np.array([[np.nan if label is None else label for label in row[:-1]] for row in said.labels], dtype=float)
    bad = truth[:, 1:] <= BAD
    rows, at = falls(truth)
    within = (said.low <= truth) & (truth <= said.high)
    return HardLabels(
        family=family,
        steps=chains.steps,
        method=method,
        tokens=float(said.tokens.mean()),
        rmse=float(np.sqrt(((mean - truth) ** 2).mean())),
        recall=_share(labels[bad] == 0),
        precision=_share(bad[labels == 0]),
        located=_share((-np.diff(mean[rows], axis=1)).argmax(axis=1) == at),
        covered=_share(within[rows, at]),
        error_over_claim=None if fixed else float(((mean - truth) ** 2).mean() / (said.sd**2).mean()),
    )


def falls(truth: Floats) -> tuple[Integers, Integers]:
    """The chains with a large fall, and the prefix before their largest one."""
    down = -np.diff(truth, axis=1)
    rows = np.flatnonzero(down.max(axis=1) >= FALL)
    return rows, down[rows].argmax(axis=1)


def _share(found: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> float:
    return float(found.mean()) if found.size else float("nan")
