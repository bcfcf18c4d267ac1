"""What labels say of bad steps and of the step with the error, against known values."""

from dataclasses import dataclass

import numpy as np

from pipeline.estimators.lasting_drop import FLOOR, SHARE
from pipeline.estimators.tree import Flags
from tests.synthetic.chains import Chains
from tests.synthetic.draw import Integers
from tests.synthetic.policy import Floats
from tests.synthetic.replayed import Replayed

BAD = 0.1
"""A value up to this is low."""
FALL = 0.2
"""Chains in which the value decreases by at least this at one step have a step with the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardLabels:
    """`tokens`: per labelled step. `recall`: share of the bad inner steps with label 0. `precision`: share of the inner
    labels 0 whose step is bad. `f1`: harmonic mean of the share of chains with a bad step, and of those without one, whose
    first label 0 is the first bad step. Steps are bad by the rule `lasting_drop` on the true values. `located`: share of the
    chains with a large fall whose estimated one is at the same step. `covered`: share of the values before that fall within
    their interval. `error_over_claim`: mean squared error of the values over the mean variance that is claimed; None without a
    claim."""

    family: str
    steps: int
    method: str
    tokens: float
    rmse: float
    recall: float
    precision: float
    f1: float
    located: float
    covered: float
    error_over_claim: float | None


def judged(chains: Chains, said: Replayed, family: str, method: str) -> HardLabels:
    truth = chains.values
    fixed = method.startswith("fixed")
    mean = np.where(np.isnan(said.unbiased), 0.5, said.unbiased) if fixed else said.mean
    labels = np.array([[np.nan if label is None else label for label in row[:-1]] for row in said.labels], dtype=float)
    bad = dropped(truth)
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
        f1=first_errors(labels == 0, bad),
        located=_share((-np.diff(mean[rows], axis=1)).argmax(axis=1) == at),
        covered=_share(within[rows, at]),
        error_over_claim=None if fixed else float(((mean - truth) ** 2).mean() / (said.sd**2).mean()),
    )


def dropped(truth: Floats) -> Flags:
    """(C, K) -> (C, K - 1): the inner steps that are bad by the rule `lasting_drop`."""
    best_before = np.maximum.accumulate(truth, axis=1)[:, :-1]
    best_from = np.maximum.accumulate(truth[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return np.asarray(best_from <= SHARE * np.maximum(best_before, FLOOR))


def first_errors(said: Flags, bad: Flags) -> float:
    """F1 as ProcessBench computes it, of inner steps, (C, K - 1) each."""
    ends = np.ones((len(bad), 1), dtype=np.bool_)
    right = np.concatenate([said, ends], axis=1).argmax(axis=1) == np.concatenate([bad, ends], axis=1).argmax(axis=1)
    some = bad.any(axis=1)
    found, cleared = _share(right[some]), _share(right[~some])
    return 2 * found * cleared / (found + cleared)


def falls(truth: Floats) -> tuple[Integers, Integers]:
    """The chains with a large fall, and the prefix before their largest one."""
    down = -np.diff(truth, axis=1)
    rows = np.flatnonzero(down.max(axis=1) >= FALL)
    return rows, down[rows].argmax(axis=1)


def _share(found: Flags) -> float:
    return float(found.mean()) if found.size else float("nan")
