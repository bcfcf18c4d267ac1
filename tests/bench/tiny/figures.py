"""The figures of a tiny policy's labels, as text: coverage, error, cost and bias, against truth. Pure.

The truth is known to an sd of at most 0.011, which every figure allows for. How a figure depends on which chains these are is
computed by the jackknife: +- is one standard error over chains.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tests.tiny.compared import Floats, Printed, Truth

FIXED = 8
"""Rollouts per prefix that ours are compared with."""
USUAL_TARGET = 0.1
"""The default of `estimator.target_sd`."""
BOOTSTRAPS = 2_000
BINS = (0.0, 0.02, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Edges; nearly half of the prefixes are in the first bin, their chains being lost."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Of fixed N, arrays (B, P) for B labellings: the share of right rollouts, of how many, and what all took of tokens."""

    value: Floats
    graded: Floats
    tokens: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Labellings: by target with the kernel passed on, and by fixed N. `reproduced`: share of the rollouts of fixed N that
    write the chain's next step."""

    passed_on: dict[float, list[Printed]]
    fixed: Blocks
    reproduced: float
    generated: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Of all prefixes, and its standard error over chains."""

    value: float
    error: float

    def text(self, form: str) -> str:
        return f"{self.value:{form}} +- {self.error:{form}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Of all chains, and between what 95 % of those lie whose chains are drawn again with replacement."""

    value: float
    low: float
    high: float


def jackknifed(figure: Callable[[Mask], float], known: Truth) -> Figure:
    """`figure` takes which of the P prefixes count."""
    chains = np.unique(known.chain)
    rest = np.array([figure(known.chain != each) for each in chains])
    error = np.sqrt((len(chains) - 1) / len(chains) * ((rest - rest.mean()) ** 2).sum())
    return Figure(value=figure(np.ones(len(known.chain), dtype=bool)), error=float(error))


def lines(policy: str, found: Sampled, known: Truth) -> Iterator[str]:
    lengths = np.bincount(known.chain)
    yield (
        f"\ntiny policy, {policy} chains: {len(known.ids)} of K = {lengths.min()} to {lengths.max()}, {len(known.chain)} steps,"
        f" {found.generated:,} tokens in {found.seconds:.0f} s ({found.generated / found.seconds:,.0f} a second);"
        " +- is a standard error over chains"
    )
    yield (
        f"  {np.mean(known.outcomes):.0%} of the chains are right; {found.reproduced:.0%} of the rollouts of fixed N write"
        " their chain's next step"
    )
    fixed_error = jackknifed(lambda kept: rmse(found.fixed.value, known, kept), known)
    fixed_tokens = float(found.fixed.tokens.mean())
    yield f"  {'':<34}{'tok/step':>9}  {'RMSE':<18}{'fewer than fixed N at its RMSE':<32}95 %: low..high, mean +- 1.96 sd"
    yield f"  {f'fixed N={FIXED}, c/{FIXED}':<34}{fixed_tokens:>9.0f}  {fixed_error.text('.3f'):<18}"
    for target, repetitions in found.passed_on.items():
        yield _pooled_line(f"pooled target_sd={target:g}, passed on", repetitions, found.fixed, known)
    yield f"  {_times(found)}, with the kernel learned from repetitions before, as a run's units do, though of the same chains"
    saved = jackknifed(lambda kept: at_equal_error(found, known, kept), known)
    yield f"  at the RMSE of fixed N={FIXED}, between two targets: {saved.text('.2f')} times fewer tokens (nan: below all)"
    ratio = error_over_claim(found.passed_on[USUAL_TARGET], known)
    yield (
        f"  target_sd={USUAL_TARGET:g}: squared error over claimed variance {ratio.value:.2f} (95 %: {ratio.low:.2f} to "
        f"{ratio.high:.2f})"
    )
    yield f"  mean of value - V, by bin of V, and its standard error (sampling's and truth's); target_sd={USUAL_TARGET:g}"
    yield f"  {'':<34}" + "".join(f"{f'{low:g}..{high:g}':>16}" for low, high in pairwise(BINS))
    usual = found.passed_on[USUAL_TARGET]
    for name, values, rollouts in (
        ("pooled, passed on", _stacked(usual, "unbiased"), _stacked(usual, "unbiased_rollouts")),
        (f"fixed N={FIXED}", found.fixed.value, found.fixed.graded),
    ):
        of_bins = biases(values, rollouts, known)
        yield f"  {name:<34}" + "".join(f"{mean:>+9.4f} {error:.4f}" for mean, error in of_bins)


def _times(found: Sampled) -> str:
    return ", ".join(f"{len(shown)} times at {target:g}" for target, shown in found.passed_on.items())


def _pooled_line(name: str, repetitions: Sequence[Printed], fixed: Blocks, known: Truth) -> str:
    mean, every = _stacked(repetitions, "mean"), np.ones(len(known.chain), dtype=bool)
    tokens = _tokens_per_step(repetitions, known, every)
    error = jackknifed(lambda kept: rmse(mean, known, kept), known)
    saved = jackknifed(lambda kept: fewer(repetitions, fixed, known, kept), known)
    within = jackknifed(lambda kept: float(_within_interval(repetitions, known)[:, kept].mean()), known)
    by_sd = jackknifed(lambda kept: float(_within_sd(repetitions, known)[:, kept].mean()), known)
    cost = f"{tokens:>9.0f}  {error.text('.3f'):<18}{saved.text('.2f'):<32}"
    return f"  {name:<34}{cost}{within.text('.1%')}, {by_sd.text('.1%')}"


def _stacked(repetitions: Sequence[Printed], name: str) -> Floats:
    return np.array([getattr(each, name) for each in repetitions])


def _tokens_per_step(repetitions: Sequence[Printed], known: Truth, kept: Mask) -> float:
    chains = np.unique(known.chain[kept])
    return float(_stacked(repetitions, "tokens")[:, chains].sum(axis=1).mean() / kept.sum())


def rmse(values: Floats, known: Truth, kept: Mask) -> float:
    """Against V, of which the truth is an estimate."""
    squares = ((values - known.value)[:, kept] ** 2).mean() - (known.sd[kept] ** 2).mean()
    return float(np.sqrt(squares))


def fewer(repetitions: Sequence[Printed], fixed: Blocks, known: Truth, kept: Mask) -> float:
    """Tokens of fixed N over ours at our RMSE, whatever fraction N is: the square of its error falls as 1/N."""
    ratio = rmse(fixed.value, known, kept) / rmse(_stacked(repetitions, "mean"), known, kept)
    return float(fixed.tokens[:, kept].mean()) * ratio**2 / _tokens_per_step(repetitions, known, kept)


def at_equal_error(found: Sampled, known: Truth, kept: Mask) -> float:
    """Tokens of fixed N over those of pooled at the RMSE of the former: between two targets, on a line in logarithms. Where
    that error is larger than all of pooled, at the cheapest target, which says too little; where it is smaller, nan."""
    points = sorted(
        (rmse(_stacked(each, "mean"), known, kept), _tokens_per_step(each, known, kept))
        for each in found.passed_on.values()
    )
    errors, costs = np.log(np.array(points)).T
    own = np.log(rmse(found.fixed.value, known, kept))
    cost = np.exp(np.interp(own, errors, costs, left=np.nan))
    return float(found.fixed.tokens[:, kept].mean() / cost)


def error_over_claim(repetitions: Sequence[Printed], known: Truth) -> Ratio:
    """Mean squared error over the mean variance that is claimed."""
    squares = ((_stacked(repetitions, "mean") - known.value) ** 2).mean(axis=0) - known.sd**2
    claimed = (_stacked(repetitions, "sd") ** 2).mean(axis=0)
    error, claim = (np.bincount(known.chain, each) for each in (squares, claimed))
    drawn = np.random.default_rng(BOOTSTRAPS).integers(len(error), size=(BOOTSTRAPS, len(error)))
    low, high = np.quantile(error[drawn].sum(axis=1) / claim[drawn].sum(axis=1), (0.025, 0.975))
    return Ratio(value=float(error.sum() / claim.sum()), low=float(low), high=float(high))


def _within_interval(repetitions: Sequence[Printed], known: Truth) -> Mask:
    """Whether the truth lies in low..high, each half of which is widened by the truth's own error."""
    mean, low, high = (_stacked(repetitions, name) for name in ("mean", "low", "high"))
    own = 1.96 * known.sd
    below, above = np.hypot(np.maximum(mean - low, 0), own), np.hypot(np.maximum(high - mean, 0), own)
    return np.asarray((mean - below <= known.value) & (known.value <= mean + above))


def _within_sd(repetitions: Sequence[Printed], known: Truth) -> Mask:
    sd = np.hypot(_stacked(repetitions, "sd"), known.sd)
    return np.asarray(np.abs(_stacked(repetitions, "mean") - known.value) <= 1.96 * sd)


def biases(values: Floats, rollouts: Floats, known: Truth) -> Iterator[tuple[float, float]]:
    """Mean error of each bin, and its standard error: that of c/n, n being settled before the first rollout, and the truth's,
    which repetitions share."""
    bins = np.digitize(known.value, BINS[1:-1], right=True)
    for place in range(len(BINS) - 1):
        here = bins == place
        errors, n = (values - known.value)[:, here], rollouts[:, here]
        there = n > 0
        shares = there.sum(axis=0) / there.sum()
        one = np.where(there, known.sd[here] ** 2 * known.rollouts[here] / np.maximum(n, 1), 0.0)
        variance = one.sum() / there.sum() ** 2 + ((shares * known.sd[here]) ** 2).sum()
        yield float(errors[there].mean()), float(np.sqrt(variance))
